//! Tests of what is named as short.

use super::words::{Said, said, telling_line};
use super::{CapRecord, Scene, Short, explained, felt};
use std::io;
use std::path::Path;

/// What C libraries, languages and engines say.
const WORDS: &[(&str, Option<Said>)] = &[
    ("IO error: No space left on device: While appending to file: /data/000004.log", Some(Said::NoSpace)),
    ("write /data/1.vlog: no space left on device", Some(Said::NoSpace)),
    ("database or disk is full", Some(Said::NoSpace)),
    ("Io(Os { code: 28, kind: StorageFull, message: \"No space left on device\" })", Some(Said::NoSpace)),
    ("open /data/DISCARD: too many open files", Some(Said::TooManyFiles)),
    ("Too many open files (os error 24)", Some(Said::TooManyFiles)),
    ("write: file too large", Some(Said::TooLarge)),
    ("while mmapping: cannot allocate memory", Some(Said::NoMemory)),
    ("terminate called after throwing an instance of 'std::bad_alloc'", Some(Said::NoMemory)),
    ("memory allocation of 4096 bytes failed", Some(Said::NoMemory)),
    ("fatal error: runtime: out of memory", Some(Said::NoMemory)),
    (
        "runtime: failed to create new OS thread (have 5 already; errno=11)",
        Some(Said::NoThread { is_certain: true }),
    ),
    (
        "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
        Some(Said::NoThread { is_certain: true }),
    ),
    (
        "runtime/cgo: pthread_create failed: Resource temporarily unavailable",
        Some(Said::NoThread { is_certain: true }),
    ),
    ("__wt_thread_create: pthread_create: error", Some(Said::NoThread { is_certain: true })),
    // Frames of traces.
    ("             at ./nptl/pthread_create.c:442:8", None),
    ("#7  start_thread (arg=<optimized out>) at ./nptl/pthread_create.c:442", None),
    ("Resource temporarily unavailable", Some(Said::NoThread { is_certain: false })),
    ("IO error: lock /data/LOCK: Resource temporarily unavailable", None),
    ("corruption: bad magic number", None),
    ("OpenFile /data/memfile: bad magic number", None),
    ("open: EMFILE", Some(Said::TooManyFiles)),
    ("", None),
];

#[test]
fn errors_are_known_by_the_words_of_engines() {
    for (text, wanted) in WORDS {
        assert_eq!(said(text), *wanted, "{text}");
    }
}

#[test]
fn the_line_that_says_why_is_found_before_the_traces_of_a_runtime() {
    let trace =
        "fatal error: all goroutines are asleep\n\ngoroutine 1 [running]:\n\t/a/b.go:1 +0x1\nexit status 2\n";
    assert_eq!(telling_line(trace.lines()), Some("fatal error: all goroutines are asleep"));
    let named = format!("runtime: failed to create new OS thread (have 2 already; errno=11)\n{trace}");
    assert_eq!(
        telling_line(named.lines()),
        Some("runtime: failed to create new OS thread (have 2 already; errno=11)")
    );
    assert_eq!(telling_line("first\nlast\n\n".lines()), Some("last"));
    assert_eq!(telling_line("\n \n".lines()), None);
}

#[test]
fn a_death_without_a_word_on_a_sound_machine_has_no_known_shortage() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::of_database(folder.path());
    for signal in ["SIGABRT", "SIGSEGV", "SIGKILL", "exit 1"] {
        assert_eq!(scene.of_death(signal, std::iter::empty()), None, "{signal}");
    }
    assert_eq!(scene.full(), None);
    // It has no blocks, so it cannot be full.
    assert_eq!(Scene::of_database(Path::new("/proc")).full(), None);
}

#[test]
fn a_kill_is_a_lack_of_memory_only_if_the_kernel_has_counted_it() {
    let folder = tempfile::tempdir().unwrap();
    let of = |out_of_memory| Scene { data: folder.path(), cap: None, out_of_memory };
    let death = |scene: Scene<'_>| scene.of_death("SIGKILL", std::iter::empty()).map(|shortage| shortage.of);
    assert_eq!(death(of(true)), Some(Short::Memory));
    assert_eq!(death(of(false)), None);
}

#[test]
fn a_cap_that_was_reached_may_be_the_reason_and_another_not() {
    let folder = tempfile::tempdir().unwrap();
    let suspects = |(limit_hits, peak_bytes)| {
        let cap = CapRecord {
            version: "v2".into(),
            limit_bytes: Some(32 << 20),
            peak_bytes,
            limit_hits,
            kills: Some(0),
        };
        let scene = Scene { data: folder.path(), cap: Some(&cap), out_of_memory: false };
        scene.suspects().is_some_and(|low| low.contains("memory cap 32 MiB, which was reached"))
    };
    let below = Some((32 << 20) - 1);
    let known = [(None, None), (Some(0), None), (Some(0), below), (None, below), (Some(1), None)];
    assert_eq!(known.map(suspects), [false, false, false, false, true]);
    // Version 1 of control groups does not count it everywhere.
    assert!(suspects((None, Some(32 << 20))));
}

#[test]
fn a_shortage_that_is_named_is_found_whatever_is_printed_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::of_database(folder.path());
    let lines = ["write failed: no space left on device", "goroutine 1 [running]:", "exit status 2"];
    let found = scene.of_death("exit 2", lines.into_iter()).unwrap();
    assert_eq!(found.of, Short::Space);
    assert!(
        found.text.starts_with("no space is left on the file system of the database ("),
        "{}",
        found.text
    );
    assert_eq!(scene.of_error("put: bad checksum"), None);
}

#[test]
fn errors_of_starts_name_the_limit_and_others_stay_as_they_are() {
    let text = |number: i32| explained(io::Error::from_raw_os_error(number)).to_string();
    assert!(
        text(libc::EAGAIN).contains("ulimit -") || text(libc::EAGAIN).contains("pids.max"),
        "{}",
        text(libc::EAGAIN)
    );
    assert!(
        text(libc::EMFILE).contains("open files is reached (ulimit -n); raise it"),
        "{}",
        text(libc::EMFILE)
    );
    assert!(text(libc::EFBIG).contains("(ulimit -f); raise it"), "{}", text(libc::EFBIG));
    let missing = io::Error::from_raw_os_error(libc::ENOENT);
    assert_eq!(text(libc::ENOENT), missing.to_string());
}

#[test]
fn a_process_that_lacks_nothing_feels_nothing() {
    assert_eq!(felt(), None);
}
