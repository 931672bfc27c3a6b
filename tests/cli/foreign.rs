//! Databases that other programs made: their reads are measured on a copy, nothing is written to them, and every table says
//! that their values were not checked.

use super::command::{Printed, kvdyno};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const SMALL: &str = "--ops 2000 --runs 1 --quiet";
/// Rows of the databases that `stranger.c` makes, and its smallest, and largest value.
const ROWS: u64 = 3000;
const LARGEST: u64 = 70_000 - 7;

/// Makes a database with the library itself; none: the libraries are not here.
fn made(folder: &Path, kind: &str) -> Option<PathBuf> {
    let program = folder.join("stranger");
    if !program.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/stranger.c");
        let built = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-o"])
            .args([&program, &source])
            .args(["-lleveldb", "-lrocksdb", "-llmdb"])
            .output()
            .expect("a C compiler named cc");
        if !built.status.success() {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{}",
                String::from_utf8_lossy(&built.stderr)
            );
            println!("skipped: LevelDB, RocksDB or LMDB cannot be linked here");
            return None;
        }
    }
    let place = folder.join(format!("their-{kind}"));
    assert!(Command::new(&program).arg(kind).arg(&place).status().unwrap().success());
    Some(place)
}

/// Every file below a folder with its bytes and the time of its last change.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(contents(&path)),
            false => {
                let changed = path.metadata().unwrap().modified().unwrap();
                all.insert(path.clone(), (std::fs::read(&path).unwrap(), changed));
            }
        }
    }
    all
}

fn records(folder: &Path) -> Vec<Value> {
    let report = kvdyno(folder, "report --format json");
    let json: Value = serde_json::from_str(&report.stdout).unwrap();
    json["records"].as_array().unwrap().clone()
}

fn refused(folder: &Path, words: &str, wanted: &str) {
    let printed = kvdyno(folder, words);
    assert_eq!(printed.code, Some(2), "{words}\n{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stderr.contains(wanted), "{words}\nwanted {wanted}\ngot {}", printed.stderr);
    let errors = printed.stderr.lines().filter(|line| line.starts_with("error:")).count();
    assert_eq!(errors, 1, "{}", printed.stderr);
}

#[test]
fn databases_of_other_programs_are_read_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    for (kind, engines) in
        [("rocksdb", "rocksdb"), ("leveldb", "leveldb,goleveldb"), ("lmdb", "lmdb,lmdb-system")]
    {
        let Some(place) = made(top, kind) else { return };
        let before = contents(&place);
        let words =
            format!("run read-random scan-short -e {engines} --reuse their-{kind} --foreign {SMALL} --full");
        let Printed { code, stdout, stderr } = kvdyno(top, &words);
        assert_eq!(code, Some(0), "{words}\n{stderr}\n{stdout}");
        assert_eq!(before, contents(&place), "{kind}: nothing is written to the folder");
        let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "(data=foreign)",
            "foreign data, values not checked",
            "on copies of a database that another program made: its values were not checked",
            "foreign data: 3,000 keys, of",
            "values of 0 to 69,993 B",
            "presence",
        ] {
            assert!(text.contains(said), "{kind}: no `{said}` in\n{stdout}");
        }
        let all = records(top);
        assert_eq!(all.len(), 2 * engines.split(',').count(), "no null engine: it would draw other keys");
        for record in all {
            assert_eq!(record["outcome"]["status"], "ok", "{record}");
            let found = &record["foreign"];
            assert_eq!((&found["rows"], &found["drawn"]), (&ROWS.into(), &ROWS.into()));
            let (keys, values) = (&found["key_bytes"], &found["value_bytes"]);
            assert_eq!((&values["min"], &values["max"]), (&0.into(), &LARGEST.into()));
            assert!(keys["min"].as_u64() < keys["median"].as_u64(), "{keys}");
            assert!(keys["median"].as_u64() < keys["max"].as_u64(), "{keys}");
            let phases = record["phases"].as_array().unwrap();
            let ran: Vec<&Value> = phases.iter().filter(|phase| phase["not_run"].is_null()).collect();
            assert_eq!(ran.len(), 1, "only the reads: {phases:?}");
            assert_eq!((&ran[0]["ops"], &ran[0]["logical_bytes_written"]), (&2000.into(), &0.into()));
            assert_eq!(
                (&ran[0]["check"]["level"], &ran[0]["check"]["values"]),
                (&"presence".into(), &0.into())
            );
            let steps = record["steps"].as_array().unwrap();
            assert!(steps.iter().any(|step| step["name"] == "survey"), "{steps:?}");
        }
        let csv = kvdyno(top, "report --format csv").stdout;
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.contains("data=foreign")), "{csv}");
    }
}

#[test]
fn a_sample_of_the_keys_is_drawn_where_there_are_more_than_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    if made(top, "leveldb").is_none() {
        return;
    }
    let words =
        format!("run read-random -e leveldb --reuse their-leveldb --foreign --keys 100 {SMALL} --full");
    let printed = kvdyno(top, &words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stdout.contains("foreign data: 100 of 3,000 keys"), "{}", printed.stdout);
    assert_eq!(records(top)[0]["foreign"]["drawn"], 100);
}

#[test]
fn a_file_of_one_database_and_a_file_of_keys_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let script = "import sqlite3\n\
        db = sqlite3.connect('theirs.sqlite')\n\
        db.execute('CREATE TABLE k0 (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID')\n\
        rows = [(b'row-%06d' % (number * 17), bytes(number % 5000)) for number in range(1000)]\n\
        db.executemany('INSERT INTO k0 VALUES (?, ?)', rows)\n\
        db.commit()\n\
        open('keys', 'wb').write(b''.join(key for key, value in rows[::2]))\n\
        open('others', 'wb').write(b'row-000000' + b'row-000001')\n";
    let ran = Command::new("python3").args(["-c", script]).current_dir(top).output();
    if !ran.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 with sqlite3 is not here");
        return;
    }
    let before = std::fs::read(top.join("theirs.sqlite")).unwrap();
    let base = "-e sqlite-system --reuse theirs.sqlite --foreign";
    for (more, drawn) in [("", 1000), ("--set key.file=keys --key-size 10 --keys 500", 500)] {
        let printed = kvdyno(top, &format!("run read-random {base} {more} {SMALL}"));
        assert_eq!(printed.code, Some(0), "{more}\n{}\n{}", printed.stderr, printed.stdout);
        let record = &records(top)[0];
        assert_eq!(
            (&record["outcome"]["status"], &record["foreign"]["drawn"]),
            (&"ok".into(), &drawn.into()),
            "{record}"
        );
        let rows = if more.is_empty() { Value::from(1000) } else { Value::Null };
        assert_eq!(record["foreign"]["rows"], rows);
        let largest = if more.is_empty() { 999 } else { 998 };
        assert_eq!(record["foreign"]["value_bytes"]["max"], largest);
    }
    let words = format!("run read-random {base} --set key.file=others --key-size 10 --keys 2 {SMALL}");
    let printed = kvdyno(top, &words);
    assert_ne!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the database has no row of key 1 of the key file"), "{}", printed.stdout);
    assert_eq!(before, std::fs::read(top.join("theirs.sqlite")).unwrap());
}

#[test]
fn a_missing_key_and_rows_in_disorder_are_faults_and_changed_values_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let words =
        "run ycsb-c -e memory-btree --keys 500 --ops 500 --runs 1 --durability process --quiet --keep kept";
    let kept = kvdyno(top, words);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    // Without what kvdyno keeps next to it, it is a database like any other.
    std::fs::rename(top.join("kept/memory-btree-ycsb-c/db"), top.join("theirs")).unwrap();
    for (engine, code, said) in [
        ("memory-btree", 0, ""),
        ("mutant:miss-for-present", 3, "not found, expected a value"),
        ("mutant:scan-out-of-order", 3, "returned out of order"),
        ("mutant:truncated-value", 0, ""),
    ] {
        let words = format!(
            "run ycsb-c scan-short -e {engine} --reuse theirs --foreign --ops 3000 --runs 1 --durability process --quiet"
        );
        let printed = kvdyno(top, &words);
        assert_eq!(printed.code, Some(code), "{engine}\n{}\n{}", printed.stderr, printed.stdout);
        let text = format!("{}{}", printed.stdout, printed.stderr);
        assert!(text.contains(said), "{engine}: no `{said}` in\n{text}");
    }
}

#[test]
fn what_is_no_read_of_a_foreign_database_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let place = top.join("theirs");
    std::fs::create_dir(&place).unwrap();
    let run = |more: &str| format!("run {more} {SMALL}");
    refused(top, &run("read-random -e rocksdb --reuse theirs --foreign"), "theirs is empty");
    std::fs::write(place.join("CURRENT"), "text").unwrap();
    refused(top, &run("read-random -e rocksdb --reuse theirs"), "there is no kept database of rocksdb");
    refused(top, &run("read-random --reuse theirs"), "add --foreign");
    refused(top, &run("read-random --reuse theirs --foreign"), "--foreign needs an engine");
    refused(top, &run("read-random -e rocksdb --foreign"), "--reuse");
    refused(top, &run("read-random -e rocksdb --reuse theirs --foreign --keep kept"), "--keep");
    let foreign =
        |workload: &str, engine: &str| run(&format!("{workload} -e {engine} --reuse theirs --foreign"));
    refused(
        top,
        &foreign("ycsb-a", "rocksdb"),
        "phase run writes, and nothing is written to a foreign database",
    );
    refused(top, &foreign("fill-seq", "rocksdb"), "phase fill writes");
    refused(top, &foreign("read-missing", "rocksdb"), "reads absent keys");
    refused(top, &foreign("keyspaces", "rocksdb"), "keyspaces");
    refused(top, &foreign("read-random", "buntdb-memory"), "does not keep its database in a folder");
    refused(top, &foreign("read-random", "tkrzw-hash"), "name a file of keys: --set key.file=FILE");
    refused(
        top,
        &foreign("read-random --results theirs/results", "rocksdb"),
        "is inside the database of another program",
    );
    refused(
        &place,
        &run("read-random -e rocksdb --reuse . --foreign"),
        "is inside the database of another program",
    );
    refused(
        top,
        &run("read-random -e rocksdb --reuse theirs/CURRENT --foreign"),
        "does not keep its database in one file",
    );
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1, "nothing was created there");
    // What kvdyno has kept is checked.
    let kept = kvdyno(top, "run ycsb-c -e redb --keys 500 --ops 500 --runs 1 --quiet --keep kept");
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    refused(top, &run("ycsb-c -e redb --keys 500 --reuse kept --foreign"), "were kept by kvdyno");
}

#[test]
fn a_folder_that_is_no_database_of_the_engine_fails_and_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("theirs");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("CURRENT"), "no manifest\n").unwrap();
    let before = contents(&place);
    for engine in ["leveldb", "lmdb", "fjall"] {
        let words = format!("run read-random -e {engine} --reuse theirs --foreign {SMALL}");
        let printed = kvdyno(folder.path(), &words);
        assert_ne!(printed.code, Some(0), "{engine}\n{}\n{}", printed.stderr, printed.stdout);
        assert_eq!(before, contents(&place), "{engine}");
        let record = &records(folder.path())[0];
        assert!(record["foreign"].is_null() && record["outcome"]["status"] == "failed", "{record}");
    }
}

#[test]
fn a_bucket_of_an_application_in_go_is_read_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("go")
        .args([
            "run".as_ref(),
            root.join("tests/cli/stranger.go").as_os_str(),
            top.join("app.db").as_os_str(),
        ])
        .current_dir(root.join("engines/go"))
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs Go and the modules of engines/go");
        println!("skipped: Go is not here");
        return;
    }
    let before = std::fs::read(top.join("app.db")).unwrap();
    let base = format!("-e bbolt --reuse app.db --foreign {SMALL}");
    let words = format!("run read-random scan-short {base} --option bbolt.bucket=users");
    let printed = kvdyno(top, &words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    for record in records(top) {
        let found = &record["foreign"];
        assert_eq!((&found["rows"], &found["value_bytes"]["max"]), (&2000.into(), &299.into()), "{record}");
    }
    // The bucket that kvdyno would use is not there.
    let printed = kvdyno(top, &format!("run read-random {base}"));
    assert_ne!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the database has no rows that can be read"), "{}", printed.stdout);
    assert_eq!(before, std::fs::read(top.join("app.db")).unwrap());
}
