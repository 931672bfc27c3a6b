//! Against Redis itself: the same requests to redis-server and to `kvdyno serve`, and the same replies.

use crate::client::{Client, Reply, Served};

/// xorshift: the test needs no better source, only the same one for both.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
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

/// A request whose reply does not hang on chance or time.
fn request(random: &mut Random) -> Vec<String> {
    let r = random;
    let words: Vec<&str> = match r.below(56) {
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
        28..=30 => vec!["HSET", r.of(HASHES), r.of(FIELDS), r.of(VALUES), r.of(FIELDS), r.of(VALUES)],
        31 => vec!["HGET", r.of(ANY), r.of(FIELDS)],
        32 => vec!["HDEL", r.of(HASHES), r.of(FIELDS), r.of(FIELDS)],
        33 => vec![r.of(&["HLEN", "SCARD", "ZCARD", "LLEN"]), r.of(ANY)],
        34 => vec!["HINCRBY", r.of(HASHES), r.of(FIELDS), r.of(VALUES)],
        35 => vec!["HMGET", r.of(HASHES), r.of(FIELDS), r.of(FIELDS)],
        36 => vec!["HSETNX", r.of(HASHES), r.of(FIELDS), r.of(VALUES)],
        37..=38 => vec!["SADD", r.of(SETS), r.of(VALUES), r.of(VALUES)],
        39 => vec!["SREM", r.of(SETS), r.of(VALUES), r.of(VALUES)],
        40 => vec!["SISMEMBER", r.of(ANY), r.of(VALUES)],
        41..=43 => vec!["ZADD", r.of(SORTED), r.of(SCORES), r.of(FIELDS), r.of(SCORES), r.of(VALUES)],
        44 => vec![
            "ZADD",
            r.of(SORTED),
            r.of(&["NX", "XX", "GT", "LT", "CH", "INCR"]),
            r.of(SCORES),
            r.of(FIELDS),
        ],
        45 => vec!["ZSCORE", r.of(ANY), r.of(FIELDS)],
        46 => vec!["ZRANGE", r.of(SORTED), r.of(PLACES), r.of(PLACES), r.of(&["WITHSCORES", "REV"])],
        47 => vec!["ZREM", r.of(SORTED), r.of(FIELDS), r.of(VALUES)],
        48 => vec![r.of(&["ZPOPMIN", "ZPOPMAX"]), r.of(SORTED), r.of(&["1", "2", "0"])],
        49 => vec!["ZRANGEBYSCORE", r.of(SORTED), r.of(&["-inf", "(1", "0"]), r.of(&["+inf", "(2.5", "x"])],
        50..=51 => vec![r.of(&["LPUSH", "RPUSH"]), r.of(LISTS), r.of(VALUES), r.of(VALUES)],
        52 => vec![r.of(&["LPOP", "RPOP"]), r.of(LISTS)],
        53 => vec![r.of(&["LPOP", "RPOP"]), r.of(ANY), r.of(&["0", "2", "100", "-1"])],
        54 => vec!["LRANGE", r.of(ANY), r.of(PLACES), r.of(PLACES)],
        _ => vec!["LINDEX", r.of(LISTS), r.of(PLACES)],
    };
    words.into_iter().map(String::from).collect()
}

fn both(servers: &mut [Client; 2], request: &[String]) -> [Reply; 2] {
    servers.each_mut().map(|server| {
        server.send(&[request.to_vec()]);
        server.read().expect("the server has closed the connection")
    })
}

/// Scores are printed with 17 digits by Redis before 7.2, and as short as they can be since: compared as numbers.
fn plain(reply: Reply) -> Reply {
    match reply {
        Reply::Bulk(bytes) => {
            match std::str::from_utf8(&bytes).ok().and_then(|text| text.parse::<f64>().ok()) {
                Some(number) if bytes.contains(&b'.') => Reply::Double(number.to_string()),
                _ => Reply::Bulk(bytes),
            }
        }
        Reply::Array(all) => Reply::Array(all.into_iter().map(plain).collect()),
        other => other,
    }
}

/// What the databases hold, by plain reads.
fn same_contents(servers: &mut [Client; 2]) {
    for (keys, words) in [
        (STRINGS, &["GET"][..]),
        (HASHES, &["HGETALL"]),
        (SETS, &["SMEMBERS"]),
        (SORTED, &["ZRANGE", "0", "-1", "WITHSCORES"]),
        (LISTS, &["LRANGE", "0", "-1"]),
    ] {
        for key in keys {
            let mut request = vec![words[0].to_string(), key.to_string()];
            request.extend(words[1..].iter().map(|word| word.to_string()));
            let [theirs, ours] = both(servers, &request).map(sorted(words[0])).map(plain);
            assert_eq!(theirs, ours, "{request:?}");
        }
    }
}

/// Hashes and sets have no order: pairs, or members, by their bytes.
fn sorted(command: &str) -> impl Fn(Reply) -> Reply {
    let width = match command {
        "HGETALL" => 2,
        "SMEMBERS" => 1,
        _ => 0,
    };
    move |reply| match reply {
        Reply::Array(all) if width > 0 => {
            let mut rows: Vec<Vec<Reply>> = all.chunks(width).map(<[Reply]>::to_vec).collect();
            rows.sort_by_key(|row| format!("{row:?}"));
            Reply::Array(rows.concat())
        }
        other => other,
    }
}

#[test]
fn replies_are_those_of_redis() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    for seed in 1..=4_u64 {
        println!("seed {seed}");
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut servers = [redis.client(), ours.client()];
        assert_eq!(both(&mut servers, &["FLUSHALL".to_string()])[1], Reply::Status("OK".into()));
        let mut in_transaction = false;
        for step in 0..1500 {
            let request = match random.below(40) {
                0 if !in_transaction => vec!["MULTI".to_string()],
                0..=4 if in_transaction => vec!["EXEC".to_string()],
                _ => request(&mut random),
            };
            match request[0].as_str() {
                "MULTI" => in_transaction = true,
                "EXEC" => in_transaction = false,
                _ => {}
            }
            let [theirs, ours] = both(&mut servers, &request).map(plain);
            assert_eq!(theirs, ours, "seed {seed}, step {step}: {request:?}");
        }
        if in_transaction {
            let [theirs, ours] = both(&mut servers, &["EXEC".to_string()]);
            assert_eq!(theirs, ours);
        }
        same_contents(&mut servers);
    }
}

#[test]
fn the_default_tests_of_redis_benchmark_run() {
    let Ok(version) = std::process::Command::new("redis-benchmark").arg("--version").output() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs redis-tools");
        return;
    };
    assert!(version.status.success());
    let folder = tempfile::tempdir().unwrap();
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let port = ours.address.port().to_string();
    let ran = std::process::Command::new("redis-benchmark")
        .args(["-p", &port, "-n", "500", "-c", "20", "-P", "4", "--csv"])
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    for test in [
        "SET",
        "GET",
        "INCR",
        "LPUSH",
        "RPOP",
        "SADD",
        "HSET",
        "SPOP",
        "ZADD",
        "ZPOPMIN",
        "LRANGE_100",
        "MSET",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("\"{test}"))),
            "{test} is missing in {text}"
        );
    }
}
