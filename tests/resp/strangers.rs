//! Clients that send invalid data, claim lengths that they do not send, write slowly or never read: the server keeps
//! running, answers others meanwhile, and stays small.

use crate::client::{Client, Reply, Served};

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

const MOST_RSS_BYTES: u64 = 256 << 20;

/// A server with a key, and a client that requests it.
fn with_a_witness(folder: &std::path::Path) -> (Served, Client) {
    let served = Served::start(folder, &["memory-btree"]);
    let mut witness = served.client();
    assert_eq!(witness.ask(&["SET", "k", "v"]), Reply::Status("OK".into()));
    (served, witness)
}

fn stays_small(served: &Served) {
    let rss = served.rss_bytes();
    assert!(rss < MOST_RSS_BYTES, "the server has {rss} bytes");
}

#[test]
fn malformed_streams_cost_nobody_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut witness) = with_a_witness(folder.path());
    let deep = b"*1\r\n".repeat(100_000);
    let streams: [&[u8]; 14] = [
        b"*1000000\r\n$60000000\r\nabc",
        b"*1048576\r\n$67108864\r\n",
        b"*-5\r\n",
        b"*9999999999999999999999\r\n",
        b"*2\r\n$3\r\nGET\r\n$-1\r\n",
        b"*2\r\n$3\r\nGET\r\n$99999999999\r\n",
        b"\xff\xfe\x00\x01\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$67108865\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nxyz\r\n",
        b"$3\r\nGET\r\n",
        &deep,
        b"*1\r\n%1\r\n+x\r\n",
        b"\0\0\0\0",
        b"get \"open",
    ];
    let mut held = Vec::new();
    for round in 0..200 {
        let mut client = served.client();
        // The server may have closed the connection before everything is sent.
        let _ = client.send_raw(streams[round % streams.len()]);
        held.push(client);
        assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
    }
    stays_small(&served);
}

/// Random bytes, and requests with random bytes inserted; unparsable input ends in an error or without a reply.
#[test]
fn binary_junk_costs_nobody_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut witness) = with_a_witness(folder.path());
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for round in 0..300 {
        let mut bytes: Vec<u8> = match round % 3 {
            0 => (0..next() % 5000).map(|_| next() as u8).collect(),
            _ => b"*3\r\n$6\r\nAPPEND\r\n$4\r\njunk\r\n$5\r\nbytes\r\n".repeat(50),
        };
        for _ in 0..next() % 5 {
            let place = next() as usize % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(place) {
                *byte = next() as u8;
            }
        }
        let mut client = served.client();
        let _ = client.send_raw(&bytes);
        assert_eq!(witness.ask(&["GET", "k"]), bulk("v"), "round {round}");
    }
    stays_small(&served);
}

/// A web page can make a browser send such requests to a port of its own machine.
#[test]
fn a_request_of_a_browser_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut witness) = with_a_witness(folder.path());
    for head in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost:6380\r\n", "post /x\r\n"] {
        let mut browser = served.client();
        let _ = browser.send_raw(format!("{head}\r\n*1\r\n$8\r\nFLUSHALL\r\nSET k theirs\r\n").as_bytes());
        while browser.read().is_some() {}
        assert_eq!(witness.ask(&["GET", "k"]), bulk("v"), "{head}");
    }
}

/// Many requests that are sent one byte at a time, all at once, with complete requests of another client in between.
#[test]
fn slow_writers_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut witness) = with_a_witness(folder.path());
    let mut slow: Vec<Client> = (0..200).map(|_| served.client()).collect();
    for byte in b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" {
        slow.iter_mut().for_each(|client| client.send_raw(&[*byte]).unwrap());
        assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
    }
    for client in &mut slow {
        assert_eq!(client.read(), Some(bulk("v")));
    }
}

/// Clients that request much and read nothing.
#[test]
fn slow_readers_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut witness) = with_a_witness(folder.path());
    assert_eq!(witness.ask(&["SET", "big", &"x".repeat(1 << 20)]), Reply::Status("OK".into()));
    let mut greedy: Vec<Client> = (0..20).map(|_| served.client()).collect();
    for client in &mut greedy {
        client.send(&vec![vec!["GET", "big"]; 300]);
    }
    for _ in 0..200 {
        assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
    }
    stays_small(&served);
}

/// A monitor that reads nothing while others send much.
#[test]
fn a_monitor_that_does_not_read_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut witness) = with_a_witness(folder.path());
    let mut monitor = served.client();
    assert_eq!(monitor.ask(&["MONITOR"]), Reply::Status("OK".into()));
    let big = "x".repeat(1 << 20);
    for _ in 0..300 {
        assert_eq!(witness.ask(&["ECHO", &big]), bulk(&big));
    }
    stays_small(&served);
    assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
}

/// A restarted server knows of its values only what the database contains.
#[test]
fn large_values_are_read_a_few_at_a_time_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let (mut served, mut client) = with_a_witness(folder.path());
    let big = "x".repeat(4 << 20);
    assert_eq!(client.ask(&["SET", "big", &big]), Reply::Status("OK".into()));
    client.send(&[vec!["SHUTDOWN"]]);
    assert!(served.child.wait().unwrap().success());
    let served = Served::start(folder.path(), &["memory-btree", "--threads", "1"]);
    let mut greedy = served.client();
    greedy.send(&vec![vec!["GET", "big"]; 200]);
    let mut witness = served.client();
    for _ in 0..50 {
        assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
    }
    stays_small(&served);
    for _ in 0..200 {
        assert_eq!(greedy.read(), Some(bulk(&big)));
    }
    // One command that requests more than a reply may contain.
    let mut many = vec!["MGET"; 1];
    many.extend(std::iter::repeat_n("big", 200));
    greedy.send(&[many]);
    let Some(Reply::Error(text)) = greedy.read() else { panic!("a reply of 800 MiB") };
    assert!(text.contains("the reply needs more than"), "{text}");
    assert_eq!(witness.ask(&["GET", "k"]), bulk("v"));
}
