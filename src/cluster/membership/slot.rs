//! The name of a node: a file in the data directory, which the process holds locked.
//!
//! The name is random and stays in the file, so a node that was killed keeps its identity when it restarts.
//! Each process over one directory has its own file. A copy of the directory contains copies of the names:
//! see [`NodeSlot::rename`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use uuid::Uuid;

use super::limits::SLOTS_MAX;
use crate::runtime::modes;

/// A slot for one node in a data directory.
#[derive(Debug)]
pub(super) struct NodeSlot {
    /// Locked until this is dropped.
    file: File,
    pub(super) name: String,
}

impl NodeSlot {
    /// Locks the first slot in `dir` that has no process. Also returns the other slots without a process. No
    /// process can use them while they are held: the incarnations of those nodes are over.
    pub(super) fn acquire(dir: &Path) -> io::Result<(Self, Vec<Self>)> {
        modes::create_private_folder(dir)?;
        let mut own = None;
        let mut idle = Vec::new();
        for number in 1..=SLOTS_MAX {
            let path = dir.join(format!("node-{number}"));
            let needs_slot = own.is_none();
            // Slots are created in order, so none exists after the first missing one.
            if !needs_slot && !path.exists() {
                break;
            }
            let mut options = OpenOptions::new();
            let file =
                options.read(true).write(true).create(needs_slot).truncate(false).open(&path)?;
            modes::give_to_owner_of_folder(&path);
            match file.try_lock() {
                Ok(()) if needs_slot => own = Some(Self::read(file)?),
                Ok(()) => idle.push(Self::read(file)?),
                // A running process uses this name.
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
        }
        let Some(own) = own else {
            let full = format!("{SLOTS_MAX} processes serve this directory already");
            return Err(io::Error::other(full));
        };
        Ok((own, idle))
    }

    fn read(mut file: File) -> io::Result<Self> {
        let mut text = String::new();
        // Unreadable or invalid content is replaced by a new name.
        drop(Read::by_ref(&mut file).take(64).read_to_string(&mut text));
        if let Ok(name) = text.trim().parse::<Uuid>() {
            return Ok(Self { file, name: name.to_string() });
        }
        let mut slot = Self { file, name: String::new() };
        slot.rename();
        Ok(slot)
    }

    /// Chooses a new name, because a different process uses this one over a copy of the directory.
    pub(super) fn rename(&mut self) {
        self.name = Uuid::new_v4().to_string();
        let written = self.file.set_len(0).and_then(|()| {
            self.file.rewind()?;
            self.file.write_all(self.name.as_bytes())?;
            self.file.sync_all()
        });
        if let Err(cause) = written {
            // The node uses the new name now, but becomes yet another node after a restart.
            tracing::warn!("membership: the name of this node cannot be stored: {cause}");
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
        // The slots of a pair are released before the next pair is acquired.
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
