//! Whether a phase was steady: what its rows say.

use kvdyno_load::steady::{Better, Ending, Series, Verdict, Watched, verdict};
use kvdyno_measure::SeriesRow;

/// A row of a shorter time is not judged, nanoseconds.
pub const WHOLE_ROW_NS: u64 = 900_000_000;
/// The direction of each figure: ops/s, p99, and bytes written per op.
const BETTER: [Better; 3] = [Better::Higher, Better::Lower, Better::Lower];

/// How much of each may change while a phase is steady enough to end: percentiles vary more than rates.
const TOLERANCES: [f64; 3] = [0.02, 0.1, 0.1];

/// The figures of a second that must not change. p99 is that of response times, if requests arrive at a rate.
fn figures(row: &SeriesRow) -> [Option<f64>; 3] {
    let p99 = match row.response.is_empty() {
        true => row.p99_ns,
        false => row.response_times().quantile_if_enough(99, 100),
    };
    let written = row.written_bytes.filter(|_| row.ops > 0).map(|bytes| bytes as f64 / row.ops as f64);
    let rate = (row.interval_ns > 0).then(|| row.ops as f64 * 1e9 / row.interval_ns as f64);
    [rate, p99.map(|ns| ns as f64), written]
}

/// The verdict on a phase by its rows of whole seconds; its means are those of ops/s, p99 (nanoseconds) and bytes written per op.
pub fn verdict_of_rows(rows: &[SeriesRow]) -> Verdict {
    let all: Vec<[Option<f64>; 3]> = rows.iter().map(figures).collect();
    let column = |place: usize| all.iter().map(|row| row[place]).collect::<Vec<_>>();
    let columns = [column(0), column(1), column(2)];
    let series: Vec<Series<'_>> =
        columns.iter().zip(BETTER).map(|(values, better)| Series { values, better }).collect();
    verdict(&series, 1.0)
}

/// Watches the rows of a phase that is to end when it is steady.
#[derive(Debug)]
pub struct UntilSteady(Ending);

impl Default for UntilSteady {
    fn default() -> UntilSteady {
        let watched = |place: usize| Watched { better: BETTER[place], tolerance: TOLERANCES[place] };
        UntilSteady(Ending::new(&[watched(0), watched(1), watched(2)]))
    }
}

impl UntilSteady {
    /// Adds the row of the next second. Returns whether the phase may end.
    pub fn observe(&mut self, row: &SeriesRow) -> bool {
        self.0.observe(&figures(row))
    }
}
