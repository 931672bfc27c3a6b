//! One thread's access to a server: its own connection. An op is a round trip, a joined group a pipeline.

use super::Redis;
use super::wire::{Reply, Wire};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status};

/// The requests of a pipeline are sent, and their replies read, when they have this many bytes, so that neither side
/// waits for the other with full buffers.
const WINDOW: usize = 256 << 10;
/// Attempts of a pop, when another client's write interferes.
const TRIES: u32 = 100;

/// A session.
pub struct RedisSession<'db> {
    pub(super) driver: &'db Redis,
    pub(super) wire: Wire,
}

/// Adds the request of an op. Ops that need more than one request were refused before.
pub(super) fn ask(wire: &mut Wire, op: &Op<'_>) {
    match op.kind() {
        KV_GET => wire.request(&[b"GET", op.key()]),
        KV_DELETE => wire.request(&[b"DEL", op.key()]),
        KV_MERGE => wire.request(&[b"APPEND", op.key(), op.value()]),
        KV_PUSH => wire.request(&[b"RPUSH", op.key(), op.value()]),
        KV_POP => wire.request(&[b"LPOP", op.key()]),
        _ => put(wire, op),
    }
}

fn put(wire: &mut Wire, op: &Op<'_>) {
    let seconds = op.limit();
    wire.begin(3 + usize::from(op.is_new()) + if seconds == 0 { 0 } else { 2 });
    [b"SET", op.key(), op.value()].into_iter().for_each(|word| wire.word(word));
    if op.is_new() {
        wire.word(b"NX");
    }
    if seconds != 0 {
        wire.word(b"EX");
        wire.word(seconds.to_string().as_bytes());
    }
}

/// The result of an op, from its reply.
pub(super) fn answer(op: &mut Op<'_>, reply: &Reply<'_>) -> Result<Status, Error> {
    match (op.kind(), reply) {
        (KV_GET | KV_POP, Reply::Bulk(value)) => Ok(op.deliver(value)),
        (KV_GET | KV_POP, Reply::Nil) | (KV_DELETE, Reply::Integer(0)) => Ok(Status::NotFound),
        (KV_DELETE | KV_MERGE | KV_PUSH, Reply::Integer(_)) | (KV_PUT, Reply::Status(_)) => Ok(Status::Ok),
        (KV_PUT, Reply::Nil) if op.is_new() => Ok(Status::Exists),
        _ => Err(reply.unexpected()),
    }
}

/// Reads a reply for each op and sets the statuses. Errors of the server are kept until all replies are read.
fn answers(wire: &mut Wire, ops: &mut [Op<'_>], failure: &mut Option<Error>) -> Result<(), Error> {
    for op in ops {
        match answer(op, &wire.reply()?) {
            Ok(status) => op.finish(status),
            Err(error) => *failure = failure.take().or(Some(error)),
        }
    }
    Ok(())
}

impl RedisSession<'_> {
    fn one(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        ask(&mut self.wire, op);
        let reply = self.wire.send().and_then(|()| self.wire.reply());
        match reply {
            Ok(reply) => answer(op, &reply),
            Err(error) => Err(self.driver.explained(error)),
        }
    }

    /// Whether every value fits into the op's buffer, so that no value is removed that cannot be delivered.
    fn is_roomy(&self, op: &Op<'_>) -> bool {
        op.raw().out_size as usize >= self.driver.value_size_max
    }

    /// A pop that checks the size before it removes the value.
    fn careful_pop(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let wire = &mut self.wire;
        for _ in 0..TRIES {
            wire.ask(&[b"WATCH", op.key()])?;
            let first = match wire.ask(&[b"LRANGE", op.key(), b"0", b"0"])? {
                Reply::Array(0) => Status::NotFound,
                Reply::Array(1) => match wire.reply()? {
                    Reply::Bulk(value) => op.deliver(value),
                    other => return Err(other.unexpected()),
                },
                other => return Err(other.unexpected()),
            };
            if first != Status::Ok {
                wire.ask(&[b"UNWATCH"])?;
                return Ok(first);
            }
            wire.ask(&[b"MULTI"])?;
            wire.ask(&[b"LPOP", op.key()])?;
            match wire.ask(&[b"EXEC"])? {
                Reply::Array(1) => return answer(op, &wire.reply()?),
                Reply::Nil => op.add_retries(1),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Status::Conflict)
    }

    /// The requests of all ops in one write, or in as few as the buffers allow.
    fn pipeline(&mut self, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let (mut first, mut failure) = (0, None);
        for next in 0..ops.len() {
            ask(&mut self.wire, &ops[next]);
            if self.wire.waiting() >= WINDOW || next + 1 == ops.len() {
                self.wire.send()?;
                answers(&mut self.wire, &mut ops[first..=next], &mut failure)?;
                first = next + 1;
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Gets in one command.
    fn multi_get(&mut self, ops: &mut [Op<'_>]) -> Result<(), Error> {
        self.wire.begin(1 + ops.len());
        self.wire.word(b"MGET");
        ops.iter().for_each(|op| self.wire.word(op.key()));
        self.wire.send()?;
        match self.wire.reply()? {
            Reply::Array(count) if count == ops.len() => {}
            other => return Err(other.unexpected()),
        }
        let mut failure = None;
        answers(&mut self.wire, ops, &mut failure)?;
        failure.map_or(Ok(()), Err)
    }

    /// Writes between MULTI and EXEC: all of them are done, or none.
    fn transaction(&mut self, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let wire = &mut self.wire;
        wire.request(&[b"MULTI"]);
        let (mut queued, mut failure) = (1, None);
        for next in 0..=ops.len() {
            match ops.get(next) {
                Some(op) => ask(wire, op),
                None => wire.request(&[b"EXEC"]),
            }
            if wire.waiting() >= WINDOW || next == ops.len() {
                wire.send()?;
                for _ in 0..queued {
                    let reply = wire.reply()?;
                    if !matches!(reply, Reply::Status(_)) {
                        failure = failure.or(Some(reply.unexpected()));
                    }
                }
                queued = 0;
            }
            queued += 1;
        }
        // The reason why a request was not queued is more useful than EXEC's reply that the transaction was aborted.
        match wire.reply()? {
            Reply::Array(count) if count == ops.len() => {}
            other => return Err(failure.unwrap_or_else(|| other.unexpected())),
        }
        answers(wire, ops, &mut failure)?;
        failure.map_or(Ok(()), Err)
    }
}

impl Session for RedisSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn merge(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn push(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.one(op)
    }

    fn pop(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if self.is_roomy(op) {
            return self.one(op);
        }
        self.careful_pop(op).map_err(|error| self.driver.explained(error))
    }

    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        let all = |kinds: &[u8]| ops.iter().all(|op| kinds.contains(&op.kind()));
        let done = if atomic {
            if !all(&[KV_PUT, KV_DELETE, KV_MERGE]) {
                return Err(Error::unsupported("gets, pushes and pops in transactions"));
            }
            self.transaction(ops)
        } else if self.driver.has_multi_get && all(&[KV_GET]) {
            self.multi_get(ops)
        } else if ops.iter().any(|op| op.kind() == KV_POP && !self.is_roomy(op)) {
            return Ok(false);
        } else {
            self.pipeline(ops)
        };
        done.map_err(|error| self.driver.explained(error)).map(|()| true)
    }
}
