//! The promises of driver.h, rule by rule and kit by kit: which check of `kvdyno prove --only rules` shows each on an honest driver of
//! that kit, and which test shows that a driver that breaks it is found. The checks are run here.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The kits, each with a driver that is always built.
const KITS: [(&str, &str); 4] =
    [("C", "example"), ("C++", "example-cpp"), ("Rust", "memory-btree"), ("Go", "example-go")];

/// A promise of driver.h.
struct Promise {
    /// The number of its rule.
    rule: u8,
    what: &'static str,
    /// The checks of verify that show it, for a driver of every kit.
    checks: &'static [&'static str],
    /// For each kit, a test of it: a file, and a text in it. Empty: the core keeps the promise for every kit in the same way,
    /// and the tests in `core` show it.
    kits: [(&'static str, &'static str); 4],
    core: &'static [(&'static str, &'static str)],
}

const NOT_OF_KITS: [(&str, &str); 4] = [("", ""); 4];
const C: &str = "engines/example/test.c";
const C_FAULTS: &str = "tests/cli/hostile.rs";
const FAULTS: &str = "tests/hostile.rs";
const RUST: &str = "engines/memory/tests.rs";
const GO: &str = "driver/go/run_test.go";
const GO_OPS: &str = "driver/go/op_test.go";
const LIARS: &str = "tests/cli/liars.rs";
const LOADING: &str = "tests/cli/loading.rs";

#[rustfmt::skip]
const PROMISES: &[Promise] = &[
    Promise {
        rule: 1, what: "one symbol, whose list and tables begin with the ABI number",
        checks: &["open"],
        kits: [("tests/abi.rs", "the_header_is_valid_cpp_too"), ("tests/abi.rs", "the_header_is_valid_cpp_too"),
               ("tests/abi.rs", "header_and_mirror_have_the_same_layout_and_constants"), ("driver/go/glue.go", "The layout of abi.go must equal that of driver.h")],
        core: &[(LOADING, "a_plugin_that_cannot_be_loaded_is_one_line_with_its_name_and_reason")],
    },
    Promise {
        rule: 2, what: "a table has eight entries, each of which can fail with a text",
        checks: &["open", "sessions", "maintain"],
        kits: [(C_FAULTS, "texts_that_do_not_end_and_levels_that_there_are_not_are_faults_of_the_driver"),
               (FAULTS, r#"("cpp", "maintain/throw""#), (FAULTS, r#"("rust", "maintain/panic""#), (FAULTS, r#"("go", "maintain/panic""#)],
        core: &[],
    },
    Promise {
        rule: 3, what: "ops run in order, `done` counts them, and stop and deadline end a batch between two ops",
        checks: &["basics", "model", "stop-word", "deadline"],
        kits: [(C, "stops_when_told"), (FAULTS, r#"("cpp", "get-not-run""#),
               (RUST, "a_batch_ends_at_the_stop_word_and_the_deadline_and_waits_for_due_ops"),
               (GO, "TestTheStopWordEndsABatchBetweenTwoOps")],
        core: &[(C_FAULTS, r#"("get", "get/none-done""#), (C_FAULTS, r#"("get", "get/less-done""#)],
    },
    Promise {
        rule: 3, what: "the core's half of an op is only read",
        checks: &["basics"],
        kits: [(C_FAULTS, r#"("get", "get/kind""#), (FAULTS, r#"("cpp", "raw-kind""#), (FAULTS, r#"("rust", "raw-kind""#),
               (FAULTS, r#"("go", "get-writes-key""#)],
        core: &[],
    },
    Promise {
        rule: 4, what: "each op has a status that is an answer, and a short op says what it needs and has no effect",
        checks: &["short-get", "new", "delete", "overwrite", "too-large-key"],
        kits: [(C, "stores_and_delivers"), (FAULTS, r#"("cpp", "get-unknown""#), (FAULTS, r#"("rust", "get-short""#),
               (GO_OPS, "TestAValueIsDeliveredOrSaysWhatItNeeds")],
        core: &[(C_FAULTS, r#"("get", "get/status/77""#)],
    },
    Promise {
        rule: 5, what: "values are copied into the out buffer, and input bytes belong to the caller",
        checks: &["independent-values", "large", "volume"],
        kits: [(C_FAULTS, "memory_that_is_not_the_drivers_is_named_in_a_paranoid_run"), (FAULTS, r#"("cpp", "raw-out-past""#),
               (FAULTS, r#"("rust", "raw-out-behind""#), (FAULTS, r#"("go", "get-beyond""#)],
        core: &[],
    },
    Promise {
        rule: 6, what: "joined ops share a call and a time, and a transaction takes effect as a whole or not at all",
        checks: &["groups", "multi-get", "transaction", "transaction-failure", "threads-atomic"],
        kits: [(C, "writes_all_of_a_transaction_or_nothing"), (FAULTS, r#"("cpp", "group-half-kept""#),
               (FAULTS, r#"("rust", "group-half-kept""#), (GO, "TestAGroupIsOneCallWithOneStamp")],
        core: &[(C_FAULTS, r#"("multi-get", "get/half-group""#)],
    },
    Promise {
        rule: 7, what: "each op is stamped with one clock read and starts when it is due",
        checks: &["stamps", "honest-time", "due"],
        kits: [(C, "waits_until_an_op_is_due"), ("driver/include/driver.hpp", "with kit.h's timed loop inlined"),
               (RUST, "a_batch_ends_at_the_stop_word_and_the_deadline_and_waits_for_due_ops"),
               (GO, "TestOpsRunInOrderAndAreStampedWithoutGaps")],
        core: &[(LIARS, "verify_is_red_for_times_that_are_not_true")],
    },
    Promise {
        rule: 8, what: "scans keep order, bounds and limit, and resume after the last row",
        checks: &["scan-forward", "scan-reverse", "scan-prefix", "scan-pieces"],
        kits: [(C, "resumes_where_the_buffer_ended"), (FAULTS, r#"("cpp", "scan-twice""#), (FAULTS, r#"("rust", "scan-twice""#),
               (GO_OPS, "TestScansByPlaceAndByRangeAreThoseOfTheRule")],
        core: &[(C_FAULTS, r#"("scan", "scan/rows""#)],
    },
    Promise {
        rule: 9, what: "a database is used by many sessions at once",
        checks: &["sessions", "threads", "threads-contended"],
        kits: [(C, "takes_writes_of_many_threads"), ("tests/conformance.rs", "every_engine_present_conforms"),
               (RUST, "threads_lose_no_update_and_see_no_half_transaction"), (FAULTS, r#"("go", "get/concurrent-map""#)],
        core: &[],
    },
    Promise {
        rule: 9, what: "errors inside become KV_ERROR with a text, once per batch",
        checks: &["too-large-key"],
        kits: [(C_FAULTS, r#"("get", "get/mute""#), (FAULTS, r#"("cpp", "get/throw""#), (FAULTS, r#"("rust", "get/panic""#),
               (GO, "TestAPanicEndsTheBatchWithATextAndTheSessionLivesOn")],
        core: &[],
    },
    Promise {
        rule: 9, what: "drivers do not print",
        checks: &["output"],
        kits: [(C_FAULTS, "a_driver_that_prints_is_found"), (FAULTS, r#"("cpp", "get/print""#), (FAULTS, r#"("rust", "get/print""#),
               (FAULTS, r#"("go", "get/print""#)],
        core: &[("crates/measure/src/stray_output.rs", "the_first_line_is_cut_and_harmless")],
    },
    Promise {
        rule: 9, what: "drivers do not exit, and nothing runs after close",
        checks: &["processes"],
        kits: [("tests/cli/escapes.rs", "whatever_a_driver_does_the_command_ends_says_so_and_leaves_nothing"),
               (FAULTS, r#"("cpp", "get/exit""#), (FAULTS, r#"("rust", "get/exit""#), (FAULTS, r#"("go", "get/exit""#)],
        core: &[],
    },
    Promise {
        rule: 10, what: "open reports what is in effect and fails on unknown options and levels out of reach",
        checks: &["open", "options", "levels", "large", "largest-value"],
        kits: [(C, "refuses_what_it_cannot_open"), (FAULTS, r#"("cpp", "level-not-declared""#),
               (FAULTS, r#"("rust", "level-not-declared""#), (FAULTS, r#"("go", "level-not-declared""#)],
        core: &[],
    },
    Promise {
        rule: 11, what: "what is not declared is refused by the kit",
        checks: &["refusals"],
        kits: [(C, "refuses_what_it_does_not_declare"), (FAULTS, r#"("cpp", "capability-gained""#),
               (RUST, "refuses_what_is_not_in_force"), (GO, "TestWhatIsNotDeclaredIsRefusedWithoutACall")],
        core: &[],
    },
    Promise {
        rule: 11, what: "the kit passes copies to drivers that keep what they are given (a driver in Rust cannot keep it)",
        checks: &[],
        kits: [("tests/cli/keeps.rs", "an_engine_in_c_that_keeps_what_it_is_given_is_verified"),
               ("tests/cli/keeps.rs", "an_engine_in_cpp_that_keeps_what_it_is_given_is_verified"),
               ("driver/include/driver.h", "In Rust a borrow ends with the batch"),
               ("tests/cli/keeps.rs", "an_engine_in_go_that_keeps_what_it_is_given_is_verified")],
        core: &[],
    },
    Promise {
        rule: 12, what: "a driver that runs a session's loop takes one turn at a time, until there are no more",
        checks: &[],
        kits: NOT_OF_KITS,
        core: &[(LIARS, r#""drive returned before turn had returned null""#),
                ("driver/go/drive_test.go", "TestADrivenSessionRunsEachBatchUntilThereIsNone")],
    },
];

#[test]
fn every_rule_has_a_promise_with_a_test_for_each_kit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("driver/include/driver.h")).unwrap();
    let begins = |rule: &u8| header.contains(&format!(" * {rule:>2}. "));
    let rules: BTreeSet<u8> = (1..).take_while(begins).collect();
    assert!(rules.len() >= 12, "{rules:?}");
    assert_eq!(
        rules,
        PROMISES.iter().map(|promise| promise.rule).collect(),
        "rules of driver.h without a promise here"
    );
    for Promise { rule, what, kits, core, checks } in PROMISES {
        let is_of_kits = *kits != NOT_OF_KITS;
        assert!(
            is_of_kits || !core.is_empty() || !checks.is_empty(),
            "rule {rule} ({what}): nothing shows it"
        );
        let tests = kits.iter().filter(|_| is_of_kits).chain(*core);
        for (file, text) in tests {
            let path = root.join(file);
            let there = std::fs::read_to_string(&path);
            let there = there.unwrap_or_else(|error| panic!("rule {rule} ({what}): {file}: {error}"));
            assert!(there.contains(text), "rule {rule} ({what}): {file} has no `{text}`");
        }
    }
}

#[test]
fn the_driver_of_each_kit_keeps_the_promise_of_each_rule() {
    let folder = tempfile::tempdir().unwrap();
    let engines: Vec<&str> = KITS.iter().map(|(_, engine)| *engine).collect();
    let words = format!("prove --only rules {} --json --ops 2000 --seconds 1", engines.join(" "));
    let printed = kvdyno(folder.path(), &words);
    let reports: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    for ((kit, engine), report) in KITS.iter().zip(reports.as_array().unwrap()) {
        let checks = report["checks"].as_array().unwrap_or_else(|| panic!("{engine}: {report}"));
        let outcomes: BTreeMap<&str, &serde_json::Value> =
            checks.iter().map(|check| (check["name"].as_str().unwrap(), &check["outcome"])).collect();
        for Promise { rule, what, checks, .. } in PROMISES {
            for check in *checks {
                let outcome = outcomes.get(check).unwrap_or_else(|| panic!("no check is named {check}"));
                assert_eq!(*outcome, "passed", "{kit} ({engine}): rule {rule} ({what}): check {check}");
            }
        }
        let is_driven = *kit == "Go";
        assert_eq!(
            outcomes["threads-driven"] == "passed",
            is_driven,
            "{kit}: rule 12: {}",
            outcomes["threads-driven"]
        );
    }
}
