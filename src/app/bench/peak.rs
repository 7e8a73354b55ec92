//! The peak memory of the process, from `/proc` of Linux (`proc(5)`).

use std::fs;

/// Resets the peak to the current memory; returns false if the system does not support that.
///
/// Since Linux 4.0, writing a 5 to `clear_refs` resets the high-water mark.
pub(super) fn reset() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Returns the peak resident memory since the last [`reset`] in bytes, or `None` if the system does not
/// report it.
pub(super) fn bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    // The kernel writes kB and means 1024 bytes (`proc(5)`).
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_in_bytes() {
        let status = "Name:\twirephoto\nVmPeak:\t  999 kB\nVmHWM:\t  104 kB\nVmRSS:\t   88 kB\n";
        assert_eq!(parse(status), Some(104 * 1024));
    }

    #[test]
    fn a_status_without_it_has_none() {
        for status in ["", "VmRSS:\t88 kB\n", "VmHWM:\t 104 MB\n", "VmHWM:\t many kB\n"] {
            assert_eq!(parse(status), None, "{status:?}");
        }
    }
}
