//! `kvdyno ab`: whether one build, version or setting of an engine differs from another, by trials in turns.

pub(super) mod arm;
mod table;

use super::error::{CliError, REGRESSION};
use super::trials::{Failure, TrialArgs, phase, remove_kept};
use arm::{Arm, Engines, Given};
use kvdyno_change::paired::{Finding, Options, Paired, Step, Verdict};
use kvdyno_core::results::{PhaseRecord, Record};
use kvdyno_core::workload::Durability;
use kvdyno_measure::text::{counted, parse_seconds};
use kvdyno_measure::{Histogram, signals};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// If so many blocks in turn have a failed trial, the comparison ends.
const MOST_FAILED: usize = 3;
const SPEC: &str = "an engine or a plug-in (libkvdyno_NAME.so), with options: ENGINE[:NAME=VALUE,...]";

/// Compare builds, versions or settings of engines by short trials in turns, with one error for all verdicts.
///
/// A block runs A and B once each, in an order that is drawn, with the same ops. Blocks are repeated until every figure has a
/// verdict, or the time is over. Other programs on the machine, and a machine that becomes slower, disturb A and B alike (see
/// docs/changes.md).
#[derive(Debug, clap::Args)]
pub(super) struct AbArgs {
    /// The workload: a name (see `kvdyno workloads`) or a TOML file.
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    #[arg(long, value_name = "ARM", required = true,
          help = format!("What to compare with: {SPEC}. `durability=LEVEL` sets the level"))]
    a: Given,
    /// What is compared with A, in the same form. Can be given more than once.
    #[arg(long, value_name = "ARM", required = true)]
    b: Vec<Given>,
    /// The length of each measured phase in a trial. Many short trials decide more than a few long ones.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = trial_seconds)]
    trial: f64,
    /// The most minutes that trials take.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = minutes)]
    minutes: f64,
    /// End when every figure has a verdict, or an interval that is no wider than this.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = part)]
    until: f64,
    /// Figures that differ by at most this are the same.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = part)]
    same_within: f64,
    /// Exit with code 10 if a figure of B is worse.
    #[arg(long, value_name = "worse")]
    fail_on: Option<FailOn>,
    /// Compare A and B even if they are equal, which shows how often equal arms would be called different.
    #[arg(long)]
    allow_equal: bool,
    /// Output format: text or csv.
    #[arg(long, default_value = "text", value_name = "text|csv")]
    format: table::Form,
    #[command(flatten)]
    trials: TrialArgs,
}

/// When the exit code is not 0 although all trials ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
enum FailOn {
    Worse,
}

fn trial_seconds(text: &str) -> Result<f64, String> {
    let seconds = parse_seconds(text).map_err(|error| error.to_string())?;
    if (0.1..=3600.0).contains(&seconds) { Ok(seconds) } else { Err("expected 0.1 s to 1 h".into()) }
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| (0.1..=1440.0).contains(minutes));
    minutes.ok_or_else(|| "expected 0.1 to 1440".to_string())
}

/// `2%` or `0.02`.
fn part(text: &str) -> Result<f64, String> {
    let found = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse::<f64>().ok(),
    };
    let part = found.filter(|part| (0.001..=0.5).contains(part));
    part.ok_or_else(|| "expected 0.1% to 50%, such as 2%".to_string())
}

/// A figure of a phase that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Metric {
    phase: String,
    figure: Figure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Rate,
    P99,
}

/// What was found.
struct Outcome<'a> {
    workload: String,
    arms: &'a [Arm<'a>],
    metrics: Vec<Metric>,
    findings: Vec<Finding>,
    /// The values of each arm by metric, of all its trials.
    values: Vec<Vec<Vec<f64>>>,
    blocks: usize,
    /// The trials that failed.
    failed: Vec<Failure>,
    seconds: f64,
    options: Options,
    /// The effective level of each arm in the first phase.
    levels: Vec<Option<Durability>>,
}

/// Runs the blocks and prints the verdicts.
pub(super) fn run(args: AbArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    if let Some(flag) = args.trials.changes.lengths().first() {
        return Err(CliError::usage(format!("{flag}: ab sets the length and the number of trials itself"))
            .hint("omit it; --trial, --minutes and --until set them"));
    }
    let all: Vec<&Given> = std::iter::once(&args.a).chain(&args.b).collect();
    if !args.allow_equal {
        arm::check_different(&all)?;
    }
    let engines = all.iter().map(|given| Engines::of(given, plugins)).collect::<Result<Vec<_>, _>>()?;
    signals::count_interrupts();
    let folder = args.trials.new_folder("ab", &arm::short_name(&args.workload));
    let make = |(place, given): (usize, &&Given)| {
        Arm::new(&args, given, &engines[place], place, &folder, plugins, &command)
    };
    let arms = all.iter().enumerate().map(make).collect::<Result<Vec<_>, _>>()?;
    std::fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
    let found = compare(&args, &arms);
    remove_kept(&folder);
    let outcome = found?;
    print!("{}", table::print(args.format, &outcome));
    eprintln!("trials: {}", folder.display());
    if signals::interrupts() > 0 {
        return Ok(signals::stopped_code());
    }
    // As in a run, a failed trial is told by the exit code although there are figures.
    if let Some(code) = outcome.failed.iter().map(|failure| failure.code).max() {
        return Ok(code);
    }
    let is_worse =
        outcome.findings.iter().any(|found| is_worse(&outcome.metrics[found.metric], found.verdict));
    Ok(if args.fail_on == Some(FailOn::Worse) && is_worse { REGRESSION } else { 0 })
}

/// Whether a verdict says that the arm is worse than A.
fn is_worse(metric: &Metric, verdict: Verdict) -> bool {
    match metric.figure {
        Figure::Rate => verdict == Verdict::Lower,
        Figure::P99 => verdict == Verdict::Higher,
    }
}

/// Loads each arm once, then runs blocks of trials.
fn compare<'a>(args: &AbArgs, arms: &'a [Arm<'a>]) -> Result<Outcome<'a>, CliError> {
    let mut levels: Vec<Vec<Option<Durability>>> = Vec::new();
    let metrics = arms[0].metrics();
    for arm in arms {
        // The trial that loads the database counts as none: the files of later ones are copies.
        let record = arm.load()?;
        let mut own = Vec::new();
        for metric in &metrics {
            let found = phase(&record, &metric.phase).map_err(|failure| {
                let mut error = CliError::failed(format!("{}: {}", arm.name, failure.text));
                error.code = failure.code;
                error
            })?;
            own.push(found.durability_effective);
        }
        levels.push(own);
        eprintln!("{}: loaded", arm.name);
    }
    check_levels(arms, &levels)?;
    let options = Options {
        seed: arms[0].seed(),
        margin: args.same_within,
        until: args.until / 2.0,
        ..Options::default()
    };
    let wrong = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    let mut paired = Paired::new(arms.len(), metrics.len(), options).map_err(|error| wrong(&error))?;
    let mut values = vec![vec![Vec::new(); metrics.len()]; arms.len()];
    let (begin, mut told) = (Instant::now(), Instant::now());
    let mut failed: Vec<Failure> = Vec::new();
    let mut failed_in_turn = 0;
    while let Step::Block(order) = paired.next().clone() {
        let is_over = begin.elapsed().as_secs_f64() >= args.minutes * 60.0;
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
            // Both arms of a block have the same ops.
            let record = match arms[place].trial(paired.blocks() as u64 + 2) {
                Ok(record) => record,
                Err(_) if signals::interrupts() > 0 => break,
                Err(error) => return Err(error),
            };
            let own: Vec<Option<f64>> = metrics.iter().map(|metric| value(&record, metric)).collect();
            if let Some(failure) = metrics.iter().find_map(|metric| phase(&record, &metric.phase).err()) {
                eprintln!("{}: a trial failed: {}", arms[place].name, failure.text);
                failed.push(failure);
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
    Ok(Outcome {
        workload: arms[0].workload().to_string(),
        arms,
        findings: paired.findings(),
        metrics,
        values,
        blocks: paired.blocks(),
        failed,
        seconds: begin.elapsed().as_secs_f64(),
        options,
        levels: levels.iter().map(|own| own.first().copied().flatten()).collect(),
    })
}

/// Refuses arms of which one has a weaker level than the other and so does less, unless their levels were given.
fn check_levels(arms: &[Arm], levels: &[Vec<Option<Durability>>]) -> Result<(), CliError> {
    for (arm, own) in arms.iter().zip(levels).skip(1) {
        if *own == levels[0] || arm.has_own_level() || arms[0].has_own_level() {
            continue;
        }
        let word = |levels: &[Option<Durability>]| {
            let first = levels.first().copied().flatten();
            first.map_or_else(|| "-".to_string(), |level| level.to_string())
        };
        return Err(CliError::usage(format!(
            "{} is at level {}, and {} at level {}: they do different work",
            arms[0].name,
            word(&levels[0]),
            arm.name,
            word(own)
        ))
        .hint("set the same level with --durability, or compare two levels with ENGINE:durability=LEVEL"));
    }
    Ok(())
}

/// The value of a figure in a trial; none: it is unknown, or the trial failed.
fn value(record: &Record, metric: &Metric) -> Option<f64> {
    let found = phase(record, &metric.phase).ok()?;
    match metric.figure {
        Figure::Rate => found.ops_per_second(),
        Figure::P99 => p99(found).filter(|ns| *ns > 0.0),
    }
}

/// The p99 of response times where requests arrive at a rate, else of service times, nanoseconds; none: too few are known, or they
/// are not those of the engine at the rate.
fn p99(found: &PhaseRecord) -> Option<f64> {
    let times = match &found.arrivals {
        Some(arrivals) => {
            let response = found.times(|kind| &kind.response_ns);
            if arrivals.unfit(&response).is_some() {
                return None;
            }
            response
        }
        None => {
            let mut all = Histogram::empty();
            found.kinds.iter().for_each(|kind| all.merge(&kind.service_ns));
            all
        }
    };
    times.quantile_if_enough(99, 100).map(|ns| ns as f64)
}

#[cfg(test)]
mod tests;
