//! A run as it is followed: the dashboard on a terminal, events as JSON, figures for Prometheus; and reports in the formats
//! of other tools.

use super::command::{kvdyno, prepared};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SMALL: &str = "--keys 3000 --ops 3000 --set sync.ops=20";
/// Long enough that the dashboard is drawn a few times in each trial.
const LONG: &str =
    "run quick --engines memory-btree,memory-map --keys 3000 --ops 40000 --set sync.ops=400 --runs 3";
const PATIENCE: Duration = Duration::from_secs(120);

/// A command on a terminal of its own, and what it has written there.
struct OnTerminal {
    child: std::process::Child,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    /// Runs kvdyno with these words; behind it its exit code and the terminal's settings are printed.
    fn start(folder: &Path, words: &str) -> OnTerminal {
        let script = format!(
            "stty cols 100 rows 30; '{}' {words}; echo EXIT=$?; stty -a",
            env!("CARGO_BIN_EXE_kvdyno")
        );
        let mut command = Command::new("script");
        command.args(["-q", "-f", "-e", "-c", &script, "/dev/null"]).current_dir(folder);
        command.env("TERM", "xterm").env("LC_ALL", "C").env("SHELL", "/bin/sh").env_remove("KVDYNO_PLUGINS");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("`script`, which util-linux has everywhere");
        let mut stdout = child.stdout.take().unwrap();
        let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count) = stdout.read(&mut piece)
                && count > 0
            {
                all.lock().unwrap().extend(&piece[..count]);
            }
        });
        OnTerminal { child, seen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until that has been written.
    fn sees(&self, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.text().contains(wanted) {
            assert!(Instant::now() < end, "no {wanted:?} in {:?}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &[u8]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys).unwrap();
        stdin.flush().unwrap();
    }

    /// All that was written, when it has ended.
    fn ended(mut self) -> String {
        self.sees("EXIT=");
        self.sees("icanon");
        self.child.wait().unwrap();
        self.text()
    }
}

/// What stands behind the screen of the dashboard's own.
fn behind_the_screen(text: &str) -> &str {
    assert_eq!(text.matches("\u{1b}[?1049h").count(), 1, "{text:?}");
    let (_, behind) = text.rsplit_once("\u{1b}[?1049l").expect("the screen of before is back");
    assert!(text.contains("\u{1b}[?25h"), "the cursor is hidden still");
    assert!(!behind.contains("-icanon") && !behind.contains("-echo "), "keys are not echoed: {behind}");
    behind
}

#[test]
fn the_dashboard_shows_the_run_and_q_ends_it_with_the_terminal_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = OnTerminal::start(folder.path(), &format!("{LONG} --tui"));
    run.sees("memory-btree");
    run.sees("service times");
    run.sees("results so far");
    run.sees("ops/s");
    run.press(b"q");
    run.sees("STOPPING after this trial");
    let text = run.ended();
    let behind = behind_the_screen(&text);
    assert!(behind.contains("EXIT=130"), "{behind}");
    assert!(behind.contains("results: kvdyno-results/"), "the report is printed: {behind}");
    assert!(behind.contains("--resume="), "{behind}");
    let again = kvdyno(folder.path(), "run --resume --quiet");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[test]
fn control_c_twice_in_the_dashboard_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run read-random --engines memory-btree --keys 2000 --seconds 60 --runs 2 --tui";
    let mut run = OnTerminal::start(folder.path(), words);
    // Cells that stay blank are not sent, so only words can be waited for.
    run.sees("ops/s,");
    let began = Instant::now();
    run.press(&[3]);
    run.sees("STOPPING after this trial");
    run.press(&[3]);
    let text = run.ended();
    assert!(began.elapsed() < Duration::from_secs(50), "it went on for {:?}", began.elapsed());
    assert!(behind_the_screen(&text).contains("EXIT=130"), "{text}");
}

/// The lines of progress: a time, a place in the plan, and a trial.
fn progress(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.contains("/6  ") && line.contains(" run ")).collect()
}

#[test]
fn without_a_terminal_a_trial_is_a_line_and_a_second_is_one_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run read-random --engines memory-btree,memory-map --keys 2000 --seconds 1.2 --runs 2";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let lines = progress(&printed.stderr);
    assert_eq!(lines.len(), 6, "{}", printed.stderr);
    for (place, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("{}/6  ", place + 1)) && line.ends_with(" left"), "{line}");
        assert!(!line.contains("ops/s"), "{line}");
    }
    let plain = kvdyno(folder.path(), &format!("{words} --progress plain"));
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    let seconds = progress(&plain.stderr).iter().filter(|line| line.contains(" ops/s, p99 ")).count();
    assert!(seconds >= 6, "a phase of a trial takes more than a second: {}", plain.stderr);
}

#[test]
fn impossible_ways_to_show_progress_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        ("run quick --tui", "not a terminal"),
        ("run quick --tui --quiet", "cannot be used with"),
        ("run quick --json-progress --quiet", "cannot be used with"),
        ("run quick --progress plain --quiet", "cannot be used with"),
        ("run quick --progress fancy", "plain"),
        ("run quick --metrics 0.0.0.0:9187", "is reachable from other machines"),
        ("run quick --metrics nowhere", "not an address"),
        ("run quick --metrics-public", "--metrics <ADDR>"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
    assert!(!folder.path().join("kvdyno-results").exists(), "a refused run left a folder");
}

#[test]
fn each_line_of_json_progress_is_an_event_and_they_tell_the_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("run quick --engines memory-btree {SMALL} --runs 2 --json-progress");
    let printed = kvdyno(folder.path(), &words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let events: Vec<serde_json::Value> = printed
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!(events[0]["event"], "run-begins");
    assert_eq!((&events[0]["schema"], &events[0]["trials"]), (&1.into(), &4.into()));
    assert_eq!((of("trial-begins").len(), of("trial-ended").len()), (4, 4));
    assert!(of("trial-ended").iter().all(|event| event["outcome"] == "ok"));
    for phase in of("trial-begins")[0]["phases"].as_array().unwrap() {
        let progress = of("progress");
        let told: Vec<_> = progress.iter().filter(|event| event["phase"] == *phase).collect();
        assert!(told.len() >= 4, "{phase} was told {} times", told.len());
        assert!(told.iter().any(|event| event["ops"].as_u64() > Some(0)), "{phase}: {told:?}");
    }
    for event in of("progress") {
        assert!(event["ops"].is_u64() && event["interval_ns"].as_u64() > Some(0), "{event}");
        assert!(event["trial"].as_str().is_some_and(|trial| trial.contains("quick")), "{event}");
    }
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["ending"], &last["done"]),
        (&"run-ended".into(), &"complete".into(), &4.into())
    );
    let results = folder.path().join(last["results"].as_str().unwrap());
    assert!(results.join("run.json").is_file(), "{}", results.display());
}

#[test]
fn figures_for_prometheus_can_be_read_during_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run read-random --engines memory-btree --keys 2000 --seconds 100 --runs 1 --metrics 0";
    let mut child =
        prepared(folder.path(), words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split("http://").nth(1)?.strip_suffix("/metrics")?.to_string()))
        .expect("it says where");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    std::thread::spawn(move || lines.for_each(drop));
    let wanted =
        ["kvdyno_ops_per_second{engine=\"memory-btree\"", "kvdyno_phase_ops_total{", "quantile=\"0.99\""];
    let mut body = String::new();
    while !wanted.iter().all(|wanted| body.contains(wanted)) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before all was seen:\n{body}");
        let mut stream = TcpStream::connect(&address).expect("it listens as long as the run goes on");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        body.clear();
        stream.read_to_string(&mut body).unwrap();
        assert!(body.starts_with("HTTP/1.1 200 OK"), "{body}");
        std::thread::sleep(Duration::from_millis(50));
    }
    for _ in 0..2 {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_run_is_written_in_the_formats_of_other_tools() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("run quick --engines memory-btree {SMALL} --runs 2 --quiet");
    assert_eq!(kvdyno(folder.path(), &words).code, Some(0));
    let report = |words: &str| kvdyno(folder.path(), &format!("report {words}"));
    let many = report("--format hgrm");
    assert_eq!(many.code, Some(2), "{}", many.stdout);
    assert!(many.stderr.contains("--out DIR"), "{}", many.stderr);
    for (format, ending) in [("hgrm", ".hgrm"), ("hlog", ".hlog")] {
        let written = report(&format!("--format {format} --out {format}"));
        assert_eq!(written.code, Some(0), "{}", written.stderr);
        let files: Vec<&str> = written.stdout.lines().collect();
        assert!(files.len() >= 4 && files.iter().all(|file| file.ends_with(ending)), "{files:?}");
        let text = std::fs::read_to_string(folder.path().join(files[0])).unwrap();
        assert!(text.contains("#["), "{text}");
        assert_eq!(
            report(&format!("--format {format} --out {format}")).code,
            Some(2),
            "nothing is overwritten"
        );
    }
    for (format, wanted) in [
        ("hlog", "Tag=quick/read/memory-btree/get/run2,"),
        ("gobench", "BenchmarkKvdyno/workload=quick/phase=read/engine=memory-btree/"),
        ("csv-long", ",get,service_p99,ns,"),
    ] {
        let printed = report(&format!("--format {format}"));
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        assert!(printed.stdout.contains(wanted), "no {wanted} in\n{}", printed.stdout);
    }
    assert_eq!(report("--format gobench --out x").code, Some(2), "it is one text");
}
