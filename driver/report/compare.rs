//! Compares the rows of a database with those that were acknowledged before a crash. The other file has the calls of the engine.
//!
//! It opens the database and gets each key, puts a row, closes the database, opens it again, and gets each key again. It prints
//! what is wrong, and exits with 1 if anything is. It changes the database: give it a copy.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// What a call of the engine returns.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A database of the engine.
pub trait Database: Sized {
    fn open(folder: &Path) -> Outcome<Self>;
    /// The value; `None`: there is no row.
    fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>>;
    fn put(&self, key: &[u8], value: &[u8]) -> Outcome<()>;
    fn close(self) -> Outcome<()>;
}

/// A line of the list of acknowledged rows: thread, key, commit, value, and of the commit that was not acknowledged its number, which
/// is 0 if it does not change the key, and its value.
struct Line<'l> {
    thread: u32,
    key: &'l str,
    commit: u64,
    value: &'l str,
    next_commit: u64,
    next_value: &'l str,
}

fn line(text: &str) -> Option<Line<'_>> {
    let mut words = text.split_whitespace();
    Some(Line {
        thread: words.next()?.parse().ok()?,
        key: words.next()?,
        commit: words.next()?.parse().ok()?,
        value: words.next()?,
        next_commit: words.next()?.parse().ok()?,
        next_value: words.next()?,
    })
}

/// A value as the files of this folder show it: its length and its FNV-1a hash of 64 bits.
fn show(value: &[u8]) -> String {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{}:{:016x}", value.len(), value.iter().fold(0xcbf2_9ce4_8422_2325, hash))
}

/// Gets every key of the list; how much is wrong.
fn compare(step: &str, database: &impl Database, list: &[Line<'_>]) -> Outcome<u32> {
    let mut wrong = 0;
    // Of each thread the commit, and how many of its changes are not there and are there.
    let mut open: BTreeMap<u32, (u64, u32, u32)> = BTreeMap::new();
    for Line { thread, key, commit, value, next_commit, next_value } in list {
        let found = database.get(key.as_bytes())?.map_or("none".to_string(), |value| show(&value));
        let (is_old, is_new) = (found == *value, *next_commit != 0 && found == *next_value);
        if !is_old && !is_new {
            println!("{step}: {key}: {found} instead of {value}, acknowledged in commit {commit}");
            wrong += 1;
        } else if *next_commit != 0 && is_old != is_new {
            let of = open.entry(*thread).or_insert((*next_commit, 0, 0));
            of.1 += u32::from(is_old);
            of.2 += u32::from(is_new);
        }
    }
    for (thread, (commit, old, new)) in open {
        if old != 0 && new != 0 {
            println!(
                "{step}: commit {commit} of thread {thread} was one transaction: {new} of its changes are there, {old} are not"
            );
            wrong += 1;
        }
    }
    if wrong == 0 {
        println!("{step}: all {} keys are as acknowledged", list.len());
    }
    Ok(wrong)
}

/// Opens the database twice; how much is wrong. The step that is done is put into `step`.
fn run<D: Database>(folder: &Path, list: &[Line<'_>], step: &mut &str) -> Outcome<u32> {
    let (after, row) = (&b"kvafter000000000"[..], &b"a row that is put after the crash"[..]);
    *step = "first open";
    let database = D::open(folder)?;
    let mut wrong = compare(step, &database, list)?;
    *step = "put after it";
    database.put(after, row)?;
    *step = "close";
    database.close()?;
    *step = "second open";
    let database = D::open(folder)?;
    wrong += compare(step, &database, list)?;
    if database.get(after)?.as_deref() != Some(row) {
        println!("{step}: the row that was put before the close is not there");
        wrong += 1;
    }
    *step = "second close";
    database.close()?;
    Ok(wrong)
}

/// The program: its arguments are the folder of the database and the list of acknowledged rows.
pub fn main<D: Database>() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), Some(file)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: report FOLDER-OF-THE-DATABASE acknowledged.tsv");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return ExitCode::from(2);
        }
    };
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let Some(list) = rows.map(line).collect::<Option<Vec<_>>>() else {
        eprintln!("{}: not a list of acknowledged rows", file.display());
        return ExitCode::from(2);
    };
    let mut step = "";
    match run::<D>(Path::new(&folder), &list, &mut step) {
        Ok(0) => {
            println!("Nothing is wrong.");
            return ExitCode::SUCCESS;
        }
        Ok(_) => {}
        Err(error) => println!("{step}: {error}"),
    }
    println!("This database is not what was acknowledged.");
    ExitCode::from(1)
}
