//! Reads from replicas (option reads=replicas): a get goes to the replicas of its key's master in turn. What none of them answers
//! is asked of the master.

use super::address::Address;
use super::session::{answer, ask};
use super::slots::{SLOTS, slot_of};
use super::wire::{Reply, Wire};
use kvdyno_driver::{Error, Op, Status};
use std::ops::RangeInclusive;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a master may take to know its replicas, and the interval between two questions.
const LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// A replica, and a connection to it if there is one.
struct Replica {
    address: Address,
    wire: Option<Wire>,
}

/// The replicas of a cluster, as they were when the session began.
pub(super) struct Replicas {
    all: Vec<Replica>,
    /// Those of each slot, by their places in `all`.
    of: Box<[Vec<u16>]>,
    turn: usize,
}

/// A line of the reply to CLUSTER NODES.
struct Line<'t> {
    id: &'t str,
    address: &'t str,
    flags: &'t str,
    /// The master of a replica.
    master: &'t str,
    slots: Vec<&'t str>,
}

impl Line<'_> {
    fn of(text: &str) -> Option<Line<'_>> {
        let words: Vec<&str> = text.split(' ').collect();
        let [id, address, flags, master, _, _, _, _, slots @ ..] = &words[..] else { return None };
        Some(Line { id, address, flags, master, slots: slots.to_vec() })
    }

    fn has(&self, wanted: &str) -> bool {
        self.flags.split(',').any(|flag| flag == wanted)
    }

    fn is_replica(&self) -> bool {
        self.has("slave") && !["fail", "fail?", "noaddr"].iter().any(|flag| self.has(flag))
    }

    fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = self.address.split('@').next()?.rsplit_once(':')?;
        Some((host, port.parse().ok()?))
    }
}

/// The slots of `5461-10921` or `7`; none for a slot that is moving.
fn range(text: &str) -> Option<RangeInclusive<usize>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(from.parse().ok()?..=to.parse().ok()?)
}

/// What a node knows of the cluster.
fn nodes(wire: &mut Wire) -> Result<String, Error> {
    match wire.ask(&[b"CLUSTER", b"NODES"])? {
        Reply::Bulk(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        other => Err(other.unexpected()),
    }
}

/// Its line of the node that was asked, and those of its replicas.
fn own<'t>(text: &'t str) -> Option<(Line<'t>, Vec<Line<'t>>)> {
    let (mut masters, others): (Vec<Line<'t>>, Vec<Line<'t>>) =
        text.lines().filter_map(Line::of).partition(|line| line.has("myself"));
    let master = masters.pop()?;
    let id = master.id;
    let is_own = |line: &Line<'_>| line.is_replica() && line.master == id;
    Some((master, others.into_iter().filter(is_own).collect()))
}

/// Waits until a master knows so many replicas of its own: one that follows it may not have told so on the cluster's bus.
pub(super) fn until_known(wire: &mut Wire, node: &Address, count: u64) -> Result<(), Error> {
    let begun = Instant::now();
    while own(&nodes(wire)?).map_or(0, |(_, replicas)| replicas.len() as u64) < count {
        if begun.elapsed() > LIMIT {
            let limit = LIMIT.as_secs();
            return Err(Error::new(format!("{node}: it does not know its replicas after {limit} s")));
        }
        sleep(PAUSE);
    }
    Ok(())
}

impl Replicas {
    /// None yet.
    pub fn new() -> Replicas {
        Replicas { all: Vec::new(), of: vec![Vec::new(); SLOTS].into(), turn: 0 }
    }

    /// Asks a master who its replicas are, because other nodes may not have heard of them yet, and connects to all that answer.
    /// CLUSTER SLOTS would not name those whose position in the log the master has not heard of.
    pub fn learn(
        &mut self,
        wire: &mut Wire,
        node: &Address,
        connect: impl Fn(&Address) -> Result<Wire, Error>,
    ) -> Result<(), Error> {
        let text = nodes(wire)?;
        let Some((master, replicas)) = own(&text) else { return Ok(()) };
        for line in &replicas {
            let Some((host, port)) = line.host_and_port() else { continue };
            let place = self.place(node.beside(host, port));
            for slots in master.slots.iter().filter_map(|own| range(own)) {
                self.of.get_mut(slots).into_iter().flatten().for_each(|own| own.push(place));
            }
            // One that is away is not asked.
            let ready = connect(&self.all[usize::from(place)].address)
                .and_then(|mut wire| wire.ask(&[b"READONLY"]).map(drop).map(|()| wire));
            self.all[usize::from(place)].wire = ready.ok();
        }
        Ok(())
    }

    fn place(&mut self, address: Address) -> u16 {
        let known = self.all.iter().position(|known| known.address == address);
        known.unwrap_or_else(|| {
            self.all.push(Replica { address, wire: None });
            self.all.len() - 1
        }) as u16
    }

    /// Runs gets; returns the status of each, none if no replica has answered it.
    pub fn get(&mut self, ops: &mut [Op<'_>]) -> Vec<Option<Status>> {
        self.turn = self.turn.wrapping_add(1);
        let choose = |op: &Op<'_>| {
            let own = &self.of[slot_of(op.key())];
            let place = usize::from(*own.get(self.turn % own.len().max(1))?);
            self.all[place].wire.is_some().then_some(place)
        };
        let chosen: Vec<Option<usize>> = ops.iter().map(choose).collect();
        for (op, place) in ops.iter().zip(&chosen) {
            if let Some(wire) = place.and_then(|place| self.all[place].wire.as_mut()) {
                ask(wire, op);
            }
        }
        for replica in &mut self.all {
            let has_failed =
                replica.wire.as_mut().is_some_and(|wire| wire.waiting() > 0 && wire.send().is_err());
            if has_failed {
                replica.wire = None;
            }
        }
        let answered = |(op, place): (&mut Op<'_>, Option<usize>)| {
            let place = place?;
            let wire = self.all[place].wire.as_mut()?;
            match wire.reply() {
                Ok(reply) => answer(op, &reply).ok(),
                Err(_) => {
                    self.all[place].wire = None;
                    None
                }
            }
        };
        ops.iter_mut().zip(chosen).map(answered).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_of_a_cluster_are_told_apart() {
        let text = "07c3 127.0.0.1:30004@31004,name slave e7d1 0 1426238317239 4 connected\n\
                    e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 7000 [93->-292f]\n\
                    6ec2 127.0.0.1:30002@31002 slave,fail e7d1 0 1426238316232 2 connected";
        let lines: Vec<Line<'_>> = text.lines().filter_map(Line::of).collect();
        assert_eq!(lines.iter().map(Line::is_replica).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((lines[0].host_and_port(), lines[0].master), (Some(("127.0.0.1", 30004)), lines[1].id));
        let slots: Vec<_> = lines[1].slots.iter().map(|own| range(own)).collect();
        assert_eq!(slots, [Some(0..=5460), Some(7000..=7000), None]);
    }
}
