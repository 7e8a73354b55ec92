//! The most memory that the process had, as Linux tells it in `/proc` (`proc(5)`).

use std::fs;

/// Lets the peak start anew from what the process has now; false where the system does not.
///
/// Linux 4.0: a 5 written to `clear_refs` resets the high-water mark.
pub(super) fn reset() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The most resident memory since the last [`restart`], bytes; `None` where it is not told.
pub(super) fn bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
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
