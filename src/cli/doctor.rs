//! `kvdyno doctor`: what can be measured on this machine.

use super::error::CliError;
use super::plugins;
use crate::audit::doctor::{Doctor, Finding, Verdict};
use crate::engine::Registry;
use std::path::PathBuf;

/// Look at the machine.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Where databases would be made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Prints what was found; always exit code 0: a machine that is not ideal is not an error.
pub fn run(args: &DoctorArgs, given: &[PathBuf]) -> Result<u8, CliError> {
    let mut doctor = Doctor::examine(&args.data);
    let registry = plugins::registry(given, &[])?;
    doctor.push(engines(&registry));
    if args.json {
        let json = serde_json::to_string_pretty(&doctor)
            .map_err(|error| CliError::failed(format!("cannot write JSON: {error}")))?;
        println!("{json}");
    } else {
        print!("{doctor}");
    }
    Ok(0)
}

fn engines(registry: &Registry) -> Finding {
    let names: Vec<&str> = registry.engines().iter().map(|engine| engine.name()).collect();
    let absent: Vec<&str> = registry.absent().iter().map(|absent| absent.known.name.as_str()).collect();
    let refused = registry.refused().len();
    let mut value = format!("{} present: {}", names.len(), names.join(", "));
    if !absent.is_empty() {
        value += &format!("; absent: {}", absent.join(", "));
    }
    if refused > 0 {
        value += &format!("; {refused} plug-ins refused");
    }
    let is_whole = absent.is_empty() && refused == 0;
    Finding {
        name: "engines".into(),
        value,
        verdict: if is_whole { Verdict::Ok } else { Verdict::Info },
        advice: (!is_whole).then(|| "`kvdyno engines` says what is missing and why.".into()),
    }
}
