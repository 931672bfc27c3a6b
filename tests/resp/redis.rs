//! Comparison with Redis: redis-server and `kvdyno serve` get the same requests and must send the same replies.

use crate::client::{Client, Reply, Served, engines_here, is_absent};
use crate::forms::{ALONE, FORMS, Form, KEYS, Request, START};
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

/// Whether a request compares a time that counts from now with an earlier one, which may be of the same millisecond.
fn is_by_time(request: &Request) -> bool {
    let compares = |word: &Vec<u8>| word.eq_ignore_ascii_case(b"GT") || word.eq_ignore_ascii_case(b"LT");
    matches!(name_of(request).as_str(), "EXPIRE" | "PEXPIRE") && request.iter().any(compares)
}

/// Whether a request removes members that it chooses by chance.
fn is_by_chance(request: &Request) -> bool {
    name_of(request) == "SPOP" && request.len() == 2
}

fn words(line: &str) -> Request {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn ask(server: &mut Client, request: &Request) -> Reply {
    server.send(std::slice::from_ref(request));
    server.read().expect("the server has closed the connection")
}

fn both(servers: &mut [Client; 2], request: &Request) -> [Reply; 2] {
    servers.each_mut().map(|server| ask(server, request))
}

/// The name of a request's command, in capitals.
fn name_of(request: &Request) -> String {
    request.first().map(|word| String::from_utf8_lossy(word).to_ascii_uppercase()).unwrap_or_default()
}

/// Commands whose replies tell about the server, the time or chance, so that only their kind is compared.
const OF_THEIR_OWN: &[&str] =
    &["INFO", "COMMAND", "TIME", "HELLO", "RANDOMKEY", "CONFIG", "CLIENT", "FUNCTION"];
const WITHOUT_ORDER: &[&str] = &["HKEYS", "HVALS", "SMEMBERS", "SINTER", "SUNION", "SDIFF", "KEYS", "SPOP"];

/// Makes differences equal that are allowed: scores are printed with 17 digits by Redis before 7.2, and as short as
/// possible since; hashes and sets have no order.
fn plain(request: &Request, reply: Reply) -> Reply {
    let name = name_of(request);
    match (name.as_str(), reply) {
        // Redis saves in another process.
        ("BGSAVE", Reply::Error(text)) if text.contains("already in progress") => {
            Reply::Status("Background saving started".into())
        }
        ("BGSAVE", Reply::Status(_)) => Reply::Status("Background saving started".into()),
        (_, Reply::Error(text)) => Reply::Error(text),
        ("CONFIG" | "CLIENT" | "FUNCTION", reply @ (Reply::Status(_) | Reply::Nil)) => reply,
        (known, reply) if OF_THEIR_OWN.contains(&known) => match reply {
            Reply::Array(_) => Reply::Array(Vec::new()),
            Reply::Map(all) if known == "HELLO" => Reply::Integer(all.len() as i64),
            Reply::Map(_) => Reply::Map(Vec::new()),
            Reply::Bulk(_) | Reply::Nil => Reply::Bulk(Vec::new()),
            Reply::Verbatim(_) => Reply::Verbatim(Vec::new()),
            Reply::Integer(_) => Reply::Integer(0),
            other => other,
        },
        ("HGETALL", Reply::Array(all)) => Reply::Array(in_order(all, 2)),
        ("HGETALL", Reply::Map(all)) => Reply::Map(in_order(all, 2)),
        (known, Reply::Array(all)) if WITHOUT_ORDER.contains(&known) => Reply::Array(in_order(all, 1)),
        (known, Reply::Set(all)) if WITHOUT_ORDER.contains(&known) => Reply::Set(in_order(all, 1)),
        // A page of Redis may have more than COUNT.
        ("SCAN" | "HSCAN" | "SSCAN" | "ZSCAN", Reply::Array(_)) => Reply::Array(Vec::new()),
        // Members of a set that are chosen by chance.
        ("SPOP", Reply::Bulk(_)) => Reply::Bulk(Vec::new()),
        (known, reply) if known.starts_with('Z') => scores(reply),
        (_, other) => other,
    }
}

fn scores(reply: Reply) -> Reply {
    // Here a score is never -0.
    let number =
        |text: &str| text.parse::<f64>().ok().map(|number| Reply::Double((number + 0.0).to_string()));
    match reply {
        Reply::Double(text) => number(&text).unwrap_or(Reply::Double(text)),
        Reply::Bulk(bytes) => match std::str::from_utf8(&bytes).ok().and_then(number) {
            Some(Reply::Double(text)) => Reply::Bulk(text.into_bytes()),
            _ => Reply::Bulk(bytes),
        },
        Reply::Array(all) => Reply::Array(all.into_iter().map(scores).collect()),
        other => other,
    }
}

fn in_order(all: Vec<Reply>, width: usize) -> Vec<Reply> {
    let mut rows: Vec<Vec<Reply>> = all.chunks(width).map(<[Reply]>::to_vec).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.concat()
}

/// Whether the replies are the same, except for what may differ. Times that count from now may differ by a minute.
fn is_same(request: &Request, theirs: &Reply, ours: &Reply) -> bool {
    let near = |unit: i64, theirs: i64, ours: i64| {
        // The times of the requests that do not count from now.
        let is_fixed = (3_900_000_000 * unit..6_000_000_000 * unit).contains(&theirs);
        theirs == ours || (!is_fixed && theirs > 0 && ours > 0 && (theirs - ours).abs() <= 60 * unit)
    };
    match (name_of(request).as_str(), theirs, ours) {
        ("TTL" | "EXPIRETIME", Reply::Integer(theirs), Reply::Integer(ours)) => near(1, *theirs, *ours),
        // Redis counts expired keys until it has removed them.
        ("DBSIZE", Reply::Integer(theirs), Reply::Integer(ours)) => theirs >= ours,
        ("PTTL" | "PEXPIRETIME", Reply::Integer(theirs), Reply::Integer(ours)) => near(1000, *theirs, *ours),
        _ => plain(request, theirs.clone()) == plain(request, ours.clone()),
    }
}

/// Replies of EXEC are those of the queued commands.
fn is_same_exec(queued: &[Request], theirs: &Reply, ours: &Reply) -> bool {
    match (theirs, ours) {
        (Reply::Array(theirs), Reply::Array(ours))
            if theirs.len() == queued.len() && ours.len() == theirs.len() =>
        {
            queued
                .iter()
                .zip(theirs)
                .zip(ours)
                .all(|((request, theirs), ours)| is_same(request, theirs, ours))
        }
        _ => theirs == ours,
    }
}

fn printed(request: &Request, theirs: &Reply, ours: &Reply) -> String {
    let line: Vec<String> =
        request.iter().map(|word| format!("\"{}\"", short(&word.escape_ascii().to_string()))).collect();
    format!("{}: redis {}, serve {}", line.join(" "), told(theirs), told(ours))
}

fn short(text: &str) -> String {
    if text.len() > 200 { format!("{}... ({} bytes)", &text[..200], text.len()) } else { text.to_string() }
}

fn told(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => format!("{:?}", short(&bytes.escape_ascii().to_string())),
        Reply::Array(all) => format!("[{}]", short(&all.iter().map(told).collect::<Vec<_>>().join(", "))),
        other => short(&format!("{other:?}")),
    }
}

/// All that a scan returns from its first reply on, in order.
fn scanned(server: &mut Client, request: &Request, reply: Reply) -> Reply {
    let at = if name_of(request) == "SCAN" { 1 } else { 2 };
    let width = if matches!(name_of(request).as_str(), "HSCAN" | "ZSCAN") { 2 } else { 1 };
    let (mut request, mut reply, mut all) = (request.clone(), reply, Vec::new());
    loop {
        let Reply::Array(parts) = &reply else { return reply };
        let [Reply::Bulk(cursor), Reply::Array(found)] = parts.as_slice() else {
            panic!("{reply:?} is not of a scan")
        };
        all.extend(found.clone());
        if cursor == b"0" {
            break;
        }
        request[at] = cursor.clone();
        reply = ask(server, &request);
    }
    let mut rows: Vec<Vec<Reply>> = all.chunks(width).map(<[Reply]>::to_vec).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    // Redis may return something twice.
    rows.dedup();
    if name_of(&request) == "ZSCAN" {
        scores(Reply::Array(rows.concat()))
    } else {
        Reply::Array(rows.concat())
    }
}

/// Reads all about a key.
fn reads_of(key: &[u8]) -> Vec<Request> {
    let lines = [
        "TYPE",
        "GET",
        "HGETALL",
        "SMEMBERS",
        "ZRANGE 0 -1 WITHSCORES",
        "LRANGE 0 -1",
        "PEXPIRETIME",
        "EXPIRETIME",
        "TTL",
    ];
    let request = |line| {
        let mut request = words(line);
        request.insert(1, key.to_vec());
        request
    };
    lines.map(request).to_vec()
}

/// Two servers that get the same requests, and the differences of their replies.
struct Pair<'s> {
    servers: [&'s Served; 2],
    clients: [Client; 2],
    is_three: bool,
    is_changed: bool,
    differences: Vec<String>,
}

impl<'s> Pair<'s> {
    fn new(theirs: &'s Served, ours: &'s Served, is_three: bool) -> Pair<'s> {
        let servers = [theirs, ours];
        let mut pair = Pair {
            clients: servers.map(Served::client),
            servers,
            is_three,
            is_changed: true,
            differences: Vec::new(),
        };
        pair.connect();
        pair
    }

    fn connect(&mut self) {
        self.clients = self.servers.map(Served::client);
        if self.is_three {
            both(&mut self.clients, &words("HELLO 3"));
        }
    }

    /// Compares replies; what a scan returns is read to its end.
    fn compare_replies(&mut self, why: &str, request: &Request, replies: [Reply; 2]) {
        if !name_of(request).ends_with("SCAN") {
            let [theirs, ours] = replies;
            return self.compare(why, request, &theirs, &ours);
        }
        let [theirs, ours] = replies;
        let [their_client, our_client] = &mut self.clients;
        let [theirs, ours] = [scanned(their_client, request, theirs), scanned(our_client, request, ours)];
        if theirs != ours {
            self.differences.push(format!("{why}{}", printed(request, &theirs, &ours)));
        }
    }

    fn compare(&mut self, why: &str, request: &Request, theirs: &Reply, ours: &Reply) {
        if !is_same(request, theirs, ours) {
            self.differences.push(format!("{why}{}", printed(request, theirs, ours)));
        }
    }

    /// Sends a request to both, on the keys of `START`, and compares the replies and the keys that it names.
    fn try_one(&mut self, request: &Request) {
        let mut before: Vec<Request> = Vec::new();
        if std::mem::take(&mut self.is_changed) {
            before.push(words("SELECT 0"));
            before.extend(START.iter().map(|line| words(line)));
        }
        let mut named: Vec<&Vec<u8>> = request[1.min(request.len())..].iter().collect();
        named.retain(|word| KEYS.iter().any(|key| key.as_bytes() == word.as_slice()));
        named.sort();
        named.dedup();
        let mut after: Vec<Request> = vec![words("SELECT 0")];
        after.extend(named.into_iter().flat_map(|key| reads_of(key)));
        let all = [&before[..], std::slice::from_ref(request), &after].concat();
        let replies = self.clients.each_mut().map(|client| {
            client.send(&all);
            all.iter()
                .map(|request| client.read().unwrap_or_else(|| panic!("closed after {request:?}")))
                .collect::<Vec<_>>()
        });
        let at = before.len();
        self.compare_replies("", request, [replies[0][at].clone(), replies[1][at].clone()]);
        self.is_changed = replies.iter().any(|replies| !matches!(replies[at], Reply::Error(_)));
        let reads = if is_by_chance(request) { &[] } else { &after[..] };
        for (place, read) in reads.iter().enumerate() {
            let [theirs, ours] = [0, 1].map(|server| replies[server][at + 1 + place].clone());
            let text = request.join(&b' ').escape_ascii().to_string();
            self.compare(&format!("after {}: ", short(&text)), read, &theirs, &ours);
        }
    }

    /// Compares all keys.
    fn compare_contents(&mut self, why: &str) {
        for request in KEYS.iter().flat_map(|key| reads_of(key.as_bytes())) {
            let [theirs, ours] = both(&mut self.clients, &request);
            self.compare(why, &request, &theirs, &ours);
        }
        for line in ["SCAN 0 COUNT 3", "SCAN 0 MATCH ?", "SCAN 0 TYPE zset", "SCAN 0 COUNT 100 MATCH [hl]*"] {
            let replies = both(&mut self.clients, &words(line));
            self.compare_replies(why, &words(line), replies);
        }
    }

    /// The same for a request that affects its connection, which ends with it.
    fn try_alone(&mut self, request: &Request) {
        self.connect();
        let replies = self.clients.each_mut().map(|client| {
            client.send(std::slice::from_ref(request));
            client.read()
        });
        match replies {
            [Some(theirs), Some(ours)] => self.compare("", request, &theirs, &ours),
            [theirs, ours] => assert_eq!(theirs, ours, "{request:?}"),
        }
    }

    /// Sends each request that can be made of the forms, and returns how many they are.
    fn try_all_forms(&mut self) -> usize {
        let mut count = 0;
        for form in FORMS {
            let requests = Form::of(form).all();
            count += requests.len();
            requests.iter().for_each(|request| self.try_one(request));
            self.compare_contents(&format!("after all of {form}: "));
        }
        for form in ALONE {
            let requests = Form::of(form).all();
            count += requests.len();
            requests.iter().for_each(|request| self.try_alone(request));
        }
        count
    }

    /// Sends random requests, also between MULTI and EXEC, until a reply differs.
    fn try_random(&mut self, seed: u64, steps: usize) {
        let forms: Vec<Form> = FORMS.iter().map(|form| Form::of(form)).collect();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        START.iter().for_each(|line| drop(both(&mut self.clients, &words(line))));
        let mut queued: Option<Vec<Request>> = None;
        for step in 0..steps {
            let request = match random.below(60) {
                0 => words("MULTI"),
                1 => words(random.of(&["DISCARD", "EXEC", "WATCH s", "WATCH h l t", "MULTI x", "EXEC x"])),
                2..=8 if queued.is_some() => words("EXEC"),
                // Both go on with the same keys.
                9 if queued.is_none() => words("FLUSHALL"),
                _ => {
                    forms[random.below(forms.len() as u64) as usize].random(&mut |count| random.below(count))
                }
            };
            if is_by_time(&request) || (is_by_chance(&request) && queued.is_some()) {
                continue;
            }
            let replies = both(&mut self.clients, &request);
            let why = format!("seed {seed}, step {step}: ");
            let is_queued = replies[1] == Reply::Status("QUEUED".into());
            match (name_of(&request).as_str(), &mut queued) {
                ("EXEC", Some(queue)) if request.len() == 1 => {
                    let [theirs, ours] = &replies;
                    if !is_same_exec(queue, theirs, ours) {
                        let queue: Vec<String> = queue.iter().map(|one| printed(one, theirs, ours)).collect();
                        self.differences.push(format!("{why}EXEC of {}", queue.join("\n")));
                    }
                }
                (_, Some(_)) => self.compare(&why, &request, &replies[0], &replies[1]),
                _ => self.compare_replies(&why, &request, replies),
            }
            match (name_of(&request).as_str(), &mut queued) {
                ("MULTI", None) if request.len() == 1 => queued = Some(Vec::new()),
                ("DISCARD", Some(_)) if request.len() == 1 => queued = None,
                ("EXEC", Some(_)) => queued = None,
                (_, Some(queue)) if is_queued => queue.push(request),
                _ if is_by_chance(&request) => {
                    both(&mut self.clients, &vec![b"DEL".to_vec(), request[1].clone()]);
                }
                _ => {}
            }
            if !self.differences.is_empty() {
                return;
            }
        }
        both(&mut self.clients, &words(if queued.is_some() { "DISCARD" } else { "UNWATCH" }));
        self.compare_contents(&format!("seed {seed}, at the end: "));
    }

    fn done(self) {
        let count = self.differences.len();
        assert!(count == 0, "{count} differences from Redis:\n{}", self.differences.join("\n"));
    }
}

#[test]
fn every_command_accepts_and_refuses_the_arguments_that_redis_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    for is_three in [false, true] {
        let mut pair = Pair::new(&redis, &ours, is_three);
        let count = pair.try_all_forms();
        println!("{count} requests");
        pair.done();
    }
}

fn random_sequences(engine: &str, seeds: std::ops::Range<u64>, steps: usize) {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &[engine, "--durability", "none"]);
    for seed in seeds {
        println!("{engine}: {steps} requests with seed {seed} in RESP{}", 2 + seed % 2);
        let mut pair = Pair::new(&redis, &ours, seed % 2 == 1);
        pair.try_random(seed, steps);
        pair.done();
    }
}

#[test]
fn random_requests_have_the_replies_of_redis() {
    random_sequences("memory-btree", 1..9, 1000);
}

#[test]
#[ignore = "takes long: `make test-all`"]
fn twenty_thousand_random_requests_have_the_replies_of_redis_on_four_engines() {
    for engine in engines_here(&["memory-btree", "lmdb", "rocksdb", "pebble"]) {
        random_sequences(engine, 100..110, 4000);
    }
}

/// A refused request has no effect at all, although its first words are right, and the rest of an answer stays in its
/// place.
#[test]
fn a_refused_request_changes_nothing() {
    let long = "x".repeat(70_000);
    for engine in engines_here(&["memory-btree", "lmdb"]) {
        let folder = tempfile::tempdir().unwrap();
        let ours = Served::start(folder.path(), &[engine]);
        let mut client = ours.client();
        for request in [
            &["MSET", "a", "1", &long, "2"][..],
            &["MSETNX", "a", "1", &long, "2"],
            &["HSET", "h", "f", "1", &long, "2"],
            &["SADD", "t", "m", &long],
            &["ZADD", "z", "1", "m", "2", &long],
            &["ZADD", "z", "1", "m", "1e400", "n"],
            &["HSET", "h", "f", "1", "g"],
            &["SET", &long, "v", "GET"],
        ] {
            let reply = client.ask(request);
            assert!(matches!(reply, Reply::Error(_)), "{engine}: {:?}: {reply:?}", &request[..2]);
            assert_eq!(client.ask(&["DBSIZE"]), Reply::Integer(0), "{engine}: {:?}", &request[..2]);
        }
        assert_eq!(client.ask(&["HSET", "h", "f", "1"]), Reply::Integer(1), "{engine}");
        assert_eq!(client.ask(&["HLEN", "h"]), Reply::Integer(1), "{engine}");
        // The answer of a request that fails after its beginning has no part of it.
        client.send(&[vec!["MULTI"], vec!["MGET", "a", &long], vec!["ECHO", "next"], vec!["EXEC"]]);
        for _ in 0..3 {
            client.read();
        }
        let Some(Reply::Array(replies)) = client.read() else { panic!("{engine}: no array") };
        assert!(matches!(replies[0], Reply::Error(_)), "{engine}: {replies:?}");
        assert_eq!(replies[1..], [Reply::Bulk(b"next".to_vec())], "{engine}");
        assert_eq!(client.ask(&["PING"]), Reply::Status("PONG".into()), "{engine}");
    }
}

/// Scans of a large collection are read in pages, also where a page of COUNT elements would be large; combinations of
/// large sets hold only their result.
#[test]
fn large_collections_are_scanned_in_pages() {
    const ELEMENTS: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut client = ours.client();
    for from in (0..ELEMENTS).step_by(1000) {
        let numbers: Vec<String> = (from..from + 1000).map(|number| format!("{number:05}")).collect();
        let members: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let odd = members.iter().copied().skip(1).step_by(2);
        client.ask(&[&["SADD", "t"][..], &members].concat());
        client.ask(&[&["SADD", "odd"][..], &odd.collect::<Vec<_>>()].concat());
        client.ask(&[&["HSET", "h"][..], &members].concat());
        client.ask(&[&["ZADD", "z"][..], &members].concat());
    }
    // Of the hash and the sorted set, every other word is a name.
    for (command, key) in [("SSCAN", "t"), ("HSCAN", "h"), ("ZSCAN", "z")] {
        let (mut cursor, mut pages, mut words) = ("0".to_string(), 0, Vec::new());
        loop {
            let Reply::Array(parts) = client.ask(&[command, key, &cursor, "COUNT", "100"]) else {
                panic!("{command}")
            };
            let [Reply::Bulk(next), Reply::Array(found)] = parts.as_slice() else { panic!("{parts:?}") };
            assert!(found.len() <= 200, "{command}: {} words", found.len());
            words.extend(found.clone());
            pages += 1;
            cursor = String::from_utf8(next.clone()).unwrap();
            if cursor == "0" {
                break;
            }
        }
        assert_eq!((words.len(), pages), (ELEMENTS, if command == "SSCAN" { 200 } else { 100 }), "{command}");
    }
    // Few large values make a page.
    let value = "v".repeat(512 << 10);
    for field in ["a", "b", "c", "d", "e"] {
        client.ask(&["HSET", "large", field, &value]);
    }
    let Reply::Array(parts) = client.ask(&["HSCAN", "large", "0", "COUNT", "1000"]) else { panic!("HSCAN") };
    let Reply::Array(found) = &parts[1] else { panic!("{parts:?}") };
    assert_eq!(found.len(), 4, "words of the first page");
    assert_eq!(client.ask(&["SINTERCARD", "2", "t", "odd"]), Reply::Integer(10_000));
    assert_eq!(client.ask(&["SINTERCARD", "2", "t", "odd", "LIMIT", "7"]), Reply::Integer(7));
    assert_eq!(client.ask(&["SDIFFSTORE", "even", "t", "odd"]), Reply::Integer(10_000));
    assert_eq!(client.ask(&["SUNIONSTORE", "all", "even", "odd"]), Reply::Integer(20_000));
    assert_eq!(client.ask(&["SINTERSTORE", "none", "even", "odd"]), Reply::Integer(0));
    assert_eq!(client.ask(&["ZRANK", "z", "19999"]), Reply::Integer(9999));
    assert_eq!(client.ask(&["COPY", "z", "copy"]), Reply::Integer(1));
    assert_eq!(client.ask(&["ZCOUNT", "copy", "(10", "+inf"]), Reply::Integer(9994));
}

/// A cursor that no scan has returned, or that is too old, ends no scan early.
#[test]
fn an_unknown_cursor_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut client = ours.client();
    client.ask(&["HSET", "h", "a", "1", "b", "2"]);
    client.ask(&["HSET", "i", "a", "1", "b", "2"]);
    let Reply::Array(parts) = client.ask(&["HSCAN", "h", "0", "COUNT", "1"]) else { panic!("HSCAN") };
    let Reply::Bulk(cursor) = &parts[0] else { panic!("{parts:?}") };
    let cursor = String::from_utf8(cursor.clone()).unwrap();
    assert!(matches!(client.ask(&["HSCAN", "h", &cursor]), Reply::Array(_)));
    // A cursor of another key or command, and one of nobody.
    for request in [["HSCAN", "i", &cursor], ["HSCAN", "h", "123456789"], ["HSCAN", "h", "-1"]] {
        let reply = client.ask(&request);
        assert!(matches!(&reply, Reply::Error(text) if text.contains("cursor")), "{request:?}: {reply:?}");
    }
    assert!(matches!(client.ask(&["SCAN", &cursor]), Reply::Error(_)));
}

/// docs/redis.md lists the commands, each with its options in parentheses.
#[test]
fn the_documented_commands_are_those_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let Reply::Array(names) = ours.client().ask(&["COMMAND", "LIST"]) else { panic!("COMMAND LIST") };
    let mut names: Vec<String> = names
        .into_iter()
        .map(|name| match name {
            Reply::Bulk(name) => String::from_utf8(name).unwrap().to_uppercase(),
            other => panic!("{other:?}"),
        })
        .collect();
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/redis.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| family")).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|row| row.split('|').nth(2));
    // What is in parentheses is about the command before it.
    let mut documented: Vec<String> = cells
        .flat_map(|cell| {
            let mut depth = 0;
            let outside: String = cell
                .chars()
                .filter(|character| {
                    depth += i32::from(*character == '(') - i32::from(*character == ')');
                    depth == 0 && *character != ')'
                })
                .collect();
            outside.split(',').map(|name| name.trim().to_string()).collect::<Vec<_>>()
        })
        .collect();
    names.sort();
    documented.sort();
    assert_eq!(documented, names);
}

/// Forms cannot have SHUTDOWN, which ends the servers.
#[test]
fn shutdown_with_arguments_that_it_does_not_know_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut pair = Pair::new(&redis, &ours, false);
    for line in ["BOGUS", "", "NOSAVE SAVE", "save nosave", "ABORT", "ABORT NOW", "NOW BOGUS", "NOSAVE x"] {
        pair.try_alone(&words(&format!("SHUTDOWN {line}")));
    }
    for line in ["SHUTDOWN NOSAVE", "SAVE", "MONITOR", "CONFIG BOGUS", "CLIENT ID x", "HELLO 3", "AUTH x"] {
        both(&mut pair.clients, &words("MULTI"));
        let [theirs, ours] = both(&mut pair.clients, &words(line));
        pair.compare("", &words(line), &theirs, &ours);
        both(&mut pair.clients, &words("GET s"));
        let [theirs, ours] = both(&mut pair.clients, &words("EXEC"));
        let is_same = is_same_exec(&[words(line), words("GET s")], &theirs, &ours);
        assert!(is_same, "{}", printed(&words(line), &theirs, &ours));
    }
    pair.done();
}

#[test]
fn arities_and_places_of_keys_are_those_of_redis() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut servers = [redis.client(), ours.client()];
    let Reply::Array(names) = ask(&mut servers[1], &words("COMMAND LIST")) else { panic!("COMMAND LIST") };
    for name in names {
        let Reply::Bulk(name) = name else { panic!("{name:?}") };
        let request = vec![b"COMMAND".to_vec(), b"INFO".to_vec(), name.clone()];
        let [theirs, ours] = both(&mut servers, &request).map(|reply| match reply {
            Reply::Array(all) => match all.into_iter().next() {
                Some(Reply::Array(fields)) => [1, 3, 4, 5].map(|at| fields[at].clone()).to_vec(),
                _ => Vec::new(),
            },
            other => panic!("{other:?}"),
        });
        let name = String::from_utf8(name).unwrap();
        // RANGE is of kvdyno, and KEYS has more arguments than in Redis.
        match name.as_str() {
            "range" | "keys" => assert_ne!(theirs, ours, "{name}"),
            _ => assert_eq!(theirs, ours, "{name}"),
        }
    }
}

/// Another client changes watched keys, or only reads them.
#[test]
fn watched_keys_are_as_in_redis() {
    const WATCHED: &[&str] = &["s1", "h1"];
    const FIELDS: &[&str] = &["a", "b", "c", ""];
    const VALUES: &[&str] = &["1", "42", "-7", "text", ""];
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Served::redis(folder.path()) else { return };
    let ours = Served::start(folder.path(), &["memory-btree"]);
    let mut random = Random(77);
    let mut servers = [redis.client(), ours.client()];
    let mut others = [redis.client(), ours.client()];
    let mut broken = 0;
    for round in 0..400 {
        let before =
            (0..random.below(3)).map(|_| words(&format!("WATCH {}", random.of(WATCHED)))).collect::<Vec<_>>();
        let between: Vec<_> = (0..random.below(3))
            .map(|_| match random.below(10) {
                0 => words(&format!("SET s1 {}", random.of(VALUES))),
                1 => words(&format!("HSET h1 {} {}", random.of(FIELDS), random.of(VALUES))),
                2 => words(&format!("HDEL h1 {}", random.of(FIELDS))),
                3 => words(&format!("DEL {}", random.of(WATCHED))),
                4 => words("SETNX s1 new"),
                5 => words(&format!("EXPIRE {} 1000", random.of(WATCHED))),
                6 => words("SET s2 of"),
                // These only read the watched keys.
                7 => words("COPY s1 s3 REPLACE"),
                8 => words("SUNIONSTORE t1 t2 t3"),
                _ => words("GET s1"),
            })
            .collect();
        let after = [words("MULTI"), words("APPEND s1 x"), words("HGETALL h1"), words("EXEC")];
        for (is_other, request) in before
            .iter()
            .map(|request| (false, request))
            .chain(between.iter().map(|request| (true, request)))
            .chain(after.iter().map(|request| (false, request)))
        {
            let [theirs, ours] = both(if is_other { &mut others } else { &mut servers }, request);
            broken += usize::from(ours == Reply::Nil && request[0] == b"EXEC");
            let queue = [words("APPEND"), words("HGETALL")];
            let is_same = is_same_exec(&queue, &theirs, &ours) || is_same(request, &theirs, &ours);
            assert!(
                is_same,
                "round {round}: {} after {before:?}, {between:?}",
                printed(request, &theirs, &ours)
            );
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
        let [theirs, ours] = both(servers, &words(line));
        assert!(is_same(&words(line), &theirs, &ours), "{}", printed(&words(line), &theirs, &ours));
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
