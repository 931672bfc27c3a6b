//! What must be equal for the figures of two runs to be comparable: the machine, and the settings of each workload.

use crate::results::{Run, Trial};
use kvdyno_measure::Machine;
use kvdyno_measure::text::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a run was measured under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The machine; of a campaign, the one that planned it.
    pub machine: Machine,
    /// The kind of its clock.
    pub clock: String,
    /// The number of machines that measured it.
    pub machines: usize,
    /// The first trial of each workload, which has its settings.
    pub trials: Vec<Trial>,
}

impl Conditions {
    /// Those of a run.
    pub fn of(run: &Run) -> Conditions {
        let mut trials: Vec<Trial> = Vec::new();
        for trial in &run.plan.trials {
            if !trials.iter().any(|seen| seen.workload.name == trial.workload.name) {
                trials.push(trial.clone());
            }
        }
        Conditions {
            machine: run.machine.clone(),
            clock: run.clock.kind.clone(),
            machines: run.campaign.as_ref().map_or(1, |part| part.machines.len()),
            trials,
        }
    }

    /// Differences between the machines, each a line.
    pub fn of_machines(&self, new: &Conditions) -> Vec<String> {
        // Limits set by the shell, and memory, which is compared below.
        const IGNORED: [&str; 4] = ["open_files", "locked_memory", "swap_bytes", "memory_bytes"];
        let mut found = Vec::new();
        if self.machine != new.machine {
            let values = [&self.machine, &new.machine]
                .map(|machine| serde_json::to_value(machine).unwrap_or_default());
            differences("machine", &values[0], &values[1], &IGNORED, &mut found);
        }
        // Kernels reserve slightly different amounts of the same memory.
        if let (Some(left), Some(right)) = (self.machine.memory_bytes, new.machine.memory_bytes)
            && left.abs_diff(right) > left / 50
        {
            found.push(format!("machine, memory_bytes: {left} and {right}"));
        }
        if self.clock != new.clock {
            found.push("machine: different kinds of clock".to_string());
        }
        if (self.machines, new.machines) != (1, 1) {
            found.push(format!(
                "machine: {} and {}, and how much they differ is not part of the intervals",
                counted(self.machines as u64, "machine", "machines"),
                counted(new.machines as u64, "machine", "machines")
            ));
        }
        found
    }

    /// Differences between the settings of the workloads that both have, each a line.
    pub fn of_settings(&self, new: &Conditions) -> Vec<String> {
        let names = self.trials.iter().map(|trial| trial.workload.name.as_str());
        names.flat_map(|workload| self.of_workload(new, workload)).collect()
    }

    /// Differences between the settings of a workload; none if one of them does not have it.
    pub fn of_workload(&self, new: &Conditions, workload: &str) -> Vec<String> {
        // Names and descriptions, the number and seeds of repetitions, and what is read after the last phase.
        const IGNORED: [&str; 10] = [
            "seed",
            "runs",
            "budget_seconds",
            "load_seconds",
            "sweep_once",
            "about",
            "source",
            "mends",
            "layouts",
            "variant_of",
        ];
        let (Some(trial), Some(other)) = (self.trial(workload), new.trial(workload)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let name = format!("workload {workload}");
        if trial.workload != other.workload {
            let values =
                [trial, other].map(|trial| serde_json::to_value(trial.workload.as_ref()).unwrap_or_default());
            differences(&name, &values[0], &values[1], &IGNORED, &mut found);
        }
        let placements =
            [trial, other].map(|trial| serde_json::to_value(&trial.placement).unwrap_or_default());
        differences(&format!("{name}, placement"), &placements[0], &placements[1], &[], &mut found);
        if trial.load_generators != other.load_generators {
            found.push(format!(
                "{name}: {} and {} load generators",
                trial.load_generators, other.load_generators
            ));
        }
        if trial.reused != other.reused {
            found.push(format!("{name}: only one of the runs starts with a kept database"));
        }
        if trial.paranoid != other.paranoid {
            found.push(format!("{name}: only one of the runs has guard pages (--paranoid)"));
        }
        if trial.counts_cycles != other.counts_cycles {
            found.push(format!("{name}: only one of the runs counts cycles (--count-cycles)"));
        }
        if trial.counts_calls != other.counts_calls {
            found.push(format!("{name}: only one of the runs counts system calls, which makes them slow"));
        }
        found
    }

    fn trial(&self, workload: &str) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.workload.name == workload)
    }
}

/// A line for each value that differs, with its path.
fn differences(path: &str, base: &Value, new: &Value, ignored: &[&str], found: &mut Vec<String>) {
    let inner = |name: &str| format!("{path}, {name}");
    match (base, new) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names.into_iter().filter(|name| !ignored.iter().any(|part| name.starts_with(part))) {
                let of =
                    |values: &serde_json::Map<String, Value>| values.get(name).cloned().unwrap_or_default();
                differences(&inner(name), &of(left), &of(right), ignored, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (place, (left, right)) in left.iter().zip(right).enumerate() {
                let name = left.get("name").and_then(Value::as_str).map_or(place.to_string(), String::from);
                differences(&inner(&name), left, right, ignored, found);
            }
        }
        _ if base != new => found.push(format!("{path}: {} and {}", value_text(base), value_text(new))),
        _ => {}
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;
    use std::sync::Arc;

    #[test]
    fn they_survive_json_and_say_what_differs() {
        let run = fixture::run();
        let one = Conditions::of(&run);
        assert_eq!(one.trials.len(), 1, "the workload is there once");
        let read: Conditions = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
        assert_eq!(read, one);
        assert!(one.of_machines(&read).is_empty() && one.of_settings(&read).is_empty());
        let mut other = read;
        other.machine.kernel = Some("6.19".to_string());
        let workload = Arc::make_mut(&mut other.trials[0].workload);
        (workload.keys, workload.seed) = (4_000, 7);
        assert_eq!(one.of_machines(&other), ["machine, kernel: 6.18.44 and 6.19"]);
        assert_eq!(one.of_settings(&other), ["workload quick, keys: 2000 and 4000"]);
        assert!(one.of_workload(&other, "another").is_empty());
    }
}
