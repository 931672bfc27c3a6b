//! The forms of all commands, and the requests that are made from them: with every argument, without some, with strange
//! ones.

/// A request: the command and its arguments.
pub type Request = Vec<Vec<u8>>;

/// The commands and their arguments. Capitals are sent as they are, `[ A | B int ]` are options of which any number is
/// given, `( a b )` is given once or more, and other words are replaced by one of `values`.
pub const FORMS: &[&str] = &[
    "PING [ value ]",
    "ECHO value",
    "SELECT db",
    "GET string",
    "SET string value [ NX | XX | GET | KEEPTTL | EX seconds | PX ms | EXAT second | PXAT moment ]",
    "SETNX string value",
    "SETEX string seconds value",
    "PSETEX string ms value",
    "GETSET string value",
    "GETDEL string",
    "GETEX string [ PERSIST | EX seconds | PX ms | EXAT second | PXAT moment ]",
    "MGET ( string )",
    "MSET ( string value )",
    "MSETNX ( string value )",
    "INCR string",
    "DECR string",
    "INCRBY string int",
    "DECRBY string int",
    "INCRBYFLOAT string addend",
    "APPEND string value",
    "STRLEN string",
    "GETRANGE string place place",
    "SUBSTR string place place",
    "SETRANGE string offset value",
    "DEL ( any )",
    "UNLINK ( any )",
    "EXISTS ( any )",
    "TOUCH ( any )",
    "TYPE any",
    "RENAME any any",
    "RENAMENX any any",
    "COPY any any [ DB db | REPLACE ]",
    "EXPIRE any seconds [ NX | XX | GT | LT ]",
    "PEXPIRE any ms [ NX | XX | GT | LT ]",
    "EXPIREAT any second [ NX | XX | GT | LT ]",
    "PEXPIREAT any moment [ NX | XX | GT | LT ]",
    "EXPIRETIME any",
    "PEXPIRETIME any",
    "TTL any",
    "PTTL any",
    "PERSIST any",
    "SCAN cursor [ MATCH pattern | COUNT count | TYPE type ]",
    "KEYS pattern",
    "RANDOMKEY",
    "DBSIZE",
    "FLUSHDB [ SYNC | ASYNC ]",
    "FLUSHALL [ SYNC | ASYNC ]",
    "HSET hash ( field value )",
    "HMSET hash ( field value )",
    "HSETNX hash field value",
    "HGET hash field",
    "HMGET hash ( field )",
    "HDEL hash ( field )",
    "HEXISTS hash field",
    "HLEN hash",
    "HSTRLEN hash field",
    "HGETALL hash",
    "HKEYS hash",
    "HVALS hash",
    "HINCRBY hash field int",
    "HINCRBYFLOAT hash field addend",
    "HSCAN hash cursor [ MATCH pattern | COUNT count ]",
    "SADD set ( member )",
    "SREM set ( member )",
    "SPOP single",
    "SPOP set many",
    "SISMEMBER set member",
    "SMISMEMBER set ( member )",
    "SMEMBERS set",
    "SCARD set",
    "SMOVE set set member",
    "SSCAN set cursor [ MATCH pattern | COUNT count ]",
    "SINTER ( set )",
    "SUNION ( set )",
    "SDIFF ( set )",
    "SINTERSTORE any ( set )",
    "SUNIONSTORE any ( set )",
    "SDIFFSTORE any ( set )",
    "SINTERCARD one set [ LIMIT count ]",
    "SINTERCARD two set set [ LIMIT count ]",
    "ZADD zset [ NX | XX | GT | LT | CH | INCR ] ( float field )",
    "ZINCRBY zset float field",
    "ZREM zset ( field )",
    "ZSCORE zset field",
    "ZMSCORE zset ( field )",
    "ZCARD zset",
    "ZCOUNT zset min max",
    "ZRANK zset field",
    "ZREVRANK zset field",
    "ZRANGE zset place place [ REV | WITHSCORES | BYSCORE | LIMIT place place ]",
    "ZRANGE zset min max BYSCORE [ REV | WITHSCORES | BYSCORE | LIMIT place place ]",
    "ZREVRANGE zset place place [ WITHSCORES ]",
    "ZRANGEBYSCORE zset min max [ WITHSCORES | LIMIT place place ]",
    "ZREVRANGEBYSCORE zset max min [ WITHSCORES | LIMIT place place ]",
    "ZPOPMIN zset [ count ]",
    "ZPOPMAX zset [ count ]",
    "ZSCAN zset cursor [ MATCH pattern | COUNT count ]",
    "LPUSH list ( value )",
    "RPUSH list ( value )",
    "LPUSHX list ( value )",
    "RPUSHX list ( value )",
    "LPOP list [ count ]",
    "RPOP list [ count ]",
    "LLEN list",
    "LRANGE list place place",
    "LINDEX list place",
    "UNWATCH",
    "CONFIG SET ( parameter setting )",
    "FUNCTION FLUSH [ SYNC | ASYNC ]",
    "CLIENT GETNAME",
    "CLIENT NO-EVICT switch",
];

/// Forms whose requests change the state of the connection or the server, so that they are not part of random
/// sequences.
pub const ALONE: &[&str] = &[
    "HELLO [ proto | AUTH user value | SETNAME name ]",
    "AUTH value [ value ]",
    "QUIT",
    "RESET",
    "CLIENT SETNAME name",
    "CLIENT ID",
    "CLIENT INFO",
    "CLIENT LIST [ TYPE clients | ID int ]",
    "CLIENT KILL [ peer | ID int | ADDR peer | TYPE clients | USER user | SKIPME yes ]",
    "CLIENT bogus",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH ( any )",
    "INFO [ section ]",
    "CONFIG GET ( parameter )",
    "CONFIG RESETSTAT",
    "CONFIG bogus",
    "COMMAND",
    "COMMAND COUNT",
    "COMMAND INFO ( name )",
    "COMMAND LIST [ FILTERBY filter pattern ]",
    "COMMAND bogus",
    "FUNCTION bogus",
    "TIME",
    "MONITOR",
    "SAVE",
    "BGSAVE [ SCHEDULE ]",
];

/// The keys before a request: commands that make them.
pub const START: &[&str] = &[
    "FLUSHALL",
    "MSET s text n 10 f 3.5",
    "SET e late PXAT 4000000000000",
    "HSET h a 1 b text c 3.25",
    "HSET i a 9223372036854775807 z 1",
    "SADD t 1 2 text",
    "SADD u 2 3 text new",
    "SADD w one",
    "ZADD z 1 a 2.5 b 2.5 c -inf d",
    "ZADD y 0 a inf b 1e300 c",
    "RPUSH l a b c d",
    "RPUSH m 1",
];

/// All keys that requests use, with those that do not exist at first.
pub const KEYS: &[&str] = &["s", "n", "f", "e", "h", "i", "t", "u", "w", "z", "y", "l", "m", "none", ""];

const STRANGE_INTEGERS: &[&str] = &[
    "",
    "x",
    "1.5",
    "+1",
    " 1",
    "1 ",
    "01",
    "-0",
    "-",
    "1e3",
    "0x10",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "123456789012345678901234567890",
];
const STRANGE_TIMES: &[&str] = &[
    "",
    "x",
    "1.5",
    "+1000",
    " 1000",
    "01000",
    "-0",
    "0",
    "-1",
    "1e3",
    "9223372036854775",
    "9223372036854776",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
];
/// Strange floats of which only a double is too small.
const LARGE: usize = 3;
const STRANGE_FLOATS: &[&str] = &[
    "1e400", "-1e400", "1e308", "", "x", "nan", "inf", "-inf", "Infinity", "+inf", "1e-400", " 1", "1 ",
    "+1", ".5", "5.", ".", "1e", "0x10", "0X1p4", "0x", "1_0", "infinit", "-0", "4.9e-324", "--1", "1,5",
];
const STRANGE_BOUNDS: &[&str] = &[
    "", "(", "x", "((1", "nan", "(nan", "(inf", "1e400", " 1", "1 ", "[1", "-", "+", "+inf", "0x1", "( 1",
    "1e-400",
];

/// What replaces a word of a form: usual values, and strange ones.
pub fn values(slot: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match slot {
        "string" => (&["s", "n", "f", "e", "none"], &["h", "t", "z", "l", ""]),
        "hash" => (&["h", "i", "none"], &["s", "t", ""]),
        "set" => (&["t", "u", "none"], &["s", "z", ""]),
        "single" => (&["w", "none"], &["s", "h", ""]),
        "zset" => (&["z", "y", "none"], &["s", "t", ""]),
        "list" => (&["l", "m", "none"], &["s", "h", ""]),
        "any" => (&["s", "e", "h", "t", "z", "l", "none"], &["", "n"]),
        "value" => (
            &["text", "1", "-7", "3.5", "longer text with spaces"],
            &["", "9223372036854775807", "\r\n", "-0"],
        ),
        "field" => (&["a", "b", "c", "new"], &["", "z"]),
        "member" => (&["1", "2", "text", "new"], &[""]),
        "int" => (&["1", "-3", "42"], STRANGE_INTEGERS),
        "float" => (&["1", "2.5", "-3", "0.125"], STRANGE_FLOATS),
        // Where `long double` and decimal digits are the same.
        "addend" => (&["1", "2.5", "-3", "0.125"], &STRANGE_FLOATS[LARGE..]),
        "count" => (&["1", "2", "100", "0"], STRANGE_INTEGERS),
        "many" => (&["100", "0"], STRANGE_INTEGERS),
        "one" => (&["1"], STRANGE_INTEGERS),
        "two" => (&["2"], &["3", "0"]),
        "place" => (&["0", "-1", "1", "-2", "3", "100", "-100"], STRANGE_INTEGERS),
        "offset" => (
            &["0", "1", "5"],
            &["", "x", "-1", "01", "536870912", "536870911000", "9223372036854775807", "9223372036854775808"],
        ),
        "seconds" => (&["1000", "5000"], STRANGE_TIMES),
        "ms" => (&["1000000", "5000000"], STRANGE_TIMES),
        "second" => (&["4000000000", "5000000000", "1000"], STRANGE_TIMES),
        "moment" => (&["4000000000499", "4000000000500", "1000"], STRANGE_TIMES),
        "min" => (&["-inf", "(1", "0", "1"], STRANGE_BOUNDS),
        "max" => (&["+inf", "(2.5", "2.5", "inf"], STRANGE_BOUNDS),
        // Not `**`, which in Redis 7.0 does not match a name without characters.
        "pattern" => (&["*", "?", "[sta]", "n*"], &["", "[", "\\", "?**", "[^a]", "[a-", "\\*", "none"]),
        // Not one that no scan has returned: Redis then begins somewhere, and serve refuses it.
        "cursor" => (&["0"], &["", "x", "-", "00", "+0", "-0", " 0", "0 ", "1.5", "18446744073709551616"]),
        "type" => (&["string", "hash", "zset"], &["bogus", "", "STRING", "set"]),
        "db" => (&["0", "1"], &["", "x", "-1", "15", "16", "01", "1.5", "9223372036854775808"]),
        "parameter" => (
            &["hash-max-listpack-entries", "maxmemory-samples"],
            &["bogus", "", "MAXMEMORY-SAMPLES", "max*", "[", "hash-max-ziplist-entries"],
        ),
        "setting" => (&["10", "20"], &[]),
        "switch" => (&["on", "off"], &["ON", "", "yes"]),
        "proto" => (&["2", "3"], &["1", "4", "x", "", "02", "2.0", "-1", "9223372036854775808"]),
        "user" => (&["default"], &["other", ""]),
        "name" => (&["get", "zadd"], &["", "bogus", "two words", "a\nb", "GET"]),
        "clients" => (&["normal", "pubsub"], &["NORMAL", "master", "replica", "bogus", ""]),
        "peer" => (&["1.2.3.4:5"], &["", "bogus"]),
        "yes" => (&["yes", "no"], &["YES", "", "bogus"]),
        "section" => (&["server", "all"], &["bogus", "", "SERVER", "everything"]),
        "filter" => (&["PATTERN", "MODULE"], &["pattern", "bogus", ""]),
        "bogus" => (&["BOGUS"], &["", "HELP", "\r\n"]),
        other => panic!("{other} has no values"),
    }
}

/// A part of a form.
#[derive(Clone, Debug)]
enum Part {
    Word(&'static str),
    Slot(&'static str),
    Options(Vec<Vec<Part>>),
    Many(Vec<Part>),
}

/// A form, taken apart.
#[derive(Clone, Debug)]
pub struct Form(Vec<Part>);

impl Form {
    pub fn of(text: &'static str) -> Form {
        Form(parts(&mut text.split(' ')))
    }

    /// All requests of which each differs from the usual one in one way: an argument less or more, a strange value, an
    /// option, two options, an option without its value, or small letters.
    pub fn all(&self) -> Vec<Request> {
        let mut all = Vec::new();
        for key in 0..2 {
            let usual = self.filled(&mut |choices| {
                choices[if choices.contains(&"none") { key * (choices.len() - 1) } else { 0 }]
            });
            // Too few, and too many.
            all.extend((1..=usual.len()).map(|len| usual[..len].to_vec()));
            all.extend(["", "x", "0", "BOGUS"].map(|more| with(&usual, usual.len(), &[more])));
            all.push([&usual[..], &usual[1..]].concat());
            all.push(usual.iter().map(|word| word.to_ascii_lowercase()).collect());
            // Each value of each slot.
            let slots = self.slots();
            for (place, slot) in slots.iter().enumerate() {
                let (common, strange) = values(slot);
                for value in common.iter().chain(strange) {
                    let mut at = 0;
                    all.push(self.filled(&mut |choices| {
                        at += 1;
                        let is_here = at == place + 1;
                        if is_here {
                            value
                        } else {
                            choices[if choices.contains(&"none") { key * (choices.len() - 1) } else { 0 }]
                        }
                    }));
                }
            }
            self.with_options(&usual, &mut all);
        }
        all.sort();
        all.dedup();
        all
    }

    /// A random request; mostly one that the command accepts. `value` makes values.
    pub fn random(&self, below: &mut dyn FnMut(u64) -> u64) -> Request {
        let mut request = Vec::new();
        random(&self.0, below, &mut request);
        match below(40) {
            0 if request.len() > 1 => drop(request.pop()),
            1 => request.push([&b""[..], b"x", b"0", b"NX"][below(4) as usize].to_vec()),
            2 => request.iter_mut().for_each(|word| word.make_ascii_lowercase()),
            _ => {}
        }
        request
    }

    fn filled(&self, choose: &mut dyn FnMut(&'static [&'static str]) -> &'static str) -> Request {
        let mut request = Vec::new();
        fill(&self.0, choose, &mut request);
        request
    }

    fn slots(&self) -> Vec<&'static str> {
        let mut slots = Vec::new();
        slots_of(&self.0, &mut slots);
        slots
    }

    /// Options, one and two of them, where the form has them.
    fn with_options(&self, usual: &Request, all: &mut Vec<Request>) {
        let mut at = 0;
        for part in &self.0 {
            let Part::Options(options) = part else {
                let mut words = Vec::new();
                fill(std::slice::from_ref(part), &mut |choices| choices[0], &mut words);
                at += words.len();
                continue;
            };
            let insert = |words: &[Vec<u8>]| {
                let mut request = usual.clone();
                request.splice(at..at, words.iter().cloned());
                request
            };
            let filled: Vec<Request> = options.iter().map(|option| first(option)).collect();
            for (option, words) in options.iter().zip(&filled) {
                let small: Request = words.iter().map(|word| word.to_ascii_lowercase()).collect();
                let mixed = [&words[0][..1].to_ascii_lowercase()[..], &words[0][1..]].concat();
                all.push(insert(&small));
                all.push(insert(&[&[mixed][..], &words[1..]].concat()));
                all.push(insert(&words[..words.len() - 1]));
                all.push(insert(&[&words[..], &[b"BOGUS".to_vec()]].concat()));
                let mut slots = Vec::new();
                slots_of(option, &mut slots);
                for (place, slot) in slots.iter().enumerate() {
                    let (common, strange) = values(slot);
                    for value in common.iter().chain(strange) {
                        let (mut request, mut number) = (Vec::new(), 0);
                        fill(
                            option,
                            &mut |choices| {
                                number += 1;
                                if number == place + 1 { value } else { choices[0] }
                            },
                            &mut request,
                        );
                        all.push(insert(&request));
                    }
                }
                for other in &filled {
                    all.push(insert(&[&words[..], other].concat()));
                }
            }
            all.push(insert(&filled.concat()));
        }
    }
}

fn with(request: &Request, at: usize, words: &[&str]) -> Request {
    let mut request = request.clone();
    request.splice(at..at, words.iter().map(|word| word.as_bytes().to_vec()));
    request
}

fn first(parts: &[Part]) -> Request {
    let mut request = Vec::new();
    fill(parts, &mut |choices| choices[0], &mut request);
    request
}

fn parts(words: &mut dyn Iterator<Item = &'static str>) -> Vec<Part> {
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        found.push(match word {
            "(" => Part::Many(parts(words)),
            "[" => {
                let all = parts(words);
                let options = all.split(|part| matches!(part, Part::Word("|"))).map(<[Part]>::to_vec);
                Part::Options(options.collect())
            }
            ")" | "]" => return found,
            "|" => Part::Word("|"),
            word if word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') => Part::Word(word),
            slot => Part::Slot(slot),
        });
    }
    found
}

/// Appends the parts, without options, and groups once.
fn fill(
    parts: &[Part],
    choose: &mut dyn FnMut(&'static [&'static str]) -> &'static str,
    request: &mut Request,
) {
    for part in parts {
        match part {
            Part::Word(word) => request.push(word.as_bytes().to_vec()),
            Part::Slot(slot) => request.push(choose(values(slot).0).as_bytes().to_vec()),
            Part::Options(_) => {}
            Part::Many(parts) => fill(parts, choose, request),
        }
    }
}

fn slots_of(parts: &[Part], slots: &mut Vec<&'static str>) {
    for part in parts {
        match part {
            Part::Slot(slot) => slots.push(slot),
            Part::Many(parts) => slots_of(parts, slots),
            Part::Word(_) | Part::Options(_) => {}
        }
    }
}

fn random(parts: &[Part], below: &mut dyn FnMut(u64) -> u64, request: &mut Request) {
    for part in parts {
        match part {
            Part::Word(word) => request.push(word.as_bytes().to_vec()),
            Part::Slot("value") if below(3) == 0 => request.push(bytes(below)),
            Part::Slot(slot) => {
                let (common, strange) = values(slot);
                let choices = if !strange.is_empty() && below(8) == 0 { strange } else { common };
                request.push(choices[below(choices.len() as u64) as usize].as_bytes().to_vec());
            }
            Part::Many(parts) => (0..1 + below(3)).for_each(|_| random(parts, below, request)),
            Part::Options(options) => {
                for _ in 0..below(4) {
                    random(&options[below(options.len() as u64) as usize], below, request);
                }
            }
        }
    }
}

/// A value of any size: small ones often, up to 2 MiB.
fn bytes(below: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
    let bits = if below(12) == 0 { below(22) } else { below(10) };
    let len = below(1 << bits);
    let (first, step) = (below(256), 1 + below(255));
    (0..len).map(|at| (first + at * step) as u8).collect()
}
