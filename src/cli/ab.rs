//! `kvdyno ab`: whether one build, version or setting of an engine differs from another, by trials in turns.

mod limits;
mod table;

use super::error::{CliError, INCONCLUSIVE, REGRESSION};
use super::trials::{TrialArgs, remove_kept};
use super::turns::{
    ARM, Arm, Compared, Engines, Figure, Given, Metric, Setup, Turns, check_time, different_levels, equal,
    load, minutes, part, percent, short_name, trial_seconds,
};
use kvdyno_change::paired::Options;
use kvdyno_core::workload::Durability;
use kvdyno_measure::signals;
use limits::{Condition, Limit};
use std::io::Write;
use std::path::PathBuf;

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
          help = format!("What to compare with: {ARM}. `durability=LEVEL` sets the level"))]
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
    /// Exit with code 10 or 11 on a condition. `worse`, `rate`, `p99`: 10 if any figure of B, its ops/s or its p99 was shown to be
    /// worse. `'rate>5%'`: the same, if it is worse by more than 5 %, too. `inconclusive`: 11 if that is not known when the time is
    /// over.
    #[arg(long, value_delimiter = ',', value_name = "CONDITION")]
    fail_on: Vec<Condition>,
    /// Exit with code 10 if a figure of B is worse by more than this TOML file allows: a table for each phase (`[run]`), with a line
    /// for each figure (`rate = "5%"`, `p99 = "10%"`).
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Compare A and B even if they are equal, which shows how often equal arms would be called different.
    #[arg(long)]
    allow_equal: bool,
    /// Output format: text, markdown or csv.
    #[arg(long, default_value = "text", value_name = "text|markdown|csv")]
    format: table::Form,
    #[command(flatten)]
    trials: TrialArgs,
}

/// The file for the summary of a job of GitHub Actions, in Markdown.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// What was found.
struct Outcome<'a> {
    workload: String,
    arms: &'a [Arm<'a>],
    metrics: Vec<Metric>,
    compared: Compared,
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
    if let Some((_, arm)) = equal(&all).filter(|_| !args.allow_equal) {
        return Err(CliError::usage(format!(
            "two arms are equal: `{}` with the same options",
            all[arm].subject()
        ))
        .hint("name two builds, settings or levels; --allow-equal compares equal arms"));
    }
    let folder = args.trials.new_folder("ab", &short_name(&args.workload));
    let setup = Setup {
        name: "ab",
        workload: &args.workload,
        seconds: args.trial,
        trials: &args.trials,
        folder: &folder,
        plugins,
        command: &command,
    };
    let phases = setup.phases()?;
    let metrics = metrics(&phases);
    let limits = args.limits(&metrics)?;
    if !limits.is_empty() {
        check_time([all.len(), metrics.len(), phases.len()], args.trial, args.minutes * 60.0)?;
    }
    let engines = all.iter().map(|given| Engines::of(given, plugins)).collect::<Result<Vec<_>, _>>()?;
    signals::count_interrupts();
    let make = |(place, given): (usize, &&Given)| Arm::new(&setup, given, &engines[place], place);
    let arms = all.iter().enumerate().map(make).collect::<Result<Vec<_>, _>>()?;
    std::fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
    let found = compare(&args, &arms, metrics);
    remove_kept(&folder);
    let outcome = found?;
    print!("{}", table::print(args.format, &outcome));
    append_summary(&outcome);
    eprintln!("trials: {}", folder.display());
    if signals::interrupts() > 0 {
        return Ok(signals::stopped_code());
    }
    // As in a run, a failed trial is told by the exit code although there are figures.
    if let Some(code) = outcome.compared.failed.iter().map(|(_, failure)| failure.code).max() {
        return Ok(code);
    }
    let judged = limits::judge(&limits, &outcome.metrics, &outcome.compared);
    judged.broken.iter().for_each(|line| eprintln!("worse: {line}"));
    judged.inconclusive.iter().for_each(|line| eprintln!("inconclusive: {line}"));
    Ok(if !judged.broken.is_empty() {
        REGRESSION
    } else if !judged.inconclusive.is_empty() && args.fail_on.contains(&Condition::Inconclusive) {
        INCONCLUSIVE
    } else {
        0
    })
}

impl AbArgs {
    /// The limits, refused if these trials cannot judge them.
    fn limits(&self, metrics: &[Metric]) -> Result<Vec<Limit>, CliError> {
        let mut limits = self.limits.as_deref().map(limits::read).transpose()?.unwrap_or_default();
        for condition in &self.fail_on {
            if let Condition::Worse(limit) = condition {
                limits.push(limit.clone());
            }
        }
        if limits.is_empty() && !self.fail_on.is_empty() {
            return Err(CliError::usage(
                "--fail-on inconclusive: there is no figure that must not become worse",
            )
            .hint("add `worse` or --limits"));
        }
        limits.iter().try_for_each(|limit| limit.check(metrics, self.until))?;
        Ok(limits)
    }
}

/// Appends the verdicts to the summary of the job, if there is one. A summary that cannot be written does not change the result.
fn append_summary(outcome: &Outcome) {
    let Some(file) = std::env::var_os(SUMMARY).filter(|file| !file.is_empty()).map(PathBuf::from) else {
        return;
    };
    let mut opened = std::fs::OpenOptions::new();
    let opened = opened.append(true).create(true).open(&file);
    let text = table::print(table::Form::Markdown, outcome);
    match opened.and_then(|mut opened| opened.write_all(text.as_bytes())) {
        Ok(()) => eprintln!("summary: {}", file.display()),
        Err(error) => eprintln!("warning: cannot write the summary to {}: {error}", file.display()),
    }
}

/// The figures that are compared: ops/s and p99 of each phase. At a rate that all keep, ops/s say nothing.
fn metrics(phases: &[(String, bool)]) -> Vec<Metric> {
    let both = phases.iter().flat_map(|(phase, at_rate)| {
        let figures: &[Figure] = if *at_rate { &[Figure::P99] } else { &[Figure::Rate, Figure::P99] };
        figures.iter().map(|figure| Metric { phase: phase.clone(), figure: *figure })
    });
    both.collect()
}

/// Loads each arm once, then runs blocks of trials.
fn compare<'a>(args: &AbArgs, arms: &'a [Arm<'a>], metrics: Vec<Metric>) -> Result<Outcome<'a>, CliError> {
    let mut levels = Vec::new();
    for arm in arms {
        let loaded = load(arm, &metrics)?.map_err(|failure| {
            let mut error = CliError::failed(format!("{}: {}", arm.name, failure.text));
            error.code = failure.code;
            error
        })?;
        levels.push(loaded.levels);
    }
    let others = arms.iter().zip(&levels).skip(1);
    let different = others
        .filter_map(|(arm, own)| different_levels((&arms[0], &levels[0]), (arm, own.as_slice())))
        .next();
    if let Some(text) = different {
        return Err(CliError::usage(text).hint(
            "set a level that both have with --durability, or compare two levels with ENGINE:durability=LEVEL",
        ));
    }
    let options = Options {
        seed: arms[0].seed(),
        margin: args.same_within,
        until: args.until / 2.0,
        ..Options::default()
    };
    let turns = Turns { metrics: &metrics, options, seconds: args.minutes * 60.0, first: 2 };
    let compared = turns.run(&arms.iter().collect::<Vec<_>>())?;
    Ok(Outcome {
        workload: arms[0].workload().to_string(),
        arms,
        metrics,
        compared,
        options,
        levels: levels.iter().map(|own| own.first().copied().flatten()).collect(),
    })
}
