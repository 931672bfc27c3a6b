//! What a server guarantees: nothing acknowledged is lost, no client blocks another, and unauthorized clients have no
//! access.

use crate::client::{Client, Reply, Served, engines_here};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn ok() -> Reply {
    Reply::Status("OK".into())
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    // Pebble's weakest level that survives a kill is `power`.
    for engine in engines_here(&["memory-btree", "redb", "lmdb", "sqlite", "pebble", "bbolt"]) {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &[engine]);
        let is_over = AtomicBool::new(false);
        let address = served.address;
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let is_over = &is_over;
                    scope.spawn(move || {
                        let mut client = Client::connect(address);
                        let mut count = 0;
                        loop {
                            let batch: Vec<Vec<String>> = (count..count + 8)
                                .map(|n| vec!["SET".into(), format!("k{writer}-{n}"), format!("v{n}")])
                                .collect();
                            if client.send_raw(b"").is_err() || is_over.load(Ordering::Relaxed) {
                                return count;
                            }
                            client.send(&batch);
                            for _ in 0..8 {
                                match client.read() {
                                    Some(reply) => assert_eq!(reply, ok()),
                                    None => return count,
                                }
                                count += 1;
                            }
                            if count >= 2000 {
                                is_over.store(true, Ordering::Relaxed);
                            }
                        }
                    })
                })
                .collect();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            served.kill();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let served = Served::start(folder.path(), &[engine]);
        let mut client = served.client();
        assert!(acknowledged.iter().any(|count| *count > 0), "{engine}: nothing was acknowledged");
        for (writer, count) in acknowledged.into_iter().enumerate() {
            for n in 0..count {
                let wanted = Reply::Bulk(format!("v{n}").into_bytes());
                assert_eq!(
                    client.ask(&["GET", &format!("k{writer}-{n}")]),
                    wanted,
                    "{engine}: {writer}, {n}"
                );
            }
        }
    }
}

#[test]
fn counters_of_many_clients_lose_no_step() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "4"]);
    const CLIENTS: i64 = 16;
    const STEPS: i64 = 200;
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = served.client();
                let requests = [vec!["INCR", "n"], vec!["HINCRBY", "h", "f", "2"], vec!["RPUSH", "l", "x"]];
                for _ in 0..STEPS {
                    client.send(&requests);
                    (0..3).for_each(|_| assert!(matches!(client.read(), Some(Reply::Integer(_)))));
                }
            });
        }
    });
    let mut client = served.client();
    assert_eq!(client.ask(&["GET", "n"]), Reply::Bulk((CLIENTS * STEPS).to_string().into_bytes()));
    assert_eq!(client.ask(&["HGET", "h", "f"]), Reply::Bulk((2 * CLIENTS * STEPS).to_string().into_bytes()));
    assert_eq!(client.ask(&["LLEN", "l"]), Reply::Integer(CLIENTS * STEPS));
}

#[test]
fn a_watched_key_that_changed_stops_the_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let (mut one, mut other) = (served.client(), served.client());
    assert_eq!(one.ask(&["WATCH", "k"]), ok());
    assert_eq!(other.ask(&["SET", "k", "theirs"]), ok());
    assert_eq!(one.ask(&["MULTI"]), ok());
    assert_eq!(one.ask(&["SET", "k", "mine"]), Reply::Status("QUEUED".into()));
    assert_eq!(one.ask(&["EXEC"]), Reply::Nil);
    assert_eq!(one.ask(&["GET", "k"]), Reply::Bulk(b"theirs".to_vec()));
    assert_eq!(one.ask(&["WATCH", "k"]), ok());
    assert_eq!(one.ask(&["MULTI"]), ok());
    assert_eq!(one.ask(&["SET", "k", "mine"]), Reply::Status("QUEUED".into()));
    assert_eq!(one.ask(&["EXEC"]), Reply::Array(vec![ok()]));
}

/// `behind` is written before `ahead`, in separate commits, so a reader that has seen a number in `ahead` must not
/// see a lower one in `behind` afterwards. Engines that distribute a batch's reads over threads must preserve this.
#[test]
fn reads_of_a_pipeline_see_the_writes_of_others_in_their_order() {
    for engine in engines_here(&["memory-btree", "pebble", "rocksdb"]) {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &[engine, "--durability", "none"]);
        assert_eq!(served.client().ask(&["MSET", "behind", "0", "ahead", "0"]), ok());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = served.client();
                for number in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let number = format!("{number}");
                    assert_eq!(writer.ask(&["SET", "behind", &number]), ok());
                    assert_eq!(writer.ask(&["SET", "ahead", &number]), ok());
                }
            });
            let changes = changes_seen_in_order(&mut served.client());
            is_over.store(true, Ordering::Relaxed);
            let changes = changes.unwrap_or_else(|text| panic!("{engine}: {text}"));
            assert!(changes > 100, "{engine}: the writer made only {changes} changes");
        });
    }
}

/// Reads `ahead` and `behind` in turn, many at a time, until both clients have done enough; returns how often `ahead` changed.
fn changes_seen_in_order(reader: &mut Client) -> Result<u64, String> {
    let pipeline: Vec<Vec<&str>> =
        (0..128).map(|n| vec!["GET", if n % 2 == 0 { "ahead" } else { "behind" }]).collect();
    let (mut highest, mut changes) = (0, 0);
    let begun = Instant::now();
    for round in 0.. {
        if round >= 2000 && (changes > 100 || begun.elapsed() > Duration::from_secs(60)) {
            break;
        }
        reader.send(&pipeline);
        for request in &pipeline {
            let Some(Reply::Bulk(text)) = reader.read() else { return Err("no value".into()) };
            let seen: u64 = String::from_utf8_lossy(&text).parse().map_err(|_| "no number")?;
            if seen < highest {
                return Err(format!("round {round}: {} is {seen} after {highest}", request[1]));
            }
            if request[1] == "ahead" {
                changes += u64::from(seen > highest);
                highest = seen;
            }
        }
    }
    Ok(changes)
}

#[test]
fn a_scan_returns_each_remaining_key_once_whatever_is_written_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let mut client = served.client();
    for n in 0..500 {
        assert_eq!(client.ask(&["SET", &format!("k{n:04}"), "v"]), ok());
    }
    let (mut cursor, mut seen, mut writes) = ("0".to_string(), Vec::new(), 0);
    loop {
        let Reply::Array(parts) = client.ask(&["SCAN", &cursor, "COUNT", "7", "MATCH", "k*"]) else {
            panic!()
        };
        let [Reply::Bulk(next), Reply::Array(keys)] = parts.as_slice() else { panic!("{parts:?}") };
        seen.extend(keys.iter().cloned());
        cursor = String::from_utf8(next.clone()).unwrap();
        if cursor == "0" {
            break;
        }
        client.ask(&["SET", &format!("a{writes}"), "x"]);
        writes += 1;
    }
    let wanted: Vec<Reply> = (0..500).map(|n| Reply::Bulk(format!("k{n:04}").into_bytes())).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn an_engine_without_order_names_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-map"]);
    let mut client = served.client();
    assert_eq!(client.ask(&["SET", "k", "v"]), ok());
    assert_eq!(client.ask(&["GET", "k"]), Reply::Bulk(b"v".to_vec()));
    for request in [&["HSET", "h", "f", "v"][..], &["KEYS", "*"], &["SCAN", "0"], &["DBSIZE"]] {
        let Reply::Error(text) = client.ask(request) else { panic!("{request:?}") };
        assert!(text.contains("capability `ordered`"), "{request:?}: {text}");
    }
}

#[test]
fn an_engine_that_returns_the_rows_of_a_prefix_lists_and_empties_its_databases_in_order() {
    for engine in engines_here(&["go-map", "berkeleydb-hash", "tkrzw-hash"]) {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &[engine]);
        let mut client = served.client();
        let keys: Vec<String> = (0..1_500).map(|n| format!("k{:04}", n * 7 % 1_500)).collect();
        for key in &keys {
            assert_eq!(client.ask(&["SET", key, "v"]), ok(), "{engine}");
        }
        client.ask(&["SELECT", "1"]);
        assert_eq!(client.ask(&["SET", "other", "v"]), ok());
        client.ask(&["SELECT", "0"]);
        let wanted = |numbers: std::ops::Range<usize>| {
            Reply::Array(numbers.map(|n| Reply::Bulk(format!("k{n:04}").into_bytes())).collect())
        };
        assert_eq!(client.ask(&["KEYS", "*"]), wanted(0..1_500), "{engine}");
        assert_eq!(client.ask(&["KEYS", "k012*"]), wanted(120..130), "{engine}");
        assert_eq!(client.ask(&["RANGE", "k0003", "k0008"]), wanted(3..8), "{engine}");
        assert_eq!(client.ask(&["FLUSHDB"]), ok(), "{engine}");
        assert_eq!(client.ask(&["DBSIZE"]), Reply::Integer(0), "{engine}");
        client.ask(&["SELECT", "1"]);
        assert_eq!(client.ask(&["GET", "other"]), Reply::Bulk(b"v".to_vec()), "{engine}");
    }
}

#[test]
fn without_the_password_every_request_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--password", "secret"]);
    let mut client = served.client();
    let refused = Reply::Error("NOAUTH Authentication required.".into());
    assert_eq!(client.ask(&["GET", "k"]), refused);
    assert_eq!(client.ask(&["INFO"]), refused);
    let Reply::Error(text) = client.ask(&["AUTH", "secre"]) else { panic!() };
    assert!(text.starts_with("WRONGPASS"), "{text}");
    assert_eq!(client.ask(&["AUTH", "secret"]), ok());
    assert_eq!(client.ask(&["GET", "k"]), Reply::Nil);
    // Before the password even the size of requests is limited.
    let mut client = served.client();
    client.send_raw(b"*2\r\n$3\r\nGET\r\n$20000\r\n").unwrap();
    assert_eq!(client.read(), Some(Reply::Error("ERR Protocol error: invalid bulk length".into())));
    assert_eq!(client.read(), None);
}

#[test]
fn it_cannot_be_made_public_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--bind", "0.0.0.0"][..], &["--bind", "0.0.0.0", "--listen-public"]] {
        let out = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
            .args(["serve", "memory-btree", "--port", "0"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2));
        let text = String::from_utf8(out.stderr).unwrap();
        assert!(text.contains("is reachable from other machines"), "{text}");
    }
}

#[test]
fn a_server_keeps_everything_over_a_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(folder.path(), &["memory-btree"]);
    let mut client = served.client();
    for n in 0..300 {
        assert_eq!(client.ask(&["RPUSH", "l", &n.to_string()]), Reply::Integer(n + 1));
    }
    client.send(&[vec!["SHUTDOWN"]]);
    assert!(served.child.wait().unwrap().success());
    let served = Served::start(folder.path(), &["memory-btree"]);
    let mut client = served.client();
    assert_eq!(client.ask(&["LLEN", "l"]), Reply::Integer(300));
    assert_eq!(client.ask(&["LINDEX", "l", "-1"]), Reply::Bulk(b"299".to_vec()));
}

#[test]
fn clients_are_listed_named_and_killed() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let (mut one, mut other) = (served.client(), served.client());
    assert_eq!(one.ask(&["CLIENT", "SETNAME", "first"]), ok());
    let Reply::Integer(id) = one.ask(&["CLIENT", "ID"]) else { panic!() };
    let Reply::Bulk(list) = other.ask(&["CLIENT", "LIST"]) else { panic!() };
    let list = String::from_utf8(list).unwrap();
    assert!(list.contains(&format!("id={id} ")) && list.contains("name=first"), "{list}");
    assert_eq!(other.ask(&["CLIENT", "KILL", "ID", &id.to_string()]), Reply::Integer(1));
    assert_eq!(one.read(), None);
    let Reply::Map(fields) = other.ask(&["HELLO", "3"]) else { panic!() };
    assert_eq!(fields.len(), 14);
    assert_eq!(other.ask(&["HSET", "h", "f", "v"]), Reply::Integer(1));
    let pair = vec![Reply::Bulk(b"f".to_vec()), Reply::Bulk(b"v".to_vec())];
    assert_eq!(other.ask(&["HGETALL", "h"]), Reply::Map(pair));
    assert_eq!(other.ask(&["GET", "none"]), Reply::Nil);
}

/// An engine whose reads sometimes fail: the reply reports the error, and never that the key does not exist.
#[test]
fn a_read_that_fails_in_the_engine_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["mutant:get-fails"]);
    let mut client = served.client();
    let mut failed = std::collections::BTreeMap::<&str, usize>::new();
    let value = Reply::Bulk(b"v".to_vec());
    let mut settled = |client: &mut Client, words: &[&'static str], wanted: &Reply| loop {
        match client.ask(words) {
            reply if reply == *wanted => return,
            Reply::Error(text) => {
                assert!(
                    text.starts_with("ERR engine: ") && text.contains("this read fails"),
                    "{words:?}: {text}"
                );
                *failed.entry(words[0]).or_default() += 1;
            }
            reply => panic!("{words:?}: {reply:?}"),
        }
    };
    settled(&mut client, &["SET", "k", "v"], &ok());
    settled(&mut client, &["HSET", "h", "f", "v"], &Reply::Integer(1));
    for _ in 0..200 {
        settled(&mut client, &["GET", "k"], &value);
        settled(&mut client, &["MGET", "k", "k"], &Reply::Array(vec![value.clone(), value.clone()]));
        settled(&mut client, &["STRLEN", "k"], &Reply::Integer(1));
        settled(&mut client, &["EXISTS", "k"], &Reply::Integer(1));
        settled(&mut client, &["HGET", "h", "f"], &value);
        settled(&mut client, &["SETNX", "k", "w"], &Reply::Integer(0));
    }
    for command in ["GET", "MGET", "STRLEN", "EXISTS", "HGET", "SETNX"] {
        assert!(failed.contains_key(command), "{command} never failed: {failed:?}");
    }
    // In a pipeline the other requests get their own answers.
    client.send(&vec![vec!["GET", "k"]; 500]);
    let mut errors = 0;
    for _ in 0..500 {
        match client.read() {
            Some(Reply::Error(text)) => errors += usize::from(text.contains("this read fails")),
            reply => assert_eq!(reply.as_ref(), Some(&value)),
        }
    }
    assert!(errors > 0, "none of 500 reads failed");
}
