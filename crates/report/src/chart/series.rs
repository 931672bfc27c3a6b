//! Time series of a phase, second by second: ops per second, p99, memory, disk, slow intervals and stalls.

use super::lines::{self, Axis, Band, Line, Lines, Point};
use super::scale::Unit;
use super::scene::{LINES_KEPT, LINES_SHOWN, Scene, hidden_note, levels};
use super::{Chart, Scales};
use crate::describe::cell_name;
use crate::figure::time;
use crate::member_faults;
use crate::stalls::{Found, of_record, what};
use kvdyno_core::results::FaultKind;
use kvdyno_core::results::statistics::median;
use kvdyno_core::results::summary::{Cell, PhaseSummary};
use kvdyno_core::results::{FaultRecord, Record};
use kvdyno_measure::SeriesRow;
use kvdyno_measure::text::{counted, listed};

/// An interval is slow when its rate is below this share of the median rate of the run's intervals in the phase.
const SLOW_SHARE: f64 = 0.1;
/// The minimum number of intervals of a series that is drawn.
const FEWEST: usize = 3;
/// The maximum number of points of a line; the intervals of a longer series are merged.
const MOST: usize = 200;

/// An interval, or several merged ones: the mean rate and the maximum of the other figures.
#[derive(Clone, Debug)]
struct Interval {
    end_s: f64,
    ns: u64,
    ops: u64,
    p99_ns: Option<u64>,
    response_p99_ns: Option<u64>,
    rss_bytes: Option<u64>,
    disk_bytes: Option<u64>,
    is_slow: bool,
    /// What is to be told about the stalls that began in it.
    stalls: Vec<String>,
}

impl Interval {
    fn rate(&self) -> f64 {
        if self.ns == 0 { 0.0 } else { self.ops as f64 / (self.ns as f64 / 1e9) }
    }
}

/// A figure over time.
struct Figure {
    title: &'static str,
    axis: &'static str,
    unit: Unit,
    is_log: bool,
    of: fn(&Interval) -> Option<f64>,
}

const FIGURES: [Figure; 5] = [
    Figure {
        title: "ops/s",
        axis: "ops/s; cross: slow, triangle: stall",
        unit: Unit::Rate,
        is_log: false,
        of: |row| Some(row.rate()),
    },
    Figure {
        title: "p99",
        axis: "p99 of the service time",
        unit: Unit::Time,
        is_log: true,
        of: |row| row.p99_ns.map(|ns| ns as f64),
    },
    Figure {
        title: "response p99",
        axis: "p99 of the response time",
        unit: Unit::Time,
        is_log: true,
        of: |row| row.response_p99_ns.map(|ns| ns as f64),
    },
    Figure {
        title: "memory",
        axis: "resident memory",
        unit: Unit::Bytes,
        is_log: false,
        of: |row| row.rss_bytes.map(|bytes| bytes as f64),
    },
    Figure {
        title: "disk",
        axis: "allocated bytes",
        unit: Unit::Bytes,
        is_log: false,
        of: |row| row.disk_bytes.map(|bytes| bytes as f64),
    },
];

/// The series of a cell: that of its median run.
struct Series<'a> {
    cell: &'a Cell,
    repetition: u32,
    rows: Vec<Interval>,
    slow: usize,
    stalls: usize,
    faults: Vec<FaultRecord>,
}

/// A chart for each figure and durability level of the phase; none for a phase that is too short.
pub(crate) fn series(scene: &Scene, phase: &PhaseSummary, scales: Scales) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (level, cells) in levels(phase) {
        let all = cells.iter().filter_map(|cell| of_cell(scene, phase, cell));
        let (long, short): (Vec<Series>, Vec<Series>) = all.partition(|series| series.rows.len() >= FEWEST);
        for figure in &FIGURES {
            let of = Of { level: &level, is_in_rounds: phase.rounds.is_some() };
            charts.extend(draw(scene, figure, of, &long, short.len(), scales));
        }
    }
    charts
}

/// The source of a chart's series.
struct Of<'a> {
    level: &'a str,
    is_in_rounds: bool,
}

/// A chart of the series that are long enough; `None` if each has a single point.
fn draw(
    scene: &Scene,
    figure: &Figure,
    of: Of,
    all: &[Series],
    short: usize,
    scales: Scales,
) -> Option<Chart> {
    let known = |series: &Series| series.rows.iter().filter(|row| (figure.of)(row).is_some()).count();
    all.iter().find(|series| known(series) > 1)?;
    let is_rate = figure.unit == Unit::Rate;
    let line = |(place, series): (usize, &Series)| {
        let name = cell_name(series.cell);
        let point = |row: &Interval| Point {
            x: row.end_s,
            y: (figure.of)(row),
            interval: None,
            is_marked: false,
            is_slow: is_rate && row.is_slow,
            stalls: if is_rate { row.stalls.join("; ") } else { String::new() },
        };
        let mut points: Vec<Point> = series.rows.iter().map(point).collect();
        // A few staggered markers, so that crossing lines can be distinguished.
        let every = (points.len() / 4).max(1);
        points.iter_mut().skip(place % every).step_by(every).for_each(|point| point.is_marked = true);
        let of = format!("run {} of {}", series.repetition, series.cell.runs.len());
        let slow = counted(series.slow as u64, "slow interval", "slow intervals");
        let stalls = counted(series.stalls as u64, "stall", "stalls");
        let tip = format!("{name}: {} per second, {of}, {slow}, {stalls}", figure.title);
        Line {
            engine: name,
            style: scene.style(series.cell),
            points,
            curve: Vec::new(),
            is_extra: place >= LINES_SHOWN,
            tip,
        }
    };
    let drawn = Lines {
        title: format!("{} over time, level {}", figure.title, of.level),
        about: if is_rate { about(all, short) } else { String::new() },
        x: Axis {
            title: if of.is_in_rounds {
                "seconds of the phase, over all rounds"
            } else {
                "seconds of the phase"
            },
            unit: Unit::Seconds,
            is_log: false,
        },
        y: Axis { title: figure.axis, unit: figure.unit, is_log: figure.is_log },
        lines: all.iter().take(LINES_KEPT).enumerate().map(line).collect(),
        of: all.len(),
        has_switch: true,
        bands: all
            .iter()
            .find(|series| !series.faults.is_empty())
            .map(|series| bands(&series.faults))
            .unwrap_or_default(),
    };
    lines::draw(&drawn, scales)
}

/// The explanation of a chart: the runs drawn, and the engines that were slow or stalled.
fn about(all: &[Series], short: usize) -> String {
    let names = |count: fn(&Series) -> usize, none: &str| {
        let found = all.iter().filter(|series| count(series) > 0);
        let found: Vec<String> =
            found.map(|series| format!("{} {}", cell_name(series.cell), count(series))).collect();
        if found.is_empty() { none.to_string() } else { listed(&found, "and") }
    };
    let short = match short {
        0 => String::new(),
        short => format!(
            " {} done in fewer than {FEWEST} intervals.",
            counted(short as u64, "engine was", "engines were")
        ),
    };
    format!(
        "Each engine's run with the median rate. A cross marks a slow interval, below a tenth of the run's median rate: \
         {}. A triangle marks an interval in which a stall began, one of the longest ops: {}.{short}{}",
        names(|series| series.slow, "none"),
        names(|series| series.stalls, "none"),
        hidden_note(all.len())
    ) + of_faults(all).as_str()
}

/// What the bands are; empty without faults.
fn of_faults(all: &[Series]) -> String {
    let Some(series) = all.iter().find(|series| !series.faults.is_empty()) else { return String::new() };
    let name = cell_name(series.cell);
    let told: Vec<String> = series.faults.iter().map(member_faults::words).collect();
    format!(
        " A band is a fault, from its begin until the member was started or continued, its link restored, or its disk as fast as before; of {name}: {}.",
        told.join(". ")
    )
}

fn of_cell<'a>(scene: &Scene, phase: &PhaseSummary, cell: &'a Cell) -> Option<Series<'a>> {
    let mut runs: Vec<_> = scene.counted(cell).collect();
    runs.sort_by(|(one, _), (other, _)| {
        one.ops_per_second.partial_cmp(&other.ops_per_second).unwrap_or(std::cmp::Ordering::Equal)
    });
    let (run, record) = runs.get(runs.len().checked_sub(1)? / 2)?;
    let rows = intervals(record, &phase.name);
    let slow = rows.iter().filter(|row| row.is_slow).count();
    let stalls = rows.iter().map(|row| row.stalls.len()).sum();
    let faults =
        member_faults::of_record(record, &phase.name).map_or_else(Vec::new, |found| found.faults.clone());
    Some(Series { cell, repetition: run.repetition, rows: thinned(rows), slow, stalls, faults })
}

/// The faults as bands: those of the first engine, because all engines have them at the same moments.
fn bands(faults: &[FaultRecord]) -> Vec<Band> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let band = |fault: &FaultRecord| {
        let (at, is_restart) = (seconds(fault.at_ns), fault.kind == FaultKind::Restart);
        Band {
            from: at,
            to: fault.until_ns.map_or(if is_restart { at } else { f64::MAX }, seconds),
            name: format!("{} {}", fault.kind.name(), fault.target),
            tip: member_faults::words(fault),
        }
    };
    faults.iter().map(band).collect()
}

/// The intervals of all rounds of a phase, one after the other, with slow ones and stalls marked.
fn intervals(record: &Record, phase: &str) -> Vec<Interval> {
    let mut rows = Vec::new();
    let mut before_ns = 0_u64;
    for round in record.rounds_of(phase) {
        let interval = |row: &SeriesRow| Interval {
            end_s: before_ns.saturating_add(row.at_ns) as f64 / 1e9,
            ns: row.interval_ns,
            ops: row.ops,
            p99_ns: row.p99_ns,
            response_p99_ns: row.response_times().quantile_if_enough(99, 100),
            rss_bytes: row.rss_bytes,
            disk_bytes: row.disk_allocated_bytes,
            is_slow: false,
            stalls: Vec::new(),
        };
        rows.extend(round.series.iter().map(interval));
        before_ns = before_ns.saturating_add(round.span_ns());
    }
    mark_slow(&mut rows);
    for Found { stall, at_ns, .. } in of_record(record, phase) {
        let at_s = at_ns as f64 / 1e9;
        let place = rows.iter().position(|row| at_s < row.end_s).unwrap_or(rows.len().saturating_sub(1));
        if let Some(row) = rows.get_mut(place) {
            row.stalls.push(format!(
                "stall of {} at {}: {}",
                time(stall.length_ns),
                time(at_ns),
                what(stall)
            ));
        }
    }
    rows
}

/// Marks the slow ones. Intervals shorter than half the longest, such as the last one, are ignored.
fn mark_slow(rows: &mut [Interval]) {
    let longest = rows.iter().map(|row| row.ns).max().unwrap_or(0);
    let is_whole = |row: &Interval| row.ns >= longest / 2;
    let rates: Vec<f64> = rows.iter().filter(|row| is_whole(row)).map(Interval::rate).collect();
    let Some(middle) = median(&rates).filter(|_| rates.len() >= FEWEST) else { return };
    for row in rows.iter_mut().filter(|row| is_whole(row)) {
        row.is_slow = row.rate() < middle * SLOW_SHARE;
    }
}

/// Merges neighbours, so that at most [`MOST`] remain. A merged interval with a slow one has the rate of that.
fn thinned(rows: Vec<Interval>) -> Vec<Interval> {
    let each = rows.len().div_ceil(MOST).max(1);
    let together = |rows: &[Interval]| {
        let last = rows.last()?;
        let slowest =
            rows.iter().filter(|row| row.is_slow).min_by(|one, other| one.rate().total_cmp(&other.rate()));
        let (ns, ops) = match slowest {
            Some(slow) => (slow.ns, slow.ops),
            None => (rows.iter().map(|row| row.ns).sum(), rows.iter().map(|row| row.ops).sum()),
        };
        Some(Interval {
            end_s: last.end_s,
            ns,
            ops,
            p99_ns: rows.iter().filter_map(|row| row.p99_ns).max(),
            response_p99_ns: rows.iter().filter_map(|row| row.response_p99_ns).max(),
            rss_bytes: rows.iter().filter_map(|row| row.rss_bytes).max(),
            disk_bytes: rows.iter().filter_map(|row| row.disk_bytes).max(),
            is_slow: slowest.is_some(),
            stalls: rows.iter().flat_map(|row| row.stalls.clone()).collect(),
        })
    };
    rows.chunks(each).filter_map(together).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ops: &[u64]) -> Vec<Interval> {
        let row = |(place, ops): (usize, &u64)| Interval {
            end_s: (place + 1) as f64,
            ns: 1_000_000_000,
            ops: *ops,
            p99_ns: Some(place as u64),
            response_p99_ns: None,
            rss_bytes: None,
            disk_bytes: None,
            is_slow: false,
            stalls: Vec::new(),
        };
        ops.iter().enumerate().map(row).collect()
    }

    fn slow(mut rows: Vec<Interval>) -> Vec<bool> {
        mark_slow(&mut rows);
        rows.iter().map(|row| row.is_slow).collect()
    }

    #[test]
    fn a_slow_interval_is_below_a_tenth_of_the_median() {
        assert_eq!(slow(rows(&[100, 100, 9, 100])), [false, false, true, false]);
        assert_eq!(slow(rows(&[100, 100, 10, 100])), [false; 4], "exactly a tenth is not slow");
        assert_eq!(slow(rows(&[100, 0])), [false; 2], "two intervals have no usual rate");
        let mut short = rows(&[100, 100, 100, 1]);
        short[3].ns = 10_000_000;
        assert_eq!(slow(short), [false; 4], "the end of a phase is not slow");
        assert_eq!(slow(Vec::new()), [false; 0]);
    }

    #[test]
    fn rounds_are_consecutive_even_if_their_threads_began_late() {
        let mut record = kvdyno_core::results::fixture::records().remove(0);
        let mut phase = record.phases[0].clone();
        let row = SeriesRow { interval_ns: 1, ops: 10, ..Default::default() };
        // Rounds of about a millisecond; in the first the row begins 20 ms before the thread does.
        let rounds = [(20_000_000, 900_000), (1_100_000, 900_000), (950_000, 900_000)];
        record.phases.clear();
        for (round, (at_ns, elapsed_ns)) in (1..).zip(rounds) {
            phase.round = Some(round);
            phase.series = vec![SeriesRow { at_ns, ..row.clone() }];
            phase.elapsed_ns = elapsed_ns;
            record.phases.push(phase.clone());
        }
        let ends: Vec<f64> = intervals(&record, &phase.phase.name).iter().map(|row| row.end_s).collect();
        assert_eq!(ends, [0.02, 0.0211, 0.02205]);
    }

    #[test]
    fn a_long_series_keeps_its_slow_intervals_its_peaks_and_its_end() {
        let mut ops = vec![100; 1_000];
        ops[501] = 1;
        let mut all = rows(&ops);
        mark_slow(&mut all);
        let kept = thinned(all);
        assert_eq!(kept.len(), MOST);
        assert_eq!(kept.iter().filter(|row| row.is_slow).count(), 1);
        assert_eq!(kept.iter().map(|row| row.rate()).fold(f64::INFINITY, f64::min), 1.0);
        assert_eq!(kept.last().map(|row| (row.end_s, row.p99_ns)), Some((1_000.0, Some(999))));
        assert_eq!(thinned(rows(&[1, 2, 3])).len(), 3);
    }
}
