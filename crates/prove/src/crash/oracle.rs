//! The oracle: what a database contains after a crash, compared with what was acknowledged and what was started before it.
//! It knows no engine, no file and no way to crash.
//!
//! The rule: the rows of each thread are those after its first j commits, for some j from the acknowledged to the started
//! ones, and a transaction is one commit. What a first crash has undone is no commit: it may not come back after a second one.

use super::script::Script;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// How a round of a crash test ended, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, VariantArray)]
#[strum(serialize_all = "SCREAMING-KEBAB-CASE")]
pub enum Verdict {
    /// Nothing acknowledged is missing.
    Ok,
    /// Nothing was acknowledged yet, and the database cannot be opened.
    CreateFailed,
    /// The rows are those after an earlier commit: the last acknowledged commits are missing.
    Lost,
    /// The rows are those after no commit: some are older than others, or part of a transaction is there.
    Holes,
    /// A scan returned a row twice or out of order, or something else than the gets.
    Duplicate,
    /// A row or a value that no commit wrote.
    Garbage,
    /// The database can be opened, but its rows are others after a clean close and another open.
    Changed,
    /// The database cannot be opened, or not be read or written afterwards.
    OpenFailed,
    /// Opening or reading it made no progress within the limit.
    OpenHung,
}

impl Verdict {
    /// Whether acknowledged data is not as it was.
    pub fn is_loss(self) -> bool {
        self >= Verdict::Lost
    }

    /// Whether more is wrong than a missing end.
    pub fn is_corrupt(self) -> bool {
        self >= Verdict::Holes
    }
}

/// The commits of a thread at the moment of the crash. Numbers of commits, of which the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bounds {
    /// The last one that was acknowledged.
    pub acked: u64,
    /// The last one that was started.
    pub started: u64,
}

/// What a fresh process found in the database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// For each thread and key the number of the commit that wrote its value; `None`: no row.
    pub threads: Vec<Vec<Option<u64>>>,
    /// Rows and values that no commit wrote.
    pub garbage: Vec<String>,
    /// Contradictions within scans, and between scans and gets.
    pub duplicates: Vec<String>,
}

impl Rows {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.threads.iter().flatten().flatten().count() as u64
    }
}

/// What is left of the commits of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// The last commit after which most rows are as found.
    pub nearest: u64,
    /// The last commit of which a row is there; 0: none.
    pub newest: u64,
}

/// The verdict on a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What was found, for a verdict other than OK.
    pub detail: Option<String>,
    /// Acknowledged commits that are missing at the end, over all threads.
    pub lost: u64,
    /// What is left of each thread.
    pub left: Vec<Left>,
    /// Whether no acknowledged commit is left.
    pub is_empty: bool,
}

impl Judgement {
    /// The judgement of a database that could not be read, or not be used after it was read. If nothing was acknowledged, nothing
    /// is lost, but an application would not start again.
    pub(super) fn failed(self, verdict: Verdict, text: String, acked: u64) -> Judgement {
        // One that opens and then loses what it has just acknowledged fails in any case.
        let is_unborn = acked == 0 && verdict != Verdict::Changed;
        let verdict = if is_unborn { Verdict::CreateFailed } else { verdict };
        let detail = match self.detail {
            Some(detail) => format!("{text}; {detail}"),
            None => text,
        };
        Judgement { verdict: self.verdict.max(verdict), detail: Some(detail), ..self }
    }

    /// The judgement of both crashes, if the process that went on after the first was crashed, too.
    pub(super) fn then(self, second: Judgement) -> Judgement {
        let detail = match (self.detail, second.detail) {
            (Some(first), Some(second)) => Some(format!("{first}; after the second crash: {second}")),
            (first, second) => first.or(second),
        };
        Judgement {
            verdict: self.verdict.max(second.verdict),
            detail,
            lost: self.lost + second.lost,
            left: second.left,
            is_empty: self.is_empty || second.is_empty,
        }
    }
}

/// The acknowledged commits of all threads.
pub(super) fn acknowledged(script: &Script, bounds: &[Bounds]) -> u64 {
    (0..).zip(bounds).map(|(thread, bounds)| script.count(thread, bounds.acked)).sum()
}

/// The started commits of all threads.
pub(super) fn started(script: &Script, bounds: &[Bounds]) -> u64 {
    (0..).zip(bounds).map(|(thread, bounds)| script.count(thread, bounds.started)).sum()
}

/// Of each thread the commit after which most rows are as found.
pub(super) fn kept(script: &Script, bounds: &[Bounds], rows: &Rows) -> Vec<u64> {
    let of = |(thread, (bounds, found)): (u32, (&Bounds, &Vec<Option<u64>>))| {
        state_of(script, thread, bounds.started, found).nearest
    };
    (0..).zip(bounds.iter().zip(&rows.threads)).map(of).collect()
}

/// Compares the rows with the commits of each thread.
pub(super) fn judge(script: &Script, bounds: &[Bounds], rows: &Rows) -> Judgement {
    let mut verdict = Verdict::Ok;
    let mut details: Vec<String> = Vec::new();
    let mut add = |found: Verdict, text: String| {
        verdict = verdict.max(found);
        details.push(text);
    };
    if let Some(text) = several(&rows.garbage) {
        add(Verdict::Garbage, text);
    }
    if let Some(text) = several(&rows.duplicates) {
        add(Verdict::Duplicate, text);
    }
    let (mut lost, mut kept, mut left) = (0, 0, Vec::new());
    for (thread, bounds) in bounds.iter().enumerate() {
        let none = Vec::new();
        let found = rows.threads.get(thread).unwrap_or(&none);
        let state = state_of(script, thread as u32, bounds.started, found);
        if let Some(text) = several(&state.impossible) {
            add(Verdict::Garbage, text);
        }
        let count = |number: u64| script.count(thread as u32, number);
        kept += count(state.nearest.min(bounds.acked));
        left.push(Left {
            nearest: state.nearest,
            newest: found.iter().flatten().max().copied().unwrap_or(0),
        });
        match &state.differs {
            Some(text) if state.impossible.is_empty() && rows.garbage.is_empty() => {
                let head = format!("thread {thread}, {} commits acknowledged", count(bounds.acked));
                add(Verdict::Holes, format!("{head}: {text}"));
            }
            None if count(state.nearest) < count(bounds.acked) => {
                lost += count(bounds.acked) - count(state.nearest);
                let (first, last) = (state.nearest + 1, bounds.acked);
                let which = if first == last {
                    format!("commit {last}")
                } else {
                    format!("commits {first} to {last}")
                };
                add(Verdict::Lost, format!("thread {thread}: {which} acknowledged and missing"));
            }
            _ => {}
        }
    }
    let acked = acknowledged(script, bounds);
    let detail = (!details.is_empty()).then(|| details.join("; "));
    Judgement { verdict, detail, lost, left, is_empty: acked > 0 && kept == 0 }
}

/// The first text, and how many there are.
fn several(texts: &[String]) -> Option<String> {
    let first = texts.first()?;
    Some(match texts.len() {
        1 => first.clone(),
        count => format!("{first} (and {} more)", count - 1),
    })
}

/// What the rows of a thread are.
struct State {
    /// The last commit after which most rows are as found.
    nearest: u64,
    /// How they differ from the rows after that commit; `None` if they do not.
    differs: Option<String>,
    /// Rows that have no commit of this thread.
    impossible: Vec<String>,
}

/// Finds the commit after which the rows are as found. Each row is as found after some ranges of commits; the commit in
/// most ranges is searched by adding up where ranges begin and end.
fn state_of(script: &Script, thread: u32, started: u64, found: &[Option<u64>]) -> State {
    let mut writes: Vec<Vec<(u64, bool)>> = vec![Vec::new(); script.keys as usize];
    for number in 1..=started {
        for change in script.commit(thread, number).changes {
            writes[change.key as usize].push((number, change.is_put));
        }
    }
    let mut impossible = Vec::new();
    // At j: ranges that begin at j less those that ended before it.
    let mut edges = vec![0i64; started as usize + 2];
    for (key, writes) in writes.iter().enumerate() {
        let found = found.get(key).copied().flatten();
        // What was undone is known, but there is no commit after which it is there.
        if let Some(number) = found
            && !writes.contains(&(number, true))
            && !script.is_undone(thread, number)
        {
            let what = if number > started { "was not started" } else { "did not write it" };
            impossible.push(format!("key {key} of thread {thread} has commit {number}, which {what}"));
            continue;
        }
        for (first, end) in ranges(writes, found, started) {
            edges[first as usize] += 1;
            edges[end as usize] -= 1;
        }
    }
    let (mut nearest, mut most, mut now) = (0, -1, 0);
    for (number, edge) in edges[..=started as usize].iter().enumerate() {
        now += edge;
        if now >= most {
            (nearest, most) = (number as u64, now);
        }
    }
    let is_whole = most == i64::from(script.keys) - impossible.len() as i64;
    let differs = (!is_whole).then(|| difference(script, thread, nearest, started, &writes, found));
    State { nearest, differs, impossible }
}

/// The ranges of commits, each without its end, after which a row is as found.
fn ranges(writes: &[(u64, bool)], found: Option<u64>, started: u64) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    let before = (0, false);
    for (place, write) in std::iter::once(&before).chain(writes).enumerate() {
        let end = writes.get(place).map_or(started + 1, |(next, _)| *next);
        let is_as_found = match found {
            Some(number) => *write == (number, true),
            None => !write.1,
        };
        if is_as_found {
            ranges.push((write.0, end));
        }
    }
    ranges
}

/// How the rows differ from those after commit `nearest`.
fn difference(
    script: &Script,
    thread: u32,
    nearest: u64,
    started: u64,
    writes: &[Vec<(u64, bool)>],
    found: &[Option<u64>],
) -> String {
    let after = |key: usize, commit: u64| {
        let last = writes[key].iter().rev().find(|(number, _)| *number <= commit);
        last.filter(|(_, is_put)| *is_put).map(|(number, _)| *number)
    };
    let found = |key: usize| found.get(key).copied().flatten();
    let wrong: Vec<usize> = (0..writes.len()).filter(|key| after(*key, nearest) != found(*key)).collect();
    let risen = wrong.iter().find_map(|key| found(*key).filter(|number| script.is_undone(thread, *number)));
    if let Some(number) = risen {
        return format!("commit {number} was not there after the first crash, and is there after the second");
    }
    if let Some(text) = wrong.first().and_then(|first| {
        let of_first = &writes[*first];
        let missing = of_first.iter().rev().map(|(number, _)| *number).find(|number| *number <= nearest);
        let early = of_first.iter().map(|(number, _)| *number).find(|number| {
            *number > nearest && *number <= started && after(*first, *number) == found(*first)
        });
        let changed = |commit: u64| {
            let changes = script.commit(thread, commit).changes.into_iter().map(|change| change.key as usize);
            changes.filter(|key| after(*key, commit) != after(*key, commit - 1)).collect::<Vec<_>>()
        };
        let part = |commit: u64| {
            let count = script.commit(thread, commit).changes.len();
            format!(
                "part of a transaction: commit {commit} has {count} changes, and not all of them are there"
            )
        };
        // One commit before the nearest is not there, or not all of it.
        let without = missing.and_then(|commit| {
            let is_hidden =
                |key: &usize| writes[*key].iter().any(|(number, _)| (commit + 1..=nearest).contains(number));
            let seen: Vec<usize> = changed(commit).into_iter().filter(|key| !is_hidden(key)).collect();
            let is_own = |key: &usize| seen.contains(key) && found(*key) == after(*key, commit - 1);
            let text = || match seen.len() == wrong.len() {
                true => format!("commit {commit} is missing, and later ones are there"),
                false => part(commit),
            };
            wrong.iter().all(is_own).then(text)
        });
        // One after it is there, or part of it.
        let with = || {
            early.and_then(|commit| {
                let own = changed(commit);
                let is_own = |key: &usize| own.contains(key) && found(*key) == after(*key, commit);
                let text = || match own.len() == wrong.len() {
                    true => format!("commit {commit} is there, and commit {} is not", nearest + 1),
                    false => part(commit),
                };
                wrong.iter().all(is_own).then(text)
            })
        };
        without.or_else(with)
    }) {
        return text;
    }
    let shown =
        |number: Option<u64>| number.map_or("no row".to_string(), |number| format!("commit {number}"));
    let key = wrong.first().copied().unwrap_or(0);
    let (is, should) = (shown(found(key)), shown(after(key, nearest)));
    let others = match wrong.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more keys differ)", count - 1),
    };
    format!("most rows are those after commit {nearest}, but key {key} has {is} instead of {should}{others}")
}
