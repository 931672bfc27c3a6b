//! The table of stalls: the longest ops of a phase, and what was seen while they lasted.

use super::describe::cell_name;
use super::figure::{UNKNOWN, known, time};
use kvdyno_core::results::Record;
use kvdyno_core::results::summary::{Cell, PhaseSummary};
use kvdyno_measure::text::{Align, Table, bytes_text, counted, plain_text};
use kvdyno_measure::{Stall, StallView};

/// The number of rows of a table; more engines have at least one row each.
const ROWS: usize = 10;
/// A share of the observed time that is worth telling.
const SHARE: f64 = 0.1;
/// As many minor page faults in a stall are worth telling.
const MINOR_FAULTS: u64 = 100;
/// As many bytes from or to storage are worth telling.
const BYTES: u64 = 64 << 10;

/// The legend of the table, for the end of a report.
pub(super) const LEGEND: &str = "Stalls: the longest ops of at least 10 ms, over all runs. at: the op's start, from the start of the phase. seen: how long the thread was observed, always within the stall, and what was seen in that time, in shares of it; - if nobody looked in time. in fdatasync, in futex ...: the system call that the thread was in; a futex is a lock, or waits for another thread. disk sleep: it could not be interrupted, as when it waits for a block device. ran: on a CPU. no CPU: ready to run, without one (by its state, its CPU time and its run delay). A name with CPUs: how many CPUs other threads of the engine used on average, by their names. from storage, to storage: bytes of the trial's processes. steal: how many CPUs the hypervisor gave to others. A name with + or -: a counter of the engine, and its change (the record has all of them). What is seen happened at the same time; it need not be the cause.";

/// The number of the engine's counters that are told.
const COUNTERS: usize = 4;

/// A stall in a run of a cell.
pub(super) struct Found<'a> {
    /// The repetition.
    pub repetition: u32,
    /// The stall.
    pub stall: &'a Stall,
    /// Its start from the start of the phase, over all rounds; nanoseconds.
    pub at_ns: u64,
}

/// The stalls of a phase in a record, over all its rounds.
pub(super) fn of_record<'a>(record: &'a Record, phase: &'a str) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    let mut before_ns = 0_u64;
    for round in record.rounds_of(phase) {
        found.extend(round.stalls.iter().map(|stall| Found {
            repetition: record.trial.repetition,
            stall,
            at_ns: before_ns.saturating_add(stall.at_ns),
        }));
        before_ns = before_ns.saturating_add(round.span_ns());
    }
    found
}

/// The table of a phase: the longest stalls of each engine; none without stalls.
pub(super) fn stalls(phase: &PhaseSummary, records: &[Record]) -> Option<Table> {
    let of_cell = |cell: &Cell| {
        let runs = cell.runs.iter().filter(|run| run.state.counts());
        let of = |trial: &str| records.iter().find(|record| record.trial.id == trial);
        let mut found: Vec<Found> =
            runs.filter_map(|run| of(&run.trial)).flat_map(|record| of_record(record, &phase.name)).collect();
        found.sort_by_key(|found| (std::cmp::Reverse(found.stall.length_ns), found.repetition, found.at_ns));
        found
    };
    let cells = phase.floors.iter().chain(phase.cells());
    let all: Vec<(&Cell, Vec<Found>)> = cells.map(|cell| (cell, of_cell(cell))).collect();
    let stalled = all.iter().filter(|(_, found)| !found.is_empty()).count();
    let rows = (ROWS / stalled.max(1)).max(1);
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("run", Align::Right),
        ("at", Align::Right),
        ("op", Align::Left),
        ("length", Align::Right),
        ("seen", Align::Right),
        ("what was seen", Align::Left),
    ]);
    for (cell, found) in &all {
        for Found { repetition, stall, at_ns } in found.iter().take(rows) {
            table.push(vec![
                cell_name(cell),
                repetition.to_string(),
                time(*at_ns),
                plain_text(&stall.kind),
                time(stall.length_ns),
                known(stall.seen.as_ref(), |view| time(view.span_ns)),
                what(stall),
            ]);
        }
    }
    (!table.is_empty()).then_some(table)
}

/// What was seen during a stall, in a line; `-` if nothing was.
pub(super) fn what(stall: &Stall) -> String {
    let mut parts = stall.seen.as_ref().map(parts).unwrap_or_default();
    if stall.others > 0 {
        parts.push(format!("{} of other threads", counted(stall.others.into(), "stall", "stalls")));
    }
    if parts.is_empty() { UNKNOWN.to_string() } else { plain_text(&parts.join(", ")) }
}

fn parts(view: &StallView) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let of_share = |name: &str, share: Option<f64>| {
        share.filter(|share| *share >= SHARE).map(|share| format!("{name} {}", percent(share)))
    };
    let of_looks = |name: &str, count: u32| of_share(name, share_of_looks(view, count));
    // Time of several threads or CPUs, which may be more than the span.
    let of_cpus = |name: &str, ns: Option<u64>| {
        let cpus = share_of_span(view, ns).filter(|cpus| *cpus >= SHARE)?;
        Some(format!("{name} {cpus:.1} CPUs"))
    };
    let many = |count: Option<u64>, least: u64, one: &str, several: &str| {
        count.filter(|count| *count >= least).map(|count| counted(count, one, several))
    };
    let moved = |amount: Option<u64>, name: &str| {
        amount.filter(|amount| *amount >= BYTES).map(|amount| format!("{} {name}", bytes_text(amount)))
    };
    let call = |(name, count): &(String, u32)| match name.as_str() {
        "page fault" => of_looks("in a page fault", *count),
        name => of_looks(&format!("in {name}"), *count),
    };
    let mut all: Vec<String> = view.calls.iter().filter_map(call).collect();
    all.extend(of_looks("disk sleep", view.blocked));
    // The kernel adds the time of a running thread at its next tick, so some of it may be from before the span.
    all.extend(of_share("ran", share_of_span(view, view.cpu_ns).map(|share| share.min(1.0))));
    all.extend(of_share("no CPU", no_cpu(view)));
    all.extend(many(view.major_faults, 1, "major page fault", "major page faults"));
    all.extend(many(view.minor_faults, MINOR_FAULTS, "minor page fault", "minor page faults"));
    all.extend(view.busy.iter().filter_map(|(name, ns)| of_cpus(name, Some(*ns))));
    all.extend(moved(view.read_storage_bytes, "from storage"));
    all.extend(moved(view.written_storage_bytes, "to storage"));
    all.extend(of_cpus("steal", view.stolen_ns));
    // Counts of events say more than sizes.
    let (sizes, events): (Vec<_>, Vec<_>) = view.engine.iter().partition(|(name, _)| name.ends_with("bytes"));
    all.extend(events.iter().chain(&sizes).take(COUNTERS).map(|(name, change)| format!("{name} {change:+}")));
    all
}

fn share_of_looks(view: &StallView, count: u32) -> Option<f64> {
    (view.looks > 0).then(|| f64::from(count) / f64::from(view.looks))
}

fn share_of_span(view: &StallView, ns: Option<u64>) -> Option<f64> {
    (view.span_ns > 0).then_some(ns? as f64 / view.span_ns as f64)
}

/// The share in which the thread was ready to run and had no CPU. The kernel adds a wait to the run delay only when it has ended;
/// until then it is seen as a thread that is ready to run and uses no CPU time. A wait that ended in the span may have begun
/// before it, so no more than the span counts.
fn no_cpu(view: &StallView) -> Option<f64> {
    let ready = share_of_looks(view, view.running);
    let without = ready.zip(share_of_span(view, view.cpu_ns)).map(|(ready, ran)| (ready - ran).max(0.0));
    let delay = share_of_span(view, view.run_delay_ns);
    without.into_iter().chain(delay).reduce(f64::max).map(|share| share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use kvdyno_core::results::fixture::{records, run};
    use kvdyno_core::results::summary::Summary;

    fn stall(length_ms: u64, seen: Option<StallView>) -> Stall {
        let kind = "put".to_string();
        Stall { thread: 0, kind, at_ns: 2_500_000_000, length_ns: length_ms * 1_000_000, others: 0, seen }
    }

    /// The last column, which the legend does not have.
    const COLUMN: &str = "seen  what was seen";

    fn view_of(span_ms: u64) -> StallView {
        StallView { span_ns: span_ms * 1_000_000, ..StallView::default() }
    }

    #[test]
    fn only_what_was_seen_is_told() {
        assert_eq!(what(&stall(12, None)), "-");
        let nothing = StallView { looks: 10, ..view_of(100) };
        assert_eq!(what(&stall(120, Some(nothing.clone()))), "-");
        let view = StallView {
            running: 1,
            blocked: 9,
            calls: vec![("fdatasync".into(), 9)],
            cpu_ns: Some(9_000_000),
            run_delay_ns: Some(0),
            major_faults: Some(1),
            minor_faults: Some(99),
            busy: vec![("rocksdb:low".into(), 95_000_000)],
            written_storage_bytes: Some(12 << 20),
            stolen_ns: Some(20_000_000),
            engine: vec![("level_0_bytes".into(), -64), ("compactions".into(), 1)],
            ..nothing
        };
        let text = "in fdatasync 90 %, disk sleep 90 %, 1 major page fault, rocksdb:low 0.9 CPUs, 12 MiB to storage, \
                    steal 0.2 CPUs, compactions +1, level_0_bytes -64";
        assert_eq!(what(&stall(120, Some(view))), text);
        let view = StallView {
            looks: 4,
            running: 4,
            cpu_ns: Some(5_000_000),
            run_delay_ns: Some(0),
            ..view_of(100)
        };
        assert_eq!(what(&stall(120, Some(view))), "no CPU 95 %", "the wait has not ended");
        let view = StallView { run_delay_ns: Some(60_000_000), ..view_of(100) };
        assert_eq!(what(&stall(120, Some(view))), "no CPU 60 %");
        let view = StallView { run_delay_ns: Some(121_000_000), ..view_of(100) };
        assert_eq!(what(&stall(120, Some(view))), "no CPU 100 %", "the wait began before it was seen");
        let view = StallView {
            cpu_ns: Some(104_000_000),
            busy: vec![("rocksdb:low".into(), 161_000_000)],
            stolen_ns: Some(130_000_000),
            ..view_of(100)
        };
        let text = "ran 100 %, rocksdb:low 1.6 CPUs, steal 1.3 CPUs";
        assert_eq!(what(&stall(120, Some(view))), text, "no share is over 100 %");
        assert_eq!(what(&Stall { others: 2, ..stall(120, None) }), "2 stalls of other threads");
    }

    #[test]
    fn each_engine_with_stalls_has_rows_of_its_longest() {
        let mut records = records();
        assert!(!(FORMATS[0].render)(&Summary::new(&run(), records.clone()), &run()).contains(COLUMN));
        for record in records.iter_mut().filter(|record| record.trial.engine != "null") {
            let many = if record.trial.engine == "lmdb" { 30 } else { 1 };
            let phase = &mut record.phases[0];
            phase.stalls = (1..=many).map(|length_ms| stall(10 + length_ms, None)).collect();
        }
        let text = (FORMATS[0].render)(&Summary::new(&run(), records), &run());
        let place = text.find(COLUMN).unwrap();
        let rows: Vec<&str> = text[place..].lines().skip(2).take_while(|line| !line.is_empty()).collect();
        let of = |name: &str| rows.iter().filter(|row| row.starts_with(name)).count();
        assert!(of("lmdb") > 1 && of("fjall") >= 1, "{rows:#?}");
        assert!(rows[0].contains("2.50s") && rows.iter().any(|row| row.contains("40.0ms")), "{rows:#?}");
        assert!(rows.len() <= ROWS + 4, "the shortest of many are not shown: {rows:#?}");
    }
}
