//! A correct engine, an ordered map with a lock, and one fault, selected by HOSTILE_FAULT: the faults that a driver
//! in Rust can have through the kit: panics, exits, memory, threads, texts, words of the op, wrong answers.

#![allow(unsafe_code, reason = "it breaks rules on purpose")]

use kvdyno_driver::abi::*;
use kvdyno_driver::{
    Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status, TRANSACTIONS, Vote, Work,
    each,
};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};

/// The selected fault; "none" by default.
fn fault() -> &'static str {
    static FAULT: OnceLock<String> = OnceLock::new();
    FAULT.get_or_init(|| std::env::var("HOSTILE_FAULT").unwrap_or_else(|_| "none".into()))
}

/// Whether `name` is the selected fault, and this is its twentieth occasion or every seventh after.
fn strikes(name: &str) -> bool {
    static OCCASIONS: AtomicU64 = AtomicU64::new(0);
    if fault() != name {
        return false;
    }
    let seen = OCCASIONS.fetch_add(1, Ordering::Relaxed);
    seen >= 20 && (seen - 20).is_multiple_of(7)
}

/// Faults of the process that any call can have: `CALL/HOW`.
fn at(call: &str) {
    let Some((wanted, how)) = fault().split_once('/') else { return };
    if wanted != call {
        return;
    }
    match how {
        "panic" => panic!("the page is torn"),
        "panic-number" => std::panic::panic_any(77_u32),
        "panic-twice" => {
            struct Again;
            impl Drop for Again {
                fn drop(&mut self) {
                    panic!("and again");
                }
            }
            let _again = Again;
            panic!("the page is torn");
        }
        "exit" => std::process::exit(0),
        "exit-5" => std::process::exit(5),
        "abort" => std::process::abort(),
        "overflow" => {
            black_box(deep(0));
        }
        "null" => {
            // SAFETY: none: this is the fault.
            black_box(unsafe { std::ptr::null::<u64>().read_volatile() });
        }
        "deadlock" => {
            let lock = Mutex::new(());
            let _first = lock.lock();
            let _second = lock.lock();
        }
        "endless" => loop {
            std::hint::spin_loop();
        },
        "sleep" => std::thread::sleep(std::time::Duration::from_secs(3600)),
        "print" => println!("\x1b[2J\x1b]0;owned\x07from the driver"),
        "print-error" => eprintln!("\x1b[2J\x1b]0;owned\x07from the driver"),
        _ => {}
    }
}

#[allow(unconditional_recursion, reason = "the fault is a full stack")]
fn deep(depth: u64) -> u64 {
    let room = [depth; 4096];
    black_box(&room);
    deep(depth + 1) + room[4000]
}

/// Writes where a driver must not write, through the op from the kit.
fn trespass(op: &mut Op<'_>) {
    let raw = std::ptr::from_ref(op.raw()).cast_mut();
    // SAFETY: none: each of these is a fault.
    unsafe {
        match fault() {
            "raw-kind" => (*raw).kind = KV_DROP,
            "raw-user" => (*raw).user ^= 1,
            "raw-status" => (*raw).status = 77,
            "raw-length" => (*raw).length = u64::MAX,
            "raw-key-bytes" if (*raw).key_length > 0 => *(*raw).key.cast_mut() ^= 1,
            "raw-value-bytes" if (*raw).value_length > 0 => *(*raw).value.cast_mut() ^= 1,
            "raw-out-behind" => *(*raw).out.add((*raw).out_size as usize) = 0,
            _ => {}
        }
    }
}

/// An open database.
struct Hostile(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Driver for Hostile {
    const INFO: Info = Info {
        name: c"hostile-rust",
        engine: c"an ordered map with a fault, for the tests of kvdyno",
        language: c"Rust",
        family: c"example",
        capabilities: ORDERED_MAP | TRANSACTIONS | KV_DELETE_TELLS | KV_CAN_NEW | KV_IN_MEMORY,
        levels: &[Level::None],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = Thread<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Hostile, Error> {
        at("open");
        match fault() {
            "open-mute" => return Err(Error::new("")),
            "open-escapes" => return Err(Error::new("\x1b[31mred\x1b[0m \x07 \r\n and on")),
            "open-long" => return Err(Error::new("long ".repeat(1 << 20))),
            "open-ok-error" => return Err(Error::with(Status::Ok, "all is well")),
            "level-not-declared" => opened.level(Level::Power),
            _ => opened.level(config.pick(Self::INFO.levels, Level::None)?),
        }
        match fault() {
            "version-escapes" => opened.version("\x1b[31m1.0"),
            "version-long" => opened.version(&"9".repeat(100_000)),
            "capability-gained" => {
                opened.version("1");
                opened.with(KV_MERGE_ADD | KV_LISTS);
            }
            "capability-lost" => {
                opened.version("1");
                opened.without(KV_ORDERED | KV_CAN_DELETE);
            }
            "settings-many" => (0..100_000).for_each(|i| opened.setting("room", i)),
            "settings-odd" => opened.setting("a=b\nc", "d\ne=f\u{0}"),
            _ => opened.version("1"),
        }
        opened.compression("none");
        if fault() == "thread-panics" {
            std::thread::spawn(|| panic!("the compaction thread died"));
        }
        if fault() == "thread-aborts" {
            std::thread::spawn(|| std::process::abort());
        }
        Ok(Hostile(RwLock::default()))
    }

    fn session(&self) -> Result<Thread<'_>, Error> {
        at("session");
        Ok(Thread(self))
    }

    fn maintain(&self, _work: Work) -> Result<Status, Error> {
        at("maintain");
        match fault() {
            "maintain-fails" => Err(Error::new("the log cannot be written")),
            "maintain-not-found" => Ok(Status::NotFound),
            _ => Ok(Status::Ok),
        }
    }

    fn stats(&self, out: &mut String) {
        at("stats");
        match fault() {
            "stats-odd" => out.push_str("no equals sign\n=\nname=\n\x1b[31m=1\nrows=many\n"),
            "stats-long" => out.push_str(&"rows=1\n".repeat(1 << 18)),
            _ => {}
        }
    }

    fn close(self) -> Result<(), Error> {
        at("close");
        if fault() == "thread-aborts" {
            // It happens sooner or later.
            loop {
                std::thread::park();
            }
        }
        if fault() == "close-fails" { Err(Error::new("the last page cannot be written")) } else { Ok(()) }
    }
}

/// One thread's session.
struct Thread<'db>(&'db Hostile);

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        at("end");
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn change(rows: &mut Rows, op: &mut Op<'_>) -> Status {
    let mut key = op.key().to_vec();
    if op.kind() == KV_DELETE {
        let is_there = rows.contains_key(&key);
        if strikes("delete-lies") {
            return if is_there { Status::NotFound } else { Status::Ok };
        }
        if is_there && strikes("delete-ignored") {
            return Status::Ok;
        }
        return rows.remove(&key).map_or(Status::NotFound, |_| Status::Ok);
    }
    if op.is_new() && rows.contains_key(&key) && fault() != "new-overwrites" {
        return Status::Exists;
    }
    // The limits that the driver does not declare.
    if (fault() == "key-refused" && key.len() > 65_535)
        || (fault() == "value-refused" && op.value().len() > 1 << 20)
    {
        return Status::TooLarge;
    }
    if fault() == "key-cut" {
        key.truncate(key.len() % (1 << 16));
    }
    if strikes("put-lost") {
        return Status::Ok;
    }
    if strikes("put-other-key") {
        *key.last_mut().expect("keys have 4 bytes or more") ^= 1;
    }
    let mut value = op.value().to_vec();
    match value.last_mut() {
        Some(last) if strikes("put-bit") => *last ^= 1,
        _ => {}
    }
    if rows.contains_key(&key) && strikes("put-stale") {
        return Status::Ok;
    }
    rows.insert(key, value);
    Status::Ok
}

fn read(rows: &Rows, op: &mut Op<'_>) -> Status {
    let Some(value) = rows.get(op.key()) else {
        return if strikes("miss-found") { op.deliver(b"") } else { Status::NotFound };
    };
    if strikes("get-missing") {
        return Status::NotFound;
    }
    if strikes("get-neighbour") {
        let next = rows.range(op.key().to_vec()..).nth(1).map_or(value, |(_, value)| value);
        return op.deliver(next);
    }
    if strikes("get-half") {
        return op.deliver(&value[..value.len() / 2]);
    }
    if strikes("get-zeros") {
        return op.deliver(&vec![0; value.len()]);
    }
    if strikes("get-longer") {
        return op.deliver(&[value.as_slice(), b"!"].concat());
    }
    if strikes("get-nothing-delivered") {
        return Status::Ok;
    }
    if strikes("get-empty") {
        return op.deliver(b"");
    }
    op.deliver(value)
}

impl Session for Thread<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        at("get");
        match fault() {
            "get-mute" => return Err(Error::new("")),
            "get-ok-error" => return Err(Error::with(Status::Ok, "all is well")),
            "get-missing-error" => return Err(Error::with(Status::NotFound, "it is not here")),
            "get-exists" => return Ok(Status::Exists),
            "get-unsupported" => return Ok(Status::Unsupported),
            "get-short" => return Ok(Status::Short),
            "get-conflict" => return Ok(Status::Conflict),
            "get-not-run" => return Ok(Status::NotRun),
            "get-memory" => std::mem::forget(black_box(vec![1_u8; 1 << 26])),
            _ => {}
        }
        let status = read(&*self.0.0.read()?, op);
        trespass(op);
        Ok(status)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        at("put");
        match fault() {
            "put-full" => return Err(Error::with(Status::Full, "no space left on device")),
            "put-too-large" => return Ok(Status::TooLarge),
            "put-not-found" => return Ok(Status::NotFound),
            "put-retries" => op.add_retries(u32::MAX),
            _ => {}
        }
        let status = change(&mut *self.0.0.write()?, op);
        if fault() == "raw-value-bytes" {
            trespass(op);
        }
        Ok(status)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        at("delete");
        Ok(change(&mut *self.0.0.write()?, op))
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        at("scan");
        let (rows, range) = (self.0.0.read()?, op.range());
        if range.is_empty() {
            return op.deliver_rows(std::iter::empty::<Result<(&[u8], &[u8]), Error>>());
        }
        let mut found: Vec<(&[u8], &[u8])> = rows
            .range::<[u8], _>(range.bounds())
            .map(|(key, value)| (key.as_slice(), value.as_slice()))
            .collect();
        if op.is_reverse() && fault() != "scan-forward" {
            found.reverse();
        }
        if found.len() > 2 {
            if strikes("scan-swapped") {
                found.swap(0, 1);
            } else if strikes("scan-twice") {
                found.insert(1, found[0]);
            } else if strikes("scan-gap") {
                found.remove(1);
            } else if strikes("scan-values-moved") {
                (found[0].1, found[1].1) = (found[1].1, found[0].1);
            } else if strikes("scan-invented") {
                found[1].0 = b"\xff\xff\xff\xff";
            } else if strikes("scan-nothing") {
                found.clear();
            } else if strikes("scan-one") {
                found.truncate(1);
            }
        }
        op.deliver_rows(found.into_iter().map(Ok::<_, Error>))
    }

    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        at("group");
        if fault() == "group-unanswered" {
            return Ok(true);
        }
        if fault() == "group-refused" && atomic {
            return Ok(false);
        }
        let mut rows = self.0.0.write()?;
        let before = if atomic { Some(rows.clone()) } else { None };
        let vote =
            each(ops, |op| Ok(if op.kind() == KV_GET { read(&rows, op) } else { change(&mut rows, op) }));
        if let (Some(before), Ok(Vote::Abort) | Err(_)) = (before, &vote)
            && fault() != "group-half-kept"
        {
            *rows = before;
        }
        vote.map(|_| true)
    }
}

kvdyno_driver::export_drivers!(Hostile);
