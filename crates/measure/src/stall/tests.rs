//! What is read of a thread is what it does, and what is told is of the observed time alone.

use super::look::{parse_call, parse_state, parse_times};
use super::*;
use std::sync::mpsc;

#[test]
fn reads_what_kernels_print() {
    let line = "24 (a) b (c) D 1 2 3 0 -1 4194304 17 0 5 0 1 2";
    let look = parse_state(line).unwrap();
    assert_eq!((look.state, look.minor_faults, look.major_faults), ('D', 17, 5));
    assert!(look.is_blocked() && !look.is_running());
    for text in ["", "24 (a) ", "24 (a) R 1 2", "24 (a) R 1 2 3 0 -1 4194304 x 0 5"] {
        assert_eq!(parse_state(text), None, "{text}");
    }
    assert_eq!(parse_call("running\n"), None);
    assert_eq!(parse_call("-1 0x7ffd 0x55\n").as_deref(), Some("page fault"));
    assert_eq!(parse_call("999999 0x0 0x7ffd 0x55\n").as_deref(), Some("system call 999999"));
    assert_eq!(parse_times("992374 51 1\n"), Some((992_374, 51)));
}

#[cfg(target_os = "linux")]
#[test]
fn calls_have_the_names_that_people_know() {
    assert_eq!(parse_call(&format!("{} 0x5", libc::SYS_fdatasync)).as_deref(), Some("fdatasync"));
    assert_eq!(parse_call(&format!("{} 0x5", libc::SYS_futex)).as_deref(), Some("futex"));
}

/// Observes a thread that waits in a system call until it has been seen there twice.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_waits_in_a_call_is_seen_there() {
    let (tell, told) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    let waiting = std::thread::spawn(move || {
        tell.send(own_thread()).unwrap();
        // Returns when the other end is dropped.
        finished.recv().unwrap_err();
    });
    let Some(thread) = told.recv().unwrap() else { return };
    let begun = std::time::Instant::now();
    while look::look_at(thread).is_none_or(|look| look.call.as_deref() != Some("futex")) {
        if begun.elapsed().as_secs() > 20 {
            // A kernel without that file.
            assert!(std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).is_err());
            return;
        }
        std::thread::yield_now();
    }
    let mut observation =
        Observation::begin(Some(thread), 1_000, Surroundings::now(true, vec![("gc".into(), 7)]));
    assert_eq!((observation.span(), observation.view(1, &[])), (None, None), "it was read only once");
    observation.look(|| false);
    observation.look(|| true);
    let after = Surroundings::now(true, vec![("gc".into(), 9), ("new".into(), 1)]);
    observation.read_again(Rc::clone(&after), || None);
    assert_eq!(observation.span(), None, "it had made progress");
    observation.read_again(after, || Some(5_000));
    assert_eq!(observation.span(), Some((1_000, 5_000)));
    let view = observation.view(4_000, &[]).unwrap();
    assert_eq!((view.looks, view.running, view.blocked), (2, 0, 0), "{view:?}");
    assert_eq!(view.calls, [("futex".to_string(), 2)]);
    assert_eq!((view.cpu_ns, view.minor_faults, view.major_faults), (Some(0), Some(0), Some(0)), "{view:?}");
    assert_eq!(view.engine, [("gc".to_string(), 2)], "what is new has no difference");
    drop(finish);
    waiting.join().unwrap();
}

#[test]
fn of_an_unknown_thread_only_its_surroundings_are_known() {
    let mut observation = Observation::begin(None, 1, Surroundings::now(false, Vec::new()));
    observation.look(|| true);
    observation.read_again(Surroundings::now(false, Vec::new()), || Some(2));
    let view = observation.view(1, &[]).unwrap();
    assert_eq!((view.looks, view.cpu_ns, view.run_delay_ns, view.minor_faults), (0, None, None, None));
    assert_eq!((view.read_storage_bytes, view.written_storage_bytes), (None, None), "no storage in memory");
}

#[test]
fn busy_threads_are_added_up_by_name_and_the_harness_is_not_among_them() {
    let around = |threads: &[(u32, &str, u64)]| {
        let threads = threads.iter().map(|(number, name, ns)| (*number, (name.to_string(), *ns))).collect();
        Rc::new(Surroundings { threads, ..Surroundings::default() })
    };
    let before =
        around(&[(1, "kvdyno", 0), (2, "low", 500), (3, "low", 0), (4, "high", 70), (6, "new", 900)]);
    let mut observation = Observation::begin(None, 0, before);
    let after = [
        (1, "kvdyno", 990),
        (2, "low", 800),
        (3, "low", 300),
        (4, "high", 75),
        (5, "late", 60),
        (6, "new", 400),
    ];
    observation.read_again(around(&after), || Some(1_000));
    let busy = observation.view(1_000, &[1]).unwrap().busy;
    let wanted = [("low", 600), ("new", 400), ("late", 60)].map(|(name, ns)| (name.to_string(), ns));
    assert_eq!(busy, wanted);
}
