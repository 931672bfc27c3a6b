//! Where processes are killed, and which commits they make.

use super::life::COMMITS;
use crate::crash::script::Script;
use kvdyno_core::generator::Random;
use kvdyno_measure::sync_calls::{Change, Point};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most page boundaries within one write.
const BOUNDARIES: u32 = 4;
/// A value of this length crosses a page boundary wherever it lies.
const LONG: usize = 4096;
/// What the commits of a script have at least, where the engine can: long values, overwritten rows, deleted rows, transactions.
const VARIETY: [usize; 4] = [3, 2, 1, 3];
/// Scripts that are looked at to find such a one.
const SCRIPTS: u64 = 10_000;

/// Where the processes of a round are killed, as on the command line: `57`, `57+1` within a write, `57,12` with a second kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// The call of the process that creates the database.
    pub first: Point,
    /// The call of the one after it; `None`: it is not killed.
    pub second: Option<Point>,
}

/// There is no such call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected the number of a call, as in `57`, `57+1` or `57,12`")]
pub struct UnknownAt;

impl FromStr for At {
    type Err = UnknownAt;

    fn from_str(text: &str) -> Result<At, UnknownAt> {
        let (first, second) = match text.split_once(',') {
            Some((first, second)) => (first, Some(second)),
            None => (text, None),
        };
        Ok(At { first: point(first)?, second: second.map(point).transpose()? })
    }
}

fn point(text: &str) -> Result<Point, UnknownAt> {
    let (call, pages) = text.split_once('+').unwrap_or((text, "0"));
    let point =
        Point { call: call.parse().map_err(|_| UnknownAt)?, pages: pages.parse().map_err(|_| UnknownAt)? };
    if point.call > 0 { Ok(point) } else { Err(UnknownAt) }
}

impl fmt::Display for At {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |point: &Point| match point.pages {
            0 => point.call.to_string(),
            pages => format!("{}+{pages}", point.call),
        };
        let second = self.second.as_ref().map(|second| format!(",{}", shown(second)));
        write!(out, "{}{}", shown(&self.first), second.unwrap_or_default())
    }
}

/// Where a process with these calls is killed: before each of them, at page boundaries within them, and after the last one.
pub(super) fn points(calls: &[Change]) -> Vec<Point> {
    let mut points = Vec::new();
    for (change, call) in calls.iter().zip(1..) {
        points.push(Point { call, pages: 0 });
        points.extend(boundaries(change.boundaries).into_iter().map(|pages| Point { call, pages }));
    }
    points.push(end(calls));
    points
}

/// The point after the last call.
pub(super) fn end(calls: &[Change]) -> Point {
    Point { call: calls.len() as u64 + 1, pages: 0 }
}

/// Of the page boundaries within a write all, or the first ones, one in the middle and the last one.
pub(super) fn boundaries(count: u32) -> Vec<u32> {
    if count <= BOUNDARIES { (1..=count).collect() } else { vec![1, 2, count.div_ceil(2), count] }
}

/// So many of the points, evenly spread.
pub(super) fn spread(points: &[Point], most: u32) -> Vec<Point> {
    let (all, most) = (points.len() as u64, u64::from(most));
    (0..most.min(all)).map(|number| points[(number * all / most.min(all)) as usize]).collect()
}

/// Puts things in an order that the random numbers choose.
pub(super) fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for place in (1..all.len()).rev() {
        all.swap(place, random.below(place as u64 + 1) as usize);
    }
}

/// The first script, from its seed on, whose few commits have something of everything.
pub(super) fn varied(script: Script) -> Script {
    let seeds = (0..SCRIPTS).map(|number| script.seed.wrapping_add(number));
    let mut scripts = seeds.map(|seed| script.with_seed(seed));
    scripts.find(is_varied).unwrap_or(script)
}

fn is_varied(script: &Script) -> bool {
    let (mut long, mut overwritten, mut deleted, mut transactions) = (0, 0, 0, 0);
    let mut rows = BTreeSet::new();
    for number in 1..=COMMITS {
        let commit = script.commit(0, number);
        transactions += usize::from(commit.is_transaction);
        for change in commit.changes {
            if change.is_put {
                overwritten += usize::from(!rows.insert(change.key));
                long += usize::from(script.value(0, change.key, number).len() > LONG);
            } else {
                deleted += usize::from(rows.remove(&change.key));
            }
        }
    }
    let [least_long, least_overwritten, least_deleted, least_transactions] = VARIETY;
    long >= least_long
        && overwritten >= least_overwritten
        && (!script.deletes || deleted >= least_deleted)
        && (!script.transactions || transactions >= least_transactions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_names_is_what_is_printed() {
        for text in ["1", "57", "57+1", "57,12", "57+2,12+1"] {
            assert_eq!(text.parse::<At>().map(|at| at.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "0", "x", "57+", "57,", "57,0", ",1", "1,2,3", "-1"] {
            assert_eq!(text.parse::<At>(), Err(UnknownAt), "{text}");
        }
    }

    #[test]
    fn a_process_is_killed_before_each_call_at_boundaries_and_at_the_end() {
        let change = |boundaries| Change { text: "write".into(), boundaries };
        let points = points(&[change(0), change(2), change(9)]);
        let expected = [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2), (3, 5), (3, 9), (4, 0)];
        assert_eq!(points, expected.map(|(call, pages)| Point { call, pages }));
        assert_eq!(spread(&points, 100), points);
        assert_eq!(spread(&points, 2), [points[0], points[5]]);
        assert!(spread(&points, 0).is_empty());
    }

    #[test]
    fn a_short_script_has_something_of_everything_and_names_itself() {
        for seed in 0..20 {
            for (deletes, transactions) in [(true, true), (false, true), (true, false), (false, false)] {
                let script = varied(Script::of(seed, deletes, transactions));
                assert!(is_varied(&script), "seed {seed}");
                assert_eq!(varied(script), script, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut all: Vec<u32> = (0..50).collect();
        shuffle(&mut all, &mut Random::seeded(3));
        assert_ne!(all, (0..50).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }
}
