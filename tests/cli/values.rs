//! Values of 0 bytes: on engines of every language, and on one that has none.

use super::command::kvdyno;

const SMALL: &str = "--keys 500 --ops 500 --runs 1 --quiet --full";

#[test]
fn values_of_no_bytes_are_measured_and_what_is_not_checked_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for size in ["0", "uniform:0-100", "histogram:0*1,100*9"] {
        let words = format!(
            "run ycsb-a scan-short --engines memory-btree,lmdb,sqlite,rocksdb,bbolt {SMALL} --value-size {size}"
        );
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{size}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(!printed.stdout.contains("failed"), "{size}\n{}", printed.stdout);
        let said =
            if size == "0" { "Values have 0 bytes" } else { "of those of 0 bytes presence and length" };
        let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said), "{size}\n{}", printed.stdout);
    }
}

#[test]
fn an_engine_without_values_of_no_bytes_is_refused_before_it_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let reason = "values may have 0 bytes, but the engine supports only values of 1 byte or more";
    let printed = kvdyno(
        folder.path(),
        &format!("run ycsb-a --engines lotusdb,goleveldb {SMALL} --value-size uniform:0-100"),
    );
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(reason), "{}\n{}", printed.stderr, printed.stdout);
    let report = kvdyno(folder.path(), "report --format json").stdout;
    let json: serde_json::Value = serde_json::from_str(&report).unwrap();
    let of = |engine: &str| {
        let mut records = json["records"].as_array().unwrap().iter();
        records.find(|record| record["trial"]["engine"] == engine).unwrap().clone()
    };
    assert_eq!(
        (&of("lotusdb")["outcome"]["cause"], &of("goleveldb")["outcome"]["status"]),
        (&"refused".into(), &"ok".into())
    );
    let phases = of("lotusdb")["phases"].as_array().unwrap().clone();
    assert!(phases.iter().all(|phase| phase["not_run"] == reason && phase["ops"] == 0), "{phases:?}");
    // Rows of an index have no value.
    let words = format!("run indexed-insert --engines lotusdb {SMALL}");
    let printed = kvdyno(folder.path(), &words);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("index rows have no value"), "{}\n{}", printed.stderr, printed.stdout);
}

#[test]
fn a_row_that_is_lost_because_its_value_has_no_bytes_is_a_wrong_answer() {
    let folder = tempfile::tempdir().unwrap();
    let printed =
        kvdyno(folder.path(), &format!("run ycsb-b --engines mutant:empty-absent {SMALL} --value-size 0"));
    assert_eq!(printed.code, Some(3), "{}\n{}", printed.stderr, printed.stdout);
    let verified =
        kvdyno(folder.path(), "prove --only rules mutant:empty-absent --check empty-values --check basics");
    assert_eq!(verified.code, Some(3), "{}\n{}", verified.stderr, verified.stdout);
    assert!(verified.stdout.contains("KV_NO_EMPTY_VALUES"), "{}", verified.stdout);
}

#[test]
fn keys_have_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), "run ycsb-b --engines memory-btree --key-size 0");
    assert_eq!(printed.code, Some(2), "{}\n{}", printed.stderr, printed.stdout);
    assert!(
        printed.stderr.contains("`key.size`: expected sizes from 4 B to 64 KiB, got 0 B"),
        "{}",
        printed.stderr
    );
}
