//! The table of stale reads of a phase, and a line for each engine that had any.

use super::describe::cell_name;
use super::figure::{UNKNOWN, known, time};
use kvdyno_core::results::Kind;
use kvdyno_core::results::Staleness;
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_measure::text::{Align, Table, counted, grouped, plain_text, share_text, time_text};

/// The legend of the table, for the end of a report.
pub(super) const LEGEND: &str = "Stale reads: only of stores whose reads may return older values than acknowledged ones; all runs together, scans not counted. stale: reads that returned an older state than one that was acknowledged before they began. missed: of these, reads that found nothing although the key was there. versions: how many newer versions were acknowledged before. age: the time from the acknowledgement of the first newer version to the begin of the read. An age is from below. Where several threads write a key, some stale reads are not found, and versions count in the order in which they were sent. unknown age: stale reads whose newer versions were acknowledged too long ago to be remembered; the longest age is then followed by `or more`.";

/// Quantiles are shown as in the tables of service times: only with ten values beyond them.
const QUANTILES: [(u64, u64); 2] = [(1, 2), (99, 100)];

/// The table of a phase with its title; none if no engine had reads that may be stale.
pub(super) fn table(phase: &PhaseSummary) -> Option<(&'static str, Table)> {
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("reads", Align::Right),
        ("stale", Align::Right),
        ("share", Align::Right),
        ("missed", Align::Right),
        ("versions p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("age p50", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("unknown age", Align::Right),
    ]);
    for (cell, found) in all(phase) {
        let mut row = vec![cell_name(cell)];
        match found {
            Some(found) => row.extend(figures(found)),
            None => row.resize(12, UNKNOWN.to_string()),
        }
        table.push(row);
    }
    (!table.is_empty()).then_some(("Stale reads", table))
}

/// The cells of a phase whose reads may be stale; none: which reads were stale is not known.
fn all(phase: &PhaseSummary) -> impl Iterator<Item = (&Cell, Option<&Staleness>)> {
    let may_be = |cell: &&Cell| cell.class.kind == Kind::Stale && cell.counted_runs > 0;
    let reads = |cell: &&Cell| cell.staleness.as_ref().is_none_or(|found| found.reads > 0);
    let has_gets = phase.settings.mix.kinds().any(|kind| kind.gets()) || phase.settings.readers > 0;
    phase
        .cells()
        .filter(may_be)
        .filter(reads)
        .filter(move |_| has_gets)
        .map(|cell| (cell, cell.staleness.as_ref()))
}

fn figures(found: &Staleness) -> Vec<String> {
    let mut row = vec![
        grouped(found.reads),
        grouped(found.stale),
        known(found.share(), share_text),
        grouped(found.missed),
    ];
    let of = |(numerator, denominator)| found.versions.quantile_if_enough(numerator, denominator);
    row.extend(QUANTILES.map(|quantile| known(of(quantile), grouped)));
    row.push(known(found.versions.max_ns(), |most| or_more(grouped(most), found.of_unknown_version() > 0)));
    let of = |(numerator, denominator)| found.age_ns.quantile_if_enough(numerator, denominator);
    row.extend(QUANTILES.map(|quantile| known(of(quantile), time)));
    row.push(known(found.longest_ns(), |(most, is_open)| or_more(time(most), is_open)));
    row.push(grouped(found.of_unknown_age()));
    row
}

fn or_more(text: String, is_open: bool) -> String {
    if is_open { format!("{text} or more") } else { text }
}

/// Whether any engine had reads that may be stale.
pub(super) fn has_any(summary: &Summary) -> bool {
    summary.phases.iter().any(|phase| all(phase).next().is_some())
}

/// A line for each cell whose reads may be stale.
pub(super) fn brief(summary: &Summary) -> Vec<String> {
    let several = summary.phases.len() > 1;
    let of = |phase: &PhaseSummary| -> Vec<String> {
        let name = if several { format!(", {}", phase.name) } else { String::new() };
        let line = |(cell, found): (&Cell, Option<&Staleness>)| {
            plain_text(&format!("{}{name}: {}", cell_name(cell), words(found)))
        };
        all(phase).map(line).collect()
    };
    summary.phases.iter().flat_map(of).collect()
}

/// `21 of 3,604 reads stale, at most 1 version and 1.80 ms old`.
fn words(found: Option<&Staleness>) -> String {
    let Some(found) = found else { return "how many reads were stale is not known".to_string() };
    let of = format!("of {}", counted(found.reads, "read", "reads"));
    if found.stale == 0 {
        return format!("no stale reads {of}");
    }
    let stale = format!("{} {of} stale", grouped(found.stale));
    let Some(versions) = found.versions.max_ns() else { return format!("{stale}, of unknown age") };
    let versions = counted(versions, "version", "versions");
    let (age, is_open) = match found.longest_ns() {
        Some((most, is_open)) => (format!(" and {}", time_text(most as f64)), is_open),
        None => (String::new(), true),
    };
    let bound = if is_open || found.of_unknown_version() > 0 { "the oldest at least" } else { "at most" };
    format!("{stale}, {bound} {versions}{age} old")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use kvdyno_core::results::Record;
    use kvdyno_core::results::fixture::{records, run};

    fn found(ages: &[(u64, u64)], unknown: u64) -> Staleness {
        let mut found = Staleness { reads: 3_604, missed: 1, ..Staleness::default() };
        for (versions, ns) in ages {
            found.versions.record(*versions);
            found.age_ns.record(*ns);
        }
        found.stale = ages.len() as u64 + unknown;
        found
    }

    /// The records of the fixture, with lmdb as a store with stale reads.
    fn stale(of_read: &Staleness) -> Vec<Record> {
        let mut records = records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            let mut engine = record.engine.as_deref().unwrap().clone();
            let own = [("class", "distributed, one machine"), ("stale_reads", "possible")];
            engine.options.extend(own.map(|(name, value)| (name.to_string(), value.to_string())));
            record.engine = Some(std::sync::Arc::new(engine));
            let phase = record.phases.iter_mut().find(|phase| phase.phase.name == "read").unwrap();
            phase.staleness = Some(of_read.clone());
        }
        records
    }

    #[test]
    fn a_report_tells_how_stale_reads_were_and_otherwise_nothing() {
        let text = |records: &[Record]| (FORMATS[0].render)(&Summary::new(&run(), records.to_vec()), &run());
        let plain = text(&records());
        assert!(!plain.contains("Stale reads") && brief(&Summary::new(&run(), records())).is_empty());
        let told = stale(&found(&[(1, 1_800_000), (3, 900_000)], 1));
        let shown = text(&told);
        for word in ["Stale reads", "10,812", "0.08 %", "3 or more", "1.80ms or more", "with stale reads"] {
            assert!(shown.contains(word), "no `{word}` in\n{shown}");
        }
        assert!(shown.contains("Stale reads: only of stores whose reads may return older values"));
    }

    #[test]
    fn one_line_tells_the_worst() {
        let line = |found: &Staleness| words(Some(found));
        assert_eq!(
            line(&found(&[(1, 1_800_000), (1, 5)], 0)),
            "2 of 3,604 reads stale, at most 1 version and 1.8 ms old"
        );
        assert_eq!(
            line(&Staleness { at_least_ns: Some(5_000_000_000), ..found(&[(2, 7)], 1) }),
            "2 of 3,604 reads stale, the oldest at least 2 versions and 5 s old"
        );
        assert_eq!(line(&found(&[], 3)), "3 of 3,604 reads stale, of unknown age");
        assert_eq!(line(&found(&[], 0)), "no stale reads of 3,604 reads");
        assert_eq!(words(None), "how many reads were stale is not known");
    }

    #[test]
    fn stores_with_stale_reads_are_ranked_by_themselves() {
        let summary = Summary::new(&run(), stale(&found(&[], 0)));
        let phase = summary.phases.iter().find(|phase| phase.name == "read").unwrap();
        for group in &phase.groups {
            let is_stale = |cell: &Cell| cell.class.kind == Kind::Stale;
            assert!(group.cells.iter().all(is_stale) || !group.cells.iter().any(is_stale));
        }
        let own = phase.cells().find(|cell| cell.class.kind == Kind::Stale).unwrap();
        assert_eq!(own.class_words.as_deref(), Some("distributed with stale reads, one machine"));
        assert_eq!(own.rank.map(|rank| rank.of), Some(1));
    }
}
