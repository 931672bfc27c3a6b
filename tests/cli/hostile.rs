//! Whatever a driver answers that it may not, or changes that is not its own: the trial is a record with the rule that it
//! broke, on engines that are checked and on floors, and `kvdyno prove --only rules` is red.

use super::command::{Printed, kvdyno, prepared};
use std::path::Path;
use std::process::Command;

/// The plug-in, with the example driver in it under another name.
fn build_plugin(folder: &Path, flags: &[&str]) {
    let plugins = folder.join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compile = |arguments: &[&str], source: &Path, made: &Path| {
        let built = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden"])
            .args(arguments)
            .arg("-I")
            .arg(root.join("driver/include"))
            .arg(source)
            .arg("-o")
            .arg(made)
            .status();
        assert!(built.expect("a C compiler named cc").success());
    };
    let rows = folder.join("rows.o");
    compile(&["-c", "-Dkv_plugin=example_plugin"], &root.join("engines/example/driver.c"), &rows);
    let object = rows.to_string_lossy();
    let flags: Vec<&str> = [&["-shared", "-pthread", &object], flags].concat();
    compile(&flags, &root.join("tests/cli/hostile.c"), &plugins.join("libkvdyno_hostile.so"));
}

fn build(folder: &Path) {
    build_plugin(folder, &[]);
    for (name, mix, more) in [
        ("get", "get = 1", ""),
        ("put", "put = 1", ""),
        ("delete", "delete = 1", ""),
        ("scan", "scan = 1", "scan = { rows = 50 }"),
        ("scan-all", "scan = 1", "scan = { rows = 0 }"),
        ("multi-get", "multi_get = 1", ""),
        ("merge", "merge = 1", "join = 4"),
        ("transaction", "transaction = 1", ""),
        ("begin", "put = 1", "transaction = \"whole\""),
    ] {
        let head = format!("name = \"{name}\"\nabout = \"One kind of op.\"\nkeys = 300\nruns = 1\n");
        let fill =
            "[[phase]]\nname = \"fill\"\nmix = { put = 1 }\ndistribution = \"sequential\"\neach_key = true\n";
        let phase = format!("{fill}[[phase]]\nname = \"only\"\nmix = {{ {mix} }}\nops = 300\n{more}\n");
        std::fs::write(folder.join(format!("{name}.toml")), head + "durability = \"none\"\n" + &phase)
            .unwrap();
    }
    let lists = "name = \"list\"\nabout = \"Lists.\"\nkeys = 300\nruns = 1\ndurability = \"none\"\n\
                 collections = { count = 7, type = \"list\" }\n[key]\nsize = 8\n[[phase]]\nname = \"only\"\n\
                 mix = { push = 1, pop = 1 }\nops = 300\n";
    std::fs::write(folder.join("list.toml"), lists).unwrap();
}

/// The workload, what the driver does, and what the record must say of it.
const FAULTS: &[(&str, &str, &str)] = &[
    ("get", "get/status/2", "status 2 (the key exists) for a get"),
    ("get", "get/status/4", "status 4 (conflict with another transaction) for a get"),
    ("get", "get/status/5", "status 5 (the transaction was aborted) for a get"),
    ("get", "get/status/6", "status 6 (no space left) for a get"),
    ("get", "get/status/7", "status 7 (key or value too large) for a get"),
    (
        "get",
        "get/status/8",
        "status 8 (not supported by this engine) for a get, although it declares that it supports this",
    ),
    ("get", "get/status/9", "a get counts as done but has no status"),
    ("get", "get/status/10", "status 10 (error without a text) for a get"),
    ("get", "get/status/77", "unknown status 77 for a get"),
    ("get", "get/length", "a get reports length"),
    ("get", "get/huge", "a get reports length 18446744073709551615"),
    ("get", "get/short", "a get is short although it needs only 1 bytes"),
    ("get", "get/mute", "execute returned status 10 without a text"),
    ("get", "get/idle", "a get counts as done but has no status"),
    ("get", "get/none-done", "without stop, deadline or error"),
    ("get", "get/less-done", "without stop, deadline or error"),
    ("get", "get/more-done", "after a call of"),
    ("get", "get/most-done", "`done` is 4294967295"),
    ("get", "get/kind", "changed the kind of a get"),
    ("get", "get/slot", "changed the slot of a get"),
    ("get", "get/flags", "changed the flags of a get"),
    ("get", "get/keyspace", "changed the keyspace of a get"),
    ("get", "get/split", "changed the split of a get"),
    ("get", "get/key", "changed the key's pointer of a get"),
    ("get", "get/value", "changed the value's pointer of a get"),
    ("get", "get/out", "changed the out buffer's pointer of a get"),
    ("get", "get/key-length", "changed the key's length of a get"),
    ("get", "get/out-size", "changed the out buffer's size of a get"),
    ("get", "get/due", "changed the due tick of a get"),
    ("get", "get/user", "changed the core's own word of a get"),
    ("get", "get/count", "changed the core's part of the batch"),
    ("get", "get/ops", "changed the core's part of the batch"),
    ("get", "get/deadline", "changed the core's part of the batch"),
    ("get", "get/stop", "changed the core's part of the batch"),
    ("get", "get/clock", "changed the core's part of the batch"),
    ("put", "put/status/1", "status 1 (not found) for a put"),
    ("put", "put/status/2", "status 2 (the key exists) for a put"),
    ("put", "put/status/3", "status 3 (the buffer is too small) for a put"),
    ("put", "put/status/6", "status 6 (no space left) for a put"),
    ("put", "put/status/8", "status 8 (not supported by this engine) for a put"),
    ("put", "put/status/77", "unknown status 77 for a put"),
    ("put", "put/none-done", "without stop, deadline or error"),
    ("put", "put/value-length", "changed the value's length of a put"),
    ("put", "put/limit", "changed the limit of a put"),
    ("delete", "delete/status/1", "status 1 (not found) for a delete"),
    ("delete", "delete/status/8", "status 8 (not supported by this engine) for a delete"),
    ("delete", "delete/less-done", "without stop, deadline or error"),
    ("scan", "scan/status/1", "status 1 (not found) for a scan"),
    ("scan", "scan/status/8", "status 8 (not supported by this engine) for a scan"),
    ("scan", "scan/rows", "a scan reports 51 rows, but 50 were requested"),
    ("scan", "scan/full", "a scan is short although it returned all 50 requested rows"),
    ("scan", "scan/short", "a scan is short although it needs only 1 of"),
    ("scan", "scan/length", "a scan reports length"),
    ("scan", "scan/limit", "changed the limit of a scan"),
    ("multi-get", "get/status/8", "status 8 (not supported by this engine) for a get"),
    ("multi-get", "get/half-group", "inside a group of joined ops"),
    ("merge", "merge/status/1", "status 1 (not found) for a merge"),
    ("merge", "merge/status/8", "status 8 (not supported by this engine) for a merge"),
    ("merge", "merge/half-group", "inside a group of joined ops"),
    ("transaction", "put/status/4", "status 4 (conflict with another transaction) for a put"),
    ("transaction", "put/half-group", "inside a group of joined ops"),
    ("begin", "begin/status/8", "status 8 (not supported by this engine) for a begin"),
    ("begin", "commit/status/4", "status 4 (conflict with another transaction) for a commit"),
    ("list", "push/status/8", "status 8 (not supported by this engine) for a push"),
    ("list", "pop/status/8", "status 8 (not supported by this engine) for a pop"),
    ("list", "pop/length", "a pop reports length"),
];

fn run(folder: &Path, engine: &str, workload: &str, fault: &str) -> Printed {
    let words = format!(
        "run {workload}.toml --engines {engine} --runs 1 --quiet --full --plugins plugins --stall-seconds 60 \
         --option {engine}.fault={fault}"
    );
    kvdyno(folder, &words)
}

#[test]
fn a_driver_that_breaks_a_rule_fails_its_trial_with_a_text_that_says_which() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let mut passed = Vec::new();
    for &(workload, fault, wanted) in FAULTS {
        for engine in ["hostile", "hostile-floor"] {
            let printed = run(folder.path(), engine, workload, fault);
            let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            if printed.code != Some(1) || !text.contains(wanted) || !text.contains("phase ") {
                let Printed { code, stdout, stderr } = printed;
                passed.push(format!("{engine}, {fault}: exit {code:?}, no `{wanted}`\n{stdout}{stderr}"));
            }
        }
    }
    assert!(passed.is_empty(), "{} passed:\n{}", passed.len(), passed.join("\n"));
}

#[test]
fn a_scan_that_never_ends_is_a_wrong_answer() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for (fault, wanted) in [("scan/same-row", "returned twice"), ("scan/next-row", "never written")] {
        let printed = run(folder.path(), "hostile", "scan-all", fault);
        assert_eq!(printed.code, Some(3), "{fault}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(printed.stdout.contains(wanted), "{fault}: no `{wanted}` in\n{}", printed.stdout);
    }
}

#[test]
fn a_floor_that_breaks_no_rule_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for workload in ["get", "put", "delete", "scan", "multi-get", "merge", "transaction", "begin", "list"] {
        let printed = run(folder.path(), "hostile-floor", workload, "none");
        assert_eq!(printed.code, Some(0), "{workload}\n{}\n{}", printed.stderr, printed.stdout);
    }
}

#[test]
fn verify_names_the_rule_that_a_floor_breaks() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for (fault, code, wanted) in [("none", 0, "green"), ("put/limit", 3, "changed the limit of a put")] {
        let words = "prove --only rules hostile-floor --plugins plugins --ops 100 --seconds 0.05";
        let printed: Printed =
            prepared(folder.path(), words).env("HOSTILE_FAULT", fault).output().unwrap().into();
        assert_eq!(printed.code, Some(code), "{fault}\n{}", printed.stdout);
        assert!(printed.stdout.contains(wanted), "{fault}\n{}", printed.stdout);
    }
}

/// What the driver does with memory, and what is said of it: where it dies, and where it is seen after the call.
const MEMORY: &[(&str, &str, &str)] = &[
    ("get", "get/over", "SIGSEGV: rule 5: the driver touched byte 1 past the out buffer of a get"),
    ("get", "get/far-over", "SIGSEGV: rule 5: the driver touched byte 1 past the out buffer of a get"),
    ("get", "get/key-past", "SIGSEGV: rule 5: the driver touched byte 1 past the key of a get"),
    ("put", "put/value-past", "SIGSEGV: rule 5: the driver touched byte 1 past the value of a put"),
    ("get", "get/under", "rule 5: the driver wrote before the out buffer of a get"),
    ("get", "get/far-under", "rule 5: the driver wrote before the out buffer of a get"),
    ("get", "get/key-write", "rule 5: the driver changed the key of a get"),
    ("put", "put/value-write", "rule 5: the driver changed the value of a put"),
];

/// `text` without the layout of a table.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn verify(folder: &Path, engine: &str, fault: &str) -> Printed {
    let words =
        format!("prove --only rules {engine} --plugins plugins --ops 50 --seconds 0.02 --stall-seconds 60");
    prepared(folder, &words).env("HOSTILE_FAULT", fault).output().unwrap().into()
}

#[test]
fn memory_that_is_not_the_drivers_is_named_in_a_paranoid_run() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let mut passed = Vec::new();
    for &(workload, fault, wanted) in MEMORY {
        let words = format!(
            "run {workload}.toml --engines hostile-floor --runs 1 --quiet --full --plugins plugins --paranoid \
             --option hostile-floor.fault={fault}"
        );
        let run = kvdyno(folder.path(), &words);
        // A record has the signal and the last words apart.
        let text = wanted.trim_start_matches("SIGSEGV: ");
        let is_named =
            words_of(&run.stdout).contains(text) && (text == wanted || run.stdout.contains("SIGSEGV"));
        if run.code != Some(1) || !is_named {
            passed.push(format!("run, {fault}: exit {:?}\n{}{}", run.code, run.stdout, run.stderr));
        }
    }
    assert!(passed.is_empty(), "{} passed:\n{}", passed.len(), passed.join("\n"));
}

#[test]
fn guard_pages_disturb_no_honest_driver_and_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for (engine, workload) in [("memory-btree", "scan"), ("memory-btree", "put"), ("hostile-floor", "get")] {
        let words =
            format!("run {workload}.toml --engines {engine} --runs 1 --quiet --plugins plugins --paranoid");
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{engine} {workload}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(words_of(&printed.stdout).contains("guard pages"), "{}", printed.stdout);
    }
}

#[test]
fn texts_that_do_not_end_and_levels_that_there_are_not_are_faults_of_the_driver() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    for (fault, wanted) in [
        ("text/version", "the driver's version does not end within 64 bytes"),
        ("text/compression", "the driver's compression does not end within 32 bytes"),
        ("text/options", "the driver's list of options does not end within 2048 bytes"),
        ("text/level", "unknown effective level 7"),
        ("text/stats", "the driver's list of stats does not end within 65536 bytes"),
        ("text/error", "truncated: the driver's text does not end within 232 bytes"),
    ] {
        let run = run(folder.path(), "hostile-floor", "get", fault);
        let text = words_of(&run.stdout);
        assert!(
            run.code == Some(1) && text.contains(wanted),
            "{fault}: {:?}\n{text}{}",
            run.code,
            run.stderr
        );
        let verified = verify(folder.path(), "hostile-rows", fault);
        assert_eq!(verified.code, Some(3), "{fault}\n{}", verified.stdout);
    }
}

#[test]
fn a_driver_whose_name_does_not_end_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    build_plugin(folder.path(), &["-DENDLESS_NAME"]);
    let printed = kvdyno(folder.path(), "engines --plugins plugins");
    let text = words_of(&(printed.stdout + &printed.stderr));
    assert!(text.contains("the driver's name does not end within 4096 bytes"), "{text}");
}

#[test]
fn a_driver_that_prints_is_found() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let run_rows = |fault: &str| -> Printed {
        let words = "run get.toml --engines hostile-rows --runs 1 --quiet --full --plugins plugins";
        prepared(folder.path(), words).env("HOSTILE_FAULT", fault).output().unwrap().into()
    };
    for (fault, stream) in [("get/print", "stdout"), ("get/print-error", "stderr")] {
        let printed = run_rows(fault);
        assert_eq!(printed.code, Some(0), "{fault}: {}\n{}", printed.stderr, printed.stdout);
        let text = words_of(&printed.stdout);
        assert!(text.contains("The driver or its engine printed"), "{fault}: {text}");
        assert!(text.contains(&format!("owned?from the driver ({stream})")), "{fault}: {text}");
        let verified = verify(folder.path(), "hostile-rows", fault);
        assert_eq!(verified.code, Some(3), "{fault}: {}", verified.stdout);
        assert!(verified.stdout.contains("output: in check "), "{fault}: {}", verified.stdout);
        for printed in [printed, verified] {
            assert!(
                !(printed.stdout + &printed.stderr).contains('\x1b'),
                "{fault}: an escape reached the terminal"
            );
        }
    }
    let printed = run_rows("none");
    assert!(!printed.stdout.contains("printed"), "{}", printed.stdout);
}

#[test]
fn a_process_that_outlives_the_trial_does_not_hold_up_the_run() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let begun = std::time::Instant::now();
    let printed = run(folder.path(), "hostile-floor", "get", "get/fork");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert!(begun.elapsed().as_secs() < 55, "it waited for what the driver had started");
}

#[test]
fn verify_is_red_for_every_fault_of_a_driver_that_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let green = verify(folder.path(), "hostile-rows", "none");
    assert_eq!(green.code, Some(0), "without a fault\n{}", green.stdout);
    let is_kept = |workload: &str| matches!(workload, "get" | "put" | "delete" | "scan");
    let faults = FAULTS.iter().filter(|(workload, ..)| is_kept(workload)).map(|(_, fault, _)| *fault);
    let passed: Vec<String> = faults
        .filter_map(|fault| {
            let printed = verify(folder.path(), "hostile-rows", fault);
            let is_red = printed.code == Some(3) && printed.stdout.contains("RED");
            (!is_red).then(|| format!("{fault}: exit {:?}\n{}", printed.code, printed.stdout))
        })
        .collect();
    assert!(passed.is_empty(), "{} passed:\n{}", passed.len(), passed.join("\n"));
}
