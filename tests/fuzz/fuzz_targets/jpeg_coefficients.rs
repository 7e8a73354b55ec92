//! Reads the coefficients of arbitrary files, changes some and writes them.
//!
//! Coefficients that were read are written and read again as they are, as a baseline and as a progressive file, which
//! libjpeg-turbo decodes to the same pixels. Only blocks whose samples change are changed.

#![no_main]

use jpeg::codec::{DecodeScale, decode};
use jpeg::coefficients::{CoefficientError, CoefficientLimits, Coefficients};
use jpeg::dct::Dct;
use jpeg::encoder::EncodeEffort;
use jpeg_cases::{Case, LIMITS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::read(data) else { return };
    let limits =
        CoefficientLimits { header: LIMITS, pixels_max: 1 << 17, should_continue: &|| true };
    let Ok(before) = Coefficients::read(&case.jpeg, &limits) else { return };
    check_written(&before, &limits);

    let rect = case.rect(before.size());
    let mut after = before.clone();
    let mut nothing = after.clone();
    match nothing.repaint(rect, Dct::detect(), &limits, &mut |_| ()) {
        Ok(()) => assert!(nothing == before, "samples that stay change no block"),
        // A sampling or coefficients that cannot be painted on.
        Err(error) => {
            assert!(matches!(error, CoefficientError::Sampling | CoefficientError::Range));
            return;
        }
    }
    let [value, step, ..] = case.spare;
    let painted = after.repaint(rect, Dct::detect(), &limits, &mut |samples| {
        for sample in samples.grids[0].data.iter_mut().step_by(1 + usize::from(step)) {
            *sample = value;
        }
    });
    assert_eq!(painted, Ok(()));
    for (before, after) in before.grids().iter().zip(after.grids()).skip(1) {
        assert!(before == after, "only the first component was painted");
    }
    check_written(&after, &limits);
});

/// Both kinds of files hold the coefficients and look alike.
fn check_written(coefficients: &Coefficients, limits: &CoefficientLimits<'_>) {
    let files = [EncodeEffort::Fast, EncodeEffort::Small].map(|effort| coefficients.write(effort));
    for file in &files {
        assert!(Coefficients::read(file, limits).as_ref() == Ok(coefficients));
    }
    let [baseline, progressive] = files.map(|file| decode(&file, DecodeScale::FULL));
    assert!(baseline == progressive, "the files differ");
}
