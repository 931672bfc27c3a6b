//! Hostile arguments, files, streams and limits: each command ends soon, with an exit code of docs/glossary.md and a message, and
//! never with a panic.

use super::command::{Printed, kvdyno, prepared};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A run that is over in a second.
const SMALL: &str = "run quick --engines memory-btree --keys 50 --ops 50 --runs 1";
/// The codes of docs/glossary.md that a refused command line may end with.
const REFUSED: [i32; 3] = [1, 2, 4];

/// Words, and what stderr must hold. All are wrong usage.
const NUMBERS: &[(&str, &str)] = &[
    ("run quick --keys 1000000000000000000", "`keys`: expected up to 1,000,000,000,000,000"),
    ("run quick --keys 18446744073709551615", "`keys`: expected up to 1,000,000,000,000,000"),
    ("run quick --keys -1", "expected a count"),
    ("run quick --keys NaN", "expected a count"),
    ("run quick --ops 18446744073709551615", "`ops`: expected up to 1,000,000,000,000,000"),
    ("run quick --seconds 999999999999h", "`seconds`: expected a time from 0 to 100000000 seconds"),
    ("run quick --seconds inf", "expected seconds"),
    ("run quick --scale 1e-300", "expected a factor from 0.000001 to 1000000"),
    ("run quick --scale 1e300", "expected a factor from 0.000001 to 1000000"),
    ("run quick --scale nan", "expected a factor from 0.000001 to 1000000"),
    ("run quick --runs 4294967295", "the maximum is 100000"),
    ("run quick --threads 4294967295", "expected 1 to 4096 threads"),
    ("run quick --value-size 1GiB --keys 100000 --threads 4000", "of memory for their keys and values"),
    ("run quick --set budget_seconds=99999999999", "expected a time over 0 and up to 100000000 seconds"),
    ("run quick --set rounds=4294967295", "expected 1 to 10000"),
    ("prove --only rules memory-btree --ops 0", "expected a whole number, 1 or more"),
    ("prove --only rules memory-btree --seconds 0", "expected more than 0"),
    ("prove --only rules memory-btree --seconds nan", "expected seconds"),
    ("prove --only rules memory-btree --seconds -1", "expected seconds"),
    ("serve memory-btree --threads 0", "expected a whole number from 1 to 1024"),
    ("serve memory-btree --threads 18446744073709551615", "expected a whole number from 1 to 1024"),
    ("serve memory-btree --max-clients 18446744073709551615", "expected a whole number from 1 to 1000000"),
    ("keys make k --count 4000000000000 --key-size 16", "exceed the maximum size of a key file"),
    ("keys make k --count 18446744073709551615 --key-size 8", "only 9223372036854775808 distinct keys"),
];

#[test]
fn absurd_numbers_are_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in NUMBERS {
        let engines = if words.starts_with("run") { " --engines memory-btree" } else { "" };
        let printed = kvdyno(folder.path(), &format!("{words}{engines}"));
        assert_eq!(printed.code, Some(2), "kvdyno {words}\n{}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "kvdyno {words}: no `{wanted}` in\n{}", printed.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a refused command left something");
}

#[test]
fn messages_send_no_control_characters_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        "run a\x1b[31mb",
        "run quick --engines a\u{9b}31mb",
        "run fill-seq --engines redb --set a\x1b[2Jb=1",
        "report a\x1b[31m\u{202e}b",
        "engines a\x07b",
    ] {
        let printed = kvdyno(folder.path(), words);
        assert!(matches!(printed.code, Some(1 | 2)), "{words:?}\n{}", printed.stderr);
        let acts = |letter: char| letter != '\n' && letter.is_control() || letter == '\u{202e}';
        assert!(!printed.stderr.contains(acts), "{:?}", printed.stderr);
    }
}

#[test]
fn a_plan_of_many_keys_is_held_against_the_disk_without_an_overflow() {
    let folder = tempfile::tempdir().unwrap();
    for keys in ["2000000M", "900000000000000"] {
        let printed = kvdyno(folder.path(), &format!("run quick --engines memory-btree --keys {keys}"));
        assert_eq!(printed.code, Some(1), "{}", printed.stderr);
        assert!(printed.stderr.contains("of disk"), "{}", printed.stderr);
    }
}

#[test]
fn what_is_no_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(Command::new("mkfifo").arg(path.join("fifo.toml")).status().unwrap().success());
    fs::create_dir(path.join("folder.toml")).unwrap();
    for place in ["/dev/zero", "./fifo.toml", "folder.toml"] {
        let own = format!("--engines memory-btree --keys 50 --runs 1 --set key.file={place}");
        for words in [
            format!("run {place}"),
            format!("workloads {place}"),
            format!("run read-random {own}"),
            format!("keys shuffle {place} --key-size 8"),
            format!("prove --only rules memory-btree --proven {place}"),
            format!("serve memory-btree --password-file {place}"),
        ] {
            let printed = kvdyno(path, &words);
            assert!(matches!(printed.code, Some(1 | 2)), "kvdyno {words}\n{}", printed.stderr);
            assert!(printed.stderr.contains("it is not a file"), "kvdyno {words}\n{}", printed.stderr);
        }
    }
}

#[test]
fn folders_and_files_that_cannot_be_written_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    for place in ["file", "file/below"] {
        for (words, wanted) in [
            (
                format!("run fill-seq --engines redb --keys 50 --runs 1 --keep {place}"),
                "--keep: file is not a folder",
            ),
            (format!("{SMALL} --data {place}"), "--data: file is not a folder"),
            (format!("{SMALL} --results {place}"), "--results: file is not a folder"),
            (format!("prove --only rules memory-btree --proven {place}/x.toml"), "--proven: cannot"),
        ] {
            let printed = kvdyno(folder.path(), &words);
            assert!(matches!(printed.code, Some(1 | 2)), "kvdyno {words}\n{}", printed.stderr);
            assert!(printed.stderr.contains(wanted), "kvdyno {words}: no `{wanted}` in\n{}", printed.stderr);
            assert_eq!(printed.stdout, "", "kvdyno {words}");
        }
    }
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"x");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a refused command left something");
}

#[test]
fn a_check_of_proven_leaves_the_file_and_its_folder_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.part");
    fs::write(&file, "[[engine]]\nnam = 1\n").unwrap();
    let printed = kvdyno(folder.path(), "prove --only rules memory-btree --proven mine.part");
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(printed.stderr.contains("mine.part"), "{}", printed.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "[[engine]]\nnam = 1\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Commands that print results, without a run of their own.
const PRINTING: &[&str] = &[
    "--help",
    "--version",
    "run --help",
    "engines --help",
    "workloads",
    "workloads quick",
    "workloads quick --toml",
    "man",
    "completions bash",
    "completions zsh",
    "doctor --self",
    "keys make k --count 10 --key-size 8",
    "new-engine mine --lang c",
    "plot",
];

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn is_sound(printed: &Printed, words: &str) {
    assert!(!printed.stderr.contains("panicked"), "kvdyno {words}\n{}", printed.stderr);
    assert!(!printed.stderr.contains("kvdyno has a bug"), "kvdyno {words}\n{}", printed.stderr);
}

#[test]
fn a_full_stdout_is_reported_and_is_exit_code_1() {
    for words in PRINTING {
        let folder = tempfile::tempdir().unwrap();
        let printed: Printed = prepared(folder.path(), words).stdout(full()).output().unwrap().into();
        assert_eq!(printed.code, Some(1), "kvdyno {words}\n{}", printed.stderr);
        assert!(
            printed.stderr.contains("cannot write to stdout: No space left"),
            "{words}\n{}",
            printed.stderr
        );
        is_sound(&printed, words);
    }
}

#[test]
fn a_full_stderr_takes_nothing_from_results_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    for (words, code) in [(SMALL, 0), ("run nope", 2), ("frobnicate", 2), ("run quick --engines nope", 2)] {
        let printed: Printed = prepared(folder.path(), words).stderr(full()).output().unwrap().into();
        assert_eq!(printed.code, Some(code), "kvdyno {words}");
        assert_eq!(printed.stdout.contains("report: "), code == 0, "kvdyno {words}\n{}", printed.stdout);
    }
}

/// The page of the only run in a folder.
fn has_page(folder: &Path) -> bool {
    let run = fs::read_dir(folder.join("kvdyno-results")).unwrap().next().unwrap().unwrap().path();
    run.join("report.html").is_file() && !run.join("data").exists()
}

#[test]
fn a_run_whose_output_nobody_takes_is_measured_and_kept_to_its_end() {
    let whats = ["full", "no reader of stdout", "no reader of stderr"];
    for what in whats {
        let folder = tempfile::tempdir().unwrap();
        let mut command = prepared(folder.path(), SMALL);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        match what {
            "full" => command.stdout(full()),
            "no reader of stdout" => command.stdout(broken_pipe()),
            _ => command.stderr(broken_pipe()),
        };
        let status = command.status().unwrap();
        match what {
            "full" => assert_eq!(status.code(), Some(1)),
            // As a program does whose reader has gone: quietly.
            "no reader of stdout" => assert_eq!(status.signal(), Some(13), "{status:?}"),
            _ => assert_eq!(status.code(), Some(0), "{status:?}"),
        }
        assert!(has_page(folder.path()), "{what}");
    }
}

/// The writing end of a pipe whose reader is gone.
fn broken_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn streams_that_are_closed_are_as_if_nobody_looked() {
    let binary = env!("CARGO_BIN_EXE_kvdyno");
    let folder = tempfile::tempdir().unwrap();
    for words in [SMALL, "workloads", "--help", "frobnicate"] {
        let script = format!("exec {binary} {words} >&- 2>&- <&-");
        let status = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status().unwrap();
        assert_eq!(status.code(), Some(if words == "frobnicate" { 2 } else { 0 }), "kvdyno {words}");
    }
    assert!(has_page(folder.path()));
}

#[test]
fn without_a_current_folder_the_message_says_so() {
    let binary = env!("CARGO_BIN_EXE_kvdyno");
    let folder = tempfile::tempdir().unwrap();
    for words in
        [SMALL, "prove --only rules memory-btree", "new-engine mine --lang c", "report", "serve memory-btree"]
    {
        let script = format!("mkdir gone && cd gone && rmdir ../gone && exec {binary} {words}");
        let printed: Printed =
            Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap().into();
        assert!(
            printed.code.is_some_and(|code| REFUSED.contains(&code)),
            "kvdyno {words}\n{}",
            printed.stderr
        );
        assert!(
            printed.stderr.contains("the current folder was removed"),
            "kvdyno {words}\n{}",
            printed.stderr
        );
        is_sound(&printed, words);
    }
}

#[test]
fn small_limits_of_the_system_are_messages() {
    let binary = env!("CARGO_BIN_EXE_kvdyno");
    for limit in ["ulimit -f 0", "ulimit -n 4", "ulimit -n 8"] {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("{limit}; exec {binary} {SMALL}");
        let printed: Printed =
            Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap().into();
        assert_eq!(printed.code, Some(1), "{limit}\n{}", printed.stderr);
        let told = ["File too large", "Too many open files"].iter().any(|text| printed.stderr.contains(text));
        assert!(told, "{limit}\n{}", printed.stderr);
        is_sound(&printed, limit);
    }
}

#[test]
fn an_engine_that_is_named_and_refused_in_every_phase_is_exit_code_1_with_what_would_help() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = String::new();
    let cases = [
        ("run fill-seq --engines memory-map,memory-btree --durability none", 0, ""),
        (
            "run scan-short --engines memory-map,memory-btree",
            1,
            "`kvdyno engines memory-map` shows its capabilities",
        ),
        ("run fill-seq --engines sled,memory-btree --durability power", 1, "try --durability process"),
        ("run fill-sync --engines sled", 1, "try --durability process"),
    ];
    for (words, code, hint) in cases {
        let small = "--keys 50 --ops 50 --runs 1 --quiet";
        let printed = kvdyno(folder.path(), &format!("{words} {small}"));
        assert_eq!(printed.code, Some(code), "kvdyno {words}\n{}", printed.stderr);
        assert_eq!(printed.stderr.contains("was refused in every phase"), code == 1, "{}", printed.stderr);
        assert!(printed.stderr.contains(hint), "kvdyno {words}\n{}", printed.stderr);
        let results = printed.stdout.lines().find_map(|line| line.strip_prefix("results: "));
        last = results.expect("a run names its folder").to_string();
    }
    // A resumed run ends in the same way.
    let printed = kvdyno(folder.path(), &format!("run --resume={last} --quiet"));
    assert_eq!(printed.code, Some(1), "{}", printed.stderr);
    assert!(printed.stderr.contains("sled was refused in every phase"), "{}", printed.stderr);
}

/// Values that no flag expects, and some that one may.
const VALUES: &[&[u8]] = &[
    b"",
    b"0",
    b"-1",
    b"18446744073709551616",
    b"NaN",
    b"inf",
    b"1e400",
    b"=",
    b",",
    b"a\nb",
    b"\xff\xfe",
    b"../..",
    b"/dev/zero",
    b"/proc/x",
    b"/",
    "\u{fc}\u{4e2d}".as_bytes(),
    b"\x1b[31m",
    b"%s%n",
    b"1,2,,",
    b"x=y",
];

/// Commands that end soon whatever flag they are given, and their flags.
const COMMANDS: &[(&str, &[&str])] = &[
    ("run nope", &["-e", "--keys", "--key-size", "--value-size", "-t", "--seconds", "--ops", "--scale"]),
    ("run nope", &["--durability", "--cache", "--seed", "-r", "--set", "--memory", "--cpus", "--numa-node"]),
    ("run nope", &["--keep", "--reuse", "--option", "--results", "--data", "--resume", "--stall-seconds"]),
    ("run nope", &["--layout", "--metrics", "--plugins"]),
    ("run", &["--resume", "--results"]),
    (
        "workloads quick",
        &["--keys", "--key-size", "--value-size", "-t", "--seconds", "--ops", "--scale", "--set"],
    ),
    ("report nowhere", &["--format", "--layout"]),
    ("compare nowhere nowhere", &["--fail-on", "--format"]),
    ("report nowhere --plot throughput", &["-o", "--scale"]),
    ("report --site nowhere", &["-o"]),
    ("prove --only rules nope", &["--ops", "--seconds", "--seed", "--data", "--proven", "--stall-seconds"]),
    (
        "serve nope",
        &["--dir", "--durability", "--port", "--bind", "--password", "--password-file", "--threads"],
    ),
    ("serve nope", &["--cache", "--option", "--max-clients", "--max-bulk", "--idle-seconds", "--stats"]),
    ("engines nope", &["--plugins"]),
    ("workloads nope", &["--plugins"]),
    ("new-engine mine/mine", &["--lang", "--plugins"]),
    ("keys make k", &["--count", "--key-size", "--seed"]),
    ("keys shuffle /nowhere/k", &["--count", "--key-size", "--to"]),
    ("completions nope", &["--plugins"]),
];

#[test]
fn hostile_values_of_flags_end_no_command_with_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for (at, (words, flags)) in COMMANDS.iter().enumerate() {
        for (place, flag) in flags.iter().enumerate() {
            // Each flag meets some of the values, each value some flag of each command.
            for value in VALUES.iter().skip((at + place) % 5).step_by(5) {
                let mut command = prepared(folder.path(), words);
                let printed: Printed =
                    command.arg(flag).arg(OsStr::from_bytes(value)).output().unwrap().into();
                let shown = format!("{words} {flag} {:?}", String::from_utf8_lossy(value));
                is_sound(&printed, &shown);
                let is_explained = words.starts_with("workloads quick") && printed.code == Some(0);
                let is_refused = printed.code.is_some_and(|code| REFUSED.contains(&code));
                assert!(is_refused || is_explained, "{shown}: {:?}\n{}", printed.code, printed.stderr);
                assert!(is_explained || !printed.stderr.is_empty(), "{shown}: nothing was told");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}
