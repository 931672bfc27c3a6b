//! Arms that are measured in turns: their databases are loaded once, and blocks of short trials are run until a comparison has ended.

mod arm;
mod metric;

use super::error::CliError;
use super::number::share;
use super::trials::{Failure, phase};
pub(super) use arm::{Arm, Engines, Given, Setup, equal, short_name};
use kvdyno_change::paired::{Finding, Options, Paired, Step, least_blocks};
use kvdyno_core::workload::Durability;
use kvdyno_measure::signals;
use kvdyno_measure::text::{counted, parse_seconds};
pub(super) use metric::{Figure, Metric, figure_change};
use std::time::{Duration, Instant};

/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// If so many blocks in turn have a failed trial, the comparison ends.
const MOST_FAILED: usize = 3;
/// What an arm is, for the help.
pub(super) const ARM: &str = "an engine or a plug-in (libkvdyno_NAME.so), with options: ENGINE[:NAME=VALUE,...]; ENGINE@FILE runs it by another build of kvdyno";

/// The length of a measured phase, in seconds.
pub(super) fn trial_seconds(text: &str) -> Result<f64, String> {
    let seconds = parse_seconds(text).map_err(|error| error.to_string())?;
    if (0.1..=3600.0).contains(&seconds) { Ok(seconds) } else { Err("expected 0.1 s to 1 h".into()) }
}

/// A number of minutes.
pub(super) fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| (0.1..=1440.0).contains(minutes));
    minutes.ok_or_else(|| "expected 0.1 to 1440".to_string())
}

/// `2%` or `0.02`.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let part = share(text).filter(|part| (0.001..=0.5).contains(part));
    part.ok_or_else(|| "expected 0.1% to 50%, such as 2%".to_string())
}

/// `2 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{} %", (part * 1e4).round() / 1e2)
}

/// Refuses a time in which a comparison of so many arms, metrics and phases cannot have a verdict. `trial`: the length of a phase.
pub(super) fn check_time(counts: [usize; 3], trial: f64, seconds: f64) -> Result<(), CliError> {
    let [arms, metrics, phases] = counts;
    let least = least_blocks(arms, metrics, Options::default().alpha);
    let needed = (least * arms * phases) as f64 * trial;
    if needed <= seconds {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "a comparison needs {least} blocks of {arms} trials at least, which take {needed:.0} s, and it has {seconds:.0} s: it could not \
         show any change"
    ))
    .hint("use more --minutes, or a shorter --trial"))
}

/// What the trial that loads the database of an arm has shown.
pub(super) struct Loaded {
    /// The effective level of each metric's phase.
    pub levels: Vec<Option<Durability>>,
    /// Each metric's value; none: it is unknown.
    pub values: Vec<Option<f64>>,
}

/// Loads the database of an arm. The inner error: its trial failed.
pub(super) fn load(arm: &Arm, metrics: &[Metric]) -> Result<Result<Loaded, Failure>, CliError> {
    // The trial that loads the database counts as none: the files of later ones are copies.
    let record = arm.load()?;
    let phases = metrics.iter().map(|metric| phase(&record, &metric.phase)).collect::<Result<Vec<_>, _>>();
    let levels = match phases {
        Ok(phases) => phases.iter().map(|found| found.durability_effective).collect(),
        Err(failure) => return Ok(Err(failure)),
    };
    eprintln!("{}: loaded", arm.name);
    Ok(Ok(Loaded { levels, values: metrics.iter().map(|metric| metric.value(&record)).collect() }))
}

/// The first effective level, in words.
fn level_word(levels: &[Option<Durability>]) -> String {
    let first = levels.first().copied().flatten();
    first.map_or_else(|| "-".to_string(), |level| level.to_string())
}

/// Why two arms with these levels cannot be compared: one has a weaker level than the other and so does less. Levels that the user has
/// given to an arm are always compared.
pub(super) fn different_levels(
    (arm, own): (&Arm, &[Option<Durability>]),
    (other, others): (&Arm, &[Option<Durability>]),
) -> Option<String> {
    if own == others || arm.has_own_level() || other.has_own_level() {
        return None;
    }
    Some(format!(
        "{} is at level {}, and {} at level {}: they do different work",
        arm.name,
        level_word(own),
        other.name,
        level_word(others)
    ))
}

/// How arms are compared.
pub(super) struct Turns<'a> {
    /// What is compared.
    pub metrics: &'a [Metric],
    /// The statistics.
    pub options: Options,
    /// The most time that trials take, in seconds.
    pub seconds: f64,
    /// The number of the ops of the first block. Each block has its own.
    pub first: u64,
}

/// What trials in turns have shown.
pub(super) struct Compared {
    /// What is known of each metric and each arm but the first.
    pub findings: Vec<Finding>,
    /// The values of each arm by metric, of all its trials.
    pub values: Vec<Vec<Vec<f64>>>,
    /// Blocks that were run.
    pub blocks: usize,
    /// The trials that failed, with the place of the arm.
    pub failed: Vec<(usize, Failure)>,
    /// Whether it ended because trials failed.
    pub has_given_up: bool,
    /// The time that it took, in seconds.
    pub seconds: f64,
}

impl Turns<'_> {
    /// Runs blocks of trials of arms that were loaded, until all comparisons have a verdict, the time is over, trials fail, or the
    /// user interrupts it. Progress is printed on stderr.
    pub(super) fn run(&self, arms: &[&Arm]) -> Result<Compared, CliError> {
        let metrics = self.metrics;
        let paired = Paired::new(arms.len(), metrics.len(), self.options);
        let mut paired = paired.map_err(|error| CliError::usage(error.to_string()))?;
        let mut values = vec![vec![Vec::new(); metrics.len()]; arms.len()];
        let (begin, mut told) = (Instant::now(), Instant::now());
        let mut failed: Vec<(usize, Failure)> = Vec::new();
        let mut failed_in_turn = 0;
        while let Step::Block(order) = paired.next().clone() {
            let is_over = begin.elapsed().as_secs_f64() >= self.seconds;
            if failed_in_turn >= MOST_FAILED {
                eprintln!("trials of {MOST_FAILED} blocks in turn have failed: the comparison ends");
                break;
            }
            if is_over || signals::interrupts() > 0 {
                break;
            }
            let mut block = Vec::new();
            let before = failed.len();
            for place in order {
                // All arms of a block have the same ops.
                let record = match arms[place].trial(self.first + paired.blocks() as u64) {
                    Ok(record) => record,
                    Err(_) if signals::interrupts() > 0 => break,
                    Err(error) => return Err(error),
                };
                let own: Vec<Option<f64>> = metrics.iter().map(|metric| metric.value(&record)).collect();
                if let Some(failure) = metrics.iter().find_map(|metric| phase(&record, &metric.phase).err()) {
                    eprintln!("{}: a trial failed: {}", arms[place].name, failure.text);
                    failed.push((place, failure));
                }
                for (all, value) in values[place].iter_mut().zip(&own) {
                    all.extend(value);
                }
                block.push(own);
            }
            failed_in_turn = if failed.len() > before { failed_in_turn + 1 } else { 0 };
            // An interrupted block does not count.
            if paired.observe(&block).is_err() {
                break;
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                let open = paired.findings().iter().filter(|found| found.is_open).count();
                eprintln!(
                    "{}, {} without a verdict",
                    counted(paired.blocks() as u64, "block", "blocks"),
                    counted(open as u64, "figure", "figures")
                );
            }
        }
        paired.end();
        Ok(Compared {
            findings: paired.findings(),
            values,
            blocks: paired.blocks(),
            failed,
            has_given_up: failed_in_turn >= MOST_FAILED,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests;
