//! The two or three most useful commands after a run.

use super::describe::{cell_name, command, phase_name};
use super::escape::shell_word;
use super::verdict::{Statement, Verdict, verdicts};
use kvdyno_core::results::label::full_name;
use kvdyno_core::results::statistics::FEWEST_FOR_ORDER;
use kvdyno_core::results::summary::{
    BY_ENGINE_TIME, Cell, Failure, Summary, TrialWarning, WITHIN_HARNESS, is_mutant,
};
use kvdyno_core::results::{Cause, Durability, Kind, Run};
use kvdyno_measure::text::{counted, few, listed, plain_text};
use kvdyno_measure::warning::Concern;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// The maximum number of names in a list.
const NAMES: usize = 6;
/// The maximum number of commands.
const LIMIT: usize = 3;
/// More runs than this are unlikely to distinguish engines.
const MOST_RUNS: u32 = 100;

/// A flag of the run's command with its values, to be repeated; for `--option`, only the values of one engine.
pub(super) fn given(run: &Run, flag: &str, engine: &str) -> String {
    let start = if engine.is_empty() { String::new() } else { format!("{engine}.") };
    let own = values(run, flag).filter(|value| value.starts_with(&start));
    own.map(|value| match value.starts_with('-') {
        true => format!(" {}", shell_word(&format!("{flag}={value}"))),
        false => format!(" {flag} {}", shell_word(value)),
    })
    .collect()
}

/// The values of a flag in the run's command.
fn values<'r>(run: &'r Run, flag: &str) -> impl DoubleEndedIterator<Item = &'r str> {
    let words = &run.plan.command;
    let value = move |(place, word): (usize, &'r String)| match word.split_once('=') {
        Some((name, value)) if name == flag => Some(value),
        _ if word == flag => words.get(place + 1).map(String::as_str),
        _ => None,
    };
    words.iter().enumerate().filter_map(value)
}

/// A command to try next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// The command; empty: nothing is to be done, and the purpose says why.
    pub command: String,
    /// Its purpose.
    pub purpose: String,
    /// Its duration, estimated from the durations of the run's trials; none: unknown, or short.
    pub seconds: Option<f64>,
}

impl Step {
    fn short(command: String, purpose: impl Into<String>) -> Step {
        Step { command, purpose: purpose.into(), seconds: None }
    }
}

/// Commands to try next, each with its purpose: at most three, the most useful first.
pub(crate) fn next_steps(summary: &Summary, run: &Run) -> Vec<(String, String)> {
    let others = [absent(summary, run), export()];
    let steps = open_steps(summary, run).into_iter().filter(|step| !step.command.is_empty());
    let steps = steps.chain(others.into_iter().flatten());
    steps.take(LIMIT).map(|step| (step.command, step.purpose)).collect()
}

/// Commands that answer what the run leaves open, the most useful first.
pub(super) fn open_steps(summary: &Summary, run: &Run) -> Vec<Step> {
    let is_known = (summary.runs as usize) >= FEWEST_FOR_ORDER;
    let narrowed = || narrow(summary, run).filter(|_| is_known);
    let decided = decide(summary, run).or_else(narrowed).or_else(|| as_equal(summary).filter(|_| is_known));
    let fault = more_time(summary, run).or_else(|| find_fault(summary, run));
    // What was short would be short again.
    [end_shortage(summary, run), go_on(summary, run), fault, decided, more_runs(summary, run)]
        .into_iter()
        .flatten()
        .collect()
}

/// A workload, an engine and its options.
type Name<'a> = (&'a str, &'a str, &'a [(String, String)]);

/// The time of a run with this number of runs of these engines (none: of all), in seconds, if its trials take as long as those
/// of this run; none: no trial of one of them was completed.
fn seconds(summary: &Summary, engines: Option<&[&Cell]>, runs: u32) -> Option<f64> {
    // The sum of the durations of a cell's trials, and their number.
    let mut cells: HashMap<Name, (f64, f64)> = HashMap::new();
    for record in &summary.records {
        let trial = &record.trial;
        let is_of = |cell: &&Cell| cell.engine == trial.engine && cell.options == trial.options;
        let is_wanted = engines.is_none_or(|engines| engines.iter().any(is_of));
        if is_wanted || trial.is_floor {
            let known = cells.entry((&trial.workload.name, &trial.engine, &trial.options)).or_default();
            if let Some(noise) = &record.noise {
                *known = (known.0 + noise.elapsed_ns as f64 / 1e9, known.1 + 1.0);
            }
        }
    }
    let means = cells.into_values().map(|(sum, trials)| (trials > 0.0 && sum > 0.0).then_some(sum / trials));
    let all = means.collect::<Option<Vec<f64>>>().filter(|means| !means.is_empty())?;
    Some(all.iter().sum::<f64>() * f64::from(runs))
}

fn go_on(summary: &Summary, run: &Run) -> Option<Step> {
    let missing = counted(summary.pending.into(), "trial is left", "trials are left");
    let results = values(run, "--results").next_back().unwrap_or("kvdyno-results");
    let folder = shell_word(&Path::new(results).join(&run.id).display().to_string());
    let step =
        Step::short(format!("{} --resume={folder}", command(run)), format!("resume this run: {missing}"));
    // A slice is resumed with its plan, whose file only the user knows.
    let is_resumed = run.campaign.is_none() && !run.plan.has_several_load_generators();
    (summary.pending > 0 && is_resumed).then_some(step)
}

/// More time for the answers of a server, if a trial ended because one was late: that is no fault of the engine.
fn more_time(summary: &Summary, run: &Run) -> Option<Step> {
    const SECONDS: u32 = 120;
    let is_late = |text: &str| text.contains("(option timeout)");
    let failure = summary.failures.iter().find(|failure| is_late(&failure.cause) && !failure.is_unfit)?;
    let option = format!("{}.timeout=", failure.engine);
    let is_set = run.plan.command.iter().any(|word| word.contains(&option));
    (!is_set).then(|| {
        Step::short(
            format!("{} --option {option}{SECONDS}", command(run)),
            format!("give the server {SECONDS} s for an answer, if the machine was busy"),
        )
    })
}

/// What to change before the run is repeated, if a trial was short of something.
fn end_shortage(summary: &Summary, run: &Run) -> Option<Step> {
    let limit = |flag: &str, value: &str, what: &str| {
        let purpose = format!("raise the limit on {what} in this shell, then repeat the run");
        Some(Step::short(format!("ulimit -{flag} {value}"), purpose))
    };
    let elsewhere = |what: &str| {
        let purpose = format!("repeat the run with the databases in DIR, on a file system with more {what}");
        Some(Step::short(with_flags(run, &[("--data", "DIR".to_string())]), purpose))
    };
    summary.failures.iter().find_map(|failure| match failure.kind? {
        Cause::NoSpace => elsewhere("space"),
        Cause::NoInodes => elsewhere("inodes"),
        Cause::TooManyFiles => limit("n", "65536", "open files"),
        // The limit of a control group is not one of the shell.
        Cause::TooManyProcesses if failure.cause.contains("(pids.max)") => None,
        Cause::TooManyProcesses => limit("u", "unlimited", "processes and threads"),
        Cause::AddressSpace if failure.cause.contains("(ulimit -d)") => limit("d", "unlimited", "data"),
        Cause::AddressSpace => limit("v", "unlimited", "address space"),
        Cause::FileTooLarge => limit("f", "unlimited", "the size of a file"),
        Cause::OutOfMemory => Some(more_memory(summary, run, &failure.trial)),
        _ => None,
    })
}

/// Twice the cap of a trial, or the machine's memory if it had none.
fn more_memory(summary: &Summary, run: &Run, trial: &str) -> Step {
    let record = summary.records.iter().find(|record| record.trial.id == trial);
    match record.and_then(|record| record.trial.workload.memory_bytes) {
        Some(bytes) => Step::short(
            with_flags(run, &[("--memory", (2 * bytes).to_string())]),
            "repeat the run with twice as much memory",
        ),
        None => Step::short("kvdyno doctor".into(), "show how much memory is available"),
    }
}

/// Whether the cause is in the engine, as far as that is known: not a limit, and nothing that the machine is short of.
fn is_of_engine(failure: &Failure) -> bool {
    let is_outside = |cause: Cause| cause.is_shortage() || cause == Cause::Interrupted;
    !is_mutant(&failure.engine) && !failure.is_unfit && !failure.kind.is_some_and(is_outside)
}

fn find_fault(summary: &Summary, run: &Run) -> Option<Step> {
    let failure = summary.failures.iter().find(|failure| is_of_engine(failure))?;
    let engine = shell_word(&failure.engine);
    Some(Step::short(
        format!(
            "kvdyno prove --only rules {engine}{}{}",
            given(run, "--plugins", ""),
            given(run, "--option", &failure.engine)
        ),
        format!("check {engine}, which failed in a trial"),
    ))
}

/// The number of runs after which an engine is expected to be distinguished from the first of the leaders, if its ratio to that
/// one and the noise stay as they are: an interval gets narrower by the root of the number of runs. `None`: its interval is
/// not known.
fn runs_needed(cell: &Cell) -> Option<f64> {
    let ratio = cell.ratio?;
    let interval = ratio.interval?;
    let (difference, reach) = (ratio.value.ln(), (interval.high.ln() - interval.low.ln()) / 2.0);
    let runs = f64::from(cell.counted_runs);
    let needed = (runs * (reach / difference).powi(2)).ceil();
    Some(needed.max(runs + 1.0).max(FEWEST_FOR_ORDER as f64))
}

/// The same for all other leaders, if none of them is unknown, or what is usual.
fn runs_of_leaders(verdict: &Verdict, runs: u32) -> Vec<f64> {
    let is_base = verdict.leaders[0].ratio.is_some_and(|base| base.value == 1.0 && base.interval.is_none());
    let others = verdict.leaders[1..].iter().map(|cell| runs_needed(cell).filter(|_| is_base));
    let usual = if (runs as usize) < FEWEST_FOR_ORDER { FEWEST_FOR_ORDER as u32 } else { runs * 2 };
    others.map(|needed| needed.unwrap_or_else(|| usual.into())).collect()
}

/// The rankings in which some engines share the first place, those that can be decided by more runs: if the difference in ops/s
/// is due to the harness, more runs would not help.
fn open_verdicts(summary: &Summary) -> Vec<Verdict<'_>> {
    let marks = [BY_ENGINE_TIME, WITHIN_HARNESS];
    let is_by_harness = |cells: &[&Cell]| {
        cells.iter().flat_map(|cell| &cell.notes).any(|note| marks.contains(&note.mark.as_str()))
    };
    let mut all = verdicts(summary);
    all.retain(|verdict| (2..=4).contains(&verdict.leaders.len()) && !is_by_harness(&verdict.leaders));
    all
}

/// More runs of engines that share the first place of a ranking, with the same settings: of the ranking with the most engines
/// that as many runs as are sane can decide.
fn decide(summary: &Summary, run: &Run) -> Option<Step> {
    let open = open_verdicts(summary);
    let needed = |verdict: &Verdict| {
        let most = runs_of_leaders(verdict, summary.runs).into_iter().fold(0.0, f64::max);
        (most <= f64::from(MOST_RUNS)).then_some(most as u32)
    };
    let decidable = open.iter().filter_map(|verdict| Some((verdict, needed(verdict)?)));
    // A load only if nothing else is open; the first of those with equally many.
    let size =
        |(verdict, _): &(&Verdict, u32)| (!verdict.phase.settings.is_fill(), verdict.group.cells.len());
    let (found, runs) = decidable.rev().max_by_key(size)?;
    let names: Vec<String> = found.leaders.iter().map(|cell| typed(run, cell)).collect::<Option<_>>()?;
    Some(Step {
        command: with_flags(run, &[("--engines", names.join(",")), ("--runs", runs.to_string())]),
        purpose: format!(
            "find out which of these engines is the fastest in {}{}",
            plain_text(&found.phase.name),
            quietly(summary)
        ),
        seconds: seconds(summary, Some(&found.leaders), runs),
    })
}

/// That more runs would be no use, if they are all that is open.
fn as_equal(summary: &Summary) -> Option<Step> {
    let open = open_verdicts(summary);
    let size = |verdict: &&Verdict| (!verdict.phase.settings.is_fill(), verdict.group.cells.len());
    let found = open.iter().rev().max_by_key(size)?;
    let names: Vec<String> = found.leaders.iter().map(|cell| cell_name(cell)).collect();
    let text = format!(
        "more runs are unlikely to distinguish {} in {} (over {MOST_RUNS} needed)",
        listed(&names, "and"),
        phase_name(found.phase)
    );
    Some(Step::short(String::new(), text))
}

/// The word that selects an engine with its options in `--engines`, beside the `--option` flags of the run's command; `None`:
/// no word does, because commas separate the words.
fn typed(run: &Run, cell: &Cell) -> Option<String> {
    let is_flag = |option: &str| {
        let start = format!("{}.{option}=", cell.engine);
        let mut words = run.plan.command.iter().map(|word| word.strip_prefix("--option=").unwrap_or(word));
        words.any(|word| word.starts_with(&start))
    };
    let own: Vec<_> = cell.options.iter().filter(|(option, _)| !is_flag(option)).cloned().collect();
    let name = full_name(&cell.engine, &own);
    (!name.contains(',')).then_some(name)
}

/// The run's command, with these flags replaced.
fn with_flags(run: &Run, flags: &[(&str, String)]) -> String {
    let mut kept: Vec<String> = Vec::new();
    let is_set = |word: &str| {
        let word = if word == "-e" { "--engines" } else { word };
        flags.iter().any(|(flag, _)| word == *flag)
    };
    let mut words = run.plan.command.iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((flag, _)) if is_set(flag) => {}
            _ if is_set(word) => _ = words.next(),
            // Few engines need no race.
            _ if word == "--race" && is_set("--engines") => {}
            _ => kept.push(shell_word(word)),
        }
    }
    if kept.len() < 2 {
        kept = ["kvdyno", "run", "quick"].map(String::from).to_vec();
    }
    kept.extend(flags.iter().flat_map(|(flag, value)| [flag.to_string(), shell_word(value)]));
    kept.join(" ")
}

/// Engines that have no level as weak as the others have, and the command that compares all of them.
pub(crate) fn apart(summary: &Summary, run: &Run) -> Option<String> {
    let mut levels: BTreeMap<Durability, BTreeSet<String>> = BTreeMap::new();
    // A phase that requests `power` compares them already.
    let phases = summary.phases.iter().filter(|phase| phase.durability_requested < Durability::Power);
    let groups = phases.flat_map(|phase| &phase.groups).filter(|group| group.kind == Kind::Embedded);
    for group in groups {
        levels.entry(group.durability_effective).or_default().extend(group.cells.iter().map(cell_name));
    }
    let power = levels.remove(&Durability::Power)?;
    let weaker: Vec<String> = levels.keys().map(ToString::to_string).collect();
    let is_weaker = |name: &String| levels.values().any(|names| names.contains(name));
    let only: Vec<String> = power.into_iter().filter(|name| !is_weaker(name)).collect();
    let command = with_flags(run, &[("--durability", "power".to_string())]);
    (!weaker.is_empty() && !only.is_empty()).then(|| {
        plain_text(&format!(
            "{} ran at power, the others at {}; to compare at power: {command}",
            few(&only, NAMES, "and"),
            listed(&weaker, "and")
        ))
    })
}

fn more_runs(summary: &Summary, run: &Run) -> Option<Step> {
    let few = (summary.runs as usize) < FEWEST_FOR_ORDER;
    few.then(|| Step {
        command: with_flags(run, &[("--runs", FEWEST_FOR_ORDER.to_string())]),
        purpose: "get enough runs to name a winner".to_string(),
        seconds: seconds(summary, None, FEWEST_FOR_ORDER as u32),
    })
}

/// More runs of all engines, if several may be the fastest.
fn narrow(summary: &Summary, run: &Run) -> Option<Step> {
    let is_open = |verdict: &Verdict| match &verdict.statement {
        Statement::Leaders { by_harness, .. } | Statement::NoDifference { by_harness } => {
            by_harness.is_empty()
        }
        _ => false,
    };
    let all = verdicts(summary);
    let open = all.iter().filter(|verdict| is_open(verdict));
    let mut needed: Vec<f64> = open
        .flat_map(|verdict| runs_of_leaders(verdict, summary.runs))
        .filter(|runs| *runs <= MOST_RUNS.into())
        .collect();
    needed.sort_by(f64::total_cmp);
    // Half of them are distinguished by then.
    let runs = *needed.get(needed.len() / 2)? as u32;
    Some(Step {
        command: with_flags(run, &[("--runs", runs.to_string())]),
        purpose: format!("narrow the ranks{}", quietly(summary)),
        seconds: seconds(summary, None, runs),
    })
}

/// ` on a quieter machine`, if other programs disturbed many trials.
fn quietly(summary: &Summary) -> &'static str {
    let concerns = [Concern::Steal, Concern::OtherWork, Concern::Load];
    let is_noise = |found: &TrialWarning| concerns.iter().any(|concern| concern.id() == found.warning.id);
    let trials = summary.warnings.iter().filter(|found| is_noise(found)).map(|found| found.trials).max();
    match trials {
        Some(trials) if trials as usize * 2 > summary.records.len() => " on a quieter machine",
        _ => "",
    }
}

fn absent(summary: &Summary, run: &Run) -> Option<Step> {
    let number = counted(summary.absent.len() as u64, "engine", "engines");
    (!summary.absent.is_empty()).then(|| {
        Step::short(
            format!("kvdyno engines{}", given(run, "--plugins", "")),
            format!("show how to install the {number} not available on this machine"),
        )
    })
}

fn export() -> Option<Step> {
    Some(Step::short(
        "kvdyno report --format csv".to_string(),
        "export the figures of every run for a spreadsheet",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::statistics::Interval;
    use kvdyno_core::results::summary::Ratio;
    use kvdyno_core::results::{Cause, Outcome, fixture};

    #[test]
    fn the_flags_that_find_an_engine_are_repeated() {
        let mut run = fixture::run();
        let words = "kvdyno run quick --plugins a --option one.x=1 --option=two.y=2 --plugins=b --runs 3";
        run.plan.command = words.split(' ').map(String::from).collect();
        assert_eq!(given(&run, "--plugins", ""), " --plugins a --plugins b");
        assert_eq!(given(&run, "--option", "two"), " --option two.y=2");
        assert_eq!(
            given(&run, "--option", "on"),
            "",
            "not the options of an engine whose name begins with it"
        );
    }

    #[test]
    fn a_command_for_a_few_engines_is_no_race() {
        let mut run = fixture::run();
        let with = |run: &Run, flag: &str, value: &str| with_flags(run, &[(flag, value.to_string())]);
        run.plan.command =
            "kvdyno run quick --race --engines all --runs 9".split(' ').map(String::from).collect();
        assert_eq!(with(&run, "--engines", "lmdb,redb"), "kvdyno run quick --runs 9 --engines lmdb,redb");
        assert_eq!(with(&run, "--runs", "20"), "kvdyno run quick --race --engines all --runs 20");
    }

    #[test]
    fn a_server_that_answers_late_gets_more_time_and_is_not_verified() {
        let steps = |words: &str| {
            let (mut run, mut records) = (fixture::run(), fixture::records());
            run.plan.command = words.split(' ').map(String::from).collect();
            let of_lmdb = records.iter_mut().filter(|record| record.trial.engine == "lmdb");
            for record in of_lmdb {
                let text = "phase load: put: no answer within 30s (option timeout)".to_string();
                record.outcome = Outcome::Failed { cause: Cause::EngineError, text };
            }
            next_steps(&Summary::new(&run, records), &run)
        };
        let has = |steps: &[(String, String)], start: &str| {
            steps.iter().any(|(command, _)| command.starts_with(start))
        };
        let longer = steps("kvdyno run quick");
        assert!(has(&longer, "kvdyno run quick --option lmdb.timeout=120"), "{longer:?}");
        assert!(!has(&longer, "kvdyno prove --only rules"), "{longer:?}");
        let long = steps("kvdyno run quick --option lmdb.timeout=200");
        assert!(has(&long, "kvdyno prove --only rules lmdb"), "{long:?}");
    }

    #[test]
    fn engines_are_named_with_the_options_that_no_flag_sets() {
        let mut run = fixture::run();
        let words = "kvdyno run quick --option lmdb.x=1 --option=lmdb.y=2";
        run.plan.command = words.split(' ').map(String::from).collect();
        let typed = |engine: &str, options: &[(&str, &str)]| {
            let mut cell = Summary::new(&run, fixture::records()).phases[0].groups[0].cells[0].clone();
            let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            (cell.engine, cell.options) = (engine.to_string(), options.iter().map(owned).collect());
            typed(&run, &cell)
        };
        assert_eq!(typed("lmdb", &[("x", "1"), ("y", "2")]).as_deref(), Some("lmdb"));
        assert_eq!(typed("lmdb", &[("x", "1"), ("z", "3")]).as_deref(), Some("lmdb (z=3)"));
        assert_eq!(typed("lmdb-system", &[("x", "1")]).as_deref(), Some("lmdb-system (x=1)"));
        assert_eq!(typed("lmdb", &[("a", "1"), ("b", "2")]), None, "a comma would split it");
    }

    /// The rate of an engine that has `ratio` times the rate of lmdb, with the same noise of 4 %.
    fn noisy(engine: &str, run: u32, ratio: f64) -> f64 {
        const NOISE: [f64; 5] = [0.04, -0.03, 0.01, -0.05, 0.03];
        let (of, shift) = if engine == "lmdb" { (1.0, 1) } else { (ratio, 2) };
        of * (1.0 + NOISE[(run as usize * shift) % NOISE.len()])
    }

    fn next_of(scale: fn(&str, u32) -> f64) -> Vec<Step> {
        let (summary, run) = crate::tests::scaled(&["lmdb", "sqlite"], 5, scale);
        open_steps(&summary, &run)
    }

    #[test]
    fn next_has_the_runs_that_the_open_pair_needs() {
        let runs = |steps: &[Step]| -> u32 {
            let (_, runs) = steps[0].command.split_once("--runs ").unwrap();
            runs.parse().unwrap()
        };
        let (close, far) = (
            runs(&next_of(|engine, run| noisy(engine, run, 0.96))),
            runs(&next_of(|engine, run| noisy(engine, run, 0.93))),
        );
        assert!(5 < far && far < close && close <= MOST_RUNS, "{far} and {close} runs");
        // By hand: 5 x (ln(1.157 / 0.7) / 2 / ln(0.9))^2 = 28.4.
        let mut cell = Summary::new(&fixture::run(), fixture::records()).phases[0].groups[0].cells[0].clone();
        let interval = Some(Interval { low: 0.7, high: 1.157, level: 0.95 });
        (cell.counted_runs, cell.ratio) = (5, Some(Ratio { value: 0.9, interval, p: None }));
        assert_eq!(runs_needed(&cell), Some(29.0));
    }

    #[test]
    fn engines_that_would_need_over_a_hundred_runs_are_not_run_again() {
        let steps = next_of(|engine, run| noisy(engine, run, 1.0));
        assert_eq!(steps[0].command, "", "{steps:?}");
        assert!(steps[0].purpose.starts_with("more runs are unlikely to distinguish "), "{steps:?}");
        assert!(steps[0].purpose.ends_with(" (over 100 needed)"), "{steps:?}");
    }

    #[test]
    fn each_shortage_has_a_step_that_ends_it_and_none_blames_the_engine() {
        let step = |cause: Cause, text: &str| {
            let run = fixture::run();
            let mut records = fixture::records();
            for record in &mut records {
                record.outcome = Outcome::Failed { cause, text: text.into() };
            }
            let steps = next_steps(&Summary::new(&run, records), &run);
            assert!(steps.iter().all(|(command, _)| !command.contains("verify")), "{steps:?}");
            steps[0].0.clone()
        };
        for (cause, text, wanted) in [
            (Cause::NoSpace, "short", " --data DIR"),
            (Cause::NoInodes, "short", " --data DIR"),
            (Cause::TooManyFiles, "short", "ulimit -n 65536"),
            (Cause::TooManyProcesses, "short", "ulimit -u unlimited"),
            (Cause::AddressSpace, "short", "ulimit -v unlimited"),
            (Cause::AddressSpace, "the limit of 1 GiB on data is reached (ulimit -d)", "ulimit -d unlimited"),
            (Cause::FileTooLarge, "short", "ulimit -f unlimited"),
            (Cause::OutOfMemory, "short", "kvdyno doctor"),
        ] {
            let first = step(cause, text);
            assert!(cause.is_shortage() && first.ends_with(wanted), "{cause}: {first}");
        }
    }
}
