//! Drivers in C++, Rust and Go with one fault each, implemented through their kit. The table has the outcome of each fault
//! in a run and in `kvdyno prove --only rules`. The tests for drivers in C are in tests/cli: hostile.rs, liars.rs, escapes.rs,
//! loading.rs and reopen.rs.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, prepared};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The expected outcome of a run.
enum Run {
    /// Exit 1: the trial fails with this text.
    Fails(&'static str),
    /// Exit 3: a wrong answer is detected, with this text.
    Wrong(&'static str),
    /// Exit 1 or 3: memory that the driver kept after a call contains other bytes, or is no longer mapped.
    Caught,
    /// Exit 0: the driver prints, which is a warning in the record.
    Prints,
    /// Exit 0: a run cannot detect the fault, for this reason.
    Passes(&'static str),
}

/// The expected outcome of `kvdyno prove --only rules`.
enum Verify {
    Red(&'static str),
    Green,
}

use Run::{Caught, Fails, Passes, Prints, Wrong};
use Verify::{Green, Red};

type Fault = (&'static str, &'static str, Run, Verify);

const NOT_MET: &str = "the workload does not trigger it";
const NO_FAULT: &str = "the driver keeps every rule";

#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    ("rust", "none", Passes(NO_FAULT), Green),
    ("go", "none", Passes(NO_FAULT), Green),
    ("cpp", "none", Passes(NO_FAULT), Green),
    // Exceptions, each where it was thrown.
    ("cpp", "open/throw", Fails("the page is torn"), Red("open: the page is torn")),
    ("cpp", "session/throw", Fails("session of thread 0: the page is torn"), Red("session: the page is torn")),
    ("cpp", "get/throw", Fails("get of key 260: the page is torn"), Red("the page is torn")),
    ("cpp", "get/throw-number", Fails("get of key 260: an exception of an unknown type"), Red("an exception of an unknown type")),
    ("cpp", "get/throw-memory", Fails("get of key 260: out of memory"), Red("out of memory")),
    ("cpp", "get/throw-mute", Fails("get of key 260: "), Red("without a text")),
    ("cpp", "get/throw-ok", Fails("get of key 260: "), Red("rule ")),
    ("cpp", "get/throw-escapes", Fails("[31mred"), Red("[31mred")),
    ("cpp", "get/throw-long", Fails("get of key 260: xxxxxxxx"), Red("xxxxxxxx")),
    ("cpp", "put/throw", Fails("phase fill: put of key 0: the page is torn"), Red("open: ")),
    ("cpp", "put/throw-full", Fails("no-space: phase fill: put of key 0: no space left"), Red("open: ")),
    ("cpp", "scan/throw", Fails("phase walk: scan of key"), Red("the page is torn")),
    ("cpp", "delete/throw", Fails("phase remove: delete of key"), Red("the page is torn")),
    ("cpp", "group/throw", Fails("phase group: put of key"), Red("the page is torn")),
    ("cpp", "maintain/throw", Fails("settle: the page is torn"), Red("flush: the page is torn")),
    ("cpp", "stats/throw", Fails("stats after phase fill: "), Red("sessions: stats")),
    ("cpp", "end/throw", Fails("end of a session: the page is torn"), Red("end of session: the page is torn")),
    ("cpp", "close/throw", Fails("close: the page is torn"), Red("close: the page is torn")),
    ("cpp", "close-fails", Fails("close: the last page cannot be written"), Red("close: the last page cannot be written")),
    ("cpp", "get/throw-in-noexcept", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("cpp", "get/thread-throws", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("cpp", "get/exit", Fails("crashed: exit 0"), Red("ended early, with exit code")),
    ("cpp", "get/abort", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("cpp", "get/null", Fails("crashed: SIGSEGV"), Red("died of SIGSEGV")),
    ("cpp", "get/sleep", Fails("timeout: "), Red("")),
    ("cpp", "level-not-declared", Fails("rule 10: the effective level is `power`"), Red("rule 10: the effective level")),
    ("cpp", "level-unknown", Fails("unknown effective level 77"), Red("unknown effective level 77")),
    ("cpp", "capability-gained", Fails("open adds capabilities that the table does not declare: merge-add"), Red("rule 11")),
    ("cpp", "version-endless", Fails("rule 10: the driver's version does not end"), Red("rule 10: the driver's version does not end")),
    ("cpp", "get-exists", Fails("status 2 (the key exists) for a get"), Red("status is KV_EXISTS")),
    ("cpp", "get-unsupported", Fails("status 8 (not supported by this engine) for a get"), Red("status is KV_UNSUPPORTED")),
    ("cpp", "get-unknown", Fails("unknown status 77 for a get"), Red("unknown status 77 for a get")),
    ("cpp", "get-not-run", Fails("a get counts as done but has no status"), Red("a get counts as done but has no status")),
    ("cpp", "get-failed", Fails("status 10 (error without a text) for a get"), Red("KV_ERROR without a text")),
    ("cpp", "group-unanswered", Fails("a put counts as done but has no status"), Red("counts as done but has no status")),
    ("cpp", "group-half-kept", Passes(NOT_MET), Red("refused but had an effect")),
    ("cpp", "get-missing", Wrong("not found, expected version"), Red("status is KV_NOT_FOUND, expected KV_OK")),
    ("cpp", "get-half", Wrong("the value has 50 bytes, but 100 were written"), Red("bytes, expected")),
    ("cpp", "get-nothing-delivered", Wrong("the value belongs to key"), Red("rule 5")),
    ("cpp", "delete-ignored", Wrong("reported as found, but it was absent"), Red("status is KV_OK, expected KV_NOT_FOUND")),
    ("cpp", "new-overwrites", Passes(NOT_MET), Red("status is KV_OK, expected KV_EXISTS")),
    ("cpp", "put-lost", Wrong("version 1, expected version 2"), Red("")),
    ("cpp", "put-stale", Wrong("version 1, expected version 2"), Red("")),
    ("cpp", "scan-twice", Wrong("returned twice"), Red("scan")),
    ("cpp", "scan-gap", Wrong("returned, but key"), Red("scan")),
    ("cpp", "scan-more-rows", Fails("a scan reports 21 rows, but 20 were requested"), Red("rule 8")),
    ("cpp", "raw-kind", Fails("changed the kind of a get"), Red("changed the kind of a get")),
    ("cpp", "raw-length", Fails("a get reports length 18446744073709551615"), Red("a get reports length 18446744073709551615")),
    ("cpp", "raw-key-bytes", Passes("each key is made anew from its number"), Red("the driver changed the key of a get")),
    ("cpp", "raw-out-past", Passes("the memory past a buffer belongs to another op, or to nobody"), Red("the driver touched byte 1 past the out buffer of a get")),
    // Texts for a terminal that is not the driver's.
    ("cpp", "get/print", Prints, Red("output: in check ")),
    ("cpp", "get/print-error", Prints, Red("output: in check ")),
    ("cpp", "get/print-part", Prints, Red("output: in check ")),
    ("cpp", "open/print", Prints, Red("output: in check open")),
    ("cpp", "close/print-error", Prints, Red("output: in check open")),
    ("rust", "get/print", Prints, Red("output: in check ")),
    ("rust", "put/print-error", Prints, Red("output: in check ")),
    ("go", "get/print", Prints, Red("output: in check ")),
    ("go", "get/print-error", Prints, Red("output: in check ")),
    // Panics, each where it happened.
    ("rust", "open/panic", Fails("panic: the page is torn"), Red("open: panic: the page is torn")),
    ("rust", "session/panic", Fails("session of thread 0: panic: the page is torn"), Red("session: panic: the page")),
    ("rust", "get/panic", Fails("get of key 260: panic: the page is torn"), Red("panic: the page is torn")),
    ("rust", "get/panic-number", Fails("panic: without a message"), Red("panic: without a message")),
    ("rust", "get/panic-twice", Fails("crashed: SIGABRT"), Red("died of SIGABRT in check sessions")),
    ("rust", "put/panic", Fails("phase fill: put of key 0: panic: the page is torn"), Red("panic: the page is torn")),
    ("rust", "scan/panic", Fails("phase walk: scan of key"), Red("panic: the page is torn")),
    ("rust", "delete/panic", Fails("phase remove: delete of key"), Red("panic: the page is torn")),
    ("rust", "group/panic", Fails("phase group: put of key"), Red("panic: the page is torn")),
    ("rust", "maintain/panic", Fails("settle: panic: the page is torn"), Red("flush: panic: the page is torn")),
    ("rust", "stats/panic", Fails("stats after phase fill: "), Red("sessions: stats: ")),
    ("rust", "end/panic", Fails("end of a session: panic: the page is torn"), Red("end: panic: the page is torn")),
    ("rust", "close/panic", Fails("close: panic: the page is torn"), Red("close: panic: the page is torn")),
    ("go", "open/panic", Fails("the engine panicked: the page is torn"), Red("open: the engine panicked: the page is torn")),
    ("go", "session/panic", Fails("session of thread 0: the engine panicked"), Red("session: the engine panicked")),
    ("go", "get/panic", Fails("get of key 260: the engine panicked: the page is torn"), Red("the engine panicked")),
    ("go", "get/panic-nil", Fails("panic called with nil argument"), Red("panic called with nil argument")),
    ("go", "get/panic-error", Fails("the engine panicked: the page is torn"), Red("the engine panicked")),
    ("go", "get/nil-map", Fails("assignment to entry in nil map"), Red("assignment to entry in nil map")),
    ("go", "get/index", Fails("index out of range [3] with length 0"), Red("index out of range")),
    ("go", "get/nil-pointer", Fails("nil pointer dereference"), Red("nil pointer dereference")),
    ("go", "put/panic", Fails("put of key 0: the engine panicked: the page is torn"), Red("open: ")),
    ("go", "scan/panic", Fails("phase walk: scan of key"), Red("the engine panicked")),
    ("go", "delete/panic", Fails("phase remove: delete of key"), Red("the engine panicked")),
    ("go", "group/panic", Fails("phase group: put of key"), Red("the engine panicked")),
    ("go", "maintain/panic", Fails("settle: the engine panicked"), Red("flush: the engine panicked")),
    ("go", "end/panic", Fails("end of a session: the engine panicked"), Red("end: the engine panicked")),
    ("go", "close/panic", Fails("close: the engine panicked"), Red("close: the engine panicked")),
    // The end of the process, in different ways.
    ("rust", "open/exit", Fails("crashed: exit 0"), Red("ended early, with exit code 0 in check open")),
    ("rust", "get/exit", Fails("crashed: exit 0"), Red("ended early, with exit code")),
    ("rust", "get/exit-5", Fails("crashed: exit 5"), Red("ended early, with exit code")),
    ("rust", "close/exit", Fails("crashed: exit 0"), Red("ended early, with exit code 0 in check open")),
    ("rust", "get/abort", Fails("crashed: SIGABRT"), Red("died of SIGABRT in check sessions")),
    ("rust", "get/overflow", Fails("crashed: SIGABRT"), Red("died of SIGABRT in check sessions")),
    ("rust", "get/null", Fails("crashed: SIGSEGV"), Red("died of SIGSEGV in check sessions")),
    ("rust", "close/null", Fails("crashed: SIGSEGV"), Red("died of SIGSEGV in check open")),
    ("rust", "end/panic-twice", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("rust", "thread-aborts", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("rust", "thread-panics", Prints, Red("output: in check open, the driver or its engine printed")),
    ("go", "get/exit", Fails("crashed: exit 0"), Red("ended early, with exit code")),
    ("go", "close/exit-5", Fails("crashed: exit 5"), Red("ended early")),
    ("go", "get/goexit", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("go", "get/kill", Fails("crashed: SIGKILL"), Red("died of SIGKILL")),
    ("go", "get/goroutine-panic", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("go", "get/concurrent-map", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("go", "get/overflow", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("go", "get/unlock", Fails("crashed: SIGABRT"), Red("died of SIGABRT")),
    ("go", "get/closed-files", Fails("after closing all files"), Red("ended early")),
    // Open, and the settings that it reports.
    ("rust", "open-mute", Fails("error without a text"), Red("open: error without a text")),
    ("rust", "open-escapes", Fails("[31mred"), Red("[31mred")),
    ("rust", "open-long", Fails("long long long"), Red("long long long")),
    ("rust", "open-ok-error", Fails("open succeeded but returned no database"), Red("open succeeded but returned no database")),
    ("rust", "level-not-declared", Fails("rule 10: the effective level is `power`"), Red("rule 10: the effective level")),
    ("rust", "capability-gained", Fails("open adds capabilities that the table does not declare: merge-add, lists"), Red("rule 11")),
    ("rust", "capability-lost", Passes("options may take capabilities away"), Red("scan-reverse: ")),
    ("rust", "version-escapes", Passes("a version is any text; what is printed is escaped"), Green),
    ("rust", "version-long", Passes("a version is any text, cut to its field"), Green),
    ("rust", "settings-many", Passes("settings are any lines, cut to their field"), Red("rule 10: ")),
    ("rust", "settings-odd", Passes("settings are any lines"), Red("rule 10: ")),
    ("go", "open-mute", Fails("error without a text"), Red("open: error without a text")),
    ("go", "open-nil", Fails("nil pointer dereference"), Red("nil pointer dereference")),
    ("go", "open-escapes", Fails("[31mred"), Red("[31mred")),
    ("go", "open-zero", Fails("a zero"), Red("a zero")),
    ("go", "open-not-utf8", Fails("refused: "), Red("open: open: ")),
    ("go", "level-not-declared", Fails("rule 10: the effective level is `power`"), Red("rule 10: the effective level")),
    ("go", "level-unknown", Fails("unknown effective level 77"), Red("unknown effective level 77")),
    ("go", "capability-gained", Fails("open adds capabilities that the table does not declare: merge-add"), Red("rule 11")),
    ("go", "version-zero", Passes("a version is any text, up to its first zero"), Green),
    ("go", "session-nil", Fails("nil pointer dereference"), Red("open: ")),
    // Calls that are not timed.
    ("rust", "maintain-fails", Fails("settle: the log cannot be written"), Red("flush: the log cannot be written")),
    ("rust", "maintain-not-found", Fails("settle: not found"), Red("flush: not found")),
    ("rust", "stats-odd", Passes("an engine's statistics are any text"), Red("stats returns a line that is not name=value")),
    ("rust", "stats-long", Passes("an engine's statistics are any text"), Red("stats returns a line that is not name=value")),
    ("rust", "close-fails", Fails("close: the last page cannot be written"), Red("close: the last page cannot be written")),
    ("go", "close-fails", Fails("close: the last page cannot be written"), Red("close: the last page cannot be written")),
    // Statuses and errors.
    ("rust", "get-mute", Fails("get of key 260: "), Red("KV_ERROR without a text")),
    ("rust", "get-ok-error", Fails("get of key 260: the value has 0 bytes"), Red("rule ")),
    ("rust", "get-missing-error", Fails("get of key 260: not found"), Red("execute failed (`it is not here`)")),
    ("rust", "get-exists", Fails("status 2 (the key exists) for a get"), Red("status is KV_EXISTS")),
    ("rust", "get-unsupported", Fails("status 8 (not supported by this engine) for a get"), Red("status is KV_UNSUPPORTED")),
    ("rust", "get-short", Fails("rule 4: a get is short although it needs only 0 bytes"), Red("status is KV_SHORT")),
    ("rust", "get-conflict", Fails("status 4 (conflict with another transaction) for a get"), Red("status is KV_CONFLICT")),
    ("rust", "get-not-run", Fails("a get counts as done but has no status"), Red("a get counts as done but has no status")),
    ("rust", "put-full", Fails("no-space: phase fill: put of key 0: no space left"), Red("open: ")),
    ("rust", "put-too-large", Fails("status 7 (key or value too large) for a put"), Red("open: ")),
    ("rust", "put-not-found", Fails("put of key 0: reported as not found"), Red("open: ")),
    ("rust", "put-retries", Passes("nobody but the driver knows how often it tried"), Green),
    ("rust", "group-unanswered", Fails("a put counts as done but has no status"), Red("counts as done but has no status")),
    ("rust", "group-refused", Fails("transaction of key 8: this engine does not support such transactions"), Red("aborted without a reason")),
    ("rust", "group-half-kept", Passes(NOT_MET), Red("transaction-failure: ")),
    ("go", "get-unknown", Fails("unknown status 77 for a get"), Red("unknown status 77 for a get")),
    ("go", "get-exists", Fails("status 2 (the key exists) for a get"), Red("status is KV_EXISTS")),
    ("go", "get-unsupported", Fails("status 8 (not supported by this engine) for a get"), Red("status is KV_UNSUPPORTED")),
    ("go", "get-failed", Fails("status 10 (error without a text) for a get"), Red("KV_ERROR without a text")),
    ("go", "get-not-run", Fails("a get counts as done but has no status"), Red("a get counts as done but has no status")),
    ("go", "get-mute", Fails("get of key 260: an error without a message"), Red("an error without a message")),
    ("go", "group-unanswered", Fails("a put counts as done but has no status"), Red("counts as done but has no status")),
    // Answers.
    ("rust", "miss-found", Wrong("was never written"), Red("status is KV_OK, expected KV_NOT_FOUND")),
    ("rust", "get-missing", Wrong("not found, expected version"), Red("status is KV_NOT_FOUND, expected KV_OK")),
    ("rust", "get-neighbour", Wrong("the value belongs to key"), Red("it is the value of")),
    ("rust", "get-half", Wrong("the value has 50 bytes, but 100 were written"), Red("bytes, expected")),
    ("rust", "get-zeros", Wrong("header is damaged or from another run"), Red("is wrong")),
    ("rust", "get-longer", Wrong("the value has 101 bytes, more than any written"), Red("bytes, expected")),
    ("rust", "get-empty", Wrong("the value has 0 bytes, but 100 were written"), Red("the value has 0 bytes")),
    ("rust", "get-nothing-delivered", Wrong("the value belongs to key"), Red("rule 5")),
    ("rust", "delete-lies", Wrong("reported as not found, but it was present"), Red("status is KV_NOT_FOUND, expected KV_OK")),
    ("rust", "delete-ignored", Wrong("reported as found, but it was absent"), Red("status is KV_OK, expected KV_NOT_FOUND")),
    ("rust", "new-overwrites", Passes(NOT_MET), Red("status is KV_OK, expected KV_EXISTS")),
    ("rust", "put-lost", Wrong("version 1, expected version 2"), Red("")),
    ("rust", "key-refused", Passes(NOT_MET), Red("large: key of 65536 bytes: ")),
    ("rust", "key-cut", Passes(NOT_MET), Red("large: key of 65536 bytes: ")),
    ("rust", "value-refused", Passes(NOT_MET), Red("largest-value: key of 65536 bytes, value of 16777216: ")),
    ("rust", "put-other-key", Wrong("was never written"), Red("it is the value of")),
    ("rust", "put-bit", Wrong("the value is damaged starting at byte 99"), Red("is wrong")),
    ("rust", "put-stale", Wrong("version 1, expected version 2"), Red("")),
    ("rust", "scan-forward", Wrong("phase back: scan: "), Red("scan-reverse: ")),
    ("rust", "scan-swapped", Wrong("returned, but key"), Red("scan-forward: ")),
    ("rust", "scan-twice", Wrong("returned twice"), Red("scan")),
    ("rust", "scan-gap", Wrong("returned, but key"), Red("scan")),
    ("rust", "scan-values-moved", Wrong("the value belongs to key"), Red("has a wrong value")),
    ("rust", "scan-invented", Wrong("was never written"), Red("scan-forward: ")),
    ("rust", "scan-nothing", Wrong("ended after 0 rows"), Red("is missing")),
    ("rust", "scan-one", Wrong("ended after 1 rows"), Red("is missing")),
    ("go", "get-missing", Wrong("not found, expected version"), Red("status is KV_NOT_FOUND, expected KV_OK")),
    ("go", "get-neighbour", Wrong("the value belongs to key"), Red("it is the value of")),
    ("go", "get-half", Wrong("the value has 50 bytes, but 100 were written"), Red("bytes, expected")),
    ("go", "get-nothing-delivered", Wrong("the value belongs to key"), Red("rule 5")),
    ("go", "get-twice-delivered", Wrong("the value has 0 bytes, but 100 were written"), Red("wrote past the 0 bytes it delivered")),
    ("go", "put-lost", Wrong("version 1, expected version 2"), Red("")),
    ("go", "put-stale", Wrong("version 1, expected version 2"), Red("")),
    ("go", "delete-ignored", Wrong("reported as found, but it was absent"), Red("status is KV_OK, expected KV_NOT_FOUND")),
    ("go", "group-half", Wrong("last written was 2"), Red("groups: ")),
    ("go", "scan-swapped", Wrong("returned, but key"), Red("scan-forward: ")),
    ("go", "scan-twice", Wrong("returned twice"), Red("scan")),
    ("go", "scan-gap", Wrong("returned, but key"), Red("scan")),
    ("go", "scan-values-moved", Wrong("the value belongs to key"), Red("has a wrong value")),
    ("go", "scan-nothing", Wrong("ended after 0 rows"), Red("0 of")),
    // Memory that does not belong to the driver.
    ("rust", "raw-kind", Fails("changed the kind of a get"), Red("changed the kind of a get")),
    ("rust", "raw-user", Fails("changed the core's own word of a get"), Red("changed the core's own word of a get")),
    ("rust", "raw-status", Passes("the kit writes the status after the driver"), Green),
    ("rust", "raw-length", Fails("a get reports length 18446744073709551615"), Red("a get reports length 18446744073709551615")),
    ("rust", "raw-key-bytes", Passes("each key is made anew from its number"), Red("the driver changed the key of a get")),
    ("rust", "raw-value-bytes", Passes("each value is made anew, and the row is a copy made before"), Red("the driver changed the value of a ")),
    ("rust", "raw-out-behind", Passes("the memory past a buffer belongs to another op, or to nobody"), Red("the driver touched byte 1 past the out buffer of a get")),
    ("go", "get-writes-key", Wrong("not found, expected version 2"), Red("the driver changed the key of a get")),
    ("go", "get-beyond", Wrong("phase read: get of key"), Red("byte 1 past the key of a get")),
    ("go", "put-writes-value", Wrong("the value is damaged starting at byte 99"), Red("the driver changed the value of a put")),
    ("go", "put-keeps-key", Caught, Red("")),
    ("go", "put-keeps-value", Caught, Red("")),
    // Calls that do not return.
    ("rust", "get/deadlock", Fails("timeout: "), Red("")),
    ("rust", "open/sleep", Fails("timeout: "), Red("")),
    ("rust", "close/sleep", Fails("timeout: "), Red("")),
    ("rust", "get/endless", Fails("timeout: "), Red("")),
    ("go", "get/deadlock", Fails("timeout: "), Red("")),
    ("go", "get/select", Fails("timeout: "), Red("")),
    ("go", "get/endless", Fails("timeout: "), Red("")),
];

/// Builds the plug-ins and the workload in a folder of the test.
fn build(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let plugins = folder.join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    std::fs::copy(root.join("tests/hostile/all.toml"), folder.join("all.toml")).unwrap();
    let target = Path::new(env!("CARGO_BIN_EXE_kvdyno")).ancestors().nth(2).unwrap();
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", "kvdyno-hostile-rust", "--target-dir"])
        .arg(target)
        .current_dir(root)
        .status();
    assert!(cargo.unwrap().success());
    let rust = target.join("release/libkvdyno_hostile_rust.so");
    std::fs::copy(rust, plugins.join("libkvdyno_hostile_rust.so")).unwrap();
    let cpp = Command::new("c++")
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-I"])
        .arg(root.join("driver/include"))
        .arg(root.join("tests/hostile/cpp/driver.cc"))
        .arg("-o")
        .arg(plugins.join("libkvdyno_hostile_cpp.so"))
        .status();
    assert!(cpp.expect("a C++ compiler named c++").success());
    let go = Command::new("go")
        .args(["build", "-buildmode=c-shared", "-o"])
        .arg(plugins.join("libkvdyno_hostile_go.so"))
        .arg(".")
        .current_dir(root.join("tests/hostile/go"))
        .status();
    assert!(go.expect("Go, for the hostile driver in Go").success());
}

fn kvdyno(folder: &Path, words: &str, fault: &str) -> Printed {
    prepared(folder, words).env("HOSTILE_FAULT", fault).output().expect("the command can be started").into()
}

/// What is wrong with the outcome of a fault; empty if it is as in the table. The plug-ins are beside the folder.
fn judge(folder: &Path, (language, fault, run, verify): &Fault) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut see = |what: &str, printed: Printed, codes: &[i32], wanted: &str| {
        let Printed { code: found, stdout, stderr } = &printed;
        let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        if !found.is_some_and(|code| codes.contains(&code)) || !text.contains(wanted) {
            wrong.push(format!(
                "hostile-{language} {fault}, {what}: exit {found:?}, expected {codes:?} with `{wanted}`\n{stdout}{stderr}"
            ));
        } else if stdout.contains('\x1b') || stderr.contains('\x1b') {
            wrong.push(format!(
                "hostile-{language} {fault}, {what}: an escape reached the terminal\n{stdout}"
            ));
        }
    };
    let stall = if matches!(run, Fails("timeout: ")) { 5 } else { 60 };
    let words = format!(
        "run ../all.toml --engines hostile-{language} --quiet --full --plugins ../plugins --stall-seconds {stall}"
    );
    let printed = kvdyno(folder, &words, fault);
    match run {
        Fails(wanted) => see("run", printed, &[1], wanted),
        Caught => see("run", printed, &[1, 3], ""),
        Wrong(wanted) => see("run", printed, &[3], wanted),
        Prints => see("run", printed, &[0], "The driver or its engine printed"),
        Passes(why) => see(&format!("run ({why})"), printed, &[0], ""),
    }
    let printed = kvdyno(
        folder,
        &format!("prove --only rules hostile-{language} --plugins ../plugins --stall-seconds 20"),
        fault,
    );
    match verify {
        Red(wanted) => see("verify", printed, &[3], wanted),
        Green => see("verify", printed, &[0], "green"),
    }
    wrong
}

/// Every `step`th fault from `first` on; many at a time, because stalls are waited for.
fn matrix(first: usize, step: usize) {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let faults = Mutex::new(FAULTS.iter().skip(first).step_by(step));
    let next = || faults.lock().unwrap().next();
    let judged = |own: PathBuf| -> Vec<String> {
        std::fs::create_dir(&own).unwrap();
        std::iter::from_fn(next).flat_map(|fault| judge(&own, fault)).collect()
    };
    let threads = std::thread::available_parallelism().map_or(4, |cpus| 3 * cpus.get());
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let own = (0..threads).map(|thread| folder.path().join(thread.to_string()));
        let threads = Vec::from_iter(own.map(|own| scope.spawn(|| judged(own))));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} outcomes differ from the table:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_third_of_the_hostile_drivers_is_caught() {
    matrix(0, 3);
}

#[test]
#[ignore = "minutes"]
fn every_hostile_driver_is_caught() {
    matrix(0, 1);
}
