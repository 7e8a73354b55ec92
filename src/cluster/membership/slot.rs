//! What a node is called: a file in the data directory, which its process holds locked.
//!
//! The name is drawn once and stays in the file, so that a node that was killed and starts again is the
//! same node. Processes over one directory have a file each. A copy of the directory has copies of the names:
//! see [`NodeSlot::rename`].

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
};

use uuid::Uuid;

use super::limits::SLOTS_MAX;
use crate::runtime::modes;

/// A place among the nodes of a data directory.
#[derive(Debug)]
pub(super) struct NodeSlot {
    /// Locked until this is dropped.
    file: File,
    pub(super) name: String,
}

impl NodeSlot {
    /// Takes the first place in `dir` that no process has. Gives with it the other ones that no process
    /// has, and that none can take while they are held: the lives of those nodes are over.
    pub(super) fn acquire(dir: &Path) -> io::Result<(Self, Vec<Self>)> {
        modes::create_private_folder(dir)?;
        let (mut own, mut idle) = (None, Vec::new());
        for number in 1..=SLOTS_MAX {
            let path = dir.join(format!("node-{number}"));
            let is_free = own.is_none();
            if !is_free && !path.exists() {
                break;
            }
            let mut options = OpenOptions::new();
            let file =
                options.read(true).write(true).create(is_free).truncate(false).open(&path)?;
            modes::give_to_owner_of_folder(&path);
            match file.try_lock() {
                Ok(()) if is_free => own = Some(Self::read(file)?),
                Ok(()) => idle.push(Self::read(file)?),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
        }
        let full =
            || io::Error::other(format!("{SLOTS_MAX} processes serve this directory already"));
        own.ok_or_else(full).map(|own| (own, idle))
    }

    fn read(mut file: File) -> io::Result<Self> {
        let mut text = String::new();
        // What is no name is replaced.
        drop(Read::by_ref(&mut file).take(64).read_to_string(&mut text));
        if let Ok(name) = text.trim().parse::<Uuid>() {
            return Ok(Self { file, name: name.to_string() });
        }
        let mut slot = Self { file, name: String::new() };
        slot.rename();
        Ok(slot)
    }

    /// Draws another name: somebody else goes by this one, over a copy of the directory.
    pub(super) fn rename(&mut self) {
        self.name = Uuid::new_v4().to_string();
        let written = self.file.set_len(0).and_then(|()| {
            self.file.rewind()?;
            self.file.write_all(self.name.as_bytes())?;
            self.file.sync_all()
        });
        if let Err(cause) = written {
            // It lives under that name all the same; after a restart it is another node.
            tracing::warn!("the name of this node cannot be kept: {cause}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_over_one_directory_have_names_of_their_own_that_stay() {
        let dir = tempfile::tempdir().expect("folder");
        let names = |slots: &[NodeSlot]| -> Vec<String> {
            slots.iter().map(|slot| slot.name.clone()).collect()
        };
        let one = || NodeSlot::acquire(dir.path()).expect("a place").0;
        let take = || [one(), one()];
        // Each pair is gone before the next one comes.
        let first = names(&take());
        let second = names(&take());
        assert_eq!(first, second);
        assert_ne!(first[0], first[1]);
        let (mut slot, idle) = NodeSlot::acquire(dir.path()).expect("a place");
        assert_eq!(names(&idle), first[1..], "nobody has the other one");
        drop(idle);
        slot.rename();
        let renamed = slot.name.clone();
        drop(slot);
        assert_ne!(renamed, first[0]);
        assert_eq!(one().name, renamed);
    }
}
