//! Files that other projects use to test their readers: corrupt, odd, found by fuzzers.
//!
//! `tests/corpus/SOURCES.txt` lists the packages. They are fetched once into the cache folder, with their checksums
//! verified, and reused.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use sha2::{Digest, Sha256};

use crate::common::checkout;

/// The largest file that is used, in bytes; the largest files in the packages are videos.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The largest package, in bytes, and the timeout of its download, in seconds.
const PACKAGE_BYTES_MAX: &str = "62914560";
const FETCH_S: &str = "300";
/// Extensions of files that are used although their first bytes identify no type.
const KINDS: [&str; 8] = ["jpg", "jpeg", "png", "pdf", "eps", "mp4", "mov", "zip"];

/// A file of the corpus.
#[derive(Clone, Debug)]
pub struct CorpusFile {
    /// Its path in the cache.
    pub path: PathBuf,
    /// The package that contains it.
    pub package: String,
    /// Its detected or claimed type: one of [`KINDS`].
    pub kind: String,
}

impl CorpusFile {
    /// The extension under which it is offered: types that ingest does not know are offered as photographs.
    pub fn extension(&self) -> &'static str {
        match self.kind.as_str() {
            "pdf" => "pdf",
            "eps" => "eps",
            "mp4" | "mov" => "mp4",
            _ => "jpg",
        }
    }
}

struct Source {
    is_crate: bool,
    name: String,
    version: String,
    files: usize,
    sum: String,
    address: String,
}

fn sources() -> Vec<Source> {
    let text = fs::read_to_string(checkout("tests/corpus/SOURCES.txt")).expect("the list");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let source = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kind, name, version, files, sum, address] = words[..] else {
            panic!("SOURCES.txt: {line}");
        };
        Source {
            is_crate: kind == "crate",
            name: name.to_owned(),
            version: version.to_owned(),
            files: files.parse().expect("a number"),
            sum: sum.to_owned(),
            address: address.to_owned(),
        }
    };
    lines.map(source).collect()
}

fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let base = base.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    base.join("wirephoto/corpus")
}

/// All files, fetched if necessary, in the order of the packages and of their names.
pub fn files() -> &'static [CorpusFile] {
    static FILES: OnceLock<Vec<CorpusFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let cache = cache();
        fs::create_dir_all(&cache).expect("the cache folder can be written");
        sources().iter().flat_map(|source| source.files(&cache)).collect()
    })
}

impl Source {
    fn files(&self, cache: &Path) -> Vec<CorpusFile> {
        let dir = cache.join(format!("{}-{}-{}", self.name, self.version, &self.sum[..8]));
        if !dir.is_dir() {
            // Several test runs may fetch concurrently; the first one to finish wins.
            let work = tempfile::tempdir_in(cache).expect("folder");
            let ready = work.path().join("ready");
            fs::create_dir(&ready).expect("folder");
            let root =
                if self.is_crate { self.vendor(work.path()) } else { self.unpack(work.path()) };
            self.pick(&root, &ready);
            if let Err(cause) = fs::rename(&ready, &dir) {
                assert!(dir.is_dir(), "{}: {cause}", dir.display());
            }
        }
        let mut names: Vec<_> = fs::read_dir(&dir).expect("folder").flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        let found = names.len();
        assert_eq!(found, self.files, "{}: files in {}", self.name, dir.display());
        let odd = |entry: fs::DirEntry| {
            let path = entry.path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            CorpusFile { kind: kind.to_owned(), package: self.name.clone(), path }
        };
        names.into_iter().map(odd).collect()
    }

    /// Fetches a package's tarball, verifies its checksum and unpacks it.
    fn unpack(&self, work: &Path) -> PathBuf {
        let tarball = work.join("tarball");
        let mut curl = Command::new("curl");
        curl.args(["-sSfL", "--retry", "3", "--max-time", FETCH_S]);
        curl.args(["--max-filesize", PACKAGE_BYTES_MAX, "-o"]).arg(&tarball).arg(&self.address);
        self.run(&mut curl);
        let bytes = fs::read(&tarball).expect("fetched");
        let sum: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sum, self.sum, "{} is not what SOURCES.txt names", self.address);
        let root = work.join("root");
        fs::create_dir(&root).expect("folder");
        let mut tar = Command::new("tar");
        tar.args(["--no-same-owner", "--no-same-permissions", "-xf"]).arg(&tarball);
        self.run(tar.arg("-C").arg(&root));
        root
    }

    /// Has cargo fetch and verify a crate.
    fn vendor(&self, work: &Path) -> PathBuf {
        let Self { name, version, sum, .. } = self;
        let manifest = format!(
            "[package]\nname = \"corpus\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
             [lib]\npath = \"lib.rs\"\n[workspace]\n[dependencies]\n\
             {name} = {{ version = \"={version}\", default-features = false }}\n"
        );
        fs::write(work.join("Cargo.toml"), manifest).expect("written");
        fs::write(work.join("lib.rs"), "").expect("written");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut vendor = Command::new(cargo);
        vendor.args(["vendor", "--quiet", "--versioned-dirs", "vendor"]).current_dir(work);
        self.run(&mut vendor);
        let root = work.join(format!("vendor/{name}-{version}"));
        let sums = fs::read_to_string(root.join(".cargo-checksum.json")).expect("vendored");
        assert!(sums.contains(sum), "{name} {version} is not what SOURCES.txt names");
        root
    }

    fn run(&self, command: &mut Command) {
        let told = format!("the corpus needs {} from {}", self.name, self.address);
        let output = command.output().unwrap_or_else(|cause| {
            panic!("{told}: {:?} cannot be run: {cause}", command.get_program())
        });
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}: {:?} failed: {errors}", command.get_program());
    }

    /// Copies every file that is a picture, a document, a video or an archive by its first bytes or its name.
    fn pick(&self, root: &Path, ready: &Path) {
        let mut found = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("folder").flatten() {
                let (path, kind) = (entry.path(), entry.file_type().expect("a file"));
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file()
                    && (1..=FILE_BYTES_MAX).contains(&entry.metadata().expect("facts").len())
                {
                    let bytes = fs::read(&path).expect("unpacked");
                    if let Some(kind) = kind_of(&path, &bytes) {
                        found.insert(path, (kind, bytes));
                    }
                }
            }
        }
        for (number, (kind, bytes)) in found.into_values().enumerate() {
            fs::write(ready.join(format!("{number:04}.{kind}")), bytes).expect("written");
        }
    }
}

fn kind_of(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(1024)];
    let has = |magic: &[u8]| head.windows(magic.len()).any(|window| window == magic);
    match head {
        [0xFF, 0xD8, ..] => return Some("jpg"),
        [0x89, b'P', b'N', b'G', ..] => return Some("png"),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => return Some("zip"),
        [0xC5, 0xD0, 0xD3, 0xC6, ..] => return Some("eps"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] | [_, _, _, _, b'm', b'o', b'o', b'v', ..] => {
            return Some("mp4");
        }
        _ if head.starts_with(b"%!PS-Adobe") && has(b"EPSF") => return Some("eps"),
        _ if has(b"%PDF-") => return Some("pdf"),
        _ => {}
    }
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    KINDS.into_iter().find(|kind| *kind == extension)
}
