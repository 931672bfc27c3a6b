//! Reads from replicas (option reads=replicas): a get goes to the replicas of its key's master in turn. What none of them answers
//! is asked of the master.

use super::address::Address;
use super::cluster::RedisCluster;
use super::session::{answer, ask};
use super::slots::{SLOTS, Tree, slot_of, tree};
use super::wire::Wire;
use kvdyno_driver::{Error, Op, Status};

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

impl Replicas {
    /// Asks a node, and connects to all replicas. Each slot must have one.
    pub fn connect(wire: &mut Wire, node: &Address, driver: &RedisCluster) -> Result<Replicas, Error> {
        let mut found = Replicas { all: Vec::new(), of: vec![Vec::new(); SLOTS].into(), turn: 0 };
        wire.request(&[b"CLUSTER", b"SLOTS"]);
        wire.send()?;
        let Tree::List(ranges) = tree(wire)? else {
            return Err(Error::new(format!("{node}: an unexpected reply to CLUSTER SLOTS")));
        };
        for range in ranges {
            let Tree::List(parts) = range else { continue };
            let [Tree::Integer(from), Tree::Integer(to), _, replicas @ ..] = &parts[..] else { continue };
            for replica in replicas {
                let Tree::List(own) = replica else { continue };
                let [Tree::Text(host), Tree::Integer(port), ..] = &own[..] else { continue };
                let Ok(port) = u16::try_from(*port) else { continue };
                let place = found.place(node.beside(host, port));
                let slots = *from as usize..=*to as usize;
                found.of.get_mut(slots).into_iter().flatten().for_each(|own| own.push(place));
            }
        }
        if let Some(slot) = found.of.iter().position(Vec::is_empty) {
            return Err(Error::new(format!("option reads: slot {slot} has no replica to read from")));
        }
        for replica in &mut found.all {
            let mut wire = driver.connect(&replica.address)?;
            wire.ask(&[b"READONLY"])?;
            replica.wire = Some(wire);
        }
        Ok(found)
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
        let chosen: Vec<usize> = ops
            .iter()
            .map(|op| {
                let own = &self.of[slot_of(op.key())];
                usize::from(own[self.turn % own.len()])
            })
            .collect();
        for (op, &place) in ops.iter().zip(&chosen) {
            if let Some(wire) = &mut self.all[place].wire {
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
        let answered = |(op, place): (&mut Op<'_>, usize)| {
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
