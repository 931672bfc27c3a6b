//! What a server reports about itself: INFO and CONFIG GET, and the durability level that follows.

use super::wire::Wire;
use kvdyno_driver::{Error, Level, Status};

/// Fields of INFO that show that a server is not Redis itself, and which server it is.
const OTHERS: [(&str, &str); 4] = [
    ("kvdyno_version", "kvdyno"),
    ("valkey_version", "Valkey"),
    ("dragonfly_version", "Dragonfly"),
    ("kvrocks_version", "Kvrocks"),
];
/// The settings that decide what the server keeps.
const SETTINGS: [&str; 6] =
    ["appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy", "durability"];

/// What a server reports about itself.
#[derive(Debug, Default)]
pub(super) struct Facts {
    info: Vec<(String, String)>,
    config: Vec<(String, String)>,
    /// Whether CONFIG GET is allowed.
    pub may_ask: bool,
}

fn found<'f>(pairs: &'f [(String, String)], name: &str) -> Option<&'f str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The lines of an INFO.
pub(super) fn info(wire: &mut Wire) -> Result<Vec<(String, String)>, Error> {
    let text = wire.texts(&[b"INFO"])?.pop().unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    Ok(pairs.map(|(name, value)| (name.to_string(), value.trim_end().to_string())).collect())
}

impl Facts {
    /// Queries the server. CONFIG may be forbidden, INFO may not.
    pub fn ask(wire: &mut Wire) -> Result<Facts, Error> {
        let mut facts = Facts { info: info(wire)?, ..Facts::default() };
        for name in SETTINGS {
            // One pattern at a time, because older servers accept only one.
            if let Ok(pair) = wire.texts(&[b"CONFIG", b"GET", name.as_bytes()]) {
                facts.may_ask = true;
                if let [name, value] = &pair[..] {
                    facts.config.push((name.clone(), value.clone()));
                }
            }
        }
        Ok(facts)
    }

    /// A field of INFO.
    pub fn info(&self, name: &str) -> Option<&str> {
        found(&self.info, name)
    }

    /// The server's name and version; for Redis the version alone.
    pub fn version(&self) -> String {
        for (line, name) in OTHERS {
            if let Some(version) = self.info(line) {
                let engine = self.info("engine").zip(self.info("engine_version"));
                let engine =
                    engine.map_or_else(String::new, |(name, version)| format!(" ({name} {version})"));
                return format!("{name} {version}{engine}");
            }
        }
        let is_keydb = self.info("executable").is_some_and(|path| path.contains("keydb"));
        let version = self.info("redis_version").unwrap_or("unknown");
        if is_keydb { format!("KeyDB {version}") } else { version.to_string() }
    }

    /// What an acknowledged write survives; `None`: unknown. Redis with `everysec` guarantees nothing for a kill: while
    /// a sync runs, its write to the file waits up to two seconds, and the reply does not wait.
    pub fn level(&self) -> Option<Level> {
        let config = |name: &str| found(&self.config, name);
        match (config("durability"), config("appendonly")?, config("appendfsync")?) {
            (Some("power"), ..) => Some(Level::Power),
            (Some("process"), ..) => Some(Level::Process),
            (Some("none"), ..) | (_, "no", _) | (_, "yes", "everysec") => Some(Level::None),
            (_, "yes", "always") => Some(Level::Power),
            (_, "yes", "no") => Some(Level::Process),
            _ => None,
        }
    }

    /// That level, if it is the requested one or stronger.
    pub fn level_for(&self, asked: Level) -> Result<Level, Error> {
        let level = self.level().unwrap_or(Level::None);
        if level >= asked {
            return Ok(level);
        }
        let why = match (self.level(), self.may_ask) {
            (Some(_), _) => format!(
                "the server has appendonly {} and appendfsync {}",
                found(&self.config, "appendonly").unwrap_or("-"),
                found(&self.config, "appendfsync").unwrap_or("-"),
            ),
            (None, true) => "the server does not report what a write survives".to_string(),
            (None, false) => {
                "the server does not allow this user to query what a write survives (CONFIG GET)".to_string()
            }
        };
        Err(Error::with(
            Status::Unsupported,
            format!(
                "cannot reach the requested durability level: {why}; change the server's settings, or use --durability none"
            ),
        ))
    }

    /// For a server that the driver started: whether its engine keeps nothing after it ends.
    pub fn is_in_memory(&self) -> bool {
        self.info("capabilities").is_some_and(|names| names.split(',').any(|name| name == "in-memory"))
    }

    /// Why it cannot be used as an engine; `None`: it can.
    pub fn refusal(&self) -> Option<&'static str> {
        if self.info("cluster_enabled") == Some("1") {
            return Some("it is a cluster node; use the engine redis-cluster");
        }
        matches!(self.info("role"), Some("slave" | "replica"))
            .then_some("it is a replica, which accepts no writes")
    }

    /// The copies of a row: the server's and those of its replicas.
    pub fn copies(&self) -> u64 {
        1 + self.info("connected_slaves").and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// The class that reports show: one copy or several, on this machine or on others.
    pub fn class(&self, is_local: bool) -> &'static str {
        match (self.copies(), is_local) {
            (1, true) => "server, one machine",
            (1, false) => "server, over a network",
            (_, true) => "distributed, one machine",
            (_, false) => "distributed, over a network",
        }
    }

    /// What has happened to a write when it is acknowledged.
    pub fn persistence(&self) -> &'static str {
        match self.level() {
            None => "unknown",
            Some(Level::None) => "none before the reply",
            Some(Level::Process) => "the log is written before the reply, not synced",
            Some(_) => "the log is synced before the reply",
        }
    }

    /// Persistence, memory and replication, for the record; `-` for what the server does not report.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        for name in SETTINGS.into_iter().filter(|name| *name != "durability") {
            let value = found(&self.config, name).unwrap_or("-");
            all.push((name, if value.is_empty() { "\"\"".into() } else { value.to_string() }));
        }
        for name in ["role", "connected_slaves", "redis_mode"] {
            all.push((name, self.info(name).unwrap_or("-").to_string()));
        }
        all
    }
}
