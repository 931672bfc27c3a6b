//! What is special to this driver; the rest is asked by `kvdyno verify`.

#[test]
fn tells_the_version_that_is_locked() {
    let lock = include_str!("../../Cargo.lock");
    assert!(lock.contains(&format!("name = \"redb\"\nversion = \"{}\"\n", super::VERSION)));
}
