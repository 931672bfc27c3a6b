//! Counts per op that are saved and checked.

use super::ab::build_example;
use super::command::{Printed, kvdyno};
use std::path::Path;

const SMALL: &str = "keys = 1000\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\n\
    [[phase]]\nname = 'run'\nmix = { get = 1, update = 1 }\nseconds = 5\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

const WRITE_ONE: &str = "static uint32_t write_one(kv_session *session, kv_op *op, kv_batch *batch) {\n";

/// Builds the example driver so that each commit writes a byte to a log in memory, and each 100th one as often again as `extra`.
fn build_logging(folder: &Path, extra: u32) {
    let log = format!(
        "#include <unistd.h>\nint memfd_create(const char *, unsigned);\n{WRITE_ONE}  static int log = -1, count;\n  \
         if (log < 0) log = memfd_create(\"log\", 0);\n  int writes = ++count % 100 == 0 ? 1 + {extra} : 1;\n  \
         while (writes-- > 0)\n    if (write(log, \"x\", 1) != 1) return KV_ERROR;\n"
    );
    build_example(folder, (WRITE_ONE, &log));
}

fn guard(folder: &Path, words: &str) -> Printed {
    kvdyno(folder, &format!("guard {words}"))
}

const SAVE: &str = "save base.json small.toml --ops 1000 --durability none";

#[test]
fn one_more_write_in_a_hundred_commits_is_found_and_an_equal_build_is_not_accused() {
    let folder = folder();
    build_logging(&folder.path().join("old"), 0);
    build_logging(&folder.path().join("new"), 1);
    let saved = guard(folder.path(), &format!("{SAVE} -e old/libkvdyno_example.so"));
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    assert!(saved.stdout.contains("small, example 1 at level none: 10 runs"), "{}", saved.stdout);
    let row = |start: &str| saved.stdout.lines().find(|line| line.starts_with(start)).map(words_of);
    let exact = row("load   write calls").expect("a row for the writes of the load");
    assert_eq!(exact, ["load", "write", "calls", "1", "exact"], "{}", saved.stdout);
    let again = guard(folder.path(), "check base.json");
    assert_eq!(again.code, Some(0), "{}\n{}", again.stdout, again.stderr);
    assert!(again.stdout.starts_with("small: none rose"), "{}", again.stdout);
    let worse = guard(folder.path(), "check base.json -e new/libkvdyno_example.so");
    assert_eq!(worse.code, Some(10), "{}\n{}", worse.stdout, worse.stderr);
    let line = "load: write calls rose from 1 to 1.01 per op (+1 %)";
    assert!(worse.stdout.lines().any(|one| one == line), "{}", worse.stdout);
    assert!(
        worse.stdout.lines().any(|one| one.starts_with("run: write calls rose from 0.")),
        "{}",
        worse.stdout
    );
    // The harness's own calls, those of the thread that watches among them, are not the engine's.
    let text = std::fs::read_to_string(folder.path().join("base.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let run = file["phases"][1]["counts"].as_object().unwrap();
    let reads = run.keys().filter(|name| name.starts_with("read") || name.starts_with("open"));
    assert_eq!(reads.collect::<Vec<_>>(), Vec::<&String>::new());
    // What the file was made with is not what is checked now.
    let file = folder.path().join("base.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"engine\": \"example 1\"", "\"engine\": \"example 0\"")).unwrap();
    let noted = guard(folder.path(), "check base.json --format csv");
    assert_eq!(noted.code, Some(0), "{}\n{}", noted.stdout, noted.stderr);
    let note = "note: engine: example 0 when the counts were saved, example 1 now";
    assert!(noted.stderr.lines().any(|line| line == note), "{}", noted.stderr);
    let row = "small,load,write calls,1,1,same,";
    assert!(noted.stdout.lines().any(|line| line.starts_with(row)), "{}", noted.stdout);
}

fn words_of(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

#[test]
fn the_syncs_of_an_engine_are_counted_by_name() {
    let folder = folder();
    let words = "save base.json small.toml --keys 50 --ops 100 --durability power --set load.join=1 -e redb";
    let saved = guard(folder.path(), words);
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    let text = std::fs::read_to_string(folder.path().join("base.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let load = &file["phases"][0];
    assert_eq!(load["ops"][0], 50);
    let syncs: u64 = ["fsync calls", "fdatasync calls"]
        .iter()
        .filter_map(|name| load["counts"][name].get(0)?.as_u64())
        .sum();
    assert!(syncs >= 50, "each commit syncs: {load}");
}

#[test]
fn what_cannot_be_guarded_is_refused_in_one_line_before_anything_is_written() {
    let folder = folder();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("there.json", "{}");
    file("text.json", "no json");
    let of_phases = |phases: &str| {
        let workload = "keys = 9\\n[[phase]]\\nname = 'run'\\nmix = { put = 1 }\\nops = 9\\n";
        format!(
            "{{\"format\":1,\"made_with\":{{}},\"engine\":\"lmdb\",\"workload_name\":\"w\",\"workload\":\"{workload}\",\
             \"phases\":[{phases}]}}"
        )
    };
    file("short.json", &of_phases("{\"name\":\"run\",\"ops\":[9],\"counts\":{\"write calls\":[9]}}"));
    file("empty.json", &of_phases(""));
    file(
        "newer.json",
        "{\"format\":9,\"made_with\":{},\"engine\":\"lmdb\",\"workload_name\":\"w\",\"workload\":\"\",\"phases\":[]}",
    );
    for (words, wanted) in [
        ("check gone.json", "gone.json: No such file"),
        ("check text.json", "text.json is not a guard file: "),
        ("check there.json", "there.json is not a guard file: missing field"),
        ("check newer.json", "its format is 9, and this version reads 1"),
        (
            "check short.json",
            "short.json is not a guard file: phase run does not have 10 values of each count",
        ),
        ("check empty.json", "empty.json is not a guard file: its phases are not those of its workload"),
        ("save new.json small.toml -e lmdb --cpus 0", "guard counts without CPUs"),
        ("save there.json small.toml -e lmdb", "there.json already exists"),
        ("save new.json small.toml -e lmdb --seconds 3", "--seconds: guard sets"),
        ("save new.json small.toml -e lmdb --runs 3", "--runs: guard sets"),
        ("save new.json small.toml -e lmdb --rate 1k", "phase run has a rate"),
        ("save new.json small.toml -e lmdb --keys 1k,2k", "guard runs one workload at a time"),
        ("save new.json small.toml -e nosuch", "unknown engine `nosuch`"),
        ("save new.json small.toml -e gone.so", "gone.so: No such file"),
        ("save nowhere/new.json small.toml -e lmdb", "nowhere"),
    ] {
        let printed = guard(folder.path(), words);
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
        assert!(!folder.path().join("kvdyno-results").exists(), "{words}");
    }
}

#[test]
fn a_count_that_is_not_known_any_more_is_told_and_a_kvdyno_that_does_not_count_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let saved = guard(folder.path(), "save base.json small.toml --keys 50 --ops 50 -e memory-btree");
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    let path = folder.path().join("base.json");
    let mut file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    file["phases"][1]["counts"]["instructions of another kind"] = serde_json::json!(vec![7; 10]);
    std::fs::write(&path, file.to_string()).unwrap();
    let checked = guard(folder.path(), "check base.json");
    assert_eq!(checked.code, Some(0), "{}\n{}", checked.stdout, checked.stderr);
    let note = "note: run: instructions of another kind: saved, but not known now, so not checked";
    assert!(checked.stderr.lines().any(|line| line == note), "{}", checked.stderr);
    // An older kvdyno does not know that it should count.
    let old = folder.path().join("old");
    let script = format!(
        "#!/bin/sh\nfile=$(printf %s \"$2\" | sed -n 's/.*\"file\":\"\\([^\"]*\\)\".*/\\1/p')\n\
         [ -z \"$file\" ] || sed -i 's/\"counts_calls\":true/\"counts_calls\":false/' \"$file\"\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_kvdyno")
    );
    std::fs::write(&old, script).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = guard(folder.path(), "check base.json -e memory-btree@./old");
    assert_eq!(refused.code, Some(1), "{}\n{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("its system calls were not counted"), "{}", refused.stderr);
}
