//! What all rounds of an engine at one level show together: its durability class, next to the level that it claims.

use super::oracle::Verdict;
use super::{Cell, Mode, Round};
use kvdyno_core::results::certificate::{Crashes, Failure, Times};
use kvdyno_core::results::crash::{Class, Measured};
use kvdyno_core::results::{Durability, Word};
use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// Rounds that were not `OK` which a certificate keeps, of each cell.
const KEPT: usize = 5;

/// What the cells of an engine at one level show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The engine.
    pub engine: String,
    /// The level that it claims.
    pub level: Durability,
    /// The measured class; `None` if nothing was measured that decides it.
    pub class: Option<Class>,
    /// Whether a crash while the database was created has left one that can neither be opened nor be created again.
    #[serde(default)]
    pub has_broken_creation: bool,
    /// Why the claim is wrong; `None` if it was not contradicted.
    pub contradicted: Option<String>,
}

/// The outcome of cells of one engine at one level.
pub fn outcome(cells: &[&Cell]) -> Outcome {
    let (engine, level) =
        cells.first().map_or((String::new(), Durability::None), |cell| (cell.engine.clone(), cell.level));
    let contradicted = cells.iter().find_map(|cell| cell.contradiction());
    let has_broken_creation = cells.iter().any(|cell| cell.count(Verdict::CreateFailed) > 0);
    Outcome { engine, level, class: class(cells), has_broken_creation, contradicted }
}

impl Outcome {
    /// The class in words, and whether a crash during the creation can be final; `None` if nothing decides it.
    pub fn class_text(&self) -> Option<String> {
        let class = self.class.map(Word::Known);
        Measured { class, has_broken_creation: self.has_broken_creation }.text()
    }
}

fn class(cells: &[&Cell]) -> Option<Class> {
    let rounds = |mode: Mode| -> Vec<&Round> {
        let own = cells.iter().filter(|cell| cell.mode == mode);
        // As in what contradicts a level: what is wrong counts, whether or not anything was acknowledged before.
        own.flat_map(|cell| &cell.rounds).filter(|round| round.is_loaded()).collect()
    };
    let is_corrupt = |rounds: &[&Round]| rounds.iter().any(|round| round.verdict.is_corrupt());
    let is_lossy = |rounds: &[&Round]| rounds.iter().any(|round| round.verdict.is_loss());
    let (mut killed, mut cut) = (rounds(Mode::Kill), rounds(Mode::Cut));
    // A rebuilt state is what a cut may leave, on another device.
    cut.extend(rounds(Mode::Replay));
    // The few commits before a kill at a call may all be in a buffer that later ones would have written.
    let is_emptied = |round: &&Round| round.verdict.is_loss() && round.is_empty;
    let is_volatile = !killed.is_empty() && killed.iter().all(is_emptied);
    killed.extend(rounds(Mode::Calls));
    // The weakest that was seen decides.
    Some(if killed.is_empty() {
        return None;
    } else if is_volatile && killed.iter().all(is_emptied) {
        Class::Volatile
    } else if is_corrupt(&killed) {
        Class::KillCorrupts
    } else if is_lossy(&killed) {
        Class::KillLosesEnd
    } else if cut.is_empty() {
        Class::SurvivesKill
    } else if is_corrupt(&cut) {
        Class::CutCorrupts
    } else if is_lossy(&cut) {
        Class::CutLosesEnd
    } else {
        Class::LosesNothing
    })
}

impl Round {
    /// Whether something was acknowledged before the crash, or something was wrong without that.
    fn is_loaded(&self) -> bool {
        self.acked > 0 || self.verdict.is_loss()
    }
}

impl Cell {
    /// How many rounds ended with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rounds.iter().filter(|round| round.verdict == verdict).count()
    }

    /// Rounds after which acknowledged data was not as it was.
    pub fn losses(&self) -> usize {
        self.rounds.iter().filter(|round| round.verdict.is_loss()).count()
    }

    /// Rounds in which something was acknowledged before the crash, so that it could be lost, or something was wrong without that,
    /// such as part of a transaction.
    pub fn loaded(&self) -> usize {
        self.rounds.iter().filter(|round| round.is_loaded()).count()
    }

    /// The largest probability of a loss at which so many rounds without one still have a chance of 5 % (the rule of
    /// three); `None` if there was a loss, or no round with anything to lose, or if the crashes were at no random moments.
    pub fn bound(&self) -> Option<f64> {
        let count = self.loaded();
        let is_random = self.mode != Mode::Calls;
        (is_random && count > 0 && self.losses() == 0).then(|| (3.0 / count as f64).min(1.0))
    }

    /// Whether rounds are missing that the engine or a stop has prevented, and not this machine.
    pub fn is_cut_short(&self) -> bool {
        self.skipped.is_some() && (self.has_failed || !self.rounds.is_empty())
    }

    /// Why the level that the engine claims is wrong.
    pub fn contradiction(&self) -> Option<String> {
        let losses = self.losses();
        let is_claimed = self.level >= self.mode.promised_at();
        (is_claimed && losses > 0).then(|| {
            let what = match self.mode {
                Mode::Kill => "kills",
                Mode::Calls => "kills at a call",
                Mode::Cut => "power cuts",
                Mode::Replay => "states that a power cut may leave",
            };
            let have = if self.mode == Mode::Replay { "have" } else { "left" };
            format!("{losses} of {} {what} {have} lost or wrong data", self.rounds.len())
        })
    }

    /// What a certificate keeps of the cell: sums, and the first rounds that were not `OK`.
    pub fn summary(&self) -> Crashes {
        let times = |of: fn(&Round) -> Option<u64>| {
            self.time(of).map(|(median_ns, longest_ns)| Times { median_ns, longest_ns })
        };
        let failure = |round: &Round| Failure {
            seed: round.seed,
            verdict: round.verdict.to_string(),
            detail: {
                let detail = round.detail.as_deref().unwrap_or_default();
                match (&round.called, round.course.setting()) {
                    (Some(called), _) => format!("killed {called}: {detail}"),
                    (None, Some(setting)) => format!("{setting}: {detail}"),
                    (None, None) => detail.into(),
                }
            },
            state: round.replayed.as_ref().map(|replayed| replayed.state),
        };
        let failed = self.rounds.iter().filter(|round| round.verdict != Verdict::Ok);
        let count = |verdict: Verdict| (verdict.to_string(), self.count(verdict) as u64);
        Crashes {
            mode: self.mode.into(),
            file_system: self.file_system.clone(),
            device: self.device.clone(),
            threads: self.threads,
            rounds: self.rounds.len() as u64,
            loaded: self.loaded() as u64,
            commits: self.rounds.iter().map(|round| round.acked).sum(),
            losses: self.losses() as u64,
            verdicts: Verdict::VARIANTS.iter().copied().map(count).filter(|(_, count)| *count > 0).collect(),
            recovery: times(|round| round.recovery_ns),
            reopen: times(|round| round.reopen_ns),
            failures: failed.take(KEPT).map(failure).collect(),
            skipped: self.skipped.clone(),
            has_failed: self.has_failed,
            states: self.states.clone(),
            most_states: self.most_states,
        }
    }

    /// A time of the rounds that have it, and the largest, nanoseconds: the upper median.
    pub fn time(&self, of: impl Fn(&Round) -> Option<u64>) -> Option<(u64, u64)> {
        let mut times: Vec<u64> = self.rounds.iter().filter_map(of).collect();
        times.sort_unstable();
        Some((*times.get(times.len() / 2)?, *times.last()?))
    }
}
