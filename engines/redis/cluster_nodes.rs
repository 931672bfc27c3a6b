//! The nodes of a cluster on this machine, in the trial's folder.

use super::facts::info;
use super::server::{Server, Wanted, password};
use super::slots::SLOTS;
use super::tls::Files;
use super::wire::Wire;
use kvdyno_driver::{Error, Level, Status};
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pause between two looks at a cluster that forms.
const LOOK: Duration = Duration::from_millis(5);
/// The driver gives up on a cluster that does not form in this time.
const START: Duration = Duration::from_secs(60);
/// The file with the nodes' addresses, which are part of the cluster's data: a line each, masters first.
const LAYOUT: &str = "nodes.txt";
/// Ports below those of clients; a node also uses the port 10,000 above, for its cluster.
const PORTS: (u16, u16) = (12000, 22000);

/// How long the end of a node is waited for that has closed its connections.
const END: Duration = Duration::from_millis(200);
/// How long a node that may be away is waited for, where another one can be asked.
const AWAY: Duration = Duration::from_secs(1);

/// The cluster to start.
pub(super) struct Wish<'w> {
    /// A program like redis-server.
    pub program: &'w str,
    pub folder: &'w Path,
    /// The folder is empty: form a cluster.
    pub is_new: bool,
    pub level: Level,
    /// As its authors ship it.
    pub as_shipped: bool,
    /// The password of all nodes; `None`: one is generated.
    pub password: Option<&'w str>,
    pub masters: usize,
    /// Of each master.
    pub replicas: usize,
    pub node_timeout_ms: usize,
}

/// A node.
pub(super) struct Node {
    pub name: String,
    pub server: Server,
}

/// All nodes: the masters, then the replicas of the first master, of the second, and so on.
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

/// The environment variable with the first three numbers of the nodes' addresses, if each has a link of its own that may be cut
/// (`crates/core/src/engine/members.rs`).
const NETWORK: &str = "KVDYNO_NETWORK";

/// The address of a node, from 1: a free port of a random loopback address, so that no other program uses it by chance when the
/// node is started again; or an address of its own, where no other program is.
fn place(number: usize) -> Result<(String, u16), Error> {
    if let Ok(network) = std::env::var(NETWORK) {
        return Ok((format!("{network}.{number}"), PORTS.0));
    }
    let mut random = File::open("/dev/urandom")?;
    let mut last = Error::new("no free port");
    for _ in 0..20 {
        let mut bytes = [0; 5];
        random.read_exact(&mut bytes)?;
        let host = format!("127.{}.{}.{}", bytes[0], bytes[1], 1 + bytes[2] % 254);
        let port = PORTS.0 + u16::from_ne_bytes([bytes[3], bytes[4]]) % (PORTS.1 - PORTS.0);
        match TcpListener::bind((host.as_str(), port)) {
            Ok(_) => return Ok((host, port)),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

fn parse(line: &str) -> Option<(String, u16)> {
    let (host, port) = line.split_once(' ')?;
    Some((host.to_string(), port.parse().ok()?))
}

impl Nodes {
    /// Starts all nodes, forms the cluster if it is new, and waits until it serves all slots.
    pub fn start(wish: &Wish<'_>) -> Result<Nodes, Error> {
        let layout = wish.folder.join(LAYOUT);
        let places: Vec<(String, u16)> = if wish.is_new {
            let count = wish.masters * (1 + wish.replicas);
            let places = (1..=count).map(place).collect::<Result<Vec<_>, _>>()?;
            let lines: String = places.iter().map(|(host, port)| format!("{host} {port}\n")).collect();
            std::fs::write(&layout, lines)?;
            places
        } else {
            std::fs::read_to_string(&layout)?.lines().filter_map(parse).collect()
        };
        let password = wish.password.map_or_else(password, |known| Ok(known.to_string()))?;
        // A master would wait five seconds for more replicas before it gives the first one its data.
        let settings = format!(
            "cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout {}\nmasterauth {password}\n\
             repl-diskless-sync-delay 0\n",
            wish.node_timeout_ms
        );
        let mut made = Nodes { nodes: Vec::new() };
        for (number, (host, port)) in places.iter().enumerate() {
            let name = format!("node-{}", number + 1);
            let folder = wish.folder.join(&name);
            if wish.is_new {
                std::fs::create_dir(&folder)?;
            }
            // Otherwise the others take it for the address from which it connects to them.
            let settings = format!("{settings}cluster-announce-ip {host}\n");
            let wanted = Wanted {
                program: wish.program,
                engine: "",
                folder: &folder,
                level: wish.level,
                as_shipped: wish.as_shipped,
                password: Some(&password),
                node: Some((host, *port, &settings)),
                member: Some(number + 1),
            };
            let server = wanted.start()?;
            made.nodes.push(Node { name, server });
        }
        made.serve(wish).map_err(|error| made.explained(error))?;
        Ok(made)
    }

    /// Makes a cluster of the nodes, which run.
    fn serve(&self, wish: &Wish<'_>) -> Result<(), Error> {
        if wish.is_new {
            self.form(wish.masters)?;
        }
        self.until_served()?;
        self.nodes.iter().try_for_each(|node| node.server.keep_log(&mut node.wire()?, wish.level))
    }

    /// An error, or the end of the node that has caused it. Its connections are closed a moment before it has ended.
    pub fn explained(&self, error: Error) -> Error {
        let begun = Instant::now();
        while begun.elapsed() < END {
            if let Some(node) = self.nodes.iter().find(|node| node.server.end_of().is_some()) {
                return node.server.failed("has ended");
            }
            sleep(LOOK);
        }
        error
    }

    pub fn first(&self) -> &Server {
        &self.nodes[0].server
    }

    pub fn all(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Introduces the nodes to each other, and gives each its slots or its master.
    fn form(&self, masters: usize) -> Result<(), Error> {
        let first = self.first().address.clone();
        for (number, node) in self.nodes.iter().enumerate() {
            let mut wire = node.wire()?;
            // Different from the beginning, so that the nodes need not agree on them.
            wire.ask(&[b"CLUSTER", b"SET-CONFIG-EPOCH", (number + 1).to_string().as_bytes()])?;
            if number < masters {
                let own = SLOTS * number / masters..SLOTS * (number + 1) / masters;
                let own: Vec<String> = own.map(|slot| slot.to_string()).collect();
                let words =
                    [&b"CLUSTER"[..], b"ADDSLOTS"].into_iter().chain(own.iter().map(|slot| slot.as_bytes()));
                wire.ask(&words.collect::<Vec<_>>())?;
            }
            if number > 0 {
                let (host, port) = first.host_port();
                wire.ask(&[b"CLUSTER", b"MEET", host.as_bytes(), port.to_string().as_bytes()])?;
            }
        }
        let count = self.nodes.len().to_string();
        self.until("does not know all nodes", |node| {
            Ok(node.facts(&mut node.wire()?)?.contains(&known("cluster_known_nodes", &count)))
        })?;
        for (number, node) in self.nodes.iter().enumerate().skip(masters) {
            let replicas = (self.nodes.len() - masters) / masters;
            let master = &self.nodes[(number - masters) / replicas];
            let id = master.wire()?.texts(&[b"CLUSTER", b"MYID"])?.concat();
            node.wire()?.ask(&[b"CLUSTER", b"REPLICATE", id.as_bytes()])?;
        }
        Ok(())
    }

    /// Waits until each node serves all slots, and each replica follows its master.
    pub fn until_served(&self) -> Result<(), Error> {
        let slots = SLOTS.to_string();
        self.until("does not join the cluster", |node| {
            let mut wire = node.wire()?;
            let facts = node.facts(&mut wire)?;
            let lines = info(&mut wire)?;
            let is_replica = lines.contains(&known("role", "slave"));
            let follows = lines.contains(&known("master_link_status", "up"));
            let serves = facts.contains(&known("cluster_state", "ok"))
                && facts.contains(&known("cluster_slots_ok", &slots));
            Ok(serves && (!is_replica || follows))
        })
    }

    fn until(&self, what: &str, is_so: impl Fn(&Node) -> Result<bool, Error>) -> Result<(), Error> {
        let begun = Instant::now();
        for node in &self.nodes {
            // One that was started again does not listen yet, or loads its data.
            while !is_so(node).unwrap_or(false) {
                if node.server.end_of().is_some() || begun.elapsed() > START {
                    return Err(node.server.failed(what));
                }
                sleep(LOOK);
            }
        }
        Ok(())
    }

    /// The names of the masters that serve now.
    pub fn leaders(&self) -> Vec<&str> {
        let leads = |node: &&Node| node.leads().unwrap_or(false);
        self.nodes.iter().filter(leads).map(|node| node.name.as_str()).collect()
    }

    /// Makes everything acknowledged durable, on all nodes.
    pub fn flush(&self, level: Level) -> Result<Status, Error> {
        for node in &self.nodes {
            node.server.flush(&mut node.wire()?, level)?;
        }
        Ok(Status::Ok)
    }

    /// Stops the replicas, then the masters, which would wait for them.
    pub fn stop(&self, saves: bool) -> Result<(), Error> {
        let leaders = self.leaders();
        let is_master = |node: &Node| leaders.contains(&node.name.as_str());
        for stops_masters in [false, true] {
            for node in self.nodes.iter().filter(|node| is_master(node) == stops_masters) {
                node.server.stop(&mut node.wire()?, saves)?;
            }
        }
        Ok(())
    }
}

fn known(name: &str, value: &str) -> (String, String) {
    (name.to_string(), value.to_string())
}

impl Node {
    /// A connection for everything that is not an op.
    pub fn wire(&self) -> Result<Wire, Error> {
        Wire::connect(&self.server.address, &Files::default())
    }

    /// The lines of CLUSTER INFO.
    fn facts(&self, wire: &mut Wire) -> Result<Vec<(String, String)>, Error> {
        let text = wire.texts(&[b"CLUSTER", b"INFO"])?.concat();
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| known(name, value.trim_end())).collect())
    }

    /// Whether it is a master in a cluster that serves. One that has just been started again does not serve before it has heard
    /// whether another one took its place.
    fn leads(&self) -> Result<bool, Error> {
        let mut wire = Wire::connect_within(&self.server.address, &Files::default(), AWAY)?;
        let is_master = info(&mut wire)?.contains(&known("role", "master"));
        Ok(is_master && self.facts(&mut wire)?.contains(&known("cluster_state", "ok")))
    }
}
