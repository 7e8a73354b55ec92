//! Numbers for what many interests name, counted so that they are given back.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Gives each different key a number while it is in use, and stores a value with it.
///
/// A number that is given back is used again. A table without keys in use holds no memory.
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
    /// The number of `key`, in use once more, and whether it is new.
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
                let number = u32::try_from(self.slots.len()).expect("memory ends before");
                self.slots.push(slot);
                number
            }
        };
        self.numbers.insert(key, number);
        (number, true)
    }

    /// Gives a number back; returns the key when that was its last use.
    pub(super) fn release(&mut self, number: u32) -> Option<K> {
        let slot = &mut self.slots[index_of(number)];
        slot.uses -= 1;
        if slot.uses > 0 {
            return None;
        }
        slot.value = V::default();
        let key = slot.key.take().expect("a number in use has a key");
        self.numbers.remove(&key);
        self.free.push(number);
        if self.numbers.is_empty() {
            *self = Self::default();
        }
        Some(key)
    }

    /// The number of a key that is in use.
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

    /// How many keys were in use at a time, at most.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Whether no memory is held.
    #[cfg(test)]
    pub(super) fn is_bare(&self) -> bool {
        self.numbers.capacity() + self.slots.capacity() + self.free.capacity() == 0
    }
}

/// A number as a place in a list.
pub(super) fn index_of(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit")
}
