//! The limits of trials, and their memory use under a cap.

use super::figure::{bytes, known};
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Record, Run, Trial};
use kvdyno_measure::text::{Align, Field, Table, bytes_text, grouped, listed, plain_text};
use kvdyno_measure::{CapRecord, CapUse};

/// The legend of the table.
pub(super) const LEGEND: &str = "peak: the maximum memory in use, harness and page cache included. cap hits: the number \
    of times that memory use reached the cap. page cache and anonymous: at the end of the last phase. pages read again: \
    file pages read again after the kernel had evicted them. Each figure is the maximum over all runs.";

/// The limits in one line; `None` without limits.
pub(super) fn limits(run: &Run) -> Option<String> {
    let mut parts = Vec::new();
    let caps = distinct(run, |trial| trial.workload.memory_bytes.map(bytes_text));
    if !caps.is_empty() {
        parts.push(format!("memory capped at {}, page cache and harness included", listed(&caps, "and")));
    }
    let cpus = distinct(run, |trial| trial.placement.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")));
    let nodes = distinct(run, |trial| trial.placement.numa_node.map(|node| format!("NUMA node {node}")));
    parts.extend(cpus.into_iter().chain(nodes));
    if run.plan.trials.iter().any(Trial::is_foreign) {
        parts.push(
            "on copies of a database that another program made: its values were not checked".to_string(),
        );
    } else if run.plan.trials.iter().any(|trial| trial.reused) {
        parts.push("started from copies of kept databases, without the fill phases".to_string());
    }
    if run.plan.trials.iter().any(|trial| trial.paranoid) {
        parts.push(
            "guard pages after keys, values and out buffers (--paranoid), which slow all engines down"
                .to_string(),
        );
    }
    if run.plan.trials.iter().any(|trial| trial.counts_cycles) {
        parts.push("cycles counted (--count-cycles), which makes context switches slower".to_string());
    }
    if run.plan.trials.iter().any(|trial| trial.counts_calls) {
        parts.push("system calls counted (kvdyno guard), which makes them slow".to_string());
    }
    (!parts.is_empty()).then(|| plain_text(&parts.join("; ")))
}

fn distinct(run: &Run, of: impl Fn(&Trial) -> Option<String>) -> Vec<String> {
    let mut seen = Vec::new();
    for text in run.plan.trials.iter().filter_map(of) {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

/// The workloads with a cap, each with a table that has a row for each engine measured under the cap.
pub(super) fn tables(summary: &Summary) -> Vec<(String, Table)> {
    let mut capped: Vec<&Record> =
        summary.records.iter().filter(|record| record.memory_cap.is_some()).collect();
    capped.sort_by_key(|record| record.trial.order);
    let mut workloads: Vec<&str> = summary.phases.iter().map(|phase| phase.workload.as_str()).collect();
    workloads.dedup();
    workloads.retain(|name| capped.iter().any(|record| record.trial.workload.name == *name));
    let of = |name: &str| {
        let own = capped.iter().filter(|record| record.trial.workload.name == name);
        (
            plain_text(&format!("{name} / memory under the cap")),
            table(summary, &own.copied().collect::<Vec<_>>()),
        )
    };
    workloads.into_iter().map(of).collect()
}

/// The label and the records of a cell.
type Runs<'a> = (String, Vec<&'a Record>);

fn table(summary: &Summary, records: &[&Record]) -> Table {
    let mut cells: Vec<Runs> = Vec::new();
    for record in records {
        let label = summary.labels.of(&record.trial.engine, &record.trial.options);
        match cells.iter_mut().find(|(seen, _)| *seen == label) {
            Some((_, own)) => own.push(record),
            None => cells.push((label, vec![record])),
        }
    }
    let fields: [Field<Runs>; 8] = [
        ("engine", Align::Left, |own| own.0.clone()),
        ("cap", Align::Right, |own| known(most(own, |record| cap(record)?.limit_bytes), bytes)),
        ("peak", Align::Right, |own| known(most(own, |record| cap(record)?.peak_bytes), bytes)),
        ("cap hits", Align::Right, |own| known(most(own, |record| cap(record)?.limit_hits), grouped)),
        ("page cache", Align::Right, |own| {
            known(most(own, |record| at_end(record, |found| found.page_cache_bytes)), bytes)
        }),
        ("anonymous", Align::Right, |own| {
            known(most(own, |record| at_end(record, |found| found.anonymous_bytes)), bytes)
        }),
        ("pages read again", Align::Right, |own| {
            known(most(own, |record| at_end(record, |found| found.refaulted_pages)), grouped)
        }),
        ("kills", Align::Right, |own| known(most(own, |record| cap(record)?.kills), grouped)),
    ];
    Table::of(&fields, &cells)
}

/// The maximum of a figure over the runs of a cell.
fn most(own: &Runs, of: fn(&Record) -> Option<u64>) -> Option<u64> {
    own.1.iter().filter_map(|record| of(record)).max()
}

fn cap(record: &Record) -> Option<&CapRecord> {
    record.memory_cap.as_ref()
}

fn at_end(record: &Record, of: fn(&CapUse) -> Option<u64>) -> Option<u64> {
    record.phases.iter().rev().find_map(|phase| phase.cap_use.as_ref().and_then(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use kvdyno_core::results::fixture::{records, run};
    use kvdyno_core::results::summary::Summary;
    use kvdyno_measure::Placement;
    use std::sync::Arc;

    #[test]
    fn limits_and_memory_use_are_shown_and_unknown_values_are_a_dash() {
        let (mut run, mut records) = (run(), records());
        let pinned = Placement { cpus: Some("0-1".into()), numa_node: Some(0) };
        for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
            Arc::make_mut(&mut trial.workload).memory_bytes = Some(32 << 20);
            trial.placement = pinned.clone();
        }
        for record in records.iter_mut().filter(|record| record.trial.engine == "redb") {
            record.memory_cap = Some(CapRecord {
                version: "v1".into(),
                limit_bytes: Some(32 << 20),
                peak_bytes: Some(31 << 20),
                limit_hits: Some(1234),
                kills: None,
            });
            record.phases[0].cap_use = Some(CapUse { page_cache_bytes: Some(20 << 20), ..CapUse::default() });
        }
        let text = (FORMATS[0].render)(&Summary::new(&run, records), &run);
        let limits =
            "limits     memory capped at 32 MiB, page cache and harness included; CPUs 0-1; NUMA node 0";
        assert!(text.contains(limits), "{text}");
        let place = text.find("quick / memory under the cap").unwrap();
        let row = text[place..].lines().find(|line| line.starts_with("redb")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["redb", "32MiB", "31MiB", "1,234", "20MiB", "-", "-", "-"]);
    }
}
