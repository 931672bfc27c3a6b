//! Sorted sets: members by score. Two rows per member: `0 member` has the score, `1 score member` defines the order.

use super::access::{Collection, SYNTAX, amount, float, integer};
use crate::resp::command::{Call, FOREIGN, Refusal};
use crate::resp::record::{Type, behind, score_bytes, score_of};
use crate::resp::store::Stretch;

const BY_MEMBER: &[u8] = &[0];
const BY_SCORE: &[u8] = &[1];

/// A member with its score.
type Scored = (f64, Vec<u8>);

fn score(call: &mut Call, set: &Collection, member: &[u8]) -> Result<Option<f64>, Refusal> {
    let element = call.element(set, &[BY_MEMBER, member]);
    match call.store.get(&element)? {
        None => Ok(None),
        Some(bytes) => score_of(bytes).map(Some).ok_or_else(|| FOREIGN.to_string()),
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
    call.store.put(&order, vec![1])
}

fn take_out(call: &mut Call, set: &mut Collection, member: &[u8], score: f64) -> Result<(), Refusal> {
    let element = call.element(set, &[BY_MEMBER, member]);
    let order = call.element(set, &[BY_SCORE, &score_bytes(score), member]);
    set.head.len -= 1;
    call.store.delete(&element)?;
    call.store.delete(&order)
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
        let allowed = if old.is_some() { !self.only_new } else { !self.only_there };
        let new = if self.adds { old.unwrap_or(0.0) + given } else { given };
        if new.is_nan() {
            return Err("ERR resulting score is not a number (NaN)".into());
        }
        let is_wanted =
            old.is_none_or(|old| (!self.only_greater || new > old) && (!self.only_less || new < old));
        Ok((allowed && is_wanted).then_some(new))
    }
}

pub fn zadd(call: &mut Call) -> Result<(), Refusal> {
    let conditions = Conditions::parse(call)?;
    let words = call.arguments.from(conditions.scores_at);
    let places = (0..words.len()).step_by(2);
    // All scores are checked before anything is changed.
    let given: Vec<(f64, &[u8])> =
        places.map(|at| Ok((float(words.get(at))?, words.get(at + 1)))).collect::<Result<_, Refusal>>()?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut set = call.collection_to_fill(&row, Type::Sorted)?;
    let (mut added, mut changed, mut last) = (0, 0, None);
    for (given, member) in given {
        let old = score(call, &set, member)?;
        last = conditions.new_score(old, given)?;
        let Some(new) = last else { continue };
        added += i64::from(old.is_none());
        changed += i64::from(old != Some(new));
        if old != Some(new) {
            put(call, &mut set, member, old, new)?;
        }
    }
    if changed > 0 {
        call.put_head(&row, &set)?;
    }
    match (conditions.adds, last) {
        (true, Some(score)) => call.reply().double(score),
        (true, None) => call.reply().nil(),
        (false, _) => call.reply().integer(if conditions.counts_changed { changed } else { added }),
    }
    Ok(())
}

pub fn zincrby(call: &mut Call) -> Result<(), Refusal> {
    let amount = float(call.arguments.get(2))?;
    let row = call.row(call.arguments.get(1));
    let member = call.arguments.get(3);
    call.lock(&[&row])?;
    let mut set = call.collection_to_fill(&row, Type::Sorted)?;
    let old = score(call, &set, member)?;
    let new = old.unwrap_or(0.0) + amount;
    if new.is_nan() {
        return Err("ERR resulting score is not a number (NaN)".into());
    }
    put(call, &mut set, member, old, new)?;
    call.put_head(&row, &set)?;
    call.reply().double(new);
    Ok(())
}

pub fn zrem(call: &mut Call) -> Result<(), Refusal> {
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

pub fn zscore(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let found = match call.collection(&row, Type::Sorted)? {
        Some(set) => score(call, &set, call.arguments.get(2))?,
        None => None,
    };
    match found {
        Some(score) => call.reply().double(score),
        None => call.reply().nil(),
    }
    Ok(())
}

pub fn zcard(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::Sorted)
}

/// Passes members to `take` by ascending or descending score, until it needs no more.
fn in_order(
    call: &mut Call,
    set: &Collection,
    reverse: bool,
    rows: u64,
    take: &mut dyn FnMut(f64, &[u8]) -> bool,
) -> Result<(), Refusal> {
    let from = call.element(set, &[BY_SCORE]);
    let start = from.len();
    let rows = u32::try_from(rows).unwrap_or(0);
    let stretch = Stretch { to: behind(&from), from, reverse, rows };
    let mut is_foreign = false;
    call.store.rows(&stretch, &mut |row, _| match row[start..].split_at_checked(8) {
        Some((bytes, member)) => take(score_of(bytes).unwrap_or_default(), member),
        None => {
            is_foreign = true;
            false
        }
    })?;
    if is_foreign { Err(FOREIGN.into()) } else { Ok(()) }
}

/// The members between two places, both included; negative ones count from the end.
fn between(call: &mut Call, first: i64, last: i64, reverse: bool) -> Result<Vec<Scored>, Refusal> {
    let row = call.row(call.arguments.get(1));
    let Some(set) = call.collection(&row, Type::Sorted)? else { return Ok(Vec::new()) };
    let length = set.head.len as i64;
    let at =
        |place: i64| if place < 0 { (length + place).max(if place == last { -1 } else { 0 }) } else { place };
    let (first, last) = (at(first).max(0), at(last).min(length - 1));
    let mut found = Vec::new();
    if first > last {
        return Ok(found);
    }
    let mut place = 0;
    in_order(call, &set, reverse, last as u64 + 1, &mut |score, member| {
        if place >= first {
            found.push((score, member.to_vec()));
        }
        place += 1;
        place <= last
    })?;
    Ok(found)
}

fn reply_scored(call: &mut Call, found: &[Scored], with_scores: bool) {
    let reply = call.reply();
    let is_three = reply.version == crate::resp::reply::Version::Three;
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

/// A bound of ZRANGE BYSCORE: the score, and whether it is excluded.
fn bound(text: &[u8]) -> Result<(f64, bool), Refusal> {
    let (text, is_open) = match text {
        [b'(', rest @ ..] => (rest, true),
        _ => (text, false),
    };
    float(text).map(|score| (score, is_open)).map_err(|_| "ERR min or max is not a float".to_string())
}

/// The options after the bounds of ZRANGE and related commands.
#[derive(Default)]
struct Wanted {
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
            b"REV" => found.reverse = true,
            b"BYSCORE" => found.by_score = true,
            b"LIMIT" => {
                let mut next = || integer(words.next().ok_or(SYNTAX)?);
                found.limit = Some((next()?, next()?));
            }
            b"BYLEX" => return Err("ERR BYLEX is not supported".into()),
            _ => return Err(SYNTAX.into()),
        }
    }
    if found.limit.is_some() && !found.by_score {
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
        by_score(call, first, last, &wanted)?
    } else {
        between(call, integer(first)?, integer(last)?, wanted.reverse)?
    };
    reply_scored(call, &found, wanted.with_scores);
    Ok(())
}

fn by_score(call: &mut Call, first: &[u8], last: &[u8], wanted: &Wanted) -> Result<Vec<Scored>, Refusal> {
    let (low, high) =
        if wanted.reverse { (bound(last)?, bound(first)?) } else { (bound(first)?, bound(last)?) };
    let row = call.row(call.arguments.get(1));
    let Some(set) = call.collection(&row, Type::Sorted)? else { return Ok(Vec::new()) };
    let (mut skip, count) = wanted.limit.unwrap_or((0, -1));
    if skip < 0 {
        return Ok(Vec::new());
    }
    let mut found: Vec<Scored> = Vec::new();
    in_order(call, &set, wanted.reverse, 0, &mut |score, member| {
        let is_above = score > low.0 || (score == low.0 && !low.1);
        let is_below = score < high.0 || (score == high.0 && !high.1);
        if is_above && is_below {
            if skip > 0 {
                skip -= 1;
            } else if count < 0 || (found.len() as i64) < count {
                found.push((score, member.to_vec()));
            }
        }
        if wanted.reverse { is_above } else { is_below }
    })?;
    Ok(found)
}

pub fn zrange(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted::default())
}

pub fn zrevrange(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted { reverse: true, ..Wanted::default() })
}

pub fn zrangebyscore(call: &mut Call) -> Result<(), Refusal> {
    range(call, Wanted { by_score: true, ..Wanted::default() })
}

fn pop(call: &mut Call, reverse: bool) -> Result<(), Refusal> {
    let count = match call.arguments.len() {
        2 => 1,
        3 => amount(call.arguments.get(2))?,
        _ => return Err(SYNTAX.into()),
    };
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut popped: Vec<Scored> = Vec::new();
    if let Some(mut set) = call.collection(&row, Type::Sorted)?
        && count > 0
    {
        in_order(call, &set, reverse, count as u64, &mut |score, member| {
            popped.push((score, member.to_vec()));
            (popped.len() as i64) < count
        })?;
        for (score, member) in &popped {
            take_out(call, &mut set, member, *score)?;
        }
        call.put_head(&row, &set)?;
    }
    let reply = call.reply();
    let nests = reply.version == crate::resp::reply::Version::Three && call.arguments.len() == 3;
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

pub fn zpopmin(call: &mut Call) -> Result<(), Refusal> {
    pop(call, false)
}

pub fn zpopmax(call: &mut Call) -> Result<(), Refusal> {
    pop(call, true)
}
