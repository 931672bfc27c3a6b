//! Checks of the timed loop: stamps, the stop word, the deadline, due ticks; and that the times are real.

use super::Found;
use super::act::{Act, Reply, group};
use super::caller::{Call, set};
use super::draw::bytes;
use super::subject::{BATCH, Context, Setup, Subject};
use crate::engine::abi::*;
use crate::measure::Clock;
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
        let empty = subject.caller()?.call_from(0, &[], 0)?;
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
    let gets: Vec<_> = keys.iter().map(|key| Act::get(key)).collect();
    subject.run(&puts)?;
    honest_calls(&mut subject, "gets", &gets)?;
    if context.has(KV_OVERWRITE) {
        honest_calls(&mut subject, "puts", &puts)?;
    }
    delayed(context, &mut subject)?;
    Ok(subject.close()?)
}

/// The share of a call that must be inside its ops.
const HONEST_SHARE: f64 = 0.95;

/// A round of calls decides if it is honest. If not, most rounds in a second do, because a busy machine disturbs many calls in
/// a row; and there are three such seconds, because an engine may still be doing what earlier checks have left to it.
fn honest_calls(subject: &mut Subject<'_>, what: &str, acts: &[Act]) -> Result<(), String> {
    const WINDOW: Duration = Duration::from_secs(1);
    const WINDOWS: usize = 3;
    let mut best = round(subject, what, acts)?;
    if best >= HONEST_SHARE {
        return Ok(());
    }
    for _ in 0..WINDOWS {
        let begun = Instant::now();
        let (mut rounds, mut passed) = (0, 0);
        while begun.elapsed() < WINDOW {
            best = round(subject, what, acts)?;
            rounds += 1;
            passed += usize::from(best >= HONEST_SHARE);
        }
        if 2 * passed > rounds {
            return Ok(());
        }
    }
    let (count, length, percent) = (acts.len(), subject.setup.value_bytes, 100.0 * best);
    Err(format!(
        "rule 7: {count} {what} of {length} bytes: the stamps account for {percent:.0} % of the call's time"
    ))
}

/// The best share of several calls, because the machine may interrupt between the kit and the core, which is not part of the
/// ops.
fn round(subject: &mut Subject<'_>, what: &str, acts: &[Act]) -> Result<f64, String> {
    const TRIES: usize = 9;
    const FEWEST: usize = 3;
    let length = subject.setup.value_bytes;
    // Each get delivers all of the value in its own time, and no copy is faster than this.
    let least = subject.setup.clock.from_ns(length as u64 / COPIED_BYTES_PER_NS);
    let mut tries = Vec::with_capacity(TRIES);
    while tries.len() < TRIES && !(tries.len() >= FEWEST && best_of_fastest(&tries) >= HONEST_SHARE) {
        let call = subject.caller()?.call_from(0, acts, 0)?;
        tries.push((call.wall, share(&call)));
        let is_too_fast = |answer: &Reply| answer.end.saturating_sub(answer.start) < least;
        if let (true, Some(at)) = (what == "gets", call.answers.iter().position(is_too_fast)) {
            let ticks = call.answers[at].end.saturating_sub(call.answers[at].start);
            return Err(format!(
                "rule 7: get {at} of {} delivers {length} bytes in {ticks} ticks, which is impossible: its time is counted for another op",
                acts.len()
            ));
        }
    }
    Ok(best_of_fastest(&tries))
}

/// The time by which something else must happen, if it is to be seen in a call; the next one if the machine was too busy.
const DELAYS_MS: [u64; 3] = [20, 200, 2_000];

/// The largest share of the calls that took at most a quarter longer than the fastest, because an interrupt within an op would
/// hide what its stamps leave out. Each has its time and its share.
fn best_of_fastest(calls: &[(u64, f64)]) -> f64 {
    let least = calls.iter().map(|call| call.0).min().unwrap_or(0);
    let fastest = calls.iter().filter(|call| call.0 <= least + least / 4);
    fastest.map(|call| call.1).fold(0.0, f64::max)
}

/// The share of a call that is inside the ops.
fn share(call: &Call) -> f64 {
    let inside: u64 = call.answers.iter().map(|answer| answer.end.saturating_sub(answer.start)).sum();
    inside as f64 / call.wall.max(1) as f64
}

/// A single op takes the time of its complete call, except for the overhead of the call.
fn delayed(context: &Context<'_>, subject: &mut Subject<'_>) -> Result<(), String> {
    let act = Act::get(&context.key("h00"));
    let mut least = f64::MAX;
    for _ in 0..200 {
        let call = subject.caller()?.call_from(0, std::slice::from_ref(&act), 0)?;
        let outside = call.wall as f64 * (1.0 - share(&call));
        least = least.min(outside);
    }
    let outside_ns = subject.setup.clock.to_ns(least as u64);
    if outside_ns > 20_000 {
        return Err(format!(
            "rule 7: a call of one get takes at least {outside_ns} ns longer than its op reports"
        ));
    }
    Ok(())
}

/// Rule 3: once the stop word is set, no further op is started.
pub(super) fn stop_word(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let acts = plain(context, BATCH);
    let stop = subject.caller()?.stop();
    set(stop, 1);
    let call = subject.caller()?.call_from(0, &acts, 0)?;
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
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(delay_ms));
                set(stop, 1);
            });
            subject.caller()?.call_from(0, &waiting, 0)
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
    let call = subject.caller()?.call_from(0, &acts, clock.now())?;
    if call.done != 0 {
        return Err(format!("rule 3: the deadline had passed, but {} ops were run", call.done).into());
    }
    let hour = clock.from_ns(3_600_000_000_000);
    let far = clock.now() + hour;
    let call = subject.caller()?.call_from(0, &acts, far)?;
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
    let call = subject.caller()?.call_from(0, &waiting, near)?;
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
        let call = subject.caller()?.call_from(0, &acts, 0)?;
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
    use super::best_of_fastest;

    #[test]
    fn a_call_that_was_interrupted_proves_nothing() {
        // Interrupted outside the ops: the next one is enough.
        assert_eq!(best_of_fastest(&[(300, 0.5), (150, 0.96)]), 0.96);
        // Stamps that leave out a third, and an interrupt in the part that they have.
        assert_eq!(best_of_fastest(&[(150, 0.66), (4_000, 0.99), (170, 0.67)]), 0.67);
        assert_eq!(best_of_fastest(&[]), 0.0);
    }
}
