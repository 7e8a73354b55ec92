//! A parallel map over a queue, on several threads.

use parking_lot::Mutex;

use crate::runtime::error::Result;

/// Runs `work` for each of `things` on `workers` threads, until all are done or one fails.
pub(super) fn for_each_parallel<T: Send>(
    workers: usize,
    things: impl Iterator<Item = T> + Send,
    work: &(dyn Fn(T) -> Result<()> + Sync),
) -> Result<()> {
    let queue = Mutex::new(things);
    let failure = Mutex::new(None);
    let take = || {
        // The other threads stop after the first failure.
        let failed = failure.lock().is_some();
        let next = || queue.lock().next();
        if failed { None } else { next() }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(thing) = take() {
                    if let Err(error) = work(thing) {
                        let mut failure = failure.lock();
                        failure.get_or_insert(error);
                        return;
                    }
                }
            });
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}
