//! The race of a run: which runs are one, and what happens after each look.

use super::error::CliError;
use super::request::RunArgs;
use crate::live::Live;
use kvdyno_core::results::Plan;
use kvdyno_core::results::race::{FEWEST_BLOCKS, FEWEST_ENGINES, Look, Race, after_look, trials_until_look};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::runner::{self, Ending, Entry, RunError, Runner};
use kvdyno_measure::text::counted;
use std::path::Path;

/// The race of a new run; none: all its trials are run as planned. Refuses a run that cannot be one.
pub(super) fn of_run(
    args: &RunArgs,
    entries: &[Entry],
    has_load_generators: bool,
) -> Result<Option<Race>, CliError> {
    if !args.race {
        return Ok(None);
    }
    let refused = |what: &str| CliError::usage(format!("--race needs {what}")).hint("omit --race");
    let [Entry { workload, contestants, .. }] = entries else { return Err(refused("one workload")) };
    if has_load_generators {
        return Err(refused("a single load generator"));
    }
    if workload.phases.iter().any(|phase| phase.each_round) {
        return Err(refused("a workload without rounds"));
    }
    if contestants.iter().filter(|contestant| !contestant.is_floor).count() < FEWEST_ENGINES {
        return Err(refused(&format!("{FEWEST_ENGINES} or more engines")));
    }
    if workload.runs < FEWEST_BLOCKS {
        return Err(refused(&format!("{FEWEST_BLOCKS} or more runs (--runs)")));
    }
    Ok(Some(Race::new(workload.runs)))
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
    use kvdyno_core::results::race::{Beaten, Standing};

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
