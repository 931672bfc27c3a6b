//! Checks specific to this driver; `kvdyno prove --only rules` checks the rest.

#[test]
fn tells_the_version_that_is_locked() {
    let lock = include_str!("../../Cargo.lock");
    assert!(lock.contains(&format!("name = \"fjall\"\nversion = \"{}\"\n", super::VERSION)));
}
