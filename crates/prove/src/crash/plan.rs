//! What the seed of a round decides: how much is written, when the process is crashed, and what comes after that. Moments are numbers
//! of commits and of closes, not times, so that a crash test does the same on a slow disk and on a fast one; only how many commits
//! may be drawn depends on how long one takes.

use super::Mode;
use super::script::Script;
use kvdyno_core::engine::{OptionInfo, OptionKind};
use kvdyno_core::generator::Random;
use std::time::Duration;

/// The stream of random numbers that choose the moment of the crash.
const MOMENT_STREAM: u64 = 1;
/// The stream of random numbers that choose the size of a round and its place.
const SIZE_STREAM: u64 = 5;
/// The time for the commits before a crash.
const COMMITTING: Duration = Duration::from_secs(2);
/// Commits of a round at most, and of a large one.
const MOST: u64 = 4000;
const MOST_OF_LARGE: u64 = 20_000;
/// Commits of a round at least, however long one takes.
const LEAST: u64 = 24;
/// One round in so many is large.
const LARGE: u64 = 8;
/// Keys of each thread in a large round: more than fit in a small tree or in a buffer.
const LARGE_KEYS: u32 = 5000;
/// More commits than are ever made: the database is not closed.
pub(super) const NEVER: u64 = 1 << 40;
/// Shares of values, in 32, that are longer than a page.
const LONG: [u32; 3] = [1, 8, 32];
/// Options of engines, in bytes, for what is collected before a file of the database begins.
const BUFFERS: [&str; 3] = ["memtable", "segment", "write_buffer"];
/// Such an option is a part of its default in a large round, within limits.
const BUFFER_PART: u64 = 8;
const BUFFER_BYTES: (u64, u64) = (1 << 20, 16 << 20);

/// When a process is crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// This long after it began to create the database.
    Creation(Duration),
    /// This long after so many commits of all threads were acknowledged.
    Commits(u64, Duration),
    /// By itself within the commit of its first thread with this number, or one after it, after this share, in thousandths, of the
    /// time that the commit before it took.
    InCommit(u64, u32),
    /// This long after it began to maintain, close or reopen the database for the n-th time.
    Closing(u64, Duration),
}

/// How fast an engine is in one place, as a few commits before the first round have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// The time of creating a database.
    pub creation: Duration,
    /// The time of a commit of any thread.
    pub commit: Duration,
}

impl Pace {
    /// The commits of all threads for which there is time.
    fn commits(self, most: u64) -> u64 {
        let count = COMMITTING.as_nanos() / self.commit.as_nanos().max(1);
        u64::try_from(count).unwrap_or(most).clamp(LEAST, most)
    }
}

/// How much a round writes, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Whether it has many keys and commits.
    pub is_large: bool,
    /// Whether its database is in memory, where there is a choice.
    pub in_memory: bool,
    /// Of 32 values so many are longer than a page.
    long_values: u32,
    /// Whether one thread writes, also where there may be several: a lock that they wait for makes kills within a write rare.
    pub has_one_thread: bool,
    /// The share of a commit, in thousandths, after which a process is killed within it; `None`: it is killed at another moment.
    pub in_commit: Option<u32>,
}

impl Size {
    /// The size of the round with a seed.
    pub(super) fn draw(seed: u64, mode: Mode) -> Size {
        let mut random = Random::stream(seed, SIZE_STREAM);
        let is_large = random.below(LARGE) == 0;
        let in_memory = random.below(2) == 0;
        let long = LONG[random.below(LONG.len() as u64) as usize];
        // An image is small.
        let most = match mode {
            _ if !is_large => long,
            Mode::Kill => 8,
            _ => 1,
        };
        let is_kill = mode == Mode::Kill;
        let has_one_thread = is_kill && random.below(2) == 0;
        // Which stage is crashed does not depend on the pace.
        let any = Pace { creation: Duration::ZERO, commit: Duration::ZERO };
        let is_commit = matches!(Plan::draw(seed, is_large, any).0.moment, Moment::Commits(..));
        let is_wanted = is_kill && is_commit && random.below(2) == 0;
        let in_commit = is_wanted.then(|| random.below(1000) as u32);
        Size { is_large, in_memory, long_values: long.min(most), has_one_thread, in_commit }
    }

    /// The commits of a round.
    pub(super) fn script(self, script: Script) -> Script {
        let keys = if self.is_large { LARGE_KEYS } else { script.keys };
        Script { keys, long_values: Some(self.long_values), ..script }
    }
}

/// What an engine with these options is told in large rounds: buffers so small that they are emptied. What the user has set stays.
pub(super) fn small_buffers(options: &[OptionInfo], set: &[(String, String)]) -> Vec<(String, String)> {
    let small = |option: &OptionInfo| {
        let is_buffer = option.kind == OptionKind::Bytes && BUFFERS.contains(&option.name.as_str());
        let usual: u64 = option.default_value.parse().ok()?;
        let bytes = (usual / BUFFER_PART).clamp(BUFFER_BYTES.0, BUFFER_BYTES.1);
        let is_set = set.iter().any(|(name, _)| *name == option.name);
        (is_buffer && !is_set && bytes < usual).then(|| (option.name.clone(), bytes.to_string()))
    };
    options.iter().filter_map(small).collect()
}

/// What a process does that goes on after a crash, until it is crashed, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    /// When it is crashed; commits are those that it makes.
    pub moment: Moment,
    /// Its commits of each thread between two closes.
    pub session: u64,
}

/// What the seed of a round decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// When the process is crashed.
    pub moment: Moment,
    /// Commits of each thread between two closes.
    pub session: u64,
    /// Commits after which dirty pages are written back.
    pub write_back: Option<u64>,
    /// Crash the recovery too, after this time.
    pub second: Option<Duration>,
    /// Go on after the recovery, and crash again.
    pub more: Option<More>,
}

impl Plan {
    /// The plan of a seed, and the random numbers for what else is chosen in its round. How many commits there are depends on the
    /// pace; which stage is crashed does not.
    pub(super) fn draw(seed: u64, is_large: bool, pace: Pace) -> (Plan, Random) {
        let mut random = Random::stream(seed, MOMENT_STREAM);
        let most = pace.commits(if is_large { MOST_OF_LARGE } else { MOST });
        let [commits, early, late, soon, in_recovery] = [(); 5].map(|()| random.unit());
        let commits = between(commits, if is_large { most as f64 / 4.0 } else { 2.0 }, most as f64) as u64;
        let moment = match random.below(8) {
            // Until a little after its usual end.
            0 => Moment::Creation(micros(early, 30.0, 1.25 * pace.creation.as_micros() as f64)),
            1 | 2 => Moment::Closing(1 + random.below(6), micros(late, 10.0, 10_000.0)),
            _ => Moment::Commits(commits, micros(soon, 1.0, 2000.0)),
        };
        let length = random.unit();
        let session = match moment {
            // Two sessions of two threads.
            Moment::Closing(..) if is_large => most / 4,
            Moment::Closing(..) => 4 + (length * 100f64.min(most as f64 / 4.0)) as u64,
            _ if is_large => NEVER,
            _ => 300 + (length * 3000.0) as u64,
        };
        // A process that is crashed while it closes makes other commits: those of its sessions.
        let made = if matches!(moment, Moment::Closing(..)) { session } else { commits };
        let write_back = (random.below(10) < 7).then_some(made / 2);
        let second = (random.below(4) == 0).then_some(micros(in_recovery, 30.0, 20_000.0));
        let more = More::draw(&mut random, most);
        // Of a creation that was interrupted nothing may be left.
        let more = more.filter(|_| !matches!(moment, Moment::Creation(_)));
        (Plan { moment, session, write_back, second, more }, random)
    }

    /// The same with a kill within a commit, if a share of it is given, instead of one after so many commits of these threads.
    pub(super) fn within(self, share: Option<u32>, threads: u32) -> Plan {
        let moment = match (self.moment, share) {
            // Before the first one no commit shows how long one takes.
            (Moment::Commits(commits, _), Some(share)) => {
                Moment::InCommit((commits / u64::from(threads)).max(2), share)
            }
            (moment, _) => moment,
        };
        Plan { moment, ..self }
    }
}

impl More {
    /// In a quarter of the rounds.
    fn draw(random: &mut Random, most: u64) -> Option<More> {
        let is_wanted = random.below(4) == 0;
        let commits = between(random.unit(), 1.0, most as f64 / 4.0) as u64;
        let delay = random.unit();
        let (moment, session) = match random.below(4) {
            0 => (
                Moment::Closing(1 + random.below(4), micros(delay, 10.0, 10_000.0)),
                4 + (random.unit() * 100f64.min(most as f64 / 8.0)) as u64,
            ),
            _ => (Moment::Commits(commits, micros(delay, 1.0, 2000.0)), NEVER),
        };
        is_wanted.then_some(More { moment, session })
    }
}

/// A number of which every order of magnitude is as likely. `share` is from 0 to 1.
fn between(share: f64, least: f64, most: f64) -> f64 {
    least * (most.max(least) / least).powf(share)
}

fn micros(share: f64, least: f64, most: f64) -> Duration {
    Duration::from_micros(between(share, least, most) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Pace = Pace { creation: Duration::from_millis(1), commit: Duration::from_micros(10) };
    /// A disk that syncs 20 times in a second.
    const SLOW: Pace = Pace { creation: Duration::from_millis(400), commit: Duration::from_millis(50) };

    fn plan(seed: u64, pace: Pace) -> Plan {
        Plan::draw(seed, Size::draw(seed, Mode::Kill).is_large, pace).0
    }

    #[test]
    fn all_kinds_of_moments_are_drawn_and_a_seed_draws_the_same() {
        let plans: Vec<Plan> = (0..400).map(|seed| plan(seed, FAST)).collect();
        assert_eq!(plans, (0..400).map(|seed| plan(seed, FAST)).collect::<Vec<_>>());
        let count = |is: fn(&Plan) -> bool| plans.iter().filter(|plan| is(plan)).count();
        assert!(count(|plan| matches!(plan.moment, Moment::Creation(_))) > 20);
        assert!(count(|plan| matches!(plan.moment, Moment::Closing(..))) > 50);
        assert!(count(|plan| matches!(plan.moment, Moment::Commits(1000.., _))) > 20);
        assert!(count(|plan| matches!(plan.moment, Moment::Commits(..10, _))) > 20);
        assert!(count(|plan| plan.second.is_some()) > 50);
        assert!(count(|plan| plan.write_back.is_none()) > 50);
        assert!(count(|plan| plan.more.is_some()) > 50);
        assert!(count(|plan| matches!(plan.more, Some(More { moment: Moment::Closing(..), .. }))) > 10);
    }

    #[test]
    fn half_of_the_kills_after_commits_are_within_one_and_in_half_of_the_rounds_one_thread_writes() {
        let (mut within, mut commits, mut alone) = (0, 0, 0);
        for seed in 0..800 {
            let size = Size::draw(seed, Mode::Kill);
            let plan = plan(seed, FAST);
            alone += usize::from(size.has_one_thread);
            match (plan.moment, plan.within(size.in_commit, 2).moment) {
                (Moment::Commits(all, _), Moment::InCommit(number, share)) => {
                    assert!(number == (all / 2).max(2) && share < 1000, "seed {seed}: {number}, {share}");
                    within += 1;
                }
                (Moment::Commits(..), other) => {
                    assert_eq!(other, plan.moment, "seed {seed}");
                    commits += 1;
                }
                (moment, other) => assert_eq!((moment, size.in_commit), (other, None), "seed {seed}"),
            }
            let cut = Size::draw(seed, Mode::Cut);
            assert_eq!((cut.in_commit, cut.has_one_thread), (None, false), "a cut is made from outside");
        }
        assert!(within > 150 && commits > 150 && (350..450).contains(&alone), "{within}, {commits}, {alone}");
    }

    /// Regression: pages were written back after a number of commits that a process which is crashed while it closes rarely makes.
    #[test]
    fn dirty_pages_are_written_back_before_the_crash() {
        for seed in 0..400 {
            let Plan { moment, session, write_back, .. } = plan(seed, FAST);
            let made = match moment {
                Moment::Closing(..) => session,
                Moment::Commits(commits, _) | Moment::InCommit(commits, _) => commits,
                Moment::Creation(_) => continue,
            };
            let is_before = write_back.is_none_or(|commits| commits <= made);
            assert!(is_before, "seed {seed}: {write_back:?} of {made}");
        }
    }

    #[test]
    fn a_slow_disk_makes_fewer_commits_in_the_same_stages() {
        for seed in 0..400 {
            let (slow, fast) = (plan(seed, SLOW), plan(seed, FAST));
            let is_same = match (slow.moment, fast.moment) {
                (Moment::Creation(slow), Moment::Creation(fast)) => slow >= fast,
                (Moment::Closing(slow, _), Moment::Closing(fast, _)) => slow == fast,
                (Moment::Commits(slow, _), Moment::Commits(fast, _)) => slow <= fast,
                _ => false,
            };
            assert!(is_same, "seed {seed}: {slow:?}, {fast:?}");
            assert_eq!((slow.second, slow.more.is_some()), (fast.second, fast.more.is_some()), "seed {seed}");
            // A round must end in a few seconds.
            let most = match slow.moment {
                Moment::Creation(_) => 0,
                Moment::Commits(commits, _) | Moment::InCommit(commits, _) => commits,
                Moment::Closing(..) => 4 * slow.session,
            };
            assert!(SLOW.commit * most as u32 <= Duration::from_secs(4), "seed {seed}: {slow:?}");
        }
    }

    #[test]
    fn one_round_in_eight_is_large_and_values_of_several_pages_are_in_most() {
        let sizes: Vec<Size> = (0..800).map(|seed| Size::draw(seed, Mode::Kill)).collect();
        let count = |is: fn(&Size) -> bool| sizes.iter().filter(|size| is(size)).count();
        let large = count(|size| size.is_large);
        assert!((70..130).contains(&large), "{large}");
        assert!((350..450).contains(&count(|size| size.in_memory)));
        assert!(count(|size| size.long_values >= 8) > 400);
        let commits = (0..400).filter_map(|seed| match Plan::draw(seed, true, FAST).0.moment {
            Moment::Commits(commits, _) => Some(commits),
            _ => None,
        });
        let (least, most) = (commits.clone().min(), commits.max());
        assert!(least >= Some(5000) && most > Some(15_000), "{least:?}, {most:?}");
    }

    #[test]
    fn only_options_that_an_engine_has_and_the_user_has_not_set_are_small() {
        let option = |name: &str, kind: &str, default_value: &str| OptionInfo {
            name: name.into(),
            kind: kind.to_string().into(),
            default_value: default_value.into(),
            help: String::new(),
        };
        let options = [
            option("memtable", "bytes", "67108864"),
            option("segment", "bytes", "1073741824"),
            option("write_buffer", "bytes", "1048576"),
            option("memtables", "count", "5"),
            option("block_size", "bytes", "4096"),
        ];
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let small = small_buffers(&options, &[]);
        assert_eq!(small, [pair("memtable", "8388608"), pair("segment", "16777216")]);
        assert_eq!(small_buffers(&options, &[pair("segment", "5")]), [pair("memtable", "8388608")]);
        assert!(small_buffers(&options[2..], &[]).is_empty());
    }
}
