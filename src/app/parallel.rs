//! A parallel map over a queue, on several threads.

use parking_lot::Mutex;

use crate::runtime::error::Result;

/// Runs `work` for each of `items` on `workers` threads, until all are done or one fails.
pub(super) fn for_each_parallel<T: Send>(
    workers: usize,
    items: impl Iterator<Item = T> + Send,
    work: &(dyn Fn(T) -> Result<()> + Sync),
) -> Result<()> {
    let queue = Mutex::new(items);
    let failure = Mutex::new(None);
    let take = || {
        // The other threads stop after the first failure.
        let failed = failure.lock().is_some();
        let next = || queue.lock().next();
        if failed { None } else { next() }
    };
    std::thread::scope(|scope| {
        // Without a thread, no item would be processed and the call would succeed.
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(item) = take() {
                    if let Err(error) = work(item) {
                        let mut failure = failure.lock();
                        // Several threads may fail at the same time; the first failure is the one
                        // to report.
                        failure.get_or_insert(error);
                        return;
                    }
                }
            });
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}
