//! What the text of an error, or of a process that died, says about what was short: in the words of the C library, of languages'
//! runtimes and of engines.

/// The kind of call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// ENOSPC or EDQUOT: a write, or the creation of a file.
    NoSpace,
    /// EMFILE or ENFILE.
    TooManyFiles,
    /// EFBIG.
    TooLarge,
    /// ENOMEM, or a failed allocation.
    NoMemory,
    /// EAGAIN of a call that starts a thread or process; not certain if the text does not name one.
    NoThread {
        /// Whether the text names a thread or process.
        is_certain: bool,
    },
}

const SPACE: [&str; 8] = [
    "no space left",
    "os error 28)",
    "enospc",
    "disk is full",
    "disk full",
    "quota exceeded",
    "os error 122)",
    "no space is left",
];
/// A limit that is only low is not meant: servers print at each start that they would rather have a higher one.
const FILES: [&str; 11] = [
    "too many open files",
    "os error 24)",
    "emfile",
    "os error 23)",
    "enfile",
    "on open files is reached",
    // A server that refuses to start under the limit.
    "current 'ulimit -n' of ",
    "set rlimit for open files",
    "file descriptor limit[",
    "file descriptor limit of ",
    "insufficient file descriptors",
];
const LARGE: [&str; 4] = ["file too large", "os error 27)", "efbig", "on the size of a file is reached"];
const MEMORY: [&str; 13] = [
    // Without its end, because drivers may cut a long text.
    "cannot allocat",
    "rust_oom",
    "failed to reserve",
    "os error 12)",
    "enomem",
    "out of memory",
    "outofmemory",
    "bad_alloc",
    "memory allocation of",
    "not enough memory",
    "failed to allocate",
    "on address space is reached",
    "on data is reached",
];
/// A thread or process could not be started. `pthread_create` alone is a frame of every trace of a thread.
const THREADS: [&str; 11] = [
    "failed to create new os thread",
    "newosproc",
    "failed to spawn thread",
    "cannot start a thread",
    "cannot create thread",
    "unable to create thread",
    "can't create thread",
    // All of them are threads.
    "can't initialize background jobs",
    "pthread_create failed",
    "pthread_create: ",
    "processes and threads",
];
/// EAGAIN, which calls return for other reasons as well.
const AGAIN: [&str; 5] =
    ["resource temporarily unavailable", "os error 11)", "code: 11,", "errno=11", "eagain"];
/// A lock that another process holds is reported with EAGAIN too.
const LOCK: &str = "lock";

/// What a text says; `None` if it says nothing about what was short.
pub(crate) fn said(text: &str) -> Option<Said> {
    let text = text.to_ascii_lowercase();
    // At the start of a word: `enfile` is also the end of `OpenFile`.
    let begins = |at: usize| !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
    let has = |words: &[&str]| words.iter().any(|word| text.match_indices(word).any(|(at, _)| begins(at)));
    if has(&SPACE) {
        Some(Said::NoSpace)
    } else if has(&FILES) {
        Some(Said::TooManyFiles)
    } else if has(&LARGE) {
        Some(Said::TooLarge)
    } else if has(&THREADS) {
        Some(Said::NoThread { is_certain: true })
    } else if has(&MEMORY) {
        Some(Said::NoMemory)
    } else if has(&AGAIN) && !text.contains(LOCK) {
        Some(Said::NoThread { is_certain: false })
    } else {
        None
    }
}

/// Starts of lines with which a runtime says why it ends. A trace of its stacks follows.
const TELLING: [&str; 4] = ["fatal error: ", "panic: ", "what(): ", "terminate called "];
/// Parts of lines with which a runtime or a server says so. What follows is a trace, or what it did before it ended.
const TELLING_PARTS: [&str; 6] =
    [" panicked at ", "\"level\":\"fatal\"", "\"level\":\"panic\"", " FATAL: ", " PANIC: ", ": error: "];
/// With this, a trace begins in a line of JSON.
const TRACE_IN_LINE: &str = ",\"stacktrace\":";

/// The line that says why a process died, of the last ones that it printed: one that names a shortage, if possible one with which a
/// runtime or a server ends; else one with which it ends, else the last that is not empty. It is without the trace that it may have.
pub fn telling_line<'t>(lines: impl DoubleEndedIterator<Item = &'t str> + Clone) -> Option<&'t str> {
    let without_trace = |line: &'t str| line.split(TRACE_IN_LINE).next().unwrap_or(line).trim();
    let mut lines = lines.rev().map(without_trace).filter(|line| !line.is_empty());
    let is_telling = |line: &&str| {
        TELLING.iter().any(|start| line.starts_with(start))
            || TELLING_PARTS.iter().any(|part| line.contains(part))
    };
    let named = || lines.clone().filter(|line| said(line).is_some());
    let found =
        named().find(is_telling).or_else(|| named().next()).or_else(|| lines.clone().find(is_telling));
    found.or_else(|| lines.next())
}
