//! The drivers of Redis and of every server that speaks its protocol: a single server, and a cluster.

#![allow(unsafe_code, reason = "the symbol of the plug-in")]

mod address;
mod cluster;
mod cluster_nodes;
mod cluster_session;
mod facts;
mod members;
mod options;
mod ownership;
mod replicas;
mod server;
mod session;
mod slots;
mod state;
mod tls;
mod wire;
/// The words by which the core knows what was short: the line of a server's log that has them is the one to pass on.
#[path = "../../crates/measure/src/shortage/words.rs"]
mod words;

use address::Address;
use facts::Facts;
use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, Opened, Status, Work};
use options::{OPTIONS, password_in, user_address};
use server::{Server, Wanted};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::Wire;

pub use cluster::RedisCluster;
pub use cluster_session::ClusterSession;
pub use session::RedisSession;

const WRITES: u64 =
    KV_CAN_DELETE | KV_DELETE_TELLS | KV_OVERWRITE | KV_CAN_NEW | KV_MERGE_APPEND | KV_TIME_TO_LIVE;

/// A connection to a server of the user or to one that the driver started.
pub struct Redis {
    address: Address,
    files: tls::Files,
    server: Option<Server>,
    /// For everything that is not an op.
    control: Mutex<Wire>,
    level: Level,
    is_marked: bool,
    has_multi_get: bool,
    value_size_max: usize,
}

impl Driver for Redis {
    const INFO: Info = Info {
        name: c"redis",
        engine: c"a server of the Redis protocol, over a socket",
        language: c"C",
        family: c"server",
        capabilities: WRITES | KV_MULTI_GET | KV_TRANSACTION | KV_LISTS | KV_CAN_TOUCH,
        levels: &[Level::None, Level::Process, Level::Power],
        key_size_max: 0,
        options: &OPTIONS,
    };
    type Session<'db> = RedisSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Redis, Error> {
        let level = config.pick(Redis::INFO.levels, Level::None)?;
        let files = tls::Files {
            authority: config.setting("ca-file")?.into(),
            certificate: config.setting("cert-file")?.into(),
            key: config.setting("key-file")?.into(),
        };
        let as_shipped = config.asks_default();
        config.choice("database", &ownership::WISHES)?;
        let url = config.setting("url")?;
        let program = config.setting("server")?;
        let password = password_in(config.setting("password-file")?)?;
        let (server, address) = if url.is_empty() {
            let password = password.as_deref();
            let (folder, engine) = (config.path(), config.setting("serve")?);
            let server =
                Wanted { program, engine, folder, level, as_shipped, password, node: None, member: None }
                    .start()?;
            let address = server.address.clone();
            (Some(server), address)
        } else {
            (None, user_address(url, password)?)
        };
        let mut wire = Wire::connect(&address, &files)?;
        if let Some(server) = &server {
            server.keep_log(&mut wire, level)?;
        }
        let facts = Facts::ask(&mut wire)?;
        if let Some(why) = facts.refusal() {
            return Err(Error::new(format!("{address}: {why}")));
        }
        let level = facts.level_for(if as_shipped { Level::None } else { level })?;
        let is_marked = server.is_none() && ownership::take(&mut wire, config, &address)?;
        for (name, capability) in [("LLEN", KV_LISTS), ("MULTI", KV_TRANSACTION)] {
            if !ownership::takes(&mut wire, name)? {
                opened.without(capability);
            }
        }
        if server.is_some() && facts.is_in_memory() {
            opened.with(KV_IN_MEMORY);
        }
        opened.level(level);
        opened.version(&facts.version());
        opened.compression("none");
        opened.setting("class", facts.class(address.is_local()));
        opened.setting("replication", facts.copies());
        opened.setting("servers", facts.copies());
        opened.setting("consistency", "linearizable");
        opened.setting("persistence", facts.persistence());
        opened.setting("usage", if server.is_some() { "whole" } else { "client" });
        opened.setting("url", if server.is_some() { "none".to_string() } else { address.to_string() });
        opened.setting("server", if server.is_some() { program } else { "none" });
        opened.setting(
            "password-file",
            if config.setting("password-file")?.is_empty() { "none" } else { "given" },
        );
        for name in ["serve", "database", "multi-get", "ca-file", "cert-file", "key-file"] {
            opened
                .setting(name, Some(config.setting(name)?).filter(|text| !text.is_empty()).unwrap_or("none"));
        }
        facts.settings().iter().for_each(|(name, value)| opened.setting(name, value));
        let has_multi_get = config.choice("multi-get", &["mget", "pipeline"])? == "mget";
        let value_size_max = config.value_size_max();
        let control = Mutex::new(wire);
        Ok(Redis { address, files, server, control, level, is_marked, has_multi_get, value_size_max })
    }

    fn session(&self) -> Result<RedisSession<'_>, Error> {
        let wire = Wire::connect(&self.address, &self.files).map_err(|error| self.explained(error))?;
        Ok(RedisSession { driver: self, wire })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        let done = match (work, &self.server) {
            (Work::Flush, Some(server)) => server.flush(&mut self.control(), self.level),
            (Work::Settle, _) => self.settle(),
            _ => Ok(Status::Unsupported),
        };
        done.map_err(|error| self.explained(error))
    }

    fn stats(&self, out: &mut String) {
        self.tell(out);
    }

    fn close(mut self) -> Result<(), Error> {
        if self.is_marked {
            ownership::leave(&mut self.control())?;
        }
        let server = self.server.take();
        let saves = self.level == Level::None;
        server.map_or(Ok(()), |server| server.stop(&mut self.control(), saves))
    }
}

impl Redis {
    fn control(&self) -> MutexGuard<'_, Wire> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

kvdyno_driver::export_drivers!(Redis, RedisCluster);

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod tests;
