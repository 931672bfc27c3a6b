//! The tables of a phase with faults: each fault and what it did to the service, the errors that clients saw, and what became of
//! acknowledged writes.

use super::describe::cell_name;
use super::figure::{UNKNOWN, known, rate, time};
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_core::results::{Disturbed, FaultRecord, Record};
use kvdyno_measure::text::{Align, Table, counted, grouped, plain_text};

/// The legend of the tables, for the end of a report.
pub(super) const LEGEND: &str = "Faults: times are from the moment at which counting began. until: when the member was started or continued, its link restored, or its disk as fast as before. delayed syncs: sync calls of a member with a slow disk, and by how much each was delayed. no service: the longest time in which no thread had an acknowledgement, of those whose middle is between the fault and the next fault or the end of the phase; it begins with the last acknowledgement before it and ends with the first after it, by the clock of the threads; < 10 ms: there was no such time of 10 ms or more; at least: the phase ended in such a time, so nobody knows how long it would have lasted. times, in all: the number of these times of 10 ms or more, and their sum. one thread: the longest time in which one of the threads had none. back: the time from the fault to the begin of the first second with 90 % of the median rate before the fault, after the longest time without service; - if the rate was not back in time, or less than a second was before the fault. failed writes: they may or may not have taken effect, at any later time; both are right. read back: keys that the phase wrote and that were read again when all members ran. lost: of these, keys without their acknowledged value. stale reads: reads that returned an older value than one that was acknowledged before they began.";

/// The least time without service that is told.
const LEAST: &str = "< 10 ms";

/// The tables of a phase with their titles; empty without faults.
pub(super) fn tables(phase: &PhaseSummary, records: &[Record]) -> Vec<(&'static str, Table)> {
    let mut faults = Table::with_titles(&[
        ("engine", Align::Left),
        ("run", Align::Right),
        ("fault", Align::Left),
        ("member", Align::Left),
        ("at", Align::Right),
        ("until", Align::Right),
        ("delayed syncs", Align::Right),
        ("no service", Align::Right),
        ("times", Align::Right),
        ("in all", Align::Right),
        ("one thread", Align::Right),
        ("ops/s before", Align::Right),
        ("back", Align::Right),
    ]);
    let mut writes = Table::with_titles(&[
        ("engine", Align::Left),
        ("run", Align::Right),
        ("writes", Align::Right),
        ("failed writes", Align::Right),
        ("read back", Align::Right),
        ("lost", Align::Right),
        ("stale reads", Align::Right),
    ]);
    let mut errors = Table::with_titles(&[
        ("engine", Align::Left),
        ("run", Align::Right),
        ("op", Align::Left),
        ("errors", Align::Right),
        ("first", Align::Right),
        ("last", Align::Right),
        ("error", Align::Left),
    ]);
    for (cell, record, found) in all(phase, records) {
        let (engine, run) = (cell_name(cell), record.trial.repetition.to_string());
        for fault in &found.faults {
            faults.push(vec![
                engine.clone(),
                run.clone(),
                plain_text(&format!("{} {}", fault.kind.name(), fault.target)),
                plain_text(&fault.member),
                time(fault.at_ns),
                known(fault.until_ns, time),
                known(delayed(fault), |text| text),
                fault.without_service_ns.map_or_else(|| LEAST.to_string(), |ns| least(is_cut_off(fault), ns)),
                known(fault.without_service_times, grouped),
                known(fault.without_service_sum_ns, |ns| least(is_cut_off(fault), ns)),
                fault.thread_waited_ns.map_or_else(
                    || LEAST.to_string(),
                    |ns| least(fault.thread_waited_at_end == Some(true), ns),
                ),
                known(fault.rate_before, rate),
                known(fault.recovered_after_ns, time),
            ]);
        }
        writes.push(vec![
            engine.clone(),
            run.clone(),
            grouped(found.acknowledged_writes),
            grouped(found.doubtful_writes),
            known(found.read_back, grouped),
            known(found.lost, grouped),
            grouped(found.stale_reads),
        ]);
        for error in &found.errors {
            errors.push(vec![
                engine.clone(),
                run.clone(),
                plain_text(&error.op),
                grouped(error.count),
                time(error.first_ns),
                time(error.last_ns),
                plain_text(&error.text),
            ]);
        }
    }
    let tables = [("Faults", faults), ("Writes under faults", writes), ("Errors under faults", errors)];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

/// The runs of a phase with faults.
fn all<'a>(phase: &'a PhaseSummary, records: &'a [Record]) -> Vec<(&'a Cell, &'a Record, &'a Disturbed)> {
    let of_cell = |cell: &'a Cell| {
        let of = |trial: &str| records.iter().find(|record| record.trial.id == trial);
        let found = cell.runs.iter().filter_map(move |run| of(&run.trial));
        found.filter_map(move |record| Some((cell, record, of_record(record, &phase.name)?)))
    };
    phase.cells().flat_map(of_cell).collect()
}

/// What a record says of a phase's faults.
pub(super) fn of_record<'a>(record: &'a Record, phase: &str) -> Option<&'a Disturbed> {
    record.phases.iter().find(|found| found.phase.name == phase)?.disturbed.as_ref()
}

/// Whether any phase of the records has faults.
pub(super) fn has_any(records: &[Record]) -> bool {
    records.iter().flat_map(|record| &record.phases).any(|phase| phase.disturbed.is_some())
}

/// A line for each fault, and one for the writes of each run.
pub(super) fn brief(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for phase in &summary.phases {
        for (cell, record, found) in all(phase, &summary.records) {
            let run = match cell.runs.len() {
                0 | 1 => String::new(),
                _ => format!(", run {}", record.trial.repetition),
            };
            let who = format!("{}{run}", cell_name(cell));
            lines.extend(found.faults.iter().map(|fault| format!("{who}: {}", words(fault))));
            lines.push(format!("{who}: {}", of_writes(found)));
        }
    }
    lines
}

/// Whether the phase ended in a time without service: it, and the longest and the sum with it, may have been longer.
fn is_cut_off(fault: &FaultRecord) -> bool {
    fault.without_service_at_end_ns.is_some()
}

/// `246ms`, or `at least 246ms`.
fn least(is_cut_off: bool, ns: u64) -> String {
    if is_cut_off { format!("at least {}", time(ns)) } else { time(ns) }
}

/// `812 by 20.0ms`; none: no slow disk.
fn delayed(fault: &FaultRecord) -> Option<String> {
    let (count, delay) = (fault.delayed_syncs?, fault.sync_delay_ns?);
    Some(format!("{} by {}", grouped(count), time(delay)))
}

/// The times without service in words: `no service for at least 1.40s (the phase ended first), 3 times, at least 1.62s in all`.
fn service(fault: &FaultRecord) -> String {
    let Some(longest) = fault.without_service_ns else {
        return "no time without service of 10 ms or more".to_string();
    };
    let least = |ns: u64| least(is_cut_off(fault), ns);
    let end = match fault.without_service_at_end_ns {
        None => String::new(),
        Some(last) if last == longest => " (the phase ended first)".to_string(),
        Some(last) => format!(" (the phase ended after {} of another time)", time(last)),
    };
    let all = match (fault.without_service_times, fault.without_service_sum_ns) {
        (Some(times @ 2..), Some(sum)) => format!(", {} times, {} in all", grouped(times), least(sum)),
        _ => String::new(),
    };
    format!("no service for {}{end}{all}", least(longest))
}

/// A fault in words: `kill leader (member-1) at 5.00s: no service for 1.23s; 90 % of the rate after 1.80s`.
pub(super) fn words(fault: &FaultRecord) -> String {
    let what = format!("{} {}", fault.kind.name(), fault.target);
    let back = match (fault.rate_before, fault.recovered_after_ns) {
        (None, _) => String::new(),
        (Some(_), Some(ns)) => format!("; 90 % of the rate before after {}", time(ns)),
        (Some(_), None) => "; 90 % of the rate before was not reached again".to_string(),
    };
    let syncs = delayed(fault).map_or_else(String::new, |text| format!("delayed syncs: {text}; "));
    let service = service(fault);
    plain_text(&format!("{what} ({}) at {}: {syncs}{service}{back}", fault.member, time(fault.at_ns)))
}

fn of_writes(found: &Disturbed) -> String {
    let failed: u64 = found.errors.iter().map(|error| error.count).sum();
    let read_back = match (found.read_back, found.lost) {
        (Some(keys), Some(lost)) => {
            format!("{} read back, {} lost", counted(keys, "written key", "written keys"), grouped(lost))
        }
        _ => format!("writes were not read back ({UNKNOWN})"),
    };
    let stale = counted(found.stale_reads, "stale read", "stale reads");
    let errors = counted(failed, "op failed", "ops failed");
    let writes = counted(found.acknowledged_writes, "acknowledged write", "acknowledged writes");
    format!("{writes}: {read_back}, {stale}; {errors}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::FORMATS;
    use kvdyno_core::results::FaultKind;
    use kvdyno_core::results::OpErrors;
    use kvdyno_core::results::fixture::{records, run};

    pub(crate) fn disturbed() -> Disturbed {
        let fault = FaultRecord {
            kind: FaultKind::Kill,
            target: "leader".into(),
            member: "member-2".into(),
            at_ns: 5_000_000_000,
            until_ns: Some(9_000_000_000),
            without_service_ns: Some(1_230_000_000),
            without_service_at_ns: Some(4_999_000_000),
            without_service_times: Some(3),
            without_service_sum_ns: Some(1_620_000_000),
            thread_waited_ns: Some(1_400_000_000),
            thread_waited_at_end: Some(false),
            rate_before: Some(1_234.0),
            recovered_after_ns: Some(1_800_000_000),
            ..FaultRecord::default()
        };
        let quiet = FaultRecord {
            kind: FaultKind::Pause,
            target: "follower".into(),
            without_service_times: Some(0),
            without_service_sum_ns: Some(0),
            thread_waited_at_end: Some(false),
            ..FaultRecord::default()
        };
        let slow = FaultRecord {
            kind: FaultKind::Slow,
            target: "member 3".into(),
            sync_delay_ns: Some(20_000_000),
            delayed_syncs: Some(1_812),
            ..FaultRecord::default()
        };
        let error =
            OpErrors { op: "put".into(), text: "no answer".into(), count: 7, first_ns: 1, last_ns: 2 };
        Disturbed {
            faults: vec![fault, quiet, slow],
            errors: vec![error],
            acknowledged_writes: 12_345,
            doubtful_writes: 7,
            read_back: Some(999),
            lost: Some(0),
            stale_reads: 0,
        }
    }

    #[test]
    fn a_report_tells_what_faults_did_and_without_faults_nothing() {
        let mut records = records();
        let text = |records: &[Record]| (FORMATS[0].render)(&Summary::new(&run(), records.to_vec()), &run());
        let plain = text(&records);
        assert!(!plain.contains("no service") && brief(&Summary::new(&run(), records.clone())).is_empty());
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            record.phases[1].disturbed = Some(disturbed());
        }
        let told = text(&records);
        for word in [
            "kill leader",
            "member-2",
            "1.23s",
            "1.80s",
            "1.23k",
            "< 10 ms",
            "12,345",
            "no answer",
            "1,812 by 20.0ms",
        ] {
            assert!(told.contains(word), "no `{word}` in\n{told}");
        }
        assert!(told.contains("Faults: times are from the moment at which counting began."));
        let lines = brief(&Summary::new(&run(), records));
        let first = "kill leader (member-2) at 5.00s: no service for 1.23s, 3 times, 1.62s in all; 90 % of the rate before after 1.80s";
        assert!(lines[0].ends_with(first), "{}", lines[0]);
        let last =
            "12,345 acknowledged writes: 999 written keys read back, 0 lost, 0 stale reads; 7 ops failed";
        assert!(
            lines[2].contains("slow member 3")
                && lines[2].contains("delayed syncs: 1,812 by 20.0ms; no time"),
            "{}",
            lines[2]
        );
        assert!(lines[3].ends_with(last), "{}", lines[3]);
    }

    #[test]
    fn a_time_that_the_end_of_the_phase_cuts_off_is_at_least_what_is_printed() {
        let mut fault = FaultRecord { recovered_after_ns: None, ..disturbed().faults[0].clone() };
        (fault.without_service_times, fault.without_service_sum_ns) = (Some(1), Some(1_230_000_000));
        (fault.without_service_at_end_ns, fault.thread_waited_at_end) = (Some(1_230_000_000), Some(true));
        let first = "no service for at least 1.23s (the phase ended first); 90 %";
        assert!(words(&fault).contains(first), "{}", words(&fault));
        (fault.without_service_times, fault.without_service_sum_ns) = (Some(2), Some(1_500_000_000));
        fault.without_service_at_end_ns = Some(270_000_000);
        let other = "no service for at least 1.23s (the phase ended after 270ms of another time), 2 times, at least 1.50s in all; 90 %";
        assert!(words(&fault).contains(other), "{}", words(&fault));
        let mut records = records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            record.phases[1].disturbed = Some(Disturbed { faults: vec![fault.clone()], ..disturbed() });
        }
        let told = (FORMATS[0].render)(&Summary::new(&run(), records), &run());
        for word in ["at least 1.23s", "at least 1.50s", "at least 1.40s"] {
            assert!(told.contains(word), "no `{word}` in\n{told}");
        }
    }

    #[test]
    fn an_older_record_tells_neither_number_nor_sum() {
        let old = FaultRecord {
            without_service_times: None,
            without_service_sum_ns: None,
            thread_waited_at_end: None,
            ..disturbed().faults[0].clone()
        };
        assert!(words(&old).contains("no service for 1.23s; 90 %"), "{}", words(&old));
    }
}
