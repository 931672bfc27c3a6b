//! The rows of a phase's series: each is a full second from the start of counting, for all threads, regardless of when the
//! watcher woke up.

use crate::runner::phase_data::{Tallies, Tally};
use crate::workload::OpKind;
use kvdyno_measure::{Histogram, SeriesRow};
use std::collections::VecDeque;

/// The length of a row, nanoseconds.
pub(crate) const ROW_NS: u64 = 1_000_000_000;
/// A shorter rest after the last full second is added to that second's row: the last batches of a phase that ends by time
/// finish slightly after its end, and would otherwise form a row of some microseconds.
const LEAST_LAST_NS: u64 = 50_000_000;

/// The state of the process at the end of a row, and its usage since the end of the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
    /// CPU time, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Bytes written to storage.
    pub written_bytes: Option<u64>,
    /// Allocated bytes of the database.
    pub disk_bytes: Option<u64>,
    /// Resident memory that belongs to no file, bytes.
    pub rss_anonymous_bytes: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
}

/// A row that is not complete yet.
#[derive(Default)]
struct Open {
    tallies: Tallies,
    sample: Sample,
}

/// The rows so far.
#[derive(Default)]
pub(super) struct Rows {
    closed: Vec<SeriesRow>,
    open: VecDeque<Open>,
}

impl Rows {
    fn open(&mut self, row: u64) -> &mut Open {
        let place = (row as usize).saturating_sub(self.closed.len());
        while self.open.len() <= place {
            self.open.push_back(Open::default());
        }
        &mut self.open[place]
    }

    /// Adds the tallies of a thread in a row.
    pub(super) fn add(&mut self, row: u64, tallies: &Tallies) {
        self.open(row).add(tallies);
    }

    /// Adds the sample of the process at the end of a row.
    pub(super) fn sample(&mut self, row: u64, sample: Sample) {
        let open = self.open(row);
        open.sample = open.sample.and_then(sample);
    }

    /// The row so far, with length `length_ns`, and the service times of all its kinds.
    pub(super) fn seen(&mut self, row: u64, length_ns: u64) -> (SeriesRow, Histogram) {
        self.open(row).row(row, length_ns)
    }

    /// Service times of all kinds in this row and later ones.
    pub(super) fn service_from(&self, row: u64) -> Histogram {
        let mut all = Histogram::empty();
        let open = self.open.iter().skip((row as usize).saturating_sub(self.closed.len()));
        open.flat_map(|open| open.tallies.iter().flatten()).for_each(|tally| all.merge(&tally.service));
        all
    }

    /// Completes the rows before this one.
    pub(super) fn close_before(&mut self, row: u64) {
        while (self.closed.len() as u64) < row && !self.open.is_empty() {
            self.close_first(ROW_NS);
        }
    }

    fn close_first(&mut self, length_ns: u64) {
        let row = self.closed.len() as u64;
        if let Some(open) = self.open.pop_front() {
            self.closed.push(open.row(row, length_ns).0);
        }
    }

    /// The last row of a phase that ended after `end_ns`, and its length; none: it ended before counting began.
    pub(super) fn last(end_ns: u64) -> Option<(u64, u64)> {
        let (whole, left_ns) = (end_ns / ROW_NS, end_ns % ROW_NS);
        match whole {
            0 => (left_ns > 0).then_some((0, left_ns)),
            _ if left_ns < LEAST_LAST_NS => Some((whole - 1, ROW_NS + left_ns)),
            _ => Some((whole, left_ns)),
        }
    }

    /// Merges everything after the last row into it.
    pub(super) fn end(&mut self, last: u64) {
        self.open(last);
        let keep = (last as usize + 1).saturating_sub(self.closed.len()).max(1);
        while self.open.len() > keep {
            let (Some(after), Some(before)) = (self.open.pop_back(), self.open.back_mut()) else { return };
            before.add(&after.tallies);
            before.sample = before.sample.and_then(after.sample);
        }
    }

    /// All rows; the last one has its own length.
    pub(super) fn into_series(mut self, last_ns: u64) -> Vec<SeriesRow> {
        while self.open.len() > 1 {
            self.close_first(ROW_NS);
        }
        self.close_first(last_ns);
        self.closed
    }
}

impl Open {
    fn add(&mut self, tallies: &Tallies) {
        for (own, other) in self.tallies.iter_mut().zip(tallies) {
            if let Some(other) = other {
                own.get_or_insert_with(Tally::new).merge(other);
            }
        }
    }

    fn row(&self, row: u64, length_ns: u64) -> (SeriesRow, Histogram) {
        let tally = |kind: &OpKind| self.tallies[*kind as usize].as_ref().filter(|tally| tally.ops > 0);
        let mut all = Histogram::empty();
        let (mut ops, mut misses) = (0, 0);
        for tally in OpKind::ALL.iter().filter_map(tally) {
            all.merge(&tally.service);
            (ops, misses) = (ops + tally.ops, misses + tally.misses);
        }
        let times = |of: fn(&Tally) -> Option<&Histogram>| {
            let kinds = OpKind::ALL.iter();
            kinds.filter_map(|kind| Some((kind.name().to_string(), of(tally(kind)?)?.packed()))).collect()
        };
        let series_row = SeriesRow {
            at_ns: row * ROW_NS + length_ns,
            interval_ns: length_ns,
            ops,
            misses,
            p50_ns: all.quantile_if_enough(1, 2),
            p99_ns: all.quantile_if_enough(99, 100),
            max_ns: all.max_ns(),
            kinds: times(|tally| Some(&tally.service)),
            wait: times(|tally| Some(&tally.arrived.as_ref()?.wait)),
            response: times(|tally| Some(&tally.arrived.as_ref()?.response)),
            rss_bytes: self.sample.rss_bytes,
            cpu_ns: self.sample.cpu_ns,
            written_bytes: self.sample.written_bytes,
            disk_allocated_bytes: self.sample.disk_bytes,
            rss_anonymous_bytes: self.sample.rss_anonymous_bytes,
            open_files: self.sample.open_files,
        };
        (series_row, all)
    }
}

impl Sample {
    /// Merges this sample with a later one.
    fn and_then(self, later: Sample) -> Sample {
        let sum = |before: Option<u64>, more: Option<u64>| match (before, more) {
            (Some(before), Some(more)) => Some(before.saturating_add(more)),
            (known, None) | (None, known) => known,
        };
        Sample {
            rss_bytes: later.rss_bytes.or(self.rss_bytes),
            cpu_ns: sum(self.cpu_ns, later.cpu_ns),
            written_bytes: sum(self.written_bytes, later.written_bytes),
            disk_bytes: later.disk_bytes.or(self.disk_bytes),
            rss_anonymous_bytes: later.rss_anonymous_bytes.or(self.rss_anonymous_bytes),
            open_files: later.open_files.or(self.open_files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::phase_data::{Published, tallies_for};

    fn ended(ops: u64) -> Tallies {
        let mut tallies = tallies_for([OpKind::Get].into_iter());
        if let Some(tally) = &mut tallies[OpKind::Get as usize] {
            tally.ops = ops;
            (0..ops).for_each(|_| tally.service.record(1_000));
        }
        tallies
    }

    fn shape(rows: &[SeriesRow]) -> Vec<(u64, u64, u64)> {
        rows.iter().map(|row| (row.at_ns / 1_000_000, row.interval_ns / 1_000_000, row.ops)).collect()
    }

    /// The series of these published rows, for a phase that ended after this many milliseconds.
    fn series(published: &[(u64, u64)], end_ms: u64) -> Vec<SeriesRow> {
        let mut rows = Rows::default();
        published.iter().for_each(|(row, ops)| rows.add(*row, &ended(*ops)));
        let Some((last, length_ns)) = Rows::last(end_ms * 1_000_000) else { return Vec::new() };
        rows.end(last);
        rows.into_series(length_ns)
    }

    #[test]
    fn rows_end_at_full_seconds_and_the_last_one_with_the_phase() {
        let found = series(&[(0, 5), (1, 6), (2, 7)], 2_400);
        assert_eq!(shape(&found), [(1_000, 1_000, 5), (2_000, 1_000, 6), (2_400, 400, 7)]);
        assert_eq!(shape(&series(&[(0, 5)], 300)), [(300, 300, 5)]);
        assert_eq!(shape(&series(&[], 0)), []);
    }

    #[test]
    fn a_short_rest_after_the_last_second_is_not_a_separate_row() {
        // The threads of a phase of two seconds end with their current batch.
        let found = series(&[(0, 5), (1, 6), (2, 1)], 2_003);
        assert_eq!(shape(&found), [(1_000, 1_000, 5), (2_000 + 3, 1_003, 7)]);
        // A phase that ended exactly at the end of the second.
        assert_eq!(shape(&series(&[(0, 5), (1, 6)], 2_000)), [(1_000, 1_000, 5), (2_000, 1_000, 6)]);
    }

    #[test]
    fn a_batch_that_spans_rows_counts_in_the_last_and_leaves_the_others_empty() {
        let found = series(&[(0, 5), (3, 64), (4, 2)], 4_500);
        let expected =
            [(1_000, 1_000, 5), (2_000, 1_000, 0), (3_000, 1_000, 0), (4_000, 1_000, 64), (4_500, 500, 2)];
        assert_eq!(shape(&found), expected);
        assert_eq!((found[1].p50_ns, found[1].kinds.len()), (None, 0));
    }

    #[test]
    fn a_late_watcher_finds_separate_rows() {
        let mut one = Published::new(&[OpKind::Get]);
        let mut rows = Rows::default();
        // Three rows pass before the watcher reads them, the second of them without an op.
        one.publish(&ended(10), 1);
        one.publish(&ended(0), 2);
        one.publish(&ended(30), 3);
        assert_eq!(one.take(|row, tallies| rows.add(row, tallies)), 3);
        // Another thread was in one batch the whole time; its earlier ops are in the first row.
        let mut other = Published::new(&[OpKind::Get]);
        assert_eq!(other.take(|row, tallies| rows.add(row, tallies)), 0);
        rows.close_before(0);
        other.publish(&ended(1), 3);
        other.publish(&ended(2), u64::MAX);
        one.publish(&ended(40), u64::MAX);
        assert_eq!(one.take(|row, tallies| rows.add(row, tallies)), u64::MAX);
        assert_eq!(other.take(|row, tallies| rows.add(row, tallies)), u64::MAX);
        assert_eq!(other.take(|_, _| panic!("it was taken")), u64::MAX);
        rows.close_before(2);
        rows.end(3);
        let found = rows.into_series(500_000_000);
        assert_eq!(
            shape(&found),
            [(1_000, 1_000, 11), (2_000, 1_000, 0), (3_000, 1_000, 30), (3_500, 500, 42)]
        );
        let times: u64 = found.iter().flat_map(|row| &row.kinds).map(|(_, times)| times.count()).sum();
        assert_eq!(times, 83);
    }

    #[test]
    fn samples_of_the_rest_are_added_to_the_last_second() {
        let mut rows = Rows::default();
        let sample = |cpu_ns, rss_bytes| Sample { cpu_ns, rss_bytes, ..Sample::default() };
        rows.sample(0, sample(Some(7), Some(100)));
        rows.sample(1, sample(Some(1), Some(90)));
        let (last, length_ns) = Rows::last(1_001_000_000).unwrap();
        rows.end(last);
        let found = rows.into_series(length_ns);
        assert_eq!((found.len(), found[0].cpu_ns, found[0].rss_bytes), (1, Some(8), Some(90)));
    }
}
