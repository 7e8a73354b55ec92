//! Numbers the values that many interests share, with reference counts.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Assigns a number to each distinct key in use, and stores a value with it.
///
/// A released number is reused. A table without keys in use holds no memory.
pub(super) struct InternTable<K, V> {
    numbers: HashMap<K, u32>,
    slots: Vec<InternSlot<K, V>>,
    free: Vec<u32>,
}

struct InternSlot<K, V> {
    /// `None` while the number is free.
    key: Option<K>,
    uses: u32,
    value: V,
}

impl<K, V> Default for InternTable<K, V> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Default> InternTable<K, V> {
    /// Returns the number of `key` and whether the key is new. Counts one more use.
    pub(super) fn intern(&mut self, key: K) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(&key) {
            self.slots[index_of(number)].uses += 1;
            return (number, false);
        }
        let slot = InternSlot { key: Some(key.clone()), uses: 1, value: V::default() };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[index_of(number)] = slot;
                number
            }
            None => {
                let number = u32::try_from(self.slots.len()).expect("memory is exhausted before");
                self.slots.push(slot);
                number
            }
        };
        self.numbers.insert(key, number);
        (number, true)
    }

    /// Interns the distinct ones of `keys` and returns their numbers. A repeated key counts as one use, because the
    /// caller releases each number once.
    pub(super) fn intern_distinct(&mut self, keys: impl IntoIterator<Item = K>) -> Vec<u32>
    where
        K: Ord,
    {
        let distinct: BTreeSet<K> = keys.into_iter().collect();
        distinct.into_iter().map(|key| self.intern(key).0).collect()
    }

    /// Releases one use of a number. Returns the key if this was the last use.
    pub(super) fn release(&mut self, number: u32) -> Option<K> {
        let slot = &mut self.slots[index_of(number)];
        slot.uses -= 1;
        if slot.uses > 0 {
            return None;
        }
        // Frees the memory of the value now, not when the number is reused.
        slot.value = V::default();
        let key = slot.key.take().expect("a number in use has a key");
        self.numbers.remove(&key);
        self.free.push(number);
        if self.numbers.is_empty() {
            *self = Self::default();
        }
        Some(key)
    }

    /// Returns the number of a key in use.
    pub(super) fn find<Q>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.numbers.get(key).copied()
    }

    pub(super) fn key(&self, number: u32) -> &K {
        self.slots[index_of(number)].key.as_ref().expect("a number in use has a key")
    }

    pub(super) fn value(&self, number: u32) -> &V {
        &self.slots[index_of(number)].value
    }

    pub(super) fn value_mut(&mut self, number: u32) -> &mut V {
        &mut self.slots[index_of(number)].value
    }

    /// Returns the highest number of keys that were in use at the same time.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether no memory is held.
    #[cfg(test)]
    pub(super) fn is_bare(&self) -> bool {
        self.numbers.capacity() + self.slots.capacity() + self.free.capacity() == 0
    }
}

/// Converts a number to a list index.
pub(super) fn index_of(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit")
}
