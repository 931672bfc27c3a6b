//! The two probes of `doctor` that take time: syncs in the data path, and the version queries of compilers.

use kvdyno_measure::disk::existing_part;
use kvdyno_measure::{Clock, Histogram, start};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
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

/// Each toolchain that builds drivers, with its version; `None` if it is absent or does not answer within 2 s.
pub(super) fn toolchains() -> Vec<(&'static str, Option<String>)> {
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

pub(super) fn version_of(program: &str, question: &str, limit: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(question).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = start::process(&mut command).ok()?;
    if !ends_within(&mut child, limit) {
        return None;
    }
    let mut answer = Vec::new();
    child.stdout.take()?.take(ANSWER_BYTES).read_to_end(&mut answer).ok()?;
    version_in(&String::from_utf8_lossy(&answer))
}

/// Waits for a child and kills it when time is up; returns whether it ended successfully by itself.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if begin.elapsed() < limit => std::thread::sleep(POLL_INTERVAL),
            Ok(None) | Err(_) => {
                // It may have ended in the meantime; in either case it is gone after this.
                let _ = child.kill();
                let _ = child.wait();
                return false;
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
