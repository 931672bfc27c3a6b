//! The driver of a Redis Cluster: keys are in 16,384 slots, which masters share, and each master has replicas.

use super::address::Address;
use super::cluster_nodes::{Nodes, Wish};
use super::cluster_session::ClusterSession;
use super::facts::Facts;
use super::members::Members;
use super::options::{CLUSTER_OPTIONS, LIMIT, password_in, timeout, user_address};
use super::replicas::until_known;
use super::slots::Slots;
use super::wire::{Reply, Wire};
use super::{WRITES, ownership, tls};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, Opened, Status, Work};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// In a workload with faults, how long a session waits for connections, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// A cluster of the user or one that the driver started.
pub struct RedisCluster {
    pub(super) address: Address,
    pub(super) files: tls::Files,
    /// Where the slots were when it was opened; sessions follow them when they move.
    pub(super) slots: Slots,
    /// The longest time that an op may take; in a workload with faults, in phases with faults.
    pub(super) timeout: Duration,
    pub(super) nodes: Option<Arc<Nodes>>,
    /// Of a workload with faults.
    pub(super) members: Option<Members>,
    pub(super) level: Level,
    pub(super) is_marked: bool,
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
        let timeout = timeout(config.setting("timeout")?)?;
        let within = |name: &str, least: u64, most: u64| {
            let number = config.number(name)?;
            let wrong = || Error::new(format!("option {name}: expected {least} to {most}, got {number}"));
            if (least..=most).contains(&number) { Ok(number as usize) } else { Err(wrong()) }
        };
        let (masters, replicas) = (within("masters", 1, 16)?, within("replicas", 0, 4)?);
        let node_timeout_ms = within("node-timeout", 100, 60_000)?;
        let (nodes, address) = if url.is_empty() {
            let nodes = Arc::new(Nodes::start(&Wish {
                program: config.setting("server")?,
                folder: config.path(),
                is_new: config.create(),
                level,
                as_shipped: config.asks_default(),
                password: password.as_deref(),
                masters,
                replicas,
                node_timeout_ms,
            })?);
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
            if reads_replicas {
                until_known(&mut wire, master, connected.unwrap_or(0))?;
            }
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
        if reads_replicas && copies < 2 {
            return Err(Error::new("option reads: a master has no replica to read from"));
        }
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
        opened.setting("masters", if nodes.is_some() { masters } else { slots.masters.len() });
        opened.setting("replicas", if nodes.is_some() { replicas as u64 } else { copies - 1 });
        opened.setting("node-timeout", node_timeout_ms);
        facts.settings().iter().for_each(|(name, value)| opened.setting(name, value));
        let members = nodes.as_ref().map(Members::announce).transpose()?.flatten();
        let made =
            RedisCluster { address, files, slots, timeout, nodes, members, level, is_marked, reads_replicas };
        let (short, usual) = (timeout.as_secs_f64(), made.limit().as_secs_f64());
        match short < usual {
            true => opened.setting("timeout", format!("{usual}, in phases with faults {short}")),
            false => opened.setting("timeout", usual),
        }
        Ok(made)
    }

    fn session(&self) -> Result<ClusterSession<'_>, Error> {
        let (Some(nodes), Some(_)) = (&self.nodes, &self.members) else {
            return ClusterSession::new(self).map_err(|error| self.explained(error));
        };
        // Sessions are opened when no fault lasts, but a node that was started again may not serve yet, and the time of an op is
        // short.
        nodes.until_served()?;
        let begun = Instant::now();
        loop {
            match ClusterSession::new(self) {
                Err(_) if begun.elapsed() < PATIENCE => sleep(PAUSE),
                made => return made,
            }
        }
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match (work, &self.nodes) {
            (Work::Flush, Some(nodes)) => nodes.flush(self.level),
            _ => Ok(Status::Unsupported),
        }
    }

    fn stats(&self, out: &mut String) {
        // Masters that do not answer are skipped: that may be planned.
        let Ok((slots, mut wires)) = self.masters() else { return };
        let mut keys = 0;
        for (master, wire) in slots.masters.iter().zip(&mut wires) {
            if let Ok(Reply::Integer(count)) = wire.ask(&[b"DBSIZE"]) {
                *out += &format!("keys_{}={count}\n", master.host_and_port());
                keys += count;
            }
        }
        *out += &format!("keys={keys}\n");
    }

    fn close(mut self) -> Result<(), Error> {
        self.members = None;
        if self.is_marked {
            let (slots, mut wires) = self.masters()?;
            ownership::leave_all(&mut wires, &slots)?;
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
    /// The longest time that an op may take now.
    pub(super) fn limit(&self) -> Duration {
        let is_calm = self.members.as_ref().is_some_and(|members| !members.fail_now());
        if is_calm { self.timeout.max(LIMIT) } else { self.timeout }
    }

    /// A connection, in which each wait for the server is an error when it takes longer than an op may.
    pub(super) fn connect(&self, node: &Address) -> Result<Wire, Error> {
        Wire::connect_within(node, &self.files, self.limit())
    }

    /// The nodes that were known when it was opened: the masters, or all of those that we started.
    pub(super) fn known(&self) -> Vec<Address> {
        match &self.nodes {
            Some(nodes) => nodes.all().map(|node| node.server.address.clone()).collect(),
            None => self.slots.masters.iter().chain(&self.slots.replicas).cloned().collect(),
        }
    }

    /// Where the slots are now, as the first of the known nodes says that answers.
    pub(super) fn map(&self) -> Result<Slots, Error> {
        let mut last = Error::new("no node is known");
        for node in &self.known() {
            match self.connect(node).and_then(|mut wire| Slots::ask(&mut wire, node)) {
                Ok(slots) => return Ok(slots),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A connection to each master, for everything that is not an op.
    fn masters(&self) -> Result<(Slots, Vec<Wire>), Error> {
        let slots = self.map()?;
        let wires = slots.masters.iter().map(|master| self.connect(master)).collect::<Result<_, _>>()?;
        Ok((slots, wires))
    }

    /// Whether a node that we started has ended, and not because the core wanted it to.
    pub(super) fn has_ended(&self) -> bool {
        let nodes = self.nodes.as_ref().filter(|_| self.members.is_none());
        nodes.is_some_and(|nodes| nodes.all().any(|node| node.server.end_of().is_some()))
    }

    /// An error, with the exit of a node if we started it and it has ended.
    pub(super) fn explained(&self, error: Error) -> Error {
        let is_planned = self.members.is_some();
        let Some(nodes) = self.nodes.as_ref().filter(|_| !is_planned && error.text.contains("connect"))
        else {
            return error;
        };
        match nodes.all().find(|node| node.server.end_of().is_some()) {
            Some(node) => {
                Error::with(error.status, format!("{}: {}", error.text, node.server.failed("has ended").text))
            }
            None => error,
        }
    }
}
