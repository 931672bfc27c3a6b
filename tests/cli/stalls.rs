//! Stalls: what a thread waited for is told, and what was not seen is not.

use super::command::{kvdyno, skip};
use super::faults::build;
use serde_json::Value;

/// The stalls of a phase of the faulty engine, whose op in that phase sleeps for a second and a half, and the full report.
fn stalls(phase: &str, words: &str) -> (Vec<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let words = format!(
        "run quick --engines faulty,memory-btree --keys 2000 --ops 2000 --set sync.ops=20 --runs 1 --quiet --full --plugins \
         plugins --option faulty.fault={words}"
    );
    let printed = kvdyno(folder.path(), &words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let report = kvdyno(folder.path(), "report --format json");
    let json: Value = serde_json::from_str(&report.stdout).unwrap();
    let mut records = json["records"].as_array().unwrap().iter();
    let record = records.find(|record| record["trial"]["engine"] == "faulty").unwrap();
    let found = record["phases"].as_array().unwrap().iter().find(|found| found["phase"]["name"] == phase);
    let found = found.unwrap_or_else(|| panic!("no phase {phase}"));
    (found["stalls"].as_array().cloned().unwrap_or_default(), printed.stdout)
}

#[test]
fn an_op_that_sleeps_is_the_longest_stall_and_is_seen_in_its_call() {
    // A thread that loses its processor just before the op is not seen within it, and one whose page the kernel has taken is
    // blocked on its way into the call.
    let is_seen = |stalls: &[Value]| stalls.first().is_some_and(|stall| stall["seen"]["blocked"] == 0);
    let mut found = stalls("fill", "sleep");
    for _ in 0..2 {
        if !is_seen(&found.0) {
            found = stalls("fill", "sleep");
        }
    }
    let (stalls, report) = found;
    let longest = stalls.first().expect("no stall");
    assert_eq!(longest["kind"], "put", "{longest}");
    assert!(longest["length_ns"].as_u64() >= Some(1_500_000_000), "{longest}");
    let Some(seen) = longest.get("seen") else { return skip("thread states", "nobody looked within 1.5 s") };
    let span = seen["span_ns"].as_u64().unwrap();
    assert!(span > 0 && span <= longest["length_ns"].as_u64().unwrap(), "{longest}");
    if seen.get("calls").is_none() {
        return skip("thread states", "the kernel does not tell the call that a thread is in");
    }
    let looks = seen["looks"].as_u64().unwrap();
    assert!(looks >= 20, "{longest}");
    let (call, count) = (seen["calls"][0][0].as_str().unwrap(), seen["calls"][0][1].as_u64().unwrap());
    assert!(call.ends_with("nanosleep") && count * 10 >= looks * 9, "{longest}");
    assert_eq!(seen["blocked"], 0, "{longest}");
    assert!(seen["cpu_ns"].as_u64() < Some(span / 10), "{longest}");
    let text = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("in {call} 100 %")) || text.contains(&format!("in {call} 9")), "{report}");
}

#[test]
fn a_phase_without_a_long_op_has_no_stall_of_it() {
    let (stalls, _) = stalls("fill", "sleep-later");
    let long = stalls.iter().filter(|stall| stall["length_ns"].as_u64() >= Some(1_500_000_000));
    assert_eq!(long.count(), 0, "the op that sleeps is in a later phase");
}
