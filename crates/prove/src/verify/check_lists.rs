//! Lists: what is pushed at the right end is popped at the left end, once, in order.

use super::act::{Act, Reply, group};
use super::failure::Failure;
use super::model::expect;
use super::subject::{Context, Subject};
use super::{Found, skip};
use kvdyno_core::engine::abi::*;
use std::collections::VecDeque;

/// Names of lists; no list has an empty name.
const NAMES: [&str; 3] = ["a", "ab", "list"];
/// Pushes and pops of the random part.
const OPS: u64 = 3000;

/// The expected lists.
#[derive(Default)]
struct Lists([VecDeque<Vec<u8>>; NAMES.len()]);

impl Lists {
    /// Sends pushes and pops of a list, and checks the answers.
    fn run(&mut self, subject: &mut Subject<'_>, list: usize, acts: &[Act]) -> Result<(), Failure> {
        let answers = subject.call(acts)?;
        for (act, answer) in acts.iter().zip(&answers) {
            self.judge(list, act, answer).map_err(|failure| failure.at(act))?;
        }
        Ok(())
    }

    fn judge(&mut self, list: usize, act: &Act, answer: &Reply) -> Result<(), Failure> {
        let held = &mut self.0[list];
        if act.kind == KV_PUSH {
            held.push_back(act.value.clone());
            return expect(answer, KV_OK);
        }
        let Some(value) = held.front() else {
            return expect(answer, KV_NOT_FOUND).map_err(|failure| failure.at("for an empty list"));
        };
        if act.out_size.is_some_and(|room| room < value.len()) {
            return expect(answer, KV_SHORT);
        }
        expect(answer, KV_OK)?;
        if answer.bytes != *value {
            let place = held.iter().position(|value| *value == answer.bytes);
            let what = place
                .map_or("it is not in the list".into(), |place| format!("it is {place} places after it"));
            return Err(Failure::Broken(format!("it returned a value other than the list's first: {what}")));
        }
        held.pop_front();
        Ok(())
    }
}

fn key(context: &Context<'_>, list: usize) -> Vec<u8> {
    context.key(NAMES[list])
}

/// Order, empty lists, too small buffers, groups, and random pushes and pops.
pub(super) fn in_order(context: &Context<'_>) -> Found {
    if !context.has(KV_LISTS) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let mut lists = Lists::default();
    let keys: Vec<Vec<u8>> = (0..NAMES.len()).map(|list| key(context, list)).collect();
    lists.run(&mut subject, 0, &[Act::pop(&keys[0]), Act::push(&keys[0], b"only")])?;
    lists.run(&mut subject, 1, &[Act::pop(&keys[1])])?;
    lists.run(&mut subject, 0, &[Act::pop(&keys[0]), Act::pop(&keys[0])])?;
    let large = vec![7; 5000];
    lists.run(&mut subject, 0, &[Act::push(&keys[0], &large), Act::push(&keys[0], b"behind")])?;
    lists.run(&mut subject, 0, &[Act::pop(&keys[0]).room(4999), Act::pop(&keys[0]), Act::pop(&keys[0])])?;
    let pushes = (0..20u8).map(|number| Act::push(&keys[2], &[number; 9])).collect();
    lists.run(&mut subject, 2, &group(pushes, 0))?;
    lists.run(&mut subject, 2, &group(vec![Act::pop(&keys[2]), Act::pop(&keys[2])], 0))?;
    let mut random = context.random(0x6c69);
    let budget = context.budget();
    for number in 0..OPS {
        let list = random.below(NAMES.len() as u64) as usize;
        let least = usize::from(context.has(KV_NO_EMPTY_VALUES));
        let value: Vec<u8> = number.to_le_bytes().repeat(least + random.below(20) as usize);
        let act = if random.below(2) == 0 { Act::pop(&keys[list]) } else { Act::push(&keys[list], &value) };
        lists.run(&mut subject, list, &[act])?;
        if budget.is_spent() {
            break;
        }
    }
    Ok(subject.close()?)
}

/// After close and reopen a list's values are present, and popped ones are not.
pub(super) fn with_reopen(context: &Context<'_>) -> Found {
    if !context.has(KV_LISTS) {
        return skip("not declared");
    }
    let mut setup = context.setup()?;
    // Without a log or a file, an engine in memory keeps nothing at its weakest level.
    setup.level = if context.engine.levels() & (1 << KV_PROCESS) != 0 { KV_PROCESS } else { KV_NONE };
    let mut subject = context.open(setup)?;
    if !subject.is_kept() {
        return skip("the engine is in memory");
    }
    let (mut lists, key) = (Lists::default(), key(context, 0));
    let pushes: Vec<Act> = (0..50u8).map(|number| Act::push(&key, &[number; 30])).collect();
    lists.run(&mut subject, 0, &pushes)?;
    let pops = vec![Act::pop(&key); 17];
    lists.run(&mut subject, 0, &pops)?;
    subject.reopen()?;
    lists.run(&mut subject, 0, &pops)?;
    lists.run(&mut subject, 0, &[Act::push(&key, b"last")])?;
    lists.run(&mut subject, 0, &vec![Act::pop(&key); 18])?;
    Ok(subject.close()?)
}
