//! Settings in words: the load of a phase, and the machine of a run.

use super::escape::shell_word;
use super::figure::{known, rate, time};
use kvdyno_core::results::label::LIMIT;
use kvdyno_core::results::summary::{Cell, Latency, PhaseSummary, RunState, Summary};
use kvdyno_core::results::{Durability, ForeignData, OpKind, Run, SizeRange};
use kvdyno_core::workload::arrivals_text;
use kvdyno_measure::Machine;
use kvdyno_measure::text::{
    bytes_text, counted, few, grouped, listed, plain_text, share_text, short_text, time_text,
};
use std::collections::BTreeMap;

/// `quick / read`.
pub(super) fn phase_name(phase: &PhaseSummary) -> String {
    plain_text(&format!("{} / {}", phase.workload, phase.name))
}

/// An engine without options, truncated to fit a table.
pub(super) fn engine_name(engine: &str) -> String {
    short_text(engine, LIMIT)
}

/// The name of a cell in a table.
pub(super) fn cell_name(cell: &Cell) -> String {
    cell.label.clone()
}

/// The maximum number of engines that the title of a matrix names.
const CACHES: usize = 3;
/// If the times of one kind of op of a cell are this many times those of another, they are shown apart.
const APART: f64 = 2.0;

/// Whether a cell has several kinds of op whose medians or 99th percentiles are so different that those of all ops together
/// say little about either.
pub(super) fn has_kinds_apart(cell: &Cell) -> bool {
    let is_apart = |of: fn(&Latency) -> Option<u64>| {
        let times = || cell.kinds.iter().filter_map(|kind| of(&kind.latency));
        times().min().zip(times().max()).is_some_and(|(least, most)| most as f64 > APART * least as f64)
    };
    is_apart(|times| times.p99_ns) || is_apart(|times| times.p50_ns)
}

/// The figure by which a cell is ranked: its rate, or the p99 of the response times of requests that arrive at a rate.
pub(super) fn headline(cell: &Cell) -> String {
    match &cell.arrived {
        Some(arrived) => known(arrived.response.p99_ns, time),
        None => known(cell.ops_per_second, rate),
    }
}

/// `p99 1.68us`, or `p99 get 60.1us, update 17.2ms` if its kinds of op differ much; none: unknown.
pub(super) fn p99_words(cell: &Cell) -> Option<String> {
    if let Some(arrived) = &cell.arrived {
        return Some(format!("response p99 {}", time(arrived.response.p99_ns?)));
    }
    if !has_kinds_apart(cell) {
        return Some(format!("p99 {}", time(cell.latency.p99_ns?)));
    }
    cell.kinds.iter().find_map(|kind| kind.latency.p99_ns)?;
    let each = cell
        .kinds
        .iter()
        .map(|kind| format!("{} {}", plain_text(kind.kind.as_str()), known(kind.latency.p99_ns, time)));
    Some(format!("p99 {}", each.collect::<Vec<_>>().join(", ")))
}

/// The load of a phase in one line: ops, keys, values, distribution, threads, end, requested level.
pub(super) fn phase_settings(phase: &PhaseSummary) -> String {
    let settings = &phase.settings;
    let value_size = settings.value_size.as_ref().unwrap_or(&phase.value.size);
    let (keys, values) = match &phase.foreign {
        Some(found) => foreign(found),
        None => {
            let share = share_text(phase.value.compressed_share);
            (keys(phase), format!("values of {value_size} B that compress to {share}"))
        }
    };
    let parts = [
        mix(phase),
        keys,
        values,
        indexes(phase),
        format!("{}{}", settings.distribution, if settings.clustered { ", clustered" } else { "" }),
        threads(phase),
        end(phase),
        settings.rate.as_ref().map_or_else(String::new, |rate| {
            format!("requests/s: {}", arrivals_text(rate, settings.arrivals, settings.when_late))
        }),
        phase
            .rounds
            .map_or_else(String::new, |rounds| format!("over {}", counted(rounds.into(), "round", "rounds"))),
        format!("requested durability level: {}", phase.durability_requested),
    ];
    plain_text(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "))
}

/// The keys and values of another program.
fn foreign(found: &ForeignData) -> (String, String) {
    let sizes = |sizes: &SizeRange| match sizes.min == sizes.max {
        true => format!("{} B", grouped(sizes.min)),
        false => {
            format!("{} to {} B (median {})", grouped(sizes.min), grouped(sizes.max), grouped(sizes.median))
        }
    };
    let drawn = match found.rows {
        Some(rows) if rows == found.drawn => format!("{} keys", grouped(rows)),
        Some(rows) => format!("{} of {} keys", grouped(found.drawn), grouped(rows)),
        None => format!("{} keys of a file", grouped(found.drawn)),
    };
    let keys = format!("foreign data: {drawn}, of {}", sizes(&found.key_bytes));
    (keys, format!("values of {}, not checked", sizes(&found.value_bytes)))
}

/// `10,000 keys of 16 B in 8 keyspaces`, `10,000 elements in 16 lists`.
fn keys(phase: &PhaseSummary) -> String {
    let keys = grouped(phase.keys);
    let (collections, kind) = (phase.collections.count, phase.collections.r#type);
    if phase.collections.are_lists() {
        return format!("{keys} elements in {}", counted(collections.into(), "list", "lists"));
    }
    let space = match phase.collections.has_fields() {
        true => format!(" in {collections} collections of type {}", kind.name()),
        false => keyspaces(phase),
    };
    // Without a count if phases insert the keys.
    let number = if phase.keys > 0 { keys + " " } else { String::new() };
    format!("{number}keys of {} B{space}", phase.key.size)
}

fn keyspaces(phase: &PhaseSummary) -> String {
    match phase.keyspaces {
        0 | 1 => String::new(),
        count => format!(" in {count} keyspaces"),
    }
}

/// `3 indexes of 8 B, 1 clustering`; empty without indexes.
fn indexes(phase: &PhaseSummary) -> String {
    let indexes = &phase.indexes;
    if indexes.is_empty() {
        return String::new();
    }
    let mut lengths: Vec<String> = indexes.iter().map(|index| index.length.to_string()).collect();
    lengths.dedup();
    let clustering = match indexes.iter().filter(|index| index.clustering).count() {
        0 => String::new(),
        count => format!(", {count} clustering"),
    };
    let indexes = counted(indexes.len() as u64, "index", "indexes");
    format!("{indexes} of {} B{clustering}", lengths.join(" and "))
}

/// The data of a workload and what they fit into: `57,000 keys, 6.31 MiB: fits the caches of all engines but berkeleydb`; none:
/// their size varies, or no engine has a cache of its own.
pub(super) fn data(summary: &Summary, workload: &str) -> Option<String> {
    let phase = summary.phases.iter().find(|phase| phase.workload == workload)?;
    // Only fixed sizes are written as plain numbers.
    let size = |text: String| text.parse::<u64>().ok();
    let row = size(phase.key.size.to_string())? + size(phase.value.size.to_string())?;
    let data = phase.keys.saturating_mul(row);
    let own = || summary.records.iter().filter(|record| record.trial.workload.name == workload);
    // The cache of each engine; the smallest, if options give it several.
    let mut caches: BTreeMap<&str, u64> = BTreeMap::new();
    for record in own() {
        let cache = record.engine.as_ref().and_then(|facts| facts.cache_bytes);
        if let Some(cache) = cache.filter(|cache| *cache > 0) {
            let known = caches.entry(&record.trial.engine).or_insert(cache);
            *known = cache.min(*known);
        }
    }
    let least = *caches.values().min()?;
    let limit = own().filter_map(|record| record.trial.workload.memory_bytes).min();
    let (larger, smaller): (Vec<&str>, Vec<&str>) =
        caches.keys().copied().partition(|name| caches.get(name).is_some_and(|cache| data <= *cache));
    let fits = match limit {
        Some(limit) if data > limit => format!("more than the {} of memory of a trial", bytes_text(limit)),
        _ if smaller.is_empty() => format!("fits every engine's cache ({} or more)", bytes_text(least)),
        _ if larger.is_empty() => "fits no engine's cache".to_string(),
        _ if smaller.len() <= larger.len() => {
            format!("fits the caches of all engines but {}", few(&smaller, CACHES, "and"))
        }
        _ => format!("fits only the caches of {}", few(&larger, CACHES, "and")),
    };
    (data > 0 && phase.foreign.is_none())
        .then(|| format!("{}, {}: {fits}", counted(phase.keys, "key", "keys"), bytes_text(data)))
}

/// The op kinds with their shares: `get 95 %, update 5 %`.
fn mix(phase: &PhaseSummary) -> String {
    let mix = &phase.settings.mix;
    let present: Vec<(&str, f64)> = mix.shares().map(|(kind, share)| (kind.name(), share)).collect();
    let all: f64 = present.iter().map(|(_, share)| share).sum();
    let described = |(kind, share): &(&str, f64)| match present.len() {
        1 => kind.to_string(),
        _ => format!("{kind} {}", share_text(share / all)),
    };
    let mut text = present.iter().map(described).collect::<Vec<_>>().join(", ");
    if phase.settings.miss > 0.0 {
        text += &format!(" ({} of reads miss)", share_text(phase.settings.miss));
    }
    if mix.scan > 0.0 {
        text += &scan(phase);
    }
    text + &transaction(phase)
}

/// `, 100 ops per transaction`, `, in one transaction`; empty without transactions.
fn transaction(phase: &PhaseSummary) -> String {
    let each = match phase.settings.atomic {
        true => format!(", {} ops per transaction", grouped(phase.settings.join.into())),
        false => String::new(),
    };
    match phase.settings.transaction {
        Some(transaction) => format!("{each}, {}", transaction.words()),
        None => each,
    }
}

fn scan(phase: &PhaseSummary) -> String {
    let scan = &phase.settings.scan;
    if phase.collections.are_hashes() {
        return " of all fields of a hash".to_string();
    }
    let rows = match (scan.rows, scan.uniform_rows || scan.pareto_rows.is_some()) {
        (0, _) => " to the end".to_string(),
        (rows, true) => format!(" of 1 to {rows} rows"),
        (rows, false) => format!(" of {rows} rows"),
    };
    let index = if scan.index > 0 { format!(", by index {}", scan.index) } else { String::new() };
    let calls = match scan.rows_per_call {
        0 => String::new(),
        rows => format!(", {} per call", counted(rows.into(), "row", "rows")),
    };
    rows + &index
        + &calls
        + if scan.reverse { ", in descending order" } else { "" }
        + if scan.prefix { ", within one prefix" } else { "" }
}

fn threads(phase: &PhaseSummary) -> String {
    let settings = &phase.settings;
    let mut threads = counted(settings.threads.into(), "thread", "threads");
    for (number, one, many) in
        [(settings.readers, "reader", "readers"), (settings.writers, "writer", "writers")]
    {
        if number > 0 {
            threads += &format!(" and {}", counted(number.into(), one, many));
        }
    }
    match phase.load_generators {
        0 | 1 => threads,
        count => format!("{threads} in each of {count} load generators"),
    }
}

fn end(phase: &PhaseSummary) -> String {
    let settings = &phase.settings;
    let mut ends = Vec::new();
    if settings.each_key {
        ends.push("each key once".to_string());
    } else if let Some(ops) = settings.ops_limit() {
        ends.push(format!("{} ops", grouped(ops)));
    }
    if let Some(seconds) = settings.seconds_limit() {
        let uncounted = match settings.warmup_seconds {
            0.0 => String::new(),
            warmup => format!(", the first {warmup} s not counted"),
        };
        ends.push(format!("{seconds} s{uncounted}"));
    }
    ends.join(" or ")
}

/// The question that a phase answers, from its settings: `point reads`, `durable single writes`, `mixed reads and writes, 2
/// threads`.
pub(super) fn question(phase: &PhaseSummary) -> String {
    let settings = &phase.settings;
    let kinds: Vec<OpKind> = settings.mix.kinds().collect();
    let has_all = |is: &dyn Fn(OpKind) -> bool| kinds.iter().all(|kind| is(*kind));
    let reads = kinds.iter().any(|kind| !kind.writes()) || settings.readers > 0;
    let writes = kinds.iter().any(|kind| kind.writes()) || settings.writers > 0;
    let only = |own: OpKind| kinds == [own] && settings.readers + settings.writers == 0;
    let work = match (reads, writes) {
        _ if settings.is_fill() && settings.join > 1 => "bulk load".to_string(),
        _ if settings.is_fill() => "load by single writes".to_string(),
        (true, false) => reading(phase, &kinds),
        (true, true) if kinds.contains(&OpKind::Scan) => "mixed scans and writes".to_string(),
        (true, true) => "mixed reads and writes".to_string(),
        (false, _) if only(OpKind::ReadModifyWrite) => "read-modify-writes".to_string(),
        (false, _) if only(OpKind::Pop) => "pops from lists".to_string(),
        (false, _) if has_all(&|kind| kind.is_of_lists()) && !kinds.is_empty() => {
            writing(phase, "pushes to lists")
        }
        (false, _) if only(OpKind::Merge) => writing(phase, "counter updates"),
        (false, _) if has_all(&|kind| kind.deletes()) && !kinds.is_empty() => writing(phase, "deletes"),
        (false, _) => writing(phase, "writes"),
    };
    let durable = match phase.durability_requested {
        Durability::Power if writes => "durable ",
        _ => "",
    };
    let cold = if settings.drop_caches_before { ", cold cache" } else { "" };
    let threads = match all_threads(phase) {
        1 => String::new(),
        threads => format!(", {threads} threads"),
    };
    let rate = settings.rate.as_ref().map_or_else(String::new, |rate| format!(", {rate} requests/s"));
    format!("{durable}{work}{cold}{threads}{rate}")
}

fn reading(phase: &PhaseSummary, kinds: &[OpKind]) -> String {
    let settings = &phase.settings;
    let misses = match settings.miss {
        0.0 => String::new(),
        1.0 => ", all misses".to_string(),
        miss => format!(", {} misses", share_text(miss)),
    };
    let (points, scans) = (kinds.iter().any(|kind| kind.gets()), kinds.contains(&OpKind::Scan));
    match (points || kinds.is_empty(), scans) {
        (true, true) => "point reads and scans".to_string(),
        (false, true) => format!("scans{}", scan(phase)),
        _ if kinds == [OpKind::MultiGet] => {
            format!("point reads in groups of {}{misses}", settings.multi_get_keys)
        }
        _ => format!("point reads{misses}"),
    }
}

/// Writes of one kind, with the size of their commits.
fn writing(phase: &PhaseSummary, what: &str) -> String {
    let settings = &phase.settings;
    match (settings.transaction, settings.join) {
        (Some(transaction), _) => format!("{what} {}", transaction.words()),
        (None, 0 | 1) if settings.mix.has(|kind| kind == OpKind::Transaction) => {
            format!("transactions of {} {what}", settings.transaction_ops)
        }
        (None, 0 | 1) => format!("single {what}"),
        (None, join) => format!("{what} in groups of {}", grouped(join.into())),
    }
}

/// The number of threads in all roles.
pub(super) fn all_threads(phase: &PhaseSummary) -> u32 {
    let settings = &phase.settings;
    settings.threads.saturating_add(settings.readers).saturating_add(settings.writers).max(1)
}

/// `level process (none requested)`: what is shown of a level, and the requested one if it is another.
pub(super) fn level_words(shown: &str, effective: Durability, requested: Durability) -> String {
    let other = if requested == effective { String::new() } else { format!(" ({requested} requested)") };
    format!("level {shown}{other}")
}

/// `, 4 threads`, if variants of a phase have different numbers of them; else empty.
pub(super) fn threads_of_variant(phase: &PhaseSummary, summary: &Summary) -> String {
    let own = all_threads(phase);
    let is_same =
        |other: &&PhaseSummary| (&other.variant_of, &other.name) == (&phase.variant_of, &phase.name);
    match summary.phases.iter().filter(is_same).any(|other| all_threads(other) != own) {
        true => format!(", {}", counted(own.into(), "thread", "threads")),
        false => String::new(),
    }
}

/// The command that repeats the run, quoted for a shell.
pub(super) fn command(run: &Run) -> String {
    run.plan.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The machine in one line, without unknown facts.
pub(super) fn machine(run: &Run) -> String {
    machines_with(run, system)
}

/// One machine.
pub(super) fn machine_of(machine: &Machine) -> String {
    machine_with(machine, system(machine))
}

/// The operating system and the kernel.
fn system(machine: &Machine) -> Vec<String> {
    let kernel = machine.kernel.as_ref().map(|kernel| format!("kernel {kernel}"));
    [machine.os.clone(), kernel].into_iter().flatten().collect()
}

/// The same without the operating system, for one line.
pub(super) fn machine_brief(run: &Run) -> String {
    machines_with(run, |_| Vec::new())
}

/// The machine of the run, or each kind of machine with its number.
fn machines_with(run: &Run, system: impl Fn(&Machine) -> Vec<String>) -> String {
    let several = run.campaign.iter().flat_map(|part| &part.machines).map(|on| &on.machine);
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for machine in several {
        let text = machine_with(machine, system(machine));
        match kinds.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => kinds.push((text, 1)),
        }
    }
    if kinds.iter().map(|(_, count)| count).sum::<u64>() < 2 {
        return machine_with(&run.machine, system(&run.machine));
    }
    let each = |(text, count): &(String, u64)| format!("{}: {text}", counted(*count, "machine", "machines"));
    kinds.iter().map(each).collect::<Vec<_>>().join("; ")
}

fn machine_with(machine: &Machine, system: Vec<String>) -> String {
    let disk = machine.file_system.as_ref().map(|disk| {
        let device = disk.device.as_deref().map_or_else(String::new, |device| format!(" ({device})"));
        format!("data on {}{device}", disk.kind)
    });
    let hardware = [
        machine.cpu_model.clone(),
        machine.cpus.map(|cpus| counted(cpus, "CPU", "CPUs")),
        machine.memory_bytes.map(bytes_text),
        machine.virtualisation.as_ref().map(|hypervisor| format!("virtual machine ({hypervisor})")),
    ];
    let rest = [disk, (machine.tool_build == "debug").then(|| "DEBUG BUILD of kvdyno".to_string())];
    let parts = hardware.into_iter().flatten().chain(system).chain(rest.into_iter().flatten());
    plain_text(&parts.collect::<Vec<_>>().join(", "))
}

/// The clock and the cost of reading it.
pub(super) fn clock(run: &Run) -> String {
    plain_text(&format!("{}; reading it takes {}", run.clock.source, time_text(run.clock.cost_ns)))
}

/// The number of runs: `5 runs`, or `3 to 5 runs` if a race has left engines out of later ones.
pub(super) fn runs(summary: &Summary) -> String {
    let cells = summary.phases.iter().flat_map(PhaseSummary::cells);
    let fewest =
        cells.filter(|cell| cell.left_out > 0 && cell.counted_runs > 0).map(|cell| cell.runs.len()).min();
    let all = counted(summary.runs.into(), "run", "runs");
    fewest.map_or(all.clone(), |fewest| format!("{fewest} to {all}"))
}

/// What a race has changed; none: it was none, or has not looked yet.
pub(super) fn race(run: &Run) -> Option<String> {
    let looks = &run.plan.race.as_ref()?.looks;
    let runs: Vec<String> = looks.iter().map(|look| look.after.to_string()).collect();
    let runs = format!("{} {}", if runs.len() == 1 { "run" } else { "runs" }, listed(&runs, "and"));
    let left_out: u32 = looks.iter().map(|look| look.trials_left_out).sum();
    if looks.last()?.tables.iter().all(|table| table.beaten.is_empty()) {
        return Some(format!("looked after {runs}; any engine might still be the fastest of its table"));
    }
    let trials = counted(left_out.into(), "trial was", "trials were");
    Some(format!(
        "looked after {runs}; engines were then run only up to the last phase that they might still win, and {trials} not run"
    ))
}

/// The numbers of trials: planned, recorded and failed.
pub(super) fn trials(run: &Run, summary: &Summary) -> String {
    let runs = runs(summary);
    let mut text = format!(
        "{runs} of each cell; {} of {} trials recorded",
        summary.records.len(),
        run.plan.trials.len()
    );
    if !summary.failures.is_empty() {
        text += &format!(", {} of them failed", summary.failures.len());
    }
    text
}

/// An explanation of the memory figures.
pub(super) fn memory(summary: &Summary) -> String {
    let own = known(summary.rss_before_open_bytes, bytes_text);
    let without = summary.buffers_bytes.map_or_else(String::new, |most| {
        format!(" without the harness's buffers for keys and values, which took up to {}", bytes_text(most))
    });
    format!(
        "RSS covers the complete process of a trial{without}; before the engine was opened, the harness used {own}"
    )
}

/// A line for each run whose figures do not count, with the reason. Formats that have only figures print it as a comment.
pub(super) fn skipped_runs(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for phase in &summary.phases {
        for cell in phase.cells().chain(&phase.floors) {
            for run in cell.runs.iter().filter(|run| !run.state.counts()) {
                let why = match &run.state {
                    RunState::Failed { cause } => cause.as_str(),
                    RunState::NotRun { reason } => reason.as_str(),
                    _ => "no record",
                };
                let place = format!("{}, {}, run {}", phase_name(phase), cell_name(cell), run.repetition);
                lines.push(plain_text(&format!("{place}: {why}")));
            }
        }
    }
    lines
}
