//! The oracle: a `BTreeMap` that executes the acts and decides whether an answer is correct.

use super::act::{Act, Reply, Row, group_end, shown, status_name};
use super::failure::Failure;
use kvdyno_core::engine::OpCode;
use kvdyno_core::engine::abi::*;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Keyspace and key.
type Place = (u16, Vec<u8>);

/// The expected contents of the database.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    rows: BTreeMap<Place, Vec<u8>>,
    capabilities: u64,
    /// The indexes that the engine maintains.
    indexes: Vec<kv_index>,
    /// Whether other threads write too: KV_CONFLICT is then a valid answer, meaning "no effect".
    pub may_conflict: bool,
    /// How often it was returned.
    pub conflicts: u64,
    /// The changes of a transaction so far, to be undone if it fails.
    undo: Vec<(Place, Option<Vec<u8>>)>,
}

impl Model {
    /// An empty model for an engine with these capabilities that maintains these indexes.
    pub(super) fn new(capabilities: u64, indexes: Vec<kv_index>) -> Model {
        Model { capabilities, indexes, ..Model::default() }
    }

    /// Inserts or removes a row, and its index rows with it.
    fn set(&mut self, place: Place, value: Option<Vec<u8>>) {
        let (space, key) = &place;
        for index in self.indexes.iter().filter(|index| index.keyspace == *space) {
            let place = |value: &[u8]| {
                let bytes = &value[index.from as usize..][..index.length as usize];
                (index.index_keyspace, [bytes, key].concat())
            };
            if let Some(before) = self.rows.get(&(*space, key.clone())) {
                let gone = place(before);
                self.rows.remove(&gone);
            }
            if let Some(value) = &value {
                let held = if index.clustering != 0 { value.clone() } else { Vec::new() };
                self.rows.insert(place(value), held);
            }
        }
        match value {
            Some(value) => self.rows.insert(place, value),
            None => self.rows.remove(&place),
        };
    }

    pub(super) fn get(&self, keyspace: u16, key: &[u8]) -> Option<&Vec<u8>> {
        self.rows.get(&(keyspace, key.to_vec()))
    }

    /// Keyspace, key and value of all rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u16, &[u8], &[u8])> {
        self.rows.iter().map(|((keyspace, key), value)| (*keyspace, &key[..], &value[..]))
    }

    /// Marks writes as done.
    pub(super) fn apply_all(&mut self, acts: &[Act]) {
        acts.iter().for_each(|act| self.apply(act));
    }

    /// Marks a row as present, as [`Model::rows`] returns it.
    pub(super) fn insert(&mut self, keyspace: u16, key: &[u8], value: &[u8]) {
        self.rows.insert((keyspace, key.to_vec()), value.to_vec());
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    fn can(&self, capability: u64) -> bool {
        self.capabilities & capability != 0
    }

    /// Whether the answers are correct; applies the writes among them.
    pub(super) fn judge(&mut self, acts: &[Act], answers: &[Reply]) -> Result<(), Failure> {
        let mut first = 0;
        while first < acts.len() {
            let end = group_end(acts, first);
            let (group, replies) = (&acts[first..end], &answers[first..end]);
            let outcome = if group[0].has(KV_ATOMIC) {
                self.judge_transaction(group, replies)
            } else {
                self.judge_each(group, replies)
            };
            outcome.map_err(|failure| {
                if end - first > 1 { failure.at(format!("in a group of {}", end - first)) } else { failure }
            })?;
            first = end;
        }
        Ok(())
    }

    /// Ops that are independent, or share no more than a call.
    fn judge_each(&mut self, acts: &[Act], answers: &[Reply]) -> Result<(), Failure> {
        let has_failure = answers.iter().any(|answer| !answer.is_answer());
        for (act, answer) in acts.iter().zip(answers) {
            // A group that shares a commit may be abandoned as a whole when one of its ops is short.
            let is_given_up = answer.status == KV_ABORTED && acts.len() > 1 && has_failure;
            if is_given_up && answers.iter().any(|other| other.status == KV_SHORT) {
                continue;
            }
            self.judge_one(act, answer).map_err(|failure| failure.at(act))?;
        }
        Ok(())
    }

    /// All or nothing, and the statuses tell which.
    fn judge_transaction(&mut self, acts: &[Act], answers: &[Reply]) -> Result<(), Failure> {
        let done = answers.iter().filter(|answer| answer.is_answer()).count();
        if done == acts.len() {
            return self.judge_each(acts, answers);
        }
        let mut names: Vec<_> = answers.iter().map(|answer| status_name(answer.status)).collect();
        names.dedup();
        names.extend(answers.iter().find_map(|answer| answer.said.clone()));
        if done > 0 {
            let names = names.join(", ");
            return Err(Failure::Broken(format!(
                "rule 6: a transaction is all or nothing, but its statuses are mixed: {names}"
            )));
        }
        if self.may_conflict && answers.iter().any(|answer| answer.status == KV_CONFLICT) {
            self.conflicts += 1;
            return Ok(());
        }
        self.undo.clear();
        let mut reason = Err(Failure::Broken(format!(
            "rule 6: the transaction was aborted without a reason: {}",
            names.join(", ")
        )));
        for (act, answer) in acts.iter().zip(answers) {
            if self.is_short(act) {
                let is_short = answer.status == KV_SHORT;
                reason =
                    if is_short { Ok(()) } else { Err(Failure::Broken(format!("{act}: expected KV_SHORT"))) };
                break;
            }
            self.keep(act);
            self.apply(act);
        }
        for (place, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            self.set(place, before);
        }
        reason
    }

    fn is_short(&self, act: &Act) -> bool {
        let value = self.get(act.keyspace, &act.key);
        act.kind == KV_GET && act.out_size.zip(value).is_some_and(|(room, value)| room < value.len())
    }

    fn keep(&mut self, act: &Act) {
        let place = (act.keyspace, act.key.clone());
        let before = self.rows.get(&place).cloned();
        self.undo.push((place, before));
    }

    /// The effect of an acknowledged write.
    fn apply(&mut self, act: &Act) {
        let place = (act.keyspace, act.key.clone());
        match OpCode::of(act.kind) {
            OpCode::Put if (act.has(KV_NEW) || !self.can(KV_OVERWRITE)) && self.rows.contains_key(&place) => {
            }
            OpCode::Put => self.set(place, Some(act.value.clone())),
            OpCode::Delete => self.set(place, None),
            OpCode::Merge if act.has(KV_APPEND) => {
                self.rows.entry(place).or_default().extend_from_slice(&act.value)
            }
            OpCode::Merge => {
                let counter = self.rows.entry(place).or_default();
                *counter = number(counter).wrapping_add(number(&act.value)).to_le_bytes().to_vec();
            }
            // Reads change nothing, and lists are checked without this model.
            OpCode::Get | OpCode::Scan | OpCode::Push | OpCode::Pop => {}
            OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => {}
            OpCode::Nothing | OpCode::Unknown(_) => {}
        }
    }

    fn judge_one(&mut self, act: &Act, answer: &Reply) -> Result<(), Failure> {
        if self.may_conflict && answer.status == KV_CONFLICT {
            self.conflicts += 1;
            return Ok(());
        }
        let is_there = self.get(act.keyspace, &act.key).is_some();
        match OpCode::of(act.kind) {
            OpCode::Get => return self.judge_get(act, answer),
            OpCode::Scan => return self.judge_scan(act, answer),
            OpCode::Put if is_there && act.has(KV_NEW) && self.can(KV_EVICTS) && answer.status == KV_OK => {
                self.set((act.keyspace, act.key.clone()), Some(act.value.clone()));
            }
            OpCode::Put if is_there && act.has(KV_NEW) => expect(answer, KV_EXISTS)?,
            OpCode::Put if is_there && !self.can(KV_OVERWRITE) => {
                if answer.status != KV_UNSUPPORTED {
                    expect(answer, KV_EXISTS)?;
                }
            }
            OpCode::Delete if !is_there && self.can(KV_DELETE_TELLS) => expect(answer, KV_NOT_FOUND)?,
            OpCode::Delete if self.can(KV_EVICTS) && self.can(KV_DELETE_TELLS) => {
                if answer.status != KV_NOT_FOUND {
                    expect(answer, KV_OK)?;
                }
            }
            OpCode::Put | OpCode::Delete | OpCode::Merge => expect(answer, KV_OK)?,
            // Lists are checked without this model.
            OpCode::Push | OpCode::Pop => expect(answer, KV_OK)?,
            OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => return Ok(()),
            OpCode::Nothing | OpCode::Unknown(_) => return Ok(()),
        }
        self.apply(act);
        Ok(())
    }

    fn judge_get(&self, act: &Act, answer: &Reply) -> Result<(), Failure> {
        let Some(value) = self.get(act.keyspace, &act.key) else {
            return expect(answer, KV_NOT_FOUND);
        };
        if self.can(KV_EVICTS) && answer.status == KV_NOT_FOUND {
            return Ok(());
        }
        if act.has(KV_TOUCH) {
            expect(answer, KV_OK)?;
            let reported = (answer.length, answer.detail);
            let right = (value.len() as u64, digest(value));
            return if reported == right {
                Ok(())
            } else {
                Err(Failure::Broken(format!(
                    "KV_TOUCH: length and digest are {reported:?}, expected {right:?}"
                )))
            };
        }
        if self.is_short(act) {
            expect(answer, KV_SHORT)?;
            if answer.needed < value.len() as u64 || answer.needed > 2 * value.len() as u64 + 4096 {
                let (needed, length) = (answer.needed, value.len());
                return Err(Failure::Broken(format!(
                    "rule 4: `needed` is {needed} for a value of {length} bytes"
                )));
            }
            return Ok(());
        }
        expect(answer, KV_OK)?;
        self.compare(value, &answer.bytes)
    }

    /// Whether a value is correct; `Err` describes what is wrong.
    fn compare(&self, right: &[u8], got: &[u8]) -> Result<(), Failure> {
        if right == got {
            return Ok(());
        }
        let place = right.iter().zip(got).position(|(a, b)| a != b).unwrap_or(right.len().min(got.len()));
        let mut text = format!("the value has {} bytes, expected {}", got.len(), right.len());
        if got.len() == right.len() {
            text = format!("the value's byte {place} of {} is wrong", right.len());
        }
        if let Some(((_, key), _)) = self.rows.iter().find(|(_, value)| !got.is_empty() && value[..] == *got)
        {
            text += &format!("; it is the value of {}", shown(key));
        }
        Err(Failure::Broken(text))
    }

    /// The rows that a scan visits, in its direction.
    pub(super) fn walk(&self, act: &Act) -> Vec<Row> {
        let space = act.keyspace;
        let reverse = act.has(KV_REVERSE);
        let from =
            (Bound::Included((space, Vec::new())), Bound::Excluded((space.saturating_add(1), Vec::new())));
        let is_in = |key: &[u8]| {
            let start = act.key.is_empty()
                || match key.cmp(&act.key[..]) {
                    std::cmp::Ordering::Equal => !act.has(KV_RESUME),
                    order => (order == std::cmp::Ordering::Less) == reverse,
                };
            let end = if act.has(KV_PREFIX) {
                key.starts_with(&act.value)
            } else {
                act.value.is_empty() || if reverse { key > &act.value[..] } else { key < &act.value[..] }
            };
            start && end
        };
        let value = |value: &Vec<u8>| if act.has(KV_KEYS) { Vec::new() } else { value.clone() };
        let rows = self.rows.range(from).filter(|((_, key), _)| is_in(key));
        let row = |((_, key), bytes): (&Place, &Vec<u8>)| (key.clone(), value(bytes));
        if reverse { rows.rev().map(row).collect() } else { rows.map(row).collect() }
    }

    fn judge_scan(&self, act: &Act, answer: &Reply) -> Result<(), Failure> {
        let mut right = self.walk(act);
        if answer.status != KV_SHORT {
            expect(answer, KV_OK)?;
        }
        let mut got = answer.rows()?;
        if !self.can(KV_ORDERED) {
            right.sort();
            got.sort();
        }
        if self.can(KV_EVICTS) {
            return self.judge_scan_of_cache(act, &right, &got);
        }
        let wanted = right.len().min(act.limit as usize);
        if got.len() > wanted {
            let what = if got.len() > right.len() { "existing rows" } else { "requested rows" };
            return Err(Failure::Broken(format!(
                "{} rows, more than the {wanted} {what}: {}",
                got.len(),
                first_fault(&right, &got)
            )));
        }
        if answer.status == KV_OK && got.len() < wanted {
            return Err(Failure::Broken(format!(
                "{} of {wanted} rows: {}",
                got.len(),
                first_fault(&right, &got)
            )));
        }
        if self.can(KV_ORDERED) {
            if got[..] != right[..got.len()] {
                return Err(Failure::Broken(format!("{} rows: {}", got.len(), first_fault(&right, &got))));
            }
        } else if let Some(row) = got.iter().find(|row| !right.contains(row)) {
            return Err(Failure::Broken(format!(
                "row {} is not in the database or has another value",
                shown(&row.0)
            )));
        }
        if answer.status == KV_SHORT && self.can(KV_ORDERED) {
            return check_short(act, answer, &right[got.len()..]);
        }
        Ok(())
    }

    /// Rows may be missing. Those returned must be correct, in order and no more than requested.
    fn judge_scan_of_cache(&self, act: &Act, right: &[Row], got: &[Row]) -> Result<(), Failure> {
        if got.len() > act.limit as usize {
            return Err(Failure::Broken(format!(
                "{} rows, more than the {} requested",
                got.len(),
                act.limit
            )));
        }
        let mut rest = right.iter();
        match got.iter().find(|row| !rest.any(|other| other == *row)) {
            Some(row) => Err(Failure::Broken(format!(
                "row {} is not in the database, out of order, or has another value",
                shown(&row.0)
            ))),
            None => Ok(()),
        }
    }
}

/// A scan that returns KV_SHORT must have had a reason.
fn check_short(act: &Act, answer: &Reply, rest: &[Row]) -> Result<(), Failure> {
    let Some((key, value)) = rest.first() else {
        return Err(Failure::Broken("rule 8: KV_SHORT, but no row is missing".into()));
    };
    let size = 8 + key.len() + value.len();
    let fits = act.out_size.is_some_and(|room| size <= room);
    if answer.row_count == 0 && fits {
        return Err(Failure::Broken(format!(
            "rule 8: KV_SHORT without a row, but the first row's {size} bytes fit"
        )));
    }
    if answer.needed < size as u64 {
        return Err(Failure::Broken(format!(
            "rule 8: `needed` is {}, but the next row has {size} bytes",
            answer.needed
        )));
    }
    Ok(())
}

/// Describes where two lists of rows differ first.
fn first_fault(right: &[Row], got: &[Row]) -> String {
    let Some(at) = right.iter().zip(got).position(|(a, b)| a != b) else {
        return match (right.get(got.len()), got.get(right.len())) {
            (Some((key, _)), _) => format!("row {} ({}) is missing", got.len(), shown(key)),
            (_, Some((key, _))) => format!("row {} ({}) is not expected", right.len(), shown(key)),
            _ => "the rows are correct".into(),
        };
    };
    let (right_row, got_row) = (&right[at], &got[at]);
    if right_row.0 == got_row.0 {
        return format!("row {at} ({}) has a wrong value", shown(&got_row.0));
    }
    let twin = if at > 0 && got[at - 1].0 == got_row.0 { ", a second time" } else { "" };
    format!("row {at} is {}{twin}, expected {}", shown(&got_row.0), shown(&right_row.0))
}

/// The status that an answer must have.
pub(super) fn expect(answer: &Reply, status: u32) -> Result<(), Failure> {
    if answer.status == status {
        return Ok(());
    }
    let said = answer.said.as_ref().map_or(String::new(), |text| format!(" ({text})"));
    Err(Failure::Broken(format!(
        "status is {}{said}, expected {}",
        status_name(answer.status),
        status_name(status)
    )))
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

/// KV_TOUCH's digest, from its definition in driver.h; not the kit's implementation, because that is what is checked.
fn digest(value: &[u8]) -> u64 {
    value.chunks(8).fold(0_u64, |sum, word| sum.wrapping_add(number(word)))
}
