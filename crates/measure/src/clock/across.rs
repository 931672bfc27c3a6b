//! Whether the clock goes backward when a time is passed from one CPU to another.

use super::{COUNTER, Clock, Kind, monotonic_ns};
use crate::start;
use kvdyno_driver::ordered_ticks;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// CPUs that the first one exchanges times with.
const PARTNERS: usize = 8;
const HAND_OFFS_PER_PARTNER: u64 = 1000;
const LIMIT_NS: u64 = 10_000_000;
const OVER: u32 = 2;

/// The result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Across {
    pub(super) hand_offs: u64,
    pub(super) backward_steps: u64,
}

/// Passes a time back and forth between the first CPU and several others, for at most 10 ms in total; `None` if there
/// is only one CPU, or if threads cannot be bound to one.
pub(super) fn hand_off(clock: &Clock) -> Option<Across> {
    let cpus = allowed_cpus();
    let (first, others) = cpus.split_first()?;
    let step = others.len().div_ceil(PARTNERS).max(1);
    let partners: Vec<usize> = others.iter().copied().step_by(step).collect();
    let share_ns = LIMIT_NS / partners.len().max(1) as u64;
    let mut all = Across::default();
    for partner in partners {
        let one = play(clock, [*first, partner], monotonic_ns() + share_ns);
        all.hand_offs += one.hand_offs;
        all.backward_steps += one.backward_steps;
    }
    (all.hand_offs > 0).then_some(all)
}

/// The shared state: whose turn it is, and the time that was passed.
struct Ball<'a> {
    clock: &'a Clock,
    turn: AtomicU32,
    thrown: AtomicU64,
    until_ns: u64,
}

fn play(clock: &Clock, cpus: [usize; 2], until_ns: u64) -> Across {
    let ball = Ball { clock, turn: AtomicU32::new(0), thrown: AtomicU64::new(0), until_ns };
    std::thread::scope(|scope| {
        let players = [0, 1].map(|player| {
            let (ball, cpu) = (&ball, cpus[player as usize]);
            let player = start::thread_in(scope, move || ball.play(player, cpu));
            if player.is_err() {
                // The other one would wait for it.
                ball.turn.store(OVER, Ordering::Release);
            }
            player
        });
        let mut both = Across::default();
        for player in players.into_iter().flatten() {
            let one = player.join().unwrap_or_default();
            both.hand_offs += one.hand_offs;
            both.backward_steps += one.backward_steps;
        }
        both
    })
}

impl Ball<'_> {
    fn now(&self) -> u64 {
        if self.clock.kind == Kind::Counter { ordered_ticks(COUNTER) } else { monotonic_ns() }
    }

    fn play(&self, player: u32, cpu: usize) -> Across {
        let mut seen = Across::default();
        if !bind_to(cpu) {
            self.turn.store(OVER, Ordering::Release);
        }
        while seen.hand_offs < HAND_OFFS_PER_PARTNER && self.wait_for(player) {
            let caught = self.now();
            seen.hand_offs += 1;
            seen.backward_steps += u64::from(caught < self.thrown.load(Ordering::Relaxed));
            self.thrown.store(self.now(), Ordering::Relaxed);
            // Fails when the other thread has ended the exchange.
            let _ = self.turn.compare_exchange(player, 1 - player, Ordering::Release, Ordering::Relaxed);
        }
        self.turn.store(OVER, Ordering::Release);
        seen
    }

    /// Waits for its turn; `false` if the exchange has ended.
    fn wait_for(&self, player: u32) -> bool {
        loop {
            match self.turn.load(Ordering::Acquire) {
                OVER => return false,
                turn if turn == player => return true,
                _ if monotonic_ns() > self.until_ns => return false,
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// The CPUs that this thread may run on, ascending; empty if unknown.
#[cfg(target_os = "linux")]
fn allowed_cpus() -> Vec<usize> {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is live and its size is given; 0 is the calling thread.
    let outcome = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if outcome != 0 {
        return Vec::new();
    }
    // SAFETY: the index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

#[cfg(target_os = "linux")]
fn bind_to(cpu: usize) -> bool {
    // SAFETY: all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index came from a set of the same size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is live and its size is given; 0 is the calling thread, which ends after this exchange.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn allowed_cpus() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_cpu: usize) -> bool {
    false
}
