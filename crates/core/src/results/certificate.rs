//! A certificate: what `verify`, `audit` and `crash` have shown of one version of an engine with one set of options.

use super::Word;
use super::audit::{Audit, AuditVerdict, Certified};
use super::crash::{Class, Measured, Mode};
use crate::workload::Durability;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::LazyLock;

/// The version of the format.
pub const CERTIFICATE: u32 = 1;
/// Kills at random moments for each level, unless asked for otherwise.
pub const KILLS: u32 = 600;
/// Power cuts for each level and file system, unless asked for otherwise.
pub const CUTS: u32 = 100;
/// The most states rebuilt for each level and file system, unless asked for otherwise.
pub const STATES: u32 = 2000;
/// The verdict in [`Crashes::verdicts`] on a database whose creation was interrupted for good.
const CREATE_FAILED: &str = "CREATE-FAILED";

/// The results of all checks. It has no floating-point numbers, so that its digest does not depend on how they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The [`CERTIFICATE`] of the tool that wrote it.
    pub certificate: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// When it was made, UTC, RFC 3339.
    pub made_at: String,
    /// What was checked.
    pub subject: Subject,
    /// Where it was checked.
    pub place: Place,
    /// The seed of all checks.
    pub seed: u64,
    /// The result of `verify`.
    pub verified: Verified,
    /// The results of `audit` and `crash`, by level.
    pub levels: Vec<Level>,
    /// SHA-256 of the certificate, in which this text is empty, as compact JSON.
    pub digest: String,
}

/// What a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The engine's name.
    pub engine: String,
    /// The version that its driver reports.
    pub version: Option<String>,
    /// Options that were set; all others have their defaults.
    pub options: Vec<(String, String)>,
    /// Whether the driver is built into the executable.
    pub is_built_in: bool,
    /// SHA-256 of the plug-in's file, or of the executable if the driver is built in.
    pub file: String,
}

/// The machine. Contains no names of hosts, people or folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Model of the processor.
    pub cpu_model: Option<String>,
    /// `x86_64`, `aarch64` ...
    pub architecture: String,
}

/// What `verify` has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// Checks that passed.
    pub passed: u64,
    /// Checks that do not apply to this engine.
    pub skipped: u64,
    /// Failed checks, `check: what was seen`.
    pub failures: Vec<String>,
}

/// What was found at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The level that was requested and that the driver claims.
    pub level: Durability,
    /// The sync calls.
    pub audit: Audit,
    /// The crashes, by kind.
    pub crashes: Vec<Crashes>,
    /// The measured durability class; absent if nothing decides it.
    pub class: Option<Word<Class>>,
    /// Why the crashes contradict the level.
    pub lost: Option<String>,
}

/// Crashes of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crashes {
    /// `kill`, `calls`, `cut` or `replay`.
    pub mode: Word<Mode>,
    /// The tested file system.
    pub file_system: String,
    /// What the device below it does at a crash.
    pub device: String,
    /// Threads that wrote.
    pub threads: u32,
    /// Crashes, or rebuilt states.
    pub rounds: u64,
    /// Those of them before which something was acknowledged.
    pub loaded: u64,
    /// Acknowledged commits.
    pub commits: u64,
    /// Crashes after which acknowledged data was not as it was.
    pub losses: u64,
    /// Crashes by verdict, from the best to the worst.
    pub verdicts: Vec<(String, u64)>,
    /// Duration of the first open after a crash.
    pub recovery: Option<Times>,
    /// Duration of the next open, after a clean close.
    pub reopen: Option<Times>,
    /// Some of the rounds that were not `OK`.
    pub failures: Vec<Failure>,
    /// Why some or all rounds were not run.
    pub skipped: Option<String>,
    /// Whether that was a failure of the engine, and not of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_failed: bool,
    /// The states of the recordings that were replayed; absent if there are none, and in older certificates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<States>,
    /// The limit on their number (`--states`), of which a sample is a function; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_states: Option<u64>,
}

/// States of one kind that a power cut may leave of what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct States {
    /// The kind, in words that follow a number.
    pub kind: String,
    /// Those that were judged; no two of one recording have the same bytes.
    pub judged: u64,
    /// How many there are, with equal ones if they are too many to be compared; absent where all cannot be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<u64>,
}

/// Which states were judged: `all 900 of 900 states`, or of each kind all, or how many of how many; `None` if there are none.
pub fn states_text(states: &[States]) -> Option<String> {
    let is_all = |of: &States| of.all == Some(of.judged);
    let (listed, drawn): (Vec<&States>, Vec<&States>) =
        states.iter().filter(|of| of.judged > 0 || of.all > Some(0)).partition(|of| of.all.is_some());
    let mut parts = Vec::new();
    if listed.iter().all(|of| is_all(of)) {
        let count: u64 = listed.iter().map(|of| of.judged).sum();
        parts.extend((count > 0).then(|| format!("all {count} of {count} states")));
    } else {
        parts.extend(listed.iter().map(|of| match of.all {
            Some(all) if all == of.judged => format!("all {all} of {all} {}", of.kind),
            all => format!("sampled: {} of {} {}", of.judged, all.unwrap_or_default(), of.kind),
        }));
    }
    parts.extend(drawn.iter().map(|of| format!("sampled: {} {}", of.judged, of.kind)));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Nanoseconds over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Half of them took at most this long.
    pub median_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

/// A round that was not `OK`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What was left.
    pub verdict: String,
    /// Details.
    pub detail: String,
    /// The number of the state that was rebuilt; absent if the crash was a real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<u32>,
}

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Why a text is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It is something else.
    #[error("this is not a certificate: {0}")]
    Other(serde_json::Error),
    /// It was written by a newer version: its format.
    #[error("format {0} is newer than this kvdyno; update kvdyno")]
    Newer(u32),
    /// It lacks something.
    #[error("this is not a complete certificate: {0}")]
    Incomplete(serde_json::Error),
}

/// The name of the files of a certificate of default options, without an ending.
fn file_name(engine: &str, version: Option<&str>) -> String {
    let name = version.map_or_else(|| engine.to_string(), |version| format!("{engine}-{version}"));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    name.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect()
}

impl Certificate {
    /// Reads a certificate.
    pub fn parse(text: &str) -> Result<Certificate, CertificateError> {
        #[derive(Deserialize)]
        struct Head {
            certificate: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(CertificateError::Other)?;
        if head.certificate > CERTIFICATE {
            return Err(CertificateError::Newer(head.certificate));
        }
        serde_json::from_str(text).map_err(CertificateError::Incomplete)
    }

    /// The text of the file; it ends with a newline.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The certificate with its digest.
    pub fn sealed(mut self) -> Certificate {
        self.digest = self.computed_digest();
        self
    }

    /// Whether nothing was changed since it was made.
    pub fn is_intact(&self) -> bool {
        self.digest == self.computed_digest()
    }

    fn computed_digest(&self) -> String {
        let unsealed = Certificate { digest: String::new(), ..self.clone() };
        sha256(&serde_json::to_vec(&unsealed).unwrap_or_default())
    }

    /// The name of its files, without an ending: `lmdb-0.9.70`, with a part of a hash if options were set.
    pub fn file_name(&self) -> String {
        let subject = &self.subject;
        let mut name = file_name(&subject.engine, subject.version.as_deref());
        if !subject.options.is_empty() {
            let options = serde_json::to_vec(&subject.options).unwrap_or_default();
            name += &format!("-{}", &sha256(&options)[..8]);
        }
        name
    }

    /// Whether crashes of a kind were begun and not all of them made, or the engine failed before the first.
    pub fn is_cut_short(&self) -> bool {
        let mut all = self.levels.iter().flat_map(|level| &level.crashes);
        all.any(|crashes| crashes.skipped.is_some() && (crashes.has_failed || crashes.rounds > 0))
    }

    /// What contradicts the driver's claims; empty if nothing does.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found: Vec<String> =
            self.verified.failures.iter().map(|failure| format!("verify: {failure}")).collect();
        for level in &self.levels {
            found.extend(level.contradictions());
        }
        found
    }
}

impl Level {
    /// What contradicts the level.
    pub fn contradictions(&self) -> Vec<String> {
        let all = [("audit", self.wrong_calls()), ("crash", self.lost.clone())];
        let text = |(check, reason): (&str, Option<String>)| {
            reason.map(|reason| format!("{check}, level {}: {reason}", self.level))
        };
        all.into_iter().filter_map(text).collect()
    }

    /// The gravest of these, without the names of check and level: what crashes left before what its sync calls show.
    fn contradiction(&self) -> Option<String> {
        let lost = self.lost.as_ref().map(|lost| self.losses().unwrap_or_else(|| lost.clone()));
        lost.or_else(|| self.wrong_calls())
    }

    /// `40 of 198 crashes left lost or wrong data`, of all crashes with something to lose that the level must survive; `None`: of
    /// none.
    fn losses(&self) -> Option<String> {
        let (losses, loaded) = (self.sum(|crashes| crashes.losses), self.sum(|crashes| crashes.loaded));
        let what = if self.level == Durability::Process { "kills" } else { "crashes" };
        (losses > 0).then(|| format!("{losses} of {loaded} {what} left lost or wrong data"))
    }

    /// A sum over the crashes that the level must survive.
    fn sum(&self, of: impl Fn(&Crashes) -> u64) -> u64 {
        self.crashes.iter().filter(|crashes| crashes.must_be_survived_at(self.level)).map(of).sum()
    }

    /// Why its sync calls contradict it.
    fn wrong_calls(&self) -> Option<String> {
        let (verdict, reason) = self.audit.verdict();
        reason.filter(|_| verdict == AuditVerdict::Contradicted)
    }

    /// Crashes at random moments with something to lose that the level must survive. Kills alone prove nothing of `power`: 0 then.
    fn must_survive(&self) -> u64 {
        let is_cut = |crashes: &Crashes| crashes.is_power_cut() && crashes.loaded > 0;
        match self.level {
            Durability::Power if !self.crashes.iter().any(is_cut) => 0,
            _ => self.sum(|crashes| if crashes.mode == Mode::Calls { 0 } else { crashes.loaded }),
        }
    }

    /// The measured class, and whether a crash during the creation of the database can be final; `None` if nothing decides it.
    pub fn class_text(&self) -> Option<String> {
        self.measured().text()
    }

    fn measured(&self) -> Measured {
        let has_broken_creation = self.crashes.iter().any(Crashes::has_broken_creation);
        Measured { class: self.class.clone(), has_broken_creation }
    }
}

impl Crashes {
    /// Whether they are power cuts, real or rebuilt, which only `power` promises to survive; all others are kills.
    fn is_power_cut(&self) -> bool {
        self.mode.known().is_some_and(|mode| mode.promised_at() == Durability::Power)
    }

    /// Whether a level promises that nothing acknowledged is lost by them.
    fn must_be_survived_at(&self, level: Durability) -> bool {
        level == Durability::Power || level == Durability::Process && !self.is_power_cut()
    }

    /// Whether a crash while the database was created has left one that can neither be opened nor be created again.
    fn has_broken_creation(&self) -> bool {
        self.verdicts.iter().any(|(verdict, count)| verdict == CREATE_FAILED && *count > 0)
    }

    /// Three over the number of crashes without a loss: with 95 % confidence the probability of one is lower. `None` if there was
    /// a loss, or nothing to lose, or if the crashes were at no random moments.
    pub fn bound(&self) -> Option<f64> {
        let is_bounded = self.is_random() && self.losses == 0 && self.loaded > 0;
        is_bounded.then(|| (3.0 / self.loaded as f64).min(1.0))
    }

    /// Whether the crashes were at random moments, or at states that were chosen at random, so that the share of losses is one.
    pub fn is_random(&self) -> bool {
        self.mode != Mode::Calls
    }
}

const HEAD: &str = "\
# What the certificates in results/certificates say about each level of an engine with default options. `make
# engines-table` writes this file; do not edit it.
";

/// What is known about an engine's level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedLevel {
    /// The engine's name.
    pub engine: String,
    /// The version of its library.
    pub version: String,
    /// The level.
    pub level: Durability,
    /// What its certificate says.
    #[serde(flatten)]
    pub certified: Certified,
    /// Those of these crashes that were at random moments; at `power` 0 without any power cut.
    pub must_survive: u64,
    /// What contradicts the level; `None`: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<String>,
    /// The page that says what was done, from the root of the repository; `None`: that of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_in: Option<String>,
}

impl CertifiedLevel {
    /// The page that says what was done, from the root of the repository.
    pub fn page(&self) -> String {
        let own = || format!("{FOLDER}/{}.md", file_name(&self.engine, Some(&self.version)));
        self.seen_in.clone().unwrap_or_else(own)
    }

    /// Whether a crash while the database was created has left one that can neither be opened nor be created again.
    pub fn has_broken_creation(&self) -> bool {
        self.certified.class.has_broken_creation
    }
}

/// The folder of the certificates in the repository.
const FOLDER: &str = "results/certificates";

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(default)]
    level: Vec<CertifiedLevel>,
}

/// The rows of certificates of default options whose crashes decide a class, or that contradict a level.
pub fn certified_levels(certificates: &[Certificate]) -> Vec<CertifiedLevel> {
    let mut rows = Vec::new();
    for Certificate { subject, levels, .. } in certificates {
        let Some(version) = subject.version.as_ref().filter(|_| subject.options.is_empty()) else { continue };
        for level in levels {
            let contradiction = level.contradiction();
            let class = level.measured();
            // A contradiction counts whether or not anything decides a class.
            if class.text().is_none() && contradiction.is_none() {
                continue;
            }
            rows.push(CertifiedLevel {
                engine: subject.engine.clone(),
                version: version.clone(),
                level: level.level,
                certified: Certified {
                    class,
                    crashes: level.sum(|crashes| crashes.loaded),
                    losses: level.sum(|crashes| crashes.losses),
                    is_contradicted: contradiction.is_some(),
                },
                must_survive: level.must_survive(),
                contradiction,
                seen_in: None,
            });
        }
    }
    for known in CONTRADICTED.iter() {
        let is_same = |row: &&mut CertifiedLevel| {
            (&row.engine, &row.version, row.level) == (&known.engine, &known.version, known.level)
        };
        rows.iter_mut().filter(is_same).for_each(|row| *row = known.clone());
    }
    rows.sort_by(|one, other| {
        (&one.engine, &one.version, one.level).cmp(&(&other.engine, &other.version, other.level))
    });
    rows
}

/// The text of `engines/certified.toml`.
pub fn certified_toml(rows: Vec<CertifiedLevel>) -> String {
    format!("{HEAD}\n{}", toml::to_string(&File { level: rows }).unwrap_or_default())
}

// A test below reports a file that does not parse.
// Rows that replace those of certificates, written by hand.
static CONTRADICTED: LazyLock<Vec<CertifiedLevel>> = LazyLock::new(|| contradicted().unwrap_or_default());
static EMBEDDED: LazyLock<Vec<CertifiedLevel>> = LazyLock::new(|| embedded().unwrap_or_default());

fn rows(text: &str) -> Result<Vec<CertifiedLevel>, toml::de::Error> {
    toml::from_str(text).map(|file: File| file.level)
}

fn contradicted() -> Result<Vec<CertifiedLevel>, toml::de::Error> {
    rows(include_str!("../../../../engines/contradicted.toml"))
}

fn embedded() -> Result<Vec<CertifiedLevel>, toml::de::Error> {
    rows(include_str!("../../../../engines/certified.toml"))
}

/// What was certified of an engine at a level, in this version and with default options.
pub fn certified(engine: &str, version: &str, level: Durability) -> Option<&'static Certified> {
    certified_at(engine, level).find(|row| row.version == version).map(|row| &row.certified)
}

/// What was certified of an engine at a level, with default options, in each of its versions that has a certificate.
pub(super) fn certified_at(
    engine: &str,
    level: Durability,
) -> impl DoubleEndedIterator<Item = &'static CertifiedLevel> {
    EMBEDDED.iter().filter(move |row| row.engine == engine && row.level == level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture::certificate::planted;

    #[test]
    fn states_are_all_or_sampled_and_a_certificate_without_them_says_nothing() {
        let states = |kind: &str, judged, all| States { kind: kind.into(), judged, all };
        let of = |positions, one, any| {
            let all = [states("positions", positions, Some(9)), states("with one block lost", one, Some(4))];
            states_text(&[&all[..], &[states("with any blocks lost", any, None)]].concat()).unwrap()
        };
        assert_eq!(of(9, 4, 0), "all 13 of 13 states");
        assert_eq!(of(9, 4, 2), "all 13 of 13 states; sampled: 2 with any blocks lost");
        assert_eq!(of(9, 3, 0), "all 9 of 9 positions; sampled: 3 of 4 with one block lost");
        assert_eq!(of(8, 0, 0), "sampled: 8 of 9 positions; sampled: 0 of 4 with one block lost");
        assert_eq!(states_text(&[]), None);
        assert_eq!(states_text(&[states("positions", 0, Some(0))]), None);
    }

    #[test]
    fn a_certificate_loads_as_it_was_written_and_a_changed_one_is_recognized() {
        let certificate = planted();
        let text = certificate.json();
        let loaded = Certificate::parse(&text).unwrap();
        assert_eq!(loaded, certificate);
        assert!(loaded.is_intact());
        // The well-known digest of "abc" (FIPS 180-4).
        assert!(sha256(b"abc").starts_with("ba7816bf8f01cfea414140de5dae2223"));
        for (old, new) in [
            ("\"losses\": 0", "\"losses\": 1"),
            ("nothing acknowledged is lost", "volatile"),
            ("planted device", "other device"),
            ("\"options\": []", "\"options\": [[\"sync\", \"false\"]]"),
        ] {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text, "{old}");
            assert!(!Certificate::parse(&changed).unwrap().is_intact(), "{old}");
        }
    }

    #[test]
    fn a_text_that_is_no_certificate_is_refused_with_the_reason() {
        for (text, wanted) in [
            ("", "this is not a certificate"),
            ("{}", "missing field `certificate`"),
            (r#"{"certificate":2}"#, "update kvdyno"),
            (r#"{"certificate":1}"#, "not a complete certificate"),
        ] {
            let error = Certificate::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn contradictions_are_those_of_all_checks() {
        let mut certificate = planted();
        assert_eq!(certificate.contradictions(), Vec::<String>::new());
        certificate.verified.failures = vec!["basics: get: wrong".into()];
        certificate.levels[0].lost = Some("3 of 20 kills".into());
        certificate.levels[1].audit.sections[0].without_sync = 40;
        assert_eq!(
            certificate.contradictions(),
            [
                "verify: basics: get: wrong",
                "crash, level process: 3 of 20 kills",
                "audit, level power: 40 of 100 puts were acknowledged before any sync began",
            ]
        );
    }

    #[test]
    fn options_are_in_the_name_of_the_file_and_no_separator_is() {
        let mut certificate = planted();
        assert_eq!(certificate.file_name(), "planted-1.2");
        certificate.subject.engine = "mutant:none".into();
        certificate.subject.version = Some("../1 (x)".into());
        assert_eq!(certificate.file_name(), "mutant-none-..-1--x-");
        certificate.subject.options = vec![("sync".into(), "false".into())];
        let name = certificate.file_name();
        assert_eq!(name.len(), "mutant-none-..-1--x-".len() + 9);
        certificate.subject.options = vec![("sync".into(), "true".into())];
        assert_ne!(certificate.file_name(), name);
    }

    #[test]
    fn the_file_of_levels_has_what_the_certificates_say_and_is_read_as_it_was_written() {
        let mut other = planted();
        other.subject.options = vec![("sync".into(), "false".into())];
        let mut contradicted = planted();
        contradicted.subject.version = Some("1.10".into());
        contradicted.levels[1].lost = Some("3 of 300 kills".into());
        contradicted.levels[0].class = None;
        let rows = certified_levels(&[planted(), other, contradicted]);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.version.as_str(), row.level, row.certified.losses, row.certified.is_contradicted))
            .collect();
        assert_eq!(
            found,
            [
                ("1.10", Durability::Power, 0, true),
                ("1.2", Durability::Process, 0, false),
                ("1.2", Durability::Power, 0, false)
            ]
        );
        let text = certified_toml(rows.clone());
        assert_eq!(toml::from_str::<File>(&text).unwrap().level, rows, "{text}");
        embedded().expect("engines/certified.toml");
        for known in super::contradicted().expect("engines/contradicted.toml") {
            let own = certified_at(&known.engine, known.level).find(|row| row.version == known.version);
            assert_eq!(own, Some(&known), "`make engines-table` writes engines/certified.toml");
        }
    }

    #[test]
    fn only_crashes_with_something_to_lose_count() {
        let mut certificate = planted();
        for crashes in certificate.levels.iter_mut().flat_map(|level| &mut level.crashes) {
            crashes.loaded = if crashes.mode == Mode::Kill { 160 } else { 30 };
        }
        let rows = certified_levels(&[certificate]);
        let counts: Vec<(u64, u64)> =
            rows.iter().map(|row| (row.certified.crashes, row.must_survive)).collect();
        assert_eq!(counts, [(160, 160), (190, 190)], "a power cut is none that `process` must survive");
    }

    #[test]
    fn what_contradicts_a_level_is_counted_over_all_crashes_that_it_must_survive() {
        let mut certificate = planted();
        for level in &mut certificate.levels {
            level.lost = Some("1 of 300 kills left lost or wrong data".into());
            level.crashes[0].losses = 1;
            level.crashes[1].losses = 40;
            level.crashes[1].loaded = 198;
        }
        let rows = certified_levels(&[certificate]);
        let reasons: Vec<&str> = rows.iter().filter_map(|row| row.contradiction.as_deref()).collect();
        assert_eq!(
            reasons,
            ["1 of 300 kills left lost or wrong data", "41 of 498 crashes left lost or wrong data"]
        );
        assert_eq!(rows[0].certified.losses, 1, "a power cut may lose data at `process`");
    }

    #[test]
    fn kills_alone_prove_nothing_of_a_power_cut() {
        let mut certificate = planted();
        certificate.levels.iter_mut().for_each(|level| level.crashes.truncate(1));
        let must_survive = |certificate: &Certificate| -> Vec<u64> {
            certified_levels(std::slice::from_ref(certificate)).iter().map(|row| row.must_survive).collect()
        };
        assert_eq!(must_survive(&certificate), [300, 0]);
        let cut = planted().levels[1].crashes[1].clone();
        certificate.levels[1].crashes.push(Crashes { loaded: 0, ..cut.clone() });
        assert_eq!(must_survive(&certificate), [300, 0]);
        certificate.levels[1].crashes.push(Crashes { mode: Mode::Replay.into(), loaded: 7, ..cut });
        assert_eq!(must_survive(&certificate), [300, 307]);
    }

    #[test]
    fn a_contradiction_without_a_class_has_a_row() {
        let mut certificate = planted();
        certificate.levels.iter_mut().for_each(|level| level.class = None);
        assert_eq!(certified_levels(std::slice::from_ref(&certificate)), []);
        certificate.levels[1].lost = Some("3 of 300 power cuts".into());
        let rows = certified_levels(&[certificate]);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.level, &*row.certified.class.to_string()), (Durability::Power, "not measured"));
        assert_eq!(row.contradiction.as_deref(), Some("3 of 300 power cuts"));
    }

    #[test]
    fn a_creation_that_a_crash_breaks_for_good_is_in_the_class() {
        let mut certificate = planted();
        certificate.levels[1].crashes[0].verdicts.push((CREATE_FAILED.into(), 2));
        let rows = certified_levels(std::slice::from_ref(&certificate));
        let classes: Vec<String> = rows.iter().map(|row| row.certified.class.to_string()).collect();
        assert_eq!(
            classes,
            [
                "a power cut loses only the last commits",
                "nothing acknowledged is lost; creation is not atomic"
            ]
        );
        certificate.levels[1].class = None;
        assert_eq!(certificate.levels[1].class_text().as_deref(), Some("creation is not atomic"));
    }

    #[test]
    fn the_bound_is_that_of_crashes_with_something_to_lose() {
        let mut crashes = planted().levels[1].crashes[0].clone();
        assert_eq!(crashes.bound(), Some(0.01));
        crashes.loaded = 2;
        assert_eq!(crashes.bound(), Some(1.0));
        crashes.loaded = 0;
        assert_eq!(crashes.bound(), None);
        (crashes.loaded, crashes.losses) = (300, 1);
        assert_eq!(crashes.bound(), None);
    }
}
