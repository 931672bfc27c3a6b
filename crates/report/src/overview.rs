//! The report on one screen, for a terminal: a matrix for each workload, a line for each question, the most important
//! warnings, what failed or was skipped, and what to do next.

mod troubles;

use super::data_to_memory;
use super::describe::{machine_brief, runs};
use super::grid;
use super::member_faults;
use super::next::{apart, open_steps};
use super::staleness;
use super::text::{self, Screen, WIDTH};
use super::verdict::{brief, brief_legend};
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::text::{counted, plain_text, wrapped};
use std::collections::HashSet;

/// The maximum number of lines of the verdict.
const VERDICTS: usize = 8;
/// The maximum number of lines about faults, and of those about stale reads.
const FAULTS: usize = 12;
/// Where the rest of shortened lists is.
const ELSEWHERE: &str = "in all tables (--full)";
/// The workload of `kvdyno` without arguments, which stands for no program.
const MIXTURE: &str = "quick";
/// What does stand for one.
const OWN: &str = "for your own program: kvdyno choose, or a scenario like kvdyno run web";
/// The usual maximum number of next steps.
const STEPS: usize = 2;
/// The number of lines of a screen, without the two that the command prints below.
const LINES: usize = 58;

/// How much of what the report has, too, is on the screen.
#[derive(Clone, Copy)]
struct Extent {
    /// Whether empty lines are between the parts.
    has_gaps: bool,
    /// The maximum number of next steps.
    steps: usize,
    /// Whether warnings and failures that change no conclusion are there, and not only counted.
    has_details: bool,
    /// Whether the verdict says by how much the engines behind several leaders are slower.
    has_margins: bool,
}

/// From the usual one to the least. None leaves out what changes the conclusion.
const EXTENTS: [Extent; 5] = [
    Extent { has_gaps: true, steps: STEPS, has_details: true, has_margins: true },
    Extent { has_gaps: false, steps: STEPS, has_details: true, has_margins: true },
    Extent { has_gaps: false, steps: 1, has_details: true, has_margins: true },
    Extent { has_gaps: false, steps: 1, has_details: false, has_margins: true },
    Extent { has_gaps: false, steps: 1, has_details: false, has_margins: false },
];

/// Renders it: with the first extent that fits the lines of a screen, or else with the least.
pub fn overview(summary: &Summary, run: &Run, screen: Screen) -> String {
    let mut text = String::new();
    for extent in EXTENTS {
        text = of_extent(summary, run, screen, extent);
        if text.lines().count() <= LINES {
            break;
        }
    }
    text
}

fn of_extent(summary: &Summary, run: &Run, screen: Screen, extent: Extent) -> String {
    let screen = Screen { width: screen.width.max(Screen::NARROWEST), ..screen };
    let prose = Prose { width: screen.width.min(WIDTH) };
    let mut parts = vec![prose.lines("", &[title(summary, run), machine_brief(run)])];
    parts.extend(grid::blocks(summary).into_iter().map(|block| text::block(block, screen)));
    parts.push(data_to_memory::blocks(summary).into_iter().map(|block| text::block(block, screen)).collect());
    parts.push(prose.part(&verdict_title(summary), &prose.verdict(summary, run, extent.has_margins)));
    parts.push(
        prose.part(
            "Faults",
            &prose.capped(member_faults::brief(summary), FAULTS, "other line", "other lines"),
        ),
    );
    parts.push(
        prose.part(
            "Stale reads",
            &prose.capped(staleness::brief(summary), FAULTS, "other line", "other lines"),
        ),
    );
    let (title, warnings) = troubles::warnings(summary, extent.has_details);
    parts.push(prose.part(&title, &warnings));
    let failures = troubles::failures(summary, run, &prose, extent.has_details);
    parts.push(prose.part("Failed or skipped", &failures));
    let (title, steps) = next(summary, run, extent.steps);
    parts.push(prose.part(&title, &steps));
    parts.retain(|part| !part.is_empty());
    parts.join(if extent.has_gaps { "\n" } else { "" })
}

/// `run 2026-...: 5 runs of 16 engines, 85 of 85 trials recorded`.
fn title(summary: &Summary, run: &Run) -> String {
    let compared = run.plan.trials.iter().filter(|trial| !trial.is_floor);
    let engines: HashSet<_> = compared.map(|trial| (&trial.engine, &trial.options)).collect();
    plain_text(&format!(
        "run {}: {} of {}, {} of {} trials recorded",
        run.id,
        runs(summary),
        counted(engines.len() as u64, "engine", "engines"),
        summary.records.len(),
        run.plan.trials.len()
    ))
}

/// `Verdict`, and how to read its lines where they need it.
fn verdict_title(summary: &Summary) -> String {
    brief_legend(summary).map_or_else(|| "Verdict".to_string(), |legend| format!("Verdict ({legend})"))
}

/// Lines of prose.
struct Prose {
    width: usize,
}

impl Prose {
    /// The length of a text that fits two lines, however its words break.
    fn two_lines(&self) -> usize {
        2 * self.width - 30
    }

    /// Lines, wrapped.
    fn lines(&self, margin: &str, lines: &[String]) -> String {
        let next = format!("{margin}  ");
        lines.iter().map(|line| wrapped(margin, &next, line, self.width)).collect()
    }

    /// A title with its lines; empty without lines.
    fn part(&self, title: &str, lines: &[String]) -> String {
        match lines.is_empty() {
            true => String::new(),
            false => wrapped("", "  ", &format!("{title}:"), self.width) + &self.lines("  ", lines),
        }
    }

    /// The lines up to a maximum, and how many others there are.
    fn capped(&self, mut lines: Vec<String>, limit: usize, one: &str, many: &str) -> Vec<String> {
        if lines.len() > limit {
            let others = counted((lines.len() + 1 - limit) as u64, one, many);
            lines.truncate(limit - 1);
            lines.push(format!("{others}: {ELSEWHERE}"));
        }
        lines
    }

    fn verdict(&self, summary: &Summary, run: &Run, has_margins: bool) -> Vec<String> {
        let mut lines =
            self.capped(brief(summary, has_margins), VERDICTS, "other question", "other questions");
        lines.extend(apart(summary, run));
        lines
    }
}

/// What would answer open questions: the command, its purpose and its duration. The title says where users of the standard mixture
/// find an answer for their own program, and where the steps are that the usual screen has beyond `most`.
fn next(summary: &Summary, run: &Run, most: usize) -> (String, Vec<String>) {
    let line = |step: super::next::Step| {
        let time = step.seconds.map_or_else(String::new, |seconds| format!(" (about {})", duration(seconds)));
        let command = if step.command.is_empty() { String::new() } else { format!(": {}", step.command) };
        format!("{}{time}{command}", step.purpose)
    };
    let steps: Vec<String> = open_steps(summary, run).into_iter().map(line).collect();
    let is_mixture = summary.phases.iter().all(|phase| phase.workload == MIXTURE);
    let own = is_mixture.then(|| OWN.to_string());
    let others = steps.len().min(STEPS).saturating_sub(most);
    let others =
        (others > 0).then(|| format!("{} with --full", counted(others as u64, "other step", "other steps")));
    let about: Vec<String> = own.into_iter().chain(others).collect();
    let title = if about.is_empty() { "Next".to_string() } else { format!("Next ({})", about.join("; ")) };
    (title, steps.into_iter().take(most).collect())
}

/// `40 s`, `4 min`, `2.5 h`.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{:.0} s", seconds.max(1.0)),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests;
