//! Tests of rounds, keys in turns, atomic groups and emulation on demand.

use super::*;

/// Phases with these names, each with further lines.
fn phases(all: &[(&str, &str)]) -> String {
    let phase = |(name, lines): &(&str, &str)| format!("[[phase]]\nname = '{name}'\nops = 8\n{lines}\n");
    all.iter().map(phase).collect()
}

const PUT: &str = "mix = { put = 1 }";
const EACH: &str = "mix = { insert = 1 }\neach_round = true";

#[test]
fn fields_of_rounds_have_defaults_and_read_back_equal() {
    let usual = workload(LEAST);
    let phase = &usual.phases[0];
    assert_eq!((usual.rounds, usual.key.alternate, phase.scan.rows_per_call), (1, 0, 0));
    assert!(!phase.atomic && phase.emulate.is_empty() && !phase.each_round);
    let text = "keys = 0\nrounds = 3\n[key]\nalternate = 8\n".to_string()
        + &phases(&[
            ("a", EACH),
            ("b", EACH),
            ("c", "mix = { scan = 1 }\nscan = { rows_per_call = 1 }"),
            ("d", "mix = { delete = 1 }\njoin = 5\natomic = true"),
        ]);
    let read = workload(&text);
    assert_eq!((read.keys, read.rounds, read.key.alternate), (0, 3, 8));
    assert_eq!((read.phases[2].scan.rows_per_call, read.phases[3].atomic), (1, true));
    assert_eq!(parse(&read.to_toml(), "w.toml").unwrap(), read);
    let emulated = workload(&phases(&[("a", "mix = { merge = 1 }\nemulate = ['merge']")]));
    assert_eq!(emulated.phases[0].emulate, [Emulate::Merge]);
    let alone = workload(&phases(&[("a", "mix = { merge = 1 }\nemulate = 'merge'")]));
    assert_eq!(alone.phases, emulated.phases, "a list of one may be written without its brackets");
}

#[test]
fn reports_what_is_wrong_with_rounds_and_groups() {
    let alternate = "keys = 0\n[key]\nalternate = 9\n";
    let cases = [
        (
            "rounds = 2\n",
            phases(&[("a", PUT)]),
            "w.toml:1: `rounds`: expected 1, or each_round = true in the phases that repeat",
        ),
        ("rounds = 0\n", phases(&[("a", EACH)]), "w.toml:1: `rounds`: expected 1 to 10000, got 0"),
        (
            "rounds = 2\n",
            phases(&[("a", EACH), ("b", PUT), ("c", EACH)]),
            "phase `c`: `each_round`: expected consecutive phases in a round, got `b` between them",
        ),
        ("keys = 0\n", phases(&[("a", PUT)]), "w.toml:1: `keys`: expected 1 or more for phase `a`"),
        ("keys = 0\n", phases(&[("a", "mix = { merge = 1 }")]), "`keys`: expected 1 or more for phase `a`"),
        (
            alternate,
            phases(&[("a", EACH)]),
            "w.toml:6: phase `a`: `ops`: expected 9, the value of key.alternate, so that each phase inserts one half",
        ),
        (
            "keys = 0\n[key]\nalternate = 8\n",
            phases(&[("a", "seconds = 5\nmix = { put = 1 }\nexisting = 0\neach_round = true")]),
            "w.toml:7: phase `a`: `seconds`: expected 0 with key.alternate",
        ),
        (
            "[key]\nscattered = true\nalternate = 8\n",
            phases(&[("a", PUT)]),
            "w.toml:3: `key.alternate`: expected 0 for keys that are scattered, hashed, random, grouped or from a file",
        ),
        (
            "",
            phases(&[("a", "mix = { transaction = 1, put = 0 }\natomic = true")]),
            "phase `a`: `atomic`: expected ",
        ),
        (
            "",
            phases(&[("a", "mix = { put = 1 }\nemulate = ['merge']")]),
            "`emulate`: expected merge in the mix",
        ),
        (
            "",
            phases(&[("a", "mix = { put = 1 }\nemulate = ['get']")]),
            "w.toml:5: expected `merge`, got `get`",
        ),
        (
            "",
            phases(&[("a", "mix = { put = 1 }\nscan = { rows_per_call = 5 }")]),
            "w.toml:5: phase `a`: `scan.rows_per_call`: expected scan in the mix, got none",
        ),
    ];
    for (top, phases, expected) in cases {
        is_refused(top, &phases, expected);
    }
}

#[test]
fn reports_what_is_wrong_with_transactions_that_span_a_phase() {
    let cases = [
        (
            "",
            phases(&[("a", "mix = { put = 1 }\nthreads = 2\ntransaction = 'whole'")]),
            "w.toml:6: phase `a`: `transaction`: expected 1 thread for a transaction that spans a phase, got 2",
        ),
        (
            "collections = { count = 2, type = 'list' }\nkey = { size = 8 }\n",
            phases(&[("a", "mix = { push = 1 }\ntransaction = 'aborted'")]),
            "w.toml:7: phase `a`: `transaction`: expected no lists in a transaction, got push or pop in the mix",
        ),
        (
            "",
            phases(&[("a", "mix = { put = 1 }\ntransaction = 'undone'")]),
            "w.toml:5: expected `whole` or `aborted`, got `undone`",
        ),
    ];
    for (top, phases, expected) in cases {
        is_refused(top, &phases, expected);
    }
}

/// Checks that the workload has one error, of one line, with these words.
fn is_refused(top: &str, phases: &str, expected: &str) {
    let got = error(&format!("{top}{phases}"));
    assert!(
        got.contains(expected) && !got.contains('\n'),
        "for\n{top}{phases}\nexpected {expected}\ngot    {got}"
    );
}

#[test]
fn flags_change_rounds_and_turns_together() {
    let changed = |name: &str, overrides: Overrides| {
        let mut workload = builtin(name).unwrap();
        overrides.apply(&mut workload).map(|()| workload).map_err(|error| error.to_string())
    };
    let ops = |ops| Overrides { ops: Some(ops), ..Overrides::default() };
    let small = changed("toku-insert", ops(500)).unwrap();
    assert_eq!((small.key.alternate, small.phases[0].ops, small.phases[1].ops), (500, 500, 500));
    assert_eq!(changed("toku-scan", ops(3)).unwrap().key.alternate, 1_048_576, "its rounds insert nothing");
    let keys = Overrides { keys: Some(5), ..Overrides::default() };
    assert_eq!(
        changed("toku-insert", keys.clone()).unwrap_err(),
        "--keys: toku-insert has no fill; its phases insert keys in each round, set their number by --ops N"
    );
    assert_eq!(changed("nudb-insert", keys).unwrap().keys, 5);
    let one = Overrides { set: vec!["serial.ops=5".into()], ..Overrides::default() };
    assert!(
        changed("toku-insert", one).unwrap_err().contains("expected 1048576, the value of key.alternate")
    );
    let rounds = Overrides { set: vec!["rounds=1000".into()], ..Overrides::default() };
    assert_eq!(changed("toku-update", rounds).unwrap().rounds, 1000);
}

#[test]
fn workloads_of_older_tools_have_their_sizes_and_phases() {
    let of = |name: &str| {
        let workload = builtin(name).unwrap();
        assert!(!workload.layouts.is_empty(), "{name}");
        let phases: Vec<_> =
            workload.phases.iter().map(|phase| (phase.name.clone(), phase.ops, phase.each_round)).collect();
        (workload.keys, workload.rounds, phases)
    };
    let once = |name: &str, ops| (name.to_string(), ops, false);
    let each = |name: &str, ops| (name.to_string(), ops, true);
    let batch = 1 << 20;
    assert_eq!(of("toku-insert"), (0, 4, vec![each("serial", batch), each("random", batch)]));
    assert_eq!(of("toku-scan"), (2 * batch, 1, vec![once("fill", 0), once("cold", 1), once("warm", 1)]));
    assert_eq!(of("toku-range"), (2 * batch, 1, vec![once("fill", 0), once("range", 100_000)]));
    assert_eq!(of("toku-update"), (1_000_000, 100, vec![each("upsert", 100_000)]));
    assert_eq!(of("toku-insert-multiple"), (0, 10, vec![each("insert", 100_000)]));
    assert_eq!(of("nudb-insert"), (1_000_000, 1, vec![once("insert", 0)]));
    assert_eq!(of("nudb-fetch"), (1_000_000, 1, vec![once("insert", 0), once("fetch", 1_000_000)]));
    assert_eq!(of("nudb-mixed"), (0, 500, vec![each("insert", 20_000), each("fetch", 20_000)]));
}
