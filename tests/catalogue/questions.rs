//! The page of all certificates: engines by what users ask of them, with each finding and the command that looks for it again.

use kvdyno::{Certificate, CertifiedLevel, CertifiedTest, TestedLevel};
use std::fmt::Write;

const HEAD: &str = "\
# Certificates: what survives a crash?

What [crash tests](../../docs/durability.md) have shown of each engine with default options, by what users ask. Each name leads to the
certificate of that version, a page and a JSON file made by `kvdyno prove --certificate`
([how to read one](../../docs/durability.md#certificates)); the driver is named by the first digits of the SHA-256 of the file that has
it. `make engines-table` writes this page from the certificates; do not edit it.

- [What survives a kill of the program?](#what-survives-a-kill-of-the-program)
- [What survives a power cut?](#what-survives-a-power-cut)
- [What loses only the last commits?](#what-loses-only-the-last-commits)
- [What cannot be created again?](#what-cannot-be-created-again)
- [What was not tested?](#what-was-not-tested)

A crash counts if something was acknowledged before it. So many crashes without a loss bound the probability of one: with 20, 15 % can
go unseen, with 600 0.5 %. The levels are those that the driver claims: `process`, what was acknowledged survives a kill of the program; `power`, it also
survives a power cut. To send a finding to the engine's author, add `--keep DIR` to its command
([what it writes](../../docs/durability.md#report-a-finding-to-an-engines-author)).
";

const TAIL: &str = "
These have no certificate: engines that keep nothing, or nothing at `process` or `power` (Kyoto Cabinet, GDBM, kv, caches, the variants
in memory); stores whose servers start for seconds, so that some hundred crashes take hours (`etcd`, `postgresql`, `redis-cluster`,
`cassandra`); and engines that are not in the repository's selection of packages (`rocksdb-jni`, NuDB, TokuKV, KVDK).
";

/// A level of a certificate.
struct Tested<'c> {
    certificate: &'c Certificate,
    level: &'c TestedLevel,
}

/// Which crashes: kills, or power cuts, real or rebuilt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kill,
    Cut,
}

impl Kind {
    fn is(self, crashes: &CertifiedTest) -> bool {
        (self == Kind::Kill) == matches!(crashes.mode.as_str(), "kill" | "calls")
    }
}

impl Tested<'_> {
    fn of(&self, kind: Kind) -> impl Iterator<Item = &CertifiedTest> {
        self.level.crashes.iter().filter(move |crashes| kind.is(crashes))
    }

    /// Crashes with something to lose, and those of them with a loss.
    fn counts(&self, kind: Kind) -> (u64, u64) {
        self.of(kind).fold((0, 0), |(all, lost), crashes| (all + crashes.loaded, lost + crashes.losses))
    }

    /// Engine and version with the link, and the driver.
    fn head(&self) -> String {
        let subject = &self.certificate.subject;
        format!(
            "[{}]({}.md) | {} | `{}`",
            subject.engine,
            self.certificate.file_name(),
            subject.version.as_deref().unwrap_or("-"),
            &subject.file[..12]
        )
    }

    /// What was left, by verdict, without `OK`.
    fn left(crashes: &CertifiedTest) -> String {
        let bad = crashes.verdicts.iter().filter(|(verdict, count)| verdict != "OK" && *count > 0);
        bad.map(|(verdict, count)| format!("{verdict} {count}")).collect::<Vec<_>>().join(", ")
    }

    /// The command that makes such crashes again, from the seed of the one that was found on.
    fn command(&self, crashes: &CertifiedTest) -> String {
        let mut text = format!(
            "kvdyno prove {} --only crash --mode {} --durability {}",
            self.certificate.subject.engine, crashes.mode, self.level.level
        );
        if Kind::Cut.is(crashes) {
            let _ = write!(text, " --file-system {}", crashes.file_system);
        }
        let failure = crashes.failures.iter().find(|failure| failure.verdict != "OK");
        let seed = failure.map_or(self.certificate.seed, |failure| failure.seed);
        match failure.and_then(|failure| failure.state) {
            Some(_) => text + &format!(" --states {} --seed {seed}", crashes.rounds),
            None => text + &format!(" --rounds {} --seed {seed}", crashes.rounds),
        }
    }
}

/// A row of each kind of crash of a level that lost something.
fn findings<'t>(tested: impl Iterator<Item = &'t Tested<'t>>, kind: Kind) -> Vec<String> {
    let mut rows = Vec::new();
    for one in tested {
        for crashes in one.of(kind).filter(|crashes| crashes.losses > 0) {
            rows.push(format!(
                "| {} | {} | {} on {} | {} of {} | {} | `{}` |",
                one.head(),
                one.level.level,
                crashes.mode,
                crashes.file_system,
                crashes.losses,
                crashes.loaded,
                Tested::left(crashes),
                one.command(crashes)
            ));
        }
    }
    rows
}

/// A row of each kind of crash of a level that left a database that cannot be created again.
fn without_database(one: &Tested<'_>, kind: Kind) -> Vec<String> {
    let mut rows = Vec::new();
    for crashes in one.of(kind) {
        let count = crashes
            .verdicts
            .iter()
            .find(|(verdict, _)| verdict == "CREATE-FAILED")
            .map_or(0, |(_, count)| *count);
        if count > 0 {
            rows.push(format!(
                "| {} | {} | {} on {} | {count} ({}) | `{}` |",
                one.head(),
                one.level.level,
                crashes.mode,
                crashes.file_system,
                crashes.rounds,
                one.command(crashes)
            ));
        }
    }
    rows
}

fn table(text: &mut String, titles: &str, rows: &[String]) {
    let _ = write!(text, "| {titles} |\n|{}\n", "---|".repeat(titles.matches('|').count() + 1));
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
}

const FINDING: &str = "engine | version | driver | level | crash | with a loss | what was left | again";

/// The engines of which no crash of a kind lost anything, at the levels that promise it; a row for each.
fn sound(
    all: &[Tested<'_>],
    kind: Kind,
    levels: &[&str],
    is_known: impl Fn(&Tested<'_>) -> bool,
) -> Vec<String> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for one in all.iter().filter(|one| levels.contains(&one.level.level.to_string().as_str())) {
        let (loaded, losses) = one.counts(kind);
        if losses > 0 || loaded == 0 || is_known(one) {
            continue;
        }
        let text = format!("{} ({loaded})", one.level.level);
        match rows.iter_mut().find(|(head, _)| *head == one.head()) {
            Some((_, texts)) => texts.push(text),
            None => rows.push((one.head(), vec![text])),
        }
    }
    rows.into_iter().map(|(head, texts)| format!("| {head} | {} |", texts.join(", "))).collect()
}

/// The page. `known` has also what later tests have contradicted.
pub fn page(certificates: &[(String, Certificate)], known: &[CertifiedLevel]) -> String {
    let of_default = certificates.iter().filter(|(_, certificate)| certificate.subject.options.is_empty());
    let all: Vec<Tested<'_>> = of_default
        .flat_map(|(_, certificate)| {
            certificate.levels.iter().map(move |level| Tested { certificate, level })
        })
        // At `none` nothing is promised.
        .filter(|one| one.level.level.to_string() != "none")
        .collect();
    // Contradicted by tests with more crashes.
    let later: Vec<&CertifiedLevel> = known.iter().filter(|row| row.seen_in.is_some()).collect();
    let is_known = |one: &Tested<'_>| {
        later.iter().any(|row| {
            let subject = &one.certificate.subject;
            (&row.engine, Some(&row.version), row.level)
                == (&subject.engine, subject.version.as_ref(), one.level.level)
        })
    };
    let at = |level: &'static str| all.iter().filter(move |one| one.level.level.to_string() == level);
    let mut text = HEAD.to_string();

    text += "\n## What survives a kill of the program?\n\nNo kill lost anything acknowledged (in brackets the kills):\n\n";
    table(
        &mut text,
        "engine | version | driver | levels",
        &sound(&all, Kind::Kill, &["process", "power"], is_known),
    );
    text += "\nSome hundred kills are 600 at random moments and one at every call; 20 are at random moments only. A kill at every call \
             finds more ([what was found](../crash.md#kills-at-every-call)).\n\nA kill lost or damaged something acknowledged:\n\n";
    table(&mut text, FINDING, &findings(all.iter(), Kind::Kill));
    for row in &later {
        let _ = write!(
            text,
            "\nTests with more kills than a certificate contradict {} {} at `{}`: {} ([what was done](../../{})).\n",
            row.engine,
            row.version,
            row.level,
            row.contradiction.as_deref().unwrap_or("-"),
            row.page()
        );
    }

    text += "\n## What survives a power cut?\n\nAt level `power`, no power cut and no rebuilt state lost anything acknowledged (in brackets \
             the cuts and states):\n\n";
    table(&mut text, "engine | version | driver | levels", &sound(&all, Kind::Cut, &["power"], is_known));
    text += "\nAt level `power`, a power cut lost or damaged something acknowledged:\n\n";
    table(&mut text, FINDING, &findings(at("power"), Kind::Cut));

    text += "\n## What loses only the last commits?\n\nAt level `process` a power cut may lose data. Of these engines it took only the last \
             commits, and the database could be opened (in brackets cuts and states with a loss, and all of them):\n\n";
    let is_damaged = |one: &Tested<'_>| {
        let is_worse = |(verdict, count): &(String, u64)| {
            *count > 0 && !["OK", "LOST", "CREATE-FAILED"].contains(&verdict.as_str())
        };
        one.of(Kind::Cut).any(|crashes| crashes.verdicts.iter().any(is_worse))
    };
    let counted = |one: &Tested<'_>| {
        let (loaded, losses) = one.counts(Kind::Cut);
        format!("| {} | process ({losses} of {loaded}) |", one.head())
    };
    let has_cuts = |one: &&Tested<'_>| one.counts(Kind::Cut).0 > 0;
    let rows: Vec<String> =
        at("process").filter(has_cuts).filter(|one| !is_damaged(one)).map(counted).collect();
    table(&mut text, "engine | version | driver | levels", &rows);
    text += "\nAt level `process`, a power cut left more than missing ends (no promise is broken; the database has holes or cannot be \
             opened):\n\n";
    let rows: Vec<String> = at("process")
        .filter(has_cuts)
        .filter(|one| is_damaged(one))
        .map(|one| {
            let mut sums = std::collections::BTreeMap::new();
            for (verdict, count) in one.of(Kind::Cut).flat_map(|crashes| &crashes.verdicts) {
                *sums.entry(verdict.as_str()).or_insert(0) += count;
            }
            let bad = sums.into_iter().filter(|(verdict, count)| *verdict != "OK" && *count > 0);
            let left: Vec<String> = bad.map(|(verdict, count)| format!("{verdict} {count}")).collect();
            format!("{} {} |", counted(one), left.join(", "))
        })
        .collect();
    table(&mut text, "engine | version | driver | levels | what was left", &rows);

    text += "\n## What cannot be created again?\n\nA crash while the database was created, before anything was acknowledged, left one that \
             can neither be opened nor be created again (in brackets the crashes of this kind):\n\n";
    let created = [Kind::Kill, Kind::Cut].map(|kind| {
        let of = |one| without_database(one, kind);
        all.iter().flat_map(of).collect::<Vec<_>>()
    });
    table(
        &mut text,
        "engine | version | driver | level | crash | without a database | again",
        &created.concat(),
    );
    text + &not_tested(&all) + TAIL
}

/// What the certificates do not have.
fn not_tested(all: &[Tested<'_>]) -> String {
    let mut text = "\n## What was not tested?\n\nMore rounds (`--rounds 5000 --states 20000`) find rarer losses. Other programs ran on the machine.\n"
        .to_string();
    let has_calls =
        |one: &&Tested<'_>| one.level.crashes.iter().any(|crashes| crashes.mode.as_str() == "calls");
    let mut older: Vec<&str> =
        all.iter().filter(|one| !has_calls(one)).map(|one| one.certificate.subject.engine.as_str()).collect();
    older.dedup();
    if !older.is_empty() {
        let _ = write!(
            text,
            "\nThese have no kills at calls, 20 at random moments, 20 power cuts and 100 rebuilt states on each of ext4 and XFS, in the \
             rounds of 24 November 2026, which were shorter (400 ms, no large rounds, one crash each): {}. The commands make the rounds \
             of this version, so a seed does not repeat exactly what was seen then.\n",
            older.join(", ")
        );
    }
    let of = |one: &Tested<'_>| {
        let skipped =
            one.level.crashes.iter().filter_map(|crashes| Some((crashes, crashes.skipped.as_ref()?)));
        let line = |(crashes, reason): (&CertifiedTest, &String)| {
            let (engine, level) = (&one.certificate.subject.engine, one.level.level);
            format!(
                "- {engine} at `{level}`, {} on {}: {} done; {reason}\n",
                crashes.mode, crashes.file_system, crashes.rounds
            )
        };
        skipped.map(line).collect::<String>()
    };
    let skipped: String = all.iter().map(of).collect();
    if !skipped.is_empty() {
        text += &format!("\nNot all of these were done:\n\n{skipped}");
    }
    text
}
