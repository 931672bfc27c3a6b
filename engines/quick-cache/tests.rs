//! Checks specific to this driver; `kvdyno prove --only rules` checks the rest.

use super::*;

#[test]
fn tells_the_version_that_is_locked() {
    let lock = include_str!("../../Cargo.lock");
    assert!(lock.contains(&format!("name = \"quick_cache\"\nversion = \"{VERSION}\"\n")));
}

#[test]
fn a_budget_in_bytes_is_kept_and_rows_go() {
    let budget = 1 << 20;
    let cache = Cache::with_weighter(1_000, budget, Bytes);
    for number in 0..10_000_u32 {
        cache.insert(number.to_le_bytes().into(), vec![0; 1_000].into());
        assert!(cache.weight() <= budget, "{number}: {}", cache.weight());
    }
    let rows = cache.len() as u64;
    assert!(rows > 500 && rows * (4 + 1_000 + ROW_BYTES) <= budget, "{rows}");
}
