//! Tests of the answers, and of the choice of engines.

use super::*;

fn candidate(name: &str, language: &str, capabilities: &[&str]) -> Candidate {
    let capabilities = capabilities.iter().map(|name| name.to_string()).collect();
    let proven = Proven {
        name: name.into(),
        version: None,
        levels: vec!["process".into()],
        capabilities,
        traits: Vec::new(),
    };
    Candidate {
        name: name.into(),
        family: "lsm".into(),
        language: language.into(),
        licence: "MIT".into(),
        proven: Some(proven),
        is_reference: false,
        properties: Properties::default(),
        option: None,
        given: Vec::new(),
        install: None,
    }
}

fn needed() -> Needs {
    Needs {
        ordered: true,
        transactions: false,
        cache: false,
        expiry: false,
        key_bytes: 16,
        caller: None,
        one_file: false,
        processes: Processes::One,
        gives_space_back: false,
        released_since: None,
        durability: Durability::Process,
        any_safety: false,
        reads: 0.5,
        value_bytes: 100,
        data_bytes: 1 << 20,
        memory_bytes: None,
        threads: 1,
        languages: Accepted::Only(vec!["Go".into()]),
        licences: Accepted::Any,
        rate: None,
        limits: None,
    }
}

#[test]
fn the_need_that_leaves_no_engine_is_named_with_those_before_it() {
    let all = vec![candidate("a", "Rust", &["ordered"]), candidate("b", "Go", &[])];
    let error = choice(&needed(), all).err().expect("nothing is left").to_string();
    assert!(error.contains("not written in Go: a\n  before: no ordered scans: b"), "{error}");
    assert!(error.contains("relax --language"), "{error}");
}

#[test]
fn every_engine_fits_or_is_ruled_out_once() {
    let all = vec![
        candidate("a", "Go", &["ordered"]),
        candidate("b", "Rust", &["ordered"]),
        candidate("c", "Rust", &[]),
        candidate("d", "Go", &["ordered", "evicts"]),
    ];
    let found = choice(&needed(), all).expect("one is left");
    let fit: Vec<&str> = found.fit.iter().map(|candidate| candidate.name.as_str()).collect();
    assert_eq!(fit, ["a"]);
    let lines: Vec<String> = found.ruled_out.iter().map(line).collect();
    assert_eq!(lines, ["drops entries: it is a cache: d", "no ordered scans: c", "not written in Go: b"]);
}

#[test]
fn an_engine_that_loses_data_is_ruled_out_with_what_was_seen_and_any_safety_accepts_it() {
    let certified = |name: &str| {
        let mut candidate = candidate(name, "Go", &["ordered"]);
        candidate.proven = proven(name).cloned();
        candidate
    };
    let all = || vec![certified("badger"), certified("bbolt")];
    let names = |found: &Fitting| found.fit.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let found = choice(&needed(), all()).expect("bbolt is left");
    assert_eq!(names(&found), ["bbolt"]);
    let lines: Vec<String> = found.ruled_out.iter().map(line).collect();
    let [reason] = &lines[..] else { panic!("{lines:?}") };
    assert!(reason.starts_with("loses data in kvdyno's crash tests; --any-safety accepts that: badger ("));
    assert!(reason.ends_with("kills left lost or wrong data)"), "{reason}");
    assert_eq!(unsafe_ones(&needed(), &found.fit), None);
    let needs = Needs { any_safety: true, ..needed() };
    let found = choice(&needs, all()).expect("both are left");
    assert_eq!(names(&found), ["badger", "bbolt"]);
    let note = unsafe_ones(&needs, &found.fit).expect("a mark");
    assert!(note.contains("have no rank (--any-safety): badger ("), "{note}");
    // Whoever needs nothing to survive loses nothing.
    let needs = Needs { durability: Durability::None, ..needed() };
    assert_eq!(names(&choice(&needs, all()).expect("both are left")), ["badger", "bbolt"]);
}

#[test]
fn answers_are_checked() {
    assert_eq!((percent("95%").unwrap(), percent("0").unwrap()), (0.95, 0.0));
    for text in ["101", "-1", "x", "", "NaN", "inf", "5%%"] {
        assert!(percent(text).is_err(), "{text}");
    }
    assert!(yes_or_no("Y").unwrap() && !yes_or_no("no").unwrap());
    assert!(yes_or_no("maybe").is_err() && level("strong").is_err());
    assert_eq!((memory("all").unwrap(), memory("4GiB").unwrap()), (None, Some(4 << 30)));
    assert!(memory("1k").is_err());
    let known = ["C", "Go", "Rust"];
    assert_eq!(
        accepted("rust, go", &known, "language").unwrap(),
        Accepted::Only(vec!["Rust".into(), "Go".into()])
    );
    let refusal = |text| accepted(text, &known, "language").unwrap_err().to_string();
    assert!(refusal("rusty").contains("did you mean `Rust`?"));
    assert!(accepted("permissive", &known, "language").is_err());
    for (text, expected) in [
        ("", "an empty language; known: C, Go, Rust, any"),
        ("rust,", "an empty language; known: C, Go, Rust, any"),
        ("rust,any", "`any` accepts every language; leave out the others"),
    ] {
        assert_eq!(refusal(text), expected, "{text:?}");
    }
}

#[test]
fn without_a_terminal_all_missing_flags_are_named() {
    let mut interview = Interview { can_ask: false, missing: Vec::new() };
    for flag in ["--ordered", "--data"] {
        let question = Question {
            flag,
            text: "?",
            default: "no".into(),
            given: &None,
            is_required: true,
            parse: &yes_or_no,
        };
        assert!(!interview.ask(question).expect("the default"));
    }
    let error = interview.end().unwrap_err().to_string();
    assert!(error.contains("missing --ordered and --data"), "{error}");
}

#[test]
fn many_engines_are_reduced_to_the_default_set_unless_engines_were_named() {
    let names = |count: usize| (0..count).map(|place| format!("engine-{place}")).collect::<Vec<_>>();
    let default = ["engine-1".to_string(), "engine-3".to_string(), "elsewhere".to_string()];
    let all = ["kvdyno", "choose"];
    let named = ["kvdyno", "choose", "--engines", "all"];
    let of = |words: &[&str], fit: usize, default: &[String]| {
        let Ok(super::super::Parsed { command: super::super::Command::Choose(args), .. }) =
            super::super::parsed(words.iter().copied())
        else {
            panic!("{words:?}")
        };
        measured_of(&args, names(fit), default)
    };
    assert_eq!(of(&all, 8, &default), (names(8), vec![]), "eight are measured");
    let (measured, others) = of(&all, 9, &default);
    assert_eq!((measured, others.len()), (vec!["engine-1".to_string(), "engine-3".to_string()], 7));
    assert_eq!(of(&named, 9, &default), (names(9), vec![]));
    // One engine of the default set would be compared with none.
    let (measured, others) = of(&all, 9, &default[..1]);
    assert_eq!((measured.len(), measured[0].as_str(), others), (9, "engine-1", vec![]));
}

#[test]
fn files_and_folders_whose_names_begin_with_a_dash_are_no_flags() {
    let Ok(super::super::Parsed { command: super::super::Command::Choose(args), .. }) =
        super::super::parsed(["kvdyno", "choose", "--results=-out"])
    else {
        panic!("a folder is accepted")
    };
    assert_eq!(args.results, Path::new("-out"));
    // Nothing is measured, because the file is not there.
    let file = args.results.join("choose-no-such-file.toml");
    let found = measured(&args, &[], &file, &["null".to_string()], &[], Choice::default());
    let error = found.unwrap_err().to_string();
    assert!(error.contains("./-out/choose-no-such-file.toml"), "{error}");
}

#[test]
fn an_option_that_gives_a_needed_capability_is_set_and_no_other() {
    let fjall = || {
        catalogue().iter().find(|known| known.name == "fjall").map(Candidate::absent).expect("it is known")
    };
    let needs = Needs { transactions: true, languages: Accepted::Any, ..needed() };
    let with = fjall().with_option(&needs.capabilities());
    assert_eq!(with.option, Some(("transactions".to_string(), "true".to_string())));
    let found = choice(&needs, vec![with]).expect("its option gives transactions");
    assert_eq!(found.fit[0].name, "fjall");
    assert!(choice(&needs, vec![fjall()]).is_err(), "without it, it has none");
    assert_eq!(fjall().with_option(&["ordered"]).option, None, "it needs no option for that");
}
