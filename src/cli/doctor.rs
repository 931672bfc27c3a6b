//! `kvdyno doctor`: checks what can be measured on this machine, and with `--self` kvdyno itself.

use super::error::CliError;
use super::plugins;
use super::screen::of_stdout;
use super::selftest;
use kvdyno_core::engine::Registry;
use kvdyno_prove::doctor::{Doctor, Finding, Verdict};
use std::path::PathBuf;

/// Check this machine: what can be measured on it, and what disturbs measurements.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Folder where databases would be created.
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Rows that must be ok, separated by commas, such as "memory cap,FUSE"; if one is not, the exit code is 1.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    require: Vec<String>,
    /// Test kvdyno itself instead: distributions, random streams, histograms, clock and values.
    #[arg(long = "self", conflicts_with_all = ["data", "json", "require"])]
    is_self: bool,
    /// Seed of all random values of --self [default: 1].
    #[arg(long, requires = "is_self", value_parser = super::number::number(0..=u64::MAX))]
    seed: Option<u64>,
}

/// Prints the findings. A machine that is not ideal is no error, except for what is required.
pub(super) fn run(args: &DoctorArgs, given: &[PathBuf]) -> Result<u8, CliError> {
    if args.is_self {
        return selftest::run(args.seed.unwrap_or(1));
    }
    let mut doctor = Doctor::examine(&args.data);
    doctor.push(plugins::registry(given, &[]).map_or_else(no_engines, |registry| engines(&registry)));
    if args.json {
        let json = serde_json::to_string_pretty(&doctor)?;
        println!("{json}");
    } else {
        print!("{}", doctor.text(of_stdout().width));
    }
    check(&doctor, &args.require)?;
    Ok(0)
}

/// An error if a required row is not ok, or does not exist.
fn check(doctor: &Doctor, required: &[String]) -> Result<(), CliError> {
    let mut lacking = Vec::new();
    for name in required.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        let Some(row) = doctor.rows.iter().find(|row| row.name.eq_ignore_ascii_case(name)) else {
            let names: Vec<&str> = doctor.rows.iter().map(|row| row.name.as_str()).collect();
            let error = CliError::usage(format!("doctor has no row `{name}`"));
            return Err(error.hint(format!("its rows are {}", names.join(", "))));
        };
        if matches!(row.verdict, Verdict::Warn | Verdict::Missing) {
            lacking.push(format!("{} ({})", row.name, row.value));
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let error = CliError::failed(format!("required and not ok: {}", lacking.join("; ")));
    Err(error.hint("the advice is in the report, below the row"))
}

fn no_engines(error: CliError) -> Finding {
    Finding {
        name: "engines".into(),
        value: error.to_string(),
        verdict: Verdict::Warn,
        advice: Some("No engine of a plug-in can be measured until this is corrected.".into()),
    }
}

fn engines(registry: &Registry) -> Finding {
    let names: Vec<&str> = registry.engines().iter().map(|engine| engine.name()).collect();
    let absent: Vec<&str> = registry.absent().iter().map(|absent| absent.known.name.as_str()).collect();
    let refused = registry.refused().len();
    let mut value = format!("{} available: {}", names.len(), names.join(", "));
    if !absent.is_empty() {
        value += &format!("; not available: {}", absent.join(", "));
    }
    if refused > 0 {
        value += &format!("; {refused} plug-ins refused");
    }
    let is_complete = absent.is_empty() && refused == 0;
    Finding {
        name: "engines".into(),
        value,
        verdict: if is_complete { Verdict::Ok } else { Verdict::Info },
        advice: (!is_complete).then(|| "`kvdyno engines` shows what is missing and why.".into()),
    }
}
