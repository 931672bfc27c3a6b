//! The nodes of a cluster on this machine, in the trial's folder.

use super::facts::info;
use super::server::{Server, Wanted, password};
use super::slots::SLOTS;
use super::tls::Files;
use super::wire::Wire;
use kvdyno_driver::{Config, Error, Level, Status};
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
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

/// A node.
pub(super) struct Node {
    pub server: Server,
    wire: Mutex<Wire>,
}

/// All nodes: the masters, then the replicas of the first master, of the second, and so on.
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

/// A free port of a random loopback address: no other program uses it by chance when the node is started again.
fn place() -> Result<(String, u16), Error> {
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
    pub fn start(config: &Config<'_>, level: Level, known: Option<&str>) -> Result<Nodes, Error> {
        let within = |name: &str, least: u64, most: u64| {
            let number = config.number(name)?;
            let wrong = || Error::new(format!("option {name}: expected {least} to {most}, got {number}"));
            if (least..=most).contains(&number) { Ok(number as usize) } else { Err(wrong()) }
        };
        let (masters, replicas) = (within("masters", 1, 16)?, within("replicas", 0, 4)?);
        let timeout_ms = within("node-timeout", 100, 60_000)?;
        let layout = config.path().join(LAYOUT);
        let places: Vec<(String, u16)> = if config.create() {
            let places = (0..masters * (1 + replicas)).map(|_| place()).collect::<Result<Vec<_>, _>>()?;
            let lines: String = places.iter().map(|(host, port)| format!("{host} {port}\n")).collect();
            std::fs::write(&layout, lines)?;
            places
        } else {
            std::fs::read_to_string(&layout)?.lines().filter_map(parse).collect()
        };
        let password = known.map_or_else(password, |known| Ok(known.to_string()))?;
        // A master would wait five seconds for more replicas before it gives the first one its data.
        let settings = format!(
            "cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout {timeout_ms}\nmasterauth {password}\n\
             repl-diskless-sync-delay 0\n"
        );
        let mut made = Nodes { nodes: Vec::new() };
        for (number, (host, port)) in places.iter().enumerate() {
            let folder = config.path().join(format!("node-{}", number + 1));
            if config.create() {
                std::fs::create_dir(&folder)?;
            }
            // Otherwise the others take it for the address from which it connects to them.
            let settings = format!("{settings}cluster-announce-ip {host}\n");
            made.nodes.push(Node::start(config, (level, &password), &folder, (host, *port, &settings))?);
        }
        if config.create() {
            made.form(masters)?;
        }
        made.until_served()?;
        for node in &made.nodes {
            node.server.keep_log(&mut node.wire(), level)?;
        }
        Ok(made)
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
            let mut wire = node.wire();
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
            Ok(node.facts()?.contains(&known("cluster_known_nodes", &count)))
        })?;
        for (number, node) in self.nodes.iter().enumerate().skip(masters) {
            let replicas = (self.nodes.len() - masters) / masters;
            let id = self.nodes[(number - masters) / replicas].wire().texts(&[b"CLUSTER", b"MYID"])?.concat();
            node.wire().ask(&[b"CLUSTER", b"REPLICATE", id.as_bytes()])?;
        }
        Ok(())
    }

    /// Waits until each node serves all slots, and each replica follows its master.
    fn until_served(&self) -> Result<(), Error> {
        let slots = SLOTS.to_string();
        self.until("does not join the cluster", |node| {
            let facts = node.facts()?;
            let lines = info(&mut node.wire())?;
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
            while !is_so(node)? {
                if node.server.end_of().is_some() || begun.elapsed() > START {
                    return Err(node.server.failed(what));
                }
                sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Makes everything acknowledged durable, on all nodes.
    pub fn flush(&self, level: Level) -> Result<Status, Error> {
        for node in &self.nodes {
            node.server.flush(&mut node.wire(), level)?;
        }
        Ok(Status::Ok)
    }

    /// Stops the replicas, then the masters, which would wait for them.
    pub fn stop(mut self, saves: bool) -> Result<(), Error> {
        while let Some(node) = self.nodes.pop() {
            let mut wire = node.wire.into_inner().unwrap_or_else(PoisonError::into_inner);
            node.server.stop(&mut wire, saves)?;
        }
        Ok(())
    }
}

fn known(name: &str, value: &str) -> (String, String) {
    (name.to_string(), value.to_string())
}

impl Node {
    fn start(
        config: &Config<'_>,
        (level, password): (Level, &str),
        folder: &Path,
        node: (&str, u16, &str),
    ) -> Result<Node, Error> {
        let wanted = Wanted {
            program: config.setting("server")?,
            engine: "",
            folder,
            level,
            as_shipped: config.asks_default(),
            password: Some(password),
            node: Some(node),
        };
        let server = wanted.start()?;
        let wire = Mutex::new(Wire::connect(&server.address, &Files::default())?);
        Ok(Node { server, wire })
    }

    fn wire(&self) -> std::sync::MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines of CLUSTER INFO.
    fn facts(&self) -> Result<Vec<(String, String)>, Error> {
        let text = self.wire().texts(&[b"CLUSTER", b"INFO"])?.concat();
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| known(name, value.trim_end())).collect())
    }
}
