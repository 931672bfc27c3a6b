//! `kvdyno doctor`: checks what can be measured on this machine.

use super::error::CliError;
use super::plugins;
use super::screen::of_stdout;
use crate::audit::doctor::{Doctor, Finding, Verdict};
use crate::engine::Registry;
use std::path::PathBuf;

/// Check this machine: what can be measured on it, and what disturbs measurements.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Folder where databases would be created.
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the findings. The exit code is always 0 because a machine that is not ideal is not an error.
pub fn run(args: &DoctorArgs, given: &[PathBuf]) -> Result<u8, CliError> {
    let mut doctor = Doctor::examine(&args.data);
    let registry = plugins::registry(given, &[])?;
    doctor.push(engines(&registry));
    if args.json {
        let json = serde_json::to_string_pretty(&doctor)?;
        println!("{json}");
    } else {
        print!("{}", doctor.text(of_stdout().width));
    }
    Ok(0)
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
