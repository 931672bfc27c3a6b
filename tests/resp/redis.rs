//! Comparison with Redis: redis-server and `kvdyno serve` get the same requests and must send the same replies.

use crate::client::{Client, Reply, Served, engines_here, is_absent};
use std::process::Command;

/// xorshift: the test only needs the same source for both.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }

    fn of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len() as u64) as usize]
    }
}

const STRINGS: &[&str] = &["s1", "s2", "s3"];
const HASHES: &[&str] = &["h1", "h2"];
const SETS: &[&str] = &["t1", "t2"];
const SORTED: &[&str] = &["z1", "z2"];
const LISTS: &[&str] = &["l1", "l2"];
const ANY: &[&str] = &["s1", "s2", "h1", "t1", "z1", "l1", "none"];
const FIELDS: &[&str] = &["a", "b", "c", ""];
const VALUES: &[&str] = &["1", "42", "-7", "text", "", "longer text with spaces", "9223372036854775807"];
const SCORES: &[&str] = &["1", "2.5", "-3", "inf", "0.1", "nan", "x"];
const PLACES: &[&str] = &["0", "1", "-1", "-2", "3", "100", "-100"];

/// Strings, and keys of any type.
fn about_strings(r: &mut Random) -> Vec<&'static str> {
    match r.below(40) {
        0..=5 => vec!["SET", r.of(STRINGS), r.of(VALUES)],
        6 => vec!["SET", r.of(ANY), r.of(VALUES), r.of(&["NX", "XX", "GET", "KEEPTTL", "nx", "FOO"])],
        7 => vec!["SET", r.of(STRINGS), r.of(VALUES), "EX", r.of(&["1000", "0", "-1", "x"])],
        8..=11 => vec!["GET", r.of(ANY)],
        12 => vec!["MGET", r.of(ANY), r.of(ANY), r.of(STRINGS)],
        13 => vec!["MSET", r.of(STRINGS), r.of(VALUES), r.of(STRINGS), r.of(VALUES)],
        14 => vec!["MSETNX", r.of(STRINGS), r.of(VALUES), "n1", r.of(VALUES)],
        15 => vec![r.of(&["INCR", "DECR"]), r.of(ANY)],
        16 => vec![r.of(&["INCRBY", "DECRBY"]), r.of(STRINGS), r.of(VALUES)],
        17 => vec!["APPEND", r.of(ANY), r.of(VALUES)],
        18 => vec!["STRLEN", r.of(ANY)],
        19 => vec!["GETSET", r.of(ANY), r.of(VALUES)],
        20 => vec!["GETDEL", r.of(ANY)],
        21 => vec!["SETNX", r.of(ANY), r.of(VALUES)],
        22 => vec!["DEL", r.of(ANY), r.of(ANY)],
        23 => vec!["EXISTS", r.of(ANY), r.of(ANY), r.of(ANY)],
        24 => vec!["TYPE", r.of(ANY)],
        25 => vec!["EXPIRE", r.of(ANY), r.of(&["1000", "-1", "x"])],
        26 => vec!["TTL", r.of(ANY)],
        27 => vec!["PERSIST", r.of(ANY)],
        28 => vec!["UNLINK", r.of(ANY), r.of(LISTS)],
        29 => vec!["SETEX", r.of(ANY), r.of(&["1000", "0", "x"]), r.of(VALUES)],
        30 => vec!["PSETEX", r.of(STRINGS), r.of(&["1000000", "-5"]), r.of(VALUES)],
        31 => {
            vec!["SET", r.of(STRINGS), r.of(VALUES), "PX", "1000000", r.of(&["NX", "XX", "GET", "KEEPTTL"])]
        }
        32 => vec![
            "PEXPIREAT",
            r.of(ANY),
            r.of(&["4000000000000", "5000000000000"]),
            r.of(&["NX", "XX", "GT", "LT", "FOO"]),
        ],
        33 => vec!["EXPIREAT", r.of(ANY), r.of(&["4000000000", "1000"])],
        34 => vec!["PEXPIREAT", r.of(ANY), r.of(&["4000000000000", "1000"])],
        35 => vec![r.of(&["PTTL", "EXPIRETIME", "PEXPIRETIME"]), r.of(ANY)],
        36 => vec!["ECHO", r.of(VALUES)],
        37 => vec!["SELECT", r.of(&["0", "16", "-1", "x"])],
        38 => vec![r.of(&["PING", "DBSIZE", "NOSUCH", "RANDOM"])],
        _ => vec!["TYPE", r.of(&["none", "s1", "h1", "t1", "z1", "l1"])],
    }
}

/// Hashes, sets, sorted sets and lists.
fn about_collections(r: &mut Random) -> Vec<&'static str> {
    match r.below(43) {
        0..=2 => vec!["HSET", r.of(HASHES), r.of(FIELDS), r.of(VALUES), r.of(FIELDS), r.of(VALUES)],
        3 => vec!["HGET", r.of(ANY), r.of(FIELDS)],
        4 => vec!["HDEL", r.of(HASHES), r.of(FIELDS), r.of(FIELDS)],
        5 => vec![r.of(&["HLEN", "SCARD", "ZCARD", "LLEN"]), r.of(ANY)],
        6 => vec!["HINCRBY", r.of(HASHES), r.of(FIELDS), r.of(VALUES)],
        7 => vec!["HMGET", r.of(HASHES), r.of(FIELDS), r.of(FIELDS)],
        8 => vec!["HSETNX", r.of(HASHES), r.of(FIELDS), r.of(VALUES)],
        9..=10 => vec!["SADD", r.of(SETS), r.of(VALUES), r.of(VALUES)],
        11 => vec!["SREM", r.of(SETS), r.of(VALUES), r.of(VALUES)],
        12 => vec!["SISMEMBER", r.of(ANY), r.of(VALUES)],
        13..=15 => vec!["ZADD", r.of(SORTED), r.of(SCORES), r.of(FIELDS), r.of(SCORES), r.of(VALUES)],
        16 => vec![
            "ZADD",
            r.of(SORTED),
            r.of(&["NX", "XX", "GT", "LT", "CH", "INCR"]),
            r.of(SCORES),
            r.of(FIELDS),
        ],
        17 => vec!["ZSCORE", r.of(ANY), r.of(FIELDS)],
        18 => vec!["ZRANGE", r.of(SORTED), r.of(PLACES), r.of(PLACES), r.of(&["WITHSCORES", "REV"])],
        19 => vec!["ZREM", r.of(SORTED), r.of(FIELDS), r.of(VALUES)],
        20 => vec![r.of(&["ZPOPMIN", "ZPOPMAX"]), r.of(SORTED), r.of(&["1", "2", "0"])],
        21 => vec!["ZRANGEBYSCORE", r.of(SORTED), r.of(&["-inf", "(1", "0"]), r.of(&["+inf", "(2.5", "x"])],
        22..=23 => vec![r.of(&["LPUSH", "RPUSH"]), r.of(LISTS), r.of(VALUES), r.of(VALUES)],
        24 => vec![r.of(&["LPOP", "RPOP"]), r.of(LISTS)],
        25 => vec![r.of(&["LPOP", "RPOP"]), r.of(ANY), r.of(&["0", "2", "100", "-1"])],
        26 => vec!["LRANGE", r.of(ANY), r.of(PLACES), r.of(PLACES)],
        27 => vec!["LINDEX", r.of(ANY), r.of(PLACES)],
        28 => vec!["HMSET", r.of(ANY), r.of(FIELDS), r.of(VALUES)],
        29 => vec!["HEXISTS", r.of(ANY), r.of(FIELDS)],
        30 => vec![r.of(&["HGETALL", "HKEYS", "HVALS"]), r.of(ANY)],
        31 => vec!["SMEMBERS", r.of(ANY)],
        32 => vec![r.of(&["SADD", "SREM"]), r.of(ANY), r.of(VALUES)],
        33 => vec!["ZINCRBY", r.of(SORTED), r.of(SCORES), r.of(FIELDS)],
        34 => vec!["ZRANGE", r.of(ANY), r.of(PLACES), r.of(PLACES), "REV", "WITHSCORES"],
        35 => {
            vec!["ZRANGE", r.of(SORTED), r.of(&["-inf", "(1"]), "+inf", "BYSCORE", "LIMIT", r.of(PLACES), "2"]
        }
        36 => vec!["ZREVRANGE", r.of(SORTED), r.of(PLACES), r.of(PLACES), "withscores"],
        37 => vec!["ZRANGEBYSCORE", r.of(SORTED), "-inf", "+inf", "WITHSCORES", "LIMIT", "1", r.of(PLACES)],
        38 => vec!["ZADD", r.of(SORTED), "XX", r.of(&["CH", "NX", "GT"]), r.of(SCORES), r.of(FIELDS)],
        39 => vec![r.of(&["ZPOPMIN", "ZPOPMAX"]), r.of(&["z1", "none", "h1"])],
        40 => vec![r.of(&["HINCRBY", "HSETNX"]), r.of(ANY), r.of(FIELDS), r.of(VALUES)],
        41 => vec![r.of(&["LPUSH", "RPUSH", "APPEND", "SETNX"]), r.of(ANY), r.of(VALUES)],
        _ => vec!["SPOP", r.of(&["never", "s2"])],
    }
}

/// A request whose reply does not depend on chance or time.
fn request(random: &mut Random) -> Vec<String> {
    let words = if random.below(2) == 0 { about_strings(random) } else { about_collections(random) };
    let mut words: Vec<String> = words.into_iter().map(String::from).collect();
    // Sometimes a word too few or too many.
    match random.below(25) {
        0 if words.len() > 1 => drop(words.pop()),
        1 => words.push(random.of(FIELDS).to_string()),
        _ => {}
    }
    words
}

fn both(servers: &mut [Client; 2], request: &[String]) -> [Reply; 2] {
    servers.each_mut().map(|server| {
        server.send(&[request.to_vec()]);
        server.read().expect("the server has closed the connection")
    })
}

/// Makes differences equal that are allowed: scores are printed with 17 digits by Redis before 7.2, and as short as
/// possible since; hashes and sets have no order; remaining times decrease in the meantime.
fn plain(request: &[String], reply: Reply) -> Reply {
    let number = |text: &str| Reply::Double(text.parse::<f64>().map_or(text.into(), |n| n.to_string()));
    let coarse =
        |time: i64, unit: i64| Reply::Integer(if time > 0 { (time + 5 * unit) / (10 * unit) } else { time });
    let command = request.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    match (command.as_str(), reply) {
        ("TTL" | "EXPIRETIME", Reply::Integer(time)) => coarse(time, 10),
        ("PTTL" | "PEXPIRETIME", Reply::Integer(time)) => coarse(time, 10_000),
        (_, Reply::Bulk(bytes)) => match std::str::from_utf8(&bytes) {
            Ok(text) if text.contains('.') && text.parse::<f64>().is_ok() => number(text),
            _ => Reply::Bulk(bytes),
        },
        (_, Reply::Double(text)) => number(&text),
        ("HGETALL", Reply::Array(all)) => Reply::Array(in_order(all, 2)),
        ("HGETALL", Reply::Map(all)) => Reply::Map(in_order(all, 2)),
        ("HKEYS" | "HVALS" | "SMEMBERS", Reply::Array(all)) => Reply::Array(in_order(all, 1)),
        ("SMEMBERS", Reply::Set(all)) => Reply::Set(in_order(all, 1)),
        (_, Reply::Array(all)) => Reply::Array(all.into_iter().map(|one| plain(&[], one)).collect()),
        (_, other) => other,
    }
}

fn in_order(all: Vec<Reply>, width: usize) -> Vec<Reply> {
    let mut rows: Vec<Vec<Reply>> = all.chunks(width).map(<[Reply]>::to_vec).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.concat()
}

/// Replies of EXEC are those of the queued commands.
fn plain_all(queued: &[Vec<String>], reply: Reply) -> Reply {
    match reply {
        Reply::Array(all) if all.len() == queued.len() => {
            Reply::Array(queued.iter().zip(all).map(|(request, reply)| plain(request, reply)).collect())
        }
        other => other,
    }
}

/// All keys by SCAN, in order; those of one type if `kind` is set.
fn scanned(server: &mut Client, more: &[&str]) -> Vec<Reply> {
    let (mut cursor, mut keys) = (Reply::Bulk(b"0".to_vec()), Vec::new());
    loop {
        let Reply::Bulk(at) = &cursor else { panic!("{cursor:?} is not a cursor") };
        let mut words = vec!["SCAN".to_string(), String::from_utf8(at.clone()).unwrap()];
        words.extend(more.iter().map(|word| word.to_string()));
        server.send(&[words]);
        let Some(Reply::Array(mut parts)) = server.read() else { panic!("SCAN") };
        let Some(Reply::Array(found)) = parts.pop() else { panic!("SCAN") };
        keys.extend(found);
        cursor = parts.remove(0);
        if cursor == Reply::Bulk(b"0".to_vec()) {
            break;
        }
    }
    let mut keys = in_order(keys, 1);
    // Redis may return a key twice.
    keys.dedup();
    keys
}

/// The contents of the databases, by plain reads.
fn same_contents(servers: &mut [Client; 2]) {
    for (keys, words) in [
        (STRINGS, &["GET"][..]),
        (HASHES, &["HGETALL"]),
        (SETS, &["SMEMBERS"]),
        (SORTED, &["ZRANGE", "0", "-1", "WITHSCORES"]),
        (LISTS, &["LRANGE", "0", "-1"]),
        (ANY, &["TTL"]),
    ] {
        for key in keys {
            let mut request = vec![words[0].to_string(), key.to_string()];
            request.extend(words[1..].iter().map(|word| word.to_string()));
            let [theirs, ours] = both(servers, &request).map(|reply| plain(&request, reply));
            assert_eq!(theirs, ours, "{request:?}");
        }
    }
    for more in
        [&["COUNT", "3"][..], &["MATCH", "?1"], &["TYPE", "zset"], &["COUNT", "100", "MATCH", "[hl]*"]]
    {
        let [theirs, ours] = servers.each_mut().map(|server| scanned(server, more));
        assert_eq!(theirs, ours, "SCAN {more:?}");
    }
}

/// The same random requests to both, including MULTI, and the same replies.
fn compare(servers: &mut [Client; 2], seed: u64, steps: usize) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    assert_eq!(both(servers, &["FLUSHALL".to_string()])[1], Reply::Status("OK".into()));
    let mut queued: Option<Vec<Vec<String>>> = None;
    for step in 0..steps {
        let request = match random.below(40) {
            0 => vec!["MULTI".to_string()],
            1 => vec![random.of(&["DISCARD", "EXEC", "WATCH"]).to_string()],
            2..=5 if queued.is_some() => vec!["EXEC".to_string()],
            _ => request(&mut random),
        };
        let replies = both(servers, &request);
        let [theirs, ours] = match (request.first().map(String::as_str), &mut queued) {
            (Some("EXEC"), Some(queue)) => replies.map(|reply| plain_all(queue, reply)),
            _ => replies.map(|reply| plain(&request, reply)),
        };
        assert_eq!(theirs, ours, "seed {seed}, step {step}: {request:?}");
        match (request.first().map(String::as_str), &mut queued) {
            (Some("MULTI"), None) if request.len() == 1 => queued = Some(Vec::new()),
            (Some("EXEC" | "DISCARD"), Some(_)) if request.len() == 1 => queued = None,
            (_, Some(queue)) if ours == Reply::Status("QUEUED".into()) => queue.push(request),
            _ => {}
        }
    }
    if queued.is_some() {
        both(servers, &["DISCARD".to_string()]);
    }
    same_contents(servers);
}

#[test]
fn replies_are_those_of_redis() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    for seed in 1..=6_u64 {
        compare(&mut [redis.client(), ours.client()], seed, 2000);
    }
}

#[test]
fn replies_in_resp3_are_those_of_redis() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    for seed in 101..=104_u64 {
        let mut servers = [redis.client(), ours.client()];
        let hello = both(&mut servers, &["HELLO".to_string(), "3".to_string()]);
        assert!(
            hello.iter().all(|reply| matches!(reply, Reply::Map(fields) if fields.len() == 14)),
            "{hello:?}"
        );
        compare(&mut servers, seed, 2000);
    }
}

/// Another client changes watched keys, or only reads them.
#[test]
fn watched_keys_are_as_in_redis() {
    const WATCHED: &[&str] = &["s1", "h1"];
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut random = Random(77);
    let mut servers = [redis.client(), ours.client()];
    let mut others = [redis.client(), ours.client()];
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let mut broken = 0;
    for round in 0..400 {
        let before = (0..random.below(3)).map(|_| words(&["WATCH", random.of(WATCHED)])).collect::<Vec<_>>();
        let between: Vec<_> = (0..random.below(3))
            .map(|_| match random.below(8) {
                0 => words(&["SET", "s1", random.of(VALUES)]),
                1 => words(&["HSET", "h1", random.of(FIELDS), random.of(VALUES)]),
                2 => words(&["HDEL", "h1", random.of(FIELDS)]),
                3 => words(&["DEL", random.of(WATCHED)]),
                4 => words(&["SETNX", "s1", "new"]),
                5 => words(&["EXPIRE", random.of(WATCHED), "1000"]),
                6 => words(&["SET", "s2", "of no interest"]),
                _ => words(&["GET", "s1"]),
            })
            .collect();
        let after =
            [words(&["MULTI"]), words(&["APPEND", "s1", "x"]), words(&["HGETALL", "h1"]), words(&["EXEC"])];
        for (is_other, request) in before
            .iter()
            .map(|request| (false, request))
            .chain(between.iter().map(|request| (true, request)))
            .chain(after.iter().map(|request| (false, request)))
        {
            let [theirs, ours] = both(if is_other { &mut others } else { &mut servers }, request);
            broken += usize::from(ours == Reply::Nil && request[0] == "EXEC");
            let [theirs, ours] =
                [theirs, ours].map(|reply| plain_all(&[words(&["APPEND"]), words(&["HGETALL"])], reply));
            assert_eq!(theirs, ours, "round {round}: {request:?} after {before:?}, {between:?}");
        }
    }
    assert!(broken > 50, "{broken} transactions were broken");
}

/// Keys expire at the same time in both, as far as a test can measure.
#[test]
fn keys_end_as_in_redis() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut servers = [redis.client(), ours.client()];
    let ask = |servers: &mut [Client; 2], line: &str| {
        let request: Vec<String> = line.split(' ').map(String::from).collect();
        let [theirs, ours] = both(servers, &request).map(|reply| plain(&request, reply));
        assert_eq!(theirs, ours, "{line}");
        ours
    };
    for line in [
        "SET s v PX 50",
        "HSET h f v",
        "PEXPIRE h 50",
        "RPUSH l a b",
        "PEXPIRE l 50",
        "SADD t x",
        "PEXPIRE t 50",
    ] {
        ask(&mut servers, line);
    }
    for line in [
        "SET stays v EX 1000",
        "ZADD z 1 a",
        "PEXPIRE z 50",
        "SET s2 5 PX 50",
        "SET s3 x EX 1000",
        "PERSIST s3",
    ] {
        ask(&mut servers, line);
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    for line in [
        "GET s",
        "TTL s",
        "TYPE h",
        "HGETALL h",
        "HSET h g w",
        "HGETALL h",
        "TTL h",
        "LLEN l",
        "LPUSH l c",
        "LRANGE l 0 -1",
        "EXISTS t z",
        "SADD t y",
        "SMEMBERS t",
        "ZADD z 2 b",
        "ZRANGE z 0 -1 WITHSCORES",
        "INCR s2",
        "TTL s2",
        "GET s3",
        "TTL s3",
        "SET s w XX",
        "SETNX s w",
        "DEL s",
        "TTL stays",
        "GET stays",
        "DBSIZE",
    ] {
        ask(&mut servers, line);
    }
    assert_eq!(ask(&mut servers, "GET s2"), Reply::Bulk(b"1".to_vec()));
}

/// The server has counted redis-benchmark's requests, and the server's part of a latency is not more than the total.
#[test]
fn statistics_agree_with_redis_benchmark() {
    if Command::new("redis-benchmark").arg("--version").output().is_err() {
        return is_absent("redis-benchmark (apt-get install redis-tools)");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut ours = Served::start(folder.path(), &["memory-btree", "--stats=seen.csv"]);
    let port = ours.address.port().to_string();
    let ran = Command::new("redis-benchmark")
        .args(["-p", &port, "-t", "set,get", "-n", "30000", "-r", "1000", "-c", "20", "-P", "4", "--csv"])
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    ours.client().send(&[vec!["SHUTDOWN"]]);
    assert!(ours.child.wait().unwrap().success());
    let seen = std::fs::read_to_string(folder.path().join("seen.csv")).unwrap();
    for command in ["SET", "GET"] {
        let rows: Vec<Vec<&str>> = seen.lines().map(|line| line.split(',').collect()).collect();
        let rows: Vec<_> = rows.into_iter().filter(|row| row[2] == command).collect();
        let number = |cell: &str| cell.parse::<f64>().unwrap();
        let count: f64 = rows.iter().map(|row| number(row[1]) * number(row[3])).sum();
        assert!((count - 30_000.0).abs() < 300.0, "{command}: {count} in {seen}");
        let theirs = text.lines().find(|line| line.starts_with(&format!("\"{command}\""))).unwrap();
        let max_ms = number(theirs.rsplit(',').next().unwrap().trim_matches('"'));
        for row in rows {
            let p50_us = number(row[4]);
            assert!(
                p50_us > 0.0 && p50_us / 1000.0 <= max_ms,
                "{command}: {row:?}, redis-benchmark: {theirs}"
            );
        }
    }
}

#[test]
fn the_default_tests_of_redis_benchmark_run_without_an_error() {
    if Command::new("redis-benchmark").arg("--version").output().is_err() {
        return is_absent("redis-benchmark (apt-get install redis-tools)");
    }
    for engine in engines_here(&["memory-btree", "pebble"]) {
        let folder = tempfile::tempdir().unwrap();
        let ours = Served::start(folder.path(), &[engine, "--durability", "none"]);
        let port = ours.address.port().to_string();
        let ran = Command::new("redis-benchmark")
            .args(["-p", &port, "-n", "2000", "-r", "1000", "-c", "20", "-P", "4", "--csv"])
            .output()
            .unwrap();
        let [text, errors] =
            [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(ran.status.success(), "{engine}: {text}{errors}");
        let wrong = format!("{text}{errors}").to_lowercase();
        assert!(!wrong.contains("err") && !wrong.contains("warning"), "{engine}: {text}{errors}");
        for test in [
            "PING_INLINE",
            "PING_MBULK",
            "SET",
            "GET",
            "INCR",
            "LPUSH",
            "RPUSH",
            "LPOP",
            "RPOP",
            "SADD",
            "HSET",
            "SPOP",
            "ZADD",
            "ZPOPMIN",
            "LRANGE_100",
            "LRANGE_300",
            "LRANGE_500",
            "LRANGE_600",
            "MSET",
        ] {
            let is_here = text.lines().any(|line| line.starts_with(&format!("\"{test}")));
            assert!(is_here, "{engine}: {test} is missing in {text}");
        }
    }
}
