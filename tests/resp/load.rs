//! Many clients: each reads what it wrote, and idle clients cost little.

use crate::client::{Client, Reply, Served, engines_here};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

/// What a client has written, and must read.
#[derive(Default)]
struct Own {
    values: Vec<Option<String>>,
    fields: i64,
    list: std::collections::VecDeque<String>,
    members: std::collections::BTreeSet<u64>,
}

const KEYS: usize = 8;

/// One round of a client: several commands in one pipeline, and the expected replies.
fn round(client: u64, number: u64, own: &mut Own) -> (Vec<Vec<String>>, Vec<Reply>) {
    own.values.resize(KEYS, None);
    let (mut requests, mut wanted) = (Vec::new(), Vec::new());
    let mut ask = |words: &[&str], reply: Reply| {
        requests.push(words.iter().map(|word| word.to_string()).collect());
        wanted.push(reply);
    };
    let name = |kind: &str, place: usize| format!("{kind}:{client}:{place}");
    let place = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % KEYS;
    match number % 6 {
        0 => {
            let value = format!("{client}-{number}-{}", "x".repeat(number as usize % 300));
            ask(&["SET", &name("s", place), &value], Reply::Status("OK".into()));
            ask(&["GET", &name("s", place)], bulk(&value));
            own.values[place] = Some(value);
        }
        1 => {
            for (place, value) in own.values.iter().enumerate() {
                ask(&["GET", &name("s", place)], value.as_deref().map_or(Reply::Nil, bulk));
            }
        }
        2 => {
            let was_there = Reply::Integer(i64::from(own.values[place].take().is_some()));
            ask(&["DEL", &name("s", place)], was_there);
            ask(&["GET", &name("s", place)], Reply::Nil);
        }
        3 => {
            own.fields += 3;
            ask(&["HINCRBY", &name("h", 0), "f", "3"], Reply::Integer(own.fields));
            ask(&["HGET", &name("h", 0), "f"], bulk(&own.fields.to_string()));
        }
        4 => {
            own.list.push_back(number.to_string());
            ask(&["RPUSH", &name("l", 0), &number.to_string()], Reply::Integer(own.list.len() as i64));
            if own.list.len() > 5 {
                let first = own.list.pop_front().unwrap();
                ask(&["LPOP", &name("l", 0)], bulk(&first));
            }
        }
        _ => {
            let member = number % 20;
            let is_new = own.members.insert(member);
            ask(&["MULTI"], Reply::Status("OK".into()));
            ask(&["SADD", &name("t", 0), &member.to_string()], Reply::Status("QUEUED".into()));
            ask(&["SCARD", &name("t", 0)], Reply::Status("QUEUED".into()));
            let both = [i64::from(is_new), own.members.len() as i64].map(Reply::Integer);
            ask(&["EXEC"], Reply::Array(both.to_vec()));
        }
    }
    (requests, wanted)
}

/// Runs many clients for some time, one thread each; at the end a counter that all of them have incremented is right.
fn mixed_load(engine: &str, clients: u64, time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[engine, "--durability", "none"]);
    let (steps, end) = (AtomicI64::new(0), Instant::now() + time);
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (address, steps) = (served.address, &steps);
            let body = move || {
                let mut connection = Client::connect(address);
                let mut own = Own::default();
                let mut number = 0;
                while Instant::now() < end {
                    let (mut requests, mut wanted) = round(client, number, &mut own);
                    requests.push(vec!["INCR".into(), "steps".into()]);
                    connection.send(&requests);
                    for (request, wanted) in requests.iter().zip(wanted.drain(..)) {
                        let got = connection.read().expect("the server has closed the connection");
                        assert_eq!(got, wanted, "{engine}: client {client}, round {number}: {request:?}");
                    }
                    assert!(matches!(connection.read(), Some(Reply::Integer(_))));
                    steps.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                }
            };
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, body).unwrap();
        }
    });
    let steps = steps.into_inner();
    assert!(steps > clients as i64, "{engine}: {steps} rounds of {clients} clients");
    assert_eq!(served.client().ask(&["GET", "steps"]), bulk(&steps.to_string()), "{engine}");
    println!("{engine}: {clients} clients, {steps} rounds in {} s", time.as_secs());
}

#[test]
fn two_hundred_clients_read_what_they_wrote() {
    for engine in engines_here(&["memory-btree", "redb"]) {
        mixed_load(engine, 200, Duration::from_secs(2));
    }
}

#[test]
#[ignore = "takes two minutes; `make test-all`"]
fn a_thousand_clients_read_what_they_wrote_for_a_minute() {
    for engine in engines_here(&["memory-btree", "pebble"]) {
        mixed_load(engine, 1000, Duration::from_secs(60));
    }
}

#[test]
fn ten_thousand_idle_connections_take_64_mib_at_most() {
    const IDLE: usize = 10_000;
    let files = kvdyno::raise_open_files(IDLE as u64 + 200).unwrap_or(0) as usize;
    if files < IDLE + 200 {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs more than {files} open files");
        println!("skipped: only {files} files may be open (ulimit -Hn)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["memory-btree", "--max-clients", "10001"]);
    let mut witness = served.client();
    assert_eq!(witness.ask(&["SET", "k", "v"]), Reply::Status("OK".into()));
    let before = served.rss_bytes();
    let mut idle: Vec<_> = (0..IDLE).map(|_| std::net::TcpStream::connect(served.address).unwrap()).collect();
    for stream in &mut idle {
        std::io::Write::write_all(stream, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n").unwrap();
    }
    for stream in &mut idle {
        let mut reply = [0; 7];
        std::io::Read::read_exact(stream, &mut reply).unwrap();
        assert_eq!(&reply, b"$1\r\nv\r\n");
    }
    let more = served.rss_bytes().saturating_sub(before);
    println!("{IDLE} idle connections: {} KiB more", more >> 10);
    assert!(more <= 64 << 20, "{IDLE} idle connections take {more} bytes");
    assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
    // One more than the maximum.
    assert_eq!(served.client().read(), Some(Reply::Error("ERR max number of clients reached".into())));
}
