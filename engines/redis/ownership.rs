//! Who owns a database of a running server: this driver deletes only what it has written.

use super::address::Address;
use super::slots::{Slots, slot_of};
use super::wire::{Reply, Wire};
use kvdyno_driver::{Config, Error};

/// A key that marks the database as ours: `open`, or `N keys` when it was closed.
const MARK: &[u8] = b"kvdyno:database";

/// The choices of the option `database`.
pub(super) const WISHES: [&str; 3] = ["empty", "flush", "keep"];

fn keys(wire: &mut Wire) -> Result<i64, Error> {
    match wire.ask(&[b"DBSIZE"])? {
        Reply::Integer(keys) => Ok(keys),
        other => Err(other.unexpected()),
    }
}

/// The content of the mark when a database with this many keys is closed.
fn closed(keys: i64) -> String {
    format!("{keys} keys")
}

fn mark(wire: &mut Wire, text: &str) -> Result<(), Error> {
    wire.ask(&[b"SET", MARK, text.as_bytes()]).map(|_| ())
}

/// Makes sure that the database may be written to; returns whether it has the mark now.
pub(super) fn take(wire: &mut Wire, config: &Config<'_>, address: &Address) -> Result<bool, Error> {
    let wish = config.choice("database", &WISHES)?;
    if wish == "keep" {
        return Ok(false);
    }
    if config.create() {
        let said = |error: Error| {
            Error::new(format!(
                "{address}: cannot find out whether the database is empty ({}); `--option redis.database=keep` uses it \
                 unchanged",
                error.text
            ))
        };
        let count = keys(wire).map_err(said)?;
        let is_ours = wire.texts(&[b"GET", MARK]).is_ok_and(|text| text == [closed(count)]);
        if count != 0 && !is_ours && wish == "empty" {
            return Err(Error::new(format!(
                "{address}: the database has {count} keys that kvdyno did not write; use another one \
                 (redis://HOST:PORT/DATABASE), or allow emptying this one with --option redis.database=flush"
            )));
        }
        if count != 0 {
            wire.ask(&[b"FLUSHDB"])?;
        }
    }
    mark(wire, "open")?;
    Ok(true)
}

/// Marks the database so that the next trial recognizes it.
pub(super) fn leave(wire: &mut Wire) -> Result<(), Error> {
    let text = closed(keys(wire)?);
    mark(wire, &text)
}

/// The same for a cluster, whose masters have the keys together.
pub(super) fn take_all(
    wires: &mut [Wire],
    slots: &Slots,
    config: &Config<'_>,
    address: &Address,
) -> Result<bool, Error> {
    let wish = config.choice("database", &WISHES)?;
    if wish == "keep" {
        return Ok(false);
    }
    if config.create() {
        let count = all_keys(wires)?;
        let is_ours = wires[slots.of(slot_of(MARK))].texts(&[b"GET", MARK])? == [closed(count)];
        if count != 0 && !is_ours && wish == "empty" {
            return Err(Error::new(format!(
                "{address}: the cluster has {count} keys that kvdyno did not write; use another one, or allow emptying this \
                 one with --option redis-cluster.database=flush"
            )));
        }
        if count != 0 {
            for wire in wires.iter_mut() {
                wire.ask(&[b"FLUSHDB"])?;
            }
        }
    }
    mark(&mut wires[slots.of(slot_of(MARK))], "open")?;
    Ok(true)
}

/// Marks the cluster so that the next trial recognizes it.
pub(super) fn leave_all(wires: &mut [Wire], slots: &Slots) -> Result<(), Error> {
    let text = closed(all_keys(wires)?);
    mark(&mut wires[slots.of(slot_of(MARK))], &text)
}

fn all_keys(wires: &mut [Wire]) -> Result<i64, Error> {
    wires.iter_mut().map(keys).sum()
}

/// Whether the server has a command: a list command, or MULTI. Some servers lack them; ours do with some engines.
pub(super) fn takes(wire: &mut Wire, name: &str) -> Result<bool, Error> {
    let words: &[&[u8]] = if name == "MULTI" { &[b"MULTI"] } else { &[name.as_bytes(), b"kvdyno:list"] };
    wire.request(words);
    wire.send()?;
    let takes = !matches!(wire.reply()?, Reply::Error(_));
    if takes && name == "MULTI" {
        wire.ask(&[b"DISCARD"])?;
    }
    Ok(takes)
}
