//! What a search prints: its head, a line for each comparison, and the answer.

use super::versions::Version;
use super::{BisectArgs, Compared, Figure, Metric, limit, percent};
use kvdyno_change::bisect::{Answer, Outcome};
use kvdyno_measure::text::{counted, time_text, wrapped};

/// The width of the answer.
const WIDTH: usize = 120;

/// What a worse version is.
fn worse(figure: Figure) -> &'static str {
    match figure {
        Figure::Rate | Figure::P99 => "slower",
        Figure::Size => "larger",
    }
}

/// What is searched.
pub(super) fn head(args: &BisectArgs, versions: &[Version], metric: &Metric) -> String {
    format!(
        "{}: {} of phase {}, {} versions from {} to {}, changes of {} or more\n",
        args.workload,
        metric.figure.name(),
        metric.phase,
        versions.len(),
        versions[0].name,
        versions[versions.len() - 1].name,
        percent(args.smallest)
    )
}

/// What a comparison has shown.
pub(super) fn step(args: &BisectArgs, versions: &[Version], step: &Compared) -> String {
    let Compared { finding, seconds, .. } = step;
    let worse = worse(args.worse);
    let outcome = match step.outcome {
        Outcome::Bad => worse.to_string(),
        Outcome::Good => format!("not {worse} by {}", percent(args.smallest)),
        Outcome::Unsure => format!("unsure{}", needed(args, step)),
    };
    let ratio = finding.ratio.map_or_else(|| "-".to_string(), |ratio| format!("{ratio:.3}"));
    let interval =
        finding.interval.map(|own| format!(" ({:.3}..{:.3})", own.low, own.high)).unwrap_or_default();
    format!(
        "{} against {}: {ratio}{interval}, {outcome} ({} in {})",
        versions[step.version].name,
        versions[step.base].name,
        counted(finding.blocks as u64, "block", "blocks"),
        time_text(seconds * 1e9)
    )
}

/// How long a comparison that is unsure would take, if its ratio is right: widths of intervals fall with the root of the number of
/// blocks. It is sure when its interval leaves either 1 or the smallest change out.
fn needed(args: &BisectArgs, step: &Compared) -> String {
    let (Some(interval), Some(ratio)) = (step.finding.interval, step.finding.ratio) else {
        return String::new();
    };
    let limit = limit(args.worse, args.smallest).ln();
    // Both for the worse.
    let (change, smallest) = (ratio.ln() * limit.signum(), limit.abs());
    let wanted = change.max(smallest - change);
    let times = (interval.high / interval.low).ln() / 2.0 / wanted;
    let minutes = (times * times * step.seconds / 60.0) as u64 + 1;
    format!(", it may need about {}", counted(minutes, "minute", "minutes"))
}

/// A probability of an error.
fn probability(error: f64) -> String {
    if error < 1e-4 { "under 0.01 %".to_string() } else { percent(error) }
}

/// The answer. `left`: the places of the versions that were not skipped.
pub(super) fn answer(
    args: &BisectArgs,
    versions: &[Version],
    left: &[usize],
    steps: &[Compared],
    answer: Answer,
) -> String {
    let worse = worse(args.worse);
    let name = |place: usize| versions[left[place]].name.as_str();
    let (first, last) = (name(0), name(left.len() - 1));
    let smallest = percent(args.smallest);
    let text = match answer {
        Answer::First { version, error, is_confirmed } => {
            let (before, own) = (left[version - 1], left[version]);
            let skipped: Vec<&str> = versions[before + 1..own].iter().map(|one| one.name.as_str()).collect();
            let or = match &skipped[..] {
                [] => String::new(),
                [one] => format!(", or {one} before it, which was skipped"),
                [one, .., other] => format!(", or one of {one} to {other} before it, which were skipped"),
            };
            let is_it =
                |step: &&Compared| (step.base, step.version, step.outcome) == (before, own, Outcome::Bad);
            let ratio = steps.iter().rev().find(is_it).and_then(|step| step.finding.ratio);
            let shown = match (is_confirmed, ratio) {
                (true, Some(ratio)) => format!("{ratio:.2} of {}", name(version - 1)),
                _ => format!("not shown to be {worse} than {} itself", name(version - 1)),
            };
            format!(
                "the first version that is {worse} is {}{or} ({shown}; probability that this is wrong: {})",
                name(version),
                probability(error)
            )
        }
        Answer::Range { first, last, error } => format!(
            "the first version that is {worse} is one of {} to {}; the comparisons do not show which (probability that it is another: {})",
            versions[left[first - 1] + 1].name,
            name(last),
            probability(error)
        ),
        Answer::NoneBad { error } => format!(
            "no version is {worse}: {last} is not {worse} than {first} by {smallest} or more (probability that this is wrong: {})",
            probability(error)
        ),
        Answer::Unclear => format!(
            "it is not clear whether {last} is {worse} than {first} by {smallest} or more: more --minutes or a larger --smallest may show it"
        ),
    };
    let gone: Vec<&str> = versions
        .iter()
        .enumerate()
        .filter(|(place, _)| !left.contains(place))
        .map(|(_, version)| version.name.as_str())
        .collect();
    let gone = if gone.is_empty() { String::new() } else { format!("\nskipped: {}", gone.join(", ")) };
    format!("{}{gone}", wrapped("", "", &text, WIDTH).trim_end())
}
