//! Builds, versions and settings of engines that are compared by trials in turns.

use super::command::kvdyno;
use std::path::Path;

const SMALL: &str = "keys = 1000\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\njoin = 1000\n\
    [[phase]]\nname = 'run'\nmix = { get = 9, update = 1 }\nseconds = 5\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten();
    all.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn each_figure_of_each_arm_has_a_row_and_the_loaded_databases_are_removed() {
    let folder = folder();
    let printed = kvdyno(
        folder.path(),
        "ab small.toml --a lmdb --b memory-btree --b lmdb:durability=none --trial 0.1 --minutes 0.1 --format csv",
    );
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let rows: Vec<Vec<&str>> = printed.stdout.lines().map(|line| line.split(',').collect()).collect();
    let figures: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[2], row[4])).collect();
    let expected = [
        ("ops_per_second", "memory-btree"),
        ("ops_per_second", "lmdb"),
        ("p99_ns", "memory-btree"),
        ("p99_ns", "lmdb"),
    ];
    assert_eq!(figures, expected, "{}", printed.stdout);
    for row in &rows[1..] {
        assert!(row[6].parse::<f64>().is_ok_and(|value| value > 0.0), "{}", printed.stdout);
        assert!(row[12].parse::<u64>().is_ok_and(|blocks| blocks > 0), "{}", printed.stdout);
    }
    let [own] = &entries(&folder.path().join("kvdyno-results"))[..] else { panic!("one folder") };
    let kept = entries(own);
    assert!(kept.len() > 5, "each trial is kept: {kept:?}");
    assert!(kept.iter().all(|path| path.join("run.json").is_file()), "{kept:?}");
}

#[test]
fn arms_that_cannot_be_compared_are_refused_in_one_line_before_anything_is_written() {
    let folder = folder();
    for (flags, wanted) in [
        ("--a lmdb --b lmdb", "two arms are equal"),
        ("--a lmdb --b nosuch", "unknown engine `nosuch`"),
        ("--a lmdb --b gone.so", "gone.so: No such file"),
        ("--a lmdb --b small.toml.so", "small.toml.so: "),
        ("--a lmdb --b lmdb:nosuch=1", "unknown option of lmdb `nosuch`"),
        ("--a lmdb --b memory-btree --seconds 3", "--seconds: ab sets"),
        ("--a lmdb --b memory-btree --keys 1k,2k", "one workload at a time"),
        ("--a lmdb --b memory-btree --until 90%", "expected 0.1% to 50%"),
        ("--a lmdb --b memory-btree --minutes 0", "expected 0.1 to 1440"),
        ("--a lmdb,redb --b memory-btree", "lmdb,redb"),
    ] {
        let printed = kvdyno(folder.path(), &format!("ab small.toml {flags}"));
        assert_eq!(printed.code, Some(2), "{flags}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{flags}: {}", printed.stderr);
        assert!(!folder.path().join("kvdyno-results").exists(), "{flags}");
    }
}

#[test]
fn arms_at_different_levels_are_refused_unless_a_level_is_given() {
    let folder = folder();
    let printed = kvdyno(folder.path(), "ab small.toml --a lmdb --b redb --trial 0.1 --minutes 0.1");
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("lmdb is at level process, and redb at level power"),
        "{}",
        printed.stderr
    );
    let given = "ab small.toml --a lmdb:durability=power --b redb --trial 0.1 --minutes 0.1";
    let printed = kvdyno(folder.path(), given);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(printed.stdout.contains("A: lmdb, at level power"), "{}", printed.stdout);
}
