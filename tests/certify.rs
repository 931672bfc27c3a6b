//! `kvdyno prove --certificate`: a certificate has the results of verify, audit and crash, names what contradicts the driver's claims, and shows
//! that it was changed.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use serde_json::Value;
use std::path::Path;

/// Only kills, so that it needs no root.
const QUICK: &str = "--mode kill --rounds 5 --seed 3";
const OUT: &str = "kvdyno-results/certificates";

fn certificate(folder: &Path, name: &str) -> (Value, String) {
    let path = |ending: &str| folder.join(OUT).join(format!("{name}.{ending}"));
    let text = |ending: &str| std::fs::read_to_string(path(ending)).unwrap();
    (serde_json::from_str(&text("json")).unwrap(), text("md"))
}

#[test]
fn a_sound_engine_has_a_certificate_without_contradictions() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(
        folder.path(),
        &format!("prove --certificate memory-btree {QUICK} --durability process,power"),
    );
    assert_eq!(printed.code, Some(0), "seed 3: {}{}", printed.stdout, printed.stderr);
    let (json, page) = certificate(folder.path(), "memory-btree-0.1.0");
    let levels: Vec<&Value> = json["levels"].as_array().unwrap().iter().collect();
    assert_eq!(
        levels.iter().map(|level| level["level"].as_str().unwrap()).collect::<Vec<_>>(),
        ["process", "power"]
    );
    for level in levels {
        assert_eq!(level["crashes"][0]["rounds"], 5, "{level}");
        assert_eq!(level["crashes"][0]["losses"], 0, "{level}");
        assert_eq!(level["class"], "survives kill; power cut not tested");
    }
    assert!(json["verified"]["passed"].as_u64() > Some(40), "{}", json["verified"]);
    assert!(page.contains("# memory-btree 0.1.0: claimed and measured durability"), "{page}");
    assert!(printed.stdout.contains("not contradicted") && printed.stdout.trim_end().ends_with(OUT));
    assert!(!folder.path().join("kvdyno-results/certify").exists(), "databases were left");
}

#[test]
fn rebuilt_states_are_in_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let words = "prove --certificate memory-btree --mode kill,replay --rounds 1 --states 6 --file-system ext4 --seed 3 --durability power";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "seed 3: {}{}", printed.stdout, printed.stderr);
    let (json, page) = certificate(folder.path(), "memory-btree-0.1.0");
    let replayed = &json["levels"][0]["crashes"][1];
    assert_eq!(replayed["mode"], "replay");
    if let Some(reason) = replayed["skipped"].as_str() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs FUSE and loop devices: {reason}");
        println!("SKIPPED: replay: {reason}");
        return;
    }
    let judged = replayed["rounds"].as_u64().unwrap();
    assert!((1..=6).contains(&judged), "--states is a limit: {replayed}");
    let kinds = replayed["states"].as_array().unwrap().iter();
    assert_eq!(kinds.map(|kind| kind["judged"].as_u64().unwrap()).sum::<u64>(), judged, "{replayed}");
    assert_eq!(replayed["losses"], 0, "{replayed}");
    assert_eq!(json["levels"][0]["class"], "nothing acknowledged is lost");
    assert!(
        page.contains("| power | replay | ext4 | ") && page.contains(&format!(" of {judged} |")),
        "{page}"
    );
    assert!(
        page.contains("kvdyno prove --certificate memory-btree --rounds 1 --states 6 --seed 3"),
        "{page}"
    );
}

#[test]
fn what_each_check_finds_is_a_contradiction() {
    let folder = tempfile::tempdir().unwrap();
    for (fault, check, level) in [
        ("get-fails", "verify: ", "process"),
        ("acknowledges-before-write", "audit, level process: ", "process"),
        ("crash-loses-tail", "crash, level power: ", "power"),
    ] {
        let words = format!("prove --certificate mutant:{fault} {QUICK} --durability {level}");
        let printed = kvdyno(folder.path(), &words);
        if check.starts_with("audit") && printed.stdout.contains("not observed") {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs the seccomp filter");
            println!("skipped: no seccomp filter");
            continue;
        }
        assert_eq!(printed.code, Some(3), "seed 3: {words}: {}{}", printed.stdout, printed.stderr);
        assert!(printed.stdout.contains("CONTRADICTED") || check.starts_with("verify"), "{}", printed.stdout);
        let (_, page) = certificate(folder.path(), &format!("mutant-{fault}-0.1.0"));
        assert!(page.contains("## Contradictions") && page.contains(check), "{check}: {page}");
        assert!(printed.stdout.contains(&format!("mutant-{fault}-0.1.0: {check}")), "{}", printed.stdout);
    }
}

#[test]
fn a_changed_certificate_is_found_and_one_of_another_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!(
        "prove --certificate memory-map {QUICK} --durability process --option memory-map.no-such-option=1"
    );
    let printed = kvdyno(folder.path(), &words);
    assert_eq!(printed.code, Some(2), "{}{}", printed.stdout, printed.stderr);
    let printed = kvdyno(
        folder.path(),
        &format!("prove --certificate memory-map {QUICK} --durability process --out here"),
    );
    assert_eq!(printed.code, Some(0), "seed 3: {}{}", printed.stdout, printed.stderr);
    let file = folder.path().join("here/memory-map-0.1.0.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["subject"]["engine"] = "no-such-engine".into();
    std::fs::write(folder.path().join("here/other.json"), other.to_string()).unwrap();
    std::fs::write(folder.path().join("here/copy.json"), &text).unwrap();
    let check = |files: &str| kvdyno(folder.path(), &format!("prove --check-certificates {files}"));
    let printed = check("here/memory-map-0.1.0.json here/copy.json");
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    assert_eq!(printed.stdout.matches("intact; it is for this executable").count(), 2, "{}", printed.stdout);
    let printed = check("here/copy.json here/other.json");
    assert_eq!(printed.code, Some(3), "{}{}", printed.stdout, printed.stderr);
    assert!(printed.stdout.contains("here/other.json: CHANGED since it was made"), "{}", printed.stdout);
    std::fs::write(folder.path().join("here/empty.json"), "{}").unwrap();
    for (file, wanted) in [("here/empty.json", "this is not a certificate"), ("here/no.json", "cannot read")]
    {
        let printed = check(file);
        assert!(printed.code != Some(0) && printed.stderr.contains(wanted), "{}", printed.stderr);
    }
}

#[test]
fn a_file_of_something_else_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(OUT)).unwrap();
    let taken = folder.path().join(OUT).join("memory-map-0.1.0.json");
    std::fs::write(&taken, "mine").unwrap();
    let printed =
        kvdyno(folder.path(), &format!("prove --certificate memory-map {QUICK} --durability process"));
    assert_eq!(printed.code, Some(0), "seed 3: {}{}", printed.stdout, printed.stderr);
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "mine");
    assert!(printed.stderr.contains("memory-map-0.1.0.json is of something else"), "{}", printed.stderr);
    let files = std::fs::read_dir(folder.path().join(OUT)).unwrap().flatten();
    let names: Vec<String> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("memory-map-0.1.0-")).count(), 2, "{names:?}");
    // A certificate of the same engine, version and options is.
    let own =
        names.iter().find(|name| name.starts_with("memory-map-0.1.0-") && name.ends_with(".json")).unwrap();
    std::fs::rename(folder.path().join(OUT).join(own), &taken).unwrap();
    let printed =
        kvdyno(folder.path(), &format!("prove --certificate memory-map {QUICK} --durability process"));
    assert!(!printed.stderr.contains("is of something else"), "{}", printed.stderr);
}

#[test]
fn what_has_no_certificate_is_refused_or_skipped() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        ("", "required"),
        ("null", "null: skipped: it stores nothing"),
        ("no-such-engine", "unknown engine"),
        ("memory-map --durability default", "name none, process or power"),
        ("sled --durability power", "none of these engines stores anything"),
        ("memory-map --check-certificates x", "cannot be used with"),
    ] {
        let printed = kvdyno(folder.path(), &format!("prove --certificate {words}"));
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
}
