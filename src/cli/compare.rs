//! `kvdyno compare BASE NEW`: compares two runs.

use super::args::unknown;
use super::error::{CliError, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION};
use super::report::open;
use kvdyno_core::results::comparison::{Row, RunComparison, Side};
use kvdyno_core::results::figures::{Figure, compared};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::text::plain_text;
use kvdyno_report::{comparison_markdown, comparison_text};
use std::path::PathBuf;

/// The threshold of a regression if --fail-on does not set one.
const DEFAULT_REGRESSION: f64 = 0.05;

/// Compare two runs and show what became faster or slower.
#[derive(Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// Results folder of the earlier run.
    base: PathBuf,
    /// Results folder of the later run.
    new: PathBuf,
    /// Compare only these figures: rate, p50, p99, p99.9, cpu, memory, disk, w-amp. With fewer figures, p-values need less
    /// correction for multiple comparisons.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    figures: Vec<String>,
    /// Exit with code 10 or 11 on a condition. `regression`: 10 if a figure got worse or an engine now fails.
    /// `'regression>5%'`: the same, but only for changes of more than 5 % (rates are compared as time per op).
    /// `inconclusive`: 11 if a regression is neither found nor ruled out; without `regression`, the threshold is 5 %.
    #[arg(long, value_delimiter = ',', value_name = "CONDITION")]
    fail_on: Vec<String>,
    /// Compare runs even if their settings, machines or durability levels differ.
    #[arg(long)]
    force: bool,
    /// Print the tables of all figures too, not only the changes. JSON always has all figures.
    #[arg(long)]
    full: bool,
    /// Output format: text, markdown or json.
    #[arg(long, default_value = "text")]
    format: String,
}

/// The conditions of --fail-on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct FailOn {
    /// The threshold of a regression as a share. `None` if the condition is not set.
    regression: Option<f64>,
    inconclusive: bool,
}

/// Prints the comparison.
pub(super) fn run(args: &CompareArgs) -> Result<u8, CliError> {
    const FORMATS: [&str; 3] = ["text", "markdown", "json"];
    if !FORMATS.contains(&args.format.as_str()) {
        return Err(unknown("format", &args.format, &FORMATS, "kvdyno compare --help"));
    }
    let fail_on = parse_conditions(&args.fail_on)?;
    let figures = parse_figures(&args.figures, "kvdyno compare --help")?;
    let (base, new) = (open(&args.base)?, open(&args.new)?);
    if base.run().id == new.run().id {
        return Err(CliError::usage(format!("both folders contain the run {}", base.run().id))
            .hint("name the folders of two different runs"));
    }
    let (old_summary, new_summary) = (summary(&base)?, summary(&new)?);
    let comparison = RunComparison::new(
        Side { run: base.run(), summary: &old_summary },
        Side { run: new.run(), summary: &new_summary },
        &figures,
    );
    let is_known = comparison.rows.iter().any(|row| row.base_median.is_some() && row.new_median.is_some());
    if !comparison.differences.is_empty() && (!args.force || !is_known) {
        eprintln!("error: these runs are not comparable:");
        comparison.differences.iter().for_each(|line| eprintln!("  {}", plain_text(line)));
        if is_known {
            eprintln!(
                "hint: repeat the run with the same settings on the same machine, or use --force to compare them anyway"
            );
        }
        return Ok(NOT_COMPARABLE);
    }
    match args.format.as_str() {
        "json" => println!(
            "{}",
            serde_json::to_string(&comparison)
                .expect("a comparison has only texts, numbers and lists, which JSON can hold")
        ),
        "markdown" => print!("{}", comparison_markdown(&comparison, args.full)),
        _ => print!("{}", comparison_text(&comparison, args.full)),
    }
    Ok(exit_code(&comparison, fail_on))
}

fn summary(folder: &RunFolder) -> Result<Summary, CliError> {
    folder.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let records = folder.finished()?;
    Ok(Summary::new(folder.run(), records))
}

fn exit_code(comparison: &RunComparison, fail_on: FailOn) -> u8 {
    let limit = fail_on.regression.unwrap_or(DEFAULT_REGRESSION);
    let count = |is: &dyn Fn(&Row) -> bool| comparison.rows.iter().filter(|row| is(row)).count();
    let found = count(&|row| row.is_regression(limit));
    if fail_on.regression.is_some() && found + comparison.failures.len() > 0 {
        if found > 0 {
            eprintln!("regression: {} worse by more than {}", are(found, "figure"), percent(limit));
        }
        comparison.failures.iter().for_each(|text| eprintln!("regression: {}", plain_text(text)));
        return REGRESSION;
    }
    let inconclusive = count(&|row| row.is_inconclusive(limit));
    let missing = comparison.missing;
    if fail_on.inconclusive && inconclusive + missing + comparison.failures.len() > 0 {
        if inconclusive > 0 {
            eprintln!(
                "inconclusive: {} possibly worse by more than {}; more runs (--runs) narrow the interval",
                are(inconclusive, "figure"),
                percent(limit)
            );
        }
        if missing > 0 {
            eprintln!("inconclusive: {} missing from the second run", are(missing, "cell"));
        }
        comparison.failures.iter().for_each(|text| eprintln!("inconclusive: {}", plain_text(text)));
        return INCONCLUSIVE;
    }
    0
}

/// `1 figure is`, `3 figures are`.
fn are(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what} is") } else { format!("{count} {what}s are") }
}

/// `5 %`, `2.5 %`.
fn percent(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The figures with these names, or all by which runs are compared; `help` lists them.
pub(super) fn parse_figures(names: &[String], help: &str) -> Result<Vec<&'static Figure>, CliError> {
    let all = compared();
    let name = |figure: &Figure| figure.compared.map_or(figure.name, |compared| compared.name);
    let known: Vec<&str> = all.iter().map(|figure| name(figure)).collect();
    if let Some(strange) = names.iter().find(|given| !known.contains(&given.as_str())) {
        return Err(unknown("figure", strange, &known, help));
    }
    let is_named = |figure: &&Figure| names.is_empty() || names.iter().any(|given| given == name(figure));
    Ok(all.into_iter().filter(is_named).collect())
}

/// `regression`, `regression>5%`, `inconclusive`.
fn parse_conditions(texts: &[String]) -> Result<FailOn, CliError> {
    let mut conditions = FailOn::default();
    for text in texts {
        let plain: String =
            text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>().to_lowercase();
        let refused = || {
            CliError::usage(format!("--fail-on {text}: unknown condition")).hint(
                "the conditions are regression, inconclusive and 'regression>N%', where N is a percentage such as 5 or 2.5; \
                 the quotes keep the shell from reading > as a redirection",
            )
        };
        match plain.split_once('>') {
            None if plain == "inconclusive" => conditions.inconclusive = true,
            None if plain == "regression" => conditions.regression = Some(0.0),
            Some(("regression", share)) => {
                let share = share.strip_prefix('=').unwrap_or(share);
                let percent: f64 = share.strip_suffix('%').unwrap_or(share).parse().map_err(|_| refused())?;
                if !(0.0..1e6).contains(&percent) {
                    return Err(refused());
                }
                conditions.regression = Some(percent / 100.0);
            }
            _ => return Err(refused()),
        }
    }
    Ok(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::figures::{RATE, figure};
    use kvdyno_core::results::fixture;

    #[test]
    fn a_regression_and_an_inconclusive_comparison_have_their_own_codes() {
        let run = fixture::run();
        let mut records = fixture::records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            record.phases[1].elapsed_ns *= 2;
        }
        let (base, new) = (Summary::new(&run, fixture::records()), Summary::new(&run, records));
        let code = |new: &Summary, conditions: &[&str]| {
            let comparison = RunComparison::new(
                Side { run: &run, summary: &base },
                Side { run: &run, summary: new },
                &[figure(RATE).unwrap()],
            );
            let texts: Vec<String> = conditions.iter().map(|text| text.to_string()).collect();
            exit_code(&comparison, parse_conditions(&texts).unwrap())
        };
        assert_eq!(code(&new, &[]), 0);
        assert_eq!(code(&new, &["regression>5%"]), REGRESSION);
        assert_eq!(code(&new, &["regression>101%"]), 0, "an op takes twice as long");
        assert_eq!(code(&base, &["regression"]), 0);
        // Three runs that differ by some per cent cannot rule out one per cent.
        assert_eq!(code(&base, &["regression>1%", "inconclusive"]), INCONCLUSIVE);
        assert_eq!(
            code(&new, &["regression>1%", "inconclusive"]),
            REGRESSION,
            "a regression takes precedence"
        );
    }

    #[test]
    fn conditions_are_parsed_and_others_refused() {
        let parse =
            |texts: &[&str]| parse_conditions(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        assert_eq!(parse(&[]).unwrap(), FailOn::default());
        assert_eq!(
            parse(&["regression>5%", "inconclusive"]).unwrap(),
            FailOn { regression: Some(0.05), inconclusive: true }
        );
        assert_eq!(parse(&["regression > 2.5 %"]).unwrap().regression, Some(0.025));
        for text in ["regression>5", "regression > 5", "regression>5 %", "Regression >= 5%"] {
            assert_eq!(parse(&[text]).unwrap().regression, Some(0.05), "{text}");
        }
        assert_eq!(parse(&["regression"]).unwrap().regression, Some(0.0));
        for wrong in [
            "",
            "regression>",
            "regression>x%",
            "regression>-1%",
            "regression>nan%",
            "slower",
            "inconclusive>5%",
            "regression>inf",
            "regression>5%%",
            "regression=5",
            "regression>",
            "5%",
        ] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }
}
