//! How much worse a figure may become: conditions of --fail-on, and a file of limits.

use super::{Compared, Figure, Metric, percent};
use crate::cli::error::CliError;
use crate::cli::turns::figure_change;
use kvdyno_change::paired::Verdict;
use kvdyno_measure::text::{listed, plain_text};
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

/// A condition of --fail-on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// A figure became worse by more than a limit.
    Worse(Limit),
    /// It is not known whether a figure with a limit became worse.
    Inconclusive,
}

/// How much worse figures may become.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    /// The phase; none: each.
    phase: Option<String>,
    /// The figure; none: each.
    figure: Option<Figure>,
    /// The largest change for the worse that is allowed, as a part; 0: any that is shown is too much.
    part: f64,
    /// What the user wrote.
    source: String,
}

impl FromStr for Condition {
    type Err = String;

    /// Reads `worse`, `rate`, `p99>5%` or `inconclusive`.
    fn from_str(text: &str) -> Result<Condition, String> {
        let (word, part) = match text.split_once('>') {
            Some((word, limit)) => (word.trim(), allowed(limit)?),
            None => (text.trim(), 0.0),
        };
        let figure = match word {
            "inconclusive" if part == 0.0 => return Ok(Condition::Inconclusive),
            "worse" => None,
            word => Some(compared_figure(word).ok_or_else(|| {
                "expected worse, rate, p99 or inconclusive; a limit follows the first three, as in 'rate>5%'".to_string()
            })?),
        };
        let source = format!("--fail-on '{}'", text.trim());
        Ok(Condition::Worse(Limit { phase: None, figure, part, source }))
    }
}

/// A figure that `ab` compares.
fn compared_figure(word: &str) -> Option<Figure> {
    word.parse().ok().filter(|figure| *figure != Figure::Size)
}

/// A limit: `5%`.
fn allowed(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.1..=1000.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| {
        format!("the limit is `{}`: expected a percentage from 0.1% to 1000%, such as 5%", plain_text(text))
    })
}

/// Reads a file of limits: a table for each phase, with a percentage for each figure.
pub(super) fn read(file: &Path) -> Result<Vec<Limit>, CliError> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("--limits {shown}: {error}")))?;
    let hint =
        "a file of limits has a table for each phase, as in `[run]`, with lines such as `rate = \"5%\"`";
    let wrong = |what: &dyn std::fmt::Display| {
        CliError::usage(format!("--limits {shown}: {}", plain_text(&what.to_string()))).hint(hint)
    };
    let tables: BTreeMap<String, BTreeMap<String, String>> =
        toml::from_str(&text).map_err(|error| wrong(&error.message()))?;
    let mut limits = Vec::new();
    for (phase, figures) in tables {
        for (word, limit) in figures {
            let figure = compared_figure(&word)
                .ok_or_else(|| wrong(&format!("[{phase}]: unknown figure `{word}`: expected rate or p99")))?;
            let part = allowed(&limit).map_err(|error| wrong(&format!("[{phase}] {word}: {error}")))?;
            let source = format!("{shown}: [{phase}] {word} = \"{limit}\"");
            limits.push(Limit { phase: Some(phase.clone()), figure: Some(figure), part, source });
        }
    }
    if limits.is_empty() {
        return Err(wrong(&"it has no limit"));
    }
    Ok(limits)
}

impl Limit {
    fn holds_for(&self, metric: &Metric) -> bool {
        self.phase.as_ref().is_none_or(|phase| *phase == metric.phase)
            && self.figure.is_none_or(|figure| figure == metric.figure)
    }

    /// Refuses a limit that these trials can never judge. `until`: comparisons end when their interval is this wide.
    pub(super) fn check(&self, metrics: &[Metric], until: f64) -> Result<(), CliError> {
        let source = plain_text(&self.source);
        if !metrics.iter().any(|metric| self.holds_for(metric)) {
            let all: Vec<String> = metrics
                .iter()
                .map(|metric| format!("{} of {}", metric.figure.name(), plain_text(&metric.phase)))
                .collect();
            return Err(CliError::usage(format!("{source}: it is not measured"))
                .hint(format!("what is compared is {}", listed(&all, "and"))));
        }
        if self.part > 0.0 && self.part < until {
            return Err(CliError::usage(format!(
                "{source}: comparisons end at intervals of {}, which cannot show so small a change",
                percent(until)
            ))
            .hint("use a larger limit, or a smaller --until"));
        }
        Ok(())
    }

    /// Whether a change for the worse is beyond the limit.
    fn is_beyond(&self, figure: Figure, ratio: f64) -> bool {
        figure_change(figure, ratio) > self.part
    }
}

/// What the limits say of a comparison: each line is for the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// Figures that are worse than a limit allows. A change for the worse was shown, and the estimate of it is beyond the limit.
    pub broken: Vec<String>,
    /// Figures that have no verdict, because the time was over, and whose interval reaches beyond a limit.
    pub inconclusive: Vec<String>,
}

/// Judges the findings by these limits.
pub(super) fn judge(limits: &[Limit], metrics: &[Metric], compared: &Compared) -> Judged {
    let mut judged = Judged::default();
    for found in &compared.findings {
        let metric = &metrics[found.metric];
        let own: Vec<&Limit> = limits.iter().filter(|limit| limit.holds_for(metric)).collect();
        let figure = metric.figure;
        let name = format!("{} of phase {}", figure.name(), plain_text(&metric.phase));
        let is_broken = |limit: &&&Limit| {
            figure.is_worse(found.verdict) && found.ratio.is_some_and(|ratio| limit.is_beyond(figure, ratio))
        };
        if let Some(limit) = own.iter().find(is_broken) {
            let change = figure_change(figure, found.ratio.unwrap_or(1.0));
            judged.broken.push(format!("{name}: {} worse ({})", percent(change), plain_text(&limit.source)));
            continue;
        }
        let worst = found.interval.map(|own| if figure.is_worse_if_higher() { own.high } else { own.low });
        let may_be = |limit: &&&Limit| worst.is_none_or(|worst| limit.is_beyond(figure, worst));
        if found.verdict == Verdict::Unknown && found.is_open && own.iter().any(|limit| may_be(&limit)) {
            judged.inconclusive.push(format!("{name}: it is not known whether it is worse than allowed"));
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_change::paired::{Finding, Interval};

    fn limit(text: &str) -> Limit {
        match text.parse() {
            Ok(Condition::Worse(limit)) => limit,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn metrics() -> Vec<Metric> {
        [Figure::Rate, Figure::P99].map(|figure| Metric { phase: "run".into(), figure }).to_vec()
    }

    fn judged(limits: &[Limit], metric: usize, interval: (f64, f64), is_open: bool) -> Judged {
        let (low, high) = interval;
        let verdict = match interval {
            _ if low > 1.0 => Verdict::Higher,
            _ if high < 1.0 => Verdict::Lower,
            _ => Verdict::Unknown,
        };
        let (ratio, interval) = (Some((low * high).sqrt()), Some(Interval { low, high }));
        let found = Finding { metric, arm: 1, blocks: 20, missing: 0, ratio, interval, verdict, is_open };
        let findings = vec![found];
        let (values, failed) = (Vec::new(), Vec::new());
        let compared = Compared { findings, values, blocks: 20, failed, has_given_up: false, seconds: 1.0 };
        judge(limits, &metrics(), &compared)
    }

    #[test]
    fn conditions_are_parsed_and_others_refused() {
        assert_eq!("inconclusive".parse(), Ok(Condition::Inconclusive));
        assert_eq!((limit("worse").figure, limit("worse").part), (None, 0.0));
        assert_eq!((limit(" p99 > 12.5 % ").figure, limit("p99>12.5%").part), (Some(Figure::P99), 0.125));
        for wrong in
            ["", "slower", "size", "rate>", "rate>5", "rate>0%", "rate>-5%", "rate>nan%", "inconclusive>5%"]
        {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_limit_is_broken_by_a_change_that_was_shown_and_is_greater() {
        let broken =
            |text: &str, metric, interval| !judged(&[limit(text)], metric, interval, false).broken.is_empty();
        assert!(broken("worse", 0, (0.98, 0.99)) && broken("worse", 1, (1.01, 1.02)));
        assert!(!broken("worse", 0, (1.01, 1.02)) && !broken("worse", 1, (0.9, 0.99)));
        assert!(broken("rate>5%", 0, (0.90, 0.94)) && !broken("rate>5%", 0, (0.94, 0.99)));
        assert!(!broken("rate>5%", 1, (1.2, 1.3)), "it is no limit of the p99");
        assert!(broken("p99>5%", 1, (1.04, 1.08)) && !broken("p99>5%", 1, (1.01, 1.05)));
        // The estimate alone shows nothing.
        assert!(!broken("rate>5%", 0, (0.70, 1.01)));
        let text = &judged(&[limit("rate>5%")], 0, (0.90, 0.90), false).broken[0];
        assert_eq!(text, "ops/s of phase run: 10 % worse (--fail-on 'rate>5%')");
    }

    #[test]
    fn what_is_open_and_may_be_beyond_the_limit_is_inconclusive() {
        let open = |text: &str, interval| judged(&[limit(text)], 0, interval, true).inconclusive.len();
        assert_eq!((open("rate>5%", (0.90, 1.10)), open("rate>5%", (0.97, 1.10))), (1, 0));
        assert_eq!(open("worse", (0.97, 1.10)), 1);
        assert_eq!(judged(&[limit("worse")], 0, (0.97, 1.10), false), Judged::default());
        assert_eq!(judged(&[], 0, (0.5, 1.10), true), Judged::default());
    }

    #[test]
    fn limits_that_cannot_be_judged_are_refused() {
        let check = |limit: &Limit| limit.check(&metrics(), 0.02).map_err(|error| error.to_string());
        assert_eq!((check(&limit("rate>2%")), check(&limit("worse"))), (Ok(()), Ok(())));
        assert!(check(&limit("rate>1.9%")).unwrap_err().contains("intervals of 2 %"));
        let other = Limit { phase: Some("scan".into()), ..limit("rate>5%") };
        let text = check(&other).unwrap_err();
        assert!(text.contains("not measured") && text.contains("ops/s of run and p99 of run"), "{text}");
    }

    #[test]
    fn a_file_has_a_table_for_each_phase() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("limits.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file)
        };
        let limits =
            read("# of a quiet machine\n[run]\nrate = '5%'\np99 = '20 %'\n[scan]\nrate = '10%'\n").unwrap();
        let parts: Vec<(Option<&str>, f64)> =
            limits.iter().map(|limit| (limit.phase.as_deref(), limit.part)).collect();
        assert_eq!(parts, [(Some("run"), 0.2), (Some("run"), 0.05), (Some("scan"), 0.1)]);
        for (wrong, what) in [
            ("", "no limit"),
            ("rate = '5%'", "limits.toml"),
            ("[run]\nspeed = '5%'", "unknown figure `speed`"),
            ("[run]\nrate = '5'", "expected a percentage"),
            ("[run", "limits.toml"),
        ] {
            let text = read(wrong).unwrap_err().to_string();
            assert!(text.contains(what), "{wrong:?}: {text}");
        }
    }
}
