//! Whatever a driver starts, ends, closes or spoils that is not its own: the command ends in time, says what happened, and
//! leaves no process and no file behind.

use super::command::{Printed, prepared};
use super::faults::no_memory_kills;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What no test here may take: a command that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(100);
/// In the environment of every process of a test, with a value of its own.
const MARK: &str = "KVDYNO_ESCAPES_TEST";

/// A folder with the plug-in and a workload of a few puts. Dropped, it ends what is left of its commands.
pub struct Place {
    pub folder: tempfile::TempDir,
    mark: String,
}

impl Place {
    pub fn new() -> Place {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let text = "name = \"tiny\"\nabout = \"A few puts.\"\nkeys = 300\nruns = 1\ndurability = \"none\"\n\
                    [[phase]]\nname = \"only\"\nmix = { put = 1 }\nops = 300\n";
        fs::write(folder.path().join("tiny.toml"), text).unwrap();
        let mark = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let place = Place { folder, mark };
        place.build("escapes.c", "libkvdyno_escapes.so");
        place
    }

    /// Builds a plug-in of this folder.
    pub fn build(&self, source: &str, made: &str) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let built = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread"])
            .arg("-I")
            .arg(root.join("driver/include"))
            .arg(root.join("tests/cli").join(source))
            .arg("-o")
            .arg(self.path().join("plugins").join(made))
            .status();
        assert!(built.expect("a C compiler named cc").success());
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a command; its output goes to files, for a pipe would be held by what it leaves.
    pub fn start(&self, words: &str, escape: &str) -> Child {
        self.start_with(words, &[("ESCAPE", OsStr::new(escape))])
    }

    /// Starts a command with more in its environment.
    pub fn start_with(&self, words: &str, environment: &[(&str, &OsStr)]) -> Child {
        let mut command = prepared(self.path(), words);
        command.env(MARK, &self.mark).envs(environment.iter().copied());
        let file = |name: &str| File::create(self.path().join(name)).unwrap();
        command.stdout(file("stdout")).stderr(file("stderr")).spawn().unwrap()
    }

    /// Waits for its end.
    pub fn end(&self, mut child: Child) -> Printed {
        let code = until("the command ends", || child.try_wait().unwrap()).code();
        let text =
            |name: &str| String::from_utf8_lossy(&fs::read(self.path().join(name)).unwrap()).into_owned();
        Printed { code, stdout: text("stdout"), stderr: text("stderr") }
    }

    pub fn run(&self, words: &str, escape: &str) -> Printed {
        self.end(self.start(words, escape))
    }

    /// The processes that the test has started, and theirs.
    pub fn processes(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.mark);
        let all = fs::read_dir("/proc").unwrap().flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_ours = |process: &i32| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        };
        numbers.filter(is_ours).collect()
    }

    /// What a command must not leave: processes, databases, what holds space.
    pub fn left(&self) -> Vec<String> {
        let processes = self.processes().into_iter().map(|process| format!("process {process}"));
        let names = ["KVDYNO-TRIAL-DATA", "reserve", "result.unfinished", "result.json"];
        let is_left = |path: &&PathBuf| names.iter().any(|name| path.ends_with(name));
        let files = walk(self.path());
        processes.chain(files.iter().filter(is_left).map(|path| path.display().to_string())).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(walk(&entry.path()));
        }
    }
    found
}

/// Looks until there is an answer.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < HANGS, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where and how a driver goes astray; the exit code of a run, and what stands in its output; the same of verify.
type Case = (&'static str, u8, &'static str, u8, &'static str);

const LEFT_ONE: &str = "1 process started by the driver still ran";
const RED_ONE: &str = "processes: 1 process started by the driver still ran";

const CASES: &[Case] = &[
    ("none", 0, "tiny", 0, "green"),
    ("open/child", 0, LEFT_ONE, 3, RED_ONE),
    ("execute/child", 0, LEFT_ONE, 3, RED_ONE),
    ("close/child", 0, LEFT_ONE, 3, RED_ONE),
    ("destructor/child", 0, LEFT_ONE, 3, RED_ONE),
    ("execute/daemon", 0, LEFT_ONE, 3, RED_ONE),
    ("execute/deaf", 0, LEFT_ONE, 3, RED_ONE),
    ("execute/stopped", 0, LEFT_ONE, 3, RED_ONE),
    ("execute/bomb", 0, "50 processes started by the driver", 3, "processes: 50 processes started"),
    ("close/thread", 0, "tiny", 0, "green"),
    ("open/exit-0", 1, "crashed: exit 0", 3, "ended early, with exit code 0 in check open"),
    ("execute/exit-0", 1, "crashed: exit 0", 3, "ended early, with exit code 0"),
    ("close/exit-0", 1, "crashed: exit 0", 3, "ended early, with exit code 0"),
    ("close/_exit-0", 1, "crashed: exit 0", 3, "ended early, with exit code 0"),
    ("open/_exit-3", 1, "crashed: exit 3", 3, "ended early, with exit code 3 in check open"),
    ("execute/_exit-3", 1, "crashed: exit 3", 3, "ended early, with exit code 3"),
    ("close/_exit-3", 1, "crashed: exit 3", 3, "ended early, with exit code 3"),
    ("destructor/_exit-3", 1, "crashed: exit 3", 3, "ended early, with exit code 3 in check exit"),
    ("open/abort", 1, "crashed: SIGABRT", 3, "the process died of SIGABRT in check open"),
    ("execute/abort", 1, "crashed: SIGABRT", 3, "the process died of SIGABRT"),
    ("close/abort", 1, "crashed: SIGABRT", 3, "the process died of SIGABRT"),
    ("destructor/abort", 1, "crashed: SIGABRT", 3, "the process died of SIGABRT in check exit"),
    ("open/hang", 1, "open did not return within 5 s", 3, "was stopped after 5 s in check open"),
    ("execute/hang", 1, "no op finished for 5 s", 3, "was stopped after 5 s in check stop-word"),
    ("close/hang", 1, "close did not return within 5 s", 3, "was stopped after 5 s in check open"),
    ("destructor/hang", 1, "its process did not exit within 5 s", 3, "did not exit within 5 s"),
    ("execute/kill-group", 1, "crashed: SIGKILL", 3, "the process died of SIGKILL"),
    ("execute/daemon-kill", 1, "crashed: SIGKILL", 3, "the process died of SIGKILL"),
    ("execute/close-all", 0, "tiny", 3, "ended early, with exit code 0"),
    ("execute/garbage", 0, "tiny", 3, "drivers never print"),
    ("execute/limits", 0, "tiny", 0, "green"),
    ("execute/chdir", 0, "tiny", 0, "green"),
    ("open/chdir", 0, "tiny", 0, "green"),
    ("execute/signals", 0, "tiny", 0, "green"),
];

/// Those that hang are waited for, and a busy machine takes its time with the others.
fn limits(escape: &str) -> String {
    let seconds = if escape.ends_with("/hang") { 5 } else { 60 };
    format!("--plugins plugins --stall-seconds {seconds}")
}

/// What is not as it must be after a command.
fn wrong(place: &Place, what: &str, printed: &Printed, code: u8, wanted: &str) -> Option<String> {
    let left = place.left();
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_right = printed.code == Some(code.into()) && text.contains(wanted) && left.is_empty();
    (!is_right).then(|| {
        let Printed { code, stdout, stderr } = printed;
        format!("{what}: exit {code:?}, wanted `{wanted}`, left {left:?}\n{stdout}{stderr}")
    })
}

#[test]
fn whatever_a_driver_does_the_command_ends_says_so_and_leaves_nothing() {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrongs = Vec::new();
        while let Some(&(escape, code, wanted, red, why)) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
            let place = Place::new();
            let limits = limits(escape);
            let _alone = wanted.contains("SIGKILL").then(no_memory_kills);
            let words = format!("run tiny.toml --engines escapes --runs 1 --quiet --full {limits}");
            let printed = place.run(&format!("{words} --option escapes.escape={escape}"), "none");
            wrongs.extend(wrong(&place, &format!("run, {escape}"), &printed, code, wanted));
            let words = format!("prove --only rules escapes --ops 100 --seconds 0.05 {limits}");
            let printed = place.run(&words, escape);
            wrongs.extend(wrong(&place, &format!("verify, {escape}"), &printed, red, why));
        }
        wrongs
    };
    let wrongs: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrongs.is_empty(), "{} are wrong:\n{}", wrongs.len(), wrongs.join("\n"));
}

#[test]
fn an_engine_that_hangs_is_killed_once_and_its_other_runs_are_skipped() {
    let place = Place::new();
    let words = "run tiny.toml --engines escapes --runs 3 --quiet --plugins plugins --stall-seconds 6 \
                 --option escapes.escape=execute/hang";
    let printed = place.run(words, "none");
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stdout, printed.stderr);
    assert!(printed.stderr.contains("; its other runs are skipped"), "{}", printed.stderr);
    let report = place.run("report --format json", "none");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let mut runs: Vec<_> = json["records"].as_array().unwrap().iter().collect();
    runs.retain(|record| record["trial"]["engine"] == "escapes");
    runs.sort_by_key(|record| record["trial"]["repetition"].as_u64());
    let causes: Vec<_> = runs.iter().map(|record| record["outcome"]["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["timeout", "skipped", "skipped"]);
    let text = "run 1 hung: no op finished for 6 s, so it was killed";
    assert_eq!(runs[1]["outcome"]["text"], text);
    assert!(place.left().is_empty());
}

#[test]
fn processor_time_of_every_descendant_is_in_its_phase() {
    // Each uses a second of it: one that still runs, one that has ended, one that its parent has waited for.
    for escape in ["burner", "burner-gone", "burner-waited"] {
        let place = Place::new();
        let words = format!(
            "run tiny.toml --engines escapes --runs 1 --quiet --plugins plugins --option escapes.escape=execute/{escape}"
        );
        assert_eq!(place.run(&words, "none").code, Some(0));
        let report = place.run("report --format json", "none");
        let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
        let records = json["records"].as_array().unwrap();
        let record = records.iter().find(|record| record["trial"]["engine"] == "escapes").unwrap();
        let usage = &record["phases"][0]["usage"];
        let cpu_ns = usage["user_cpu_ns"].as_u64().unwrap() + usage["system_cpu_ns"].as_u64().unwrap();
        // Times of other processes are known to 10 ms.
        assert!(cpu_ns > 950_000_000, "{escape}: {cpu_ns} ns");
    }
}

/// Waits until the driver hangs.
fn hangs(place: &Place) {
    until("the driver hangs", || {
        walk(place.path()).into_iter().any(|path| path.ends_with("escaping")).then_some(())
    });
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
    assert!(sent.success());
}

const RUN: &str =
    "run tiny.toml --engines escapes --runs 1 --plugins plugins --option escapes.escape=execute/hang";
const VERIFY: &str = "prove --only rules escapes --ops 100 --seconds 0.05 --plugins plugins";

/// Whether this process ignores SIGHUP, as under nohup; what it starts does so too, and is meant to.
fn ignores_sighup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask of signals");
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn sigterm_and_sighup_stop_at_once_and_clean_up() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && ignores_sighup() {
            eprintln!("SIGHUP is ignored here (nohup), so it is left out");
            continue;
        }
        let place = Place::new();
        let child = place.start(RUN, "none");
        hangs(&place);
        signal(&child, name);
        let printed = place.end(child);
        assert_eq!(printed.code, Some(code), "{name}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(printed.stderr.contains("kvdyno run --resume="), "{name}\n{}", printed.stderr);
        assert!(place.left().is_empty(), "{name}: {:?}", place.left());
        let child = place.start(VERIFY, "execute/hang");
        hangs(&place);
        signal(&child, name);
        let printed = place.end(child);
        assert_eq!(printed.code, Some(code), "{name}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(place.left().is_empty(), "{name}: {:?}", place.left());
    }
}

#[test]
fn a_run_whose_parent_is_killed_leaves_no_process() {
    let place = Place::new();
    let mut child = place.start(RUN, "none");
    hangs(&place);
    // It does not inherit that SIGINT is blocked while it is started.
    let blocked = |process: &i32| {
        // One that has ended meanwhile has no such file.
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        status.lines().find(|line| line.starts_with("SigBlk:")).map(str::to_string)
    };
    assert_eq!(place.processes().iter().filter_map(blocked).find(|line| !line.ends_with("0000")), None);
    child.kill().unwrap();
    child.wait().unwrap();
    until("all processes have ended", || place.processes().is_empty().then_some(()));
}

#[test]
fn two_verifies_in_one_folder_do_not_disturb_each_other() {
    let place = Place::new();
    let first = place.start(VERIFY, "execute/hang");
    hangs(&place);
    let second: Printed =
        prepared(place.path(), "prove --only rules memory-btree --ops 100").output().unwrap().into();
    assert_eq!(second.code, Some(1), "{}", second.stdout);
    assert!(second.stderr.contains("another kvdyno is using kvdyno-results/verify"), "{}", second.stderr);
    assert!(second.stderr.contains("--data"), "{}", second.stderr);
    assert!(walk(place.path()).iter().any(|path| path.ends_with("escaping")), "its folder is gone");
    signal(&first, "INT");
    let first = place.end(first);
    assert_eq!(first.code, Some(130), "{}", first.stderr);
    assert!(place.left().is_empty(), "{:?}", place.left());
    let third = place.run("prove --only rules memory-btree --ops 100", "none");
    assert_eq!(third.code, Some(0), "{}\n{}", third.stderr, third.stdout);
}

#[test]
fn a_limit_of_no_time_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["run quick --engines memory-btree", "prove --only rules memory-btree"] {
        let words = format!("{command} --stall-seconds 0");
        let printed: Printed = prepared(folder.path(), &words).stdin(Stdio::null()).output().unwrap().into();
        assert_eq!(printed.code, Some(2), "{}", printed.stderr);
        assert!(printed.stderr.contains("--stall-seconds"), "{}", printed.stderr);
    }
}
