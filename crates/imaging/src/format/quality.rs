//! Maps the quality scale of JPEG, which all formats share, to the settings of other encoders.

/// Steps between the entries of a table.
const STEP: u8 = 10;

/// Looks up the setting of an encoder for a quality on libjpeg's scale.
///
/// `table` has the settings for 0, 10, ... 100; settings between them are interpolated. Qualities above 100 count
/// as 100.
pub(super) fn interpolate(quality: u8, table: &[f32; 11]) -> f32 {
    let quality = quality.min(100);
    let below = usize::from(quality / STEP);
    let share = f32::from(quality % STEP);
    let from = table[below];
    let to = table[(below + 1).min(10)];
    from + (to - from) * share / f32::from(STEP)
}

#[cfg(test)]
mod tests {
    use super::interpolate;

    #[test]
    fn settings_between_two_entries_are_in_proportion() {
        let table = std::array::from_fn(|at| if at < 5 { 60.0 } else { 40.0 });
        let found = [0, 40, 41, 45, 50, 100, 255].map(|quality| interpolate(quality, &table));
        assert_eq!(found, [60.0, 60.0, 58.0, 50.0, 40.0, 40.0, 40.0]);
    }
}
