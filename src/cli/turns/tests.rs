//! Tests of arms and of what flags accept.

use super::*;

fn given(text: &str) -> Result<Given, String> {
    text.parse()
}

#[test]
fn an_arm_is_an_engine_or_a_file_with_options() {
    assert_eq!(given("lmdb"), given("lmdb:"));
    let with_options = given("rocksdb:block_cache=64MiB,bloom=10").unwrap();
    assert_ne!(given("rocksdb").unwrap(), with_options);
    assert!(
        arm::check_different(&[&with_options, &given("rocksdb:bloom=10,block_cache=64MiB").unwrap()])
            .is_err()
    );
    assert!(
        arm::check_different(&[&with_options, &given("rocksdb:bloom=11,block_cache=64MiB").unwrap()]).is_ok()
    );
    // A level is not an option of the engine.
    assert!(
        arm::check_different(&[&given("redb:durability=none").unwrap(), &given("redb").unwrap()]).is_ok()
    );
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
    assert!(arm::check_different(&[&one, &copy]).is_err());
    assert!(arm::check_different(&[&one, &other]).is_ok());
    // Of files that cannot be read nothing is known.
    let gone = given(folder.path().join("gone.so").to_str().unwrap()).unwrap();
    assert!(arm::check_different(&[&one, &gone]).is_ok());
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
    let metric = |figure| Metric { phase: "run".into(), figure };
    let worse = |figure, verdict| is_worse(&metric(figure), verdict);
    assert!(worse(Figure::Rate, Verdict::Lower) && !worse(Figure::Rate, Verdict::Higher));
    assert!(worse(Figure::P99, Verdict::Higher) && !worse(Figure::P99, Verdict::Lower));
    assert!(!worse(Figure::P99, Verdict::Same) && !worse(Figure::Rate, Verdict::Unknown));
}
