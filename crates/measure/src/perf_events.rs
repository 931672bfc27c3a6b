//! Counters of the kernel's performance events, by `perf_event_open`.

#![allow(unsafe_code, reason = "system calls")]

use std::io;

#[cfg(target_os = "linux")]
pub(super) use linux::*;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// CPU time, which every kernel counts.
    TaskClock,
    /// Cycles of the processor.
    Cycles,
    /// Instructions that the processor has completed.
    Instructions,
    /// A tracepoint, by its id in tracefs.
    Tracepoint(u64),
}

/// Whose events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of the calling thread, in user mode.
    Thread,
    /// Those of the calling thread in the kernel, too, and of all threads and processes that it starts from now on, and these
    /// start. Threads that exist already are not counted.
    Started,
    /// The same, in user mode only.
    StartedInUserMode,
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Event, Whose, io};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;

    /// Kinds of events, and the events of each kind.
    const HARDWARE: u32 = 0;
    const SOFTWARE: u32 = 1;
    const TRACEPOINT: u32 = 2;
    const CPU_CYCLES: u64 = 0;
    const RETIRED_INSTRUCTIONS: u64 = 1;
    const TASK_CLOCK: u64 = 1;
    /// Bits of `flags`.
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    /// Bits of `read_format`: the time for which the counter was wanted, and for which it had a place in the processor.
    const TIMES: u64 = 1 | 2;

    /// From linux/perf_event.h.
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

    /// The first published size of `struct perf_event_attr`, which every kernel accepts.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_kind: u32,
        config1: u64,
    }

    /// An open counter.
    #[derive(Debug)]
    pub(crate) struct Counter(File);

    impl Counter {
        /// Opens a counter, which begins at 0 and counts from now on.
        pub(crate) fn open(event: Event, whose: Whose) -> io::Result<Counter> {
            let (kind, config) = match event {
                Event::TaskClock => (SOFTWARE, TASK_CLOCK),
                Event::Cycles => (HARDWARE, CPU_CYCLES),
                Event::Instructions => (HARDWARE, RETIRED_INSTRUCTIONS),
                Event::Tracepoint(number) => (TRACEPOINT, number),
            };
            let flags = match (whose, event) {
                // A tracepoint is in the kernel.
                (Whose::Thread, Event::Tracepoint(_)) => 0,
                (Whose::Thread, _) => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
                (Whose::Started, _) => INHERIT | EXCLUDE_HYPERVISOR,
                (Whose::StartedInUserMode, _) => INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            };
            let attributes = Attributes {
                kind,
                size: size_of::<Attributes>() as u32,
                config,
                sample_period: 0,
                sample_type: 0,
                read_format: TIMES,
                flags,
                wakeup_events: 0,
                breakpoint_kind: 0,
                config1: 0,
            };
            let (this_thread, any_cpu, no_group) = (0_i32, -1_i32, -1_i32);
            // SAFETY: the attributes are live and contain their own size; the kernel only reads them.
            let file = unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    &raw const attributes,
                    this_thread,
                    any_cpu,
                    no_group,
                    CLOSE_ON_EXEC,
                )
            };
            let file =
                i32::try_from(file).ok().filter(|&file| file >= 0).ok_or_else(io::Error::last_os_error)?;
            // SAFETY: the descriptor was just opened and has no other owner; dropping it closes it.
            Ok(Counter(unsafe { File::from_raw_fd(file) }))
        }

        /// Its value. If more counters were wanted than the processor has, they took turns, and the value is scaled.
        pub(crate) fn value(&self) -> Option<u64> {
            let mut bytes = [0; 24];
            (&self.0).read_exact(&mut bytes).ok()?;
            let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
            super::scaled(word(0)?, word(8)?, word(16)?)
        }
    }
}

/// The estimate of a counter that counted for a part of the time; none if it never did.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has counters"))]
fn scaled(value: u64, wanted_ns: u64, counted_ns: u64) -> Option<u64> {
    match (wanted_ns, counted_ns) {
        (0, _) => Some(0),
        (_, 0) => None,
        (wanted, counted) => u64::try_from(u128::from(value) * u128::from(wanted) / u128::from(counted)).ok(),
    }
}

/// A counter, which does not exist on other systems than Linux.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct Counter;

#[cfg(not(target_os = "linux"))]
impl Counter {
    /// Fails.
    pub(crate) fn open(_event: Event, _whose: Whose) -> io::Result<Counter> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only on Linux"))
    }

    /// Nothing is known.
    pub(crate) fn value(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_scaled_and_one_without_a_turn_is_unknown() {
        assert_eq!(scaled(10, 100, 100), Some(10));
        assert_eq!(scaled(10, 100, 50), Some(20));
        assert_eq!(scaled(0, 100, 0), None);
        assert_eq!(scaled(0, 0, 0), Some(0));
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), None);
    }

    /// Hardware counters are rare in virtual machines, so the mechanism is tested with an event that every kernel counts.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_are_started_later_are_counted_while_they_run_and_after_they_ended() {
        use crate::ThreadTimes;
        use std::sync::mpsc::channel;

        let Ok(counter) = Counter::open(Event::TaskClock, Whose::Started) else {
            println!("skipped: perf events of the kernel are not permitted here");
            return;
        };
        let before = counter.value().unwrap();
        let (burnt, has_burnt) = channel();
        let (end, may_end) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let start = ThreadTimes::of_this_thread();
            while ThreadTimes::of_this_thread().since(&start).cpu_ns.unwrap() < 30_000_000 {}
            burnt.send(()).unwrap();
            may_end.recv().unwrap_err();
        });
        has_burnt.recv().unwrap();
        let running = counter.value().unwrap();
        drop(end);
        thread.join().unwrap();
        let ended = counter.value().unwrap();
        assert!(running - before >= 29_000_000, "{before} ns, then {running} ns");
        assert!(ended >= running, "{running} ns, then {ended} ns");
    }
}
