//! `kvdyno prove --only faults`: makes system calls of engines fail, and shows what they do and what is left.

use super::claim::{Claim, Standing, not_here};
use super::crash::Images;
use super::{Found, Job, Part, progress};
use crate::cli::args;
use crate::cli::error::{CliError, WRONG};
use crate::cli::number::number;
use kvdyno_measure::signals;
use kvdyno_measure::text::{Align, Table, wrapped};
use kvdyno_prove::faults::{FaultKind, IN_MEMORY, Reaction, Row, Target, probe};
use std::path::PathBuf;
use strum::VariantArray;

/// The options of this part alone.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Faults")]
#[group(skip)]
pub(super) struct Own {
    /// Faults: sync-eio, write-eio, read-eio, write-eintr, map-enomem, write-short (one call fails), enospc, emfile (all calls fail from one on),
    /// disk-eio (one write of the disk fails, which needs root)
    /// [default: all].
    #[arg(long = "faults", value_name = "FAULTS", value_delimiter = ',')]
    pub kinds: Vec<FaultKind>,
    /// Number of failing calls of each kind, each tested in its own process [default: 6].
    #[arg(long, value_name = "N", value_parser = number(1..=100_000_u64))]
    pub points: Option<u64>,
}

/// The folder for databases.
const DATA: &str = "kvdyno-results/faults";
/// Seconds without progress after which an engine hangs. Some try again for half a minute.
const STALL: u64 = 90;
/// Failing calls of each kind.
const POINTS: u64 = 6;

/// What engines do at each fault.
pub(super) struct Faults {
    rows: Vec<Row>,
    kinds: Vec<FaultKind>,
}

/// Makes system calls of the engines fail, each at the strongest of the levels to test.
pub(super) fn find(job: &Job<'_>) -> Result<Faults, CliError> {
    let own = &job.args.faults;
    let kinds = if own.kinds.is_empty() { FaultKind::VARIANTS.to_vec() } else { own.kinds.clone() };
    let data = job.args.data(DATA);
    let images = job.args.crash.images();
    let _images = kinds.contains(&FaultKind::DiskEio).then(|| Images::in_folder(&images, true));
    let mut rows = Vec::new();
    job.in_folder(&data, &["faults"], || {
        for (name, engine, options) in job.each() {
            if engine.stores_nothing() || signals::interrupts() > 0 {
                continue;
            }
            let Some(level) = job.levels(engine).last() else { continue };
            progress(name);
            let target = Target {
                engine: args::split_options(name).0.to_string(),
                plugin: engine.plugin_file().map(PathBuf::from),
                level,
                options: options.to_vec(),
                seed: job.args.seed,
                points: own.points.unwrap_or(POINTS) as usize,
                data: data.clone(),
                images: images.clone(),
                image_bytes: job.args.crash.image_size(),
                stall: job.args.stall(STALL),
            };
            rows.extend(probe(&target, &kinds).map_err(CliError::failed)?);
        }
        Ok(())
    })?;
    Ok(Faults { rows, kinds })
}

impl Found for Faults {
    fn nothing(&self) -> Option<CliError> {
        self.rows.is_empty().then(|| {
            CliError::usage("none of these engines stores anything at this level")
                .hint("`kvdyno engines NAME` shows the levels of an engine")
        })
    }

    fn text(&self) -> String {
        text(&self.rows, &self.kinds)
    }

    fn json(&self) -> Result<serde_json::Value, CliError> {
        Ok(serde_json::to_value(&self.rows)?)
    }

    fn claims(&self) -> Vec<Claim> {
        self.rows.chunk_by(|one, other| one.engine == other.engine).map(claim).collect()
    }

    fn interrupted(&self) -> &'static str {
        "the last engine above may be incomplete"
    }

    fn code(&self) -> Result<u8, CliError> {
        if self.rows.iter().all(|row| row.skipped.is_some()) {
            let is_nothing = self.rows.iter().all(|row| row.points.is_empty());
            let text = if is_nothing { "nothing was tested" } else { "not all faults were tested" };
            return Err(CliError::failed(text).hint("the reasons are above"));
        }
        Ok(if self.rows.iter().any(Row::is_broken) { WRONG } else { 0 })
    }
}

/// Whether an engine keeps its promises at all faults.
fn claim(rows: &[Row]) -> Claim {
    let (engine, level) = (&rows[0].engine, Some(rows[0].level));
    let broken: Vec<String> = rows
        .iter()
        .filter_map(|row| Some((row, row.first(Reaction::Broken)?)))
        .map(|(row, point)| format!("{}: {}", row.fault, point.text))
        .collect();
    if let (true, Some(reason)) = (rows.iter().all(|row| row.skipped.is_some()), &rows[0].skipped) {
        return not_here(engine, Part::Faults, level, reason);
    }
    let (result, found) = if broken.is_empty() {
        let cells: Vec<String> = rows.iter().map(|row| format!("{} {}", row.fault, cell(row))).collect();
        (Standing::Kept, cells.join("; "))
    } else {
        (Standing::Broken, broken.join("; "))
    };
    Claim { engine: engine.clone(), part: Part::Faults, level, result, found }
}

/// The matrix, and the reasons for everything but a report.
fn text(rows: &[Row], kinds: &[FaultKind]) -> String {
    let mut titles = vec![("engine", Align::Left), ("version", Align::Left), ("level", Align::Left)];
    titles.extend(kinds.iter().map(|kind| (kind.name(), Align::Left)));
    let mut table = Table::with_titles(&titles);
    let (mut lines, mut in_memory): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for of_engine in rows.chunk_by(|one, other| one.engine == other.engine) {
        let first = &of_engine[0];
        if first.skipped.as_deref() == Some(IN_MEMORY) {
            in_memory.push(&first.engine);
            continue;
        }
        let version = first.version.clone().unwrap_or_else(|| "-".into());
        let mut cells = vec![first.engine.clone(), version, first.level.to_string()];
        cells.extend(of_engine.iter().map(cell));
        table.push(cells);
        of_engine.iter().for_each(|row| lines.extend(reasons(row)));
    }
    lines.dedup();
    if !in_memory.is_empty() {
        lines.push(format!("Not tested, because they keep nothing in files: {}.", in_memory.join(", ")));
    }
    let lines: String = lines.iter().map(|line| wrapped("", "  ", line, 100)).collect();
    format!("What engines do if system calls fail:\n\n{}\n{lines}", table.text())
}

/// What is said of a row besides its cell.
fn reasons(row: &Row) -> Vec<String> {
    let odd = [Reaction::Broken, Reaction::Hung, Reaction::Crashed, Reaction::Repeated];
    let of_point = |reaction| {
        let point = row.first(reaction)?;
        let after = if point.after_kill { " after a kill" } else { "" };
        let place = format!("call {} of {}{after}", point.call, row.calls);
        Some(format!("{}, {}, {place}: {reaction}: {}.", row.engine, row.fault, point.text))
    };
    let what = if row.points.is_empty() { "not observed" } else { "not all tested" };
    let skipped = row.skipped.iter().map(|reason| format!("{}: {what}: {reason}.", row.engine));
    odd.into_iter().filter_map(of_point).chain(skipped).collect()
}

/// `reported 4, absorbed 2`; `-` if no call of this kind was made.
fn cell(row: &Row) -> String {
    match &row.reactions()[..] {
        [] if row.skipped.is_some() => "not observed".into(),
        [] => "-".into(),
        [(reaction, _)] => reaction.to_string(),
        several => several
            .iter()
            .map(|(reaction, count)| format!("{reaction} {count}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
