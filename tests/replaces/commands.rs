//! Every command of the pages runs, at sizes made tiny, and says something.

use super::client::{Reply, Served};
use super::command::{Printed, kvdyno, required_engines};
use super::page::{Row, Shown, TABLE, TOOLS, commands, rows};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

/// Rows of the table that the ordinary run tries; the others wait for `--ignored`.
const QUICK: &[&str] = &[
    "1", "3", "6", "10", "12", "15", "18", "19", "21", "29", "42", "52", "60", "68", "77", "79", "80", "81",
    "84",
];

/// What the last command of a row must print besides exiting as it should.
const SAID: &[(&str, &[&str])] = &[
    ("3", &["serial and random insertions of 500 per batch", "cumulative", "Shutdown", "Total time"]),
    ("10", &["upsert in rounds of 500", "total 1000", "emulated: merge = get + put"]),
    ("12", &["| name |", "| Prefix op/s | Set op/s | Get op/s | Setmixed op/s | Getmixed op/s | Del op/s |"]),
    ("15", &[" rows) in ", "(cold", "(warm", "MB/s"]),
    ("18", &["num_db_items,db,op,ops/sec"]),
    ("64", &["[  t min,   t max)        ops count           %"]),
    ("66", &["5.0000%  latency", "99.9900%  latency", "Avg throughput"]),
    ("67", &["time (ms),   read ops,   not found,  write ops,  total read,  total write", "read ops"]),
    ("74", &["Shutdown"]),
    ("77", &["# db keys", "1000", "2000"]),
    ("79", &["| Rank | BatchWrite | MemUsage | DiskUsage |"]),
    ("80", &["ops_per_second", "p999_ns"]),
    ("81", &["<svg"]),
];

/// Flags of `kvdyno run` that give way to tiny ones.
const SIZES: &[&str] = &["--keys", "--ops", "--seconds", "--runs", "--engines", "--scale"];

/// Workloads that are run in rounds: their size is that of a round.
const IN_ROUNDS: &[&str] = &["toku-insert", "toku-insert-multiple", "toku-update", "nudb-mixed"];

/// Workloads with a phase that drops the page cache of the whole machine, which tests leave alone.
const COLD: &[(&str, &str)] = &[("mininb-get", "get"), ("toku-scan", "cold")];

/// Phases that are warmed up for longer than a test has.
const WARM: &[(&str, &[&str])] = &[
    ("kvdk-read", &["read"]),
    ("kvdk-write", &["insert", "update"]),
    ("kvdk-mixed", &["mixed"]),
    ("kvdk-scan", &["scan"]),
    ("kvdk-batch", &["batch"]),
    ("kvdk-list", &["push-pop"]),
];

/// Engines that take the place of all, where a command names none.
const FEW: &str = "memory-btree,redb";

/// The engines that are here.
pub fn present() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), "engines --json");
    let engines: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let here = engines.as_array().unwrap().iter().filter(|engine| engine["is_present"] == true);
    here.map(|engine| engine["name"].as_str().unwrap().to_string()).collect()
}

/// The value behind a flag.
fn value<'a>(words: &[&'a str], flag: &str) -> Option<&'a str> {
    words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1).copied())
}

/// Those of a list that are here. An absent one must not be one that is required.
fn those_here(list: &str, here: &BTreeSet<String>, at: &str) -> Option<String> {
    let required = required_engines();
    let mut found = Vec::new();
    for name in list.split(',') {
        if here.contains(name) || name.starts_with("mutant:") {
            found.push(name);
        } else {
            assert!(!required.contains(&name), "{at}: {name} is required and absent");
        }
    }
    found.truncate(2);
    (!found.is_empty()).then(|| found.join(","))
}

/// A `run` with the same meaning at tiny sizes; none: none of its engines is here.
fn tiny_run(words: &[&str], here: &BTreeSet<String>, at: &str) -> Option<String> {
    let engines = match value(words, "--engines") {
        Some(list) => those_here(list, here, at)?,
        None => FEW.to_string(),
    };
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if SIZES.contains(word) {
            rest.next();
        } else {
            let is_rounds = word.starts_with("rounds=");
            let word = word
                .replace("space=256GiB", "space=256MiB")
                .replace("warmup_seconds=2", "warmup_seconds=0.02");
            kept.push(if is_rounds { "rounds=2".to_string() } else { word });
        }
    }
    let is_list = value(words, "--keys").is_some_and(|keys| keys.contains(','));
    let size = if words.iter().any(|word| word.ends_with("-suite")) {
        "--scale 0.001".to_string()
    } else if words.iter().any(|word| IN_ROUNDS.contains(word)) {
        let rounds = if kept.iter().any(|word| word.starts_with("rounds=")) { "" } else { " --set rounds=2" };
        let keys = if words.contains(&"toku-update") { " --keys 2k" } else { "" };
        format!("--ops 500{rounds}{keys}")
    } else if words.contains(&"toku-scan") {
        // A scan of all is one op, and its time is not for flags to say.
        "--keys 2k".to_string()
    } else {
        let end = if words.contains(&"--ops") { "--ops 500" } else { "--seconds 0.1" };
        format!("--keys {} {end}", if is_list { "1k,2k" } else { "2k" })
    };
    let cold = COLD.iter().filter(|(workload, _)| words.contains(workload));
    kept.extend(cold.map(|(_, phase)| format!("--set {phase}.drop_caches_before=false")));
    let warm = WARM.iter().filter(|(workload, _)| words.contains(workload)).flat_map(|(_, phases)| *phases);
    kept.extend(warm.map(|phase| format!("--set {phase}.warmup_seconds=0.02")));
    // Fewer than five runs have no ranks.
    let has_ranks = words.contains(&"kvbench-suite") || words.contains(&"ranks");
    let runs = match value(words, "--runs") {
        _ if has_ranks => 5,
        Some(runs) if runs != "1" => 2,
        _ => 1,
    };
    Some(format!("{} --engines {engines} {size} --runs {runs}", kept.join(" ")))
}

/// The same command at tiny sizes; none: it needs an engine that is absent.
fn tiny(shown: &Shown, here: &BTreeSet<String>, at: &str) -> Option<String> {
    let words: Vec<&str> = shown.words.split_whitespace().collect();
    match words[0] {
        "run" if words.contains(&"--resume") => Some(shown.words.clone()),
        "run" => tiny_run(&words, here, at),
        "prove" => {
            let is_name = |word: &&&str| !word.starts_with('-') && **word != "rules";
            let names = words[1..].iter().filter(is_name).copied();
            let names = those_here(&names.collect::<Vec<_>>().join(","), here, at)?;
            Some(format!("prove --only rules {} --ops 300 --seconds 0.5", names.replace(',', " ")))
        }
        "serve" => those_here(words[1], here, at).map(|_| shown.words.clone()),
        "keys" => Some(shown.words.replace("6553600", "2k").replace("100k", "2k")),
        _ => Some(shown.words.clone()),
    }
}

/// Runs the commands of a row in a folder of their own; what is wrong.
fn tried(row: &Row, here: &BTreeSet<String>) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut last = None;
    for shown in commands(row) {
        let Some(words) = tiny(&shown, here, &row.at) else {
            return says_what_is_absent(row, &shown, folder.path());
        };
        last = Some(checked(row, &shown, &words, folder.path())?);
    }
    let said = SAID.iter().filter(|(number, _)| row.at.starts_with(TABLE) && row.cells[0] == *number);
    for text in said.flat_map(|(_, texts)| *texts) {
        let stdout = last.as_ref().map_or("", |printed| printed.stdout.as_str());
        if !stdout.contains(text) {
            return Err(format!("{}: no `{text}` in\n{stdout}", row.at));
        }
    }
    Ok(())
}

/// A command whose engines are absent, run unchanged: it reports them with their install command and measures nothing.
fn says_what_is_absent(row: &Row, shown: &Shown, folder: &Path) -> Result<(), String> {
    let printed = kvdyno(folder, &shown.words);
    let has_said = ["not available", "to install: "].iter().all(|text| printed.stderr.contains(text));
    if is_refused(&printed) || (printed.code == Some(4) && has_said && printed.stdout.is_empty()) {
        return Ok(());
    }
    let Printed { code, stdout, stderr } = printed;
    Err(format!("{}: kvdyno {}: exit {code:?}, not 4\n{stderr}\n{stdout}", row.at, shown.words))
}

/// A server of the command answers a client, and ends when it is told to.
fn served(words: &str, folder: &Path) -> Printed {
    let arguments: Vec<&str> = words.split_whitespace().skip(1).collect();
    let mut served = Served::start(folder, &arguments);
    let mut client = served.client();
    assert_eq!(client.ask(&["SET", "a", "b"]), Reply::Status("OK".into()), "{words}");
    assert_eq!(client.ask(&["GET", "a"]), Reply::Bulk(b"b".to_vec()), "{words}");
    client.send(&[vec!["SHUTDOWN"]]);
    let code = served.child.wait().unwrap().code();
    Printed { code, stdout: served.address.to_string(), stderr: String::new() }
}

/// What a machine may not allow is refused before anything is measured; then there is nothing to see.
fn is_refused(printed: &Printed) -> bool {
    let refusals = ["memory cannot be capped", "NUMA"];
    printed.code != Some(0) && refusals.iter().any(|text| printed.stderr.contains(text))
}

fn checked(row: &Row, shown: &Shown, words: &str, folder: &Path) -> Result<Printed, String> {
    let printed = if words.starts_with("serve ") { served(words, folder) } else { kvdyno(folder, words) };
    if is_refused(&printed) {
        println!("{}: not on this machine: kvdyno {words}: {}", row.at, printed.stderr.trim());
        return Ok(Printed { code: Some(0), ..printed });
    }
    let is_right =
        printed.code == Some(shown.code) && (words.starts_with("keys ") || !printed.stdout.trim().is_empty());
    if is_right {
        return Ok(printed);
    }
    let Printed { code, stdout, stderr } = printed;
    Err(format!("{}: kvdyno {words}: exit {code:?}, not {}\n{stderr}\n{stdout}", row.at, shown.code))
}

/// Runs rows by two threads, and fails with all that is wrong.
fn try_all(rows: Vec<Row>) {
    let here = present();
    let rows = Mutex::new(rows.into_iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(row) = rows.lock().unwrap().next() else { return };
                    let began = std::time::Instant::now();
                    if let Err(text) = tried(&row, &here) {
                        wrong.lock().unwrap().push(text);
                    }
                    println!("{}: {:.1} s", row.at, began.elapsed().as_secs_f64());
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_selection_of_the_commands_of_the_table_works_as_written() {
    let rows: Vec<Row> =
        rows(TABLE).into_iter().filter(|row| QUICK.contains(&row.cells[0].as_str())).collect();
    assert_eq!(rows.len(), QUICK.len(), "rows of the table are missing");
    try_all(rows);
}

#[test]
#[ignore = "minutes; `make test-all` runs it"]
fn every_command_of_the_pages_works_as_written() {
    let of_tools = TOOLS.iter().flat_map(|(path, _)| rows(path)).filter(|row| row.heading == "Command lines");
    try_all(of_tools.chain(rows(TABLE)).filter(|row| !commands(row).is_empty()).collect());
}
