//! Layouts on the command line: printed, as CSV, as files, at the end of a run, and what is refused.

use super::command::kvdyno;
use std::fs;
use std::path::Path;

const LAYOUTS: [&str; 6] = ["histogram", "sizes", "wide", "ranks", "seconds", "rounds"];

/// A run of a workload in rounds, in `runs` of the folder; returns what it printed.
fn run(folder: &Path, more: &str) -> String {
    let workload = "\
        layouts = [\"rounds\"]\n\
        keys = 100\nrounds = 3\n\
        [[phase]]\nname = \"insert\"\nmix = { insert = 1.0 }\nops = 400\neach_round = true\n\
        [[phase]]\nname = \"fetch\"\nmix = { get = 1.0 }\nops = 200\neach_round = true\n";
    fs::write(folder.join("small.toml"), workload).unwrap();
    let printed = kvdyno(
        folder,
        &format!("run small.toml --engines memory-btree --runs 2 --quiet --results runs {more}"),
    );
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    printed.stdout
}

#[test]
fn layouts_are_printed_as_csv_and_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(folder.path(), "");
    // The workload names its layout.
    assert!(ended.starts_with("small: memory-btree"), "{ended}");
    assert!(ended.contains("insert and fetch ops of 400 per batch\ninsert "), "{ended}");
    assert!(ended.contains("For the complete report") && ended.contains("\nresults: runs"), "{ended}");
    assert!(!ended.contains("ops/s, median"), "no overview: {ended}");
    let whole = kvdyno(folder.path(), "report runs --full");
    assert!(whole.stdout.contains("over 3 rounds"), "{}", whole.stdout);
    let sizes = kvdyno(folder.path(), "report runs --layout sizes");
    assert!(
        sizes.stdout.contains("insert (per second)\n    num_db_keys  memory-btree\n           1000 "),
        "{}",
        sizes.stdout
    );
    let csv = kvdyno(folder.path(), "report runs --layout sizes --format csv");
    let sizes: Vec<&str> = csv.stdout.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(sizes[..4], ["num_db_items", "400", "800", "1200"], "{}", csv.stdout);
    let both = kvdyno(folder.path(), "report runs --layout histogram,seconds");
    assert!(
        both.stdout.contains("== histogram ==") && both.stdout.contains("== seconds =="),
        "{}",
        both.stdout
    );
    let files = kvdyno(folder.path(), "report runs --layout histogram --out files");
    assert_eq!(files.code, Some(0), "{}", files.stderr);
    let first = folder.path().join("files/nb-1-100/100-memory-btree-insert.result");
    assert!(fs::read_to_string(&first).unwrap().contains("Runs: run 1 of 2"), "{}", files.stdout);
    assert!(folder.path().join("files/nb-2-100/100-memory-btree-fetch.result").is_file());
    // What is there stays.
    fs::remove_file(&first).unwrap();
    let again = kvdyno(folder.path(), "report runs --layout histogram --out files");
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    assert!(again.stderr.contains("already exists") && again.stderr.contains("--out"), "{}", again.stderr);
    assert!(!first.exists(), "something was written");
}

#[test]
fn a_report_in_a_layout_ends_with_the_problems_that_the_run_ended_with() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(folder.path(), "--paranoid");
    let printed = ended.split("results: ").next().unwrap();
    assert!(printed.contains("\nWarnings\n") && printed.contains("ended at guard pages"), "{ended}");
    let report = kvdyno(folder.path(), "report runs --layout rounds");
    assert_eq!(report.stdout, printed);
    let csv = kvdyno(folder.path(), "report runs --layout rounds --format csv");
    assert!(!csv.stdout.contains("Warnings"), "{}", csv.stdout);
    kvdyno(folder.path(), "report runs --layout rounds --out files");
    let mut files = fs::read_dir(folder.path().join("files/run-1")).unwrap();
    let text = fs::read_to_string(files.next().unwrap().unwrap().path()).unwrap();
    assert!(text.contains("\nWarnings\n--------\n"), "{text}");
}

#[test]
fn a_layout_asked_for_replaces_that_of_the_workload() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(folder.path(), "--layout histogram");
    assert!(ended.starts_with("Action: insert"), "{ended}");
    assert!(!ended.contains("per batch"), "{ended}");
    // A layout that does not apply is replaced by the overview.
    let ended = run(folder.path(), "--layout wide");
    assert!(ended.starts_with("run 20") && ended.contains("\nsmall: ops/s, median of 2 runs"), "{ended}");
}

#[test]
fn what_cannot_be_shown_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "");
    let refused = [
        ("report runs --layout histogramm", "did you mean `histogram`?"),
        ("report runs --layout wide", "it needs the phases of workload kvbench"),
        ("report runs --layout sizes --format json", "a layout cannot be printed as json"),
        ("report runs --layout sizes,rounds --format csv", "layouts have different columns"),
        ("report runs --out files", "--out requires --layout"),
        ("run fill-random --engines memory-btree --layout round", "did you mean `rounds`?"),
    ];
    for (words, told) in refused {
        let printed = kvdyno(folder.path(), words);
        assert_eq!((printed.code, printed.stdout.as_str()), (Some(2), ""), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(told), "{words}: {}", printed.stderr);
    }
    fs::write(
        folder.path().join("odd.toml"),
        "layouts = [\"bars\"]\n[[phase]]\nname = \"a\"\nmix = { put = 1.0 }\nops = 1\n",
    )
    .unwrap();
    let odd = kvdyno(folder.path(), "run odd.toml --engines memory-btree");
    assert_eq!(odd.code, Some(2), "{}", odd.stderr);
    assert!(
        odd.stderr.contains("unknown layout `bars`") && odd.stderr.contains("field `layouts`"),
        "{}",
        odd.stderr
    );
    assert!(!folder.path().join("kvdyno-results").exists(), "nothing was measured");
}

#[test]
fn the_help_names_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    for words in ["report --help", "run --help"] {
        let help = kvdyno(folder.path(), words).stdout;
        for layout in LAYOUTS {
            assert!(help.contains(layout), "{layout} is not in `{words}`");
        }
    }
}
