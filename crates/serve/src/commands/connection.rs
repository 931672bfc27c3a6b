//! Commands that affect the connection itself.

use super::access::SYNTAX;
use super::numbers::integer;
use crate::client::Facts;
use crate::command::{Call, Refusal};
use crate::parse::number;
use crate::record::DATABASES;
use crate::reply::Version;
use crate::server::Message;
use std::sync::Arc;

pub(super) fn ping(call: &mut Call) -> Result<(), Refusal> {
    match call.arguments.len() {
        1 => call.reply().status("PONG"),
        2 => {
            let word = call.argument(1);
            call.reply().bulk(&word);
        }
        _ => return Err("ERR wrong number of arguments for 'ping' command".into()),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call) -> Result<(), Refusal> {
    let word = call.argument(1);
    call.reply().bulk(&word);
    Ok(())
}

/// Whether the password is right; takes the same time for every wrong password.
fn is_password(call: &Call, given: &[u8]) -> bool {
    let Some(password) = &call.server.settings.password else { return false };
    let wanted = password.as_bytes();
    let mut differs = wanted.len() ^ given.len();
    for (place, byte) in given.iter().enumerate() {
        differs |= usize::from(byte ^ wanted[place % wanted.len().max(1)]);
    }
    differs == 0
}

/// Checks name and password; the name must be `default`, because there are no other users. As in Redis, without a
/// password every password is right.
fn trust(call: &mut Call, name: &[u8], password: &[u8]) -> Result<(), Refusal> {
    if name != b"default" || (call.server.settings.password.is_some() && !is_password(call, password)) {
        return Err("WRONGPASS invalid username-password pair or user is disabled.".into());
    }
    call.client.is_trusted = true;
    Ok(())
}

pub(super) fn auth(call: &mut Call) -> Result<(), Refusal> {
    match call.arguments.len() {
        2 if call.server.settings.password.is_none() => {
            return Err("ERR AUTH <password> called without any password configured for the default user. \
                Are you sure your configuration is correct?"
                .into());
        }
        2 => trust(call, b"default", call.arguments.get(1))?,
        3 => trust(call, call.arguments.get(1), call.arguments.get(2))?,
        _ => return Err(SYNTAX.into()),
    }
    call.reply().ok();
    Ok(())
}

/// HELLO [version [AUTH name password] [SETNAME name]].
pub(super) fn hello(call: &mut Call) -> Result<(), Refusal> {
    let mut version = call.client.version;
    let mut words = call.arguments.from(1).iter();
    if let Some(word) = words.next() {
        version = match number(word).ok_or("ERR Protocol version is not an integer or out of range")? {
            2 => Version::Two,
            3 => Version::Three,
            _ => return Err("NOPROTO unsupported protocol version".into()),
        };
    }
    let mut login = None;
    while let Some(word) = words.next() {
        let wrong = || {
            let word = String::from_utf8_lossy(word);
            Refusal::from(format!("ERR Syntax error in HELLO option '{word}'"))
        };
        if word.eq_ignore_ascii_case(b"AUTH") {
            login = Some((words.next().ok_or_else(wrong)?, words.next().ok_or_else(wrong)?));
        } else if word.eq_ignore_ascii_case(b"SETNAME") {
            set_name(call, words.next().ok_or_else(wrong)?)?;
        } else {
            return Err(wrong());
        }
    }
    if let Some((user, password)) = login {
        trust(call, user, password)?;
    }
    if !call.client.is_trusted {
        return Err("NOAUTH HELLO must be called with the client already authenticated, otherwise the \
            HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
            RESP protocol version at the same time"
            .into());
    }
    call.client.version = version;
    let id = call.client.facts.id as i64;
    let reply = call.reply();
    reply.version = version;
    reply.map(7);
    for (field, text) in [("server", "redis"), ("version", super::server::REDIS_VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if version == Version::Three { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id);
    for (field, text) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// The database that the argument of SELECT names.
pub(super) fn database_of(word: &[u8]) -> Result<u8, Refusal> {
    let database = integer(word)?;
    if !(0..i64::from(DATABASES)).contains(&database) {
        return Err("ERR DB index is out of range".into());
    }
    Ok(database as u8)
}

pub(super) fn select(call: &mut Call) -> Result<(), Refusal> {
    call.client.database = database_of(call.arguments.get(1))?;
    call.reply().ok();
    Ok(())
}

pub(super) fn quit(call: &mut Call) -> Result<(), Refusal> {
    call.client.is_leaving = true;
    call.reply().ok();
    Ok(())
}

pub(super) fn reset(call: &mut Call) -> Result<(), Refusal> {
    let is_trusted = call.server.settings.password.is_none();
    call.client.reset(is_trusted);
    call.server.remove_monitor(call.client.facts.id);
    call.reply().version = Version::Two;
    call.reply().status("RESET");
    Ok(())
}

pub(super) fn id(call: &mut Call) -> Result<(), Refusal> {
    let id = call.client.facts.id as i64;
    call.reply().integer(id);
    Ok(())
}

pub(super) fn getname(call: &mut Call) -> Result<(), Refusal> {
    let name = call.client.facts.name();
    call.reply().bulk_or_nil((!name.is_empty()).then_some(&name));
    Ok(())
}

fn set_name(call: &Call, name: &[u8]) -> Result<(), Refusal> {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.".into());
    }
    call.client.facts.set_name(name);
    Ok(())
}

pub(super) fn setname(call: &mut Call) -> Result<(), Refusal> {
    set_name(call, call.arguments.get(2))?;
    call.reply().ok();
    Ok(())
}

/// Replies with OK if the argument is one of these words; there is nothing to do.
fn accept(call: &mut Call, words: &[&str], refusal: Refusal) -> Result<(), Refusal> {
    let word = call.arguments.get(2);
    if !words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())) {
        return Err(refusal);
    }
    call.reply().ok();
    Ok(())
}

/// CLIENT SETINFO: what client libraries tell about themselves.
pub(super) fn setinfo(call: &mut Call) -> Result<(), Refusal> {
    let word = String::from_utf8_lossy(call.arguments.get(2)).into_owned();
    accept(call, &["lib-name", "lib-ver"], format!("ERR Unrecognized option '{word}'").into())
}

/// CLIENT NO-EVICT and NO-TOUCH: nothing is evicted here.
pub(super) fn on_or_off(call: &mut Call) -> Result<(), Refusal> {
    accept(call, &["on", "off"], SYNTAX.into())
}

/// Whether clients of that type are meant: all clients here are normal ones.
fn is_normal(kind: &[u8]) -> Result<bool, Refusal> {
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(false),
        _ => Err(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(kind)).into()),
    }
}

fn reply_lines(call: &mut Call, facts: &[Arc<Facts>]) {
    let lines: String = facts.iter().map(|facts| facts.line(call.now_ms) + "\n").collect();
    call.reply().text(&lines);
}

pub(super) fn info(call: &mut Call) -> Result<(), Refusal> {
    let facts = Arc::clone(&call.client.facts);
    reply_lines(call, &[facts]);
    Ok(())
}

/// CLIENT LIST [TYPE type | ID id...].
pub(super) fn list(call: &mut Call) -> Result<(), Refusal> {
    let option = call.arguments.get(2).to_ascii_uppercase();
    let values = call.arguments.from(3);
    let mut clients = call.server.clients();
    match (option.as_slice(), values.len()) {
        (_, 0) if call.arguments.len() == 2 => {}
        (b"TYPE", 1) => {
            let is_meant = is_normal(values.get(0))?;
            clients.retain(|_| is_meant);
        }
        (b"ID", 1..) => {
            let ids: Option<Vec<i64>> = values.iter().map(number).collect();
            let ids = ids.ok_or("ERR Invalid client ID")?;
            clients.retain(|facts| ids.contains(&(facts.id as i64)));
        }
        _ => return Err(SYNTAX.into()),
    }
    reply_lines(call, &clients);
    Ok(())
}

/// Which clients CLIENT KILL means.
#[derive(Default)]
struct Meant {
    id: Option<u64>,
    address: Option<String>,
    nobody: bool,
    skips_itself: bool,
}

impl Meant {
    fn parse(call: &Call) -> Result<Meant, Refusal> {
        let mut meant = Meant { skips_itself: true, ..Meant::default() };
        let mut words = call.arguments.from(2).iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(SYNTAX)?;
            let text = String::from_utf8_lossy(value).into_owned();
            match word.to_ascii_uppercase().as_slice() {
                b"ID" => {
                    let id = number(value).filter(|id| *id > 0);
                    meant.id = Some(id.ok_or("ERR client-id should be greater than 0")? as u64);
                }
                b"ADDR" => meant.address = Some(text),
                b"TYPE" => meant.nobody |= !is_normal(value)?,
                b"USER" if value == b"default" => {}
                b"USER" => return Err(format!("ERR No such user '{text}'").into()),
                b"SKIPME" => {
                    meant.skips_itself = match text.to_ascii_lowercase().as_str() {
                        "yes" => true,
                        "no" => false,
                        _ => return Err(SYNTAX.into()),
                    };
                }
                b"LADDR" => return Err("ERR LADDR is not supported".into()),
                _ => return Err(SYNTAX.into()),
            }
        }
        Ok(meant)
    }

    fn is_meant(&self, facts: &Facts, own: u64) -> bool {
        let is_out = self.nobody || (self.skips_itself && facts.id == own);
        !is_out
            && self.id.is_none_or(|id| id == facts.id)
            && self.address.as_ref().is_none_or(|address| *address == facts.peer)
    }
}

/// CLIENT KILL addr, or CLIENT KILL [ID n] [ADDR addr] [TYPE type] [USER name] [SKIPME yes|no].
pub(super) fn kill(call: &mut Call) -> Result<(), Refusal> {
    let is_old = call.arguments.len() == 3;
    let meant = match is_old {
        true => {
            let address = String::from_utf8_lossy(call.arguments.get(2)).into_owned();
            Meant { address: Some(address), ..Meant::default() }
        }
        false => Meant::parse(call)?,
    };
    let own = call.client.facts.id;
    let mut killed = 0;
    for facts in call.server.clients().iter().filter(|facts| meant.is_meant(facts, own)) {
        killed += 1;
        if facts.id == own {
            call.client.is_leaving = true;
        } else {
            facts.kill();
            call.server.send(facts.worker, Message::CloseIdle);
        }
    }
    match (is_old, killed) {
        (true, 0) => return Err("ERR No such client".into()),
        (true, _) => call.reply().ok(),
        (false, _) => call.reply().integer(killed),
    }
    Ok(())
}
