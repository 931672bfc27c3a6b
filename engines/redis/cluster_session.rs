//! One thread's access to a cluster: a connection to each master. An op goes to the master of its key's slot, a joined group
//! is a pipeline to each master that has some of its keys.

use super::cluster::RedisCluster;
use super::replicas::Replicas;
use super::session::{answer, ask};
use super::slots::{Redirect, Slots, slot_of};
use super::wire::{Reply, Wire};
use kvdyno_driver::abi::KV_GET;
use kvdyno_driver::{Error, Op, Session, Status};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The requests of a pipeline are sent, and their replies read, when they have this many bytes.
const WINDOW: usize = 256 << 10;
/// How long an op follows its key before it fails, and the pause where the cluster cannot say where it is.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// A session.
pub struct ClusterSession<'db> {
    driver: &'db RedisCluster,
    slots: Slots,
    /// By the place of the master; `None`: not connected yet.
    wires: Vec<Option<Wire>>,
    /// Who is asked for gets that need not be strong; none: the masters.
    replicas: Option<Replicas>,
}

/// The result of an op, or where it must be sent.
fn turn(op: &mut Op<'_>, reply: &Reply<'_>) -> Result<Result<Status, Redirect>, Error> {
    if let Reply::Error(text) = reply
        && let Some(redirect) = Redirect::of(text)
    {
        return Ok(Err(redirect));
    }
    answer(op, reply).map(Ok)
}

impl<'db> ClusterSession<'db> {
    /// Connects to all masters.
    pub(super) fn new(driver: &'db RedisCluster) -> Result<ClusterSession<'db>, Error> {
        let mut session =
            ClusterSession { driver, slots: driver.slots.clone(), wires: Vec::new(), replicas: None };
        for place in 0..session.slots.masters.len() {
            session.wire(place)?;
        }
        if driver.reads_replicas {
            let node = session.slots.masters[0].clone();
            session.replicas = Some(Replicas::connect(session.wire(0)?, &node, &driver.files)?);
        }
        Ok(session)
    }

    /// Has replicas run gets that need not be strong; returns their statuses, none for those that no replica has answered.
    fn ask_replicas(&mut self, ops: &mut [Op<'_>]) -> Option<Vec<Option<Status>>> {
        let replicas = self.replicas.as_mut()?;
        let are_weak = ops.iter().all(|op| op.kind() == KV_GET && !op.is_strong());
        are_weak.then(|| replicas.get(ops))
    }

    fn wire(&mut self, place: usize) -> Result<&mut Wire, Error> {
        if self.wires.len() <= place {
            self.wires.resize_with(place + 1, || None);
        }
        if self.wires[place].is_none() {
            self.wires[place] = Some(Wire::connect(&self.slots.masters[place], &self.driver.files)?);
        }
        self.wires[place].as_mut().ok_or_else(|| Error::new("a connection is missing"))
    }

    /// One op, which follows its key.
    fn one(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let slot = slot_of(op.key());
        let mut place = self.slots.of(slot);
        let mut is_asking = false;
        let mut begun = None;
        loop {
            let wire = self.wire(place)?;
            if is_asking {
                wire.request(&[b"ASKING"]);
            }
            ask(wire, op);
            wire.send()?;
            if is_asking {
                wire.reply()?;
            }
            let redirect = match turn(op, &wire.reply()?)? {
                Ok(status) => return Ok(status),
                Err(redirect) => redirect,
            };
            if begun.get_or_insert_with(Instant::now).elapsed() > LIMIT {
                return Err(Error::new(format!("no master accepts slot {slot} for {} s", LIMIT.as_secs())));
            }
            op.add_retries(1);
            is_asking = false;
            match redirect {
                Redirect::Moved(host, port) => {
                    place = self.slots.moved(slot, self.driver.address.beside(&host, port));
                }
                Redirect::Ask(host, port) => {
                    place = self.slots.also(self.driver.address.beside(&host, port));
                    is_asking = true;
                }
                Redirect::Later => sleep(PAUSE),
            }
        }
    }

    /// All requests, to each master in one write, or in as few as the buffers allow. Ops whose keys are elsewhere follow one
    /// by one; those of one key are all among them, so that their order stays.
    fn pipeline(&mut self, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let places: Vec<usize> = ops.iter().map(|op| self.slots.of(slot_of(op.key()))).collect();
        let (mut first, mut waiting) = (0, 0);
        let mut failure = None;
        for next in 0..ops.len() {
            let wire = self.wire(places[next])?;
            let before = wire.waiting();
            ask(wire, &ops[next]);
            waiting += wire.waiting() - before;
            if waiting < WINDOW && next + 1 < ops.len() {
                continue;
            }
            for wire in self.wires.iter_mut().flatten().filter(|wire| wire.waiting() > 0) {
                wire.send()?;
            }
            let mut elsewhere = Vec::new();
            for at in first..=next {
                let reply = self.wire(places[at])?.reply()?;
                match turn(&mut ops[at], &reply) {
                    Ok(Ok(status)) => ops[at].finish(status),
                    Ok(Err(_)) => elsewhere.push(at),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            for at in elsewhere {
                let status = self.one(&mut ops[at])?;
                ops[at].finish(status);
            }
            (first, waiting) = (next + 1, 0);
        }
        failure.map_or(Ok(()), Err)
    }

    fn single(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let driver = self.driver;
        self.one(op).map_err(|error| driver.explained(error))
    }
}

impl Session for ClusterSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if let Some([Some(status)]) = self.ask_replicas(std::slice::from_mut(op)).as_deref() {
            return Ok(*status);
        }
        self.single(op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.single(op)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.single(op)
    }

    fn merge(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.single(op)
    }

    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        if atomic {
            return Err(Error::unsupported("transactions, because keys are on several masters"));
        }
        let driver = self.driver;
        if let Some(answered) = self.ask_replicas(ops) {
            for (op, status) in ops.iter_mut().zip(answered) {
                let status = status.map_or_else(|| self.single(op), Ok)?;
                op.finish(status);
            }
            return Ok(true);
        }
        self.pipeline(ops).map_err(|error| driver.explained(error)).map(|()| true)
    }
}
