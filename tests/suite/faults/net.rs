//! A private network: each node in a network namespace whose link can be cut, everything else on the host side of
//! the bridge.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::ports::free_port;
use crate::common::server::{isolate_environment, output};

/// The network of the nodes.
pub struct Net {
    /// The address of the host side.
    pub host: String,
    /// The addresses of the nodes, with ports.
    pub nodes: Vec<String>,
    links: Option<Links>,
}

/// Names of the created namespaces, and of the host ends of their links.
struct Links {
    bridge: String,
    spaces: Vec<String>,
    ends: Vec<String>,
}

/// Runs `ip` with these arguments.
fn ip(arguments: &str) {
    let said = output(Command::new("ip").args(arguments.split(' ')));
    assert!(said.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&said.stderr));
}

/// Returns whether this process may create namespaces.
fn is_allowed() -> bool {
    let quiet = |command: &mut Command| {
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    };
    let probe = format!("wirephoto-{}-probe", std::process::id());
    let made = quiet(Command::new("unshare").args(["-n", "true"]))
        && quiet(Command::new("ip").args(["netns", "add", &probe]));
    if made {
        ip(&format!("netns del {probe}"));
    }
    made
}

impl Net {
    /// A network of `count` nodes; all of it on loopback where namespaces are not permitted.
    ///
    ///
    /// One per process: names and addresses derive from the process id.
    pub fn new(count: usize) -> Self {
        if !is_allowed() {
            let nodes = (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect();
            return Self { host: "127.0.0.1".to_owned(), nodes, links: None };
        }
        let process = std::process::id();
        let subnet = format!("10.{}.{}", 192 + (process >> 8) % 64, process % 256);
        let name = |kind: &str| (0..count).map(|at| format!("{kind}{process}-{at}")).collect();
        let links = Links {
            bridge: format!("wpb{process}"),
            spaces: name("wirephoto-"),
            ends: name("wp"),
        };
        // From here on everything created is removed on drop.
        let net = Self {
            host: format!("{subnet}.1"),
            nodes: (0..count).map(|at| format!("{subnet}.{}:8080", at + 2)).collect(),
            links: Some(links),
        };
        let links = net.links.as_ref().expect("made above");
        ip(&format!("link add {} type bridge", links.bridge));
        ip(&format!("addr add {}/24 dev {}", net.host, links.bridge));
        ip(&format!("link set {} up", links.bridge));
        for (at, (space, end)) in links.spaces.iter().zip(&links.ends).enumerate() {
            ip(&format!("netns add {space}"));
            ip(&format!("link add {end} type veth peer name eth0 netns {space}"));
            ip(&format!("link set {end} master {} up", links.bridge));
            ip(&format!("-n {space} addr add {subnet}.{}/24 dev eth0", at + 2));
            ip(&format!("-n {space} link set eth0 up"));
            ip(&format!("-n {space} link set lo up"));
        }
        net
    }

    /// Returns whether nodes can be cut off.
    pub fn has_links(&self) -> bool {
        self.links.is_some()
    }

    /// The binary in the node's namespace and the folder `dir`.
    pub fn wirephoto(&self, node: usize, dir: &Path) -> Command {
        let binary = env!("CARGO_BIN_EXE_wirephoto");
        let mut command = match &self.links {
            None => Command::new(binary),
            Some(links) => {
                // `exec` replaces every wrapper, so that the child process is the binary.
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{}", links.spaces[node])).arg(binary);
                command
            }
        };
        command.current_dir(dir).stdin(Stdio::null());
        isolate_environment(&mut command, dir);
        command
    }

    /// Takes the link of a node down or up; its peers get no notice of it.
    fn set(&self, node: usize, to: &str) {
        let links = self.links.as_ref().expect("there are links");
        ip(&format!("link set {} {to}", links.ends[node]));
    }

    pub fn cut(&self, node: usize) {
        self.set(node, "down");
    }

    pub fn join(&self, node: usize) {
        self.set(node, "up");
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let Some(links) = &self.links else { return };
        let try_ip = |arguments: &[&str]| drop(output(Command::new("ip").args(arguments)));
        for (space, end) in links.spaces.iter().zip(&links.ends) {
            // A namespace exists until its last connection ends; its link must not wait for that.
            try_ip(&["link", "del", end]);
            try_ip(&["netns", "del", space]);
        }
        try_ip(&["link", "del", &links.bridge]);
    }
}
