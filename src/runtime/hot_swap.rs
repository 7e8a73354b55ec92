//! A hot-swappable value: a setting that a reload replaces while requests read it.

use std::sync::Arc;

use parking_lot::RwLock;

/// A shared value that can be replaced. Clones share it.
///
/// A reader gets a snapshot of the whole value and can keep it for any time, so the parts of a snapshot are
/// always consistent. A read holds the lock only to copy a pointer.
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
    /// Creates the shared value with `value`.
    pub fn new(value: T) -> Self {
        Self { current: Arc::new(RwLock::new(Arc::new(value))) }
    }

    /// Returns a snapshot of the current value.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// Replaces the value; later reads return `value`.
    pub fn set(&self, value: T) {
        *self.current.write() = Arc::new(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_see_what_is_set_and_readers_keep_what_they_have() {
        let original = HotSwap::new(1);
        let (clone, snapshot) = (original.clone(), original.get());
        original.set(2);
        assert_eq!((*clone.get(), *snapshot), (2, 1));
    }
}
