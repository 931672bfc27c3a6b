//! A machine that is short of processes, of a temporary folder, of stack or of the size of files: one line says so, and nothing is
//! taken for a bug of kvdyno or a fault of an engine.

use super::command::{Printed, open_folder, prepared};
use super::escapes::until;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a command as a user of its own, who may have so many processes and threads; none: users cannot be changed here.
fn with_processes(limit: u32, place: u32, words: &str) -> Option<Printed> {
    let folder = open_folder();
    let user = 300_000 + (std::process::id() % 10_000) * 100 + place;
    let mut command = Command::new("prlimit");
    command.args([&format!("--nproc={limit}"), "setpriv", "--clear-groups"]);
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.arg(env!("CARGO_BIN_EXE_kvdyno")).args(words.split(' ')).current_dir(folder.path());
    command.env_remove("KVDYNO_PLUGINS").env("RUST_BACKTRACE", "0").env("TMPDIR", folder.path());
    let printed: Printed = command.stdin(Stdio::null()).output().ok()?.into();
    let is_possible = !printed.stderr.contains("Operation not permitted");
    if !is_possible {
        println!("skipped: the command cannot be run as another user here");
    }
    is_possible.then_some(printed)
}

#[test]
fn a_thread_or_process_that_cannot_be_started_is_a_line_that_names_the_limit() {
    let commands = [
        "engines",
        "run fill-seq --engines memory-btree --keys 1000 --runs 1 --quiet",
        "prove --only rules memory-btree --ops 100",
        "serve memory-btree --port 0",
        "prove --only syncs memory-btree",
        "doctor",
    ];
    let mut place = 0;
    for words in commands {
        // With more, the server serves.
        let limits: &[u32] = if words.starts_with("serve") { &[1, 2] } else { &[1, 2, 3, 6] };
        for &limit in limits {
            place += 1;
            let Some(Printed { code, stdout, stderr }) = with_processes(limit, place, words) else { return };
            let all = format!("{limit}, {words}: {code:?}\n{stderr}\n{stdout}");
            assert!(code.is_some_and(|code| code < 3), "{all}");
            for wrong in ["has a bug", "panicked", "RED"] {
                assert!(!stderr.contains(wrong) && !stdout.contains(wrong), "`{wrong}` in {all}");
            }
            let is_named = [&stderr, &stdout].iter().any(|text| {
                text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&format!(
                    "the limit of {limit} processes and threads of this user is reached (ulimit -u)"
                ))
            });
            // What succeeds needs no more; but `doctor` succeeds without it.
            let needs_more = code != Some(0) || (words == "doctor" && limit == 1);
            assert!(is_named || !needs_more, "{all}");
            // Nothing is known then of the tools and the kernel.
            assert!(words != "doctor" || !stdout.contains("cc -"), "{all}");
            assert!(words != "doctor" || limit > 1 || !stdout.contains("use Linux 5.5"), "{all}");
        }
    }
}

#[test]
fn without_a_temporary_folder_plugins_are_loaded_and_the_folder_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let mut command = prepared(folder.path(), "engines");
    let printed: Printed = command.env("TMPDIR", &missing).output().unwrap().into();
    let Printed { code, stdout, stderr } = &printed;
    assert_eq!(*code, Some(0), "{stderr}");
    assert!(stdout.contains("\nexample-cpp ") && !stdout.contains("refused"), "{stdout}");
    let available = stdout.split("\nnot available").next().unwrap();
    assert!(available.contains("\nexample-cpp "), "{stdout}");
    assert!(stderr.contains(&format!("there is no folder {}; set TMPDIR to", missing.display())), "{stderr}");
    assert!(!missing.exists());
}

#[test]
fn an_interrupted_list_of_engines_leaves_no_folder_and_a_killed_one_only_until_the_next() {
    let left = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    for signal in ["-INT", "-KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = prepared(folder.path(), "engines");
        command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // It may have ended, if the machine is fast.
        until("its folder is there", || {
            (left(folder.path()) > 0 || child.try_wait().unwrap().is_some()).then_some(())
        });
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        child.wait().unwrap();
        if signal == "-KILL" {
            // What it had started may not have ended yet, and may still write there.
            until("the next removes the folder", || {
                let again = prepared(folder.path(), "engines").env("TMPDIR", folder.path()).output().unwrap();
                assert!(again.status.success());
                (left(folder.path()) == 0).then_some(())
            });
        }
        assert_eq!(left(folder.path()), 0, "{signal}");
    }
}

#[test]
fn a_small_stack_is_raised_or_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = |limit: &str| -> Printed {
        let mut command = Command::new("prlimit");
        command.arg(format!("--stack={limit}")).arg(env!("CARGO_BIN_EXE_kvdyno"));
        command.args(["engines", "memory-btree"]).current_dir(folder.path()).output().unwrap().into()
    };
    let raised = run("65536:8388608");
    assert_eq!(raised.code, Some(0), "{}", raised.stderr);
    assert!(raised.stdout.starts_with("memory-btree: "), "{}", raised.stdout);
    let refused = run("65536:65536");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert_eq!(
        refused.stderr,
        "error: the limit on the stack is 64 KiB, and kvdyno needs 1 MiB; raise it (ulimit -s)\n"
    );
}

#[test]
fn a_limit_on_the_size_of_files_is_not_taken_for_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("prlimit");
    command.arg("--fsize=1048576").arg(env!("CARGO_BIN_EXE_kvdyno"));
    command.args("run fill-seq --engines memory-btree --keys 1000 --runs 1 --quiet".split(' '));
    let printed: Printed = command.current_dir(folder.path()).output().unwrap().into();
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    assert!(
        printed.stderr.contains("raise the limit on the size of a file (ulimit -f)"),
        "{}",
        printed.stderr
    );
    assert!(!printed.stderr.contains("free some space"), "{}", printed.stderr);
}
