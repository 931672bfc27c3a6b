//! Commands that affect the connection itself.

use super::access::{SYNTAX, integer};
use crate::resp::command::{Call, Refusal};
use crate::resp::record::DATABASES;
use crate::resp::reply::Version;
use crate::resp::server::Message;

pub fn ping(call: &mut Call) -> Result<(), Refusal> {
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

pub fn echo(call: &mut Call) -> Result<(), Refusal> {
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

/// Checks name and password; the name must be `default`, because there are no other users.
fn trust(call: &mut Call, name: &[u8], password: &[u8]) -> Result<(), Refusal> {
    if call.server.settings.password.is_none() {
        return Err("ERR AUTH <password> called without any password configured for the default user. \
            Are you sure your configuration is correct?"
            .into());
    }
    if name != b"default" || !is_password(call, password) {
        return Err("WRONGPASS invalid username-password pair or user is disabled.".into());
    }
    call.client.is_trusted = true;
    Ok(())
}

pub fn auth(call: &mut Call) -> Result<(), Refusal> {
    match call.arguments.len() {
        2 => trust(call, b"default", call.arguments.get(1))?,
        3 => trust(call, call.arguments.get(1), call.arguments.get(2))?,
        _ => return Err(SYNTAX.into()),
    }
    call.reply().ok();
    Ok(())
}

/// HELLO [version [AUTH name password] [SETNAME name]].
pub fn hello(call: &mut Call) -> Result<(), Refusal> {
    let mut version = call.client.version;
    let mut words = call.arguments.from(1).iter();
    if let Some(word) = words.next() {
        version = match word {
            b"2" => Version::Two,
            b"3" => Version::Three,
            _ => return Err("NOPROTO unsupported protocol version".into()),
        };
    }
    let mut name = None;
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case(b"AUTH") {
            let (user, password) = (words.next().ok_or(SYNTAX)?, words.next().ok_or(SYNTAX)?);
            trust(call, user, password)?;
        } else if word.eq_ignore_ascii_case(b"SETNAME") {
            name = Some(words.next().ok_or(SYNTAX)?);
        } else {
            return Err(SYNTAX.into());
        }
    }
    if !call.client.is_trusted {
        return Err("NOAUTH HELLO must be called with the client already authenticated, otherwise the \
            HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
            RESP protocol version at the same time"
            .into());
    }
    if let Some(name) = name {
        call.client.facts.set_name(name);
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
pub fn database_of(word: &[u8]) -> Result<u8, Refusal> {
    let database = integer(word)?;
    if !(0..i64::from(DATABASES)).contains(&database) {
        return Err("ERR DB index is out of range".into());
    }
    Ok(database as u8)
}

pub fn select(call: &mut Call) -> Result<(), Refusal> {
    call.client.database = database_of(call.arguments.get(1))?;
    call.reply().ok();
    Ok(())
}

pub fn quit(call: &mut Call) -> Result<(), Refusal> {
    call.client.is_leaving = true;
    call.reply().ok();
    Ok(())
}

pub fn reset(call: &mut Call) -> Result<(), Refusal> {
    let is_trusted = call.server.settings.password.is_none();
    call.client.reset(is_trusted);
    call.server.remove_monitor(call.client.facts.id);
    call.reply().version = Version::Two;
    call.reply().status("RESET");
    Ok(())
}

pub fn client(call: &mut Call) -> Result<(), Refusal> {
    let word = call.arguments.get(1).to_ascii_uppercase();
    match (word.as_slice(), call.arguments.len()) {
        (b"ID", 2) => {
            let id = call.client.facts.id as i64;
            call.reply().integer(id);
        }
        (b"GETNAME", 2) => {
            let name = call.client.facts.name();
            call.reply().bulk_or_nil((!name.is_empty()).then_some(&name));
        }
        (b"SETNAME", 3) => {
            let name = call.argument(2);
            if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
                return Err("ERR Client names cannot contain spaces, newlines or special characters.".into());
            }
            call.client.facts.set_name(&name);
            call.reply().ok();
        }
        // Information that client libraries send about themselves.
        (b"SETINFO", 4) => call.reply().ok(),
        (b"NO-EVICT" | b"NO-TOUCH", 3) => call.reply().ok(),
        (b"LIST" | b"INFO", _) => {
            let lines = match word.as_slice() {
                b"INFO" => vec![call.client.facts.line(call.now_ms)],
                _ => call.server.clients().iter().map(|facts| facts.line(call.now_ms)).collect(),
            };
            call.reply().bulk((lines.join("\n") + "\n").as_bytes());
        }
        (b"KILL", 3..) => kill(call)?,
        _ => {
            let word = String::from_utf8_lossy(call.arguments.get(1)).into_owned();
            return Err(format!("ERR unknown subcommand '{word}'. Try CLIENT HELP."));
        }
    }
    Ok(())
}

/// CLIENT KILL addr, or CLIENT KILL ID n / ADDR addr.
fn kill(call: &mut Call) -> Result<(), Refusal> {
    let is_old = call.arguments.len() == 3;
    let (by, value) = match is_old {
        true => (b"ADDR".to_vec(), call.arguments.get(2)),
        false => (call.arguments.get(2).to_ascii_uppercase(), call.arguments.get(3)),
    };
    let value = String::from_utf8_lossy(value).into_owned();
    let is_meant: &dyn Fn(&crate::resp::client::Facts) -> bool = match by.as_slice() {
        b"ID" => &|facts| facts.id.to_string() == value,
        b"ADDR" => &|facts| facts.peer == value,
        _ => return Err(SYNTAX.into()),
    };
    let mut killed = 0;
    for facts in call.server.clients().iter().filter(|facts| is_meant(facts)) {
        killed += 1;
        if facts.id == call.client.facts.id {
            call.client.is_leaving = true;
        } else {
            facts.kill();
            call.server.send(facts.worker, Message::CloseIdle);
        }
    }
    match (is_old, killed) {
        (true, 0) => Err("ERR No such client".into()),
        (true, _) => {
            call.reply().ok();
            Ok(())
        }
        (false, _) => {
            call.reply().integer(killed);
            Ok(())
        }
    }
}
