//! `doctor`: describes the machine, how precisely it can measure, and what this user is allowed to do. Everything is
//! tested, not assumed.

mod probe;
#[cfg(test)]
mod tests;

use kvdyno_measure::cgroup::Limit;
use kvdyno_measure::facility::{Availability, Facility, facilities};
use kvdyno_measure::text::{Table, bytes_text, share_text, time_text, wrapped, wrapped_lines};
use kvdyno_measure::{
    Clock, ClockFacts, Conditions, FileSystemFacts, Jitter, Machine, NoiseProbe, Warning, warnings_of,
};
use probe::{SyncTimes, Tool};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How long the CPU is watched for interruptions.
const WATCH_NS: u64 = 300_000_000;
/// A faster sync has not waited for a disk: the fastest drives with power-loss protection take about 10 us.
const SUSPICIOUS_SYNC_NS: u64 = 8_000;
/// If a CPU loses a larger share than this to other work, results vary between runs.
const JITTER_LIMIT: f64 = 0.02;
const STEAL_LIMIT: f64 = 0.01;
/// Longer values are wrapped.
const WIDEST_VALUE: usize = 76;
/// The maximum length of a line of advice.
const LINE: usize = 110;

/// What a row means for measurements on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Information only.
    Info,
    /// Affects the results.
    #[strum(serialize = "WARN")]
    Warn,
    /// Something cannot be measured on this machine, or not by this user.
    Missing,
}

impl Verdict {
    fn text(self) -> &'static str {
        self.into()
    }
}

/// A row of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was examined: `clock`.
    pub name: String,
    /// The result.
    pub value: String,
    /// What the result means.
    pub verdict: Verdict,
    /// What to do, in complete sentences; `None` if there is nothing to do.
    pub advice: Option<String>,
}

/// The complete report: [`Doctor::text`] makes an aligned table, serde writes JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doctor {
    /// The rows, in the order they are shown.
    pub rows: Vec<Finding>,
}

impl Doctor {
    /// Examines everything. Takes about 2 s: mostly the 300 ms watch, up to 1 s of syncs, and the toolchains' version
    /// queries.
    pub fn examine(data_path: &Path) -> Self {
        let clock = Clock::calibrate();
        let facts = clock.facts();
        let machine = Machine::observe(data_path);
        let conditions = Conditions::observe(data_path);
        let mut warnings = Warnings(warnings_of(&machine, &conditions, Some(&facts)));
        let mut rows = vec![
            warnings.row("tool", tool_text(&machine), &["debug-build"]),
            warnings.info("machine", machine_text(&machine), &["virtual-machine"]),
            warnings.row("clock", clock_text(&facts), &["slow-clock", "costly-clock", "clock-steps-back"]),
            warnings.row(
                "data path",
                data_path_text(machine.file_system.as_ref(), &conditions),
                &["memory-file-system", "low-disk-space"],
            ),
            sync_row(SyncTimes::measure(data_path, &clock)),
            noise_row(&clock, &conditions, &mut warnings),
            warnings.row("memory", memory_text(&machine, &conditions), &["low-memory", "swap", "huge-pages"]),
            warnings.row("processor", processor_text(&machine), &["governor", "turbo"]),
            warnings.row("limits", limits_text(&machine), &["few-open-files", "cpu-quota", "memory-limit"]),
        ];
        rows.extend(warnings.rest());
        rows.push(toolchain_row(&probe::toolchains()));
        rows.extend(facilities().into_iter().map(facility_row));
        Self { rows }
    }

    /// Appends a row. The command adds what only it knows, such as the engines.
    pub fn push(&mut self, row: Finding) {
        self.rows.push(row);
    }

    /// The report for a screen of this width: a line for each row with its name, value and verdict, and advice on separate
    /// lines below.
    pub fn text(&self, width: usize) -> String {
        let margin = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0) + 2;
        let verdict = self.rows.iter().map(|row| row.verdict.text().len()).max().unwrap_or(0) + 2;
        let widest = WIDEST_VALUE.min(width.saturating_sub(margin + verdict));
        let mut table = Table::untitled(3);
        for row in &self.rows {
            let mut values = wrapped_lines(&row.value, widest).into_iter();
            let verdict = row.verdict.text().to_string();
            table.push(vec![row.name.clone(), values.next().unwrap_or_default(), verdict]);
            values.for_each(|value| table.push(vec![String::new(), value, String::new()]));
        }
        let mut lines = table.lines().into_iter();
        let mut out = String::new();
        for row in &self.rows {
            let own = wrapped_lines(&row.value, widest).len();
            lines.by_ref().take(own).for_each(|line| out += &(line + "\n"));
            if let Some(advice) = &row.advice {
                let (first, next) = (format!("{:margin$}-> ", ""), " ".repeat(margin + 3));
                out += &wrapped(&first, &next, advice, width.min(LINE));
            }
        }
        out
    }
}

/// Warnings that no row has taken yet.
struct Warnings(Vec<Warning>);

impl Warnings {
    /// A row that warns if any of these warnings is present.
    fn row(&mut self, name: &str, value: String, ids: &[&str]) -> Finding {
        let found = self.take(ids);
        let verdict = if found.is_empty() { Verdict::Ok } else { Verdict::Warn };
        finding(name, value, verdict, &found)
    }

    /// A row whose warnings are information only.
    fn info(&mut self, name: &str, value: String, ids: &[&str]) -> Finding {
        let found = self.take(ids);
        let verdict = if found.is_empty() { Verdict::Ok } else { Verdict::Info };
        finding(name, value, verdict, &found)
    }

    fn take(&mut self, ids: &[&str]) -> Vec<Warning> {
        let is_ours = |warning: &mut Warning| ids.contains(&warning.id.as_str());
        self.0.extract_if(.., is_ours).collect()
    }

    /// Separate rows for the warnings that no other row took, so that none is lost.
    fn rest(self) -> Vec<Finding> {
        let alone = |warning: Warning| Finding {
            name: warning.id,
            value: warning.text,
            verdict: Verdict::Warn,
            advice: Some(warning.advice),
        };
        self.0.into_iter().map(alone).collect()
    }
}

fn finding(name: &str, value: String, verdict: Verdict, warnings: &[Warning]) -> Finding {
    let advice = warnings.iter().map(|warning| format!("{} {}", warning.text, warning.advice));
    let advice = advice.collect::<Vec<_>>().join(" ");
    Finding { name: name.into(), value, verdict, advice: Some(advice).filter(|text| !text.is_empty()) }
}

fn tool_text(machine: &Machine) -> String {
    format!("kvdyno {}, {} build", env!("CARGO_PKG_VERSION"), machine.tool_build)
}

fn machine_text(machine: &Machine) -> String {
    let cpus = machine.cpus.map(|cpus| match machine.cpus_allowed {
        Some(allowed) if allowed != cpus => format!("{cpus} CPUs, {allowed} usable"),
        _ => format!("{cpus} CPUs"),
    });
    let parts = [
        Some(machine.cpu_model.clone().unwrap_or_else(|| machine.architecture.clone())),
        cpus,
        machine.virtualisation.as_ref().map(|name| format!("VM: {name}")),
        machine.memory_bytes.map(bytes_text),
        machine.kernel.as_ref().map(|release| format!("kernel {release}")),
        machine.os.clone(),
        machine.cgroup_versions.as_ref().map(|versions| format!("cgroup {versions}")),
    ];
    joined(parts)
}

fn clock_text(facts: &ClockFacts) -> String {
    let across = facts
        .hand_offs
        .zip(facts.backward_steps)
        .map(|(hand_offs, steps)| format!("{steps} backward steps in {hand_offs} hand-offs between CPUs"));
    let parts = [
        Some(facts.source.clone()),
        Some(format!("read cost {}", time_text(facts.cost_ns))),
        facts.smallest_step_ns.map(|step_ns| format!("smallest step {}", time_text(step_ns))),
        across,
    ];
    joined(parts)
}

fn data_path_text(facts: Option<&FileSystemFacts>, conditions: &Conditions) -> String {
    let free = conditions.disk_free_bytes.map(|bytes| format!("{} free", bytes_text(bytes)));
    let Some(facts) = facts else {
        return joined([Some("file system unknown".into()), free]);
    };
    let parts = [
        Some(facts.kind.clone()),
        facts.device.as_ref().map(|device| format!("on {device}")),
        facts.write_cache.as_ref().map(|cache| format!("cache {cache}")),
        facts.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")),
        Some(facts.options.join(" ")).filter(|options| !options.is_empty()),
        free,
    ];
    joined(parts)
}

fn memory_text(machine: &Machine, conditions: &Conditions) -> String {
    let swap = machine.swap_bytes.map(|bytes| match bytes {
        0 => "no swap".into(),
        bytes => format!("swap {}", bytes_text(bytes)),
    });
    let parts = [
        conditions.memory_available_bytes.map(|bytes| format!("{} available", bytes_text(bytes))),
        swap,
        machine.transparent_huge_pages.as_ref().map(|pages| format!("huge pages {pages}")),
    ];
    joined(parts)
}

fn processor_text(machine: &Machine) -> String {
    let governor = machine.governor.as_deref().unwrap_or("unknown");
    let turbo = match machine.turbo {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    };
    format!("governor {governor}, turbo {turbo}")
}

fn limits_text(machine: &Machine) -> String {
    let count = |limit: Option<Limit>| limit_text(limit, |count| count.to_string());
    let bytes = |limit: Option<Limit>| limit_text(limit, bytes_text);
    let cpus =
        limit_text(machine.cgroup_cpu_thousandths, |thousandths| format!("{}", thousandths as f64 / 1000.0));
    format!(
        "open files {} (hard limit {}), locked memory {}, cgroup memory {}, cgroup CPUs {cpus}",
        count(machine.open_files_soft),
        count(machine.open_files_hard),
        bytes(machine.locked_memory_soft_bytes),
        bytes(machine.cgroup_memory_bytes),
    )
}

fn limit_text(limit: Option<Limit>, text: impl Fn(u64) -> String) -> String {
    match limit {
        Some(Limit::At(value)) => text(value),
        Some(Limit::Unlimited) => "unlimited".into(),
        None => "unknown".into(),
    }
}

fn sync_row(times: std::io::Result<SyncTimes>) -> Finding {
    let row = |value, verdict, advice: Option<&str>| Finding {
        name: "fdatasync".into(),
        value,
        verdict,
        advice: advice.map(str::to_owned),
    };
    let times = match times {
        Ok(times) => times,
        Err(error) => {
            let advice = "Choose a data path that this user may write to.";
            return row(format!("test failed: {error}"), Verdict::Warn, Some(advice));
        }
    };
    let text = |time: Option<u64>| time.map_or("-".into(), |ns| time_text(ns as f64));
    let value = format!(
        "p50 {}, p99 {}, max {} over {} appends of 4 KiB",
        text(times.p50_ns),
        text(times.p99_ns),
        text(times.max_ns),
        times.count
    );
    if times.p50_ns.is_some_and(|ns| ns < SUSPICIOUS_SYNC_NS) {
        let advice = "No disk completes a sync that fast, so results at durability level power mean nothing here. \
                      Put the data path on a disk.";
        return row(value, Verdict::Warn, Some(advice));
    }
    row(value, Verdict::Ok, None)
}

fn noise_row(clock: &Clock, conditions: &Conditions, warnings: &mut Warnings) -> Finding {
    let probe = NoiseProbe::start();
    let jitter = Jitter::watch(clock, WATCH_NS);
    let noise = probe.finish();
    let steal = noise.steal_share;
    let parts = [
        Some(format!("CPU jitter {}", share_text(jitter.lost_share))),
        Some(format!("longest gap {}", time_text(jitter.longest_gap_ns as f64))),
        steal.map(|share| format!("steal {}", share_text(share))),
        conditions.load.map(|load| format!("load average {load}")),
    ];
    let mut row = warnings.row("noise", joined(parts), &["load"]);
    let is_noisy = jitter.lost_share > JITTER_LIMIT || steal.is_some_and(|share| share > STEAL_LIMIT);
    if is_noisy && row.verdict == Verdict::Ok {
        row.verdict = Verdict::Warn;
        row.advice = Some("Wait until the machine is quiet, or request more runs with --runs 10.".into());
    }
    row
}

fn toolchain_row(found: &[(&'static str, Tool)]) -> Finding {
    let mark = |tool: &Tool| match tool {
        Tool::Version(version) => version.clone(),
        Tool::Absent => "-".into(),
        Tool::Unknown(_) => "?".into(),
    };
    let all = found.iter().map(|(name, tool)| format!("{name} {}", mark(tool)));
    let absent: Vec<&str> =
        found.iter().filter(|(_, tool)| *tool == Tool::Absent).map(|(name, _)| *name).collect();
    let mut advice = Vec::new();
    if !absent.is_empty() {
        advice.push(format!(
            "Engines that need {} cannot be built on this machine. Install the missing tools.",
            absent.join(", ")
        ));
    }
    let reason = |tool: &Tool| match tool {
        Tool::Unknown(reason) => Some(reason.clone()),
        _ => None,
    };
    let unknown: Vec<(&str, String)> =
        found.iter().filter_map(|(name, tool)| Some((*name, reason(tool)?))).collect();
    for same in unknown.chunk_by(|one, other| one.1 == other.1) {
        let names: Vec<&str> = same.iter().map(|(name, _)| *name).collect();
        advice.push(format!("The version of {} is not known: {}.", names.join(", "), same[0].1));
    }
    Finding {
        name: "toolchains".into(),
        value: all.collect::<Vec<_>>().join("  "),
        verdict: if advice.is_empty() { Verdict::Ok } else { Verdict::Info },
        advice: (!advice.is_empty()).then(|| advice.join(" ")),
    }
}

fn facility_row(facility: Facility) -> Finding {
    let verdict = match facility.answer {
        Availability::Works => Verdict::Ok,
        Availability::Unknown => Verdict::Info,
        Availability::NotPermitted | Availability::Missing => Verdict::Missing,
    };
    Finding {
        name: facility.name,
        value: facility.detail,
        verdict,
        advice: (verdict != Verdict::Ok).then_some(facility.advice),
    }
}

/// The parts that are known, separated by commas.
fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
