//! Values of any size: every way to read one returns the bytes that were written, and takes little more memory than the value.

use crate::client::{Client, Reply, Served, engines_here};
use std::sync::atomic::{AtomicBool, Ordering};

/// Sizes around those of the server's buffers, where a row has a byte more than its value.
const SIZES: &[usize] =
    &[0, 1, 100, 1022, 1023, 1024, 1025, 4000, 8191, 16_382, 16_383, 16_384, 16_385, 40_000, 1_000_000];
const KEYS: usize = 6;

fn ok() -> Reply {
    Reply::Status("OK".into())
}

fn bulk(bytes: &[u8]) -> Reply {
    Reply::Bulk(bytes.to_vec())
}

/// The value of a key: others have other bytes.
fn value(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 7 * 31 + number * 13 + at) as u8).collect()
}

/// Sends the requests, reads the replies and compares them.
fn exchange(client: &mut Client, requests: Vec<(Vec<Vec<u8>>, Reply)>, what: &str) {
    let (requests, wanted): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    // Not all at once: neither side may wait for the other to read.
    for (requests, wanted) in requests.chunks(64).zip(wanted.chunks(64)) {
        client.send(requests);
        for (request, wanted) in requests.iter().zip(wanted) {
            let got = client.read().expect("the server has closed the connection");
            let name = String::from_utf8_lossy(&request[0]);
            assert!(got == *wanted, "{what}, {name}: {}", shown(&got));
        }
    }
}

/// The beginning of a reply, which may be large.
fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => format!("{} bytes that differ", bytes.len()),
        Reply::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

/// Writes values of one size, and reads them one by one, together, in a pipeline, in a transaction and from many connections.
fn one_size(served: &Served, size: usize, what: &str) {
    let key = |number: usize| format!("{size}:{number}").into_bytes();
    let get = |number: usize| (words(&[b"GET", &key(number)]), bulk(&value(number, size)));
    let mut client = served.client();
    let put = (0..KEYS).map(|n| (words(&[b"SET", &key(n), &value(n, size)]), ok()));
    exchange(&mut client, put.collect(), what);
    let mut mget = vec![b"MGET".to_vec()];
    mget.extend((0..KEYS).map(key));
    mget.push(b"none".to_vec());
    let mut all: Vec<Reply> = (0..KEYS).map(|n| bulk(&value(n, size))).collect();
    all.push(Reply::Nil);
    exchange(&mut client, vec![(mget.clone(), Reply::Array(all.clone())); 2], what);
    let gets = if size > 100_000 { 2 * KEYS } else { 40 };
    exchange(&mut client, (0..gets).map(|n| get(n % KEYS)).collect(), what);
    let Reply::Bulk(facts) = client.ask(&["INFO"]) else { panic!("{what}: INFO") };
    let facts = String::from_utf8(facts).unwrap();
    let has_transactions = facts.lines().any(|line| {
        line.strip_prefix("capabilities:").is_some_and(|all| all.split(',').any(|one| one == "transaction"))
    });
    let queued = |request: &[&[u8]]| (words(request), Reply::Status("QUEUED".into()));
    let results = vec![bulk(&value(0, size)), ok(), bulk(&value(9, size)), Reply::Array(all)];
    let transaction = vec![
        (words(&[b"MULTI"]), ok()),
        queued(&[b"GET", &key(0)]),
        queued(&[b"SET", &key(9), &value(9, size)]),
        queued(&[b"GET", &key(9)]),
        (mget, Reply::Status("QUEUED".into())),
        (words(&[b"EXEC"]), Reply::Array(results)),
    ];
    if has_transactions {
        exchange(&mut client, transaction, what);
    }
    std::thread::scope(|scope| {
        for first in 0..KEYS {
            let get = &get;
            scope.spawn(move || {
                let mut client = served.client();
                (0..4).for_each(|n| exchange(&mut client, vec![get((first + n) % KEYS)], what));
            });
        }
    });
}

fn all_sizes(engine: &str, level: &str) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[engine, "--durability", level]);
    for &size in SIZES {
        one_size(&served, size, &format!("{engine}, {size} bytes"));
    }
}

/// The engines read joined gets as a group, all or nothing.
#[test]
fn values_of_any_size_are_read_back_in_every_way() {
    for engine in engines_here(&["lmdb", "redb", "sqlite-system", "canopydb", "memory-btree"]) {
        all_sizes(engine, "none");
    }
}

#[test]
#[ignore = "takes a minute; `make test-all`"]
fn values_of_any_size_are_read_back_from_every_engine() {
    const OTHERS: &[&str] = &[
        "badger",
        "bbolt",
        "berkeleydb",
        "berkeleydb-hash",
        "bolt",
        "buntdb",
        "fjall",
        "gdbm",
        "go-btree",
        "goleveldb",
        "grocksdb",
        "kyotocabinet",
        "leveldb",
        "lmdb-system",
        "lotusdb",
        "memory-map",
        "nutsdb",
        "pebble",
        "pogreb",
        "quick-cache",
        "rocksdb",
        "rosedb",
        "sled",
        "sqlite",
        "surrealkv",
        "tkrzw",
        "tokyocabinet",
        "wiredtiger",
    ];
    for engine in engines_here(OTHERS) {
        all_sizes(engine, "none");
    }
}

/// Some values fit into the server's buffers and some do not; the number in the large one is written last, so nobody may see a
/// smaller number in the small one afterwards.
#[test]
fn reads_of_a_pipeline_keep_their_order_whatever_fits_into_a_buffer() {
    for engine in engines_here(&["memory-btree", "lmdb"]) {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &[engine, "--durability", "none"]);
        let padded = |number: u64| format!("{number} {}", "x".repeat(20_000));
        assert_eq!(served.client().ask(&["MSET", "behind", "0", "ahead", &padded(0)]), ok());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = served.client();
                for number in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    assert_eq!(writer.ask(&["SET", "behind", &number.to_string()]), ok());
                    assert_eq!(writer.ask(&["SET", "ahead", &padded(number)]), ok());
                }
            });
            let mut reader = served.client();
            let pipeline: Vec<Vec<&str>> =
                (0..32).map(|n| vec!["GET", if n % 2 == 0 { "ahead" } else { "behind" }]).collect();
            let (mut highest, mut wrong) = (0, None);
            for round in 0..400 {
                reader.send(&pipeline);
                for request in &pipeline {
                    let Some(Reply::Bulk(text)) = reader.read() else { panic!("{engine}: no value") };
                    let text = String::from_utf8(text).unwrap();
                    let seen: u64 = text.split(' ').next().unwrap().parse().unwrap();
                    if seen < highest {
                        wrong = Some(format!("round {round}: {} is {seen} after {highest}", request[1]));
                    }
                    if request[1] == "ahead" {
                        highest = seen;
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(wrong, None, "{engine}");
            assert!(highest > 10, "{engine}: the writer made only {highest} changes");
        });
    }
}

/// What a value of this many bytes needs at most, in addition to what the server has before.
fn needs_three_times_its_size(engine: &str, mib: usize) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[engine, "--max-bulk", "512MiB", "--threads", "1"]);
    let mut client = served.client();
    let big = vec![b'x'; mib << 20];
    assert_eq!(client.ask(&["SET", "k", "v"]), ok());
    let before = served.rss_bytes();
    let wanted = [
        (words(&[b"SET", b"k", &big]), ok()),
        (words(&[b"GET", b"k"]), bulk(&big)),
        (words(&[b"MGET", b"none", b"k"]), Reply::Array(vec![Reply::Nil, bulk(&big)])),
        (words(&[b"STRLEN", b"k"]), Reply::Integer((mib << 20) as i64)),
        (words(&[b"APPEND", b"k", b""]), Reply::Integer((mib << 20) as i64)),
    ];
    for (request, reply) in wanted {
        let name = String::from_utf8_lossy(&request[0]).into_owned();
        served.forget_peak();
        exchange(&mut client, vec![(request, reply)], &format!("{engine}, {mib} MiB"));
        let more = served.peak_bytes().saturating_sub(before);
        println!("{engine}, {name} of {mib} MiB: {} MiB", more >> 20);
        assert!(
            more <= (3 * mib as u64 + 16) << 20,
            "{engine}, {name} of {mib} MiB takes {} MiB",
            more >> 20
        );
    }
    // The value itself, and what the engine keeps of it.
    let after = served.rss_bytes().saturating_sub(before);
    assert!(after <= (2 * mib as u64 + 16) << 20, "{engine} keeps {} MiB for {mib} MiB", after >> 20);
}

#[test]
fn a_large_value_needs_three_times_its_size_in_memory() {
    for engine in engines_here(&["memory-btree", "lmdb"]) {
        needs_three_times_its_size(engine, 32);
    }
}

#[test]
#[ignore = "takes half a minute and 2 GiB; `make test-all`"]
fn the_largest_value_needs_three_times_its_size_in_memory() {
    for engine in engines_here(&["memory-btree", "lmdb"]) {
        needs_three_times_its_size(engine, 512);
    }
}

/// Replies of all sizes around what a socket buffers, which the client reads only when the server has done all it can.
#[test]
fn a_client_that_quits_or_sends_no_more_gets_all_of_its_replies() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "1"]);
    let mut witness = served.client();
    let big = "x".repeat(512 << 10);
    assert_eq!(witness.ask(&["SET", "big", &big]), ok());
    for replies in 1..=20 {
        for quits in [true, false] {
            let mut client = served.client();
            client.send(&vec![vec!["GET", "big"]; replies]);
            if quits {
                client.send(&[vec!["QUIT"]]);
            } else {
                client.send_no_more();
            }
            (0..20).for_each(|_| assert_eq!(witness.ask(&["PING"]), Reply::Status("PONG".into())));
            for reply in 0..replies {
                let got = client.read();
                assert!(got == Some(bulk(big.as_bytes())), "{reply} of {replies}, quits: {quits}");
            }
            if quits {
                assert_eq!(client.read(), Some(ok()));
            }
            assert!(client.is_closed(), "{replies} replies, quits: {quits}");
        }
    }
}

/// The end arrives together with the request, or a moment later.
#[test]
fn a_connection_that_the_client_has_ended_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    for _ in 0..300 {
        let mut client = served.client();
        client.send(&[vec!["PING"]]);
        client.send_no_more();
        assert_eq!(client.read(), Some(Reply::Status("PONG".into())));
        assert!(client.is_closed());
    }
}
