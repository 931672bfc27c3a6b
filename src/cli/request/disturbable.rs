//! Which engines can run a workload in which members of a store fail: those that start the members that it names.

use crate::cli::args::split_options;
use crate::cli::error::CliError;
use kvdyno_core::engine::{Registry, catalogue};
use kvdyno_core::runner::{Contestant, Entry};
use kvdyno_core::workload::{Target, Workload};

/// The entries without engines whose members cannot fail as their workload wants. One that the command line names is a usage error.
pub(super) fn entries(
    mut all: Vec<Entry>,
    named: &[String],
    registry: &Registry,
    notes: &mut Vec<String>,
) -> Result<Vec<Entry>, CliError> {
    for entry in all.iter_mut().filter(|entry| !entry.workload.faults.is_empty()) {
        let workload = entry.workload.clone();
        let mut others = Vec::new();
        let had_engines = entry.contestants.iter().any(|own| !own.is_floor);
        for own in std::mem::take(&mut entry.contestants) {
            match refusal(&workload, &own, registry) {
                None => entry.contestants.push(own),
                Some(reason) if named.iter().any(|word| split_options(word).0 == own.engine) => {
                    return Err(error(&reason));
                }
                Some(_) => others.push(own.engine),
            }
        }
        if had_engines && entry.contestants.iter().all(|own| own.is_floor) {
            let name = &workload.name;
            return Err(error(&format!(
                "workload {name} has faults ([[fault]]), and none of these engines has members that could fail: {}",
                others.join(", ")
            )));
        }
        if !others.is_empty() {
            notes.push(format!(
                "skipped for {}, no members that could fail: {}",
                workload.name,
                others.join(", ")
            ));
        }
    }
    Ok(all)
}

fn error(reason: &str) -> CliError {
    let known = catalogue().iter().filter(|known| known.members.is_some());
    let known: Vec<&str> = known.map(|known| known.name.as_str()).collect();
    CliError::usage(reason)
        .hint(format!("engines whose members may fail: {} (docs/clusters.md)", known.join(", ")))
}

/// Why no member of this engine can fail as the workload wants; `None`: it can, or only the driver knows.
fn refusal(workload: &Workload, own: &Contestant, registry: &Registry) -> Option<String> {
    let (name, engine) = (&workload.name, &own.engine);
    // An engine that stores nothing shows what the harness could do without faults.
    let known = catalogue().iter().find(|known| known.name == *engine).filter(|_| !own.is_floor)?;
    let Some(members) = &known.members else {
        return Some(format!(
            "workload {name} has faults ([[fault]]), and {engine} has no members of its own that could fail"
        ));
    };
    if own.has_url() {
        return Some(format!(
            "workload {name} has faults ([[fault]]), which are only for servers that kvdyno starts, and the option url of {engine} \
             names running ones"
        ));
    }
    let infos = registry.engine(engine).ok()?.options();
    let value = |option: &str| {
        let set = own.options.iter().rev().find(|(known, _)| known == option).map(|(_, value)| value.clone());
        let usual = || infos.iter().find(|info| info.name == option).map(|info| info.default_value.clone());
        set.or_else(usual)?.parse().ok()
    };
    let (count, followers) = members.count(value)?;
    let options = match &members.followers {
        Some(more) => format!("options {} and {more}", members.first),
        None => format!("option {}", members.first),
    };
    workload.faults.iter().find_map(|fault| match fault.member {
        Target::Number(number) if u64::from(number) > count => Some(format!(
            "workload {name} has a [[fault]] of member {number}, and {engine} has {count} ({options})"
        )),
        Target::Follower if followers == 0 => Some(format!(
            "workload {name} has a [[fault]] of a follower, and each member of {engine} leads ({options})"
        )),
        _ => None,
    })
}
