//! Tests of pixels.
