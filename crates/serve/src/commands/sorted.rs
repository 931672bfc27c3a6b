//! Sorted sets: members by score. Two rows per member: `0 member` has the score, `1 score member` defines the order.

use super::access::{Collection, SYNTAX, fits, rows_of};
use super::numbers::{Bound, amount, bound, float, integer};
use crate::command::{Call, FOREIGN, Refusal};
use crate::record::{Type, behind, score_bytes, score_of};
use crate::reply::score_text;
use crate::store::Stretch;

const BY_MEMBER: &[u8] = &[0];
const BY_SCORE: &[u8] = &[1];

/// A member with its score.
type Scored = (f64, Vec<u8>);

fn score(call: &mut Call, set: &Collection, member: &[u8]) -> Result<Option<f64>, Refusal> {
    let element = call.element(set, &[BY_MEMBER, member]);
    match call.store.get(&element)? {
        None => Ok(None),
        Some(bytes) => score_of(bytes).map(Some).ok_or(FOREIGN),
    }
}

fn put(
    call: &mut Call,
    set: &mut Collection,
    member: &[u8],
    old: Option<f64>,
    new: f64,
) -> Result<(), Refusal> {
    if let Some(old) = old {
        let order = call.element(set, &[BY_SCORE, &score_bytes(old), member]);
        call.store.delete(&order)?;
    } else {
        set.head.len += 1;
    }
    let (element, bytes) = (call.element(set, &[BY_MEMBER, member]), score_bytes(new));
    let order = call.element(set, &[BY_SCORE, &bytes, member]);
    call.store.put(&element, bytes.to_vec())?;
    Ok(call.store.put(&order, vec![1])?)
}

fn take_out(call: &mut Call, set: &mut Collection, member: &[u8], score: f64) -> Result<(), Refusal> {
    let element = call.element(set, &[BY_MEMBER, member]);
    let order = call.element(set, &[BY_SCORE, &score_bytes(score), member]);
    set.head.len -= 1;
    call.store.delete(&element)?;
    Ok(call.store.delete(&order)?)
}

/// The options NX, XX, GT, LT, CH and INCR of ZADD; and where the scores begin.
#[derive(Default)]
struct Conditions {
    only_new: bool,
    only_there: bool,
    only_greater: bool,
    only_less: bool,
    counts_changed: bool,
    adds: bool,
    scores_at: usize,
}

impl Conditions {
    fn parse(call: &Call) -> Result<Conditions, Refusal> {
        let mut found = Conditions { scores_at: 2, ..Conditions::default() };
        for word in call.arguments.from(2).iter() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => found.only_new = true,
                b"XX" => found.only_there = true,
                b"GT" => found.only_greater = true,
                b"LT" => found.only_less = true,
                b"CH" => found.counts_changed = true,
                b"INCR" => found.adds = true,
                _ => break,
            }
            found.scores_at += 1;
        }
        let rest = call.arguments.len() - found.scores_at.min(call.arguments.len());
        if rest == 0 || !rest.is_multiple_of(2) {
            return Err(SYNTAX.into());
        }
        if found.only_new && found.only_there {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        let bounds = [found.only_new, found.only_greater, found.only_less];
        if bounds.iter().filter(|&&bound| bound).count() > 1 {
            return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
        }
        if found.adds && rest > 2 {
            return Err("ERR INCR option supports a single increment-element pair".into());
        }
        Ok(found)
    }

    /// The new score of a member; `None` if it is unchanged.
    fn new_score(&self, old: Option<f64>, given: f64) -> Result<Option<f64>, Refusal> {
        let is_allowed = if old.is_some() { !self.only_new } else { !self.only_there };
        if !is_allowed {
            return Ok(None);
        }
        let new = if self.adds { old.unwrap_or(0.0) + given } else { given };
        if new.is_nan() {
            return Err("ERR resulting score is not a number (NaN)".into());
        }
        let is_wanted =
            old.is_none_or(|old| (!self.only_greater || new > old) && (!self.only_less || new < old));
        Ok(is_wanted.then_some(new))
    }
}

/// What ZADD has done.
#[derive(Default)]
struct Added {
    new: i64,
    changed: i64,
    /// The last score that was set; `None` if the conditions did not allow it.
    last: Option<f64>,
}

fn add(call: &mut Call, conditions: &Conditions) -> Result<Added, Refusal> {
    let words = call.arguments.from(conditions.scores_at);
    let places = (0..words.len()).step_by(2);
    // Everything is checked before anything is changed.
    let given: Vec<(f64, &[u8])> =
        places.map(|at| Ok((float(words.get(at))?, words.get(at + 1)))).collect::<Result<_, Refusal>>()?;
    call.check_elements(words.from(1), Type::Sorted, 2)?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut set = call.collection_to_fill(&row, Type::Sorted)?;
    let mut added = Added::default();
    for (given, member) in given {
        let old = score(call, &set, member)?;
        added.last = conditions.new_score(old, given)?;
        let Some(new) = added.last.filter(|new| old != Some(*new)) else { continue };
        added.new += i64::from(old.is_none());
        added.changed += 1;
        put(call, &mut set, member, old, new)?;
    }
    if added.changed > 0 {
        call.put_head(&row, &set)?;
    }
    Ok(added)
}

pub(super) fn zadd(call: &mut Call) -> Result<(), Refusal> {
    let conditions = Conditions::parse(call)?;
    let added = add(call, &conditions)?;
    match conditions.adds {
        true => call.reply().double_or_nil(added.last),
        false => call.reply().integer(if conditions.counts_changed { added.changed } else { added.new }),
    }
    Ok(())
}

pub(super) fn zincrby(call: &mut Call) -> Result<(), Refusal> {
    let added = add(call, &Conditions { adds: true, scores_at: 2, ..Conditions::default() })?;
    call.reply().double_or_nil(added.last);
    Ok(())
}

pub(super) fn zrem(call: &mut Call) -> Result<(), Refusal> {
    call.check_elements(call.arguments.from(2), Type::Sorted, 1)?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut gone = 0;
    if let Some(mut set) = call.collection(&row, Type::Sorted)? {
        for member in call.arguments.from(2).iter() {
            if let Some(score) = score(call, &set, member)? {
                take_out(call, &mut set, member, score)?;
                gone += 1;
            }
        }
        if gone > 0 {
            call.put_head(&row, &set)?;
        }
    }
    call.reply().integer(gone);
    Ok(())
}

/// The scores of the members that the request names; `None` for those that are not in the set.
fn named(call: &mut Call) -> Result<Vec<Option<f64>>, Refusal> {
    let row = call.row(call.arguments.get(1));
    let set = call.collection(&row, Type::Sorted)?;
    let mut members = call.arguments.from(2).iter();
    members.try_fold(Vec::new(), |mut found, member| {
        found.push(set.as_ref().map_or(Ok(None), |set| score(call, set, member))?);
        Ok(found)
    })
}

pub(super) fn zscore(call: &mut Call) -> Result<(), Refusal> {
    let found = named(call)?;
    call.reply().double_or_nil(found[0]);
    Ok(())
}

pub(super) fn zmscore(call: &mut Call) -> Result<(), Refusal> {
    let found = named(call)?;
    call.reply().array(found.len());
    found.iter().for_each(|score| call.reply().double_or_nil(*score));
    Ok(())
}

pub(super) fn zcard(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::Sorted)
}

/// Members between two scores, in an order.
#[derive(Clone, Copy)]
struct Between {
    low: Bound,
    high: Bound,
    /// By descending score.
    reverse: bool,
    /// The expected number of members; 0: all of them.
    rows: u64,
}

impl Between {
    /// Members with any score.
    fn all(reverse: bool, rows: u64) -> Between {
        let bound = |score| Bound { score, is_excluded: false };
        Between { low: bound(f64::NEG_INFINITY), high: bound(f64::INFINITY), reverse, rows }
    }
}

/// Passes the members between two scores to `take` by ascending or descending score, until it needs no more.
fn in_order(
    call: &mut Call,
    set: &Collection,
    Between { low, high, reverse, rows }: Between,
    take: &mut dyn FnMut(f64, &[u8]) -> bool,
) -> Result<(), Refusal> {
    if low.score > high.score {
        return Ok(());
    }
    let start = call.element(set, &[BY_SCORE]).len();
    let from = call.element(set, &[BY_SCORE, &score_bytes(low.score)]);
    let to = behind(&call.element(set, &[BY_SCORE, &score_bytes(high.score)]));
    let stretch = Stretch { from, to, reverse, rows: rows_of(rows) };
    let mut is_foreign = false;
    call.store.rows(&stretch, &mut |row, _| match row[start..].split_at_checked(8) {
        Some((bytes, member)) => {
            let score = score_of(bytes).unwrap_or_default();
            let is_out = (low.is_excluded && score == low.score) || (high.is_excluded && score == high.score);
            is_out || take(score, member)
        }
        None => {
            is_foreign = true;
            false
        }
    })?;
    if is_foreign { Err(FOREIGN) } else { Ok(()) }
}

pub(super) fn zcount(call: &mut Call) -> Result<(), Refusal> {
    let (low, high) = (bound(call.arguments.get(2))?, bound(call.arguments.get(3))?);
    let row = call.row(call.arguments.get(1));
    let mut count = 0;
    if let Some(set) = call.collection(&row, Type::Sorted)? {
        in_order(call, &set, Between { low, high, reverse: false, rows: 0 }, &mut |_, _| {
            count += 1;
            true
        })?;
    }
    call.reply().integer(count);
    Ok(())
}

/// Replies with the number of members before one, found by reading them.
fn rank(call: &mut Call, reverse: bool) -> Result<(), Refusal> {
    let (row, member) = (call.row(call.arguments.get(1)), call.arguments.get(2));
    let mut place = None;
    if let Some(set) = call.collection(&row, Type::Sorted)?
        && let Some(score) = score(call, &set, member)?
    {
        let from = call.element(&set, &[BY_SCORE]);
        let to = call.element(&set, &[BY_SCORE, &score_bytes(score), member]);
        let mut before = 0;
        call.store.rows(&Stretch { from, to, reverse: false, rows: 0 }, &mut |_, _| {
            before += 1;
            true
        })?;
        place = Some(if reverse { set.head.len as i64 - 1 - before } else { before });
    }
    match place {
        Some(place) => call.reply().integer(place),
        None => call.reply().nil(),
    }
    Ok(())
}

pub(super) fn zrank(call: &mut Call) -> Result<(), Refusal> {
    rank(call, false)
}

pub(super) fn zrevrank(call: &mut Call) -> Result<(), Refusal> {
    rank(call, true)
}

pub(super) fn zscan(call: &mut Call) -> Result<(), Refusal> {
    call.scan_elements(Type::Sorted, BY_MEMBER, |reply, member, score| {
        reply.bulk(member);
        reply.bulk(score_text(score_of(score).ok_or(FOREIGN)?).as_bytes());
        Ok(2)
    })
}

/// The members between two places, both included; negative ones count from the end.
fn between(call: &mut Call, first: i64, last: i64, reverse: bool) -> Result<Vec<Scored>, Refusal> {
    let row = call.row(call.arguments.get(1));
    let Some(set) = call.collection(&row, Type::Sorted)? else { return Ok(Vec::new()) };
    let length = set.head.len as i64;
    let at =
        |place: i64| if place < 0 { (length + place).max(if place == last { -1 } else { 0 }) } else { place };
    let (first, last) = (at(first).max(0), at(last).min(length - 1));
    let mut found = Found::default();
    if first > last {
        return Ok(Vec::new());
    }
    let mut place = 0;
    in_order(call, &set, Between::all(reverse, last as u64 + 1), &mut |score, member| {
        let is_wanted = place >= first;
        place += 1;
        (!is_wanted || found.add(score, member)) && place <= last
    })?;
    found.members()
}

/// Members for a reply, as many as fit into it.
#[derive(Default)]
struct Found {
    members: Vec<Scored>,
    bytes: usize,
}

impl Found {
    /// Adds a member; `false` if the reply becomes too large.
    fn add(&mut self, score: f64, member: &[u8]) -> bool {
        self.members.push((score, member.to_vec()));
        self.bytes += member.len();
        fits(self.bytes).is_ok()
    }

    fn members(self) -> Result<Vec<Scored>, Refusal> {
        Ok(fits(self.bytes).map(|()| self.members)?)
    }
}

fn reply_scored(call: &mut Call, found: &[Scored], with_scores: bool) {
    let reply = call.reply();
    let is_three = reply.version == crate::reply::Version::Three;
    reply.array(if with_scores && !is_three { 2 * found.len() } else { found.len() });
    for (score, member) in found {
        if with_scores && is_three {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(*score);
        }
    }
}

/// The order in which a command returns members, and which; the options after its bounds.
#[derive(Clone, Copy, Default)]
struct Wanted {
    /// ZRANGE: options choose the rest.
    may_choose: bool,
    by_score: bool,
    reverse: bool,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

fn wanted(call: &Call, start: Wanted) -> Result<Wanted, Refusal> {
    let mut found = start;
    let mut words = call.arguments.from(4).iter();
    while let Some(word) = words.next() {
        match word.to_ascii_uppercase().as_slice() {
            b"WITHSCORES" => found.with_scores = true,
            b"REV" if found.may_choose && !found.reverse => found.reverse = true,
            b"BYSCORE" if found.may_choose && !found.by_score => found.by_score = true,
            b"LIMIT" => {
                let (skip, count) = (words.next().ok_or(SYNTAX)?, words.next().ok_or(SYNTAX)?);
                found.limit = Some((integer(skip)?, integer(count)?));
            }
            b"BYLEX" if found.may_choose && !found.by_score => {
                return Err("ERR BYLEX is not supported".into());
            }
            _ => return Err(SYNTAX.into()),
        }
    }
    // As in Redis, a count of -1 is no limit.
    if found.limit.is_some_and(|(_, count)| count != -1) && !found.by_score {
        return Err(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX".into()
        );
    }
    Ok(found)
}

fn range(call: &mut Call, start: Wanted) -> Result<(), Refusal> {
    let wanted = wanted(call, start)?;
    let (first, last) = (call.arguments.get(2), call.arguments.get(3));
    let found = if wanted.by_score {
        by_score(call, bound(first)?, bound(last)?, &wanted)?
    } else {
        between(call, integer(first)?, integer(last)?, wanted.reverse)?
    };
    reply_scored(call, &found, wanted.with_scores);
    Ok(())
}

fn by_score(call: &mut Call, first: Bound, last: Bound, wanted: &Wanted) -> Result<Vec<Scored>, Refusal> {
    let (low, high) = if wanted.reverse { (last, first) } else { (first, last) };
    let row = call.row(call.arguments.get(1));
    let Some(set) = call.collection(&row, Type::Sorted)? else { return Ok(Vec::new()) };
    let (mut skip, count) = wanted.limit.unwrap_or((0, -1));
    if skip < 0 || count == 0 {
        return Ok(Vec::new());
    }
    let most = if count < 0 { u64::MAX } else { count as u64 };
    let mut found = Found::default();
    let between = Between { low, high, reverse: wanted.reverse, rows: most.saturating_add(skip as u64) };
    in_order(call, &set, between, &mut |score, member| {
        if skip > 0 {
            skip -= 1;
            return true;
        }
        found.add(score, member) && (found.members.len() as u64) < most
    })?;
    found.members()
}

pub(super) fn zrange(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted { may_choose: true, ..Wanted::default() })
}

pub(super) fn zrevrange(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted { reverse: true, ..Wanted::default() })
}

pub(super) fn zrangebyscore(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted { by_score: true, ..Wanted::default() })
}

pub(super) fn zrevrangebyscore(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted { by_score: true, reverse: true, ..Wanted::default() })
}

fn pop(call: &mut Call, reverse: bool) -> Result<(), Refusal> {
    let count = match call.arguments.len() {
        2 => 1,
        3 => amount(call.arguments.get(2))?,
        _ => return Err(SYNTAX.into()),
    };
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut popped = Vec::new();
    if let Some(mut set) = call.collection(&row, Type::Sorted)?
        && count > 0
    {
        let mut found = Found::default();
        in_order(call, &set, Between::all(reverse, count as u64), &mut |score, member| {
            found.add(score, member) && (found.members.len() as i64) < count
        })?;
        popped = found.members()?;
        for (score, member) in &popped {
            take_out(call, &mut set, member, *score)?;
        }
        call.put_head(&row, &set)?;
    }
    let reply = call.reply();
    let nests = reply.version == crate::reply::Version::Three && call.arguments.len() == 3;
    let reply = call.reply();
    reply.array(if nests { popped.len() } else { 2 * popped.len() });
    for (score, member) in &popped {
        if nests {
            reply.array(2);
        }
        reply.bulk(member);
        reply.double(*score);
    }
    Ok(())
}

pub(super) fn zpopmin(call: &mut Call) -> Result<(), Refusal> {
    pop(call, false)
}

pub(super) fn zpopmax(call: &mut Call) -> Result<(), Refusal> {
    pop(call, true)
}
