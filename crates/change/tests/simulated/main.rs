//! Goal: verdicts, change points and bisection are right as often as they say, where the truth is known.

mod bisect;
mod counts;
mod machine;
mod paired;
#[path = "../../../load/tests/search/random.rs"]
mod random;
mod rivals;
mod series;

use kvdyno_measure::start::thread_in;

/// What `work` makes of each number below `count`, in their order, on two threads.
fn parallel<R: Send>(count: u64, work: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let half = |first: u64| (first..count).step_by(2).map(&work).collect::<Vec<R>>();
    let (even, odd) = std::thread::scope(|scope| {
        let other = thread_in(scope, || half(1)).expect("a thread can be started");
        (half(0), other.join().expect("the work does not panic"))
    });
    let mut odd = odd.into_iter();
    even.into_iter().flat_map(|item| std::iter::once(item).chain(odd.next())).collect()
}

/// A number from the environment.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
