//! Commands about the server.

use super::access::SYNTAX;
use super::ranges::flush_mode;
use super::{LIST, number_of};
use crate::command::{Call, Command, Effect, Refusal};
use crate::error::StoreError;
use crate::glob;
use kvdyno_core::engine::{Work, capability_names, level_name};

/// The version of Redis whose commands these are: clients use it to decide what they may send.
pub(super) const REDIS_VERSION: &str = "7.0.0";

/// INFO [section...]: as in Redis, unknown sections are empty.
pub(super) fn info(call: &mut Call) -> Result<(), Refusal> {
    let server = call.server;
    let effective = server.engine().database.effective();
    let usage = kvdyno_measure::Usage::now();
    let known = |bytes: Option<u64>| bytes.map_or("-".to_string(), |bytes| bytes.to_string());
    let mut engine = vec![
        ("engine".to_string(), server.settings.engine.clone()),
        ("engine_version".to_string(), effective.version.clone()),
        ("durability_in_force".to_string(), level_name(effective.level).to_string()),
        ("capabilities".to_string(), capability_names(effective.capabilities).join(",")),
    ];
    engine.extend(effective.settings.iter().map(|(name, value)| (format!("option_{name}"), value.clone())));
    let of = |name: &str, value: String| (name.to_string(), value);
    let sections = [
        (
            "Server",
            vec![
                of("redis_version", REDIS_VERSION.to_string()),
                of("kvdyno_version", env!("CARGO_PKG_VERSION").to_string()),
                of("redis_mode", "standalone".to_string()),
                of("process_id", std::process::id().to_string()),
                of("uptime_in_seconds", server.since.elapsed().as_secs().to_string()),
                of("threads", server.threads().to_string()),
            ],
        ),
        ("Engine", engine),
        (
            "Clients",
            vec![
                of("connected_clients", server.clients().len().to_string()),
                of("maxclients", server.settings.clients.to_string()),
            ],
        ),
        (
            "Memory",
            vec![
                of("used_memory_rss", known(usage.rss_bytes)),
                of("used_memory_peak", known(usage.rss_peak_bytes)),
            ],
        ),
        ("Stats", vec![of("total_commands_processed", server.commands().to_string())]),
    ];
    let asked = call.arguments.from(1);
    let is_asked = |name: &str| {
        let mut words = ["all", "default", "everything", name].into_iter();
        asked.is_empty()
            || words.any(|word| asked.iter().any(|one| one.eq_ignore_ascii_case(word.as_bytes())))
    };
    let text: Vec<String> = sections
        .iter()
        .filter(|(name, _)| is_asked(name))
        .map(|(name, lines)| {
            let lines: String = lines.iter().map(|(field, value)| format!("{field}:{value}\r\n")).collect();
            format!("# {name}\r\n{lines}")
        })
        .collect();
    call.reply().text(&text.join("\r\n"));
    Ok(())
}

/// CONFIG GET pattern...: what clients and redis-benchmark query.
pub(super) fn config_get(call: &mut Call) -> Result<(), Refusal> {
    let level = level_name(call.server.engine().database.effective().level);
    let settings = &call.server.settings;
    let values = [
        ("maxclients", settings.clients.to_string()),
        ("timeout", settings.idle_seconds.to_string()),
        ("databases", crate::record::DATABASES.to_string()),
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

/// The parameters of Redis 7.0.
const PARAMETERS: &str = "\
    acl-pubsub-default aclfile acllog-max-len active-defrag-cycle-max active-defrag-cycle-min \
    active-defrag-ignore-bytes active-defrag-max-scan-fields active-defrag-threshold-lower \
    active-defrag-threshold-upper active-expire-effort activedefrag activerehashing always-show-logo \
    aof-disable-auto-gc aof-load-truncated aof-rewrite-incremental-fsync aof-timestamp-enabled \
    aof-use-rdb-preamble aof_rewrite_cpulist appenddirname appendfilename appendfsync appendonly \
    auto-aof-rewrite-min-size auto-aof-rewrite-percentage bgsave_cpulist bind bind-source-addr bio_cpulist \
    busy-reply-threshold client-output-buffer-limit client-query-buffer-limit \
    cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down cluster-allow-replica-migration \
    cluster-announce-bus-port cluster-announce-hostname cluster-announce-ip cluster-announce-port \
    cluster-announce-tls-port cluster-config-file cluster-enabled cluster-link-sendbuf-limit \
    cluster-migration-barrier cluster-node-timeout cluster-port cluster-preferred-endpoint-type \
    cluster-replica-no-failover cluster-replica-validity-factor cluster-require-full-coverage \
    cluster-slave-no-failover cluster-slave-validity-factor crash-log-enabled crash-memcheck-enabled daemonize \
    databases dbfilename dir disable-thp dynamic-hz enable-debug-command enable-module-command \
    enable-protected-configs hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries \
    hash-max-ziplist-value hll-sparse-max-bytes hz ignore-warnings io-threads io-threads-do-reads \
    jemalloc-bg-thread latency-monitor-threshold latency-tracking latency-tracking-info-percentiles \
    lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del \
    lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor list-compress-depth list-max-listpack-size \
    list-max-ziplist-size logfile loglevel lua-time-limit masterauth masteruser maxclients maxmemory \
    maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy maxmemory-samples min-replicas-max-lag \
    min-replicas-to-write min-slaves-max-lag min-slaves-to-write no-appendfsync-on-rewrite \
    notify-keyspace-events oom-score-adj oom-score-adj-values pidfile port proc-title-template \
    propagation-error-behavior protected-mode proto-max-bulk-len rdb-del-sync-files rdb-save-incremental-fsync \
    rdbchecksum rdbcompression repl-backlog-size repl-backlog-ttl repl-disable-tcp-nodelay repl-diskless-load \
    repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas repl-ping-replica-period \
    repl-ping-slave-period repl-timeout replica-announce-ip replica-announce-port replica-announced \
    replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority \
    replica-read-only replica-serve-stale-data replicaof requirepass sanitize-dump-payload save server_cpulist \
    set-max-intset-entries set-proc-title shutdown-on-sigint shutdown-on-sigterm shutdown-timeout \
    slave-announce-ip slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority \
    slave-read-only slave-serve-stale-data slaveof slowlog-log-slower-than slowlog-max-len socket-mark-id \
    stop-writes-on-bgsave-error stream-node-max-bytes stream-node-max-entries supervised syslog-enabled \
    syslog-facility syslog-ident tcp-backlog tcp-keepalive timeout tls-auth-clients tls-ca-cert-dir \
    tls-ca-cert-file tls-cert-file tls-ciphers tls-ciphersuites tls-client-cert-file tls-client-key-file \
    tls-client-key-file-pass tls-cluster tls-dh-params-file tls-key-file tls-key-file-pass tls-port \
    tls-prefer-server-ciphers tls-protocols tls-replication tls-session-cache-size tls-session-cache-timeout \
    tls-session-caching tracking-table-max-keys unixsocket unixsocketperm zset-max-listpack-entries \
    zset-max-listpack-value zset-max-ziplist-entries zset-max-ziplist-value";

/// CONFIG SET parameter value...: changes nothing, because options are set when the server starts. The parameters of
/// Redis are accepted, for the sake of test suites, and others refused.
pub(super) fn config_set(call: &mut Call) -> Result<(), Refusal> {
    let words = call.arguments.from(2);
    if !words.len().is_multiple_of(2) {
        return Err(SYNTAX.into());
    }
    let names: Vec<Vec<u8>> = words.iter().step_by(2).map(<[u8]>::to_ascii_lowercase).collect();
    for (place, name) in names.iter().enumerate() {
        let text = || String::from_utf8_lossy(words.get(2 * place)).into_owned();
        if !PARAMETERS.split_ascii_whitespace().any(|known| known.as_bytes() == name) {
            return Err(
                format!("ERR Unknown option or number of arguments for CONFIG SET - '{}'", text()).into()
            );
        }
        if names[..place].contains(name) {
            return Err(format!(
                "ERR CONFIG SET failed (possibly related to argument '{}') - duplicate parameter",
                text()
            )
            .into());
        }
    }
    call.reply().ok();
    Ok(())
}

pub(super) fn config_resetstat(call: &mut Call) -> Result<(), Refusal> {
    drop(call.server.take_counts());
    call.reply().ok();
    Ok(())
}

/// FUNCTION FLUSH [SYNC | ASYNC]: there are no functions.
pub(super) fn function_flush(call: &mut Call) -> Result<(), Refusal> {
    if call.arguments.len() > 3 {
        let word = String::from_utf8_lossy(call.arguments.get(1)).into_owned();
        return Err(format!(
            "ERR unknown subcommand or wrong number of arguments for '{word}'. Try FUNCTION HELP."
        )
        .into());
    }
    flush_mode(call, 2).map_err(|_| "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    call.reply().ok();
    Ok(())
}

/// The rows of commands themselves, without their subcommands.
fn commands() -> impl Iterator<Item = &'static Command> {
    LIST.iter().filter(|command| !command.name.contains('|'))
}

pub(super) fn command(call: &mut Call) -> Result<(), Refusal> {
    call.reply().array(commands().count());
    commands().for_each(|command| describe(call, Some(command)));
    Ok(())
}

pub(super) fn command_count(call: &mut Call) -> Result<(), Refusal> {
    call.reply().count(commands().count());
    Ok(())
}

/// COMMAND LIST [FILTERBY PATTERN pattern | MODULE name | ACLCAT category]: there are no modules and categories.
pub(super) fn command_list(call: &mut Call) -> Result<(), Refusal> {
    let mut names: Vec<String> = commands().map(|command| command.name.to_ascii_lowercase()).collect();
    let words = call.arguments.from(2);
    match (words.len(), words.get(0).to_ascii_uppercase().as_slice()) {
        (0, _) => {}
        (3, b"FILTERBY") => match words.get(1).to_ascii_uppercase().as_slice() {
            b"PATTERN" => {
                let pattern = words.get(2).to_ascii_lowercase();
                names.retain(|name| glob::matches(&pattern, name.as_bytes()));
            }
            b"MODULE" | b"ACLCAT" => names.clear(),
            _ => return Err(SYNTAX.into()),
        },
        _ => return Err(SYNTAX.into()),
    }
    call.reply().array(names.len());
    names.iter().for_each(|name| call.reply().bulk(name.as_bytes()));
    Ok(())
}

/// COMMAND INFO [name...].
pub(super) fn command_info(call: &mut Call) -> Result<(), Refusal> {
    let names = call.arguments.from(2);
    if names.is_empty() {
        return command(call);
    }
    call.reply().array(names.len());
    names.iter().for_each(|name| describe(call, number_of(name).map(|number| &LIST[number])));
    Ok(())
}

/// COMMAND DOCS returns nothing, as older servers do.
pub(super) fn command_docs(call: &mut Call) -> Result<(), Refusal> {
    call.reply().map(0);
    Ok(())
}

/// The subcommands of a command.
pub(super) fn help(call: &mut Call) -> Result<(), Refusal> {
    let name = String::from_utf8_lossy(call.arguments.get(0)).to_ascii_uppercase();
    let subcommands = LIST.iter().filter_map(|command| command.name.strip_prefix(&name)?.strip_prefix('|'));
    let lines: Vec<&str> = subcommands.collect();
    call.reply().array(lines.len() + 1);
    call.reply().status(&format!("{name} <subcommand> [<arg> ...]. Subcommands are:"));
    lines.iter().for_each(|line| call.reply().status(line));
    Ok(())
}

fn describe(call: &mut Call, command: Option<&Command>) {
    let reply = call.reply();
    let Some(command) = command else { return reply.nil_array() };
    reply.array(6);
    reply.bulk(command.name.to_ascii_lowercase().as_bytes());
    reply.integer(i64::from(command.arity));
    reply.set(1);
    reply.status(if command.effect == Effect::Writes { "write" } else { "readonly" });
    let (first, last, step) = command.keys;
    [first, last, step].iter().for_each(|&place| reply.integer(i64::from(place)));
}

pub(super) fn time(call: &mut Call) -> Result<(), Refusal> {
    let now_ms = call.now_ms;
    let reply = call.reply();
    reply.array(2);
    reply.bulk((now_ms / 1000).to_string().as_bytes());
    reply.bulk((now_ms % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

pub(super) fn monitor(call: &mut Call) -> Result<(), Refusal> {
    if call.is_queued {
        return Err("ERR MONITOR isn't allowed for DENY BLOCKING client".into());
    }
    call.client.is_monitor = true;
    call.server.add_monitor(&call.client.facts);
    call.reply().ok();
    Ok(())
}

/// Flushes all acknowledged writes. Those of a transaction are acknowledged at its end, by one commit.
fn flush(call: &mut Call) -> Result<(), Refusal> {
    if !call.is_queued {
        call.store.commit();
    }
    let flushed = call.server.engine().database.maintain(Work::Flush);
    Ok(flushed.map(drop).map_err(StoreError::from)?)
}

pub(super) fn save(call: &mut Call) -> Result<(), Refusal> {
    flush(call)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn bgsave(call: &mut Call) -> Result<(), Refusal> {
    let words = call.arguments.from(1);
    if words.len() > 1 || !words.iter().all(|word| word.eq_ignore_ascii_case(b"SCHEDULE")) {
        return Err(SYNTAX.into());
    }
    flush(call)?;
    let word = if call.is_queued { "scheduled" } else { "started" };
    call.reply().status(&format!("Background saving {word}"));
    Ok(())
}

/// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]: acknowledged writes are always flushed, and nothing can be aborted.
pub(super) fn shutdown(call: &mut Call) -> Result<(), Refusal> {
    let words: Vec<Vec<u8>> = call.arguments.from(1).iter().map(<[u8]>::to_ascii_uppercase).collect();
    let known: [&[u8]; 5] = [b"NOSAVE", b"SAVE", b"NOW", b"FORCE", b"ABORT"];
    let [no_save, save, now, force, abort] = known.map(|name| words.iter().any(|word| word == name));
    let is_known = words.iter().all(|word| known.contains(&word.as_slice()));
    if !is_known || (no_save && save) || (abort && (no_save || save || now || force)) {
        return Err(SYNTAX.into());
    }
    if abort {
        return Err("ERR No shutdown in progress.".into());
    }
    call.client.is_leaving = true;
    call.store.commit();
    call.server.stop();
    Ok(())
}
