//! `kvdyno bisect`: which version of an engine is the first one that is slower or larger, by comparisons as in `kvdyno ab`.

mod stage;
mod versions;
mod words;

use super::error::{CliError, INCONCLUSIVE};
use super::trials::{TrialArgs, interrupted, remove_kept};
use super::turns::{
    ARM, Figure, Metric, Setup, Turns, check_time, minutes, part, percent, short_name, trial_seconds,
};
use kvdyno_change::bisect::{Answer, Bisect, Compare, Outcome, Step};
use kvdyno_change::paired::{Finding, Options};
use kvdyno_measure::signals;
use kvdyno_measure::text::listed;
use stage::{Stage, Unfit};
use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use versions::Version;

/// Find the first version of an engine that is slower or larger, by comparisons as in `kvdyno ab`.
///
/// The first version is the good one. Each step compares two versions by short trials in turns, until it is sure which is better or the
/// time is over. The answer states the probability that it is wrong (see docs/changes.md).
#[derive(Debug, clap::Args)]
pub(super) struct BisectArgs {
    /// The workload: a name (see `kvdyno workloads`) or a TOML file.
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    #[arg(long, value_name = "FILE|LIST",
          help = format!("The versions, from the good one to the bad one: a file with a line `NAME ARM` for each, where ARM is {ARM}. \
                          With --build: the names, as a list (1.2.0,1.2.1,1.3.0) or one on each line of a file"))]
    versions: String,
    /// Build a version with this shell command when it is first needed. Its name is in the variable KVDYNO_VERSION, and the last line
    /// that the command prints is the path of the plug-in.
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// What may become worse: ops/s, the p99, or the size of the database after the phase.
    #[arg(long, value_name = "rate|p99|size", default_value = "rate")]
    worse: Figure,
    /// The phase that is compared [default: the last one].
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// The wanted probability that the answer is wrong.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = error)]
    error: f64,
    /// The smallest change that is searched.
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = part)]
    smallest: f64,
    /// The length of each measured phase in a trial. Many short trials decide more than a few long ones.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = trial_seconds)]
    trial: f64,
    /// The most minutes of a comparison of two versions.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = minutes)]
    minutes: f64,
    /// The most minutes of all comparisons and builds. Then the answer is what is known [default: no limit].
    #[arg(long, value_name = "N", value_parser = minutes)]
    all_minutes: Option<f64>,
    #[command(flatten)]
    trials: TrialArgs,
}

/// A probability of an error: `1%` or `0.01`.
fn error(text: &str) -> Result<f64, String> {
    part(text).ok().filter(|part| *part < 0.5).ok_or_else(|| "expected 0.1% to 49%, such as 1%".to_string())
}

/// A comparison of two versions, by their places in the list of the user.
struct Compared {
    base: usize,
    version: usize,
    finding: Finding,
    outcome: Outcome,
    seconds: f64,
}

/// Searches, and prints each step and the answer.
pub(super) fn run(args: BisectArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    if let Some(flag) = args.trials.changes.lengths().first() {
        return Err(CliError::usage(format!(
            "{flag}: bisect sets the length and the number of trials itself"
        ))
        .hint("omit it; --trial and --minutes set them"));
    }
    let versions = versions::read(&args.versions, args.build.is_some())?;
    let folder = args.trials.new_folder("bisect", &short_name(&args.workload));
    let setup = Setup {
        name: "bisect",
        workload: &args.workload,
        seconds: args.trial,
        trials: &args.trials,
        folder: &folder,
        plugins,
        command: &command,
    };
    let phases = setup.phases()?;
    let metric = metric(&args, &phases)?;
    let most = args.all_minutes.map_or(args.minutes, |all| all.min(args.minutes));
    check_time([2, 1, phases.len()], args.trial, most * 60.0)?;
    signals::count_interrupts();
    let engines: Vec<OnceCell<_>> = versions.iter().map(|_| OnceCell::new()).collect();
    let mut stage = Stage::new(setup, &versions, &engines, metric, args.build.as_deref())?;
    std::fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
    let found = search(&args, &versions, &mut stage);
    remove_kept(&folder);
    let code = found?;
    eprintln!("trials: {}", folder.display());
    Ok(code)
}

/// The figure that is compared.
fn metric(args: &BisectArgs, phases: &[(String, bool)]) -> Result<Metric, CliError> {
    let names: Vec<&str> = phases.iter().map(|(name, _)| name.as_str()).collect();
    let found = match &args.phase {
        Some(wanted) => phases.iter().find(|(name, _)| name == wanted).ok_or_else(|| {
            CliError::usage(format!("--phase: {} has no measured phase `{wanted}`", args.workload))
                .hint(format!("its measured phases are {}", listed(&names, "and")))
        })?,
        None => phases.last().ok_or_else(|| {
            CliError::usage(format!("{} only loads data: it has no phase to compare", args.workload))
        })?,
    };
    let (phase, at_rate) = found;
    if *at_rate && args.worse == Figure::Rate {
        return Err(CliError::usage(format!(
            "--worse rate: phase {phase} has a rate, and at a rate that all versions keep, ops/s say nothing"
        ))
        .hint("use --worse p99"));
    }
    Ok(Metric { phase: phase.clone(), figure: args.worse })
}

/// The statistics of a comparison. It ends when the interval shows that there is no change as great as the smallest one that is
/// searched, or a change; an interval that contains 1 and is no wider than that change cannot contain both.
fn options(args: &BisectArgs, seed: u64) -> Options {
    let factor = limit(args.worse, args.smallest).ln().abs().exp();
    Options { seed, margin: factor - 1.0, until: factor.sqrt() - 1.0, ..Options::default() }
}

/// The ratio from which on a version is worse by the smallest change.
fn limit(figure: Figure, smallest: f64) -> f64 {
    if figure.is_worse_if_higher() { 1.0 + smallest } else { 1.0 - smallest }
}

/// What a comparison shows: good, if its interval has no change for the worse that is as great as the smallest; else bad, if a
/// change for the worse was shown.
fn outcome(figure: Figure, smallest: f64, finding: &Finding) -> Outcome {
    let Some(interval) = finding.interval else { return Outcome::Unsure };
    let limit = limit(figure, smallest);
    let reaches = if figure.is_worse_if_higher() { interval.high >= limit } else { interval.low <= limit };
    match (reaches, figure.is_worse(finding.verdict)) {
        (false, _) => Outcome::Good,
        (true, true) => Outcome::Bad,
        (true, false) => Outcome::Unsure,
    }
}

/// Why two versions were not compared.
enum Trouble {
    /// One of the two, 0 or 1, cannot be compared, for this reason.
    Skipped(usize, String),
    /// The time of all comparisons is over.
    Over,
    /// The command ends.
    Ends(CliError),
}

impl From<CliError> for Trouble {
    fn from(error: CliError) -> Trouble {
        Trouble::Ends(error)
    }
}

/// Compares two versions, by their places in the list of the user. `end`: when the time of all comparisons is over.
fn compare(
    args: &BisectArgs,
    stage: &mut Stage,
    places: [usize; 2],
    steps: &[Compared],
    end: Option<Instant>,
) -> Result<Compared, Trouble> {
    for (which, place) in places.into_iter().enumerate() {
        stage.ready(place).map_err(|unfit| match unfit {
            Unfit::Skipped(text) => Trouble::Skipped(which, text),
            Unfit::Ends(error) => Trouble::Ends(error),
        })?;
    }
    let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
    if left.is_zero() {
        return Err(Trouble::Over);
    }
    let (arms, metric) = (stage.arms(places), stage.metric());
    let before: usize = steps.iter().map(|step| step.finding.blocks + step.finding.missing).sum();
    let turns = Turns {
        metrics: std::slice::from_ref(metric),
        options: options(args, arms[0].seed().wrapping_add(steps.len() as u64)),
        seconds: left.as_secs_f64().min(args.minutes * 60.0),
        // No two steps have the same ops, so that one that is asked again is independent.
        first: 2 + before as u64,
    };
    let mut found = turns.run(&arms)?;
    if signals::interrupts() > 0 {
        return Err(Trouble::Ends(interrupted()));
    }
    if found.has_given_up {
        let failures = |which: usize| found.failed.iter().filter(move |(arm, _)| *arm == which);
        let worst = usize::from(failures(0).count() <= failures(1).count());
        let text = failures(worst).map(|(_, failure)| failure.text.as_str()).next().unwrap_or_default();
        return Err(Trouble::Skipped(worst, format!("its trials fail: {text}")));
    }
    let finding = found.findings.remove(0);
    let outcome = outcome(args.worse, args.smallest, &finding);
    Ok(Compared { base: places[0], version: places[1], finding, outcome, seconds: found.seconds })
}

/// Compares versions until there is an answer. Returns the exit code.
fn search(args: &BisectArgs, versions: &[Version], stage: &mut Stage) -> Result<u8, CliError> {
    let wrong = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    let mut bisect = Bisect::new(versions.len(), args.error).map_err(|error| wrong(&error))?;
    let end = args.all_minutes.map(|minutes| Instant::now() + Duration::from_secs_f64(minutes * 60.0));
    // The places of the versions that are in the search.
    let mut left: Vec<usize> = (0..versions.len()).collect();
    let mut steps: Vec<Compared> = Vec::new();
    println!("{}", words::head(args, versions, stage.metric()));
    while let Step::Compare(Compare { base, version }) = *bisect.next() {
        match compare(args, stage, [left[base], left[version]], &steps, end) {
            Ok(step) => {
                bisect.observe(step.outcome, Options::default().alpha).map_err(|error| wrong(&error))?;
                println!("{}", words::step(args, versions, &step));
                steps.push(step);
            }
            Err(Trouble::Skipped(which, text)) => {
                let place = [base, version][which];
                println!("{}: skipped: {text}", versions[left[place]].name);
                bisect.skip(place).map_err(|_| {
                    CliError::failed("fewer than two versions can be compared")
                        .hint("the lines above say what is wrong with the others")
                })?;
                left.remove(place);
            }
            Err(Trouble::Over) => {
                eprintln!("--all-minutes are over");
                bisect.end();
            }
            Err(Trouble::Ends(error)) => return Err(error),
        }
    }
    let Step::Done(answer) = *bisect.next() else { unreachable!("the loop ends with an answer") };
    println!("\n{}", words::answer(args, versions, &left, &steps, answer));
    Ok(match answer {
        Answer::First { .. } | Answer::NoneBad { .. } => 0,
        Answer::Range { .. } | Answer::Unclear => INCONCLUSIVE,
    })
}

#[cfg(test)]
mod tests;
