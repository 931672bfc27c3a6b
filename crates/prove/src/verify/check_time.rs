//! Checks of the timed loop: stamps, the stop word, the deadline, due ticks; and that the times are real.

use super::Found;
use super::act::{Act, Reply, group};
use super::caller::{Call, set};
use super::draw::bytes;
use super::failure::Failure;
use super::subject::{BATCH, Context, Setup, Subject};
use kvdyno_core::engine::abi::*;
use kvdyno_measure::Clock;
use kvdyno_measure::start::thread_in_or_exit;
use std::thread;
use std::time::{Duration, Instant};

/// Rules 6 and 7: the rules that every call of every check is checked against, and more with both clocks, single and
/// in groups.
pub(super) fn stamps(context: &Context<'_>) -> Found {
    let mut clocks = vec![Clock::monotonic()];
    if context.clock.kind() != KV_CLOCK_MONOTONIC {
        clocks.push(context.clock);
    }
    for clock in clocks {
        let mut subject = context.open(Setup { clock, ..context.setup()? })?;
        for count in [1, 2, BATCH] {
            let acts = plain(context, count);
            subject.call(&acts)?;
            if count > 1 {
                subject.call(&group(acts, 0))?;
            }
            // A due tick in the past means now.
            let late: Vec<_> = plain(context, count).into_iter().map(|act| Act { due: 1, ..act }).collect();
            subject.call(&late)?;
        }
        let empty = subject.caller()?.call_from(0, &[], None)?;
        if empty.done != 0 {
            return Err("rule 3: a call with no ops reports some as done".into());
        }
        subject.close()?;
    }
    context.faults.text().map_or(Ok(()), |text| Err(text.into()))
}

/// Puts and gets, which every engine supports.
fn plain(context: &Context<'_>, count: usize) -> Vec<Act> {
    let act = |number: usize| {
        let key = context.key(&format!("k{:02}", number / 2));
        if number.is_multiple_of(2) { Act::put(&key, b"some value") } else { Act::get(&key) }
    };
    let is_allowed = |act: &Act| act.kind == KV_GET || context.has(KV_OVERWRITE);
    (0..count).map(act).map(|act| if is_allowed(&act) { act } else { Act::get(&act.key) }).collect()
}

/// Bytes per nanosecond that no processor exceeds when copying.
const COPIED_BYTES_PER_NS: u64 = 400;

/// The ops' times must account for nearly all of the call's time seen from outside where the ops are heavy.
pub(super) fn honest(context: &Context<'_>) -> Found {
    let length = context.facts.value_bytes;
    let mut subject = context.open(Setup { value_bytes: length, out_bytes: length, ..context.setup()? })?;
    let mut random = context.random(16);
    let keys: Vec<_> = (0..BATCH / 2).map(|number| context.key(&format!("h{number:02}"))).collect();
    let puts: Vec<_> = keys.iter().map(|key| Act::put(key, &bytes(&mut random, length))).collect();
    // Each key twice: the time outside the ops is a smaller share of a longer call.
    let gets: Vec<_> = keys.iter().chain(&keys).map(|key| Act::get(key)).collect();
    subject.run(&puts)?;
    honest_calls(&mut subject, "gets", &gets)?;
    if context.has(KV_OVERWRITE) {
        honest_calls(&mut subject, "puts", &puts)?;
    }
    delayed(context, &mut subject)?;
    Ok(subject.close()?)
}

/// The share of the fastest call that may be outside its ops.
const OUTSIDE_SHARE: f64 = 0.05;

/// The least time that any of many calls spent outside its ops, and the time of the fastest call. A busy machine delays some
/// calls but not all, and the kit itself takes a few microseconds per call. Time that the stamps leave out of the ops is outside
/// them in every call.
#[derive(Clone, Copy, Debug)]
struct Least {
    calls: usize,
    wall: u64,
    outside: u64,
}

impl Least {
    const NONE: Least = Least { calls: 0, wall: u64::MAX, outside: u64::MAX };

    fn add(&mut self, wall: u64, outside: u64) {
        self.calls += 1;
        self.wall = self.wall.min(wall);
        self.outside = self.outside.min(outside);
    }

    fn share(&self) -> f64 {
        self.outside as f64 / self.wall.max(1) as f64
    }

    /// Whether the stamps account for the calls.
    fn is_honest(&self) -> bool {
        const FEWEST: usize = 3;
        self.calls >= FEWEST && self.share() <= OUTSIDE_SHARE
    }
}

/// An honest driver passes after a few calls. A driver fails only after 3 seconds of calls, or 30 if little time is missing, because
/// an engine may still be busy with work that earlier checks have left to it.
fn honest_calls(subject: &mut Subject<'_>, what: &str, acts: &[Act]) -> Result<(), Failure> {
    const FEWEST: usize = 20;
    // On a very busy machine, a runtime that wakes a thread before and after the ops may spend several percent of many calls in a
    // row outside them: at a load of 40, 7 % of every call of three seconds. A busy machine does not add this much to every call.
    const GROSS_SHARE: f64 = 0.2;
    let longest = |share: f64| Duration::from_secs(if share > GROSS_SHARE { 3 } else { 30 });
    let begun = Instant::now();
    let mut least = Least::NONE;
    while !least.is_honest() {
        if begun.elapsed() > longest(least.share()) && least.calls >= FEWEST {
            let (count, length) = (acts.len(), subject.setup.value_bytes);
            let percent = 100.0 * (1.0 - least.share());
            return Err(Failure::Broken(format!(
                "rule 7: {count} {what} of {length} bytes: the stamps account for {percent:.0} % of the call's time"
            )));
        }
        let call = subject.caller()?.call_from(0, acts, None)?;
        least.add(call.wall, outside(&call));
        if what == "gets" {
            delivers_in_its_time(subject, &call)?;
        }
    }
    Ok(())
}

/// Each get delivers all of the value in its own time, and no copy is faster than this.
fn delivers_in_its_time(subject: &Subject<'_>, call: &Call) -> Result<(), Failure> {
    let length = subject.setup.value_bytes;
    let least = subject.setup.clock.from_ns(length as u64 / COPIED_BYTES_PER_NS);
    let ticks = |answer: &Reply| answer.end.saturating_sub(answer.start);
    let Some(at) = call.answers.iter().position(|answer| ticks(answer) < least) else { return Ok(()) };
    Err(Failure::Broken(format!(
        "rule 7: get {at} of {} delivers {length} bytes in {} ticks, which is impossible: its time is counted for another op",
        call.answers.len(),
        ticks(&call.answers[at])
    )))
}

/// The ticks of a call that are outside its ops.
fn outside(call: &Call) -> u64 {
    let inside: u64 = call.answers.iter().map(|answer| answer.end.saturating_sub(answer.start)).sum();
    call.wall.saturating_sub(inside)
}

/// The time by which something else must happen, if it is to be seen in a call; the next one if the machine was too busy.
const DELAYS_MS: [u64; 3] = [20, 200, 2_000];

/// A single op takes the time of its complete call, except for the overhead of the call.
fn delayed(context: &Context<'_>, subject: &mut Subject<'_>) -> Result<(), Failure> {
    let act = Act::get(&context.key("h00"));
    let mut least = u64::MAX;
    for _ in 0..200 {
        least = least.min(outside(&subject.caller()?.call_from(0, std::slice::from_ref(&act), None)?));
    }
    let outside_ns = subject.setup.clock.to_ns(least);
    if outside_ns > 20_000 {
        return Err(Failure::Broken(format!(
            "rule 7: a call of one get takes at least {outside_ns} ns longer than its op reports"
        )));
    }
    Ok(())
}

/// Rule 3: once the stop word is set, no further op is started.
pub(super) fn stop_word(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let acts = plain(context, BATCH);
    let stop = subject.caller()?.stop();
    set(stop, 1);
    let call = subject.caller()?.call_from(0, &acts, None)?;
    if call.done != 0 {
        return Err(format!("rule 3: the stop word was set, but {} ops were run", call.done).into());
    }
    set(stop, 0);
    subject.call(&acts)?;
    // Set by another thread while the kit waits for an op that is due in a minute.
    let minute = subject.setup.clock.from_ns(60_000_000_000);
    let mut waiting = plain(context, 3);
    waiting[1].due = subject.setup.clock.now() + minute;
    for delay_ms in DELAYS_MS {
        let call = thread::scope(|scope| {
            thread_in_or_exit(scope, || {
                thread::sleep(Duration::from_millis(delay_ms));
                set(stop, 1);
            });
            subject.caller()?.call_from(0, &waiting, None)
        })?;
        set(stop, 0);
        match call.done {
            // On a busy machine the call may begin after the stop.
            0 if delay_ms < DELAYS_MS[DELAYS_MS.len() - 1] => {}
            1 => break,
            done => {
                return Err(format!("rule 7: stopped while waiting for op 1, but {done} ops were run").into());
            }
        }
    }
    Ok(subject.close()?)
}

/// Rule 3: once the deadline has passed, no further op is started.
pub(super) fn deadline(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let clock = subject.setup.clock;
    let acts = plain(context, BATCH);
    let call = subject.caller()?.call_from(0, &acts, Some(clock.now()))?;
    if call.done != 0 {
        return Err(format!("rule 3: the deadline had passed, but {} ops were run", call.done).into());
    }
    let hour = clock.from_ns(3_600_000_000_000);
    let far = clock.now() + hour;
    let call = subject.caller()?.call_from(0, &acts, Some(far))?;
    if call.done != acts.len() {
        return Err(format!(
            "rule 3: the deadline is in an hour, but {} of {} ops were run",
            call.done, BATCH
        )
        .into());
    }
    let mut waiting = plain(context, 3);
    waiting[1].due = far;
    let near = clock.now() + clock.from_ns(20_000_000);
    let call = subject.caller()?.call_from(0, &waiting, Some(near))?;
    if call.done > 1 {
        return Err(format!("rule 7: op 1 is due after the deadline, but {} ops were run", call.done).into());
    }
    if let Some(late) = call.answers[..call.done].iter().find(|answer| answer.start >= near) {
        return Err(
            format!("rule 3: an op was started {} ticks after the deadline", late.start - near).into()
        );
    }
    Ok(subject.close()?)
}

/// Rule 7: an op starts at its due tick or later, and the kit reports how long it waited.
pub(super) fn due(context: &Context<'_>) -> Found {
    const APART_NS: u64 = 300_000;
    let mut subject = context.subject()?;
    let clock = subject.setup.clock;
    let mut acts = plain(context, 8);
    for delay_ms in DELAYS_MS {
        let first = clock.now() + clock.from_ns(delay_ms * 1_000_000);
        for (number, act) in acts.iter_mut().enumerate() {
            act.due = first + clock.from_ns(APART_NS * number as u64);
        }
        // Every call is checked for ops that start before they are due.
        let call = subject.caller()?.call_from(0, &acts, None)?;
        if call.done != acts.len() {
            return Err(format!("rule 3: `done` is {} of {}", call.done, acts.len()).into());
        }
        let inside: u64 = call.answers.iter().map(|answer| answer.end - answer.start).sum();
        let accounted = call.waited + inside;
        // On a busy machine the call may begin after the ops were due.
        let is_late = call.waited == 0 && delay_ms < DELAYS_MS[DELAYS_MS.len() - 1];
        if (call.waited == 0 && !is_late) || accounted > call.wall + clock.from_ns(1_000) {
            let (waited, wall) = (call.waited, call.wall);
            return Err(format!(
                "rule 7: {waited} ticks waiting and {inside} ticks in ops do not fit a call of {wall} ticks"
            )
            .into());
        }
        if !is_late {
            break;
        }
    }
    let tied = group(plain(context, 2), 0);
    let due = clock.now() + clock.from_ns(1_000_000);
    let tied: Vec<_> = tied.into_iter().map(|act| Act { due, ..act }).collect();
    subject.call(&tied)?;
    Ok(subject.close()?)
}

#[cfg(test)]
mod tests {
    use super::Least;

    fn of(calls: &[(u64, u64)]) -> Least {
        let mut least = Least::NONE;
        calls.iter().for_each(|(wall, outside)| least.add(*wall, *outside));
        least
    }

    #[test]
    fn a_busy_machine_makes_no_driver_a_liar() {
        // Interrupted outside the ops, or inside, or slow in both: one call of each kind is enough.
        assert!(of(&[(300, 150), (150, 20), (160, 80), (4_000, 6), (150, 75)]).is_honest());
        assert!(!of(&[(150, 0), (150, 0)]).is_honest());
    }

    #[test]
    fn a_call_that_was_interrupted_proves_nothing() {
        // Stamps that leave out a third, and an interrupt in the part that they have.
        assert!(!of(&[(150, 51), (4_000, 50), (170, 56)]).is_honest());
        assert!(!of(&[]).is_honest());
    }
}
