//! The figures of an engine in a phase: a row for each, with all that outputs know of it. An output is a loop over the rows that
//! name a place in it, so a new figure is a new row.

use super::comparison::{Better, Verdict};
use super::statistics::{Interval, median};
use super::summary::{Arrived, Cell, Latency, Range, RunFigures};
use super::{Cost, HarnessShares, Staleness};
use serde::{Serialize, Serializer};
use std::fmt;

/// A figure.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Its name, with the unit; the column of runs in CSV.
    pub name: &'static str,
    /// The unit, in words.
    pub unit: &'static str,
    /// The better direction.
    pub better: Better,
    /// How it is taken from a run and from a cell.
    of: Of,
    /// The ends of the cell's figure, if they are not the lowest and the highest figure of its runs.
    ends: Option<fn(&Cell) -> Option<Ends>>,
    /// How people read it.
    pub form: Form,
    /// Its place among the columns of CSV.
    pub part: Part,
    /// Its columns of cells in CSV: the figure, its low and high ends, and the level of the interval between them.
    pub cell_columns: &'static [&'static str],
    /// Its name in `csv-long`, where the unit has a column.
    pub long_name: Option<&'static str>,
    /// Its unit in the format of Go benchmarks, and how many of these are one of ours.
    pub bench: Option<(&'static str, f64)>,
    /// How two runs are compared by it.
    pub compared: Option<Compared>,
    /// Its title in rankings.
    pub ranked: Option<&'static str>,
    /// Whether it is also in the history of an engine on a site.
    pub in_history: bool,
    /// Its title in the table of service times.
    pub service: Option<&'static str>,
    /// Its column in the tables of costs.
    pub cost: Option<CostColumn>,
    /// Its chart as bars: the title, and that of the axis.
    pub bars: Option<(&'static str, &'static str)>,
    /// Its axis in charts of two figures.
    pub axis: Option<Axis>,
}

/// Where a figure comes from.
#[derive(Clone, Copy)]
enum Of {
    /// A run; that of a cell is the median over its runs.
    Run(fn(&RunFigures) -> Option<f64>),
    /// A run, and a cell.
    Each(fn(&RunFigures) -> Option<f64>, fn(&Cell) -> Option<f64>),
    /// A cell; runs do not have it.
    Cell(fn(&Cell) -> Option<f64>),
    /// Service times, of all ops or of a kind of op, with the range of the runs.
    Latency(fn(&Latency) -> Option<u64>, Option<fn(&Latency) -> Option<Range>>),
    /// The mean of service times.
    Mean,
    /// Times of requests that arrive at a rate.
    Arrived(fn(&Arrived) -> Option<f64>),
    /// What an op costs.
    Cost(fn(&Cost) -> Option<f64>),
    /// How old reads were.
    Stale(fn(&Staleness) -> Option<u64>),
    /// The parts of the harness share.
    Harness(fn(HarnessShares) -> f64),
}

/// How people read a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ops per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Three digits.
    Plain,
    /// A multiple of another figure.
    Ratio,
    /// An amount per op, which may be tiny.
    Amount,
    /// Nanoseconds per op.
    TimePerOp,
    /// Bytes per op.
    BytesPerOp,
}

/// Parts of the columns of CSV, in the order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The engine.
    Engine,
    /// The harness.
    Harness,
    /// The age of reads.
    Stale,
    /// The costs per op.
    Cost,
}

/// How two runs are compared by a figure.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in JSON.
    pub key: &'static str,
    /// The title of its table.
    pub title: &'static str,
    /// Whether a change is faster or slower, and not smaller or larger.
    pub is_speed: bool,
}

impl Compared {
    /// The word for a change.
    pub fn word(self, verdict: Verdict) -> &'static str {
        match (verdict, self.is_speed) {
            (Verdict::Open, _) => "~",
            (Verdict::Better, true) => "faster",
            (Verdict::Worse, true) => "slower",
            (Verdict::Better, false) => "smaller",
            (Verdict::Worse, false) => "larger",
        }
    }
}

/// A column in the tables of costs.
#[derive(Clone, Copy, Debug)]
pub struct CostColumn {
    /// The table.
    pub table: CostTable,
    /// Its place in the table; equal ones are in the order of the rows.
    pub place: u8,
    /// The title.
    pub title: &'static str,
    /// How people read it there.
    pub form: Form,
}

/// The tables of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostTable {
    /// What the processor did.
    Processor,
    /// What was read and written.
    Storage,
}

/// An axis of a chart.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The title.
    pub title: &'static str,
    /// The name in tooltips.
    pub short: &'static str,
    /// Why an engine is not on it.
    pub unknown: &'static str,
}

/// The ends of a figure of a cell: of an interval, or of the range of its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
    /// The level of an interval; none: a range.
    pub level: Option<f64>,
}

impl From<Interval> for Ends {
    fn from(interval: Interval) -> Ends {
        Ends { low: interval.low, high: interval.high, level: Some(interval.level) }
    }
}

impl From<Range> for Ends {
    fn from(range: Range) -> Ends {
        Ends { low: range.low as f64, high: range.high as f64, level: None }
    }
}

/// What most rows have.
const FIGURE: Figure = Figure {
    name: "",
    unit: "",
    better: Better::Lower,
    of: Of::Run(|_| None),
    ends: None,
    form: Form::Plain,
    part: Part::Engine,
    cell_columns: &[],
    long_name: None,
    bench: None,
    compared: None,
    ranked: None,
    in_history: false,
    service: None,
    cost: None,
    bars: None,
    axis: None,
};

/// A time of requests that arrive at a rate.
const fn arrived(
    name: &'static str,
    long_name: &'static str,
    ranked: Option<&'static str>,
    of: fn(&Arrived) -> Option<f64>,
) -> Figure {
    Figure {
        name,
        unit: "ns",
        of: Of::Arrived(of),
        form: Form::Time,
        long_name: Some(long_name),
        ranked,
        ..FIGURE
    }
}

/// A count or a time of stale reads.
const STALE: Figure = Figure { unit: "ops", part: Part::Stale, ..FIGURE };

const fn cost(
    name: &'static str,
    long_name: &'static str,
    unit: &'static str,
    of: fn(&Cost) -> Option<f64>,
    column: CostColumn,
) -> Figure {
    Figure {
        name,
        unit,
        of: Of::Cost(of),
        form: column.form,
        part: Part::Cost,
        long_name: Some(long_name),
        cost: Some(column),
        ..FIGURE
    }
}

const fn processor(title: &'static str, form: Form) -> CostColumn {
    CostColumn { table: CostTable::Processor, place: 0, title, form }
}

const fn storage(place: u8, title: &'static str, form: Form) -> CostColumn {
    CostColumn { table: CostTable::Storage, place, title, form }
}

/// All figures, in the order of outputs.
pub static FIGURES: &[Figure] = &[
    Figure {
        name: "ops",
        unit: "ops",
        better: Better::Higher,
        of: Of::Run(|run| whole(run.ops)),
        long_name: Some("ops"),
        ..FIGURE
    },
    Figure {
        name: "elapsed_ns",
        unit: "ns",
        of: Of::Run(|run| whole(run.elapsed_ns)),
        form: Form::Time,
        long_name: Some("elapsed"),
        ..FIGURE
    },
    Figure {
        name: RATE,
        unit: "ops/s",
        better: Better::Higher,
        of: Of::Each(|run| run.ops_per_second, |cell| cell.ops_per_second),
        ends: Some(|cell| cell.ops_per_second_interval.map(Ends::from)),
        form: Form::Rate,
        cell_columns: &[
            "cell_median_ops_per_second",
            "cell_low_ops_per_second",
            "cell_high_ops_per_second",
            "cell_interval_level",
        ],
        long_name: Some("throughput"),
        bench: Some(("ops/s", 1.0)),
        compared: Some(Compared { name: "rate", key: "rate", title: "ops/s", is_speed: true }),
        ranked: Some("ops/s"),
        in_history: true,
        axis: Some(Axis { title: "ops/s", short: "ops/s", unknown: "no rate" }),
        ..FIGURE
    },
    Figure {
        name: "engine_ops_per_second",
        unit: "ops/s",
        better: Better::Higher,
        of: Of::Each(|run| run.engine_ops_per_second, |cell| cell.engine_ops_per_second),
        form: Form::Rate,
        cell_columns: &["cell_median_engine_ops_per_second"],
        long_name: Some("engine_throughput"),
        bench: Some(("engine-ops/s", 1.0)),
        ranked: Some("net ops/s"),
        ..FIGURE
    },
    Figure {
        name: "ratio",
        unit: "ratio",
        better: Better::Higher,
        of: Of::Cell(|cell| cell.ratio.map(|ratio| ratio.value)),
        ends: Some(|cell| cell.ratio?.interval.map(Ends::from)),
        form: Form::Ratio,
        cell_columns: &["cell_ratio", "cell_ratio_low", "cell_ratio_high"],
        ranked: Some("ratio"),
        ..FIGURE
    },
    Figure {
        name: "mean_ns",
        unit: "ns",
        of: Of::Mean,
        form: Form::Time,
        cell_columns: &["cell_mean_ns"],
        long_name: Some("service_mean"),
        ..FIGURE
    },
    Figure {
        name: "p50_ns",
        unit: "ns",
        of: Of::Latency(|latency| latency.p50_ns, Some(|latency| latency.p50_range_ns)),
        form: Form::Time,
        cell_columns: &["cell_p50_ns", "cell_p50_low_ns", "cell_p50_high_ns"],
        long_name: Some("service_p50"),
        bench: Some(("p50-ns", 1.0)),
        compared: Some(Compared { name: "p50", key: "p50", title: "p50 of service times", is_speed: true }),
        ranked: Some("p50"),
        in_history: true,
        service: Some("p50"),
        ..FIGURE
    },
    Figure {
        name: P99,
        unit: "ns",
        of: Of::Latency(|latency| latency.p99_ns, Some(|latency| latency.p99_range_ns)),
        form: Form::Time,
        cell_columns: &["cell_p99_ns", "cell_p99_low_ns", "cell_p99_high_ns"],
        long_name: Some("service_p99"),
        bench: Some(("p99-ns", 1.0)),
        compared: Some(Compared { name: "p99", key: "p99", title: "p99 of service times", is_speed: true }),
        ranked: Some("p99"),
        in_history: true,
        service: Some("p99"),
        axis: Some(Axis {
            title: "p99 of the service time",
            short: "p99",
            unknown: "no p99: a run has fewer than ten slower ops",
        }),
        ..FIGURE
    },
    Figure {
        name: "p999_ns",
        unit: "ns",
        of: Of::Latency(|latency| latency.p999_ns, Some(|latency| latency.p999_range_ns)),
        form: Form::Time,
        cell_columns: &["cell_p999_ns", "cell_p999_low_ns", "cell_p999_high_ns"],
        long_name: Some("service_p999"),
        bench: Some(("p999-ns", 1.0)),
        compared: Some(Compared {
            name: "p99.9",
            key: "p999",
            title: "p99.9 of service times",
            is_speed: true,
        }),
        service: Some("p99.9"),
        ..FIGURE
    },
    Figure {
        name: "max_ns",
        unit: "ns",
        of: Of::Latency(|latency| latency.max_ns, None),
        form: Form::Time,
        cell_columns: &["cell_max_ns"],
        long_name: Some("service_max"),
        bench: Some(("max-ns", 1.0)),
        service: Some("max"),
        ..FIGURE
    },
    Figure { name: "service_mean_ns", unit: "ns", of: Of::Mean, form: Form::Time, ..FIGURE },
    Figure {
        name: "service_p50_ns",
        unit: "ns",
        of: Of::Latency(|times| times.p50_ns, None),
        form: Form::Time,
        ..FIGURE
    },
    Figure {
        name: "service_p99_ns",
        unit: "ns",
        of: Of::Latency(|times| times.p99_ns, None),
        form: Form::Time,
        ..FIGURE
    },
    Figure {
        name: "service_p999_ns",
        unit: "ns",
        of: Of::Latency(|times| times.p999_ns, None),
        form: Form::Time,
        ..FIGURE
    },
    Figure {
        name: "service_max_ns",
        unit: "ns",
        of: Of::Latency(|times| times.max_ns, None),
        form: Form::Time,
        ..FIGURE
    },
    arrived("wait_mean_ns", "wait_mean", None, |times| times.wait.mean_ns),
    arrived("wait_p50_ns", "wait_p50", None, |times| whole(times.wait.p50_ns)),
    arrived("wait_p99_ns", "wait_p99", None, |times| whole(times.wait.p99_ns)),
    arrived("wait_p999_ns", "wait_p999", None, |times| whole(times.wait.p999_ns)),
    arrived("wait_max_ns", "wait_max", None, |times| whole(times.wait.max_ns)),
    arrived("response_mean_ns", "response_mean", None, |times| times.response.mean_ns),
    arrived("response_p50_ns", "response_p50", None, |times| whole(times.response.p50_ns)),
    arrived("response_p99_ns", "response_p99", Some("response p99"), |times| whole(times.response.p99_ns)),
    arrived("response_p999_ns", "response_p999", None, |times| whole(times.response.p999_ns)),
    arrived("response_max_ns", "response_max", None, |times| whole(times.response.max_ns)),
    Figure {
        name: "cpu_seconds_per_million_ops",
        unit: "s/Mop",
        of: Of::Each(|run| run.cpu_seconds_per_million_ops, |cell| cell.cpu_seconds_per_million_ops),
        cell_columns: &["cell_cpu_seconds_per_million_ops"],
        long_name: Some("cpu"),
        // One second per million ops is one microsecond per op.
        bench: Some(("cpu-ns/op", 1e3)),
        compared: Some(Compared {
            name: "cpu",
            key: "cpu",
            title: "CPU seconds per million ops",
            is_speed: true,
        }),
        ranked: Some("CPU s/Mop"),
        in_history: true,
        bars: Some(("CPU", "CPU seconds of the engine per million ops")),
        ..FIGURE
    },
    Figure {
        name: MEMORY,
        unit: "bytes",
        of: Of::Each(|run| whole(run.rss_bytes), |cell| whole(cell.rss_bytes)),
        form: Form::Bytes,
        cell_columns: &["cell_rss_bytes"],
        long_name: Some("rss"),
        bench: Some(("rss-bytes", 1.0)),
        compared: Some(Compared { name: "memory", key: "memory", title: "RSS", is_speed: false }),
        ranked: Some("RSS"),
        in_history: true,
        bars: Some(("memory", "resident memory of the process, maximum over runs")),
        axis: Some(Axis { title: "resident memory", short: "memory", unknown: "memory unknown" }),
        ..FIGURE
    },
    Figure {
        name: "disk_allocated_bytes",
        unit: "bytes",
        of: Of::Each(|run| whole(run.disk_allocated_bytes), |cell| whole(cell.disk_allocated_bytes)),
        form: Form::Bytes,
        cell_columns: &["cell_disk_allocated_bytes"],
        long_name: Some("disk_allocated"),
        bench: Some(("disk-bytes", 1.0)),
        compared: Some(Compared { name: "disk", key: "disk", title: "disk, allocated", is_speed: false }),
        ranked: Some("disk"),
        in_history: true,
        bars: Some(("disk", "allocated bytes after the phase, median")),
        ..FIGURE
    },
    Figure {
        name: WRITTEN,
        unit: "ratio",
        of: Of::Each(|run| run.write_amplification, |cell| cell.write_amplification),
        cell_columns: &["cell_write_amplification_ratio"],
        long_name: Some("write_amplification"),
        bench: Some(("written/byte", 1.0)),
        compared: Some(Compared {
            name: "w-amp",
            key: "write-amplification",
            title: "write amplification",
            is_speed: false,
        }),
        ranked: Some("w-amp"),
        cost: Some(storage(10, "w-amp", Form::Amount)),
        bars: Some(("write amplification", "bytes to storage per byte written, median")),
        axis: Some(Axis {
            title: "bytes written per byte of data",
            short: "written",
            unknown: "write amplification unknown",
        }),
        ..FIGURE
    },
    Figure {
        name: SPACE,
        unit: "ratio",
        of: Of::Each(|run| run.space_amplification, |cell| cell.space_amplification),
        cell_columns: &["cell_space_amplification_ratio"],
        long_name: Some("space_amplification"),
        cost: Some(storage(11, "s-amp", Form::Plain)),
        axis: Some(Axis {
            title: "disk space per byte stored",
            short: "space",
            unknown: "no files, or sizes unknown",
        }),
        ..FIGURE
    },
    Figure {
        name: "syncs_per_commit",
        unit: "calls/commit",
        of: Of::Each(|run| run.observed.as_ref()?.syncs_per_commit, |cell| cell.syncs_per_commit),
        cell_columns: &["cell_syncs_per_commit"],
        long_name: Some("syncs"),
        cost: Some(storage(3, "syncs/commit", Form::Plain)),
        ..FIGURE
    },
    Figure {
        name: "harness_share_ratio",
        unit: "ratio",
        of: Of::Each(|run| run.harness_share, |cell| cell.harness_share),
        part: Part::Harness,
        cell_columns: &["cell_harness_share_ratio"],
        long_name: Some("harness_share"),
        ..FIGURE
    },
    Figure {
        name: "harness_generation_ratio",
        unit: "ratio",
        of: Of::Harness(|harness| harness.generation),
        part: Part::Harness,
        long_name: Some("harness_generation"),
        ..FIGURE
    },
    Figure {
        name: "harness_checks_ratio",
        unit: "ratio",
        of: Of::Harness(|harness| harness.checks),
        part: Part::Harness,
        long_name: Some("harness_checks"),
        ..FIGURE
    },
    Figure {
        name: "harness_boundary_ratio",
        unit: "ratio",
        of: Of::Harness(|harness| harness.boundary),
        part: Part::Harness,
        long_name: Some("harness_boundary"),
        ..FIGURE
    },
    Figure {
        name: "ops_per_call",
        unit: "ops/call",
        better: Better::Higher,
        of: Of::Each(|run| run.batch_mean, |cell| cell.batch_mean),
        part: Part::Harness,
        long_name: Some("batch"),
        ..FIGURE
    },
    Figure {
        name: "reads",
        better: Better::Higher,
        of: Of::Stale(|found| Some(found.reads)),
        long_name: Some("reads"),
        ..STALE
    },
    Figure {
        name: "stale_reads",
        of: Of::Stale(|found| Some(found.stale)),
        long_name: Some("stale_reads"),
        ..STALE
    },
    Figure {
        name: "stale_missed_reads",
        of: Of::Stale(|found| Some(found.missed)),
        long_name: Some("stale_missed_reads"),
        ..STALE
    },
    Figure {
        name: "stale_versions_p50",
        unit: "versions",
        of: Of::Stale(|found| found.versions.quantile_if_enough(1, 2)),
        ..STALE
    },
    Figure {
        name: "stale_versions_p99",
        unit: "versions",
        of: Of::Stale(|found| found.versions.quantile_if_enough(99, 100)),
        ..STALE
    },
    Figure {
        name: "stale_versions_max",
        unit: "versions",
        of: Of::Stale(|found| found.versions.max_ns()),
        long_name: Some("stale_versions_max"),
        ..STALE
    },
    Figure {
        name: "stale_age_p50_ns",
        unit: "ns",
        of: Of::Stale(|found| found.age_ns.quantile_if_enough(1, 2)),
        form: Form::Time,
        ..STALE
    },
    Figure {
        name: "stale_age_p99_ns",
        unit: "ns",
        of: Of::Stale(|found| found.age_ns.quantile_if_enough(99, 100)),
        form: Form::Time,
        ..STALE
    },
    Figure {
        name: "stale_age_max_ns",
        unit: "ns",
        of: Of::Stale(|found| found.age_ns.max_ns()),
        form: Form::Time,
        long_name: Some("stale_age_max"),
        ..STALE
    },
    Figure {
        name: "stale_age_at_least_ns",
        unit: "ns",
        of: Of::Stale(|found| found.at_least_ns),
        form: Form::Time,
        long_name: Some("stale_age_at_least"),
        ..STALE
    },
    Figure {
        name: "stale_unknown_version_reads",
        of: Of::Stale(|found| Some(found.of_unknown_version())),
        long_name: Some("stale_unknown_version_reads"),
        ..STALE
    },
    Figure {
        name: "stale_unknown_age_reads",
        of: Of::Stale(|found| Some(found.of_unknown_age())),
        long_name: Some("stale_unknown_age_reads"),
        ..STALE
    },
    cost(
        "calling_cpu_ns_per_op",
        "calling_cpu",
        "ns/op",
        |cost| cost.calling_cpu_ns,
        processor("CPU calling", Form::TimePerOp),
    ),
    cost(
        "background_cpu_ns_per_op",
        "background_cpu",
        "ns/op",
        |cost| cost.background_cpu_ns,
        processor("CPU background", Form::TimePerOp),
    ),
    cost(
        "harness_cpu_ns_per_op",
        "harness_cpu",
        "ns/op",
        |cost| cost.harness_cpu_ns,
        processor("CPU harness", Form::TimePerOp),
    ),
    cost("cycles_per_op", "cycles", "cycles/op", |cost| cost.cycles, processor("cycles", Form::Amount)),
    cost(
        "instructions_per_op",
        "instructions",
        "instructions/op",
        |cost| cost.instructions,
        processor("instructions", Form::Amount),
    ),
    cost(
        "voluntary_switches_per_op",
        "voluntary_switches",
        "switches/op",
        |cost| cost.voluntary_switches,
        processor("waits", Form::Amount),
    ),
    cost(
        "involuntary_switches_per_op",
        "involuntary_switches",
        "switches/op",
        |cost| cost.involuntary_switches,
        processor("preempted", Form::Amount),
    ),
    cost(
        "minor_faults_per_op",
        "minor_faults",
        "faults/op",
        |cost| cost.minor_faults,
        processor("minor faults", Form::Amount),
    ),
    cost(
        "major_faults_per_op",
        "major_faults",
        "faults/op",
        |cost| cost.major_faults,
        processor("major faults", Form::Amount),
    ),
    cost(
        "read_calls_per_op",
        "read_calls",
        "calls/op",
        |cost| cost.read_calls,
        storage(1, "read calls", Form::Amount),
    ),
    cost(
        "write_calls_per_op",
        "write_calls",
        "calls/op",
        |cost| cost.write_calls,
        storage(2, "write calls", Form::Amount),
    ),
    cost(
        "read_call_bytes_per_op",
        "read_call_bytes",
        "bytes/op",
        |cost| cost.read_call_bytes,
        storage(4, "read", Form::BytesPerOp),
    ),
    cost(
        "written_call_bytes_per_op",
        "written_call_bytes",
        "bytes/op",
        |cost| cost.written_call_bytes,
        storage(5, "written", Form::BytesPerOp),
    ),
    cost(
        "read_storage_bytes_per_op",
        "read_storage_bytes",
        "bytes/op",
        |cost| cost.read_storage_bytes,
        storage(6, "from storage", Form::BytesPerOp),
    ),
    cost(
        "written_storage_bytes_per_op",
        "written_storage_bytes",
        "bytes/op",
        |cost| cost.written_storage_bytes,
        storage(7, "to storage", Form::BytesPerOp),
    ),
    cost(
        "device_flushes_per_op",
        "device_flushes",
        "flushes/op",
        |cost| cost.flushes,
        storage(8, "flushes", Form::Amount),
    ),
    cost(
        "read_amplification_ratio",
        "read_amplification",
        "ratio",
        |cost| cost.read_amplification,
        storage(9, "r-amp", Form::Amount),
    ),
];

/// Names of figures that charts draw against each other.
pub const RATE: &str = "ops_per_second";
/// The 99th percentile of service times.
pub const P99: &str = "p99_ns";
/// Resident memory.
pub const MEMORY: &str = "rss_bytes";
/// Bytes written to storage per byte of data.
pub const WRITTEN: &str = "write_amplification_ratio";
/// Allocated bytes per byte of data.
pub const SPACE: &str = "space_amplification_ratio";

fn whole(figure: Option<u64>) -> Option<f64> {
    figure.map(|figure| figure as f64)
}

/// The figure with this name, if there is one.
pub fn figure(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// The figures by which two runs are compared.
pub fn compared() -> Vec<&'static Figure> {
    FIGURES.iter().filter(|figure| figure.compared.is_some()).collect()
}

impl Figure {
    /// Whether runs have it, and not only cells.
    pub fn is_of_runs(&self) -> bool {
        !matches!(self.of, Of::Cell(_))
    }

    /// The figure of a run.
    pub fn of_run(&self, run: &RunFigures) -> Option<f64> {
        match self.of {
            Of::Run(of) | Of::Each(of, _) => of(run),
            Of::Cell(_) => None,
            Of::Mean | Of::Latency(..) => self.of_times(&run.latency),
            Of::Arrived(of) => of(run.arrived.as_ref()?),
            Of::Cost(of) => of(&run.cost),
            Of::Stale(of) => whole(of(run.staleness.as_ref()?)),
            Of::Harness(of) => run.harness.map(of),
        }
    }

    /// The figure of a cell.
    pub fn of_cell(&self, cell: &Cell) -> Option<f64> {
        match self.of {
            Of::Run(of) => median(&cell.runs.iter().filter_map(of).collect::<Vec<f64>>()),
            Of::Each(_, of) | Of::Cell(of) => of(cell),
            Of::Mean | Of::Latency(..) => self.of_times(&cell.latency),
            Of::Arrived(of) => of(cell.arrived.as_ref()?),
            Of::Cost(of) => of(&cell.cost),
            Of::Stale(of) => whole(of(cell.staleness.as_ref()?)),
            Of::Harness(of) => cell.harness.map(of),
        }
    }

    /// The figure of service times, such as those of a kind of op; none for other figures.
    pub fn of_times(&self, latency: &Latency) -> Option<f64> {
        match self.of {
            Of::Mean => latency.mean_ns,
            Of::Latency(of, _) => whole(of(latency)),
            _ => None,
        }
    }

    /// Whether only phases whose requests arrive at a rate have it.
    pub fn needs_rate(&self) -> bool {
        matches!(self.of, Of::Arrived(_))
    }

    /// How the range over runs is taken from service times; none: it is not.
    pub fn range_of_times(&self) -> Option<fn(&Latency) -> Option<Range>> {
        match self.of {
            Of::Latency(_, range) => range,
            _ => None,
        }
    }

    /// The ends of the figure of a cell: its own, or else the lowest and the highest figure of its runs; none if these are equal.
    pub fn ends(&self, cell: &Cell) -> Option<Ends> {
        if let Some(ends) = self.ends {
            return ends(cell);
        }
        if let Some(range) = self.range_of_times() {
            return range(&cell.latency).map(Ends::from);
        }
        let of_runs = cell.runs.iter().filter_map(|run| self.of_run(run));
        let (low, high) =
            of_runs.fold((f64::INFINITY, 0.0_f64), |(low, high), run| (low.min(run), high.max(run)));
        (low < high).then_some(Ends { low, high, level: None })
    }

    /// The values of [`Figure::cell_columns`].
    pub fn cell_values(&self, cell: &Cell) -> impl Iterator<Item = Option<f64>> + use<> {
        let ends = self.ends(cell);
        let values = [
            self.of_cell(cell),
            ends.map(|ends| ends.low),
            ends.map(|ends| ends.high),
            ends.and_then(|ends| ends.level),
        ];
        values.into_iter().take(self.cell_columns.len())
    }

    /// The step size of the figure near `value`, in its unit; `clock_ns`: the smallest step of the clocks.
    pub fn step(&self, value: f64, clock_ns: f64) -> f64 {
        match self.form {
            // Histograms have three significant digits.
            Form::Time => clock_ns.max(value / 1024.0),
            // Pages and blocks.
            Form::Bytes => 4096.0,
            _ => 0.0,
        }
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Figure {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// As in the JSON of comparisons.
impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.compared.map_or(self.name, |compared| compared.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_in_every_output() {
        let outputs: [fn(&'static Figure) -> Vec<&'static str>; 6] = [
            |figure| [&[figure.name][..], figure.cell_columns].concat(),
            |figure| figure.long_name.into_iter().collect(),
            |figure| figure.bench.into_iter().map(|(unit, _)| unit).collect(),
            |figure| figure.compared.into_iter().map(|compared| compared.name).collect(),
            |figure| figure.compared.into_iter().map(|compared| compared.key).collect(),
            |figure| figure.ranked.into_iter().collect(),
        ];
        for names in outputs.map(|of| FIGURES.iter().flat_map(of).collect::<Vec<&str>>()) {
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        }
        for name in [RATE, P99, MEMORY, WRITTEN, SPACE] {
            assert!(figure(name).is_some_and(|figure| figure.axis.is_some()), "{name}");
        }
    }

    #[test]
    fn every_cost_is_a_figure() {
        let fields = serde_json::to_value(Cost::default()).unwrap();
        let costs = FIGURES.iter().filter(|figure| figure.part == Part::Cost);
        assert_eq!(fields.as_object().unwrap().len(), costs.count());
    }
}
