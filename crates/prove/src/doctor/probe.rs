//! The two probes of `doctor` that take time: syncs in the data path, and the version queries of compilers.

use kvdyno_measure::disk::existing_part;
use kvdyno_measure::shortage::{Scene, telling_line};
use kvdyno_measure::{Clock, Histogram, start};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const APPEND_BYTES: usize = 4096;
const APPENDS: u32 = 200;
const SYNC_LIMIT_NS: u64 = 1_000_000_000;
const VERSION_LIMIT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A first line is short; anything beyond this is not read.
const ANSWER_BYTES: u64 = 4096;

/// Times of an append of 4 KiB with its fdatasync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncTimes {
    pub(super) count: u64,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
}

impl SyncTimes {
    /// Appends to a new file in the data path (or, if that does not exist yet, in its nearest existing parent) and
    /// removes the file: 200 appends, or as many as fit into 1 s.
    pub(super) fn measure(data_path: &Path, clock: &Clock) -> io::Result<Self> {
        let folder = existing_part(data_path).filter(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| io::Error::new(io::ErrorKind::NotADirectory, "not a folder"))?;
        // It keeps its name until it is dropped, because btrfs skips syncs of unnamed files.
        let mut scratch = tempfile::Builder::new().prefix(".kvdyno-doctor-").tempfile_in(&folder)?;
        let block = [0x5a_u8; APPEND_BYTES];
        let mut times = Histogram::new();
        let begin = clock.now();
        while times.count() < u64::from(APPENDS)
            && clock.to_ns(clock.now().wrapping_sub(begin)) < SYNC_LIMIT_NS
        {
            let start = clock.now();
            scratch.write_all(&block)?;
            scratch.as_file().sync_data()?;
            times.record(clock.to_ns(clock.now().saturating_sub(start)));
        }
        Ok(Self {
            count: times.count(),
            p50_ns: times.quantile_if_enough(1, 2),
            p99_ns: times.quantile_if_enough(99, 100),
            max_ns: times.max_ns(),
        })
    }
}

/// What is known of a program that builds drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// It has told its version.
    Version(String),
    /// It is not installed.
    Absent,
    /// It could not be asked, for this reason.
    Unknown(String),
}

/// Each toolchain that builds drivers.
pub(super) fn toolchains() -> Vec<(&'static str, Tool)> {
    let questions = [
        ("cc", "--version"),
        ("g++", "--version"),
        ("go", "version"),
        ("cmake", "--version"),
        ("cargo", "--version"),
    ];
    questions
        .into_iter()
        .map(|(program, question)| (program, version_of(program, question, VERSION_LIMIT)))
        .collect()
}

pub(super) fn version_of(program: &str, question: &str, limit: Duration) -> Tool {
    let mut command = Command::new(program);
    command.arg(question).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match start::process(&mut command) {
        Ok(child) => child,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Tool::Absent;
        }
        Err(error) => return Tool::Unknown(format!("cannot start a process: {error}")),
    };
    let end = ends_within(&mut child, limit);
    let said = |pipe: Option<&mut dyn Read>| {
        let mut said = Vec::new();
        // What was read before an error is enough.
        let _ = pipe.map(|pipe| pipe.take(ANSWER_BYTES).read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    };
    match end {
        Some(status) if status.success() => {
            let answer = said(child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
            version_in(&answer)
                .map_or_else(|| Tool::Unknown("its answer has no version".into()), Tool::Version)
        }
        Some(status) => {
            let last = said(child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
            let line = telling_line(last.lines()).unwrap_or("it says nothing").trim_end_matches('.');
            // A limit of this process is one of the program, too.
            let short = Scene::of_database(Path::new("/")).of_error(line);
            Tool::Unknown(short.map_or_else(|| format!("{status}: {line}"), |short| short.text))
        }
        None => Tool::Unknown(format!("no answer within {} s", limit.as_secs())),
    }
}

/// Waits for a child and kills it when time is up; returns how it ended by itself.
fn ends_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begin.elapsed() < limit => std::thread::sleep(POLL_INTERVAL),
            Ok(None) | Err(_) => {
                // It may have ended in the meantime; in either case it is gone after this.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// The first number with dots, without the letters before it (`go1.26.8`) and packagers' suffixes after it.
pub(super) fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
    let mut numbers = words.filter_map(|word| {
        let number = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        let number = number[..end].trim_end_matches('.');
        (number.starts_with(|c: char| c.is_ascii_digit()) && number.contains('.')).then_some(number)
    });
    numbers.next().map(str::to_owned)
}
