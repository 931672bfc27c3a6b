//! Rule 11: a driver refuses what it does not declare with KV_UNSUPPORTED, without any effect.

use super::Found;
use super::act::{Act, group, status_name};
use super::failure::Failure;
use super::subject::{Context, Subject};
use kvdyno_core::engine::abi::*;

/// An ability and the acts that need it.
struct Trial {
    capability: u64,
    what: &'static str,
    acts: Vec<Act>,
}

/// All except KV_COLLECTIONS: a driver without it treats a split key as one key, which is correct.
fn trials(context: &Context<'_>) -> Vec<Trial> {
    let (key, fresh) = (context.key("row"), context.key("fresh"));
    let trial = |capability, what, acts| Trial { capability, what, acts };
    let one = |capability, what, act| trial(capability, what, vec![act]);
    let mut trials = vec![
        one(KV_CAN_NEW, "put with KV_NEW", Act::put(&fresh, b"v").with(KV_NEW)),
        one(KV_CAN_DELETE, "delete", Act::delete(&key)),
        one(KV_MERGE_ADD, "merge (add)", Act::add(&fresh, 1)),
        one(KV_MERGE_APPEND, "merge with KV_APPEND", Act::append(&fresh, b"v")),
        one(KV_KEYSPACES, "put in keyspace 1", Act::put(&fresh, b"v").within(1)),
        one(KV_KEYSPACES, "get in keyspace 1", Act::get(&key).within(1)),
        one(KV_TIME_TO_LIVE, "put with a time to live", Act::put(&fresh, b"v").rows(1000)),
        one(KV_CAN_TOUCH, "get with KV_TOUCH", Act::get(&key).with(KV_TOUCH)),
        one(KV_CAN_LONG_TRANSACTION, "begin", Act::control(KV_BEGIN)),
        one(KV_CAN_LONG_TRANSACTION, "commit", Act::control(KV_COMMIT)),
        one(KV_CAN_LONG_TRANSACTION, "abort", Act::control(KV_ABORT)),
        one(KV_LISTS, "push", Act::push(&fresh, b"v")),
        one(KV_LISTS, "pop", Act::pop(&fresh)),
        one(0, "an op of kind 77", Act { kind: 77, ..Act::get(&key) }),
    ];
    let writes = group(vec![Act::put(&fresh, b"v"), Act::put(&key, b"v")], KV_ATOMIC);
    trials.push(trial(KV_TRANSACTION, "a transaction", writes));
    if context.has(KV_TRANSACTION) {
        let reads = group(vec![Act::put(&fresh, b"v"), Act::get(&key)], KV_ATOMIC);
        trials.push(trial(KV_TRANSACTION_READS, "a get in a transaction", reads));
    }
    let prefix = Act::scan(&[]).to(&key[..1]).with(KV_PREFIX);
    trials.push(one(KV_CAN_PREFIX, "scan with KV_PREFIX", prefix));
    if context.has(KV_ORDERED) {
        trials.push(one(KV_CAN_REVERSE, "scan with KV_REVERSE", Act::scan(&[]).with(KV_REVERSE)));
        trials.push(one(KV_CAN_HOLD, "scan with KV_HOLD", Act::scan(&[]).with(KV_HOLD)));
    } else {
        trials.push(one(KV_ORDERED, "scan", Act::scan(&[])));
    }
    trials
}

/// Tries everything that is not declared.
pub(super) fn undeclared(context: &Context<'_>) -> Found {
    let mut faults = Vec::new();
    for trial in trials(context) {
        if trial.capability != 0 && context.has(trial.capability) {
            continue;
        }
        // Each gets a separate database, because a damaged one would affect the next.
        let mut subject = context.subject()?;
        if let Err(failure) = refuses(context, &mut subject, &trial) {
            faults.push(failure.to_string());
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("rule 11: {}", faults.join("; ")).into()) }
}

fn refuses(context: &Context<'_>, subject: &mut Subject<'_>, trial: &Trial) -> Result<(), Failure> {
    let Trial { what, acts, .. } = trial;
    subject.run(&[Act::put(&context.key("row"), b"stays")])?;
    let answers = subject.call(acts).map_err(|failure| failure.at(what))?;
    for answer in &answers {
        if answer.status != KV_UNSUPPORTED {
            let status = status_name(answer.status);
            return Err(Failure::Broken(format!(
                "{what} is not declared but returns {status} instead of KV_UNSUPPORTED"
            )));
        }
    }
    let fresh = [context.key("fresh")];
    subject.compare(&fresh).map_err(|failure| failure.at(format!("{what} was refused but had an effect")))?;
    Ok(subject.close()?)
}
