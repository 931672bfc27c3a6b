//! Whatever a driver says of its times that is not true: what can be known is a failed trial or a row without a rank, and a
//! red `kvdyno prove --only rules`; what cannot be known stands in the table too, and in docs/methodology.md, section 3.

use super::command::{Printed, build_driver, kvdyno, prepared};
use std::path::Path;

/// Compiles a driver in C of this folder into `plugins`.
pub fn build(folder: &Path, name: &str) {
    build_driver(folder, &format!("cli/{name}.c"));
}

fn prepare(folder: &Path) {
    build(folder, "liars");
    for (name, phase) in
        [("get", "mix = { get = 1 }\nops = 200000"), ("join", "mix = { put = 1 }\njoin = 4\nops = 2000")]
    {
        let text = format!(
            "name = \"{name}\"\nabout = \"One kind of op.\"\nkeys = 2000\nruns = 1\ndurability = \"none\"\n\
             [[phase]]\nname = \"fill\"\nmix = {{ put = 1 }}\ndistribution = \"sequential\"\neach_key = true\n\
             [[phase]]\nname = \"only\"\n{phase}\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

/// The figures do not count: the trial failed, or gave wrong answers; or the row is shown without a rank.
const BROKEN: i32 = 1;
const WRONG: i32 = 3;
const SHOWN: i32 = 0;
const UNRANKED: &str = "times unaccounted";

/// Engine, workload, lie; the exit code of a run and what it prints; what a red `verify` prints, none: it stays green.
type Row = (&'static str, &'static str, &'static str, i32, &'static str, Option<&'static str>);

const LIES: &[Row] = &[
    ("liar", "get", "half", WRONG, "account for less than half the time", Some("the stamps account for")),
    (
        "liar",
        "get",
        "no-time",
        WRONG,
        "account for less than half the time",
        Some("its time is counted for another op"),
    ),
    ("liar", "get", "two-thirds", SHOWN, UNRANKED, Some("the stamps account for")),
    ("liar", "get", "late-begin", SHOWN, UNRANKED, Some("its time is counted for another op")),
    ("liar", "get", "early-end", SHOWN, UNRANKED, Some("its time is counted for another op")),
    ("liar", "get", "tenth-call", SHOWN, UNRANKED, None),
    ("liar", "get", "hides-delays", SHOWN, UNRANKED, None),
    ("liar", "get", "ahead", BROKEN, "rule 7: the batch's start is", Some("outside the call")),
    ("liar", "get", "behind", BROKEN, "rule 7: the batch's start is", Some("outside the call")),
    ("liar", "get", "other-clock", BROKEN, "rule 7: the batch's start is", Some("outside the call")),
    ("liar", "get", "unstamped", BROKEN, "rule 7: the batch's start is", Some("outside the call")),
    ("liar", "get", "gaps", BROKEN, "after the previous op ended", Some("the previous op ended")),
    ("liar", "get", "decreasing", BROKEN, "the previous op ended", Some("the previous op ended")),
    ("liar", "join", "group-apart", BROKEN, "rule 6: an op of a group has different stamps", Some("rule 6")),
    ("liar", "get", "waited", BROKEN, "rule 7: `waited` is 1 ticks", Some("no op had a due time")),
    ("liar", "get", "waited-90", BROKEN, "`waited` is ", Some("no op had a due time")),
    ("liar", "get", "waited-half", BROKEN, "`waited` is ", Some("no op had a due time")),
    ("liar-driven", "get", "waited-90", BROKEN, "`waited` is ", Some("no op had a due time")),
    ("liar-driven", "get", "waited-half", BROKEN, "`waited` is ", Some("no op had a due time")),
    (
        "liar-driven",
        "get",
        "half",
        WRONG,
        "account for less than half the time",
        Some("the stamps account for"),
    ),
    ("liar-driven", "get", "two-thirds", SHOWN, UNRANKED, Some("the stamps account for")),
    ("liar-driven", "get", "gaps", BROKEN, "after the previous op ended", Some("the previous op ended")),
    // Where the loop runs is the driver's choice.
    ("liar-driven", "get", "elsewhere", SHOWN, "Verdict", None),
    (
        "liar-driven",
        "get",
        "never",
        BROKEN,
        "drive returned without a turn",
        Some("drive returned without a turn"),
    ),
    (
        "liar-driven",
        "get",
        "early",
        BROKEN,
        "drive returned before turn had returned null",
        Some("drive returned before turn had returned null"),
    ),
    (
        "liar-driven",
        "get",
        "on",
        BROKEN,
        "called turn after turn had returned null",
        Some("called turn after turn had returned null"),
    ),
    ("liar-driven", "get", "late", BROKEN, "after drive had returned", Some("after drive had returned")),
    ("liar-driven", "get", "twice", BROKEN, "rule", Some("rule")),
    // Its batch runs on while drive returns.
    (
        "liar-driven",
        "get",
        "away",
        BROKEN,
        "drive returned before turn had returned null",
        Some("drive returned before turn had returned null"),
    ),
    ("liar-driven", "get", "one", SHOWN, "Verdict", Some("did not begin the loop of another session")),
    ("liar-driven", "get", "badly", BROKEN, "drive returned status 10", Some("drive returned status 10")),
    // Sums are right, so the rate is; that the times are another op's is seen where ops are known to be alike.
    ("liar", "get", "one-for-all", SHOWN, "Verdict", Some("its time is counted for another op")),
];

fn run(folder: &Path, engine: &str, workload: &str, lie: &str) -> Printed {
    let words = format!(
        "run {workload}.toml --engines {engine} --runs 1 --quiet --full --plugins plugins --option {engine}.lie={lie}"
    );
    kvdyno(folder, &words)
}

/// Whether the output names what the driver did. Two turns at once may also kill the driver's process: the second one can end the
/// batch that the first thread still runs, which the core cannot know. The exit code is the same.
fn is_found(stdout: &str, lie: &str, wanted: &str) -> bool {
    let text = in_a_line(stdout);
    let has_died = || text.contains("the process died of SIG") || text.contains("crashed: SIG");
    text.contains(wanted) || lie == "twice" && has_died()
}

fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_tells_of_times_that_are_not_true() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let mut passed = Vec::new();
    for &(engine, workload, lie, code, wanted, _) in LIES {
        let printed = run(folder.path(), engine, workload, lie);
        if printed.code != Some(code) || !is_found(&printed.stdout, lie, wanted) {
            let Printed { code, stdout, stderr } = printed;
            passed.push(format!("{engine}, {lie}: exit {code:?}, no `{wanted}`\n{stdout}{stderr}"));
        }
    }
    assert!(passed.is_empty(), "{} passed:\n{}", passed.len(), passed.join("\n"));
}

#[test]
fn the_times_of_the_same_engine_without_a_lie_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    for engine in ["liar", "liar-driven"] {
        for workload in ["get", "join"] {
            let printed = run(folder.path(), engine, workload, "none");
            assert_eq!(printed.code, Some(SHOWN), "{engine}\n{}\n{}", printed.stderr, printed.stdout);
            assert!(!printed.stdout.contains(UNRANKED), "{engine}, {workload}\n{}", printed.stdout);
        }
    }
}

#[test]
fn verify_is_red_for_times_that_are_not_true() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let mut passed = Vec::new();
    let honest: &[Row] = &[("liar", "", "none", 0, "", None), ("liar-driven", "", "none", 0, "", None)];
    for &(engine, _, lie, _, _, wanted) in honest.iter().chain(LIES) {
        let words = format!("prove --only rules {engine} --plugins plugins --ops 100 --seconds 0.05");
        let printed: Printed = prepared(folder.path(), &words).env("LIE", lie).output().unwrap().into();
        let (code, wanted) = wanted.map_or((0, "green"), |text| (3, text));
        if printed.code != Some(code) || !is_found(&printed.stdout, lie, wanted) {
            let Printed { code, stdout, stderr } = printed;
            passed.push(format!("{engine}, {lie}: exit {code:?}, no `{wanted}`\n{stdout}{stderr}"));
        }
    }
    assert!(passed.is_empty(), "{} are otherwise:\n{}", passed.len(), passed.join("\n"));
}
