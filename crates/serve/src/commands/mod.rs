//! The commands, by family, and the list of all of them.

mod access;
mod connection;
mod hashes;
mod keys;
mod lists;
mod numbers;
mod ranges;
mod server;
mod sets;
mod sorted;
mod strings;
mod transactions;

use super::command::{Command, Effect};
use Effect::{Alone, Connection, Container, Reads, Writes};
use std::sync::LazyLock;

/// A row of the list: name, arity, effect, first key, last key, step, and implementation.
macro_rules! commands {
    ($($name:literal $arity:literal $effect:ident $first:literal $last:literal $step:literal $run:path;)*) => {
        &[$(Command { name: $name, arity: $arity, effect: $effect, keys: ($first, $last, $step), run: $run }),*]
    };
}

/// All commands; arities and key positions as in Redis's COMMAND.
pub(crate) static LIST: &[Command] = commands![
    "PING" -1 Reads 0 0 0 connection::ping;
    "ECHO" 2 Reads 0 0 0 connection::echo;
    "HELLO" -1 Reads 0 0 0 connection::hello;
    "AUTH" -2 Reads 0 0 0 connection::auth;
    "SELECT" 2 Reads 0 0 0 connection::select;
    "QUIT" -1 Connection 0 0 0 connection::quit;
    "RESET" 1 Connection 0 0 0 connection::reset;
    "CLIENT" -2 Container 0 0 0 server::help;
    "CLIENT|ID" 2 Reads 0 0 0 connection::id;
    "CLIENT|GETNAME" 2 Reads 0 0 0 connection::getname;
    "CLIENT|SETNAME" 3 Reads 0 0 0 connection::setname;
    "CLIENT|SETINFO" 4 Reads 0 0 0 connection::setinfo;
    "CLIENT|NO-EVICT" 3 Reads 0 0 0 connection::on_or_off;
    "CLIENT|NO-TOUCH" 3 Reads 0 0 0 connection::on_or_off;
    "CLIENT|INFO" 2 Reads 0 0 0 connection::info;
    "CLIENT|LIST" -2 Reads 0 0 0 connection::list;
    "CLIENT|KILL" -3 Reads 0 0 0 connection::kill;
    "CLIENT|HELP" 2 Reads 0 0 0 server::help;
    "GET" 2 Reads 1 1 1 strings::get;
    "SET" -3 Writes 1 1 1 strings::set;
    "SETNX" 3 Writes 1 1 1 strings::setnx;
    "SETEX" 4 Writes 1 1 1 strings::setex;
    "PSETEX" 4 Writes 1 1 1 strings::psetex;
    "GETSET" 3 Writes 1 1 1 strings::getset;
    "GETDEL" 2 Writes 1 1 1 strings::getdel;
    "GETEX" -2 Writes 1 1 1 strings::getex;
    "MGET" -2 Reads 1 -1 1 strings::mget;
    "MSET" -3 Writes 1 -1 2 strings::mset;
    "MSETNX" -3 Writes 1 -1 2 strings::msetnx;
    "INCR" 2 Writes 1 1 1 strings::incr;
    "DECR" 2 Writes 1 1 1 strings::decr;
    "INCRBY" 3 Writes 1 1 1 strings::incrby;
    "DECRBY" 3 Writes 1 1 1 strings::decrby;
    "INCRBYFLOAT" 3 Writes 1 1 1 strings::incrbyfloat;
    "APPEND" 3 Writes 1 1 1 strings::append;
    "STRLEN" 2 Reads 1 1 1 strings::strlen;
    "GETRANGE" 4 Reads 1 1 1 strings::getrange;
    "SUBSTR" 4 Reads 1 1 1 strings::getrange;
    "SETRANGE" 4 Writes 1 1 1 strings::setrange;
    "DEL" -2 Writes 1 -1 1 keys::del;
    "UNLINK" -2 Writes 1 -1 1 keys::del;
    "EXISTS" -2 Reads 1 -1 1 keys::exists;
    "TOUCH" -2 Reads 1 -1 1 keys::exists;
    "RENAME" 3 Writes 1 2 1 keys::rename;
    "RENAMENX" 3 Writes 1 2 1 keys::renamenx;
    "COPY" -3 Writes 1 2 1 keys::copy;
    "TYPE" 2 Reads 1 1 1 keys::kind;
    "EXPIRE" -3 Writes 1 1 1 keys::expire;
    "PEXPIRE" -3 Writes 1 1 1 keys::pexpire;
    "EXPIREAT" -3 Writes 1 1 1 keys::expireat;
    "PEXPIREAT" -3 Writes 1 1 1 keys::pexpireat;
    "EXPIRETIME" 2 Reads 1 1 1 keys::expiretime;
    "PEXPIRETIME" 2 Reads 1 1 1 keys::pexpiretime;
    "TTL" 2 Reads 1 1 1 keys::ttl;
    "PTTL" 2 Reads 1 1 1 keys::pttl;
    "PERSIST" 2 Writes 1 1 1 keys::persist;
    "SCAN" -2 Reads 0 0 0 ranges::scan;
    "KEYS" -2 Reads 0 0 0 ranges::keys;
    "RANGE" -3 Reads 0 0 0 ranges::range;
    "RANDOMKEY" 1 Reads 0 0 0 ranges::randomkey;
    "DBSIZE" 1 Reads 0 0 0 ranges::dbsize;
    "FLUSHDB" -1 Writes 0 0 0 ranges::flushdb;
    "FLUSHALL" -1 Writes 0 0 0 ranges::flushall;
    "HSET" -4 Writes 1 1 1 hashes::hset;
    "HMSET" -4 Writes 1 1 1 hashes::hmset;
    "HSETNX" 4 Writes 1 1 1 hashes::hsetnx;
    "HGET" 3 Reads 1 1 1 hashes::hget;
    "HMGET" -3 Reads 1 1 1 hashes::hmget;
    "HDEL" -3 Writes 1 1 1 hashes::hdel;
    "HEXISTS" 3 Reads 1 1 1 hashes::hexists;
    "HLEN" 2 Reads 1 1 1 hashes::hlen;
    "HGETALL" 2 Reads 1 1 1 hashes::hgetall;
    "HKEYS" 2 Reads 1 1 1 hashes::hkeys;
    "HVALS" 2 Reads 1 1 1 hashes::hvals;
    "HINCRBY" 4 Writes 1 1 1 hashes::hincrby;
    "HINCRBYFLOAT" 4 Writes 1 1 1 hashes::hincrbyfloat;
    "HSTRLEN" 3 Reads 1 1 1 hashes::hstrlen;
    "HSCAN" -3 Reads 1 1 1 hashes::hscan;
    "SADD" -3 Writes 1 1 1 sets::sadd;
    "SREM" -3 Writes 1 1 1 sets::srem;
    "SPOP" -2 Writes 1 1 1 sets::spop;
    "SISMEMBER" 3 Reads 1 1 1 sets::sismember;
    "SMISMEMBER" -3 Reads 1 1 1 sets::smismember;
    "SMEMBERS" 2 Reads 1 1 1 sets::smembers;
    "SCARD" 2 Reads 1 1 1 sets::scard;
    "SMOVE" 4 Writes 1 2 1 sets::smove;
    "SSCAN" -3 Reads 1 1 1 sets::sscan;
    "SINTER" -2 Reads 1 -1 1 sets::sinter;
    "SUNION" -2 Reads 1 -1 1 sets::sunion;
    "SDIFF" -2 Reads 1 -1 1 sets::sdiff;
    "SINTERSTORE" -3 Writes 1 -1 1 sets::sinterstore;
    "SUNIONSTORE" -3 Writes 1 -1 1 sets::sunionstore;
    "SDIFFSTORE" -3 Writes 1 -1 1 sets::sdiffstore;
    "SINTERCARD" -3 Reads 0 0 0 sets::sintercard;
    "ZADD" -4 Writes 1 1 1 sorted::zadd;
    "ZINCRBY" 4 Writes 1 1 1 sorted::zincrby;
    "ZREM" -3 Writes 1 1 1 sorted::zrem;
    "ZSCORE" 3 Reads 1 1 1 sorted::zscore;
    "ZMSCORE" -3 Reads 1 1 1 sorted::zmscore;
    "ZCARD" 2 Reads 1 1 1 sorted::zcard;
    "ZRANGE" -4 Reads 1 1 1 sorted::zrange;
    "ZREVRANGE" -4 Reads 1 1 1 sorted::zrevrange;
    "ZRANGEBYSCORE" -4 Reads 1 1 1 sorted::zrangebyscore;
    "ZREVRANGEBYSCORE" -4 Reads 1 1 1 sorted::zrevrangebyscore;
    "ZCOUNT" 4 Reads 1 1 1 sorted::zcount;
    "ZRANK" 3 Reads 1 1 1 sorted::zrank;
    "ZREVRANK" 3 Reads 1 1 1 sorted::zrevrank;
    "ZSCAN" -3 Reads 1 1 1 sorted::zscan;
    "ZPOPMIN" -2 Writes 1 1 1 sorted::zpopmin;
    "ZPOPMAX" -2 Writes 1 1 1 sorted::zpopmax;
    "LPUSH" -3 Writes 1 1 1 lists::lpush;
    "RPUSH" -3 Writes 1 1 1 lists::rpush;
    "LPUSHX" -3 Writes 1 1 1 lists::lpushx;
    "RPUSHX" -3 Writes 1 1 1 lists::rpushx;
    "LPOP" -2 Writes 1 1 1 lists::lpop;
    "RPOP" -2 Writes 1 1 1 lists::rpop;
    "LLEN" 2 Reads 1 1 1 lists::llen;
    "LRANGE" 4 Reads 1 1 1 lists::lrange;
    "LINDEX" 3 Reads 1 1 1 lists::lindex;
    "MULTI" 1 Connection 0 0 0 transactions::multi;
    "EXEC" 1 Connection 0 0 0 transactions::exec;
    "DISCARD" 1 Connection 0 0 0 transactions::discard;
    "WATCH" -2 Connection 1 -1 1 transactions::watch;
    "UNWATCH" 1 Reads 0 0 0 transactions::unwatch;
    "INFO" -1 Reads 0 0 0 server::info;
    "CONFIG" -2 Container 0 0 0 server::help;
    "CONFIG|GET" -3 Reads 0 0 0 server::config_get;
    "CONFIG|SET" -4 Reads 0 0 0 server::config_set;
    "CONFIG|RESETSTAT" 2 Reads 0 0 0 server::config_resetstat;
    "CONFIG|HELP" 2 Reads 0 0 0 server::help;
    "COMMAND" -1 Container 0 0 0 server::command;
    "COMMAND|COUNT" 2 Reads 0 0 0 server::command_count;
    "COMMAND|LIST" -2 Reads 0 0 0 server::command_list;
    "COMMAND|INFO" -2 Reads 0 0 0 server::command_info;
    "COMMAND|DOCS" -2 Reads 0 0 0 server::command_docs;
    "COMMAND|HELP" 2 Reads 0 0 0 server::help;
    "FUNCTION" -2 Container 0 0 0 server::help;
    "FUNCTION|FLUSH" -2 Reads 0 0 0 server::function_flush;
    "FUNCTION|HELP" 2 Reads 0 0 0 server::help;
    "TIME" 1 Reads 0 0 0 server::time;
    "MONITOR" 1 Reads 0 0 0 server::monitor;
    "SAVE" 1 Alone 0 0 0 server::save;
    "BGSAVE" -1 Reads 0 0 0 server::bgsave;
    "SHUTDOWN" -1 Alone 0 0 0 server::shutdown;
];

/// Numbers of commands, at places computed from their names; the few that share a place are next to each other.
const PLACES: usize = 1024;
static BY_NAME: LazyLock<[u8; PLACES]> = LazyLock::new(|| {
    let mut numbers = [NOBODY; PLACES];
    for (number, command) in LIST.iter().enumerate() {
        let mut place = place_of(word_of(command.name.as_bytes()).unwrap_or_default());
        while numbers[place] != NOBODY {
            place = (place + 1) % PLACES;
        }
        numbers[place] = number as u8;
    }
    numbers
});
const NOBODY: u8 = u8::MAX;

/// A name in upper case as a number; `None` if it is longer than any command's.
fn word_of(name: &[u8]) -> Option<u128> {
    let mut capitals = [0_u8; 16];
    let slot = capitals.get_mut(..name.len())?;
    slot.copy_from_slice(name);
    slot.make_ascii_uppercase();
    Some(u128::from_le_bytes(capitals))
}

fn place_of(word: u128) -> usize {
    let both = word as u64 ^ (word >> 64) as u64;
    (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

static WORDS: LazyLock<Vec<u128>> =
    LazyLock::new(|| LIST.iter().filter_map(|command| word_of(command.name.as_bytes())).collect());

/// The number of the command with that name, in upper or lower case: its place in the list; `None` if unknown.
pub(crate) fn number_of(name: &[u8]) -> Option<usize> {
    let word = word_of(name)?;
    let (numbers, words) = (&*BY_NAME, &*WORDS);
    let mut place = place_of(word);
    while numbers[place] != NOBODY {
        let number = usize::from(numbers[place]);
        // Zeros at a name's end are the same as no bytes.
        if words[number] == word && LIST[number].name.len() == name.len() {
            return Some(number);
        }
        place = (place + 1) % PLACES;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_whatever_case() {
        for (number, command) in LIST.iter().enumerate() {
            assert_eq!(number_of(command.name.as_bytes()), Some(number));
            assert_eq!(number_of(command.name.to_lowercase().as_bytes()), Some(number));
        }
        for name in ["", "GE", "GETX", "GET\0", "CLIENT|", "a name that is longer than all", "\u{1}"] {
            assert_eq!(number_of(name.as_bytes()), None, "{name:?}");
        }
    }
}
