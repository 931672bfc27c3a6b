//! Tests of arms and of what flags accept.

use super::*;
use kvdyno_change::paired::Verdict;

fn given(text: &str) -> Result<Given, String> {
    text.parse()
}

#[test]
fn an_arm_is_an_engine_or_a_file_with_options() {
    assert_eq!(given("lmdb"), given("lmdb:"));
    let with_options = given("rocksdb:block_cache=64MiB,bloom=10").unwrap();
    assert_ne!(given("rocksdb").unwrap(), with_options);
    let in_other_order = given("rocksdb:bloom=10,block_cache=64MiB").unwrap();
    assert_eq!(equal(&[&given("lmdb").unwrap(), &with_options, &in_other_order]), Some((1, 2)));
    assert_eq!(equal(&[&with_options, &given("rocksdb:bloom=11,block_cache=64MiB").unwrap()]), None);
    // A level is not an option of the engine.
    assert_eq!(equal(&[&given("redb:durability=none").unwrap(), &given("redb").unwrap()]), None);
    for wrong in ["", ":x=1", "lmdb:x", "lmdb:x=1,y"] {
        assert!(given(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn files_with_the_same_content_are_equal_arms() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        given(path.to_str().unwrap()).unwrap()
    };
    let (one, copy, other) = (file("one.so", "1"), file("copy.so", "1"), file("other.so", "2"));
    assert_eq!(equal(&[&one, &copy]), Some((0, 1)));
    assert_eq!(equal(&[&one, &other]), None);
    // Of files that cannot be read nothing is known.
    let gone = given(folder.path().join("gone.so").to_str().unwrap()).unwrap();
    assert_eq!(equal(&[&one, &gone]), None);
}

#[test]
fn parts_are_percentages_or_fractions() {
    assert_eq!((part("2%"), part("0.02"), part(" 1.5 % ")), (Ok(0.02), Ok(0.02), Ok(0.015)));
    for wrong in ["0", "0%", "-1%", "60%", "NaN", "x", ""] {
        assert!(part(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn slower_is_fewer_ops_or_a_longer_p99() {
    let worse = |figure: Figure, verdict| figure.is_worse(verdict);
    assert!(worse(Figure::Rate, Verdict::Lower) && !worse(Figure::Rate, Verdict::Higher));
    assert!(worse(Figure::P99, Verdict::Higher) && !worse(Figure::P99, Verdict::Lower));
    assert!(!worse(Figure::P99, Verdict::Same) && !worse(Figure::Rate, Verdict::Unknown));
}

#[test]
fn a_time_in_which_nothing_can_be_shown_is_refused() {
    assert!(check_time([2, 1, 1], 1.0, 18.0).is_ok());
    let text = check_time([2, 1, 1], 1.0, 12.0).unwrap_err().to_string();
    assert!(text.contains("9 blocks of 2 trials at least, which take 18 s, and it has 12 s"), "{text}");
    assert!(check_time([2, 1, 2], 1.0, 18.0).is_err());
    assert!(check_time([3, 4, 1], 1.0, 18.0).is_err());
    assert!(check_time([2, 1, 3], 0.1, 12.0).is_ok());
}

#[test]
fn an_arm_may_name_the_kvdyno_that_runs_it_and_is_printed_as_it_is_read() {
    for text in
        ["redb@old/kvdyno:cache=1MiB,durability=none", "redb@old/kvdyno", "builds@1/libkvdyno_x.so", "lmdb"]
    {
        assert_eq!(given(text).unwrap().to_string(), text);
    }
    assert!(given("redb@").is_err());
    let (old, this) = (given("redb@old/kvdyno").unwrap(), given("redb").unwrap());
    assert!(equal(&[&old, &this]).is_none(), "another build is another arm");
    assert!(given("redb@/").unwrap().executable().is_err(), "a folder is no kvdyno");
}

#[test]
fn the_same_kvdyno_by_another_path_is_the_same_arm() {
    let this = std::env::current_exe().unwrap();
    let named = given(&format!("redb@{}", this.display())).unwrap();
    assert_eq!(equal(&[&named, &given("redb").unwrap()]), Some((0, 1)));
}
