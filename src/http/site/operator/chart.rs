//! Computes the scale of a chart and the positions of its columns. Templates write the SVG, so that a chart needs
//! neither a script nor a library.

use api::operation::DownloadRow;
use jiff::civil::Date;
use serde::Serialize;

/// The width of a column, and of the gap on either side of it, in units of the chart.
const COLUMN_WIDTH: u64 = 8;
const GAP: u64 = 1;
/// The height of the chart, in its units.
const HEIGHT: u64 = 1000;

/// A chart with a column for each day. The template stretches it to the width of the page.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct DayChart {
    width: u64,
    height: u64,
    /// The number of downloads at the upper edge, which is a round number.
    top: u64,
    columns: Vec<DayColumn>,
    first: Date,
    last: Date,
    /// The day with the most downloads; the first of several.
    best: Date,
    most: u64,
}

/// The column of a day.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DayColumn {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
    day: Date,
    downloads: u64,
}

impl DayChart {
    /// Builds the chart of a statistic by day; `None` if there are no days or no downloads.
    pub(super) fn from_rows(rows: &[DownloadRow]) -> Option<Self> {
        let first = rows.first()?.day?;
        let last = rows.last()?.day?;
        let most = rows.iter().map(|row| row.counts.downloads).max().filter(|most| *most > 0)?;
        let best = rows.iter().find(|row| row.counts.downloads == most)?.day?;
        let top = round_up(most);
        let mut columns: Vec<DayColumn> = Vec::new();
        for (at, row) in (0_u64..).zip(rows) {
            let height = share(row.counts.downloads, top, HEIGHT);
            columns.push(DayColumn {
                x: at * (COLUMN_WIDTH + 2 * GAP) + GAP,
                y: HEIGHT - height,
                width: COLUMN_WIDTH,
                height,
                day: row.day?,
                downloads: row.counts.downloads,
            });
        }
        let width = columns.last().map_or(0, |column| column.x + COLUMN_WIDTH + GAP);
        Some(Self { width, height: HEIGHT, top, columns, first, last, best, most })
    }
}

/// Rounds up to a number of a scale: 1, 2 or 5, followed by zeros.
fn round_up(most: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [1, 2, 5] {
            let round = unit.saturating_mul(step);
            if round >= most {
                return round;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Scales `part` so that `whole` becomes `units`, rounded down, at most `units`. A part that is not 0 becomes at
/// least 1, so that it is visible.
pub(super) fn share(part: u64, whole: u64, units: u64) -> u64 {
    let share = u128::from(part) * u128::from(units) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(units).min(units).max(part.min(1))
}

#[cfg(test)]
mod tests {
    use api::operation::DownloadCounts;

    use super::*;

    fn row(day: &str, downloads: u64) -> DownloadRow {
        let counts = DownloadCounts { downloads, ..DownloadCounts::default() };
        DownloadRow { day: day.parse().ok(), counts, ..DownloadRow::default() }
    }

    #[test]
    fn each_day_has_a_column_below_a_round_number() {
        let rows = [("2026-11-01", 0), ("2026-11-02", 130), ("2026-11-03", 1)];
        let rows = rows.map(|(day, downloads)| row(day, downloads));
        let chart = DayChart::from_rows(&rows).unwrap();
        assert_eq!((chart.width, chart.top, chart.most), (30, 200, 130));
        let days = [chart.first, chart.last, chart.best].map(|day| day.to_string());
        assert_eq!(days, ["2026-11-01", "2026-11-03", "2026-11-02"]);
        let places: Vec<(u64, u64, u64)> =
            chart.columns.iter().map(|column| (column.x, column.y, column.height)).collect();
        assert_eq!(places, [(1, 1000, 0), (11, 350, 650), (21, 995, 5)]);
    }

    #[test]
    fn without_downloads_there_is_no_chart() {
        assert_eq!(DayChart::from_rows(&[]), None);
        assert_eq!(DayChart::from_rows(&[row("2026-11-01", 0)]), None);
    }

    #[test]
    fn scales_end_with_round_numbers() {
        let check = |most, expected| assert_eq!(round_up(most), expected, "{most}");
        check(1, 1);
        check(2, 2);
        check(3, 5);
        check(5, 5);
        check(6, 10);
        check(501, 1000);
        check(u64::MAX, u64::MAX);
    }

    #[test]
    fn the_smallest_part_can_still_be_seen() {
        assert_eq!(share(0, 10, 100), 0);
        assert_eq!(share(1, 1_000_000, 100), 1);
        assert_eq!(share(5, 10, 100), 50);
        assert_eq!(share(3, 0, 100), 100);
    }
}
