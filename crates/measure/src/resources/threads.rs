//! How long threads ran, and how long they were ready to run but had no CPU. From `schedstat` files of `/proc`.

use super::{children, read};
use crate::system_calls;
use std::collections::HashMap;

/// A thread's CPU time and waiting time since it began, or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its number; `None` if unknown.
    pub thread: Option<u32>,
    /// Time that it ran, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Time that it was ready to run but had no CPU, nanoseconds.
    pub run_delay_ns: Option<u64>,
}

impl ThreadTimes {
    /// The times of the calling thread. Reads one small file: about 10 us. A thread must call this before it ends,
    /// because its files disappear with it. In a process whose system calls are counted, nothing is known, so that these reads are
    /// not among them.
    pub fn of_this_thread() -> Self {
        if system_calls::are_counted() {
            return Self::default();
        }
        let link = std::fs::read_link("/proc/thread-self").ok();
        let number = link.as_ref().and_then(|link| link.file_name()?.to_str()?.parse().ok());
        let run_delay_ns =
            read("/proc/thread-self/schedstat").as_deref().and_then(parse).map(|(_, delay)| delay);
        Self { thread: number, cpu_ns: cpu_ns_of_this_thread(), run_delay_ns }
    }

    /// The times since `earlier`, of the same thread.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Self {
            thread: self.thread,
            cpu_ns: less(self.cpu_ns, earlier.cpu_ns),
            run_delay_ns: less(self.run_delay_ns, earlier.run_delay_ns),
        }
    }
}

/// CPU time of the calling thread since it began, up to this moment; nanoseconds. In `schedstat` the kernel updates a running
/// thread's time at its ticks only, some hundred times a second.
#[cfg(unix)]
pub fn cpu_ns_of_this_thread() -> Option<u64> {
    cpu_ns_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the other threads of this process since it began, up to this moment; nanoseconds.
#[cfg(unix)]
pub(crate) fn cpu_ns_of_other_threads() -> Option<u64> {
    let own = cpu_ns_of_this_thread()?;
    Some(cpu_ns_of(libc::CLOCK_PROCESS_CPUTIME_ID)?.saturating_sub(own))
}

#[cfg(unix)]
fn cpu_ns_of(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer refers to a live timespec.
    let outcome = unsafe { libc::clock_gettime(clock, &mut time) };
    let seconds = u64::try_from(time.tv_sec).ok().filter(|_| outcome == 0)?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

/// Not known on other systems than Unix.
#[cfg(not(unix))]
pub fn cpu_ns_of_this_thread() -> Option<u64> {
    None
}

/// Not known on other systems than Unix.
#[cfg(not(unix))]
pub(crate) fn cpu_ns_of_other_threads() -> Option<u64> {
    None
}

/// Total run delay of this process's threads, and of the threads of the processes that it started, over a span of
/// time. When a thread ends, its waiting time since the last update is lost; update often, or let the thread report
/// its own times ([`ThreadTimes`]).
#[derive(Clone, Debug, Default)]
pub struct RunDelays {
    last: HashMap<u32, u64>,
    sums: HashMap<u32, u64>,
}

impl RunDelays {
    /// Begins a span. Reads one file per thread.
    pub fn begin() -> Self {
        Self { last: delays_now(), sums: HashMap::new() }
    }

    /// Updates the sum. Reads one file per thread.
    pub fn update(&mut self) {
        self.take(delays_now());
    }

    fn take(&mut self, now: HashMap<u32, u64>) {
        for (thread, delay_ns) in &now {
            let before = self.last.get(thread).copied().unwrap_or(0);
            // A number that was reused for another thread starts again at zero.
            let more = delay_ns.checked_sub(before).unwrap_or(*delay_ns);
            let sum = self.sums.entry(*thread).or_default();
            *sum = sum.saturating_add(more);
        }
        self.last = now;
    }

    /// The sum so far, nanoseconds, without the threads in `told`, which reported their own; `None` if nothing could
    /// be read.
    pub fn sum_ns(&self, told: &[u32]) -> Option<u64> {
        let of_others = self.sums.iter().filter(|(thread, _)| !told.contains(thread));
        (!self.sums.is_empty()).then(|| of_others.fold(0, |all: u64, (_, sum)| all.saturating_add(*sum)))
    }
}

/// Run delay of each existing thread since it began, by its number.
fn delays_now() -> HashMap<u32, u64> {
    let mut all = HashMap::new();
    let own = std::iter::once("/proc/self/task".to_string());
    let others = children::numbers().into_iter().map(|process| format!("/proc/{process}/task"));
    for folder in own.chain(others) {
        for thread in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread that ended during the scan no longer has a file.
            let text = std::fs::read_to_string(thread.path().join("schedstat"));
            let times = text.ok().as_deref().and_then(parse);
            if let (Some(number), Some((_, delay_ns))) = (number, times) {
                all.insert(number, delay_ns);
            }
        }
    }
    all
}

/// The first two of the three numbers of a `schedstat`: time on a CPU, and run delay.
fn parse(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kernels_print() {
        assert_eq!(parse("992374 51 1\n"), Some((992_374, 51)));
        for text in ["", "1", "1 x 3", "1 -2 3", "x 1 2", "1 99999999999999999999 3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn threads_that_begin_and_end_meanwhile_take_nothing_from_the_sum() {
        let seen = |pairs: &[(u32, u64)]| pairs.iter().copied().collect::<HashMap<u32, u64>>();
        let mut delays = RunDelays { last: seen(&[(1, 100), (2, 50)]), sums: HashMap::new() };
        assert_eq!(delays.sum_ns(&[]), None, "nothing is known before the first update");
        // Thread 2 has ended, 3 has begun.
        delays.take(seen(&[(1, 110), (3, 7)]));
        assert_eq!(delays.sum_ns(&[]), Some(17));
        // Thread 3 has ended, and another thread has its number.
        delays.take(seen(&[(1, 111), (3, 2)]));
        assert_eq!(delays.sum_ns(&[]), Some(20));
        assert_eq!(delays.sum_ns(&[3]), Some(11), "3 has reported its own");
        // All except one have ended: their waiting time stays in the sum.
        delays.take(seen(&[(9, 0)]));
        assert_eq!(delays.sum_ns(&[]), Some(20));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_found_by_its_own_number_with_its_own_delay() {
        let Some(number) = ThreadTimes::of_this_thread().thread else { return };
        let first = ThreadTimes::of_this_thread();
        assert!(first.run_delay_ns.is_none() || delays_now().contains_key(&number), "{first:?}");
        let later = ThreadTimes::of_this_thread().since(&first);
        assert_eq!(
            (later.thread, later.run_delay_ns.is_some()),
            (Some(number), first.run_delay_ns.is_some())
        );
    }
}
