//! Commands about the server.

use super::LIST;
use crate::engine::{Work, capability_names, level_name};
use crate::resp::command::{Call, Command, Effect, Refusal, find};
use crate::resp::glob;

/// The version of Redis whose commands these are: clients use it to decide what they may send.
pub const REDIS_VERSION: &str = "7.0.0";

pub fn info(call: &mut Call) -> Result<(), Refusal> {
    let server = call.server;
    let in_force = server.engine().database.in_force();
    let usage = crate::measure::Usage::now();
    let known = |bytes: Option<u64>| bytes.map_or("-".to_string(), |bytes| bytes.to_string());
    let since = server.since.elapsed().as_secs();
    let mut text = format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nkvdyno_version:{}\r\nredis_mode:standalone\r\n\
         process_id:{}\r\nuptime_in_seconds:{since}\r\nthreads:{}\r\n\r\n\
         # Engine\r\nengine:{}\r\nengine_version:{}\r\ndurability_in_force:{}\r\ncapabilities:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        server.threads(),
        server.settings.engine,
        in_force.version,
        level_name(in_force.level),
        capability_names(in_force.capabilities).join(","),
    );
    for (name, value) in &in_force.settings {
        text += &format!("option_{name}:{value}\r\n");
    }
    text += &format!(
        "\r\n# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n# Memory\r\nused_memory_rss:{}\r\n\
         used_memory_peak:{}\r\n\r\n# Stats\r\ntotal_commands_processed:{}\r\n",
        server.clients().len(),
        server.settings.clients,
        known(usage.rss_bytes),
        known(usage.rss_peak_bytes),
        server.commands(),
    );
    call.reply().bulk(text.as_bytes());
    Ok(())
}

/// CONFIG GET: what clients and redis-benchmark query. CONFIG SET is not supported: options are set at start.
pub fn config(call: &mut Call) -> Result<(), Refusal> {
    let word = call.arguments.get(1).to_ascii_uppercase();
    match (word.as_slice(), call.arguments.len()) {
        (b"GET", 3..) => {}
        (b"RESETSTAT", 2) => {
            drop(call.server.take_counts());
            call.reply().ok();
            return Ok(());
        }
        (b"GET", _) => return Err("ERR wrong number of arguments for 'config|get' command".into()),
        (b"SET", _) => {
            return Err("ERR CONFIG SET is not supported; set options when you start the server".into());
        }
        _ => {
            let word = String::from_utf8_lossy(call.arguments.get(1)).into_owned();
            return Err(format!("ERR unknown subcommand '{word}'. Try CONFIG HELP."));
        }
    }
    let level = level_name(call.server.engine().database.in_force().level);
    let settings = &call.server.settings;
    let values = [
        ("maxclients", settings.clients.to_string()),
        ("timeout", settings.idle_seconds.to_string()),
        ("databases", crate::resp::record::DATABASES.to_string()),
        ("proto-max-bulk-len", settings.limits.bulk_bytes.to_string()),
        ("client-query-buffer-limit", settings.query_bytes.to_string()),
        ("io-threads", call.server.threads().to_string()),
        // The closest Redis settings: what acknowledged writes survive.
        ("appendonly", if level == "none" { "no" } else { "yes" }.to_string()),
        ("appendfsync", if level == "power" { "always" } else { "no" }.to_string()),
        ("save", String::new()),
        ("durability", level.to_string()),
    ];
    let patterns = call.arguments.from(2);
    let is_asked = |name: &str| {
        patterns.iter().any(|pattern| glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes()))
    };
    let found: Vec<_> = values.iter().filter(|(name, _)| is_asked(name)).collect();
    let reply = call.reply();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// COMMAND, COMMAND COUNT, COMMAND LIST, COMMAND INFO name...; COMMAND DOCS returns nothing, as older servers do.
pub fn command(call: &mut Call) -> Result<(), Refusal> {
    let word = call.arguments.get(1).to_ascii_uppercase();
    match word.as_slice() {
        b"" => {
            call.reply().array(LIST.len());
            LIST.iter().for_each(|command| describe(call, Some(command)));
        }
        b"COUNT" => call.reply().count(LIST.len()),
        b"LIST" => {
            call.reply().array(LIST.len());
            LIST.iter().for_each(|command| call.reply().bulk(command.name.to_ascii_lowercase().as_bytes()));
        }
        b"INFO" => {
            let names = call.arguments.from(2);
            call.reply().array(names.len());
            names.iter().for_each(|name| describe(call, find(name)));
        }
        b"DOCS" => call.reply().map(0),
        _ => return Err("ERR unknown subcommand. Try COMMAND COUNT, LIST, INFO or DOCS.".into()),
    }
    Ok(())
}

fn describe(call: &mut Call, command: Option<&Command>) {
    let reply = call.reply();
    let Some(command) = command else { return reply.nil_array() };
    reply.array(6);
    reply.bulk(command.name.to_ascii_lowercase().as_bytes());
    reply.integer(i64::from(command.arity));
    reply.array(1);
    reply.status(if command.effect == Effect::Writes { "write" } else { "readonly" });
    let (first, last, step) = command.keys;
    [first, last, step].iter().for_each(|&place| reply.integer(i64::from(place)));
}

pub fn time(call: &mut Call) -> Result<(), Refusal> {
    let now_ms = call.now_ms;
    let reply = call.reply();
    reply.array(2);
    reply.bulk((now_ms / 1000).to_string().as_bytes());
    reply.bulk((now_ms % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

pub fn monitor(call: &mut Call) -> Result<(), Refusal> {
    call.client.is_monitor = true;
    call.server.add_monitor(&call.client.facts);
    call.reply().ok();
    Ok(())
}

/// Flushes all acknowledged writes.
fn flush(call: &mut Call) -> Result<(), Refusal> {
    call.store.commit();
    let flushed = call.server.engine().database.maintain(Work::Flush);
    flushed.map(drop).map_err(|error| format!("ERR engine: {error}"))
}

pub fn save(call: &mut Call) -> Result<(), Refusal> {
    flush(call)?;
    call.reply().ok();
    Ok(())
}

pub fn bgsave(call: &mut Call) -> Result<(), Refusal> {
    flush(call)?;
    call.reply().status("Background saving started");
    Ok(())
}

pub fn shutdown(call: &mut Call) -> Result<(), Refusal> {
    call.client.is_leaving = true;
    call.store.commit();
    call.server.stop();
    Ok(())
}
