//! The budget of encoders that take many times longer than JPEG's: few at a time, behind a bounded queue.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::runtime::compute::QueueFull;

/// The encoders and the queue for them.
pub(super) struct SlowEncoders {
    encoders: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// The admission of a render that needs a slow encoder.
pub(super) enum EncoderAdmission {
    /// An encoder, until the permit is dropped.
    Encoder(OwnedSemaphorePermit),
    /// A place in the queue.
    Queued(QueuePlace),
}

/// A place in the queue for an encoder, freed when it is dropped.
pub(super) struct QueuePlace {
    encoders: Arc<Semaphore>,
    place: OwnedSemaphorePermit,
}

impl SlowEncoders {
    /// Permits `encoders` renders at a time and a queue of `waiting_max`.
    pub(super) fn new(encoders: usize, waiting_max: usize) -> Self {
        // A semaphore has an upper limit, which no queue needs.
        let waiting_max = waiting_max.min(Semaphore::MAX_PERMITS);
        let encoders = Arc::new(Semaphore::new(encoders.max(1)));
        Self { encoders, places: Arc::new(Semaphore::new(waiting_max)) }
    }

    /// Takes a free encoder or a place in the queue; fails if the queue is full.
    pub(super) fn admit(&self) -> Result<EncoderAdmission, QueueFull> {
        // An encoder that becomes free goes to the first in the queue, so a new render overtakes none.
        if let Ok(encoder) = Arc::clone(&self.encoders).try_acquire_owned() {
            return Ok(EncoderAdmission::Encoder(encoder));
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| QueueFull)?;
        Ok(EncoderAdmission::Queued(QueuePlace { encoders: Arc::clone(&self.encoders), place }))
    }
}

impl QueuePlace {
    /// Waits for an encoder, and then frees the place.
    pub(super) async fn encoder(self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        let encoder = self.encoders.acquire_owned().await.ok();
        drop(self.place);
        encoder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoder(admission: Result<EncoderAdmission, QueueFull>) -> OwnedSemaphorePermit {
        match admission.expect("there is room") {
            EncoderAdmission::Encoder(encoder) => encoder,
            EncoderAdmission::Queued(_) => panic!("no encoder is free"),
        }
    }

    fn place(admission: Result<EncoderAdmission, QueueFull>) -> QueuePlace {
        match admission.expect("there is room") {
            EncoderAdmission::Queued(place) => place,
            EncoderAdmission::Encoder(_) => panic!("an encoder is free"),
        }
    }

    #[tokio::test]
    async fn renders_wait_for_an_encoder_and_are_refused_beyond_the_queue() {
        let slow = SlowEncoders::new(1, 2);
        let first = encoder(slow.admit());
        let (second, third) = (place(slow.admit()), place(slow.admit()));
        assert!(slow.admit().is_err(), "two wait already");
        drop(first);
        let second = second.encoder().await.expect("it is free");
        let fourth = place(slow.admit());
        assert!(slow.admit().is_err(), "the place of the second is taken again");
        // A render that no request waits for leaves the queue.
        drop(third);
        let fifth = place(slow.admit());
        drop((second, fourth, fifth));
        drop(encoder(slow.admit()));
    }

    #[test]
    fn a_queue_of_none_still_has_its_encoders() {
        let slow = SlowEncoders::new(0, 0);
        let only = encoder(slow.admit());
        assert!(slow.admit().is_err());
        drop(only);
        drop(encoder(slow.admit()));
    }
}
