//! The first version of an engine that is slower or larger.

use super::ab::{build_example, build_worn, entries, folder};
use super::command::{Printed, kvdyno, prepared};
use std::path::Path;

/// The planted change is far greater than the smallest one that is searched, so a busy machine hides neither.
const FLAGS: &str = "--durability none --trial 0.1 --minutes 3 --smallest 50%";

/// Builds six versions of the example driver, v1 to v6. From v4 on, a get takes many times as long.
fn build_versions(folder: &Path) {
    std::fs::create_dir(folder.join("builds")).unwrap();
    let start = "(void)batch;\n  pthread_mutex_lock";
    for version in 1..=6 {
        let spins = if version < 4 { version } else { 50_000 + version };
        let spin = format!("for (volatile int spin = 0; spin < {spins}; spin++) {{}}\n  {start}");
        build_example(&folder.join(format!("builds/v{version}")), (start, &spin));
    }
}

fn list(folder: &Path, lines: &str) {
    std::fs::write(folder.join("versions.txt"), lines).unwrap();
}

#[test]
fn the_version_with_the_planted_loop_is_named() {
    let folder = folder();
    build_versions(folder.path());
    let line = |version| format!("v{version} builds/v{version}/libkvdyno_example.so\n");
    list(folder.path(), &format!("# the last one is slow\n{}", (1..=6).map(line).collect::<String>()));
    let printed = kvdyno(folder.path(), &format!("bisect small.toml --versions versions.txt {FLAGS}"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let (head, answer) = (printed.stdout.lines().next(), printed.stdout.lines().last());
    assert_eq!(
        head,
        Some("small.toml: ops/s of phase run, 6 versions from v1 to v6, changes of 50 % or more")
    );
    let answer = answer.unwrap();
    assert!(answer.starts_with("the first version that is slower is v4 (0."), "{}", printed.stdout);
    assert!(answer.contains(" of v3; probability that this is wrong: "), "{}", printed.stdout);
    assert!(printed.stdout.contains("\nv6 against v1: 0."), "{}", printed.stdout);
    assert!(printed.stdout.contains("\nv4 against v3: 0."), "{}", printed.stdout);
    // Each version was loaded once, and the databases are gone.
    for version in 1..=6 {
        assert!(printed.stderr.matches(&format!("v{version} (example, ")).count() <= 1, "{}", printed.stderr);
    }
    let [own] = &entries(&folder.path().join("kvdyno-results"))[..] else { panic!("one folder") };
    assert!(!own.join("kept").exists());
}

#[test]
fn versions_are_built_when_needed_and_one_that_does_not_build_is_skipped() {
    let folder = folder();
    build_versions(folder.path());
    // Each build overwrites the last one.
    let script = "echo \"$KVDYNO_VERSION\" >> built\n\
        if [ \"$KVDYNO_VERSION\" = v3 ]; then echo 'no such module' >&2; exit 7; fi\n\
        cp \"builds/$KVDYNO_VERSION/libkvdyno_example.so\" .\n\
        echo built; echo libkvdyno_example.so\n";
    std::fs::write(folder.path().join("build.sh"), script).unwrap();
    let words = format!("bisect small.toml --versions v1,v2,v3,v4,v5,v6 {FLAGS}");
    let printed = prepared(folder.path(), &words).args(["--build", "sh build.sh"]).output().unwrap();
    let printed = Printed::from(printed);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let text = &printed.stdout;
    assert!(text.contains("\nv3: skipped: its build fails (exit status: 7): no such module ("), "{text}");
    let answer = "the first version that is slower is v4, or v3 before it, which was skipped (0.";
    assert!(text.replace('\n', " ").contains(answer), "{text}");
    assert!(text.ends_with("\nskipped: v3\n"), "{text}");
    let built = std::fs::read_to_string(folder.path().join("built")).unwrap();
    let mut built: Vec<&str> = built.lines().collect();
    assert_eq!(built[..2], ["v1", "v6"], "the ends are first");
    assert!(!built.contains(&"v5"), "nobody asked for it: {built:?}");
    let count = built.len();
    built.sort_unstable();
    built.dedup();
    assert_eq!(built.len(), count, "each is built once");
}

#[test]
fn a_version_whose_database_is_larger_is_named() {
    let folder = folder();
    // It reserves many times as much room in its files as lmdb.
    list(folder.path(), "small lmdb\nlarge canopydb\n");
    let flags = "--worse size --trial 0.1 --minutes 3 --smallest 50%";
    let printed = kvdyno(folder.path(), &format!("bisect small.toml --versions versions.txt {flags}"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let answer = printed.stdout.lines().last().unwrap();
    assert!(answer.starts_with("the first version that is larger is large ("), "{}", printed.stdout);
}

#[test]
fn versions_that_cannot_be_compared_are_skipped_with_the_reason() {
    let folder = folder();
    for (other, flags, wanted) in [
        ("example", "--worse size --durability none", "2: skipped: it keeps no files"),
        ("redb", "", "2: skipped: 1 (lmdb) is at level process, and 2 (redb) at level power"),
    ] {
        list(folder.path(), &format!("1 lmdb\n2 {other}\n"));
        let words = format!("bisect small.toml --versions versions.txt --trial 0.1 {flags}");
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(1), "{}", printed.stderr);
        assert!(printed.stdout.contains(wanted), "{}", printed.stdout);
        assert!(printed.stderr.contains("fewer than two versions can be compared"), "{}", printed.stderr);
    }
}

#[test]
fn a_version_whose_trials_fail_is_skipped_and_may_be_the_answer() {
    let folder = folder();
    build_versions(folder.path());
    build_worn(folder.path());
    let file = |name: &str| format!("{name} {name}/libkvdyno_example.so\n");
    list(folder.path(), &[file("builds/v1"), file("worn"), file("builds/v6")].concat());
    let printed = kvdyno(folder.path(), &format!("bisect small.toml --versions versions.txt {FLAGS}"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let text = &printed.stdout;
    let line = text.lines().find(|line| line.starts_with("worn: skipped: its trials fail: "));
    assert!(line.is_some_and(|line| line.contains("worn out")), "{text}");
    let answer = "is builds/v6, or worn before it, which was skipped (0.";
    assert!(text.replace('\n', " ").contains(answer), "{text}");
}

#[test]
fn what_cannot_be_searched_is_refused_in_one_line_before_anything_is_written() {
    let folder = folder();
    std::fs::write(folder.path().join("libkvdyno_text.so"), "no library").unwrap();
    for (lines, flags, wanted) in [
        ("1 lmdb\n", "", "it names 1 of the two versions"),
        ("1 lmdb\n1 redb\n", "", "versions.txt:2: two versions are named `1`"),
        ("1 lmdb\n2\n", "", "versions.txt:2: expected NAME ARM, got `2`"),
        ("1 lmdb\n2 redb\n3 lmdb:\n", "", "versions 1 and 3 are equal"),
        ("1 lmdb\n2 nosuch\n", "", "unknown engine `nosuch`"),
        ("1 lmdb\n2 gone.so\n", "", "gone.so: No such file"),
        ("1 lmdb\n2 ./libkvdyno_text.so\n", "", "plug-in ./libkvdyno_text.so: "),
        ("1 lmdb\n2 redb\n", "--minutes 0.2", "it could not show any change"),
        ("1 lmdb\n2 redb\n", "--phase nosuch", "small.toml has no measured phase `nosuch`"),
        ("1 lmdb\n2 redb\n", "--rate 1000", "at a rate that all versions keep, ops/s say nothing"),
        ("1 lmdb\n2 redb\n", "--seconds 3", "--seconds: bisect sets"),
        ("1 lmdb\n2 redb\n", "--smallest 0", "expected 0.1% to 50%"),
        ("1 lmdb\n2 redb\n", "--error 60%", "expected 0.1% to 49%"),
        ("1 lmdb\n2 redb\n", "--keys 1k,2k", "one workload at a time"),
    ] {
        list(folder.path(), lines);
        let printed = kvdyno(folder.path(), &format!("bisect small.toml --versions versions.txt {flags}"));
        assert_eq!(printed.code, Some(2), "{lines:?} {flags}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{lines:?} {flags}: {}", printed.stderr);
        assert!(!folder.path().join("kvdyno-results").exists(), "{lines:?} {flags}");
    }
    let printed = kvdyno(folder.path(), "bisect small.toml --versions nowhere.txt");
    assert_eq!(printed.code, Some(2));
    assert!(printed.stderr.contains("--versions nowhere.txt: No such file"), "{}", printed.stderr);
}

#[test]
fn a_command_that_builds_the_same_file_for_each_version_is_refused() {
    let folder = folder();
    build_versions(folder.path());
    let words = format!("bisect small.toml --versions v1,v2 {FLAGS}");
    let build = ["--build", "echo builds/v1/libkvdyno_example.so"];
    let printed = Printed::from(prepared(folder.path(), &words).args(build).output().unwrap());
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(printed.stderr.contains("versions v1 and v2 are equal"), "{}", printed.stderr);
    assert!(printed.stderr.contains("KVDYNO_VERSION"), "{}", printed.stderr);
}
