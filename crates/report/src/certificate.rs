//! The page of a certificate: claimed against measured durability of one engine.

use super::block::Block;
use super::figure::UNKNOWN;
use kvdyno_core::results::Durability;
use kvdyno_core::results::audit::{Audit, AuditVerdict, Section, Shape};
use kvdyno_core::results::certificate::{CUTS, Certificate, Crashes, KILLS, Level, STATES, states_text};
use kvdyno_core::results::crash::Mode;
use kvdyno_core::results::label::{Labels, full_name};
use kvdyno_measure::text::{Align, Table, counted, listed, plain_text, share_text, time_text};
use strum::VariantArray;

const WHAT_IT_PROVES: &str = "The digest finds a certificate that was changed; it does not prove who made it. What each check proves, \
    and what it does not, is in docs/durability.md.";
/// How to read `163 of 260`.
const LOADED: &str =
    "crashes: those before which something was acknowledged, and of how many; only they can lose anything";
/// Why losses after power cuts do not contradict a level.
const AT_PROCESS: &str = "losses: a power cut may lose data at process";
/// The bound of states that are chosen is not that of crashes at random moments.
const REPLAYED: &str = "replay: its states are chosen, and many are of one recording, so its bound is weaker than that of as many \
    crashes at random moments";

/// The page as Markdown.
pub fn certificate_markdown(certificate: &Certificate) -> String {
    super::markdown::blocks(content(certificate))
}

/// The table of several certificates, for a terminal.
pub fn certificates_text(certificates: &[Certificate]) -> String {
    overview(certificates).text()
}

/// A row for each engine and level.
pub(super) fn overview<'c>(certificates: impl IntoIterator<Item = &'c Certificate>) -> Table {
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("version", Align::Left),
        ("verify", Align::Left),
        ("level", Align::Left),
        ("syncs/commit", Align::Right),
        ("syncs", Align::Left),
        ("crashes", Align::Right),
        ("losses", Align::Right),
        ("measured class", Align::Left),
        ("claim", Align::Left),
    ]);
    let certificates: Vec<&Certificate> = certificates.into_iter().collect();
    let subjects = certificates.iter().map(|of| (of.subject.engine.as_str(), &of.subject.options[..]));
    let labels = Labels::new(subjects);
    for certificate in certificates {
        for level in &certificate.levels {
            let subject = &certificate.subject;
            let mut row = vec![
                labels.of(&subject.engine, &subject.options),
                subject.version.clone().unwrap_or_else(|| UNKNOWN.into()),
                verified(certificate),
            ];
            row.extend(level_cells(level));
            table.push(row.iter().map(|cell| plain_text(cell)).collect());
        }
    }
    table
}

/// Level, syncs per commit, what the sync calls say, crashes, losses, class, claim.
fn level_cells(level: &Level) -> Vec<String> {
    let sum = |of: fn(&Crashes) -> u64| level.crashes.iter().map(of).sum::<u64>();
    let syncs = level.audit.section(Shape::Put).and_then(Section::syncs_per_commit);
    let (rounds, loaded) = (sum(|crashes| crashes.rounds), sum(|crashes| crashes.loaded));
    let known = |text: String| if rounds > 0 { text } else { UNKNOWN.into() };
    vec![
        level.level.to_string(),
        syncs.map_or(UNKNOWN.into(), |syncs| format!("{syncs:.2}")),
        level.audit.verdict().0.to_string(),
        known(of_all(loaded, rounds)),
        known(sum(|crashes| crashes.losses).to_string()),
        level.class_text().unwrap_or_else(|| UNKNOWN.into()),
        claim(level).into(),
    ]
}

/// Crashes with something to lose, and all if there are more.
fn of_all(loaded: u64, rounds: u64) -> String {
    if loaded == rounds { rounds.to_string() } else { format!("{loaded} of {rounds}") }
}

fn claim(level: &Level) -> &'static str {
    let is_observed = level.audit.verdict().0 != AuditVerdict::NotObserved;
    let is_crashed = level.crashes.iter().any(|crashes| crashes.loaded > 0);
    match level.contradictions().is_empty() {
        false => "CONTRADICTED",
        true if is_observed || is_crashed => "not contradicted",
        true => "not tested",
    }
}

fn verified(certificate: &Certificate) -> String {
    match certificate.verified.failures.len() {
        0 => format!("{} passed", certificate.verified.passed),
        failed => format!("{failed} FAILED"),
    }
}

fn content(certificate: &Certificate) -> Vec<Block> {
    let subject = &certificate.subject;
    let name = full_name(&subject.engine, &subject.options);
    let title = match &subject.version {
        Some(version) => format!("{name} {version}: claimed and measured durability"),
        None => format!("{name}: claimed and measured durability"),
    };
    let mut blocks = vec![Block::Title(plain_text(&title)), Block::Table(levels(certificate))];
    let has_process = certificate.levels.iter().any(|level| level.level == Durability::Process);
    blocks.extend(some_lines(has_process.then(|| AT_PROCESS.into()).into_iter().collect()));
    let contradictions = certificate.contradictions();
    if !contradictions.is_empty() {
        blocks.push(Block::Part("Contradictions".into()));
        blocks.push(lines(contradictions));
    }
    blocks.push(Block::Part("Sync calls per acknowledged commit".into()));
    blocks.push(Block::Table(audits(certificate)));
    let reasons = certificate.levels.iter().filter_map(|level| {
        let (verdict, reason) = level.audit.verdict();
        reason.map(|reason| format!("level {}: {verdict}: {reason}", level.level))
    });
    blocks.extend(some_lines(reasons.collect()));
    blocks.push(Block::Part("Crashes".into()));
    blocks.push(Block::Table(crashes(certificate)));
    blocks.extend(some_lines(notes(certificate)));
    blocks.push(Block::Part("Verification".into()));
    blocks.push(lines(vec![format!(
        "{} passed, {} failed, {} not applicable",
        counted(certificate.verified.passed, "check", "checks"),
        certificate.verified.failures.len(),
        certificate.verified.skipped
    )]));
    blocks.push(Block::Part("What was tested".into()));
    blocks.push(Block::Facts(facts(certificate)));
    let command = repetition(certificate) + &chosen(certificate);
    blocks.push(Block::Commands(vec![(command, "makes a new one".into())]));
    blocks.push(lines(vec![WHAT_IT_PROVES.into()]));
    blocks
}

fn lines(texts: Vec<String>) -> Block {
    Block::Lines(texts.iter().map(|text| plain_text(text)).collect())
}

fn some_lines(texts: Vec<String>) -> Option<Block> {
    (!texts.is_empty()).then(|| lines(texts))
}

fn levels(certificate: &Certificate) -> Table {
    let mut table = Table::with_titles(&[
        ("claimed level", Align::Left),
        ("syncs/commit", Align::Right),
        ("syncs", Align::Left),
        ("crashes", Align::Right),
        ("losses", Align::Right),
        ("measured class", Align::Left),
        ("claim", Align::Left),
    ]);
    for level in &certificate.levels {
        table.push(level_cells(level).iter().map(|cell| plain_text(cell)).collect());
    }
    table
}

/// The columns of [`sync_cells`].
pub const SYNC_COLUMNS: [(&str, Align); 5] = [
    ("put", Align::Right),
    ("group", Align::Right),
    ("transaction", Align::Right),
    ("2 threads", Align::Right),
    ("calls for the puts", Align::Left),
];

/// The sync calls per acknowledged commit of each shape, and the calls for the puts.
pub fn sync_cells(audit: &Audit) -> impl Iterator<Item = String> {
    let rate = |shape| {
        let rate = audit.section(shape).and_then(Section::syncs_per_commit);
        rate.map_or(UNKNOWN.to_string(), |rate| format!("{rate:.2}"))
    };
    let calls = audit.section(Shape::Put).map_or(UNKNOWN.to_string(), |section| {
        let calls: Vec<String> =
            section.calls.iter().map(|(name, count)| format!("{name} {count}")).collect();
        if calls.is_empty() { "none".into() } else { calls.join(", ") }
    });
    Shape::VARIANTS.iter().copied().map(rate).chain([calls])
}

fn audits(certificate: &Certificate) -> Table {
    let mut table = Table::with_titles(&[&[("level", Align::Left)], &SYNC_COLUMNS[..]].concat());
    for level in &certificate.levels {
        let row = [level.level.to_string()].into_iter().chain(sync_cells(&level.audit));
        table.push(row.map(|cell| plain_text(&cell)).collect());
    }
    table
}

fn crashes(certificate: &Certificate) -> Table {
    let mut table = Table::with_titles(&[
        ("level", Align::Left),
        ("crash", Align::Left),
        ("file system", Align::Left),
        ("crashes", Align::Right),
        ("commits", Align::Right),
        ("loss per crash", Align::Right),
        ("recovery", Align::Right),
        ("longest", Align::Right),
        ("reopen", Align::Right),
        ("verdicts", Align::Left),
    ]);
    for (level, crashes) in all_crashes(certificate) {
        let time = |ns: Option<u64>| ns.map_or(UNKNOWN.to_string(), |ns| time_text(ns as f64));
        let verdicts: Vec<String> =
            crashes.verdicts.iter().map(|(verdict, count)| format!("{verdict} {count}")).collect();
        let none = if crashes.has_failed { "failed" } else { "skipped" };
        let row = [
            level.level.to_string(),
            crashes.mode.to_string(),
            crashes.file_system.clone(),
            of_all(crashes.loaded, crashes.rounds),
            crashes.commits.to_string(),
            loss(crashes),
            time(crashes.recovery.map(|times| times.median_ns)),
            time(crashes.recovery.map(|times| times.longest_ns)),
            time(crashes.reopen.map(|times| times.median_ns)),
            if verdicts.is_empty() { none.into() } else { verdicts.join(", ") },
        ];
        table.push(row.iter().map(|cell| plain_text(cell)).collect());
    }
    table
}

fn all_crashes(certificate: &Certificate) -> impl Iterator<Item = (&Level, &Crashes)> {
    certificate.levels.iter().flat_map(|level| level.crashes.iter().map(move |crashes| (level, crashes)))
}

fn loss(crashes: &Crashes) -> String {
    match (crashes.bound(), crashes.loaded) {
        (_, 0) => UNKNOWN.into(),
        (Some(bound), _) => format!("< {}", share_text(bound)),
        (None, _) if crashes.losses == 0 => UNKNOWN.into(),
        // No random moments: the share of calls is no probability.
        (None, _) if !crashes.is_random() => format!("{} of {} kills", crashes.losses, crashes.rounds),
        (None, loaded) => share_text(crashes.losses as f64 / loaded as f64),
    }
}

/// What was skipped, some failures, and the devices.
fn notes(certificate: &Certificate) -> Vec<String> {
    let mut notes = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for (level, crashes) in all_crashes(certificate) {
        let head = format!("level {}, {} on {}", level.level, crashes.mode, crashes.file_system);
        let what = if crashes.has_failed { "failed" } else { "skipped" };
        notes.extend(crashes.skipped.iter().map(|reason| format!("{head}: {what}: {reason}")));
        notes.extend(states_text(&crashes.states).map(|text| format!("{head}: {text}")));
        let failure = crashes.failures.first();
        notes.extend(failure.map(|failure| {
            let state = failure.state.map(|state| format!(", state {state}")).unwrap_or_default();
            format!("{head}, seed {}{state}: {}: {}", failure.seed, failure.verdict, failure.detail)
        }));
        let device = format!("{} on {}: {}", crashes.mode, crashes.file_system, crashes.device);
        if crashes.rounds > 0 && !devices.contains(&device) {
            devices.push(device);
        }
    }
    notes.extend(devices);
    let has = |is: fn(&Crashes) -> bool| all_crashes(certificate).any(|(_, crashes)| is(crashes));
    notes.extend(has(|crashes| crashes.loaded < crashes.rounds).then(|| LOADED.into()));
    notes.extend(
        has(|crashes| crashes.mode == Mode::Replay && crashes.bound().is_some()).then(|| REPLAYED.into()),
    );
    notes
}

fn facts(certificate: &Certificate) -> Vec<(&'static str, String)> {
    let (subject, place) = (&certificate.subject, &certificate.place);
    let options: Vec<String> =
        subject.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let file = if subject.is_built_in { "executable (the driver is built in)" } else { "plug-in" };
    let machine: Vec<&str> =
        [place.cpu_model.as_deref(), Some(&place.architecture)].into_iter().flatten().collect();
    let kernel = place.kernel.as_deref().map(|kernel| format!(", kernel {kernel}")).unwrap_or_default();
    let all = [
        ("options", if options.is_empty() { "defaults".into() } else { listed(&options, "and") }),
        ("file", format!("{file}, SHA-256 {}", subject.file)),
        ("machine", format!("{}{kernel}", machine.join(", "))),
        (
            "made",
            format!(
                "{} by kvdyno {}, seed {}",
                certificate.made_at, certificate.tool_version, certificate.seed
            ),
        ),
        ("digest", certificate.digest.clone()),
    ];
    all.map(|(name, value)| (name, plain_text(&value))).into()
}

/// The command that makes it again.
fn repetition(certificate: &Certificate) -> String {
    let subject = &certificate.subject;
    let most = |mode: Mode| {
        let of = all_crashes(certificate).filter(|(_, crashes)| crashes.mode == mode);
        of.map(|(_, crashes)| crashes.most_states.unwrap_or(crashes.rounds)).max().filter(|count| *count > 0)
    };
    let (kills, cuts) = (most(Mode::Kill), most(Mode::Cut));
    let is_usual = kills.is_none_or(|count| count == u64::from(KILLS))
        && cuts.is_none_or(|count| count == u64::from(CUTS));
    // With a number, calls have it, too; how many they are by default is found out again.
    let rounds = kills.max(cuts).filter(|_| !is_usual);
    let states = most(Mode::Replay).filter(|count| *count != u64::from(STATES));
    let count =
        |name: &str, count: Option<u64>| count.map_or(String::new(), |count| format!(" --{name} {count}"));
    let counts = count("rounds", rounds) + &count("states", states);
    let option = |(name, value): &(String, String)| {
        format!(" --option {}", super::shell_word(&format!("{}.{name}={value}", subject.engine)))
    };
    let options: String = subject.options.iter().map(option).collect();
    format!("kvdyno prove --certificate {}{options}{counts} --seed {}", subject.engine, certificate.seed)
}

/// The options that chose the levels and the kinds of crashes.
fn chosen(certificate: &Certificate) -> String {
    let levels = certificate.levels.iter().map(|level| level.level.to_string());
    let modes = all_crashes(certificate).map(|(_, crashes)| crashes.mode.to_string());
    let is_cut = |crashes: &Crashes| !matches!(crashes.mode.known(), Some(Mode::Kill | Mode::Calls));
    let of_cuts = all_crashes(certificate).filter(|(_, crashes)| is_cut(crashes));
    let file_systems = of_cuts.map(|(_, crashes)| crashes.file_system.clone());
    let option = |name: &str, values: &mut dyn Iterator<Item = String>| {
        let mut own: Vec<String> = Vec::new();
        for value in values {
            if !own.contains(&value) {
                own.push(value);
            }
        }
        if own.is_empty() { String::new() } else { format!(" --{name} {}", own.join(",")) }
    };
    option("durability", &mut { levels })
        + &option("mode", &mut { modes })
        + &option("file-system", &mut { file_systems })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture::certificate::planted;

    #[test]
    fn the_page_has_every_level_and_the_bound_of_each_kind_of_crash() {
        let page = certificate_markdown(&planted());
        for wanted in [
            "# planted 1.2: claimed and measured durability",
            "| process | 0.00 | agrees | 600 | 120 | a power cut loses only the last commits | not contradicted |",
            "| power | 1.00 | agrees | 600 | 0 | nothing acknowledged is lost | not contradicted |",
            "| process | cut | ext4 | 300 | 12345 | 40 % |",
            "| power | cut | ext4 | 300 | 12345 | &lt; 1 % |",
            "seed 0: LOST: thread 0: commit 7 acknowledged and missing",
            "`kvdyno prove --certificate planted --rounds 300 --seed 1 --durability process,power --mode kill,cut --file-system ext4`",
        ] {
            assert!(page.contains(wanted), "{wanted}:\n{page}");
        }
        assert!(!page.contains("CONTRADICTED") && !page.contains("## Contradictions"), "{page}");
    }

    #[test]
    fn the_command_of_the_usual_crashes_names_no_number() {
        let mut certificate = planted();
        for crashes in certificate.levels.iter_mut().flat_map(|level| &mut level.crashes) {
            crashes.rounds = if crashes.mode == Mode::Kill { KILLS.into() } else { CUTS.into() };
        }
        let page = certificate_markdown(&certificate);
        assert!(page.contains("`kvdyno prove --certificate planted --seed 1 "), "{page}");
    }

    #[test]
    fn a_contradiction_is_on_the_page_and_in_the_table() {
        let mut certificate = planted();
        certificate.levels[1].lost = Some("acknowledged data was not there".into());
        let (page, table) = (certificate_markdown(&certificate), certificates_text(&[certificate]));
        assert!(page.contains("crash, level power: acknowledged data was not there"), "{page}");
        assert_eq!(table.matches("CONTRADICTED").count(), 1, "{table}");
    }

    #[test]
    fn crashes_without_anything_to_lose_are_told_apart_and_the_bound_of_replay_has_its_caveat() {
        assert!(!certificate_markdown(&planted()).contains("only they can lose anything"));
        let mut certificate = planted();
        let crashes = &mut certificate.levels[1].crashes[1];
        (crashes.loaded, crashes.mode) = (150, Mode::Replay.into());
        crashes.verdicts.push(("CREATE-FAILED".into(), 1));
        let page = certificate_markdown(&certificate);
        for wanted in [
            "| power | 1.00 | agrees | 450 of 600 | 0 | nothing acknowledged is lost; creation is not atomic |",
            "| power | replay | ext4 | 150 of 300 | 12345 | &lt; 2 % |",
            "those before which something was acknowledged",
            "its states are chosen",
        ] {
            assert!(page.contains(wanted), "{wanted}:\n{page}");
        }
    }

    /// Regression: the share of calls with a loss was called the loss per crash.
    #[test]
    fn losses_after_kills_at_calls_are_counted_and_are_no_share() {
        let mut certificate = planted();
        let crashes = &mut certificate.levels[0].crashes[1];
        crashes.mode = Mode::Calls.into();
        assert!(crashes.losses > 0 && crashes.rounds == 300, "{crashes:?}");
        let wanted = format!("| process | calls | ext4 | 300 | 12345 | {} of 300 kills |", crashes.losses);
        let page = certificate_markdown(&certificate);
        assert!(page.contains(&wanted), "{wanted}:\n{page}");
    }

    #[test]
    fn a_level_without_crashes_has_unknown_figures() {
        let mut certificate = planted();
        certificate.levels.truncate(1);
        let level = &mut certificate.levels[0];
        level.class = None;
        level.crashes.truncate(1);
        let crashes = &mut level.crashes[0];
        (crashes.rounds, crashes.loaded, crashes.commits, crashes.recovery) = (0, 0, 0, None);
        crashes.verdicts.clear();
        crashes.skipped = Some("not root".into());
        let page = certificate_markdown(&certificate);
        assert!(page.contains("| process | 0.00 | agrees | - | - | - | not contradicted |"), "{page}");
        assert!(page.contains("kill on ext4: skipped: not root"), "{page}");
    }
}
