//! Runs work for the items of a queue in parallel, on several threads.

use parking_lot::Mutex;

use crate::runtime::error::{Error, Result};

/// Runs `work` for each of `items` on `workers` threads, until all are done or one fails.
pub(super) fn for_each_parallel<T: Send>(
    workers: usize,
    items: impl Iterator<Item = T> + Send,
    work: &(dyn Fn(T) -> Result<()> + Sync),
) -> Result<()> {
    let queue = Mutex::new(items);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        // Without a thread, no item would be processed and the call would succeed.
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(item) = next_item(&queue, &failure) {
                    if let Err(error) = work(item) {
                        let mut failure = failure.lock();
                        // Several threads may fail at the same time; the first failure is reported.
                        failure.get_or_insert(error);
                        return;
                    }
                }
            });
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Returns the next item, or `None` after a failure, so that the other threads stop.
fn next_item<T>(
    queue: &Mutex<impl Iterator<Item = T>>,
    failure: &Mutex<Option<Error>>,
) -> Option<T> {
    if failure.lock().is_some() {
        return None;
    }
    queue.lock().next()
}
