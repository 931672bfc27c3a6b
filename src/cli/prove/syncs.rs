//! `kvdyno prove --only syncs`: compares the durability level that a driver claims with the sync calls that its engine makes.

use super::claim::{Claim, Standing};
use super::{Found, Job, Part, progress};
use crate::cli::args;
use crate::cli::error::{CliError, WRONG};
use kvdyno_core::engine::Engine;
use kvdyno_core::results::Durability;
use kvdyno_core::results::audit::{Audit, AuditVerdict, Shape};
use kvdyno_measure::signals;
use kvdyno_measure::text::{Align, Table, wrapped};
use kvdyno_prove::syncs::{GROUP, Pass, observe};
use kvdyno_report::{SYNC_COLUMNS, sync_cells};
use std::path::{Path, PathBuf};
use strum::VariantArray;

/// The folder for databases.
const DATA: &str = "kvdyno-results/audit";
/// Seconds without progress.
const STALL: u64 = 120;
/// Commits of each shape: puts, groups, transactions, puts of two threads.
const COMMITS: u64 = 100;

/// The sync calls of each engine and level.
pub(super) struct Audits(Vec<Audit>);

/// How the sync calls of an engine are counted.
pub(super) struct Order<'o> {
    pub name: &'o str,
    pub engine: &'o Engine,
    pub options: &'o [(String, String)],
    pub seed: u64,
    pub data: &'o Path,
    /// The name of the run in the folder.
    pub run: &'o str,
}

impl Order<'_> {
    /// A pass at one level.
    pub(super) fn pass(&self, level: Durability, commits: Option<u64>) -> Pass {
        Pass {
            engine: args::split_options(self.name).0.to_string(),
            plugin: self.engine.plugin_file().map(PathBuf::from),
            level,
            options: self.options.to_vec(),
            seed: self.seed,
            commits: commits.unwrap_or(COMMITS),
            shapes: Shape::VARIANTS.to_vec(),
            data: self.data.to_path_buf(),
            run: self.run.into(),
        }
    }
}

/// Counts the sync calls of the engines.
pub(super) fn find(job: &Job<'_>) -> Result<Audits, CliError> {
    let data = &job.args.data(DATA);
    let mut audits = Vec::new();
    job.in_folder(data, &["audit"], || {
        job.tell_without_level();
        for (name, engine, options) in job.each() {
            let order = Order { name, engine, options, seed: job.args.seed, data, run: "audit" };
            for level in job.levels(engine).take_while(|_| signals::interrupts() == 0) {
                progress(&format!("{name}, level {level}"));
                let pass = order.pass(level, job.args.ops);
                audits.push(observe(&pass, job.args.stall(STALL)).map_err(CliError::failed)?);
            }
        }
        Ok(())
    })?;
    Ok(Audits(audits))
}

impl Found for Audits {
    fn nothing(&self) -> Option<CliError> {
        self.0.is_empty().then(|| {
            CliError::usage("none of these engines has a level of --durability")
                .hint("`kvdyno engines NAME` shows the levels of an engine")
        })
    }

    fn text(&self) -> String {
        text(&self.0)
    }

    fn json(&self) -> Result<serde_json::Value, CliError> {
        Ok(serde_json::Value::Array(self.0.iter().map(json_of).collect()))
    }

    fn claims(&self) -> Vec<Claim> {
        self.0.iter().map(claim).collect()
    }

    fn interrupted(&self) -> &'static str {
        "only the engines listed above were audited"
    }

    fn code(&self) -> Result<u8, CliError> {
        let is_contradicted = |audit: &Audit| audit.verdict().0 == AuditVerdict::Contradicted;
        Ok(if self.0.iter().any(is_contradicted) { WRONG } else { 0 })
    }
}

/// Whether the sync calls are those of the level.
fn claim(audit: &Audit) -> Claim {
    let (verdict, reason) = audit.verdict();
    let result = match verdict {
        AuditVerdict::Agrees | AuditVerdict::Stronger => Standing::Kept,
        AuditVerdict::Contradicted => Standing::Broken,
        AuditVerdict::NotObserved => Standing::NotHere,
    };
    let found = match reason {
        Some(reason) if result != Standing::Kept => reason.to_string(),
        _ => verdict.to_string(),
    };
    Claim { engine: audit.engine.clone(), part: Part::Syncs, level: Some(audit.level), result, found }
}

/// An observation with its verdict.
fn json_of(audit: &Audit) -> serde_json::Value {
    let mut value = serde_json::to_value(audit).unwrap_or_default();
    let (verdict, reason) = audit.verdict();
    value["verdict"] = serde_json::json!(verdict);
    value["reason"] = serde_json::json!(reason);
    value
}

/// The table, and the reasons of verdicts other than `agrees`.
fn text(audits: &[Audit]) -> String {
    let subject = [("engine", Align::Left), ("version", Align::Left), ("level", Align::Left)];
    let columns = [&subject[..], &SYNC_COLUMNS, &[("verdict", Align::Left)]].concat();
    let mut table = Table::with_titles(&columns);
    let mut reasons = String::new();
    for audit in audits {
        let (verdict, reason) = audit.verdict();
        let mut row = vec![
            audit.engine.clone(),
            audit.version.clone().unwrap_or_else(|| "-".into()),
            audit.level.to_string(),
        ];
        row.extend(sync_cells(audit));
        row.push(verdict.to_string());
        table.push(row);
        if let Some(reason) = reason {
            let line = format!("{}, level {}: {verdict}: {reason}.", audit.engine, audit.level);
            reasons += &wrapped("", "  ", &line, 100);
        }
    }
    let head = format!("Syncs per acknowledged commit; groups and transactions have {GROUP} puts:");
    format!("{head}\n\n{}\n{reasons}", table.text())
}
