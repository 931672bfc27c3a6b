//! Tests of the words that select engines, on the built-in engines and the catalogue.

use super::*;

fn registry() -> Registry {
    Registry::load(&[])
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(String::from).collect()
}

fn names(text: &str) -> Vec<String> {
    let selection = registry().select(&words(text), DEFAULT);
    let mut names = selection.unwrap_or_else(|error| panic!("{text}: {error:?}")).names();
    names.sort();
    names
}

fn is_grouped(name: &str) -> bool {
    registry().engine(name).is_ok_and(|engine| engine.is_compared())
}

#[test]
fn the_default_set_has_one_engine_of_each_kind_that_people_choose() {
    let marked: Vec<&Known> = catalogue().iter().filter(|known| known.default.is_some()).collect();
    let places: BTreeSet<&str> = marked.iter().filter_map(|known| known.default.as_deref()).collect();
    assert!((14..=18).contains(&places.len()), "{places:?}");
    let families: BTreeSet<&str> = marked.iter().map(|known| known.family.as_str()).collect();
    assert!(families.len() >= 5, "{families:?}");
    let of_compared = catalogue().iter().filter(|known| is_compared_family(&known.family));
    let all: BTreeSet<&str> = of_compared.map(|known| known.language.as_str()).collect();
    let languages: BTreeSet<&str> = marked.iter().map(|known| known.language.as_str()).collect();
    assert_eq!(languages, all);
    assert!(marked.iter().all(|known| is_compared_family(&known.family)), "a marked engine is in no group");
}

#[test]
fn the_first_available_engine_of_a_place_runs_and_a_place_without_one_is_missing() {
    let selection = registry().default_set();
    let places: BTreeSet<&str> = catalogue().iter().filter_map(|known| known.default.as_deref()).collect();
    assert_eq!(selection.chosen.len() + selection.missing.len(), places.len());
    let place_of = |name: &str| known(name).and_then(|known| known.default.clone()).unwrap();
    let chosen: Vec<String> = selection.chosen.iter().map(|chosen| place_of(&chosen.name)).collect();
    for (name, advice) in &selection.missing {
        assert!(!chosen.contains(&place_of(name)) && advice.contains("to install: "), "{name}: {advice}");
    }
    for candidate in registry().candidates() {
        let is_first = selection.chosen.iter().any(|chosen| chosen.name == candidate.name);
        let is_taken = candidate.default.is_some_and(|place| chosen.iter().any(|other| other == place));
        assert!(is_first || is_taken || candidate.default.is_none() || candidate.advice.is_some());
    }
    assert_eq!(registry().select(&words(DEFAULT), ALL).unwrap(), selection);
}

#[test]
fn groups_contain_what_their_words_say_and_never_floors_examples_mutants_or_servers() {
    let all = names(ALL);
    assert!(all.len() >= 2 && all.iter().all(|name| is_grouped(name)), "{all:?}");
    let of = |test: &dyn Fn(&Candidate<'_>) -> bool| -> Vec<String> {
        let registry = registry();
        let own = registry.candidates();
        let own = own.iter().filter(|candidate| candidate.is_grouped && candidate.advice.is_none());
        let mut names: Vec<String> =
            own.filter(|candidate| test(candidate)).map(|candidate| candidate.name.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names("rust"), of(&|candidate| candidate.language == "Rust"));
    assert_eq!(names("RUST,rust,Rust"), names("rust"));
    assert_eq!(names("memory"), of(&|candidate| candidate.family == "memory"));
    assert_eq!(names("memory-*"), of(&|candidate| candidate.name.starts_with("memory-")));
    assert_eq!(names("*"), all);
    assert_eq!(names("memory-btree,null,mutant:bit-flip"), ["memory-btree", "mutant:bit-flip", "null"]);
}

#[test]
fn exclusions_apply_from_left_to_right() {
    let without = names("all,-memory-map");
    assert_eq!(without.len(), names(ALL).len() - 1);
    assert!(!without.contains(&"memory-map".to_string()));
    assert_eq!(names("all,-memory-map,memory-map"), names(ALL));
    assert_eq!(names("memory,-*-map,-cache"), ["memory-btree"]);
    let selection = registry().select(&words("-memory-btree"), DEFAULT).unwrap();
    assert_eq!(selection.chosen.len(), registry().default_set().chosen.len() - 1);
    assert_eq!(registry().select(&words("memory-map,-rust"), ALL), Err(SelectError::Empty));
    assert_eq!(names("memory-map (log=on),memory-btree,-memory-map"), ["memory-btree"]);
}

#[test]
fn a_name_stays_named_also_if_a_group_contains_it() {
    for text in ["memory-map,rust", "rust,memory-map"] {
        let selection = registry().select(&words(text), ALL).unwrap();
        let named: Vec<&str> =
            selection.chosen.iter().filter(|one| one.is_named).map(|one| one.name.as_str()).collect();
        assert_eq!(named, ["memory-map"], "{text}");
    }
}

#[test]
fn a_group_without_an_available_engine_reports_its_engines() {
    let selection = registry().select(&words("example-c*,memory-map"), ALL);
    assert_eq!(
        selection,
        Err(SelectError::MustBeNamed("example-c*".into(), vec!["example-cpp".into()])),
        "examples are in no group"
    );
    let registry = registry();
    let Some(absent) = registry.absent().iter().find(|absent| absent.is_compared()) else { return };
    let pattern = format!("{}?", &absent.known.name[..absent.known.name.len() - 1]);
    let selection = registry.select(&words(&format!("{pattern},memory-map")), ALL).unwrap();
    assert!(selection.missing.iter().any(|(name, _)| *name == absent.known.name), "{selection:?}");
}

#[test]
fn hostile_words_are_unknown_and_never_match_by_accident() {
    let long = "*a".repeat(20_000);
    let list = [
        "",
        "-",
        "--",
        "rdeb",
        "l sm",
        "al",
        "\u{1b}[31m",
        "\u{0}",
        "memory-btree*x",
        "?",
        "mutant:*",
        "mutant:nope",
        "none",
        "mutant",
        "(",
        " (",
        "../redb",
        "[a-z]*",
        "all all",
        "\u{202e}",
        &long,
    ];
    for word in list {
        for text in [word.to_string(), format!("-{word}")] {
            let found = registry().select(std::slice::from_ref(&text), ALL);
            match is_pattern(word) {
                true => assert!(matches!(found, Err(SelectError::NoMatch(..))), "{text:?}: {found:?}"),
                false => assert!(matches!(found, Err(SelectError::Unknown(..))), "{text:?}: {found:?}"),
            }
        }
    }
    let Err(SelectError::Unknown(word, known)) = registry().select(&words("all,rsut"), ALL) else {
        panic!("it is known")
    };
    assert_eq!(word, "rsut");
    for expected in
        ["rust", "lsm", "all", "default", "in-memory", "memory-btree", "mutant:stale-read", "server"]
    {
        assert!(known.iter().any(|known| known == expected), "{expected}");
    }
}

#[test]
fn patterns_match_complete_names() {
    for (pattern, name, expected) in [
        ("*", "", true),
        ("*", "a", true),
        ("?", "", false),
        ("a*c", "abbbc", true),
        ("a*c", "abbbcd", false),
        ("*a*b", "xaxbxab", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("**a**", "bab", true),
        ("ab", "abc", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}
