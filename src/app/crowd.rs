//! The same work for many things, on several threads.

use std::sync::{Mutex, PoisonError};

use crate::runtime::error::Result;

/// Does `work` for each of `things` on `workers` threads, until all are done or one fails.
pub(super) fn each<T: Send>(
    workers: usize,
    things: impl Iterator<Item = T> + Send,
    work: &(dyn Fn(T) -> Result<()> + Sync),
) -> Result<()> {
    let queue = Mutex::new(things);
    let failure = Mutex::new(None);
    let take = || {
        // The others stop after the first failure.
        let failed = failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        if failed { None } else { next() }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(thing) = take() {
                    if let Err(error) = work(thing) {
                        let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                        failure.get_or_insert(error);
                        return;
                    }
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
