//! The rate of `kvdyno choose` and its limits: read from flags, and tried on this machine before anything is written.

use crate::cli::error::CliError;
use crate::cli::sender;
use kvdyno_core::engine::Registry;
use kvdyno_core::generator::{Course, Rate};
use kvdyno_core::runner::{self, Contestant, Entry, TrialSettings};
use kvdyno_core::workload;
use kvdyno_load::search::{Limits, Metric};

/// The rate and the limits of the flags; none: they are not given.
///
/// # Errors
///
/// If one of them is none, or if there are limits without a rate.
pub(super) fn asked(
    rate: Option<&str>,
    limits: Option<&str>,
) -> Result<(Option<Rate>, Option<Limits>), CliError> {
    let rate = rate.map(read_rate).transpose()?;
    let limits = limits.map(read_limits).transpose()?;
    if let (None, Some(limits)) = (&rate, &limits) {
        let text = format!(
            "--slo {limits} needs --rate: response times are those of requests that arrive at a rate"
        );
        return Err(CliError::usage(text).hint("add the rate of your program, such as --rate 20k"));
    }
    Ok((rate, limits))
}

/// The users of a program do not wait for each other, so a plain number is that of a Poisson process.
fn read_rate(text: &str) -> Result<Rate, CliError> {
    let rate: Rate = text.parse().map_err(|error| CliError::usage(format!("--rate: {error}")))?;
    match rate.course {
        Course::Constant(_) => Ok(Rate { is_poisson: true, ..rate }),
        _ => Ok(rate),
    }
}

fn read_limits(text: &str) -> Result<Limits, CliError> {
    let limits: Limits = text.parse().map_err(|error| CliError::usage(format!("--slo: {error}")))?;
    if limits.list().iter().any(|limit| limit.metric() == Metric::Errors) {
        return Err(CliError::usage("--slo: errors are requests that were dropped, and choose drops none")
            .hint("omit this limit"));
    }
    Ok(limits)
}

/// Refuses a workload whose rate the load generator does not reach on this machine.
pub(super) fn check(text: &str, registry: &Registry) -> Result<(), CliError> {
    let contestant = Contestant {
        engine: "null".into(),
        options: Vec::new(),
        nodes_option: None,
        is_floor: true,
        keeps_nothing: true,
    };
    let workload = workload::parse(text, "choose")?;
    let entry = Entry { workload, contestants: vec![contestant], load_generators: 1 };
    let (plan, _) = runner::plan("choose".into(), Vec::new(), vec![entry], &TrialSettings::default())?;
    sender::check(&plan, registry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_number_is_a_poisson_process_and_other_forms_are_as_they_are_written() {
        for (text, wanted) in [
            ("20k", "poisson:20k"),
            ("poisson:20k", "poisson:20k"),
            ("steps:1k,2k", "steps:1k,2k"),
            ("poisson:ramp:1k-2k", "poisson:ramp:1k-2k"),
        ] {
            assert_eq!(read_rate(text).unwrap().to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_or_no_limit_is_refused_in_one_line() {
        for (rate, limits, wanted) in [
            (Some("0"), None, "--rate: rate `0`: expected more than 0"),
            (Some("-5"), None, "--rate: rate `-5`: expected more than 0"),
            (Some("many"), None, "--rate: unknown rate `many`"),
            (Some("20k"), Some("p98<1ms"), "--slo: unknown metric `p98`"),
            (Some("20k"), Some("p99<1"), "--slo: `1` is not a time"),
            (Some("20k"), Some("errors<1%"), "--slo: errors are requests that were dropped"),
            (None, Some("p99<1ms"), "--slo p99<1ms needs --rate"),
        ] {
            let error = asked(rate, limits).unwrap_err();
            assert_eq!(error.code, crate::cli::error::USAGE, "{rate:?} {limits:?}");
            let message = error.message();
            assert!(message.starts_with(wanted) && !message.contains('\n'), "{rate:?} {limits:?}: {message}");
        }
    }
}
