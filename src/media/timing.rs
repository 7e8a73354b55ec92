//! Measures the stages of a render.

use std::cell::Cell;

use crate::runtime::clock::Stopwatch;
use imaging::RenderStage;

/// The duration of a render in milliseconds, by stage; `None` for a stage that did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RenderTiming {
    /// From the request to the start on a worker, without the time for reading.
    pub queue_ms: f64,
    /// Reading the original and its metadata.
    pub read_ms: Option<f64>,
    /// From the original's bytes to pixels.
    pub decode_ms: Option<f64>,
    /// Blending in the watermark.
    pub blend_ms: Option<f64>,
    /// From pixels to the result's bytes.
    pub encode_ms: Option<f64>,
}

impl RenderTiming {
    /// Lists the stages that ran, by name and milliseconds, in the order of a render.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let stages = [
            ("queue", Some(self.queue_ms)),
            ("read", self.read_ms),
            ("decode", self.decode_ms),
            ("blend", self.blend_ms),
            ("encode", self.encode_ms),
        ];
        stages.into_iter().filter_map(|(name, ms)| Some((name, ms?)))
    }

    fn add(&mut self, stage: RenderStage, ms: f64) {
        let sum = match stage {
            RenderStage::Read => &mut self.read_ms,
            RenderStage::Decode => &mut self.decode_ms,
            RenderStage::Blend => &mut self.blend_ms,
            RenderStage::Encode => &mut self.encode_ms,
        };
        // A stage may run several times, as blending does once per strip of a local mark.
        *sum = Some(sum.unwrap_or(0.0) + ms);
    }
}

/// The stages measured until now, and the running stage with its start in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct StageProgress {
    timing: RenderTiming,
    running: Option<(RenderStage, f64)>,
}

impl StageProgress {
    /// Ends the running stage at `at_ms` and starts `next`.
    fn switch_stage(mut self, next: Option<RenderStage>, at_ms: f64) -> Self {
        if let Some((stage, since_ms)) = self.running {
            self.timing.add(stage, at_ms - since_ms);
        }
        self.running = next.map(|stage| (stage, at_ms));
        self
    }
}

/// Measures the stages of one render.
pub(super) struct StageClock {
    stopwatch: Stopwatch,
    // Hooks are shared references, and stages begin on one thread only.
    progress: Cell<StageProgress>,
}

impl StageClock {
    /// Starts before the first stage on a worker, for a render that was queued for `queue_ms` and whose inputs
    /// were read in `read_ms`.
    pub(super) fn start(queue_ms: f64, read_ms: Option<f64>) -> Self {
        let timing = RenderTiming { queue_ms, read_ms, ..RenderTiming::default() };
        let progress = Cell::new(StageProgress { timing, running: None });
        Self { stopwatch: Stopwatch::start(), progress }
    }

    /// Begins or continues a stage, and ends the one before it.
    pub(super) fn begin(&self, stage: RenderStage) {
        self.progress
            .set(self.progress.get().switch_stage(Some(stage), self.stopwatch.elapsed_ms()));
    }

    /// Ends the last stage and returns the times.
    pub(super) fn finish(&self) -> RenderTiming {
        self.progress.set(self.progress.get().switch_stage(None, self.stopwatch.elapsed_ms()));
        self.progress.get().timing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_begins_several_times_is_summed_up() {
        let mut progress = StageProgress::default();
        for (stage, at_ms) in [
            (Some(RenderStage::Read), 1.0),
            (Some(RenderStage::Decode), 3.0),
            (Some(RenderStage::Decode), 7.0),
            (Some(RenderStage::Encode), 15.0),
            (Some(RenderStage::Decode), 31.0),
            (None, 63.0),
        ] {
            progress = progress.switch_stage(stage, at_ms);
        }
        let found: Vec<_> = progress.timing.stages().collect();
        let expected = [("queue", 0.0), ("read", 2.0), ("decode", 44.0), ("encode", 16.0)];
        assert_eq!(found, expected);
        assert_eq!(
            progress.switch_stage(None, 99.0).timing,
            progress.timing,
            "nothing runs any more"
        );
    }

    #[test]
    fn the_clock_gives_every_stage_that_began_and_keeps_the_time_in_the_queue() {
        let clock = StageClock::start(2.5, Some(1.5));
        clock.begin(RenderStage::Read);
        clock.begin(RenderStage::Blend);
        let timing = clock.finish();
        let names: Vec<_> = timing.stages().map(|(name, _)| name).collect();
        assert_eq!(names, ["queue", "read", "blend"]);
        assert_eq!(timing.queue_ms.to_bits(), 2.5f64.to_bits());
        assert!(timing.read_ms >= Some(1.5), "reading on a worker adds to it");
        assert!(timing.stages().all(|(_, ms)| ms >= 0.0));
    }
}
