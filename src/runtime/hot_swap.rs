//! A value that is exchanged while others read it: settings that change while the service runs.

use std::sync::Arc;

use parking_lot::RwLock;

/// A shared value; clones share it.
///
/// A reader gets the value of this moment as a whole and keeps it as long as it likes, so the parts
/// of it always belong together. Reading costs a lock that nobody holds for longer than a copy of a
/// pointer.
#[derive(Debug, Default)]
pub struct HotSwap<T> {
    current: Arc<RwLock<Arc<T>>>,
}

impl<T> Clone for HotSwap<T> {
    fn clone(&self) -> Self {
        Self { current: Arc::clone(&self.current) }
    }
}

impl<T> HotSwap<T> {
    /// A value to begin with.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { current: Arc::new(RwLock::new(Arc::new(value))) }
    }

    /// The value of this moment.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// Exchanges it; who reads from now on gets `value`.
    pub fn set(&self, value: T) {
        *self.current.write() = Arc::new(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_see_what_is_set_and_readers_keep_what_they_have() {
        let live = HotSwap::new(1);
        let (clone, held) = (live.clone(), live.get());
        live.set(2);
        assert_eq!((*clone.get(), *held), (2, 1));
    }
}
