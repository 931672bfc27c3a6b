//! Verdicts in words: a sentence for each phase and level, and a short line for each question.

use super::{By, Lead, Statement, Verdict, verdicts};
use crate::describe::{all_threads, cell_name, p99_words, phase_name};
use crate::figure;
use kvdyno_core::results::statistics::FEWEST_FOR_ORDER;
use kvdyno_core::results::summary::{Cell, Group, Summary};
use kvdyno_core::results::{Durability, Kind};
use kvdyno_measure::text::{few, listed, plain_text, share_text};

const NONE_COMPLETE: &str =
    "every engine is contradicted, or has runs that failed, are incomplete or doubtful";

/// What is said if no contestant was measured.
const REFERENCES_ONLY: &str = "only references of kvdyno were measured, which have no rank among libraries";

/// What several leaders in a line mean, for the title of the lines.
const ONE_OF: &str = "A or B: one of them is the fastest, and the other ranked engines are slower";

/// The maximum number of leaders that a line names.
const NAMED: usize = 6;
/// A lead of less would be printed as 1.00.
const LEAST_SHOWN: f64 = 1.01;
/// The maximum number of leaders about whose order a line tells more.
const TOLD: usize = 4;

/// The verdicts, phase by phase and level by level; a verdict may be that the runs are inconclusive.
///
/// The word winner appears only if one engine is surely ahead of all others in the same ranking.
pub(crate) fn verdict(summary: &Summary) -> Vec<String> {
    let all = verdicts(summary);
    let mut lines = Vec::new();
    for phase in &summary.phases {
        let name = phase_name(phase);
        for verdict in all.iter().filter(|verdict| std::ptr::eq(verdict.phase, phase)) {
            lines.push(format!("{name}, level {}: {}", verdict.group.name(), sentence(verdict)));
        }
        let is_reference = |group: &Group| group.kind == Kind::Reference;
        if phase.groups.is_empty() {
            lines.push(format!("{name}: no engine was measured."));
        } else if phase.groups.iter().all(is_reference) {
            lines.push(format!("{name}: {REFERENCES_ONLY}."));
        }
    }
    if lines.is_empty() {
        lines.push("Nothing was measured.".to_string());
    }
    lines
}

fn sentence(verdict: &Verdict) -> String {
    let without = match names(&verdict.unranked).as_slice() {
        [] => String::new(),
        names => format!(" (without a rank: {})", listed(names, "and")),
    };
    match &verdict.statement {
        Statement::NoneRanked => format!("inconclusive: {NONE_COMPLETE}{without}."),
        Statement::Only => format!("{} is the only ranked engine{without}.", cell_name(verdict.leaders[0])),
        Statement::TooFewRuns(runs) => format!("inconclusive: {}{without}.", too_few(*runs)),
        Statement::Winner(lead) => {
            format!("{}{without}.{}", winner(verdict, lead), harness_bound(verdict))
        }
        Statement::Leaders { by_harness, .. } | Statement::NoDifference { by_harness } => {
            format!("{}{without}.", open(verdict, by_harness))
        }
    }
}

pub(super) fn names(cells: &[&Cell]) -> Vec<String> {
    cells.iter().map(|cell| cell_name(cell)).collect()
}

/// `3 runs show no order, at least 5 runs are needed`.
fn too_few(runs: u32) -> String {
    let shown = if runs == 1 { "a single run shows".to_string() } else { format!("{runs} runs show") };
    format!("{shown} no order, at least {FEWEST_FOR_ORDER} runs are needed")
}

/// One engine is surely ahead of all other ranked engines.
fn winner(verdict: &Verdict, lead: &Lead) -> String {
    let (winner, next) = (cell_name(verdict.leaders[0]), cell_name(lead.next));
    let ratio = match lead.by {
        By::Times { value, interval, .. } => {
            let range = interval.map_or_else(String::new, |interval| {
                format!(" ({})", figure::ratio_range(interval.low, interval.high))
            });
            let ratio = figure::ratio(value);
            match lead.next.arrived {
                Some(_) => format!(": the response p99 of {next} is {ratio} times as high{range}"),
                None => format!(", {ratio} times as fast as {next}{range}"),
            }
        }
        By::EngineTime => format!(", ahead of {next} by the time inside the engines"),
        By::Unknown => format!(", ahead of {next}"),
    };
    match verdict.is_beaten() {
        true => format!("of the ranked engines {winner} is the fastest{ratio}"),
        false => format!("the winner is {winner}{ratio}"),
    }
}

/// Several engines may be the fastest.
fn open(verdict: &Verdict, by_harness: &[&Cell]) -> String {
    let others = match verdict.slower {
        0 => String::new(),
        1 => "; the other engine is slower".to_string(),
        others => format!("; the other {others} engines are slower"),
    };
    let harness = match names(by_harness).as_slice() {
        [] => String::new(),
        names => format!(
            "; the harness may be why {} has more ops/s than {}",
            cell_name(verdict.leaders[0]),
            listed(names, "and")
        ),
    };
    let leaders = listed(&names(&verdict.leaders), "and");
    format!("inconclusive: the fastest is one of {leaders}{others}{harness}")
}

/// A note on the winner if the harness took a large share of its time.
fn harness_bound(verdict: &Verdict) -> String {
    verdict.harness_share().map_or_else(String::new, |share| {
        format!(
            " The harness took {} of its time, so the engine itself is faster than shown.",
            share_text(share)
        )
    })
}

/// A line for each question, in the order of the phases; questions that no table with several engines answers are last. Without
/// `has_margins`, lines with several leaders do not say by how much the others are slower.
pub(crate) fn brief(summary: &Summary, has_margins: bool) -> Vec<String> {
    let all = verdicts(summary);
    if all.is_empty() {
        let has_any = summary.phases.iter().any(|phase| !phase.groups.is_empty());
        return vec![if has_any { REFERENCES_ONLY } else { "nothing was measured" }.to_string()];
    }
    let compared = || all.iter().filter(|verdict| verdict.statement != Statement::Only);
    if let Some(lines) = nothing_shown(&compared().collect::<Vec<_>>()) {
        return lines;
    }
    let mut questions: Vec<&str> = Vec::new();
    for verdict in compared().chain(&all) {
        if !questions.contains(&verdict.question.as_str()) {
            questions.push(&verdict.question);
        }
    }
    let of = |question: &str| {
        let own: Vec<&Verdict> = all.iter().filter(|verdict| verdict.question == question).collect();
        plain_text(&format!("{question}{}: {}", places(&own), answer(&own, has_margins)))
    };
    questions.into_iter().map(of).collect()
}

/// What the lines of [`brief`] do not say themselves; none: no line needs it.
pub(crate) fn brief_legend(summary: &Summary) -> Option<&'static str> {
    let has_leaders = |verdict: &Verdict| matches!(verdict.statement, Statement::Leaders { .. });
    verdicts(summary).iter().any(has_leaders).then_some(ONE_OF)
}

/// One line for all questions, if too few runs or too many failures leave all of them open.
fn nothing_shown(compared: &[&Verdict]) -> Option<Vec<String>> {
    if !compared.is_empty() && compared.iter().all(|verdict| verdict.statement == Statement::NoneRanked) {
        return Some(vec![format!("inconclusive: {NONE_COMPLETE}")]);
    }
    let runs = |verdict: &&Verdict| match verdict.statement {
        Statement::TooFewRuns(runs) => Some(runs),
        _ => None,
    };
    let most = compared.iter().map(runs).collect::<Option<Vec<u32>>>()?.into_iter().max()?;
    Some(vec![format!("inconclusive: {}", too_few(most))])
}

/// The phases of a question, if they are few: ` (read)`.
fn places(own: &[&Verdict]) -> String {
    let mut phases: Vec<&str> = Vec::new();
    for verdict in own {
        if !phases.contains(&verdict.phase.name.as_str()) {
            phases.push(&verdict.phase.name);
        }
    }
    match phases.as_slice() {
        [one] => format!(" ({one})"),
        [one, other] => format!(" ({one}, {other})"),
        all => format!(" ({} phases)", all.len()),
    }
}

/// The answer of all verdicts on a question, level by level.
fn answer(own: &[&Verdict], has_margins: bool) -> String {
    let mut levels: Vec<String> = Vec::new();
    for verdict in own {
        let name = verdict.group.name();
        if !levels.contains(&name) {
            levels.push(name);
        }
    }
    let of = |level: &String| {
        let at: Vec<&Verdict> =
            own.iter().filter(|verdict| verdict.group.name() == *level).copied().collect();
        (level.clone(), at)
    };
    let mut answers: Vec<(String, Vec<&Verdict>)> = levels.iter().map(of).collect();
    // A level with a single engine compares nothing; the matrix has it.
    let is_compared = |at: &[&Verdict]| at.iter().any(|verdict| verdict.statement != Statement::Only);
    if answers.iter().any(|(_, at)| is_compared(at)) {
        answers.retain(|(_, at)| is_compared(at));
    }
    // A level needs no name if the question has no other.
    let text = |(level, at): &(String, Vec<&Verdict>)| match levels.len() {
        1 => at_level(at, has_margins),
        _ => format!("at {level}: {}", at_level(at, has_margins)),
    };
    answers.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// The answer at one level: of one phase, or how many phases have the same answer.
fn at_level(at: &[&Verdict], has_margins: bool) -> String {
    if let [verdict] = at {
        return short(verdict, has_margins);
    }
    let mut found: Vec<(String, usize)> = Vec::new();
    for verdict in at {
        let text = summary_of(verdict);
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => found.push((text, 1)),
        }
    }
    // The most frequent answer first.
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let part = |(place, (text, count)): (usize, &(String, usize))| match (place, found.len()) {
        (_, 1) => format!("{text} in all {count} tables"),
        (0, _) => format!("{text} in {count} of {} tables", at.len()),
        _ => format!("{text} in {count}"),
    };
    found.iter().enumerate().map(part).collect::<Vec<_>>().join("; ")
}

/// What a verdict shows, without figures.
fn summary_of(verdict: &Verdict) -> String {
    match &verdict.statement {
        Statement::NoneRanked => "no engine ranked".to_string(),
        Statement::Only => format!("only {} ranked", cell_name(verdict.leaders[0])),
        Statement::TooFewRuns(_) => "too few runs".to_string(),
        Statement::Winner(_) => cell_name(verdict.leaders[0]),
        Statement::Leaders { .. } => one_of(&verdict.leaders),
        Statement::NoDifference { .. } => "no difference shown".to_string(),
    }
}

/// `lmdb or redb`.
fn one_of(leaders: &[&Cell]) -> String {
    few(&names(leaders), NAMED, "or")
}

pub(super) fn short(verdict: &Verdict, has_margins: bool) -> String {
    match &verdict.statement {
        Statement::NoneRanked => format!("inconclusive: {NONE_COMPLETE}"),
        Statement::Only => format!("{} is the only ranked engine", cell_name(verdict.leaders[0])),
        Statement::TooFewRuns(runs) => format!("inconclusive: {}", too_few(*runs)),
        Statement::Winner(lead) => {
            let among = if verdict.is_beaten() { " of the ranked engines" } else { "" };
            format!("{}{among}{}{}", cell_name(verdict.leaders[0]), ahead(lead), p99(verdict))
        }
        Statement::Leaders { lead, by_harness } => {
            let margin = if has_margins { bounded(verdict, lead) } else { String::new() };
            format!("{}{margin}{}", one_of(&verdict.leaders), harness(verdict, by_harness))
        }
        Statement::NoDifference { by_harness } => {
            let engines = few(&names(&verdict.leaders), NAMED, "and");
            format!("no difference shown between {engines}{}{}", limit(verdict), harness(verdict, by_harness))
        }
    }
}

/// By how much a winner is ahead of the next engine; `an unknown margin` if the runs do not exclude that it is hardly ahead.
pub(super) fn ahead(lead: &Lead) -> String {
    let next = cell_name(lead.next);
    match lead.by {
        By::Times { value, interval: Some(interval), .. } if interval.low < LEAST_SHOWN => format!(
            ", ahead of {next} by an unknown margin ({}x, up to {}x)",
            figure::three_digits(value),
            figure::three_digits(interval.high)
        ),
        By::Times { value, interval: Some(interval), .. } => {
            let range = figure::ratio_range(interval.low, interval.high);
            format!(", {}{next} ({range})", lower(value, lead.next))
        }
        By::Times { value, .. } => format!(", {}{next}", lower(value, lead.next)),
        By::EngineTime => format!(", ahead of {next} by the time inside the engines"),
        By::Unknown => format!(", ahead of {next}"),
    }
}

/// `1.53x ahead of `, or `1.53x lower than ` of times.
fn lower(value: f64, next: &Cell) -> String {
    let by = if next.arrived.is_some() { "lower than" } else { "ahead of" };
    format!("{}x {by} ", figure::three_digits(value))
}

/// By how much the first of several leaders is ahead of the fastest other engine, with its name, because the others may be ahead
/// by less. That all others are slower is in [`ONE_OF`].
fn bounded(verdict: &Verdict, lead: &Lead) -> String {
    match lead.by {
        By::Times { value, interval: Some(interval), at_least: Some(times) } if times >= LEAST_SHOWN => {
            let (first, next) = (cell_name(verdict.leaders[0]), cell_name(lead.next));
            let range = figure::ratio_range(interval.low, interval.high);
            format!("; {first} is {}{next} ({range})", lower(value, lead.next))
        }
        _ => String::new(),
    }
}

fn p99(verdict: &Verdict) -> String {
    p99_words(verdict.leaders[0]).map_or_else(String::new, |words| format!("; {words}"))
}

/// A note if the harness may be why the leader has more ops/s than others of a few leaders.
fn harness(verdict: &Verdict, by_harness: &[&Cell]) -> String {
    match names(by_harness).as_slice() {
        names @ [_, ..] if verdict.leaders.len() <= TOLD => {
            let first = cell_name(verdict.leaders[0]);
            format!("; the harness may be why {first} has more ops/s than {}", listed(names, "and"))
        }
        _ => String::new(),
    }
}

/// What limits all engines alike, where the settings of the phase imply it.
fn limit(verdict: &Verdict) -> String {
    let settings = &verdict.phase.settings;
    let is_synced = verdict.group.durability_effective == Durability::Power
        && settings.join <= 1
        && !settings.atomic
        && settings.transaction.is_none()
        && all_threads(verdict.phase) == 1
        && settings.mix.kinds().all(|kind| kind.writes());
    if is_synced { ": each write waits for a sync of the disk".to_string() } else { String::new() }
}
