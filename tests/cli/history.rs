//! `kvdyno history`: runs that were really measured, added and shown, and what is refused.

use super::command::kvdyno;
use std::path::Path;

fn measured(folder: &Path, name: &str, more: &str) {
    let words = format!(
        "run read-random --engines memory-btree --quiet --keys 2000 --ops 4000 --runs 2 --results {name} {more}"
    );
    let printed = kvdyno(folder, &words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
}

#[test]
fn runs_of_commits_are_added_once_and_shown_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured(here, "one", "");
    measured(here, "two", "");
    measured(here, "other", "--value-size 1000");
    let add = |words: &str| kvdyno(here, &format!("history add speed {words}"));
    let first = add("one --commit <b>a --time 2026-11-20T10:15:29+01:00 --note first");
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""), "{}", first.stdout);
    assert!(first.stdout.contains("1 commit in speed/history.jsonl"), "{}", first.stdout);
    let again = add("one --commit b");
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    assert!(again.stderr.contains("already, of commit <b>a"), "{}", again.stderr);
    let second = add("two --commit b");
    assert_eq!((second.code, second.stderr.as_str()), (Some(0), ""), "{}", second.stdout);
    let other = add("other --commit c");
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    assert!(other.stderr.contains("no other run of the history has these settings"), "{}", other.stderr);
    assert!(other.stderr.contains("workload read-random, value, size"), "{}", other.stderr);

    let text = kvdyno(here, "history show speed --full --html page.html");
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    for part in [
        "3 commits, from <b>a to c, in 3 runs",
        "read-random #2 / read",
        "they have 2 commits, and change points need at least 4",
    ] {
        assert!(text.stdout.contains(part), "no `{part}` in\n{}", text.stdout);
    }
    let page = std::fs::read_to_string(here.join("page.html")).unwrap();
    assert!(page.contains("&lt;b&gt;a") && !page.contains("<b>a"), "{page}");
    let csv = kvdyno(here, "history show speed --format csv --figures rate,p50");
    assert_eq!(csv.stdout.lines().count(), 1 + 2 * 4, "two phases, with two settings: {}", csv.stdout);
    let otava = kvdyno(here, "history show speed --format otava --figures rate");
    assert!(otava.stdout.starts_with("time,commit,read-random/"), "{}", otava.stdout);
    assert!(otava.stdout.contains("\n2026-11-20T09:15:29Z,<b>a,"), "{}", otava.stdout);
    assert!(otava.stderr.contains("4 series lack some commits"), "{}", otava.stderr);
    let config = kvdyno(here, "history show speed --format otava-yaml --figures rate");
    assert_eq!(config.stdout.matches("direction: 1\n").count(), 4, "{}", config.stdout);

    let site = kvdyno(here, "report --site . --out site");
    assert_eq!(site.code, Some(0), "{}", site.stderr);
    let index = std::fs::read_to_string(here.join("site/index.html")).unwrap();
    assert!(index.contains("<a href=\"histories/speed.html\">speed</a>: 3 commits, 0 of"), "{index}");
    assert!(here.join("site/histories/speed.html").is_file());
}

#[test]
fn what_is_no_history_no_run_or_no_time_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        (
            "history show nowhere",
            "nowhere has no history.jsonl: it is no history\nhint: `kvdyno history add nowhere RUN",
        ),
        ("history add speed nowhere --commit a", "folder nowhere does not exist"),
        ("history add speed . --commit a", "contains no results"),
        ("history add speed . --commit a --time now", "expected a time with its offset"),
        ("history add speed .", "--commit"),
        ("history show speed --figures speed", "unknown figure `speed`"),
        ("history show speed --format xml", "invalid value 'xml'"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!((printed.code, printed.stdout.as_str()), (Some(2), ""), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "a refused command left something");
}
