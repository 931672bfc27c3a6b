//! The model check: random ops against a `BTreeMap`.

use super::act::Act;
use super::draw::Draw;
use super::failure::{CallError, Failure};
use super::shrink::{self, Step};
use super::subject::{BATCH, Budget, Context, Setup, Subject};
use super::{Found, Halt, skip};
use crate::machine::MachineError;
use kvdyno_core::engine::Session;
use kvdyno_core::engine::abi::*;

/// Number of keys that ops are drawn over: few, so that rows are overwritten, deleted and read again.
const KEYS: usize = 300;

fn setup(context: &Context<'_>, level: u32) -> Result<Setup, MachineError> {
    let keyspaces = if context.has(KV_KEYSPACES) { 2 } else { 1 };
    let value_bytes = context.facts.value_bytes;
    Ok(Setup { level, keyspaces, value_bytes, out_bytes: value_bytes + (32 << 10), ..context.setup()? })
}

fn draw(context: &Context<'_>, subject: &Subject<'_>, stream: u64) -> Result<Draw, Failure> {
    let capabilities = subject.database()?.effective().capabilities;
    let spaces = subject.setup.keyspaces as u16;
    Ok(Draw::new(context.random(stream), &context.facts, capabilities, KEYS, &[], spaces))
}

/// Draws and runs `ops` ops; returns how many were run before time was up.
fn drive(
    budget: &Budget,
    subject: &mut Subject<'_>,
    draw: &mut Draw,
    steps: &mut Vec<Step>,
    ops: u64,
) -> Result<u64, Failure> {
    let mut count = 0;
    while count < ops && !budget.is_spent() {
        let acts = draw.batch(BATCH, &subject.model);
        count += acts.len() as u64;
        steps.push(Step::Call(acts));
        steps[steps.len() - 1].run(subject)?;
    }
    Ok(count)
}

/// What a part of the model check works on.
struct Part<'p, 'a> {
    budget: Budget,
    subject: &'p mut Subject<'a>,
    draw: &'p mut Draw,
    steps: &'p mut Vec<Step>,
    ops: u64,
}

impl Part<'_, '_> {
    fn session(&mut self) -> &mut Session {
        self.subject.caller().expect("a session is open between two parts").session()
    }

    fn run(&mut self) -> Result<u64, Failure> {
        drive(&self.budget, self.subject, self.draw, self.steps, self.ops)
    }

    /// The same ops in the driver's own loop (rule 12), if it has one.
    fn run_driven(&mut self) -> Result<u64, Failure> {
        // SAFETY: nothing of a thread's own is kept between calls, and the session stays where it is.
        #[allow(unsafe_code, reason = "the compiler cannot check what a loop keeps between turns")]
        let driven = unsafe { Session::drive(self, Part::session, Part::run) };
        let (found, outcome) = driven.map_err(CallError::of("drive"))?;
        let count = found?;
        outcome.map_err(CallError::of("drive"))?;
        Ok(count)
    }
}

/// A failure with the seed and the smallest sequence of ops found that reproduces it.
fn reproduced(context: &Context<'_>, level: u32, steps: Vec<Step>, failure: Failure) -> Halt {
    let ops: usize = steps.iter().map(Step::ops).sum();
    let failure = failure.at(format!("after {ops} ops with seed {}", context.effort.seed));
    let open = || Ok(context.open(setup(context, level)?)?);
    Halt::Failed(failure.with(match shrink::shortest(&open, steps) {
        Some(found) => format!("\n      {found}"),
        None => " (repeating the ops did not reproduce the failure)".into(),
    }))
}

/// Every op that the engine supports, in calls of 1 to 64 ops; then a comparison of all rows. Half of the calls are turns
/// of the driver's loop, if it has one.
pub(super) fn random(context: &Context<'_>) -> Found {
    let mut subject = context.open(setup(context, KV_NONE)?)?;
    let mut draw = draw(context, &subject, 20)?;
    let all: Vec<_> = draw.keys().cloned().collect();
    let mut count = 0;
    let parts = 4;
    let mut steps = Vec::new();
    for number in 0..parts {
        let mut part = || -> Result<(), Failure> {
            let ops = context.effort.ops / parts;
            let mut part = Part {
                budget: context.budget(),
                subject: &mut subject,
                draw: &mut draw,
                steps: &mut steps,
                ops,
            };
            count += if number % 2 == 0 { part.run_driven()? } else { part.run()? };
            subject.renew_session()?;
            steps.push(Step::Compare(all.clone()));
            steps[steps.len() - 1].run(&mut subject)
        };
        if let Err(failure) = part() {
            drop(subject.close());
            return Err(reproduced(context, KV_NONE, steps, failure));
        }
    }
    if count < context.effort.ops / parts * parts {
        context
            .note(format!("model: the time limit was reached after {count} of {} ops", context.effort.ops));
    }
    Ok(subject.close()?)
}

/// The same at a level that keeps data, with repeated close and reopen.
pub(super) fn with_reopen(context: &Context<'_>) -> Found {
    let (mut subject, level) = kept_subject(context)?;
    let mut draw = draw(context, &subject, 21)?;
    let all: Vec<_> = draw.keys().cloned().collect();
    let rounds = 6;
    let mut steps = Vec::new();
    for round in 0..rounds {
        let mut part = || -> Result<(), Failure> {
            drive(&context.budget(), &mut subject, &mut draw, &mut steps, context.effort.ops / 40)?;
            // The last writes are the ones most easily lost.
            let last = vec![Act::put(&all[1], &[round as u8; 100]), Act::put(&all[2], &[round as u8; 10])];
            for step in [Step::Call(last), Step::Reopen, Step::Compare(all.clone())] {
                steps.push(step);
                steps[steps.len() - 1]
                    .run(&mut subject)
                    .map_err(|failure| failure.at(format!("after close and reopen number {round}")))?;
            }
            Ok(())
        };
        if let Err(failure) = part() {
            drop(subject.close());
            return Err(reproduced(context, level, steps, failure));
        }
    }
    Ok(subject.close()?)
}

/// A database that survives close and reopen, at the weakest level that has one, and that level.
fn kept_subject<'a>(context: &Context<'a>) -> Result<(Subject<'a>, u32), Halt> {
    for level in [KV_NONE, KV_PROCESS, KV_POWER] {
        let Ok(mut subject) = context.open(setup(context, level)?) else { continue };
        if subject.is_kept() {
            return Ok((subject, level));
        }
        subject.close()?;
    }
    skip("the engine is in memory at every level")
}
