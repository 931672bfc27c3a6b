//! What an engine keeps anywhere but in its folder is not stored: the end of a trial and `kvdyno prove --only rules` open the
//! database again in a fresh process.

use super::command::{Printed, build_driver, prepared};
use std::path::Path;

/// Builds the engine into `folder/plugins`, and writes the workload `rows.toml`.
pub fn build(folder: &Path) {
    build_driver(folder, "cli/reopen.c");
    std::fs::create_dir(folder.join("outside")).unwrap();
    let workload = "name = \"rows\"\nabout = \"Rows.\"\nkeys = 300\nruns = 1\ndurability = \"none\"\n[[phase]]\n\
                    name = \"fill\"\nmix = { put = 1 }\ndistribution = \"sequential\"\neach_key = true\n";
    std::fs::write(folder.join("rows.toml"), workload).unwrap();
}

/// Runs the command on the engine that stores its rows like this; what it prints in one line.
fn with(folder: &Path, stores: &str, words: &str) -> (Option<i32>, String) {
    let mut command = prepared(folder, words);
    command.env("STORES", stores).env("OUTSIDE", folder.join("outside"));
    let Printed { code, stdout, stderr } = command.output().unwrap().into();
    (code, (stdout + &stderr).split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_run_fails_where_rows_are_not_in_the_folder_of_a_closed_database() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for (stores, code, wanted) in [
        ("file", 0, "reopen"),
        ("memory", 3, "sweep by get at the end: "),
        ("exit", 3, "sweep by get at the end: "),
        ("outside", 3, "the database's folder is empty"),
        // What lies elsewhere on purpose cannot be told from what lies in the folder.
        ("decoy", 0, "reopen"),
        ("crash", 1, "the fresh process that reopens the database ended with SIGABRT in `reopen`"),
        ("hang", 1, "reopen and sweep did not finish within 3 s"),
    ] {
        let stall = if stores == "hang" { 3 } else { 60 };
        let words = format!(
            "run rows.toml --engines reopen --runs 1 --quiet --full --plugins plugins --stall-seconds {stall}"
        );
        let (found, text) = with(folder.path(), stores, &words);
        assert_eq!(found, Some(code), "{stores}: {text}");
        assert!(text.contains(wanted), "{stores}: no `{wanted}` in {text}");
    }
}

#[test]
fn verify_is_red_where_rows_are_in_the_memory_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for (stores, code, wanted) in [
        ("file", 0, "green"),
        ("memory", 3, "closed, then reopened in a fresh process: "),
        ("exit", 3, "closed, then reopened in a fresh process: "),
        ("crash", 3, "closed, then reopened in a fresh process: it died of SIGABRT"),
    ] {
        let words = "prove --only rules reopen --plugins plugins --ops 100 --seconds 0.05";
        let (found, text) = with(folder.path(), stores, words);
        assert_eq!(found, Some(code), "{stores}: {text}");
        assert!(text.contains(wanted), "{stores}: no `{wanted}` in {text}");
    }
}
