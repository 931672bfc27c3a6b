//! The driver of a Redis Cluster: keys are in 16,384 slots, which masters share, and each master has replicas.

use super::address::Address;
use super::cluster_nodes::{Node, Nodes};
use super::cluster_session::ClusterSession;
use super::facts::Facts;
use super::options::{CLUSTER_OPTIONS, password_in, user_address};
use super::slots::Slots;
use super::wire::{Reply, Wire};
use super::{WRITES, ownership, tls};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, Opened, Status, Work};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A cluster of the user or one that the driver started.
pub struct RedisCluster {
    pub(super) address: Address,
    pub(super) files: tls::Files,
    /// Where the slots were when it was opened; sessions follow them when they move.
    pub(super) slots: Slots,
    nodes: Option<Nodes>,
    /// A connection to each master, for everything that is not an op.
    control: Mutex<Vec<Wire>>,
    level: Level,
    is_marked: bool,
    /// Gets ask replicas, unless they are strong.
    pub(super) reads_replicas: bool,
}

impl Driver for RedisCluster {
    const INFO: Info = Info {
        name: c"redis-cluster",
        engine: c"a Redis Cluster: masters with replicas, over sockets",
        language: c"C",
        family: c"server",
        capabilities: WRITES | KV_MULTI_GET | KV_CAN_TOUCH,
        levels: &[Level::None, Level::Process, Level::Power],
        key_size_max: 0,
        options: &CLUSTER_OPTIONS,
    };
    type Session<'db> = ClusterSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<RedisCluster, Error> {
        let level = config.pick(RedisCluster::INFO.levels, Level::None)?;
        let files = tls::Files {
            authority: config.setting("ca-file")?.into(),
            certificate: config.setting("cert-file")?.into(),
            key: config.setting("key-file")?.into(),
        };
        config.choice("database", &ownership::WISHES)?;
        let reads_replicas = config.choice("reads", &["masters", "replicas"])? == "replicas";
        let url = config.setting("url")?;
        let password = password_in(config.setting("password-file")?)?;
        let (masters, replicas) = (config.number("masters")?, config.number("replicas")?);
        let (nodes, address) = if url.is_empty() {
            let nodes = Nodes::start(config, level, password.as_deref())?;
            let address = nodes.first().address.clone();
            invite(config, &address)?;
            (Some(nodes), address)
        } else {
            (None, user_address(url, password)?)
        };
        let mut first = Wire::connect(&address, &files)?;
        let facts = Facts::ask(&mut first)?;
        if facts.info("cluster_enabled") != Some("1") {
            let why = "it is not a node of a cluster; use the engine redis";
            return Err(Error::new(format!("{address}: {why}")));
        }
        let slots = Slots::ask(&mut first, &address)?;
        let mut control = Vec::new();
        let (mut copies, mut servers) = (u64::MAX, 0);
        for master in &slots.masters {
            let mut wire = Wire::connect(master, &files)?;
            let connected: Option<u64> =
                Facts::ask(&mut wire)?.info("connected_slaves").and_then(|count| count.parse().ok());
            copies = copies.min(1 + connected.unwrap_or(0));
            servers += 1 + connected.unwrap_or(0);
            control.push(wire);
        }
        let level = facts.level_for(if config.asks_default() { Level::None } else { level })?;
        let is_marked = nodes.is_none() && ownership::take_all(&mut control, &slots, config, &address)?;
        let is_local = slots.masters.iter().all(Address::is_local);
        let kind = if copies > 1 { "distributed" } else { "server" };
        let place = if is_local { "one machine" } else { "over a network" };
        opened.level(level);
        opened.version(&facts.version());
        opened.compression("none");
        opened.setting("class", format!("{kind}, {place}"));
        opened.setting("replication", copies);
        opened.setting("servers", servers);
        if reads_replicas {
            opened.setting("consistency", "reads of replicas, which may lag; a failover may lose writes");
            opened.setting("stale_reads", "possible");
        } else {
            opened.setting("consistency", "linearizable until a failover, which may lose writes");
        }
        opened.setting("reads", config.setting("reads")?);
        opened.setting("persistence", facts.persistence());
        opened.setting("usage", if nodes.is_some() { "whole" } else { "client" });
        opened.setting("url", if nodes.is_some() { "none".to_string() } else { address.to_string() });
        let given =
            |name: &str| config.setting(name).map(|text| if text.is_empty() { "none" } else { "given" });
        opened.setting("password-file", given("password-file")?);
        for name in ["server", "database", "ca-file", "cert-file", "key-file"] {
            opened
                .setting(name, Some(config.setting(name)?).filter(|text| !text.is_empty()).unwrap_or("none"));
        }
        opened.setting("masters", if nodes.is_some() { masters } else { slots.masters.len() as u64 });
        opened.setting("replicas", if nodes.is_some() { replicas } else { copies - 1 });
        opened.setting("node-timeout", config.number("node-timeout")?);
        facts.settings().iter().for_each(|(name, value)| opened.setting(name, value));
        let control = Mutex::new(control);
        Ok(RedisCluster { address, files, slots, nodes, control, level, is_marked, reads_replicas })
    }

    fn session(&self) -> Result<ClusterSession<'_>, Error> {
        ClusterSession::new(self).map_err(|error| self.explained(error))
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match (work, &self.nodes) {
            (Work::Flush, Some(nodes)) => nodes.flush(self.level),
            _ => Ok(Status::Unsupported),
        }
    }

    fn stats(&self, out: &mut String) {
        let mut keys = 0;
        for (master, wire) in self.slots.masters.iter().zip(self.control().iter_mut()) {
            if let Ok(Reply::Integer(count)) = wire.ask(&[b"DBSIZE"]) {
                *out += &format!("keys_{}={count}\n", master.host_and_port());
                keys += count;
            }
        }
        *out += &format!("keys={keys}\n");
    }

    fn close(mut self) -> Result<(), Error> {
        if self.is_marked {
            ownership::leave_all(&mut self.control(), &self.slots)?;
        }
        let saves = self.level == Level::None;
        self.nodes.take().map_or(Ok(()), |nodes| nodes.stop(saves))
    }
}

/// Writes by which options other load generators of this machine open the cluster. It has the password, as the nodes'
/// configurations in the same folder have.
fn invite(config: &Config<'_>, address: &Address) -> Result<(), Error> {
    let (host, port) = address.host_port();
    // One that the user gave is in a file that the others read too.
    let is_given = !config.setting("password-file")?.is_empty();
    let login =
        address.password.as_ref().filter(|_| !is_given).map_or_else(String::new, |own| format!(":{own}@"));
    let text = format!("url=redis://{login}{host}:{port}\ndatabase=keep\n");
    let mut file = OpenOptions::new();
    file.write(true).create(true).truncate(true).mode(0o600);
    file.open(config.path().join("join"))?.write_all(text.as_bytes())?;
    Ok(())
}

impl RedisCluster {
    fn control(&self) -> MutexGuard<'_, Vec<Wire>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error, with the exit of a node if we started it and it has ended.
    pub(super) fn explained(&self, error: Error) -> Error {
        let Some(nodes) = self.nodes.as_ref().filter(|_| error.text.contains("connect")) else {
            return error;
        };
        match nodes.all().find(|node| node.server.end_of().is_some()) {
            Some(Node { server, .. }) => {
                Error::with(error.status, format!("{}: {}", error.text, server.failed("has ended").text))
            }
            None => error,
        }
    }
}
