//! `kvdyno completions SHELL`: prints a shell completion script.

use super::error::CliError;
use super::workloads::known;
use clap::builder::PossibleValuesParser;
use clap::{Arg, CommandFactory};
use kvdyno_core::engine::{ALL, DEFAULT, catalogue};

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// Shell to generate the script for.
    shell: clap_complete::Shell,
}

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut shown = shown();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "kvdyno", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(0)
}

/// The definition for scripts: without the internal commands, because scripts offer hidden commands too, and with the names of
/// engines and workloads as the values of the arguments that take them.
fn shown() -> clap::Command {
    let all = super::Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("kvdyno")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(commands.map(|command| command.mut_args(with_names)))
}

/// An argument with the names that it takes as possible values.
fn with_names(arg: Arg) -> Arg {
    let engines = || catalogue().iter().map(|known| known.name.as_str());
    let names: Vec<&str> = match arg.get_id().as_str() {
        "engines" => [ALL, DEFAULT].into_iter().chain(engines()).collect(),
        "engine" | "reference" | "baseline" => engines().collect(),
        "workloads" => known(),
        // Of `kvdyno workloads`.
        "name" if arg.get_help().is_some_and(|help| help.to_string().contains("workload")) => known(),
        _ => return arg,
    };
    // Scripts list what is not hidden, and the help of the real definition has no list.
    arg.value_parser(PossibleValuesParser::new(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_complete_engines_and_workloads() {
        for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut shown(), "kvdyno", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in ["memory-btree", "rocksdb", "ycsb-a", "mininb-suite"] {
                // Scripts for fish have the values of flags only.
                let is_workload = name == "ycsb-a" || name == "mininb-suite";
                let is_complete = shell == clap_complete::Shell::Fish && is_workload || script.contains(name);
                assert!(is_complete, "{shell}: no {name}");
            }
            assert!(!script.contains("selftest"), "{shell}: a former command");
        }
    }
}
