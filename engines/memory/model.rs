//! The model that an engine is compared with: `BTreeMap`s, and the effect of each op as the boundary defines it.

use super::drive::*;
use kvdyno_driver::abi::*;
use kvdyno_driver::digest;
use std::collections::BTreeMap;
use std::path::Path;

type Space = BTreeMap<Vec<u8>, Vec<u8>>;

/// The expected answer of an engine.
pub struct Model {
    spaces: Vec<Space>,
    capabilities: u64,
}

/// A part of a batch: one op or a group.
pub struct Group {
    pub asks: Vec<Ask>,
    pub atomic: bool,
}

fn ended(status: u32) -> Reply {
    Reply { status, bytes: vec![], rows: 0, needed: 0, detail: 0, start: 0, end: 0 }
}

fn is_failure(status: u32) -> bool {
    !matches!(status, KV_OK | KV_NOT_FOUND | KV_EXISTS)
}

impl Model {
    pub fn new(keyspaces: usize, capabilities: u64) -> Model {
        Model { spaces: vec![Space::new(); keyspaces], capabilities }
    }

    /// The expected answers of a part of a batch.
    pub fn part(&mut self, part: &Group) -> Vec<Reply> {
        if !part.atomic {
            return part.asks.iter().map(|ask| self.one(ask)).collect();
        }
        // Undeclared ops are refused before anything is tried.
        if self.capabilities & KV_ORDERED == 0 && part.asks.iter().any(|ask| ask.kind == KV_SCAN) {
            return vec![ended(KV_UNSUPPORTED); part.asks.len()];
        }
        let before = self.spaces.clone();
        let mut answers: Vec<Reply> = Vec::new();
        for ask in &part.asks {
            let answer = self.one(ask);
            let status = answer.status;
            answers.push(answer);
            if !is_failure(status) {
                continue;
            }
            self.spaces = before;
            return match status {
                KV_SHORT => {
                    let at = answers.len() - 1;
                    let short = answers.pop();
                    let mut all = vec![ended(KV_ABORTED); part.asks.len()];
                    all[at] = short.unwrap();
                    all
                }
                _ => vec![ended(status); part.asks.len()],
            };
        }
        answers
    }

    fn one(&mut self, ask: &Ask) -> Reply {
        match ask.kind {
            KV_GET => self.get(ask),
            KV_SCAN => self.scan(ask),
            KV_PUT | KV_DELETE | KV_MERGE => ended(self.write(ask)),
            _ => ended(KV_UNSUPPORTED),
        }
    }

    fn get(&self, ask: &Ask) -> Reply {
        let Some(value) = self.spaces[ask.keyspace as usize].get(&ask.key) else {
            return ended(KV_NOT_FOUND);
        };
        if ask.flags & KV_TOUCH != 0 {
            return Reply { detail: digest(value), ..ended(KV_OK) };
        }
        if value.len() > ask.out_size {
            return Reply { needed: value.len() as u64, ..ended(KV_SHORT) };
        }
        Reply { bytes: value.clone(), ..ended(KV_OK) }
    }

    fn write(&mut self, ask: &Ask) -> u32 {
        let space = &mut self.spaces[ask.keyspace as usize];
        let old = space.get(&ask.key);
        let value = match ask.kind {
            KV_PUT if ask.limit != 0 => return KV_UNSUPPORTED,
            KV_PUT if ask.flags & KV_NEW != 0 && old.is_some() => return KV_EXISTS,
            KV_PUT => ask.value.clone(),
            KV_DELETE => return if space.remove(&ask.key).is_some() { KV_OK } else { KV_NOT_FOUND },
            _ if ask.flags & KV_APPEND != 0 => {
                let mut value = old.cloned().unwrap_or_default();
                value.extend_from_slice(&ask.value);
                value
            }
            _ => {
                let Ok(operand) = <[u8; 8]>::try_from(&ask.value[..]) else { return KV_TOO_LARGE };
                let zero = vec![0; 8];
                let Ok(old) = <[u8; 8]>::try_from(&old.unwrap_or(&zero)[..]) else { return KV_ERROR };
                u64::from_le_bytes(old).wrapping_add(u64::from_le_bytes(operand)).to_le_bytes().to_vec()
            }
        };
        space.insert(ask.key.clone(), value);
        KV_OK
    }

    fn scan(&self, ask: &Ask) -> Reply {
        if self.capabilities & KV_ORDERED == 0 {
            return ended(KV_UNSUPPORTED);
        }
        let has = |flag: u16| ask.flags & flag != 0;
        let mut rows: Vec<_> = self.spaces[ask.keyspace as usize].iter().collect();
        if has(KV_REVERSE) {
            rows.reverse();
        }
        let is_before = |key: &[u8], mark: &[u8]| if has(KV_REVERSE) { key > mark } else { key < mark };
        // A scan without a start begins where its prefix does; with one, a row without the prefix ends it.
        let rows = rows.into_iter().filter(|(key, _)| match ask.key.is_empty() {
            true => !has(KV_PREFIX) || key.starts_with(&ask.value),
            false => !(is_before(key, &ask.key) || has(KV_RESUME) && **key == ask.key),
        });
        let rows = rows.take_while(|(key, _)| match has(KV_PREFIX) {
            true => key.starts_with(&ask.value),
            false => ask.value.is_empty() || is_before(key, &ask.value),
        });
        let mut answer = ended(KV_OK);
        for (key, value) in rows {
            if answer.rows >= ask.limit {
                break;
            }
            let value = if has(KV_KEYS) { &[][..] } else { value };
            let size = 8 + key.len() + value.len();
            if answer.bytes.len() + size > ask.out_size {
                answer.needed = size as u64;
                answer.status = KV_SHORT;
                break;
            }
            answer.bytes.extend_from_slice(&(key.len() as u32).to_ne_bytes());
            answer.bytes.extend_from_slice(&(value.len() as u32).to_ne_bytes());
            answer.bytes.extend_from_slice(key);
            answer.bytes.extend_from_slice(value);
            answer.rows += 1;
        }
        answer
    }
}

/// Keys that share prefixes, including one with the largest bytes and some that are too long to be inlined.
fn key(random: &mut Random) -> Vec<u8> {
    let number = random.below(12) as u8;
    match random.below(6) {
        0 => vec![b'a', number],
        1 => vec![b'a', b'b', number, 0xff],
        2 => vec![0xff; usize::from(number % 3) + 1],
        3 => [&b"a key that is longer than an inline key "[..], &[number]].concat(),
        4 => vec![number],
        _ => b"0123456789abcdef-"[..usize::from(number) + 1].to_vec(),
    }
}

fn ask(random: &mut Random, keyspaces: u64, capabilities: u64) -> Ask {
    let key = key(random);
    let has = |capability: u64| capabilities & capability != 0;
    let length = [0, 8, 8, 24, 100][random.below(5) as usize];
    let mut made = match random.below(14) {
        0..4 => get(&key),
        4..8 => put(&key, &random.bytes(length)),
        8 => put(&key, &random.bytes(length)).flags(KV_NEW),
        9 => delete(&key),
        10 => merge(&key, &random.next().to_le_bytes()),
        11 => merge(&key, &random.bytes(length % 23)).flags(KV_APPEND),
        _ => {
            let mut made = scan(&key, &key[..random.below(2) as usize]).flags(KV_PREFIX);
            if random.below(2) == 0 {
                made = scan(&key, b"").flags([0, KV_RESUME, KV_KEYS][random.below(3) as usize]);
                made.value = if random.below(2) == 0 { super::model::key(random) } else { vec![] };
            }
            if random.below(3) == 0 {
                made.key.clear();
            }
            made.flags |= if random.below(2) == 0 { KV_REVERSE } else { 0 };
            made.limit = [u32::MAX, 1, 3, 10, 0][random.below(5) as usize];
            made
        }
    };
    made.keyspace = random.below(keyspaces) as u16;
    if random.below(8) == 0 {
        made.out_size = [0, 20, 60][random.below(3) as usize];
    }
    if made.kind == KV_GET && has(KV_CAN_TOUCH) && random.below(4) == 0 {
        made.flags |= KV_TOUCH;
    }
    made
}

fn part(random: &mut Random, keyspaces: u64, capabilities: u64) -> Group {
    let (length, flags) = match random.below(6) {
        0 => (2 + random.below(5) as usize, KV_JOIN),
        1 => (2 + random.below(5) as usize, KV_JOIN | KV_ATOMIC),
        _ => (1, 0),
    };
    let only_gets = flags == KV_JOIN && random.below(2) == 0;
    let mut asks = Vec::new();
    for index in 0..length {
        let mut made = ask(random, keyspaces, capabilities);
        if only_gets {
            made = get(&made.key);
        }
        let is_last = index + 1 == length;
        asks.push(made.flags(if is_last { flags & !KV_JOIN } else { flags }));
    }
    Group { asks, atomic: flags & KV_ATOMIC != 0 }
}

/// How an engine is tested.
pub struct Trial<'a> {
    pub path: &'a Path,
    pub level: u32,
    pub option: Option<(&'a str, &'a str)>,
    pub seed: u64,
    pub batches: u64,
}

const KEYSPACES: u32 = 3;

/// Compares an engine with the model on random batches, with closes and reopens in between; returns the first
/// difference.
pub fn hold(table: &'static kv_driver, trial: &Trial<'_>) -> Result<(), String> {
    let mut random = Random(trial.seed);
    let want = |flags| Want {
        path: trial.path,
        level: trial.level,
        flags,
        keyspaces: KEYSPACES,
        indexes: &[],
        option: trial.option,
    };
    let failed = |(status, text): (u32, String)| format!("open: status {status}, {text}");
    let mut bench = Bench::open(table, &want(KV_CREATE)).map_err(failed)?;
    let capabilities = bench.opened.capabilities;
    let mut model = Model::new(KEYSPACES as usize, capabilities);
    for round in 0..8 {
        let mut session = bench.session();
        for batch in 0..trial.batches / 8 {
            let parts: Vec<Group> = (0..1 + random.below(6))
                .map(|_| part(&mut random, u64::from(KEYSPACES), capabilities))
                .collect();
            compare(&mut session, &mut model, &parts)
                .map_err(|text| format!("seed {}, round {round}, batch {batch}: {text}", trial.seed))?;
        }
        drop(session);
        bench.close();
        bench = Bench::open(table, &want(0)).map_err(failed)?;
        if capabilities & KV_IN_MEMORY != 0 {
            model = Model::new(KEYSPACES as usize, capabilities);
        }
    }
    bench.close();
    Ok(())
}

/// Sends a batch of parts and compares the answers and the stamps.
pub fn compare(session: &mut Drive<'_>, model: &mut Model, parts: &[Group]) -> Result<(), String> {
    let asks: Vec<Ask> = parts.iter().flat_map(|part| part.asks.clone()).collect();
    let wanted: Vec<Reply> = parts.iter().flat_map(|part| model.part(part)).collect();
    let ran = session.run(&asks);
    if ran.done as usize != asks.len() {
        return Err(format!("done is {} of {}", ran.done, asks.len()));
    }
    let has_failed = |answer: &Reply| answer.status == KV_ERROR;
    if ran.error.is_empty() && ran.answers.iter().any(has_failed) {
        return Err("an error without a message".into());
    }
    if ran.waited != 0 {
        return Err(format!("waited {} ticks although nothing was due", ran.waited));
    }
    let mut last = (ran.start, ran.start);
    let mut is_tied = false;
    for ((ask, wanted), answer) in asks.iter().zip(&wanted).zip(&ran.answers) {
        let stamps = (answer.start, answer.end);
        let is_right = if is_tied { stamps == last } else { stamps.0 == last.1 && stamps.1 >= stamps.0 };
        // An op takes zero time only if the clock is coarser than the op.
        if !is_right {
            return Err(format!("{ask:?}: stamps {stamps:?} after {last:?}"));
        }
        last = stamps;
        is_tied = ask.flags & KV_JOIN != 0;
        let answer = Reply { start: 0, end: 0, ..answer.clone() };
        if answer != *wanted {
            return Err(format!("{ask:?}: {answer:?}, expected {wanted:?}"));
        }
    }
    Ok(())
}
