//! Ports for listeners other than the servers, allocated so that no two tests share one.

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

use tokio::{net::TcpSocket, runtime::Builder};

/// A port that refuses connections until [`ReservedPort::listen`]. It stays bound: a released port could be
/// assigned to another test, or to an outgoing connection.
pub struct ReservedPort {
    socket: TcpSocket,
}

impl ReservedPort {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        Self { socket }
    }

    pub fn port(&self) -> u16 {
        self.socket.local_addr().expect("bound").port()
    }

    /// Starts to accept connections.
    pub fn listen(self) -> TcpListener {
        let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
        let _inside = runtime.enter();
        let listener = self.socket.listen(64).expect("listening").into_std().expect("a listener");
        listener.set_nonblocking(false).expect("set");
        listener
    }
}

/// A port for a program that binds it itself: below the ephemeral ports of the system (from 32768 on, see
/// `ip_local_port_range`), and unique in this process.
pub fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Another run of the tests on this machine starts at a different port.
    let own = u16::try_from(std::process::id() % u32::from(COUNT)).expect("small");
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(number < COUNT, "no port is free");
        let port = FIRST + (own + number) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
