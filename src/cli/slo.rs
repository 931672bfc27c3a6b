//! `kvdyno slo`: the highest rate of requests at which each engine keeps limits such as p99<1ms.

mod probe;
mod table;

use super::error::CliError;
use super::plugins::{executable, registry, warn};
use super::request::{Request, SubjectArgs};
use super::trials::{Failure, Kept, TrialArgs, Trials, interrupted, remove_kept};
use kvdyno_core::results::now_rfc3339;
use kvdyno_core::runner::{Contestant, Entry};
use kvdyno_core::workload::{Phase, Workload};
use kvdyno_load::search::{Limits, Metric, Options, Outcome, Purpose, Search, Step};
use kvdyno_measure::signals;
use kvdyno_measure::text::{counted, parse_seconds};
use kvdyno_report::rate_curves;
use probe::{Closed, Probes, Seen};
use std::path::{Path, PathBuf};

/// Rates of the curve, as parts of the rate that holds; those up to it are rows of the table.
const PARTS: [f64; 5] = [0.5, 0.7, 0.9, 1.1, 1.3];
/// The parts that are in the table.
const SHOWN: usize = 3;

/// Find the highest rate of requests at which each engine keeps a limit, such as p99<1ms.
///
/// Requests arrive at random moments (a Poisson process), and the limits are on response times, from the moment of a request to its
/// answer. Each engine is loaded once, and measured for some seconds at each of up to 12 rates. The figures are those of a longer run
/// at the rate that was found, never those of the search (see docs/load.md).
#[derive(Debug, clap::Args)]
pub(super) struct SloArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// The limits that a rate must keep, separated by commas: p50, p90, p95, p99, p99.9, p99.99 or max of response times, `errors`
    /// (a share of requests that were dropped) or `backlog` (requests that wait at the end).
    #[arg(long, value_name = "LIMITS", required = true)]
    slo: Limits,
    /// The phase to search with, if the workload has several that are not loads.
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// The usual length of a probe. Near the limit it is up to three times as long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = at_least_ten)]
    probe: f64,
    /// The usual length of the run that confirms a rate. It is up to four times as long if that makes the answer closer.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = at_least_ten)]
    confirm: f64,
    /// Output format: text or csv.
    #[arg(long, default_value = "text", value_name = "text|csv")]
    format: table::Form,
    #[command(flatten)]
    trials: TrialArgs,
}

/// Rows are seconds, and how much they differ tells how much a percentile is worth: fewer than ten tell too little.
fn at_least_ten(text: &str) -> Result<f64, String> {
    let seconds = parse_seconds(text).map_err(|error| error.to_string())?;
    if seconds < 10.0 { Err("expected 10 s or more".into()) } else { Ok(seconds) }
}

/// An engine and its search.
struct Subject {
    /// Its entry: the workload and this engine alone.
    entry: Entry,
    /// Its name in tables, with its options.
    name: String,
    /// Its kept database.
    kept: Kept,
    /// Its closed loop; none: it failed.
    closed: Option<Closed>,
    search: Search,
    /// All rates that were measured, and what was seen.
    seen: Vec<Seen>,
    /// Why it was given up; none: it was not.
    failure: Option<Failure>,
}

/// Searches, prints the table, and writes the chart.
pub(super) fn run(args: SloArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    let base = args.trials.of_run(args.subject, args.trials.changes.clone())?;
    let ignored = base.changes.lengths().into_iter().chain(base.subject.same_ops.then_some("--same-ops"));
    let ignored = ignored.chain(base.changes.ages().then_some("--age"));
    if let Some(flag) = ignored.into_iter().next() {
        let text = format!("{flag}: slo chooses the lengths, the runs and the ops itself");
        return Err(CliError::usage(text).hint("omit it; --probe and --confirm set the lengths"));
    }
    if base.changes.has_rate() {
        return Err(CliError::usage("slo finds the rate itself").hint("omit --rate"));
    }
    let registry = registry(plugins, &base.subject.engines)?;
    warn(&registry, &base.subject.engines);
    let Request { entries, settings, notes, .. } = Request::new(&base, &registry, None)?;
    let mut entries = entries;
    // The null engine is no answer.
    entries.iter_mut().for_each(|entry| entry.contestants.retain(|one| !one.is_floor));
    let [entry] = entries.as_mut_slice() else {
        return Err(CliError::usage("slo searches with one workload at a time"));
    };
    let place = keep_measured(&mut entry.workload, args.phase.as_deref())?;
    if entry.contestants.is_empty() {
        return Err(CliError::usage("no engine is left to search with").hint("name engines with --engines"));
    }
    notes.iter().for_each(|note| eprintln!("{note}"));
    signals::count_interrupts();
    let folder = args.trials.new_folder("slo", &entry.workload.name);
    std::fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
    let trials = Trials {
        name: "slo",
        base: *base,
        executable: executable()?,
        registry: &registry,
        settings,
        folder: folder.clone(),
        command,
        plugins,
        tells_warnings: true,
    };
    let phase = entry.workload.phases[place].name.clone();
    let probes = Probes { trials, place, phase, runs: Default::default() };
    let options = Options {
        seed: entry.workload.seed,
        probe_seconds: args.probe,
        confirm_seconds: args.confirm,
        ..Options::default()
    };
    let found = search(&probes, entry, &args.slo, &options);
    remove_kept(&folder);
    let subjects = found?;
    let code =
        subjects.iter().filter_map(|subject| subject.failure.as_ref()).map(|failure| failure.code).max();
    let workload = &entry.workload;
    print!("{}", table::print(args.format, workload, place, &args.slo, &subjects));
    curves(args.format, &folder, workload, place, &args.slo, &subjects)?;
    eprintln!("runs: {}", folder.display());
    Ok(code.unwrap_or(0))
}

/// Removes the phases that are neither loads nor the one to search with, and returns the place of that one.
fn keep_measured(workload: &mut Workload, name: Option<&str>) -> Result<usize, CliError> {
    let measured = |phase: &&Phase| !phase.is_fill();
    let names: Vec<String> =
        workload.phases.iter().filter(measured).map(|phase| phase.name.clone()).collect();
    let own = match (name, names.as_slice()) {
        (Some(name), _) if names.iter().any(|known| known == name) => name.to_string(),
        (Some(name), _) => {
            let text =
                format!("--phase: workload {} has no phase `{name}` that is not a load", workload.name);
            return Err(CliError::usage(text).hint(format!("use one of {}", names.join(", "))));
        }
        (None, [one]) => one.clone(),
        (None, _) => {
            let text = format!(
                "workload {} has {}: slo needs a workload with one that is not a load",
                workload.name,
                counted(names.len() as u64, "such phase", "measured phases")
            );
            let hint =
                if names.is_empty() { "use one such as ycsb-b" } else { "name one of them with --phase" };
            return Err(CliError::usage(text).hint(hint));
        }
    };
    workload.phases.retain(|phase| phase.is_fill() || phase.name == own);
    let found = workload.phases.iter().position(|phase| phase.name == own);
    let place = found.expect("the phase with this name was kept");
    let phase = &workload.phases[place];
    if phase.readers + phase.writers > 0 || phase.each_round {
        let text =
            format!("phase {} has readers, writers or rounds, which slo cannot send at a rate", phase.name);
        return Err(CliError::usage(text).hint("use a workload whose threads share a mix, such as ycsb-b"));
    }
    Ok(place)
}

/// Searches with all engines in turns, so that a machine that becomes slower slows all of them, then measures the curves.
fn search(
    probes: &Probes,
    entry: &Entry,
    limits: &Limits,
    options: &Options,
) -> Result<Vec<Subject>, CliError> {
    let mut subjects = Vec::new();
    for (place, contestant) in entry.contestants.iter().enumerate() {
        let own = Entry { contestants: vec![contestant.clone()], ..entry.clone() };
        let name = named(contestant);
        let (kept, found) = probes.load(&own, place, options.probe_seconds)?;
        let (closed, failure) = match found {
            Ok(closed) => (Some(closed), None),
            Err(failure) => (None, Some(failure)),
        };
        match (&closed, &failure) {
            (Some(closed), _) => eprintln!("{name}: closed loop {}/s", table::rate(closed.ops_per_second)),
            (_, Some(failure)) => eprintln!("{name}: {}", failure.text),
            (None, None) => {}
        }
        let capacity = closed.as_ref().map_or(0.0, |closed| closed.ops_per_second);
        let search = Search::new(limits.clone(), capacity, options.clone());
        subjects.push(Subject { entry: own, name, kept, closed, search, seen: Vec::new(), failure });
    }
    while signals::interrupts() == 0 {
        let mut is_open = false;
        for subject in &mut subjects {
            let Step::Probe { rate, seconds, purpose } = *subject.search.next() else { continue };
            if subject.failure.is_some() || signals::interrupts() > 0 {
                continue;
            }
            is_open = true;
            match measure(probes, subject, limits, rate, seconds)? {
                Ok(seen) => {
                    let observation = seen.observation.clone();
                    subject.search.observe(observation).expect("it asked for this probe, with its limits");
                    subject.seen.push(seen);
                }
                Err(failure) => subject.failure = Some(failure),
            }
            progress(subject, purpose);
        }
        if !is_open {
            break;
        }
    }
    // One part of all engines after the other.
    for part in PARTS {
        for subject in &mut subjects {
            let Some(rate) = subject.rate().filter(|_| signals::interrupts() == 0) else { continue };
            match measure(probes, subject, limits, rate * part, options.probe_seconds)? {
                Ok(seen) => subject.seen.push(Seen { part: Some(part), ..seen }),
                Err(failure) => eprintln!("{}: {}", subject.name, failure.text),
            }
        }
    }
    if signals::interrupts() > 0 {
        return Err(interrupted());
    }
    Ok(subjects)
}

fn measure(
    probes: &Probes,
    subject: &Subject,
    limits: &Limits,
    rate: f64,
    seconds: f64,
) -> Result<Result<Seen, Failure>, CliError> {
    probes.at_rate(&subject.entry, &subject.kept, limits, rate, seconds)
}

/// The name of an engine with its options.
fn named(contestant: &Contestant) -> String {
    let options: Vec<String> =
        contestant.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match options.is_empty() {
        true => contestant.engine.clone(),
        false => format!("{} ({})", contestant.engine, options.join(", ")),
    }
}

/// A line about the last probe of an engine.
fn progress(subject: &Subject, purpose: Purpose) {
    if let Some(failure) = &subject.failure {
        eprintln!("{}: {}", subject.name, failure.text);
        return;
    }
    let Some(seen) = subject.seen.last() else { return };
    let what = match purpose {
        Purpose::Bracket => "bracket",
        Purpose::Narrow => "narrow",
        Purpose::Confirm => "confirm",
    };
    let times = match &seen.unfit {
        Some(unfit) => unfit.clone(),
        None => format!("response p99 {}", table::time(seen.response(99, 100))),
    };
    eprintln!("{}: {what} {}/s: {times}", subject.name, table::rate(seen.rate));
    if let Step::Done(answer) = subject.search.next() {
        eprintln!("{}: {}", subject.name, answer.outcome);
    }
}

impl Subject {
    /// The outcome of its search; none: it has none yet.
    fn outcome(&self) -> Option<&Outcome> {
        match self.search.next() {
            Step::Done(answer) if self.failure.is_none() => Some(&answer.outcome),
            _ => None,
        }
    }

    /// The rate that holds, and the run that has confirmed it.
    fn confirmed(&self) -> Option<(f64, &Seen)> {
        let (rate, confirmation) = match self.outcome()? {
            Outcome::Holds { rate, confirmation, .. } | Outcome::AtLeast { rate, confirmation } => {
                (*rate, *confirmation)
            }
            Outcome::NoAnswer(_) => return None,
        };
        Some((rate, self.seen.get(confirmation)?))
    }

    /// A rate that was kept in a search without an answer.
    fn unconfirmed(&self) -> Option<f64> {
        match self.search.next() {
            Step::Done(answer) if self.failure.is_none() => answer.unconfirmed(),
            _ => None,
        }
    }

    fn rate(&self) -> Option<f64> {
        self.confirmed().map(|(rate, _)| rate)
    }
}

/// Writes the curves of all engines, on a page with the table and as a picture: the percentile of the first limit, or p99.
fn curves(
    form: table::Form,
    folder: &Path,
    workload: &Workload,
    place: usize,
    limits: &Limits,
    subjects: &[Subject],
) -> Result<(), CliError> {
    let (figure, part, of) = match limits.list().first().map(|limit| limit.metric()) {
        Some(Metric::P50) => ("response p50", 1, 2),
        Some(Metric::P90) => ("response p90", 9, 10),
        Some(Metric::P95) => ("response p95", 19, 20),
        Some(Metric::P999) => ("response p99.9", 999, 1_000),
        Some(Metric::P9999) => ("response p99.99", 9_999, 10_000),
        _ => ("response p99", 99, 100),
    };
    let curves: Vec<_> = subjects.iter().map(|subject| table::curve(subject, part, of)).collect();
    if form == table::Form::Text {
        print!("{}", table::drawing(figure, &curves));
    }
    let source = format!("kvdyno {}, {}", env!("CARGO_PKG_VERSION"), now_rfc3339());
    let page = folder.join("slo.html");
    let html = table::page(workload, place, limits, subjects, (figure, &curves), &source);
    std::fs::write(&page, html).map_err(CliError::cannot("write", &page))?;
    eprintln!("page: {}", page.display());
    let Some(svg) = rate_curves(&workload.name, figure, &curves, &source) else { return Ok(()) };
    let file = folder.join("rates.svg");
    std::fs::write(&file, svg).map_err(CliError::cannot("write", &file))?;
    eprintln!("chart: {}", file.display());
    Ok(())
}
