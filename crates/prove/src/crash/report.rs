//! Makes the folder of a kept database a report to the engine's author, who needs no kvdyno for it: a page that says what was done and
//! what is wrong, what was acknowledged, what is there, and a program that shows it by the engine's own calls.

use super::evidence::{Kept, KeptError, kept, read_kept};
use super::oracle::{Bounds, Verdict};
use super::round::Read;
use super::script::{Script, VALUE_BYTES, key};
use super::{Mode, Round};
use crate::machine::MachineError;
use kvdyno_core::engine::{Engine, report_of};
use kvdyno_core::results::Durability;
use kvdyno_measure::Machine;
use kvdyno_measure::text::{counted, parse_bytes};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// The part of the program that is the same for all engines of a language, as C and C++, Go, and Rust have it.
const COMPARE_C: &str = include_str!("../../../../driver/report/compare.h");
const COMPARE_GO: &str = include_str!("../../../../driver/report/compare.go");
const COMPARE_RUST: &str = include_str!("../../../../driver/report/compare.rs");
/// Keys that are shown on the page.
const SHOWN: usize = 20;
/// What stands for no row in the files.
const NONE: &str = "none";
/// Before what a program needs to be built, on a line of its own.
const NEEDS: &str = "Needs: ";

/// What is said about a round, beside what is known about its database.
pub struct Repeat<'r> {
    /// What the process did when it was crashed, and where.
    pub course: &'r str,
    /// The command that repeats it.
    pub command: &'r str,
    /// The command that reads the database again.
    pub again: &'r str,
    /// The SHA-256 of the file that has the driver.
    pub driver: &'r str,
}

/// What must be under a key.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    thread: u32,
    key: u32,
    /// After the last acknowledged commit.
    acked: Written,
    /// After the commit that was started and not acknowledged, if it changes the key.
    next: Option<Written>,
}

/// A commit that has changed a key; number 0: none has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    number: u64,
    is_put: bool,
}

impl Written {
    /// Whether this is what a database has: the number of the commit that wrote the value, or no row.
    fn is(&self, found: Option<u64>) -> bool {
        found == self.is_put.then_some(self.number)
    }

    fn value(&self, script: &Script, thread: u32, key: u32) -> String {
        if self.is_put { value_text(&script.value(thread, key, self.number)) } else { NONE.into() }
    }

    fn text(&self, script: &Script, thread: u32, key: u32) -> String {
        match self.number {
            0 => "no row; no commit has written it".into(),
            number if self.is_put => {
                format!("{} of commit {number}", self.value(script, thread, key))
            }
            number => format!("no row; commit {number} deleted it"),
        }
    }
}

/// A value: its length and its FNV-1a hash of 64 bits.
fn value_text(value: &[u8]) -> String {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{}:{:016x}", value.len(), value.iter().fold(0xcbf2_9ce4_8422_2325, hash))
}

fn key_text(thread: u32, number: u32) -> String {
    String::from_utf8_lossy(&key(thread, number)).into_owned()
}

/// What must be under each key.
fn expected(script: &Script, bounds: &[Bounds]) -> Vec<Expected> {
    let mut all = Vec::new();
    for (thread, bounds) in (0..).zip(bounds) {
        let mut acked = vec![Written::default(); script.keys as usize];
        let mut next = BTreeMap::new();
        for number in 1..=bounds.started {
            for change in script.commit(thread, number).changes {
                let written = Written { number, is_put: change.is_put };
                if number <= bounds.acked {
                    acked[change.key as usize] = written;
                } else {
                    next.insert(change.key, written);
                }
            }
        }
        let of = |(key, acked): (u32, Written)| Expected { thread, key, acked, next: next.remove(&key) };
        all.extend((0..).zip(acked).map(of));
    }
    all
}

/// The list of what was acknowledged.
fn acknowledged_text(script: &Script, all: &[Expected]) -> String {
    let mut text = String::from(
        "# What was acknowledged before the crash, a key a line. A value is its length and its FNV-1a hash of 64 bits; none: no row.\n\
         # commit: the last acknowledged one that changed the key (0: none did). next: the one that was not acknowledged any more, if\n\
         # it changes the key (0: no): all of its changes may be there or none.\n\
         # thread\tkey\tcommit\tvalue\tnext\tvalue after it\n",
    );
    for Expected { thread, key, acked, next } in all {
        let after = next.map_or(NONE.into(), |next| next.value(script, *thread, *key));
        let _ = writeln!(
            text,
            "{thread}\t{}\t{}\t{}\t{}\t{after}",
            key_text(*thread, *key),
            acked.number,
            acked.value(script, *thread, *key),
            next.map_or(0, |next| next.number)
        );
    }
    text
}

/// What is wrong with the value that was read under a key, if no commit wrote it.
fn garbage<'g>(garbage: &'g [String], expected: &Expected) -> Option<&'g String> {
    let head = format!("key {} of thread {} has ", expected.key, expected.thread);
    garbage.iter().find(|text| text.starts_with(&head))
}

/// The number of the commit whose value was read under a key; `None`: no row, or another value.
fn number_in(read: &Read, expected: &Expected) -> Option<u64> {
    let rows = read.rows.as_ref()?;
    rows.threads.get(expected.thread as usize)?.get(expected.key as usize).copied().flatten()
}

/// The list of what is there.
fn found_text(script: &Script, all: &[Expected], read: &Read) -> String {
    let mut text = String::from(
        "# What is there after the crash, as `get` returns it, a key a line. A value is its length and its FNV-1a hash of 64 bits; none:\n\
         # no row; wrong: a value that no commit wrote. commit: the one that wrote the value (0: none).\n\
         # thread\tkey\tcommit\tvalue\n",
    );
    if let Some(rows) = &read.rows {
        for expected in all {
            let number = number_in(read, expected);
            let value = match number {
                Some(number) => value_text(&script.value(expected.thread, expected.key, number)),
                None if garbage(&rows.garbage, expected).is_some() => "wrong".into(),
                None => NONE.into(),
            };
            let (thread, key) = (expected.thread, key_text(expected.thread, expected.key));
            let _ = writeln!(text, "{thread}\t{key}\t{}\t{value}", number.unwrap_or(0));
        }
        for line in rows.garbage.iter().chain(&rows.duplicates) {
            let _ = writeln!(text, "# {}", escaped(line));
        }
    }
    if let Some((_, failure)) = &read.failure {
        let _ = writeln!(text, "# {}", escaped(failure));
    }
    text
}

/// A text on one line, in ASCII: what an engine says may be anything.
fn escaped(text: &str) -> String {
    let letter = |letter: char| match letter {
        ' '..='~' => letter.to_string(),
        '\n' | '\t' => " ".into(),
        _ => letter.escape_default().to_string(),
    };
    text.chars().map(letter).collect()
}

/// A program that shows what is wrong by the engine's own calls.
struct Program {
    /// Names and contents.
    files: Vec<(String, String)>,
    /// How a shell builds it, as `$work/report`; it exits with 2 if that fails.
    build: String,
    /// What it needs.
    needs: String,
}

/// The program of an engine: that beside its plug-in, or that of the catalogue.
fn program(engine: &Engine, kept: &Kept) -> Option<Program> {
    let beside = engine.plugin_file().and_then(|file| {
        let of = |ending: &'static str| {
            let file = file.with_file_name(format!("report-{}.{ending}.in", kept.engine));
            fs::read_to_string(file).ok().map(|text| (ending, text))
        };
        ["c", "cc", "go", "rs"].into_iter().find_map(of)
    });
    let (ending, template) =
        beside.or_else(|| report_of(&kept.engine).map(|(ending, text)| (ending, text.to_string())))?;
    Some(Program::of(ending, &template, kept.version.as_deref(), &kept.options))
}

impl Program {
    fn of(ending: &str, template: &str, version: Option<&str>, options: &[(String, String)]) -> Program {
        let version = match (ending, version) {
            ("rs", Some(version)) => format!("={version}"),
            (_, Some(version)) => version.to_string(),
            ("rs", None) => "*".to_string(),
            ("go", None) => "latest".to_string(),
            (_, None) => "of an unknown version".to_string(),
        };
        let text = with_options(&template.replace("@VERSION@", &version), options);
        let after = text.lines().find_map(|line| Some(line.split_once(NEEDS)?.1));
        let needs = after.unwrap_or("").trim_end_matches("*/").trim().to_string();
        let source = format!("report.{ending}");
        let (compare, build) = match ending {
            "rs" => {
                let manifest = format!(
                    "# The program that shows what is wrong with the database.\n[package]\nname = \"report\"\nversion = \"0.0.0\"\n\
                     edition = \"2024\"\n\n[[bin]]\nname = \"report\"\npath = \"report.rs\"\n\n[dependencies]\n{needs}\n\n[workspace]\n"
                );
                let build = "cp report.rs compare.rs Cargo.toml \"$work\"\n\
                     CARGO_TARGET_DIR=\"$work/target\" cargo build --quiet --manifest-path \"$work/Cargo.toml\" || exit 2\n\
                     mv \"$work/target/debug/report\" \"$work/report\"";
                let files = vec![
                    (source, text),
                    ("compare.rs".into(), COMPARE_RUST.into()),
                    ("Cargo.toml".into(), manifest),
                ];
                return Program {
                    files,
                    build: build.into(),
                    needs: format!("`cargo`, and the crate {needs}"),
                };
            }
            "go" => (
                ("compare.go", COMPARE_GO),
                format!(
                    "cp report.go compare.go \"$work\"\n\
                     (cd \"$work\" && go mod init report && go get {needs} && go build -o report .) >\"$work/log\" 2>&1 ||\n  \
                     {{ cat \"$work/log\" >&2; exit 2; }}"
                ),
            ),
            _ => {
                let compiler = if ending == "cc" { "${CXX:-c++} -std=c++17" } else { "${CC:-cc} -std=gnu11" };
                (
                    ("compare.h", COMPARE_C),
                    format!("{compiler} -O1 -o \"$work/report\" {source} {needs} || exit 2"),
                )
            }
        };
        let needs = match (ending, needs.is_empty()) {
            ("go", _) => format!("Go, and the module {needs}"),
            (_, true) => "a compiler".to_string(),
            (_, false) => format!("a compiler, and the library and its header ({needs})"),
        };
        let (name, common) = compare;
        Program { files: vec![(source, text), (name.into(), common.into())], build, needs }
    }
}

/// Puts options where a template has `@NAME:DEFAULT@`.
fn with_options(template: &str, options: &[(String, String)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('@') {
        text += before;
        let place = after.split_once('@').and_then(|(place, end)| Some((place.split_once(':')?, end)));
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        match place.filter(|((name, default), _)| {
            is_name(name) && default.bytes().all(|byte| byte.is_ascii_graphic())
        }) {
            Some(((name, default), end)) => {
                let set = options.iter().rev().find(|(option, _)| option == name);
                text += &set.map_or(default.to_string(), |(_, value)| plain(value));
                rest = end;
            }
            None => {
                text.push('@');
                rest = after;
            }
        }
    }
    text + rest
}

/// An option as a program has it: sizes in bytes, without units. Text has no letter that would end it.
fn plain(value: &str) -> String {
    let bytes = parse_bytes(value).ok().map(|bytes| bytes.to_string());
    bytes.unwrap_or_else(|| {
        value.chars().filter(|letter| letter.is_ascii_graphic() && *letter != '"').collect()
    })
}

/// What a verdict means.
fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "Nothing that was acknowledged is missing",
        Verdict::CreateFailed => {
            "Nothing was acknowledged yet, and the database can neither be opened nor, if no commit had begun, be created again"
        }
        Verdict::Lost => "The last acknowledged commits are missing; the rest is complete",
        Verdict::Holes => {
            "The rows are those after no commit: an earlier commit is missing, or a part of a transaction is there"
        }
        Verdict::Duplicate => {
            "A scan returns a row twice or out of order, or another one than a get (the program only gets, so it may show nothing)"
        }
        Verdict::Garbage => "There is a row or a value that no commit wrote",
        Verdict::Changed => {
            "The database can be opened, but after a clean close and another open its rows are different"
        }
        Verdict::OpenFailed => {
            "The database cannot be opened, or a later read, write, close or open fails or crashes"
        }
        Verdict::OpenHung => "Opening or reading the database makes no progress",
    }
}

/// What a kind of crash is, and whether a level promises to survive it.
fn crash_text(mode: Mode, level: Durability) -> String {
    let what = match mode {
        Mode::Kill => "its process was killed (SIGKILL) at a random moment; the machine went on",
        Mode::Calls => "its process was killed (SIGKILL) at a chosen system call; the machine went on",
        Mode::Cut => "its file system was cut off from the device, as by a power failure",
        Mode::Replay => {
            "its writes and flushes were recorded on a block device, and a state was rebuilt that a power failure can leave: all \
             writes before the last flush, and some of those after it"
        }
    };
    let promise = match level >= mode.promised_at() {
        true => "promises to lose nothing acknowledged in this crash",
        false => "does not promise to keep everything in this crash",
    };
    format!("{mode}: {what}. The level {level} {promise}.")
}

/// The rows of the page on keys that are wrong, and how many there are.
fn wrong_keys(script: &Script, all: &[Expected], read: &Read) -> (Vec<String>, usize) {
    let Some(rows) = &read.rows else { return (Vec::new(), 0) };
    let is_wrong = |expected: &&Expected| {
        let found = number_in(read, expected);
        garbage(&rows.garbage, expected).is_some()
            || !expected.acked.is(found) && !expected.next.is_some_and(|next| next.is(found))
    };
    let wrong: Vec<&Expected> = all.iter().filter(is_wrong).collect();
    let row = |expected: &&Expected| {
        let Expected { thread, key, acked, .. } = expected;
        let found = match (number_in(read, expected), garbage(&rows.garbage, expected)) {
            (Some(number), _) => Written { number, is_put: true }.text(script, *thread, *key),
            (None, Some(text)) => escaped(text),
            (None, None) => "no row".into(),
        };
        format!("| `{}` | {} | {found} |", key_text(*thread, *key), acked.text(script, *thread, *key))
    };
    (wrong.iter().take(SHOWN).map(row).collect(), wrong.len())
}

/// The page.
fn page(
    kept: &Kept,
    all: &[Expected],
    read: Option<&Read>,
    repeat: &Repeat<'_>,
    program: Option<&Program>,
) -> String {
    let Kept { engine, script, level, .. } = kept;
    let version = kept.version.as_deref().unwrap_or("of an unknown version");
    let kernel = Machine::observe(Path::new("/")).kernel;
    let option = |(name, value): &(String, String)| format!("`{name}={value}`");
    let options = match kept.options.is_empty() {
        true => "none (all as the driver has them)".into(),
        false => kept.options.iter().map(option).collect::<Vec<_>>().join(", "),
    };
    let commits = |acked: bool| {
        let of = |(thread, bounds): (u32, &Bounds)| {
            script.count(thread, if acked { bounds.acked } else { bounds.started }).to_string()
        };
        (0..).zip(&kept.bounds).map(of).collect::<Vec<_>>().join(" and ")
    };
    let mut text = format!(
        "# {engine} {version}: {} after a crash\n\n\
         A database of {engine} after a crash, found by kvdyno, and what was acknowledged before it. `db/` is as the crash has left it: \
         nothing has opened it since.\n\n## What was done\n\n\
         A process created the database and made commits with {}, over {} keys of each: puts of values of up to \
         {VALUE_BYTES} bytes{}{}. A commit is acknowledged when the engine's call has returned. The process was crashed while {}. \
         By then {} commits were acknowledged, and {} were started{}.\n\n",
        kept.verdict,
        counted(kept.bounds.len() as u64, "thread", "threads"),
        script.keys,
        if script.deletes { ", deletes" } else { "" },
        if script.transactions { ", and transactions of 2 to 6 changes" } else { "" },
        repeat.course,
        commits(true),
        commits(false),
        if kept.bounds.len() > 1 { " (by thread)" } else { "" },
    );
    let rows = [
        ("engine", format!("{engine} {version}")),
        ("driver", format!("kvdyno's, in the file with the SHA-256 `{}`", repeat.driver)),
        ("durability level", format!("`{level}`: {}", level_text(*level))),
        ("options", options),
        ("crash", crash_text(kept.mode, *level)),
        ("seed", script.seed.to_string()),
        ("file system", kept.file_system.clone()),
        ("kernel", kernel.unwrap_or_else(|| "-".into())),
        ("kvdyno", env!("CARGO_PKG_VERSION").into()),
    ];
    text += "| | |\n|---|---|\n";
    for (name, value) in rows {
        let _ = writeln!(text, "| {name} | {} |", escaped(&value));
    }
    let detail = kept.detail.as_deref().map(escaped).unwrap_or_default();
    let _ = write!(
        text,
        "\n## What is wrong\n\n`{}`: {}:\n\n    {detail}\n",
        kept.verdict,
        meaning(kept.verdict)
    );
    match read {
        Some(read) => {
            let judgement = read.judgement(script, &kept.bounds);
            if judgement.verdict != kept.verdict {
                let _ = write!(
                    text,
                    "\nWhen a copy was read a second time, it was `{}`: the engine does not always do the same with these files.\n",
                    judgement.verdict
                );
            }
            let (shown, count) = wrong_keys(script, all, read);
            if count > 0 {
                let _ = write!(
                    text,
                    "\nThis is what a `get` returns after the first open for {count} of {} keys (value: length and FNV-1a hash of 64 bits):\n\n\
                     | key | expected | found |\n|---|---|---|\n{}\n",
                    all.len(),
                    shown.join("\n")
                );
                if count > SHOWN {
                    text += "\nThe others are in the two lists.\n";
                }
            }
        }
        None => text += "\nThe database was not read a second time, because kvdyno was stopped.\n",
    }
    text += "\n- `acknowledged.tsv`: all keys, with what was acknowledged\n";
    if read.is_some() {
        text += "- `found.tsv`: all keys, with what is there\n";
    }
    text += "- `kept.json`: the same for kvdyno\n\n## Show it without kvdyno\n\n";
    match program {
        Some(Program { needs, files, .. }) => {
            let _ = write!(
                text,
                "    sh check.sh\n\nThis builds `{}`, which needs {needs}, and runs it with a copy of `db/`. It opens the database by the \
                 engine's own calls, gets each key of `acknowledged.tsv`, puts a row, closes, opens and gets again, prints what is \
                 missing or different, and exits with 1 if anything is (with 2 if it cannot be built).\n",
                files.first().map_or("", |(name, _)| name)
            );
        }
        None => {
            let _ = writeln!(
                text,
                "kvdyno has no program for {engine}. The engine's own tools can open a copy of `db/`; `acknowledged.tsv` has what must \
                 be in it."
            );
        }
    }
    let _ = write!(
        text,
        "\n## Repeat it with kvdyno\n\n    {}\n\nmakes the same commits and crashes the process in the same way, with threads that run as the \
         kernel schedules them. `{}` reads a copy of this database.\n",
        repeat.command, repeat.again
    );
    text
}

/// What a level promises.
fn level_text(level: Durability) -> &'static str {
    match level {
        Durability::Default => "what the engine's authors chose",
        Durability::None => "nothing is promised",
        Durability::Process => "what was acknowledged survives the end of the process",
        Durability::Power => "what was acknowledged survives a power failure",
    }
}

/// Writes the report into the folder of the database that a round has kept. It reads a copy of it, in `data`. Nothing is written if
/// the round has kept none.
pub fn report(
    engine: &Engine,
    round: &Round,
    data: &Path,
    stall: Duration,
    repeat: &Repeat<'_>,
) -> Result<(), KeptError> {
    let Some(folder) = &round.kept else { return Ok(()) };
    let kept = kept(folder)?;
    let read = read_kept(engine, &kept, folder, data, stall)?;
    let all = expected(&kept.script, &kept.bounds);
    let program = program(engine, &kept);
    let mut files = vec![("acknowledged.tsv".to_string(), acknowledged_text(&kept.script, &all))];
    files.extend(read.as_ref().map(|read| ("found.tsv".into(), found_text(&kept.script, &all, read))));
    files.push(("README.md".into(), page(&kept, &all, read.as_ref(), repeat, program.as_ref())));
    if let Some(Program { files: own, build, .. }) = program {
        files.extend(own);
        files.push(("check.sh".into(), check_text(&build)));
    }
    for (name, text) in files {
        let file = folder.join(name);
        fs::write(&file, text).map_err(MachineError::file("write", &file))?;
        if file.ends_with("check.sh") {
            fs::set_permissions(&file, Permissions::from_mode(0o755))
                .map_err(MachineError::file("make executable", &file))?;
        }
    }
    Ok(())
}

/// The script that builds and runs the program.
fn check_text(build: &str) -> String {
    format!(
        "#!/bin/sh\n\
         # Builds the program and runs it with a copy of the database, so that `db` stays as the crash has left it.\n\
         set -eu\ncd \"$(dirname \"$0\")\"\nwork=$(mktemp -d)\ntrap 'rm -rf \"$work\"' EXIT\nmkdir -p db\n{build}\n\
         cp -R db \"$work/db\"\ncode=0\n\"$work/report\" \"$work/db\" acknowledged.tsv || code=$?\n\
         [ $code -le 1 ] || echo \"The engine has ended the program: exit code $code.\"\n[ $code -eq 0 ] || exit 1\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_takes_the_place_of_its_default_and_other_signs_stay() {
        let options = [("segment".to_string(), "1M".to_string()), ("index".into(), "ke\"ys".into())];
        let text = "a@v1.0\nsize = @segment:42@, \"@index:values@\", @other:7@, user@host: x@y";
        let expected = "a@v1.0\nsize = 1048576, \"keys\", 7, user@host: x@y";
        assert_eq!(with_options(text, &options), expected);
    }

    #[test]
    fn what_must_be_under_each_key_is_what_the_oracle_accepts() {
        use crate::crash::oracle::{Rows, judge};
        let rows = |all: &[Expected], with_next: bool| {
            let mut threads = vec![Vec::new(), Vec::new()];
            for Expected { thread, acked, next, .. } in all {
                let written = next.filter(|_| with_next).unwrap_or(*acked);
                threads[*thread as usize].push(written.is_put.then_some(written.number));
            }
            Rows { threads, ..Rows::default() }
        };
        for seed in 0..20 {
            let script = Script::of(seed, true, true).after(&[7, 9], 11);
            let bounds = [Bounds { acked: 57, started: 58 }, Bounds { acked: 40, started: 41 }];
            let all = expected(&script, &bounds);
            for with_next in [false, true] {
                let judgement = judge(&script, &bounds, &rows(&all, with_next));
                assert_eq!(
                    (judgement.verdict, judgement.lost),
                    (Verdict::Ok, 0),
                    "seed {seed}: {judgement:?}"
                );
            }
            let changed = script.commit(0, 58).changes;
            let next: Vec<u32> =
                all.iter().filter(|one| one.thread == 0 && one.next.is_some()).map(|one| one.key).collect();
            assert_eq!(next.len(), changed.len(), "seed {seed}");
            assert!(changed.iter().all(|change| next.contains(&change.key)), "seed {seed}");
        }
    }

    #[test]
    fn every_program_of_the_catalogue_is_complete_and_names_what_it_needs() {
        let mut endings = std::collections::BTreeSet::new();
        for known in kvdyno_core::engine::catalogue() {
            let Some((ending, template)) = report_of(&known.name) else { continue };
            endings.insert(ending);
            let Program { files, build, needs } = Program::of(ending, template, Some("1.2.3"), &[]);
            let (name, text) = &files[0];
            assert_eq!(name, &format!("report.{ending}"), "{}", known.name);
            assert!(text.contains(NEEDS), "{}: what does it need?", known.name);
            assert!(!text.contains("@VERSION@") && !text.contains(":0@"), "{}: {text}", known.name);
            let own = text.contains("1.2.3") || files.iter().any(|(_, text)| text.contains("=1.2.3"));
            assert!(own, "{}: its version is not in it", known.name);
            assert!(!build.is_empty() && !needs.is_empty());
            assert!(text.contains("compare") || ending == "go", "{}", known.name);
        }
        assert_eq!(endings.into_iter().collect::<Vec<_>>(), ["c", "cc", "go", "rs"]);
    }

    #[test]
    fn the_hash_of_a_value_is_fnv_1a() {
        // The published test vectors of the hash.
        assert_eq!(value_text(b""), "0:cbf29ce484222325");
        assert_eq!(value_text(b"foobar"), "6:85944171f73967e8");
    }

    #[test]
    fn what_an_engine_says_stays_on_its_line() {
        assert_eq!(escaped("a\nb\u{1b}[31m\u{e9}"), "a b\\u{1b}[31m\\u{e9}");
    }
}
