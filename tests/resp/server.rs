//! What a server guarantees: nothing acknowledged is lost, no client blocks another, and unauthorized clients have no
//! access.

use crate::client::{Client, Reply, Served, engines_here};
use std::io::{Read, Write};
use std::net::TcpStream;
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

/// A key that is watched again counts as it was at first, and takes no more memory.
#[test]
fn a_key_is_watched_once() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "1"]);
    let (mut one, mut other) = (served.client(), served.client());
    assert_eq!(one.ask(&["WATCH", "k"]), ok());
    assert_eq!(other.ask(&["SET", "k", "theirs"]), ok());
    let key = "k".repeat(60_000);
    let before = served.rss_bytes();
    for _ in 0..100 {
        one.send(&vec![vec!["WATCH", &key, "k"]; 20]);
        (0..20).for_each(|_| assert_eq!(one.read(), Some(ok())));
    }
    // Each time would be 120 MB.
    let grown = served.rss_bytes().saturating_sub(before);
    assert!(grown < 60 << 20, "{grown} bytes more");
    assert_eq!(one.ask(&["MULTI"]), ok());
    assert_eq!(one.ask(&["SET", "k", "mine"]), Reply::Status("QUEUED".into()));
    assert_eq!(one.ask(&["EXEC"]), Reply::Nil);
}

/// Waits until a key has expired, as `client` sees it.
fn wait_for_the_end_of(client: &mut Client, key: &str) {
    let begun = Instant::now();
    while client.ask(&["EXISTS", key]) != Reply::Integer(0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{key} does not expire");
    }
}

#[test]
fn a_watched_key_that_has_expired_stops_the_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let (mut one, mut other) = (served.client(), served.client());
    let mut run = |before: &[&[&str]], expires: bool| {
        // The machine may be so busy that the keys expire before they are watched: then again with more time.
        for shift in 0.. {
            one.send(&[
                vec!["SET", "s", "v"],
                vec!["DEL", "h", "l"],
                vec!["HSET", "h", "f", "v"],
                vec!["RPUSH", "l", "a"],
            ]);
            (0..4).for_each(|_| assert!(!matches!(one.read(), Some(Reply::Error(_)) | None)));
            let ms = (50_u64 << shift).to_string();
            for words in before {
                let words: Vec<&str> =
                    words.iter().map(|word| if *word == "MS" { &ms } else { *word }).collect();
                one.ask(&words);
            }
            let is_there = one.ask(&["EXISTS", "s", "h", "l"]) == Reply::Integer(3);
            if is_there {
                break;
            }
            assert_eq!(one.ask(&["UNWATCH"]), ok());
        }
        if expires {
            ["s", "h", "l"].into_iter().for_each(|key| {
                if one.ask(&["PTTL", key]) != Reply::Integer(-1) {
                    wait_for_the_end_of(&mut other, key);
                }
            });
        }
        assert_eq!(one.ask(&["MULTI"]), ok());
        assert_eq!(one.ask(&["SET", "mine", "v"]), Reply::Status("QUEUED".into()));
        one.ask(&["EXEC"])
    };
    let ran = Reply::Array(vec![ok()]);
    for key in ["s", "h", "l"] {
        assert_eq!(run(&[&["PEXPIRE", key, "MS"], &["WATCH", key]], true), Reply::Nil, "{key}");
        // Another key's end is nobody's business, and one that is far away has no effect.
        assert_eq!(run(&[&["PEXPIRE", key, "MS"], &["WATCH", "other"]], true), ran, "{key}");
        assert_eq!(run(&[&["EXPIRE", key, "1000"], &["WATCH", key]], false), ran, "{key}");
    }
    // A key that had expired before is as one that was never there.
    one.ask(&["SET", "s", "v", "PX", "1"]);
    wait_for_the_end_of(&mut other, "s");
    one.send(&[vec!["WATCH", "s"], vec!["MULTI"], vec!["SET", "mine", "v"], vec!["EXEC"]]);
    (0..3).for_each(|_| assert!(!matches!(one.read(), Some(Reply::Error(_)) | None)));
    assert_eq!(one.read(), Some(ran));
}

/// The commands before the reads take longer than the key lives.
#[test]
fn a_transaction_has_one_time_for_all_of_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let mut client = served.client();
    assert_eq!(client.ask(&["SET", "big", &"x".repeat(4 << 20)]), ok());
    let mut requests = vec![vec!["MULTI"], vec!["SET", "k", "v", "PX", "1"], vec!["GET", "k"]];
    requests.extend(vec![vec!["STRLEN", "big"]; 50]);
    requests.extend([vec!["GET", "k"], vec!["EXISTS", "k"], vec!["MGET", "k", "k"], vec!["EXEC"]]);
    client.send(&requests);
    (0..requests.len() - 1).for_each(|_| assert!(matches!(client.read(), Some(Reply::Status(_)))));
    let Some(Reply::Array(replies)) = client.read() else { panic!("EXEC") };
    let value = Reply::Bulk(b"v".to_vec());
    assert_eq!(replies[1], value);
    assert_eq!(replies[52], value);
    assert_eq!(replies[53], Reply::Integer(1));
    assert_eq!(replies[54], Reply::Array(vec![value.clone(), value]));
}

/// A command of a transaction that fails after it has written a part of its reply.
#[test]
fn a_command_that_fails_in_a_transaction_is_one_reply() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let mut client = served.client();
    assert_eq!(client.ask(&["SET", "k", "v"]), ok());
    let long = "x".repeat(70_000);
    client.send(&[
        vec!["MULTI"],
        vec!["GET", "k"],
        vec!["MGET", "k", &long, "k"],
        vec!["GET", "k"],
        vec!["EXEC"],
        vec!["PING"],
    ]);
    (0..4).for_each(|_| assert!(matches!(client.read(), Some(Reply::Status(_)))));
    let value = Reply::Bulk(b"v".to_vec());
    let Some(Reply::Array(replies)) = client.read() else { panic!("EXEC") };
    let [first, Reply::Error(text), last] = replies.as_slice() else { panic!("{replies:?}") };
    assert!(text.starts_with("ERR the key needs "), "{text}");
    assert_eq!((first, last), (&value, &value));
    assert_eq!(client.read(), Some(Reply::Status("PONG".into())));
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

/// At level `none` nothing is promised for a kill, but a server that ends by a signal writes what it has acknowledged.
#[test]
fn what_was_acknowledged_at_level_none_is_there_after_a_signal() {
    for engine in engines_here(&["redb", "pebble", "rocksdb", "tkrzw", "go-map"]) {
        let folder = tempfile::tempdir().unwrap();
        let mut served = Served::start(folder.path(), &[engine, "--durability", "none"]);
        let enough = AtomicBool::new(false);
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (mut client, enough) = (served.client(), &enough);
                    scope.spawn(move || {
                        for count in 0.. {
                            enough.fetch_or(count >= 100, Ordering::Relaxed);
                            if client.try_ask(&["SET", &format!("k{writer}-{count}"), "v"]).is_none() {
                                return count;
                            }
                        }
                        unreachable!()
                    })
                })
                .collect();
            while !enough.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let sent = Command::new("kill").args(["-TERM", &served.child.id().to_string()]).status();
            assert!(sent.unwrap().success() && served.child.wait().unwrap().success(), "{engine}");
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let served = Served::start(folder.path(), &[engine, "--durability", "none"]);
        let mut client = served.client();
        for (writer, count) in acknowledged.into_iter().enumerate() {
            let keys: Vec<_> =
                (0..count).map(|n| vec!["GET".to_string(), format!("k{writer}-{n}")]).collect();
            client.send(&keys);
            for key in keys {
                assert_eq!(client.read(), Some(Reply::Bulk(b"v".to_vec())), "{engine}: {key:?}");
            }
        }
    }
}

#[test]
fn a_server_in_memory_says_that_nothing_is_left_of_it() {
    let folder = tempfile::tempdir().unwrap();
    for (level, is_said) in [("none", true), ("process", false)] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
            .args(["serve", "memory-btree", "--port", "0", "--dir", level, "--durability", level])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let first = lines.next().unwrap().unwrap();
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success(), "{first}");
        assert!(child.wait().unwrap().success());
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        let said = rest.iter().any(|line| line.starts_with("the database is in memory and is lost"));
        assert_eq!(said, is_said, "{level}: {first}, {rest:?}");
    }
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

/// sniper refuses values above half a MiB; the other commands of the commit are those of the same and of other clients.
#[test]
fn what_the_engine_refuses_fails_alone() {
    for engine in engines_here(&["sniper"]) {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &[engine, "--threads", "1"]);
        let mut client = served.client();
        let big = "x".repeat(600 << 10);
        let mut requests: Vec<Vec<&str>> = Vec::new();
        for (key, refused) in [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")] {
            requests.extend([vec!["SET", refused, &big], vec!["SET", key, "v"]]);
        }
        client.send(&requests);
        for request in &requests {
            let got = client.read();
            match request[2] {
                "v" => assert_eq!(got, Some(ok()), "{engine}: {}", request[1]),
                _ => assert!(matches!(got, Some(Reply::Error(_))), "{engine}: {got:?}"),
            }
        }
        for key in ["a", "b", "c", "d"] {
            assert_eq!(client.ask(&["GET", key]), Reply::Bulk(b"v".to_vec()), "{engine}: {key}");
        }
        assert_eq!(client.ask(&["EXISTS", "A", "B", "C", "D"]), Reply::Integer(0));
    }
}

/// The map has no space for two large values, so each commit of two fails.
#[test]
fn a_commit_that_fails_is_an_error_for_those_whose_writes_it_had() {
    for engine in engines_here(&["lmdb"]) {
        let folder = tempfile::tempdir().unwrap();
        let served =
            Served::start(folder.path(), &[engine, "--option", "map-size=1048576", "--threads", "1"]);
        let mut client = served.client();
        let big = "x".repeat(600 << 10);
        let mut replies = |requests: &[Vec<&str>]| -> Vec<Reply> {
            client.send(requests);
            requests.iter().map(|_| client.read().expect("the server has closed the connection")).collect()
        };
        let is_full = |reply: &Reply| match reply {
            Reply::Error(text) => text.starts_with("ERR engine: the map is full"),
            _ => false,
        };
        let queued = Reply::Status("QUEUED".into());
        let pair = vec!["MSET", "a", &big, "b", &big];
        // Usually they arrive together: EXEC commits what MSET has written, and then does not execute the transaction.
        let have_met = (0..20).any(|_| {
            let got = replies(&[pair.clone(), vec!["MULTI"], vec!["SET", "k", "v"], vec!["EXEC"]]);
            assert!(is_full(&got[0]), "{got:?}");
            assert_eq!(got[1..3], [ok(), queued.clone()]);
            let is_executed = got[3] == Reply::Array(vec![ok()]);
            assert!(is_executed || is_full(&got[3]), "{got:?}");
            assert_eq!(replies(&[vec!["DEL", "k"]]), [Reply::Integer(i64::from(is_executed))]);
            !is_executed
        });
        assert!(have_met, "MSET and EXEC never arrived together");
        // The commit of the transaction itself, whatever is between its writes.
        let transaction = [vec!["MULTI"], vec!["SET", "a", &big], vec!["BGSAVE"], vec!["SET", "b", &big]];
        assert_eq!(replies(&transaction), [ok(), queued.clone(), queued.clone(), queued]);
        let got = replies(&[vec!["EXEC"], vec!["PING"]]);
        assert!(is_full(&got[0]), "{got:?}");
        assert_eq!(got[1], Reply::Status("PONG".into()));
        assert_eq!(replies(&[vec!["EXISTS", "a", "b"], vec!["SET", "k", "v"]]), [Reply::Integer(0), ok()]);
    }
}

/// A SELECT between MULTI and EXEC is for the commands after it, and remains.
#[test]
fn a_transaction_may_change_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "4"]);
    let (mut one, mut other) = (served.client(), served.client());
    let queued = Reply::Status("QUEUED".into());
    one.send(&[
        vec!["MULTI"],
        vec!["SET", "k", "0"],
        vec!["SELECT", "3"],
        vec!["SET", "k", "3"],
        vec!["GET", "k"],
        vec!["EXEC"],
        vec!["GET", "k"],
    ]);
    assert_eq!(one.read(), Some(ok()));
    (0..4).for_each(|_| assert_eq!(one.read(), Some(queued.clone())));
    let three = Reply::Bulk(b"3".to_vec());
    assert_eq!(one.read(), Some(Reply::Array(vec![ok(), ok(), ok(), three.clone()])));
    assert_eq!(one.read(), Some(three));
    assert_eq!(other.ask(&["GET", "k"]), Reply::Bulk(b"0".to_vec()));
    // The database stays if the transaction is discarded, or a watched key stops it.
    assert_eq!(one.ask(&["WATCH", "w"]), ok());
    assert_eq!(other.ask(&["SELECT", "3"]), ok());
    assert_eq!(other.ask(&["SET", "w", "theirs"]), ok());
    one.send(&[vec!["MULTI"], vec!["SELECT", "5"], vec!["EXEC"], vec!["GET", "w"]]);
    assert_eq!((one.read(), one.read(), one.read()), (Some(ok()), Some(queued), Some(Reply::Nil)));
    assert_eq!(one.read(), Some(Reply::Bulk(b"theirs".to_vec())));
    // The keys of that database are locked, so that no step of another client is between a transaction's read and write.
    const STEPS: i64 = 200;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = served.client();
                for _ in 0..STEPS {
                    let add = vec!["INCR", "n"];
                    client.send(&[
                        vec!["SELECT", "0"],
                        vec!["MULTI"],
                        vec!["SELECT", "7"],
                        add.clone(),
                        add,
                        vec!["EXEC"],
                    ]);
                    (0..5).for_each(|_| assert!(matches!(client.read(), Some(Reply::Status(_)))));
                    let Some(Reply::Array(replies)) = client.read() else { panic!("EXEC") };
                    let [_, Reply::Integer(first), Reply::Integer(second)] = replies[..] else {
                        panic!("{replies:?}")
                    };
                    assert_eq!(second, first + 1);
                }
            });
        }
    });
    assert_eq!(other.ask(&["SELECT", "7"]), ok());
    assert_eq!(other.ask(&["GET", "n"]), Reply::Bulk((8 * STEPS).to_string().into_bytes()));
}

/// Also that of a value, which is written later.
#[test]
fn a_reply_has_the_version_of_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET none\r\nHELLO 3\r\nGET none\r\nRESET\r\nGET none\r\nQUIT\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("$-1\r\n%7\r\n"), "{text}");
    assert!(text.ends_with("\r\n_\r\n+RESET\r\n$-1\r\n+OK\r\n"), "{text}");
}

/// The members from a random place on, and those before it.
#[test]
fn each_member_is_popped_once() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree"]);
    let mut client = served.client();
    let mut members: Vec<String> =
        (0..600).map(|n| format!("{}{n}", char::from(b'!' + (n % 90) as u8))).collect();
    members.push(String::new());
    let mut add = vec!["SADD", "s"];
    add.extend(members.iter().map(String::as_str));
    assert_eq!(client.ask(&add), Reply::Integer(601));
    let mut popped = Vec::new();
    for wanted in [0, 1, 100, 300, 200] {
        let Reply::Array(some) = client.ask(&["SPOP", "s", &wanted.to_string()]) else { panic!("{wanted}") };
        assert_eq!(some.len(), wanted);
        popped.extend(some);
        assert_eq!(client.ask(&["SCARD", "s"]), Reply::Integer(601 - popped.len() as i64));
    }
    assert_eq!(popped.len(), 601);
    assert_eq!(client.ask(&["EXISTS", "s"]), Reply::Integer(0));
    members.iter().for_each(|member| assert!(popped.contains(&Reply::Bulk(member.clone().into_bytes()))));
}

/// Until RESET, and once for each request, also if it asked twice.
#[test]
fn a_monitor_gets_each_request_once() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "1"]);
    let (mut monitor, mut other) = (served.client(), served.client());
    assert_eq!(monitor.ask(&["MONITOR"]), ok());
    assert_eq!(monitor.ask(&["MONITOR"]), ok());
    // Its line would be the first one.
    assert!(matches!(other.ask(&["HELLO", "2", "AUTH", "default", "secret"]), Reply::Array(_)));
    for key in ["first", "second"] {
        assert_eq!(other.ask(&["GET", key]), Reply::Nil);
        let Some(Reply::Status(line)) = monitor.read() else { panic!("no line") };
        assert!(line.ends_with(&format!("\"GET\" \"{key}\"")), "{line}");
    }
    assert_eq!(monitor.ask(&["RESET"]), Reply::Status("RESET".into()));
    assert_eq!(other.ask(&["GET", "third"]), Reply::Nil);
    assert_eq!(monitor.ask(&["PING"]), Reply::Status("PONG".into()));
}

/// An engine whose reads sometimes fail: the reply reports the error, and never that the key does not exist.
#[test]
fn a_read_that_fails_in_the_engine_is_an_error() {
    const COMMANDS: [&str; 6] = ["GET", "MGET", "STRLEN", "EXISTS", "HGET", "SETNX"];
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["mutant:get-fails"]);
    let mut client = served.client();
    let failed = std::cell::RefCell::new(std::collections::BTreeMap::<&str, usize>::new());
    let value = Reply::Bulk(b"v".to_vec());
    let settled = |client: &mut Client, words: &[&'static str], wanted: &Reply| loop {
        match client.ask(words) {
            reply if reply == *wanted => return,
            Reply::Error(text) => {
                assert!(
                    text.starts_with("ERR engine: ") && text.contains("this read fails"),
                    "{words:?}: {text}"
                );
                *failed.borrow_mut().entry(words[0]).or_default() += 1;
            }
            reply => panic!("{words:?}: {reply:?}"),
        }
    };
    settled(&mut client, &["SET", "k", "v"], &ok());
    settled(&mut client, &["HSET", "h", "f", "v"], &Reply::Integer(1));
    let have_failed = || COMMANDS.iter().all(|command| failed.borrow().contains_key(command));
    for round in (0..2000).take_while(|round| *round < 200 || !have_failed()) {
        // The engine fails in every 64th read, which must not always be one of the same command.
        (0..1 + round * round % 7).for_each(|_| settled(&mut client, &["GET", "k"], &value));
        settled(&mut client, &["MGET", "k", "k"], &Reply::Array(vec![value.clone(), value.clone()]));
        settled(&mut client, &["STRLEN", "k"], &Reply::Integer(1));
        settled(&mut client, &["EXISTS", "k"], &Reply::Integer(1));
        settled(&mut client, &["HGET", "h", "f"], &value);
        settled(&mut client, &["SETNX", "k", "w"], &Reply::Integer(0));
    }
    assert!(have_failed(), "not every command has failed: {failed:?}");
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

/// A command that fails in a read, wherever that is, has written nothing: a collection has as many elements as it says.
#[test]
fn a_command_that_fails_in_a_read_has_no_effect() {
    type Words = fn(&str) -> Vec<String>;
    const KINDS: [(&str, Words, &str, &[&str]); 3] = [
        ("HSET", |name| vec![name.into(), "v".into()], "HLEN", &["HKEYS", "HSET"]),
        ("SADD", |name| vec![name.into()], "SCARD", &["SMEMBERS", "SADD"]),
        ("ZADD", |name| vec!["1".into(), name.into()], "ZCARD", &["ZRANGE", "ZADD", "0", "-1"]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["mutant:get-fails"]);
    let mut client = served.client();
    // None: a read has failed, one of 64.
    let mut asked = |words: &[&str]| match client.ask(words) {
        Reply::Error(text) => {
            assert!(text.contains("this read fails"), "{}: {text}", words[0]);
            None
        }
        reply => Some(reply),
    };
    for (command, words, count, all) in KINDS {
        let (mut elements, mut failed) = (0, 0);
        for round in 0..100 {
            // The new one is written before the others are read.
            let names = std::iter::once(round).chain(0..40).map(|number| format!("name-{number}"));
            let words: Vec<String> = names.flat_map(|name| words(&name)).collect();
            let request: Vec<&str> =
                [command, command].into_iter().chain(words.iter().map(String::as_str)).collect();
            match asked(&request) {
                Some(Reply::Integer(new)) => elements += new,
                Some(reply) => panic!("{command}: {reply:?}"),
                None => failed += 1,
            }
            let counted = std::iter::repeat_with(|| asked(&[count, command])).find_map(|reply| reply);
            assert_eq!(counted, Some(Reply::Integer(elements)), "{command}, round {round}");
            match std::iter::repeat_with(|| asked(all)).find_map(|reply| reply) {
                Some(Reply::Array(found)) => {
                    assert_eq!(found.len() as i64, elements, "{command}, round {round}")
                }
                reply => panic!("{command}: {reply:?}"),
            }
        }
        assert!(failed > 0 && elements > 40, "{command}: {failed} failed, {elements} elements");
    }
}

/// The writes of the commands before a failed one stay, also where it has replaced them.
#[test]
fn a_failed_command_leaves_the_writes_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "1"]);
    let mut client = served.client();
    let long = "x".repeat(70_000);
    for is_transaction in [false, true] {
        let commands = [vec!["SET", "a", "1"], vec!["DEL", "a", "b", &long], vec!["MGET", "a", "b"]];
        assert_eq!(client.ask(&["MSET", "a", "0", "b", "0"]), ok());
        let mut replies: Vec<Reply> = if is_transaction {
            client.send(&[&[vec!["MULTI"]], &commands[..], &[vec!["EXEC"]]].concat());
            (0..4).for_each(|_| assert!(matches!(client.read(), Some(Reply::Status(_)))));
            let Some(Reply::Array(replies)) = client.read() else { panic!("EXEC") };
            replies
        } else {
            client.send(&commands);
            commands.iter().map(|_| client.read().unwrap()).collect()
        };
        let values = [b"1", b"0"].map(|value| Reply::Bulk(value.to_vec()));
        assert_eq!(replies.pop(), Some(Reply::Array(values.to_vec())));
        assert!(matches!(&replies[..], [_, Reply::Error(text)] if text.starts_with("ERR the key needs ")));
    }
}
