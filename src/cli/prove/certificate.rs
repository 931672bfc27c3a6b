//! `kvdyno prove ENGINE... --certificate`: verifies, audits and crashes engines, and writes what was found as certificates.

use super::crash;
use super::rules::{self, Verdict};
use super::syncs;
use super::{Job, ProveArgs, progress};
use crate::cli::args::split_options;
use crate::cli::error::{CliError, WRONG};
use kvdyno_core::engine::{Engine, Registry};
use kvdyno_core::results::certificate::{CERTIFICATE, Certificate, Level, Place, Subject, Verified, sha256};
use kvdyno_core::results::{Durability, Word, now_rfc3339};
use kvdyno_measure::{Machine, signals};
use kvdyno_prove::crash::outcome;
use kvdyno_prove::syncs::observe;
use kvdyno_prove::verify::Outcome;
use kvdyno_report::{certificate_markdown, certificates_text};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of certificates alone.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
#[group(skip)]
pub(super) struct Own {
    /// Run rules, syncs and crash, and write the results as certificates.
    #[arg(long = "certificate", conflicts_with = "only")]
    pub is_wanted: bool,
    /// Write the certificates, as JSON and as Markdown, to DIR. An older one of the same engine, version and options is
    /// replaced [default: kvdyno-results/certificates].
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Check that certificates were not changed, and whether they are for the drivers that are installed here.
    #[arg(id = "certificates", long = "check-certificates", value_name = "FILE", num_args = 1.., conflicts_with = "engines")]
    pub files: Vec<PathBuf>,
}

/// The folder for databases.
const DATA: &str = "kvdyno-results/certify";
/// The folder for certificates.
const OUT: &str = "kvdyno-results/certificates";

/// Writes the certificates of the engines.
pub(super) fn run(job: &Job<'_>) -> Result<u8, CliError> {
    let out = job.args.certificate.out.clone().unwrap_or_else(|| PathBuf::from(OUT));
    fs::create_dir_all(&out).map_err(CliError::cannot_write_out(&out))?;
    let data = job.args.data(DATA);
    let made = job.in_folder(&data, &["certify", "verify", "crash"], || all(job, &data, &out))?;
    // This removes the folder only if it is empty.
    let _ = fs::remove_dir(&out);
    if !made.is_empty() {
        print!("{}", certificates_text(&made));
        let found = made.iter().flat_map(|certificate| {
            let name = certificate.file_name();
            certificate.contradictions().into_iter().map(move |text| format!("{name}: {text}\n"))
        });
        let found: String = found.collect();
        let gap = if found.is_empty() { "" } else { "\n" };
        print!("{gap}{found}");
        println!("\n{}", out.display());
    }
    if signals::interrupts() > 0 {
        eprintln!("interrupted; the engine that was being tested and those after it have no new certificate");
        return Ok(signals::stopped_code());
    }
    if made.is_empty() {
        return Err(CliError::usage("none of these engines stores anything at a level of --durability")
            .hint("`kvdyno engines NAME` shows the levels of an engine"));
    }
    if made.iter().any(|certificate| !certificate.contradictions().is_empty()) {
        return Ok(WRONG);
    }
    if let Some(certificate) = made.iter().find(|certificate| certificate.is_cut_short()) {
        let text = format!("{}: not all crashes were made", certificate.file_name());
        return Err(CliError::failed(text).hint("the reason is in the certificate"));
    }
    Ok(0)
}

/// Tests all engines, and writes a certificate of each.
fn all(job: &Job<'_>, data: &Path, out: &Path) -> Result<Vec<Certificate>, CliError> {
    job.tell_without_level();
    let how = crash::How::of(job.args);
    let _images = how.prepared();
    let mut made = Vec::new();
    for (name, engine, options) in job.each() {
        // At `none` nothing is promised that could be refuted.
        let is_wanted = |level: &Durability| *level != Durability::None || !job.args.durability.is_empty();
        let levels: Vec<Durability> = job.levels(engine).filter(is_wanted).collect();
        if engine.stores_nothing() {
            eprintln!("{name}: skipped: it stores nothing");
        }
        if levels.is_empty() || engine.stores_nothing() {
            continue;
        }
        // The order of --option is of no importance.
        let mut options = options.to_vec();
        options.sort();
        let order = Order { args: job.args, how: &how, data, engine, name, options: &options };
        let certificate = order.certificate(&levels)?;
        // A certificate is complete, or it is none.
        if signals::interrupts() > 0 {
            break;
        }
        write(out, &certificate)?;
        made.push(certificate);
    }
    Ok(made)
}

/// An engine to certify.
struct Order<'o> {
    args: &'o ProveArgs,
    how: &'o crash::How,
    data: &'o Path,
    engine: &'o Engine,
    name: &'o str,
    options: &'o [(String, String)],
}

impl Order<'_> {
    /// Runs all checks. After an interrupt the certificate is incomplete.
    fn certificate(&self, levels: &[Durability]) -> Result<Certificate, CliError> {
        let counted = syncs::Order {
            name: self.name,
            engine: self.engine,
            options: self.options,
            seed: self.args.seed,
            data: self.data,
            run: "certify",
        };
        let file = file_hash(self.engine)?;
        let verified = self.verified()?;
        let mut results = Vec::new();
        for level in levels {
            if signals::interrupts() > 0 {
                break;
            }
            progress(&format!("{}, level {level}: sync calls", self.name));
            let pass = counted.pass(*level, None);
            let audit = observe(&pass, self.args.stall(crash::STALL)).map_err(CliError::failed)?;
            let cells = self.how.crashed(self.engine, self.name, self.options, *level, self.data, None);
            let outcome = outcome(&cells.iter().collect::<Vec<_>>());
            results.push(Level {
                level: *level,
                audit,
                crashes: cells.iter().map(|cell| cell.summary()).collect(),
                class: outcome.class.map(Word::Known),
                lost: outcome.contradicted,
            });
        }
        let version = results.iter().find_map(|level| level.audit.version.clone());
        let machine = Machine::observe(self.data);
        let certificate = Certificate {
            certificate: CERTIFICATE,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            made_at: now_rfc3339(),
            subject: Subject {
                engine: split_options(self.name).0.to_string(),
                version,
                options: self.options.to_vec(),
                is_built_in: self.engine.plugin_file().is_none(),
                file,
            },
            place: Place {
                kernel: machine.kernel,
                cpu_model: machine.cpu_model,
                architecture: machine.architecture,
            },
            seed: self.args.seed,
            verified,
            levels: results,
            digest: String::new(),
        };
        Ok(certificate.sealed())
    }

    fn verified(&self) -> Result<Verified, CliError> {
        let how = rules::How::usual(self.args.seed, &self.args.options);
        let order = rules::Order {
            how: &how,
            data: self.data,
            plugin: self.engine.plugin_file(),
            // A check may take longer than a crash.
            stall: self.args.stall(rules::STALL).max(Duration::from_secs(rules::STALL)),
        };
        Ok(match order.verdict(self.name)? {
            Verdict::Died(check, text) => {
                Verified { passed: 0, skipped: 0, failures: vec![format!("{check}: {text}")] }
            }
            Verdict::Short(check, text) => {
                return Err(CliError::failed(format!(
                    "{} was not verified: {text} (check {check})",
                    self.name
                )));
            }
            Verdict::Report(report) => {
                let count = |wanted: fn(&Outcome) -> bool| {
                    report.checks.iter().filter(|check| wanted(&check.outcome)).count() as u64
                };
                Verified {
                    passed: count(|outcome| *outcome == Outcome::Passed),
                    skipped: count(|outcome| matches!(outcome, Outcome::Skipped(_))),
                    failures: report.failures().map(|(check, text)| format!("{check}: {text}")).collect(),
                }
            }
        })
    }
}

/// The hash of what contains the driver.
pub(super) fn file_hash(engine: &Engine) -> Result<String, CliError> {
    let own = || std::env::current_exe().map_err(|error| CliError::failed(format!("no executable: {error}")));
    let file = engine.plugin_file().map_or_else(own, |file| Ok(file.to_path_buf()))?;
    let bytes = fs::read(&file).map_err(CliError::cannot("read", &file))?;
    Ok(sha256(&bytes))
}

fn write(folder: &Path, certificate: &Certificate) -> Result<(), CliError> {
    let mut name = certificate.file_name();
    if is_of_other(&folder.join(format!("{name}.json")), certificate) {
        // Two names and versions may make one name of a file.
        let subject = &certificate.subject;
        let whole = serde_json::to_vec(&(&subject.engine, &subject.version, &subject.options))?;
        name += &format!("-{}", &sha256(&whole)[..8]);
        eprintln!("{}.json is of something else and was not replaced; wrote {name}", certificate.file_name());
    }
    for (ending, text) in [("json", certificate.json()), ("md", certificate_markdown(certificate))] {
        let path = folder.join(format!("{name}.{ending}"));
        // After a crash the file is the old one or the new one.
        let unfinished = path.with_extension(format!("{ending}.unfinished"));
        fs::write(&unfinished, text).map_err(CliError::cannot_write_out(&unfinished))?;
        fs::rename(&unfinished, &path).map_err(CliError::cannot_write_out(&path))?;
    }
    Ok(())
}

/// Whether a file is there that is no certificate of the same engine, version and options.
fn is_of_other(file: &Path, certificate: &Certificate) -> bool {
    let own = &certificate.subject;
    let is_own = |text: String| {
        Certificate::parse(&text).is_ok_and(|Certificate { subject, .. }| {
            (&subject.engine, &subject.version, &subject.options) == (&own.engine, &own.version, &own.options)
        })
    };
    file.exists() && !fs::read_to_string(file).is_ok_and(is_own)
}

/// Checks certificates: a line for each. A changed one is wrong; one for another driver file is not.
pub(super) fn check(files: &[PathBuf], plugins: &[PathBuf]) -> Result<u8, CliError> {
    let mut engines = Vec::new();
    let mut certificates = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(CliError::cannot("read", file))?;
        let certificate = Certificate::parse(&text)
            .map_err(|error| CliError::usage(format!("{}: {error}", file.display())))?;
        engines.push(certificate.subject.engine.clone());
        certificates.push(certificate);
    }
    let registry = crate::cli::plugins::registry(plugins, &engines)?;
    let mut is_wrong = false;
    for (file, certificate) in files.iter().zip(&certificates) {
        is_wrong |= !certificate.is_intact();
        let state = if certificate.is_intact() { of_driver(&registry, certificate)? } else { CHANGED.into() };
        println!("{}: {state}", file.display());
    }
    Ok(if is_wrong { WRONG } else { 0 })
}

const CHANGED: &str = "CHANGED since it was made: its digest is wrong";

/// Whether the certificate is for the driver that is installed.
fn of_driver(registry: &Registry, certificate: &Certificate) -> Result<String, CliError> {
    let subject = &certificate.subject;
    let Ok(engine) = registry.engine(&subject.engine) else {
        return Ok(format!("intact; {} is not available here", subject.engine));
    };
    let what = if subject.is_built_in { "executable" } else { "plug-in" };
    let is_same = file_hash(&engine)? == subject.file;
    let state = if is_same { "is for this" } else { "is for another build of the" };
    Ok(format!("intact; it {state} {what}"))
}
