//! Reads the inputs of a render from the store, before the render occupies a worker.
//!
//! A bucket answers after a tenth of a second, and a worker that waited for it would idle. So a request reads
//! first, on a thread that may block, and queues for a worker with the bytes. A worker reads only in rare cases:
//! if derived files are missing or damaged, and if the standard set has to be made.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::MediaState;
use super::original::{IndexedPicture, JpegHead, OpenOriginal, OriginalError, StandardSet};
use super::plan::RenditionPlan;
use super::recipes::StandardRecipes;
use super::render_error::RenderError;
use crate::runtime::fair_queue::{
    FairPermit, FairSemaphore, QueueFull, QueuePlaces, RequestClient,
};
use crate::runtime::telemetry;
use imaging::{DirectPlan, IndexedSource, Orientation};
use jpeg::scan::{ByteRanges, ScanError};

/// The number of reads of the store at a time. Each occupies a thread that waits.
const READS_AT_A_TIME: usize = 64;
/// The number of reads of the store at a time for anonymous callers.
const ANONYMOUS_READS_AT_A_TIME: usize = 48;
/// The number of reads that may wait, for all clients.
const READS_WAITING_MAX: usize = 1024;
/// The divisor of `media.memory_bytes` that gives the memory for bytes that were read and wait for a worker.
const READ_MEMORY_PART: u64 = 4;
/// The number of quarters of this memory for anonymous callers.
const ANONYMOUS_MEMORY_QUARTERS: u64 = 3;
/// The unit of this memory, in bytes.
const MEMORY_UNIT: u64 = 64 << 10;

/// The inputs of a render.
pub(super) struct RenderInputs {
    pub(super) original: OpenOriginal,
    pub(super) head: JpegHead,
    pub(super) source: RenderSourceBytes,
}

/// The bytes from which a rendition is made.
pub(super) enum RenderSourceBytes {
    /// No bytes: the original's own picture data is sent from the store.
    Unchanged,
    /// The standard set, which has the rendition or its base.
    StandardSet(StandardSet),
    /// No bytes: the standard set has to be made first.
    MissingSet,
    /// The visible parts of the picture.
    Parts { picture: IndexedPicture, direct: DirectPlan, bytes: ByteRanges<'static> },
    /// The whole file, of the original or its working copy.
    Whole { picture: Option<IndexedPicture>, jpeg: Vec<u8> },
}

/// A render from parts of a picture.
struct PlannedParts {
    direct: DirectPlan,
    /// The ranges of the picture's file that the parts need.
    ranges: Vec<Range<u64>>,
}

impl MediaState {
    /// Reads the inputs of `plan`; `None` if a worker has to rebuild derived files first.
    pub(super) fn read_ahead(
        &self,
        plan: &RenditionPlan,
    ) -> Result<Option<RenderInputs>, RenderError> {
        let source = &plan.source;
        let read = match self.originals.open_derived(source.blob, source.length)? {
            Some(original) => self.read_inputs(plan, original),
            None => return Ok(None),
        };
        match read {
            Err(RenderError::Original(cause)) if cause.is_derived() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Reads the inputs of `plan` from its `original`.
    pub(super) fn read_inputs(
        &self,
        plan: &RenditionPlan,
        original: OpenOriginal,
    ) -> Result<RenderInputs, RenderError> {
        let head = original.head()?;
        let source = if plan.output.is_none() {
            RenderSourceBytes::Unchanged
        } else if plan.standard.is_some() {
            // Always from the set, so that the bytes do not depend on the order of requests.
            let recipes = StandardRecipes::for_picture(&plan.source, &self.settings);
            let set = self.complete_standard_set(&plan.source, &recipes)?;
            set.map_or(RenderSourceBytes::MissingSet, RenderSourceBytes::StandardSet)
        } else {
            self.read_picture(plan, &original, &head)?
        };
        Ok(RenderInputs { original, head, source })
    }

    /// Reads the parts of the original that `plan` shows, or the whole file.
    pub(super) fn read_picture(
        &self,
        plan: &RenditionPlan,
        original: &OpenOriginal,
        head: &JpegHead,
    ) -> Result<RenderSourceBytes, RenderError> {
        let picture = original.picture(head)?;
        if let Some(picture) = picture {
            if let Some(PlannedParts { direct, ranges }) = self.plan_parts(plan, head, &picture)? {
                let bytes = picture.read(&ranges)?;
                return Ok(RenderSourceBytes::Parts { picture, direct, bytes });
            }
            let jpeg = read_whole(original, Some(&picture))?;
            return Ok(RenderSourceBytes::Whole { picture: Some(picture), jpeg });
        }
        Ok(RenderSourceBytes::Whole { picture: None, jpeg: read_whole(original, None)? })
    }

    /// Plans a render from parts of the picture; `None` if it needs the whole picture.
    fn plan_parts(
        &self,
        plan: &RenditionPlan,
        head: &JpegHead,
        picture: &IndexedPicture,
    ) -> Result<Option<PlannedParts>, RenderError> {
        let Some(output) = plan.output else { return Ok(None) };
        let colour = picture.colour_segments(head);
        let indexed = indexed_source(plan, picture, &colour);
        let Some(direct) = DirectPlan::plan(&indexed, &plan.steps, output) else {
            return Ok(None);
        };
        match direct.byte_ranges(&indexed, &self.settings.watermark) {
            Ok(ranges) => Ok(Some(PlannedParts { direct, ranges })),
            Err(error) => give_up_parts(picture, error).map(|()| None),
        }
    }
}

/// Returns the picture as a direct render reads it. `colour` contains its colour segments.
pub(super) fn indexed_source<'a>(
    plan: &RenditionPlan,
    picture: &'a IndexedPicture,
    colour: &'a [u8],
) -> IndexedSource<'a> {
    IndexedSource {
        scan: picture.scan(),
        index: picture.index(),
        colour,
        orientation: Orientation::from_tag(u32::from(plan.source.orientation)),
    }
}

/// A whole picture with its head and its index, for the decoder.
pub(super) struct WholePicture {
    pub(super) head: JpegHead,
    pub(super) picture: Option<IndexedPicture>,
    pub(super) jpeg: Vec<u8>,
}

impl WholePicture {
    /// Reads the picture of `original`.
    pub(super) fn read(original: &OpenOriginal) -> Result<Self, OriginalError> {
        let head = original.head()?;
        let picture = original.picture(&head)?;
        let jpeg = read_whole(original, picture.as_ref())?;
        Ok(Self { head, picture, jpeg })
    }
}

/// Reads the whole file of a picture, from its working copy if it has one.
pub(super) fn read_whole(
    original: &OpenOriginal,
    picture: Option<&IndexedPicture>,
) -> Result<Vec<u8>, OriginalError> {
    match picture {
        // The working copy is decoded with less memory than a progressive original.
        Some(picture) if !picture.is_original() => picture.read_whole(),
        Some(_) | None => original.read_whole(),
    }
}

/// Decides whether to decode the whole picture if its parts cannot be decoded: `Ok` if the whole can be.
pub(super) fn give_up_parts(
    picture: &IndexedPicture,
    error: ScanError,
) -> Result<(), RenderError> {
    // No request waits for the result any more.
    if matches!(error, ScanError::Stopped) {
        return Err(RenderError::Abandoned);
    }
    // The bytes passed their checksums, so the index is wrong.
    if matches!(error, ScanError::Damaged { .. } | ScanError::Bytes) {
        return Err(picture.index_mismatch(error).into());
    }
    telemetry::count_abandoned_path(error.as_str());
    tracing::debug!(original = %picture.original(), "decoding the whole picture: {error}");
    Ok(())
}

/// The limits on reads of the store: on running reads, on waiting reads, and on the bytes that they hold.
///
/// Bytes are held until a worker has used them, and anonymous renders have the lowest priority. So anonymous reads
/// may use only a part of the turns and of the memory. The rest is reserved for callers with credentials.
pub(super) struct StoreReads {
    all: ReadLimits,
    anonymous: ReadLimits,
}

struct ReadLimits {
    turns: FairSemaphore,
    memory: Arc<Semaphore>,
    memory_units: u32,
}

/// The permit of one read of the store.
pub(super) struct ReadPermit {
    /// The turn to read, which ends before the render ends.
    turn: ReadTurn,
    memory: ReadMemory,
}

struct ReadTurn {
    _anonymous: Option<FairPermit>,
    _all: FairPermit,
}

/// The memory of the bytes that were read.
pub(super) struct ReadMemory {
    _anonymous: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl StoreReads {
    /// Limits reads to a part of `memory_bytes`, and the waiting reads of one client to `client_share` of all.
    pub(super) fn new(memory_bytes: u64, client_share: f32) -> Self {
        let places = QueuePlaces::new(READS_WAITING_MAX, client_share);
        let memory_bytes = memory_bytes / READ_MEMORY_PART;
        Self {
            all: ReadLimits::new(READS_AT_A_TIME, places, memory_bytes),
            anonymous: ReadLimits::new(
                ANONYMOUS_READS_AT_A_TIME,
                places,
                memory_bytes / 4 * ANONYMOUS_MEMORY_QUARTERS,
            ),
        }
    }

    /// Waits until `client` may read `bytes`. A read that exceeds the whole memory runs alone.
    pub(super) async fn admit(
        &self,
        client: Option<RequestClient>,
        bytes: u64,
    ) -> Result<ReadPermit, QueueFull> {
        let is_anonymous = matches!(client, Some(RequestClient::Network(_)));
        let anonymous = is_anonymous.then_some(&self.anonymous);
        let anonymous_turn = match anonymous {
            Some(limits) => Some(limits.turns.acquire(client).await?),
            None => None,
        };
        let turn =
            ReadTurn { _anonymous: anonymous_turn, _all: self.all.turns.acquire(client).await? };
        let anonymous_memory = match anonymous {
            Some(limits) => Some(limits.reserve(bytes).await),
            None => None,
        };
        let memory =
            ReadMemory { _anonymous: anonymous_memory, _all: self.all.reserve(bytes).await };
        Ok(ReadPermit { turn, memory })
    }
}

impl ReadLimits {
    fn new(turns: usize, places: QueuePlaces, memory_bytes: u64) -> Self {
        let memory_units = memory_units(memory_bytes).max(1);
        Self {
            turns: FairSemaphore::new(turns, places),
            memory: Arc::new(Semaphore::new(memory_units as usize)),
            memory_units,
        }
    }

    /// Waits for memory for `bytes`, or for the whole memory if `bytes` exceed it.
    async fn reserve(&self, bytes: u64) -> OwnedSemaphorePermit {
        let units = memory_units(bytes).min(self.memory_units);
        let memory = Arc::clone(&self.memory).acquire_many_owned(units).await;
        memory.expect("the semaphore is never closed")
    }
}

impl ReadPermit {
    /// Ends the turn to read, and returns the memory of the bytes that were read.
    pub(super) fn end_turn(self) -> ReadMemory {
        drop(self.turn);
        self.memory
    }
}

fn memory_units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MEMORY_UNIT)).unwrap_or(u32::MAX).min(1 << 28)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use model::account::UserId;

    /// Polls an admission of `bytes` once; `None` if it has to wait.
    fn admit(reads: &StoreReads, client: RequestClient, bytes: u64) -> Option<ReadPermit> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(reads.admit(Some(client), bytes)).poll(&mut context) {
            Poll::Ready(permit) => Some(permit.expect("a place")),
            Poll::Pending => None,
        }
    }

    #[test]
    fn anonymous_reads_leave_turns_and_memory_to_callers_with_credentials() {
        let stranger = RequestClient::Network(IpAddr::from([192, 0, 2, 1]));
        let customer = RequestClient::User(UserId(1));
        let reads = StoreReads::new(64 << 20, 1.0);
        let turns: Vec<ReadPermit> =
            (0..ANONYMOUS_READS_AT_A_TIME).map_while(|_| admit(&reads, stranger, 1)).collect();
        assert_eq!(turns.len(), ANONYMOUS_READS_AT_A_TIME);
        assert!(admit(&reads, stranger, 1).is_none());
        assert!(admit(&reads, customer, 1).is_some());
        drop(turns);
        // 12 of 16 MiB, held beyond the turns.
        let held: Vec<ReadMemory> = (0..3)
            .filter_map(|_| admit(&reads, stranger, 4 << 20))
            .map(ReadPermit::end_turn)
            .collect();
        assert_eq!(held.len(), 3);
        assert!(admit(&reads, stranger, 1 << 20).is_none());
        assert!(admit(&reads, customer, 4 << 20).is_some());
    }
}
