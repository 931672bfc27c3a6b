//! One thread's access to a cluster: a connection to each master. An op goes to the master of its key's slot, a joined group
//! is a pipeline to each master that has some of its keys. An op that no master has accepted follows its key; one that was sent
//! and not answered fails, and is not sent again.

use super::cluster::RedisCluster;
use super::replicas::Replicas;
use super::session::{answer, ask};
use super::slots::{Redirect, Slots, slot_of};
use super::wire::Wire;
use kvdyno_driver::abi::KV_GET;
use kvdyno_driver::{Error, Op, Session, Status};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The requests of a pipeline are sent, and their replies read, when they have this many bytes.
const WINDOW: usize = 256 << 10;
/// The first and the longest pause where the cluster cannot say where a key is, or the master that it names is away.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// The map of slots is asked for at most so often: a slot that moves alone is known by its redirect.
const REFRESH: Duration = Duration::from_millis(50);

/// A session.
pub struct ClusterSession<'db> {
    driver: &'db RedisCluster,
    slots: Slots,
    /// By the place of the master; `None`: not connected.
    wires: Vec<Option<Wire>>,
    /// When the map of slots was asked for, and the master that was asked.
    refreshed: Option<(Instant, usize)>,
    /// Who is asked for gets that need not be strong; none: the masters.
    replicas: Option<Replicas>,
}

/// What has become of a request.
enum Sent {
    /// The server has answered.
    Done(Status),
    /// It has not run the op.
    Redirected(Redirect),
    /// It has answered with another error.
    Failed(Error),
    /// There is no answer: the op may have been run, and replies of this connection belong to nothing.
    Lost(Error),
}

/// Reads the reply to an op.
fn reply(wire: &mut Wire, op: &mut Op<'_>) -> Sent {
    let reply = match wire.reply() {
        Ok(reply) => reply,
        Err(error) => return Sent::Lost(error),
    };
    match Redirect::in_reply(&reply) {
        Some(redirect) => Sent::Redirected(redirect),
        None => answer(op, &reply).map_or_else(Sent::Failed, Sent::Done),
    }
}

/// Sends an op and reads its reply.
fn exchange(wire: &mut Wire, op: &mut Op<'_>, is_asking: bool) -> Sent {
    if is_asking {
        wire.request(&[b"ASKING"]);
    }
    ask(wire, op);
    if let Err(error) = wire.send() {
        return Sent::Lost(error);
    }
    if is_asking && let Err(error) = wire.reply() {
        return Sent::Lost(error);
    }
    reply(wire, op)
}

impl<'db> ClusterSession<'db> {
    /// Connects to all masters.
    pub(super) fn new(driver: &'db RedisCluster) -> Result<ClusterSession<'db>, Error> {
        let slots = driver.map()?;
        let mut session =
            ClusterSession { driver, slots, wires: Vec::new(), refreshed: None, replicas: None };
        for place in 0..session.slots.masters.len() {
            session.wire(place)?;
        }
        if driver.reads_replicas {
            let mut replicas = Replicas::new();
            for (place, node) in session.slots.masters.clone().iter().enumerate() {
                replicas.learn(session.wire(place)?, node, |node| driver.connect(node))?;
            }
            session.replicas = Some(replicas);
        }
        Ok(session)
    }

    /// Has replicas run gets that need not be strong; returns their statuses, none for those that no replica has answered.
    fn ask_replicas(&mut self, ops: &mut [Op<'_>]) -> Option<Vec<Option<Status>>> {
        let replicas = self.replicas.as_mut()?;
        let are_weak = ops.iter().all(|op| op.kind() == KV_GET && !op.is_strong());
        let answered = are_weak.then(|| replicas.get(ops))?;
        // The master is asked instead, which the record shows as a retry.
        let missed = ops.iter_mut().zip(&answered).filter(|(_, status)| status.is_none());
        missed.for_each(|(op, _)| op.add_retries(1));
        Some(answered)
    }

    fn wire(&mut self, place: usize) -> Result<&mut Wire, Error> {
        if self.wires.len() <= place {
            self.wires.resize_with(place + 1, || None);
        }
        if self.wires[place].is_none() {
            self.wires[place] = Some(self.driver.connect(&self.slots.masters[place])?);
        }
        self.wires[place].as_mut().ok_or_else(|| Error::new("a connection is missing"))
    }

    /// Asks where the slots are, unless that was done a moment ago: the masters in turn, those with a connection first, because
    /// one that is away costs the time of an op, and then the other nodes. If none answers, the map stays.
    fn refresh(&mut self) {
        let last = match self.refreshed {
            Some((at, _)) if at.elapsed() < REFRESH => return,
            Some((_, place)) => place,
            None => 0,
        };
        let count = self.slots.masters.len();
        for wants_connected in [true, false] {
            for place in (1..=count).map(|offset| (last + offset) % count) {
                let own = self.wires.get_mut(place).and_then(Option::take);
                if own.is_some() != wants_connected {
                    continue;
                }
                let node = self.slots.masters[place].clone();
                let Ok(mut wire) = own.map_or_else(|| self.driver.connect(&node), Ok) else { continue };
                if self.slots.learn(&mut wire, &node).is_ok() {
                    self.wires.resize_with(self.slots.masters.len().max(self.wires.len()), || None);
                    self.wires[place] = Some(wire);
                    self.refreshed = Some((Instant::now(), place));
                    return;
                }
            }
        }
        for node in self.slots.replicas.clone().into_iter().chain(self.driver.known()) {
            let learned = self.driver.connect(&node).and_then(|mut wire| self.slots.learn(&mut wire, &node));
            if learned.is_ok() {
                break;
            }
        }
        self.refreshed = Some((Instant::now(), last));
    }

    /// One op, which follows its key until a master accepts it.
    fn one(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let slot = slot_of(op.key());
        let mut place = self.slots.of(slot);
        let mut is_asking = false;
        let (mut begun, mut pause, mut away) = (None, PAUSE, None);
        loop {
            if self.wires.get(place).is_none_or(Option::is_none) {
                begun.get_or_insert_with(Instant::now);
            }
            let sent = match self.wire(place) {
                Ok(wire) => Ok(exchange(wire, op, is_asking)),
                Err(error) => Err(error),
            };
            let redirect = match sent {
                Ok(Sent::Done(status)) => return Ok(status),
                Ok(Sent::Failed(error)) => return Err(error),
                Ok(Sent::Lost(error)) => {
                    self.wires[place] = None;
                    return Err(error);
                }
                Ok(Sent::Redirected(redirect)) => redirect,
                Err(error) if self.driver.has_ended() => return Err(error),
                // Nothing was sent.
                Err(error) => {
                    away = Some(error);
                    Redirect::Later
                }
            };
            let limit = self.driver.limit();
            if begun.get_or_insert_with(Instant::now).elapsed() > limit {
                let seconds = limit.as_secs_f64();
                // Errors under faults are counted by their texts.
                let why = away.filter(|_| self.driver.members.is_none());
                let why = why.map_or_else(String::new, |why| format!(": {}", why.text));
                let what = "no master accepts the key within";
                return Err(Error::new(format!("{what} {seconds} s (option timeout){why}")));
            }
            op.add_retries(1);
            is_asking = false;
            match redirect {
                Redirect::Moved(host, port) => {
                    // A failover moves all slots of a master. Who is asked may not have heard of it.
                    self.refresh();
                    place = self.slots.moved(slot, self.driver.address.beside(&host, port));
                }
                Redirect::Ask(host, port) => {
                    place = self.slots.also(self.driver.address.beside(&host, port));
                    is_asking = true;
                }
                Redirect::Later => {
                    sleep(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    self.refresh();
                    place = self.slots.of(slot);
                }
            }
        }
    }

    /// All requests, to each master in one write, or in as few as the buffers allow. Ops whose keys are elsewhere follow one
    /// by one; those of one key are all among them, so that their order stays.
    fn pipeline(&mut self, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let places: Vec<usize> = ops.iter().map(|op| self.slots.of(slot_of(op.key()))).collect();
        let mut waiting = 0;
        // Masters that could not be reached, and ops that no master has run.
        let (mut away, mut elsewhere) = (Vec::new(), Vec::new());
        let (mut asked, mut failure) = (Vec::new(), None);
        for next in 0..ops.len() {
            let place = places[next];
            if !away.contains(&place)
                && let Err(error) = self.wire(place)
            {
                if self.driver.has_ended() {
                    return Err(error);
                }
                away.push(place);
            }
            if away.contains(&place) {
                elsewhere.push(next);
            } else {
                let wire = self.wire(place)?;
                let before = wire.waiting();
                ask(wire, &ops[next]);
                waiting += wire.waiting() - before;
                asked.push(next);
            }
            if waiting < WINDOW && next + 1 < ops.len() {
                continue;
            }
            for wire in self.wires.iter_mut().flatten().filter(|wire| wire.waiting() > 0) {
                wire.send()?;
            }
            for at in asked.drain(..) {
                match reply(self.wire(places[at])?, &mut ops[at]) {
                    Sent::Done(status) => ops[at].finish(status),
                    Sent::Redirected(_) => elsewhere.push(at),
                    Sent::Failed(error) => failure = failure.or(Some(error)),
                    Sent::Lost(error) => return Err(error),
                }
            }
            elsewhere.sort_unstable();
            for at in elsewhere.drain(..) {
                let status = self.one(&mut ops[at])?;
                ops[at].finish(status);
            }
            away.clear();
            waiting = 0;
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
        let done = self.pipeline(ops);
        if done.is_err() {
            // Some may have replies that were not read.
            self.wires.clear();
        }
        done.map_err(|error| driver.explained(error)).map(|()| true)
    }
}
