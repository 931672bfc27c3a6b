//! Checks of durability levels, of close and reopen, and of independent database folders.

use super::act::{Act, group};
use super::draw::bytes;
use super::failure::{CallError, Failure};
use super::subject::{Context, Setup, Subject};
use super::{Found, LevelRow, skip};
use crate::machine::MachineError;
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Work, level_name};
use std::fs;

/// Rule 10: the effective level is the weakest declared one at or above the requested level, and the written data is
/// present after close and reopen.
pub(super) fn levels(context: &Context<'_>) -> Found {
    let declared = context.engine.levels();
    if declared == 0 || declared >> KV_DEFAULT != 0 {
        return Err("rule 10: the table declares no level, or an unknown one".into());
    }
    for asked in [KV_NONE, KV_PROCESS, KV_POWER, KV_DEFAULT] {
        let right = (asked..=KV_POWER).find(|level| declared & 1 << level != 0);
        let name = level_name(asked);
        let mut row = LevelRow { asked: name.into(), effective: None, refusal: None, is_kept: None };
        let outcome = one_level(context, asked, right, &mut row);
        context.levels.borrow_mut().push(row);
        outcome.map_err(|failure| failure.at(format!("level {name}")))?;
    }
    Ok(())
}

fn one_level(
    context: &Context<'_>,
    asked: u32,
    right: Option<u32>,
    row: &mut LevelRow,
) -> Result<(), Failure> {
    let mut subject = match context.open(Setup { level: asked, ..context.setup()? }) {
        Ok(subject) => subject,
        Err(error) => {
            row.refusal = Some(error.to_string());
            if right.is_none() && asked != KV_DEFAULT {
                return Ok(());
            }
            return Err(Failure::from(error).at("refused, although the table declares a sufficient level"));
        }
    };
    let effective = subject.database()?.effective().level;
    row.effective = Some(level_name(effective).to_string());
    if asked != KV_DEFAULT && Some(effective) != right {
        let right = right.map_or("refusal", level_name);
        return Err(Failure::Broken(format!(
            "the effective level is `{}`, expected {right}",
            level_name(effective)
        )));
    }
    if !subject.is_kept() {
        if effective > KV_NONE {
            return Err(Failure::Broken(format!(
                "the engine is in memory but claims the level `{}`",
                level_name(effective)
            )));
        }
        write_some(context, &mut subject, 0)?;
        return Ok(subject.close()?);
    }
    let kept = is_kept(context, &mut subject);
    row.is_kept = Some(kept.is_ok());
    kept?;
    Ok(subject.close()?)
}

fn is_kept(context: &Context<'_>, subject: &mut Subject<'_>) -> Result<(), Failure> {
    for round in 0..3 {
        write_some(context, subject, round)?;
        subject.reopen()?;
        subject
            .compare(&some_keys(context, round))
            .map_err(|failure| failure.at("after close and reopen"))?;
    }
    Ok(())
}

fn some_keys(context: &Context<'_>, round: u64) -> Vec<Vec<u8>> {
    (0..40).map(|number| context.key(&format!("r{round}k{number:02}"))).collect()
}

/// A group, single puts, deletes: few, because each may be a write to the disk.
fn write_some(context: &Context<'_>, subject: &mut Subject<'_>, round: u64) -> Result<(), Failure> {
    let keys = some_keys(context, round);
    let mut random = context.random(40 + round);
    let puts: Vec<_> = keys.iter().map(|key| Act::put(key, &bytes(&mut random, 100))).collect();
    subject.run(&group(puts[..32].to_vec(), 0))?;
    subject.run(&puts[32..])?;
    if context.has(KV_CAN_DELETE) {
        subject.run(&[Act::delete(&keys[3]), Act::delete(&keys[39])])?;
    }
    if context.has(KV_TRANSACTION) {
        let puts = [context.key(&format!("r{round}a")), context.key(&format!("r{round}b"))];
        subject.run(&group(puts.iter().map(|key| Act::put(key, b"together")).collect(), KV_ATOMIC))?;
    }
    // The very last write is the one most easily lost.
    subject.run(&[Act::put(&context.key(&format!("r{round}z")), b"the last one")])?;
    Ok(())
}

/// The strongest level that keeps data after close and reopen, ready to be opened.
fn kept_setup(context: &Context<'_>) -> Result<Setup, super::Halt> {
    for level in [KV_NONE, KV_PROCESS, KV_POWER] {
        let Ok(mut subject) = context.open(Setup { level, ..context.setup()? }) else { continue };
        let is_kept = subject.is_kept();
        subject.close()?;
        if is_kept {
            return Ok(Setup { level, ..context.setup()? });
        }
    }
    skip("the engine is in memory at every level")
}

/// A database that was created and closed at once exists, is empty, and accepts rows.
pub(super) fn creation(context: &Context<'_>) -> Found {
    let setup = kept_setup(context)?;
    let mut subject = context.open(setup.clone())?;
    let files = |setup: &Setup| fs::read_dir(&setup.folder).map_or(0, |entries| entries.count());
    let key = context.key("row");
    subject.reopen().map_err(|failure| failure.at("created, closed and reopened"))?;
    if files(&setup) == 0 {
        return Err("created, closed and reopened: its folder contains no file".into());
    }
    subject.compare(std::slice::from_ref(&key))?;
    subject.run(&[Act::put(&key, b"first")])?;
    subject.reopen()?;
    subject.compare(&[])?;
    subject.reopen()?;
    subject.compare(&[])?;
    subject.close()?;
    let empty = Setup { create: false, ..kept_setup(context)? };
    match context.open(empty) {
        Ok(mut subject) => {
            context.note("without KV_CREATE open creates a database where none exists".into());
            subject.close()?;
        }
        Err(_) => context.note("without KV_CREATE open refuses a folder without a database".into()),
    }
    Ok(())
}

/// A new database contains nothing of another one: next to it, after it, or in its place.
pub(super) fn campaigns(context: &Context<'_>) -> Found {
    let keys: Vec<_> = (0..30).map(|number| context.key(&format!("k{number:02}"))).collect();
    let puts = |word: &[u8]| keys.iter().map(|key| Act::put(key, word)).collect::<Vec<_>>();
    let mut one = context.subject()?;
    one.run(&puts(b"one"))?;
    let mut two = context.subject()?;
    two.compare(&keys).map_err(|failure| failure.at("a second database, next to the first"))?;
    two.run(&puts(b"two")[..10])?;
    one.compare(&keys).map_err(|failure| failure.at("the first database, after writes to the second"))?;
    one.close()?;
    two.compare(&keys).map_err(|failure| failure.at("the second database, after the first is closed"))?;
    two.close()?;
    let setup = match kept_setup(context) {
        Ok(setup) => setup,
        Err(_) => Setup { ..context.setup()? },
    };
    let mut old = context.open(setup.clone())?;
    old.run(&puts(b"old"))?;
    old.close()?;
    fs::remove_dir_all(&setup.folder)
        .and_then(|()| fs::create_dir(&setup.folder))
        .map_err(MachineError::file("empty", &setup.folder))?;
    let mut new = context.open(setup)?;
    new.compare(&keys).map_err(|failure| failure.at("a new database in a folder that was emptied"))?;
    Ok(new.close()?)
}

/// Flush, compact and settle change no row, whether the engine supports them or not.
pub(super) fn maintain(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    for work in [Work::Flush, Work::Compact, Work::Settle, Work::Flush] {
        write_some(context, &mut subject, 9)?;
        let what = format!("{work:?}");
        subject.database()?.maintain(work).map_err(CallError::of(what.clone()))?;
        subject.compare(&some_keys(context, 9)).map_err(|failure| failure.at(what))?;
    }
    Ok(subject.close()?)
}
