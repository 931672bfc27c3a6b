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
    // Servers that do not start.
    (
        "1:M 26 Nov 2026 18:44:03.469 # Your current 'ulimit -n' of 16 is not enough for the server to start. Please \
         increase your open file limit to at least 10032. Exiting.",
        Some(Said::TooManyFiles),
    ),
    (
        "failed to set rlimit for open files. Try starting as root or requesting smaller maxconns value.",
        Some(Said::TooManyFiles),
    ),
    (
        "{\"level\":\"fatal\",\"msg\":\"file descriptor limit of the process is too low; please set higher\",\"limit\":20}",
        Some(Said::TooManyFiles),
    ),
    ("FATAL:  insufficient file descriptors available to start server process", Some(Said::TooManyFiles)),
    (
        "1:M 26 Nov 2026 18:44:09.543 # Fatal: Can't initialize Background Jobs.",
        Some(Said::NoThread { is_certain: true }),
    ),
    ("Can't create thread: Resource temporarily unavailable", Some(Said::NoThread { is_certain: true })),
    // What they print at each start under a limit that they can live with.
    (
        "1:M 26 Nov 2026 18:44:03.469 # You requested maxclients of 10000 requiring at least 10032 max file descriptors.",
        None,
    ),
    (
        "1:M 26 Nov 2026 18:44:03.469 # Current maximum open files is 4096. maxclients has been reduced to 4064 to \
         compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'.",
        None,
    ),
    (
        "1:M 26 Nov 2026 18:44:03.469 # WARNING Memory overcommit must be enabled! Without it, a background save or \
         replication may fail under low memory condition.",
        None,
    ),
    ("LOG:  database system was shut down, maximum rlimit for open files is 64", None),
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
    let ends = [
        (
            "initdb: error: directory \"data\" is not empty\ninitdb: removing it",
            "initdb: error: directory \"data\" is not empty",
        ),
        (
            "[7] FATAL:  could not write: No space left on device\n[8] LOG:  Too many open files; release and retry\n",
            "[7] FATAL:  could not write: No space left on device",
        ),
        (
            "[7] FATAL:  lock file is bad\n[7] LOG:  database system is shut down",
            "[7] FATAL:  lock file is bad",
        ),
        (
            "{\"level\":\"panic\",\"error\":\"no space left on device\",\"stacktrace\":\"a.b\\n\\tc.go:1\"}\npanic: failed to create WAL\n",
            "{\"level\":\"panic\",\"error\":\"no space left on device\"",
        ),
    ];
    for (text, wanted) in ends {
        assert_eq!(telling_line(text.lines()), Some(wanted));
    }
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
