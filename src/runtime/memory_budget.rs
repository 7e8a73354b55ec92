//! A memory budget that several threads share.

use parking_lot::{Condvar, Mutex, MutexGuard};

/// A memory budget for work on threads outside the pool.
///
/// A share waits until it fits. A single share may exceed the budget. A share that waits to grow keeps its
/// memory, so when all holders wait, the first in line proceeds to avoid a deadlock.
pub struct MemoryBudget {
    state: Mutex<BudgetState>,
    freed: Condvar,
    bytes_max: u64,
}

#[derive(Default)]
struct BudgetState {
    bytes: u64,
    /// Shares that do not wait to grow.
    working: usize,
    /// The ticket of the next waiter.
    next: u64,
    /// The ticket of the waiter first in line.
    first: u64,
}

/// A part of a [`MemoryBudget`], released when it is dropped.
pub struct MemoryShare<'a> {
    memory: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// Creates a budget of `bytes_max`.
    pub fn new(bytes_max: u64) -> Self {
        Self { state: Mutex::default(), freed: Condvar::new(), bytes_max }
    }

    /// Acquires `bytes`, blocking until they fit.
    pub fn acquire(&self, bytes: u64) -> MemoryShare<'_> {
        self.wait(self.state.lock(), bytes);
        MemoryShare { memory: self, bytes }
    }

    /// Waits in line for `bytes`, then counts them and one working share.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, BudgetState>, bytes: u64) {
        let ticket = state.next;
        state.next += 1;
        // In strict order, because small shares would starve a large one. If no share is working, no memory
        // will be released, so the first in line may exceed the budget.
        while ticket != state.first
            || (state.working > 0 && state.bytes.saturating_add(bytes) > self.bytes_max)
        {
            self.freed.wait(&mut state);
        }
        state.first += 1;
        state.working += 1;
        state.bytes = state.bytes.saturating_add(bytes);
        drop(state);
        // The next in line may fit beside this share.
        self.freed.notify_all();
    }
}

impl MemoryShare<'_> {
    /// Acquires `more` bytes in addition, blocking until they fit.
    pub fn grow(&mut self, more: u64) {
        let mut state = self.memory.state.lock();
        // A share that waits does not count as working: if every share waits to grow, the first in line gets
        // its bytes.
        state.working -= 1;
        self.memory.freed.notify_all();
        self.memory.wait(state, more);
        self.bytes = self.bytes.saturating_add(more);
    }
}

impl Drop for MemoryShare<'_> {
    fn drop(&mut self) {
        let mut state = self.memory.state.lock();
        state.working -= 1;
        state.bytes = state.bytes.saturating_sub(self.bytes);
        drop(state);
        self.memory.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{self, RecvTimeoutError::Timeout as TIMEOUT};
    use std::time::Duration;

    use super::*;

    /// Time in which what must wait would have gone on.
    const A_WHILE: Duration = Duration::from_millis(100);

    #[test]
    fn shares_of_memory_wait_for_each_other_and_one_alone_may_exceed_it() {
        let memory = MemoryBudget::new(100);
        let alone = memory.acquire(500);
        drop(alone);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = memory.acquire(60);
            scope.spawn(|| {
                let second = memory.acquire(60);
                sender.send(()).expect("heard");
                drop(second);
            });
            assert_eq!(receiver.recv_timeout(A_WHILE), Err(TIMEOUT), "there is no room for both");
            drop(first);
            receiver.recv().expect("now there is");
        });
        assert_eq!(memory.state.lock().bytes, 0);
    }

    #[test]
    fn shares_that_all_wait_for_more_do_not_wait_for_ever() {
        let memory = MemoryBudget::new(100);
        let beyond = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let mut share = memory.acquire(30);
                        share.grow(90);
                        // It has more than there is, so all others wait.
                        assert_eq!(beyond.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(memory.state.lock().working, 1);
                        std::thread::yield_now();
                        beyond.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let state = memory.state.lock();
        assert_eq!((state.bytes, state.working), (0, 0));
    }

    #[test]
    fn shares_at_once_are_as_many_as_fit() {
        let memory = MemoryBudget::new(100);
        let current = AtomicU64::new(0);
        let peak = AtomicU64::new(0);
        for _ in 0..50 {
            // Two fit: that both are there at once is waited for, and a third never comes.
            let both = Barrier::new(2);
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        let _share = memory.acquire(40);
                        let count = current.fetch_add(1, Ordering::SeqCst) + 1;
                        peak.fetch_max(count, Ordering::SeqCst);
                        both.wait();
                        std::thread::yield_now();
                        current.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
        }
        assert_eq!(peak.into_inner(), 2);
    }
}
