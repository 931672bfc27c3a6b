//! The race of a run: which runs are one, and what happens after each look.

use super::error::CliError;
use super::redis_benchmark;
use super::request::{NO_REFERENCE, RunArgs};
use crate::live::Live;
use kvdyno_core::results::Plan;
use kvdyno_core::results::race::{FEWEST_BLOCKS, FEWEST_ENGINES, Look, Race, after_look, trials_until_look};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::summary::is_mutant;
use kvdyno_core::runner::{self, Ending, Entry, RunError, Runner};
use kvdyno_measure::text::counted;
use std::path::Path;

/// The race of a new run, which is one where it can be; none: all its trials are run as planned. Refuses --race where it cannot.
pub(super) fn of_run(
    args: &RunArgs,
    entries: &[Entry],
    has_load_generators: bool,
) -> Result<Option<Race>, CliError> {
    if args.fixed || (!args.race && is_about_each(args, entries)) {
        return Ok(None);
    }
    match possible(entries, has_load_generators) {
        Ok(race) => Ok(Some(race)),
        Err(needed) if args.race => {
            Err(CliError::usage(format!("--race needs {needed}")).hint("omit --race"))
        }
        Err(_) => Ok(None),
    }
}

/// The race of a run of these entries, or what it lacks.
fn possible(entries: &[Entry], has_load_generators: bool) -> Result<Race, String> {
    let [Entry { workload, contestants, .. }] = entries else { return Err("one workload".into()) };
    if has_load_generators {
        return Err("a single load generator".into());
    }
    if workload.phases.iter().any(|phase| phase.each_round) {
        return Err("a workload without rounds".into());
    }
    if workload.phases.iter().any(|phase| phase.rate.is_some()) {
        return Err("a workload without a rate".into());
    }
    let ranked = contestants.iter().filter(|one| !one.is_floor && !is_mutant(&one.engine)).count();
    if ranked < FEWEST_ENGINES {
        return Err(format!("{FEWEST_ENGINES} or more engines"));
    }
    if workload.runs < FEWEST_BLOCKS {
        return Err(format!("{FEWEST_BLOCKS} or more runs (--runs)"));
    }
    Ok(Race::new(workload.runs))
}

/// Whether the figures of every engine are wanted, not only which is the fastest: databases are kept or reused, a reference compares
/// machines, clusters have several sizes, or all runs go into a layout or are repeated by redis-benchmark.
fn is_about_each(args: &RunArgs, entries: &[Entry]) -> bool {
    let subject = &args.subject;
    args.kept.outlives_trials()
        || subject.reference.as_ref().is_some_and(|name| name != NO_REFERENCE)
        || !subject.nodes.is_empty()
        || !args.layout.is_empty()
        || entries.iter().any(|entry| redis_benchmark::is_of_servers(&entry.workload))
}

/// Runs the trials of a run that have no record yet, and changes the later ones after each look. A changed plan is on disk before
/// its first trial begins.
pub(super) fn run(
    runner: &Runner,
    results: &mut RunFolder,
    data: &Path,
    live: &mut Live,
) -> Result<Ending, RunError> {
    loop {
        let run = results.run().clone();
        let trials = trials_until_look(&run.plan).to_vec();
        let ending = runner::run(&Plan { trials, ..run.plan.clone() }, runner, results, data, live)?;
        if ending == Ending::Interrupted {
            return Ok(ending);
        }
        let Some(plan) = after_look(&run, results.finished()?) else { return Ok(ending) };
        let text = plan.race.as_ref().and_then(|race| race.looks.last()).map(line);
        results.replan(plan)?;
        live.replan(results.run());
        text.iter().for_each(|text| live.message(text));
    }
}

/// `after 3 runs, engines that may still win: read 4 of 14 (3.5 times the seconds), mix 6 of 14; 12 trials are skipped`.
fn line(look: &Look) -> String {
    let phases = |phase: &str| look.tables.iter().filter(|table| table.phase == phase).count();
    let tables = look.tables.iter().map(|table| {
        let group = if phases(&table.phase) > 1 { format!(" ({})", table.group) } else { String::new() };
        let (open, all) = (table.open.len(), table.open.len() + table.beaten.len());
        let longer = match table.length > 1.0 {
            true => format!(" with {} times the seconds", (table.length * 10.0).round() / 10.0),
            false => String::new(),
        };
        format!("{}{group} {open} of {all}{longer}", table.phase)
    });
    let left_out = match look.trials_left_out {
        0 => String::new(),
        count => format!("; {} skipped", counted(count.into(), "later trial is", "later trials are")),
    };
    let tables = tables.collect::<Vec<_>>().join(", ");
    format!("after {} runs, engines that may still win: {tables}{left_out}", look.after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parsed};
    use kvdyno_core::results::race::{Beaten, Standing};
    use kvdyno_core::runner::Contestant;
    use kvdyno_core::workload::{Workload, builtin};

    /// Whether a run with these flags, of these engines on these workloads, is a race; a refusal is its text.
    fn is_race(flags: &str, engines: &[&str], workloads: &[&str]) -> Result<bool, String> {
        let words = ["kvdyno", "run", "quick"].into_iter().chain(flags.split_whitespace());
        let command = parsed(words).map_err(|error| error.to_string())?.command;
        let Command::Run(args) = command else { panic!("{flags}") };
        let contestant = |name: &&str| Contestant {
            engine: name.to_string(),
            options: Vec::new(),
            nodes_option: None,
            is_floor: *name == "null",
            keeps_nothing: true,
        };
        let entry = |name: &&str| Entry {
            workload: Workload { runs: 5, ..builtin(name).unwrap() },
            contestants: engines.iter().map(contestant).collect(),
            load_generators: 1,
        };
        let entries: Vec<Entry> = workloads.iter().map(entry).collect();
        of_run(&args, &entries, false).map(|race| race.is_some()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_is_a_race_where_it_can_be_unless_all_figures_are_wanted() {
        const FOUR: [&str; 5] = ["a", "b", "c", "d", "null"];
        let of = |flags: &str| is_race(flags, &FOUR, &["quick"]);
        for flags in ["", "--race", "--reference none", "--resume", "--quiet --full"] {
            assert_eq!(of(flags), Ok(true), "{flags}");
        }
        for flags in ["--fixed", "--keep k", "--reuse r", "--reference redb", "--nodes 1,3", "--layout wide"]
        {
            assert_eq!(of(flags), Ok(false), "{flags}");
        }
        assert_eq!(of("--race --layout wide"), Ok(true), "it is asked for");
        let others: [(&[&str], &[&str], &str); 3] = [
            (&FOUR[1..], &["quick"], "4 or more engines"),
            (&["a", "b", "c", "mutant:lost-race", "null"], &["quick"], "4 or more engines"),
            (&FOUR, &["quick", "ycsb-a"], "one workload"),
        ];
        for (engines, workloads, needed) in others {
            assert_eq!(is_race("", engines, workloads), Ok(false), "{engines:?}");
            let refused = is_race("--race", engines, workloads).unwrap_err();
            assert!(refused.contains(needed), "{refused}");
        }
    }

    #[test]
    fn flags_that_cannot_be_together_are_refused() {
        for flags in [
            "--race --fixed",
            "--race --keep k",
            "--race --reuse r",
            "--race --reference redb",
            "--race --plan p",
            "--fixed --plan p",
            // Without this, a conflict with what they require would be enough.
            "--foreign --race",
            "--foreign --plan p",
            "--shard 1/2 --race",
            "--shard 1/2 --resume",
            "--shard 1/2 --keep k",
            "--shard 1/2 --dry-run",
        ] {
            assert!(is_race(flags, &[], &["quick"]).is_err(), "{flags}");
        }
    }

    #[test]
    fn a_line_says_how_many_engines_may_still_win_each_phase() {
        let table = |phase: &str, group: &str, open: usize, beaten: usize, length: f64| Standing {
            phase: phase.into(),
            group: group.into(),
            open: vec![String::new(); open],
            beaten: vec![Beaten { engine: String::new(), by: String::new() }; beaten],
            length,
        };
        let tables = vec![
            table("read", "process", 4, 10, 3.5),
            table("mix", "process", 6, 8, 1.0),
            table("mix", "none", 1, 1, 1.0),
        ];
        let look = Look { after: 3, tables, trials_left_out: 12 };
        assert_eq!(
            line(&look),
            "after 3 runs, engines that may still win: read 4 of 14 with 3.5 times the seconds, mix (process) 6 of 14, \
             mix (none) 1 of 2; 12 later trials are skipped"
        );
    }
}
