//! A run in a folder of its own, and what its records say.

use super::command::kvdyno;
use serde_json::Value;
use std::path::Path;

/// The records of a run of one repetition, engine by engine, without the floor's unless it was asked for.
pub fn run(words: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), words)
}

/// The same, in a folder that the caller has filled.
pub fn run_in(folder: &Path, words: &str) -> Vec<Value> {
    let printed = kvdyno(folder, &format!("run {words} --runs 1 --quiet"));
    assert_eq!(printed.code, Some(0), "kvdyno run {words}\n{}\n{}", printed.stderr, printed.stdout);
    let report = kvdyno(folder, "report --format json");
    let json: Value = serde_json::from_str(&report.stdout).unwrap();
    let records = json["records"].as_array().unwrap().iter();
    let is_meant = |record: &&Value| words.contains("null") || record["trial"]["engine"] != "null";
    let records: Vec<Value> = records.filter(is_meant).cloned().collect();
    assert!(!records.is_empty(), "kvdyno run {words} left no record");
    records
}

/// A phase of a record.
pub fn phase<'a>(record: &'a Value, name: &str) -> &'a Value {
    let found = phases(record).iter().find(|phase| phase["phase"]["name"] == name);
    found.unwrap_or_else(|| panic!("no phase {name} in {}", record["trial"]["id"]))
}

/// All of them.
pub fn phases(record: &Value) -> &[Value] {
    record["phases"].as_array().map_or(&[], Vec::as_slice)
}

/// The kinds of ops that a phase counted.
pub fn kinds(phase: &Value) -> &[Value] {
    phase["kinds"].as_array().map_or(&[], Vec::as_slice)
}

/// A number of a record; panics where it is absent.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}
