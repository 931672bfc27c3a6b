//! Commands: their names, numbers of arguments, which arguments are keys, and their implementations.

use super::client::{Client, Queue};
use super::commands;
pub(crate) use super::error::Refusal;
use super::error::StoreError;
use super::parse::{Arguments, number};
use super::record::{Row, Type, key_row};
use super::reply::{Reply, Version};
use super::server::Shared;
use super::store::{Later, Store};
use std::ops::Range;

/// The input of a command.
pub(crate) struct Call<'c, 's> {
    /// The request; the command's name is first.
    pub arguments: Arguments<'c>,
    /// The client.
    pub client: &'c mut Client,
    /// The worker's store.
    pub store: &'c mut Store<'s>,
    /// Where the answer is written.
    pub answers: &'c mut Replies,
    /// The server.
    pub server: &'s Shared,
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// Whether it was queued between MULTI and EXEC.
    pub is_queued: bool,
}

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing.
    Reads,
    /// Its answer waits for the commit.
    Writes,
    /// It is executed even between MULTI and EXEC.
    Connection,
    /// It is refused between MULTI and EXEC.
    Alone,
    /// Its first argument names one of its subcommands, which have rows of their own.
    Container,
}

/// A command.
pub(crate) struct Command {
    /// In capitals.
    pub name: &'static str,
    /// Number of arguments including the name; negative: the minimum.
    pub arity: i32,
    /// Its effect.
    pub effect: Effect,
    /// First key, last key (negative: from the end) and the distance between keys; all 0 if it has no keys.
    pub keys: (i32, i32, i32),
    /// Its implementation.
    pub run: fn(&mut Call) -> Result<(), Refusal>,
}

impl Command {
    /// The keys among the arguments of a request.
    pub(crate) fn keys_of<'a>(&self, arguments: &Arguments<'a>) -> Vec<&'a [u8]> {
        if self.name == "SINTERCARD" {
            let count = number(arguments.get(1)).unwrap_or(0).max(0) as usize;
            return arguments.from(2).to(count).iter().collect();
        }
        let (first, last, step) = self.keys;
        let count = arguments.len() as i32;
        let last = if last < 0 { count + last } else { last.min(count - 1) };
        if first == 0 || step == 0 {
            return Vec::new();
        }
        (first..=last).step_by(step as usize).map(|place| arguments.get(place as usize)).collect()
    }
}

/// The number of a request's command or subcommand; the error reply if it is unknown.
pub(crate) fn number_of(arguments: &Arguments) -> Result<usize, Refusal> {
    let name = arguments.get(0);
    let short = |name: &[u8]| String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
    let number = commands::number_of(name).filter(|_| !name.contains(&b'|')).ok_or_else(|| {
        let words: String =
            arguments.from(1).iter().take(20).map(|word| format!("'{}' ", short(word))).collect();
        Refusal::from(format!("ERR unknown command '{}', with args beginning with: {words}", short(name)))
    })?;
    if commands::LIST[number].effect != Effect::Container || arguments.len() == 1 {
        return Ok(number);
    }
    let subcommand = arguments.get(1);
    commands::number_of(&[name, b"|", subcommand].concat()).ok_or_else(|| {
        let name = commands::LIST[number].name;
        format!("ERR unknown subcommand '{}'. Try {name} HELP.", short(subcommand)).into()
    })
}

/// A part of an answer.
#[derive(Debug)]
enum Piece {
    /// Bytes of `Replies::reply`.
    Bytes(Range<usize>),
    /// The value of a read that is executed with the batch; for a key of another type an error or a null.
    Value { later: Later, strict: bool, version: Version },
}

/// An answer, and its client.
struct PendingReply {
    slot: usize,
    command: usize,
    writes: bool,
    /// Milliseconds since 1970 for its command: keys that expire later still exist for it.
    now_ms: u64,
    pieces: Range<usize>,
}

/// A place in the answer that is being written.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pieces: usize,
    bytes: usize,
}

/// Appends an answer to a reply.
pub(crate) type Write<'w> = &'w mut dyn FnMut(&mut Reply);
/// Receives an answer: its slot, its command's number, and the function that writes it.
pub(crate) type Send<'s> = &'s mut dyn FnMut(usize, usize, Write);

/// A larger buffer of replies is released when they are delivered.
const MOST_KEPT_BYTES: usize = 2 << 20;

/// Replies that wait for the commit, in order.
#[derive(Default)]
pub(crate) struct Replies {
    /// The reply that is being written.
    pub reply: Reply,
    noted: usize,
    pieces: Vec<Piece>,
    all: Vec<PendingReply>,
    first_piece: usize,
}

impl Replies {
    /// Inserts the value of a deferred read here.
    pub(crate) fn value(&mut self, later: Later, strict: bool) {
        self.note_bytes();
        let version = self.reply.version;
        self.pieces.push(Piece::Value { later, strict, version });
    }

    fn note_bytes(&mut self) {
        let end = self.reply.bytes.len();
        if end > self.noted {
            self.pieces.push(Piece::Bytes(self.noted..end));
            self.noted = end;
        }
    }

    /// Where the answer is now.
    pub(crate) fn mark(&mut self) -> Mark {
        self.note_bytes();
        Mark { pieces: self.pieces.len(), bytes: self.noted }
    }

    /// Discards what was written since the mark.
    pub(crate) fn take_back(&mut self, mark: Mark) {
        self.reply.bytes.truncate(mark.bytes);
        self.noted = mark.bytes;
        self.pieces.truncate(mark.pieces);
    }

    /// Ends an answer: everything written since the last one, for command number `command` of the client in `slot`, which was
    /// executed at `now_ms`.
    pub(crate) fn end(&mut self, slot: usize, command: usize, now_ms: u64, writes: bool) {
        self.note_bytes();
        let pieces = self.first_piece..self.pieces.len();
        self.first_piece = pieces.end;
        self.all.push(PendingReply { slot, command, writes, now_ms, pieces });
    }

    /// Number of waiting answers.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes of waiting answers.
    pub(crate) fn bytes(&self) -> usize {
        self.reply.bytes.len()
    }

    /// Why an answer cannot be sent: one of its reads has failed. The answer of EXEC is sent nevertheless, with the
    /// error in place of the value.
    fn failed_read<'s>(&self, answer: &PendingReply, store: &'s Store) -> Option<&'s StoreError> {
        let pieces = self.pieces[answer.pieces.clone()].iter().filter(|_| !answer.writes);
        let reads = pieces.filter_map(|piece| match piece {
            Piece::Value { later, .. } => Some(*later),
            Piece::Bytes(_) => None,
        });
        reads.filter_map(|later| store.answer(later).err()).next()
    }

    /// Passes each answer, in order, to `send`: slot, command number, and a function that appends it to a buffer.
    pub(crate) fn deliver(&mut self, store: &Store, failure: Option<&StoreError>, send: Send) {
        for (number, answer) in self.all.iter().enumerate() {
            let failure = failure.or_else(|| store.failure_of(number));
            send(answer.slot, answer.command, &mut |reply| match failure {
                Some(error) if answer.writes => reply.error(&error.to_string()),
                _ => match self.failed_read(answer, store) {
                    Some(error) => reply.error(&error.to_string()),
                    None => self.pieces[answer.pieces.clone()].iter().for_each(|piece| match piece {
                        Piece::Bytes(bytes) => {
                            reply.bytes.extend_from_slice(&self.reply.bytes[bytes.clone()])
                        }
                        Piece::Value { later, strict, version } => match store.answer(*later) {
                            Ok(found) => {
                                reply.version = *version;
                                write_value(found, *strict, answer.now_ms, reply);
                            }
                            Err(error) => reply.error(&error.to_string()),
                        },
                    }),
                },
            });
        }
        self.all.clear();
        self.pieces.clear();
        self.reply.bytes.clear();
        if self.reply.bytes.capacity() > MOST_KEPT_BYTES {
            self.reply.bytes = Vec::new();
        }
        (self.noted, self.first_piece) = (0, 0);
    }
}

fn write_value(found: Option<&[u8]>, strict: bool, now_ms: u64, reply: &mut Reply) {
    match found.map(Row::parse) {
        None => reply.nil(),
        Some(None) => reply.error(&FOREIGN.to_string()),
        Some(Some(row)) if row.is_over(now_ms) => reply.nil(),
        Some(Some(Row { kind: Type::String, body, .. })) => reply.bulk(body),
        Some(Some(_)) if strict => reply.error(WRONG_TYPE),
        Some(Some(_)) => reply.nil(),
    }
}

/// Redis's text for a key of another type.
pub(crate) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
/// For a row that this server did not write.
pub(crate) const FOREIGN: Refusal =
    Refusal::Foreign("ERR the database contains a row that kvdyno serve did not write");

/// Executes a request of the client in `slot`; its answer is added to `call.answers`.
pub(crate) fn run(call: &mut Call, slot: usize) {
    call.answers.reply.version = call.client.version;
    let number = match number_of(&call.arguments) {
        Ok(number) => number,
        Err(refusal) => {
            refuse(call, &refusal.to_string());
            return call.answers.end(slot, usize::MAX, call.now_ms, false);
        }
    };
    let command = &commands::LIST[number];
    let arguments = call.arguments.len() as i32;
    let fits = if command.arity < 0 { arguments >= -command.arity } else { arguments == command.arity };
    let is_open = matches!(command.name, "AUTH" | "HELLO" | "QUIT" | "RESET");
    // The reply to a queued or refused command does not depend on a commit.
    let mut writes = false;
    if !call.client.is_trusted && !is_open {
        refuse(call, "NOAUTH Authentication required.");
    } else if !fits {
        let name = command.name.to_ascii_lowercase();
        let text = format!("wrong number of arguments for '{name}' command");
        if command.name == "EXEC" {
            call.client.end_transaction();
            call.answers.reply.error(&format!("EXECABORT Transaction discarded because of: {text}"));
        } else {
            refuse(call, &format!("ERR {text}"));
        }
    } else if call.client.queue.is_some() && command.effect == Effect::Alone {
        refuse(call, "ERR Command not allowed inside a transaction");
    } else if call.client.queue.is_some() && command.effect != Effect::Connection {
        enqueue(call);
    } else {
        call.client.facts.note(number, call.client.database, call.now_ms);
        answer(call, command);
        writes = command.effect == Effect::Writes || command.name == "EXEC";
    }
    call.answers.end(slot, number, call.now_ms, writes);
}

/// Runs the command; an error replaces its answer so far, and takes the place of its writes.
pub(crate) fn answer(call: &mut Call, command: &Command) {
    let mark = call.answers.mark();
    call.store.begin();
    if let Err(refusal) = (command.run)(call) {
        call.answers.take_back(mark);
        call.store.take_back();
        call.answers.reply.error(&refusal.to_string());
    }
}

/// Replies with an error; between MULTI and EXEC it also aborts the transaction.
fn refuse(call: &mut Call, text: &str) {
    if let Some(queue) = &mut call.client.queue {
        queue.is_broken = true;
    }
    call.answers.reply.error(text);
}

/// The largest transaction that can be queued, bytes.
const MOST_QUEUED_BYTES: usize = 256 << 20;

fn enqueue(call: &mut Call) {
    let Some(Queue { requests, bytes, is_broken }) = &mut call.client.queue else { return };
    let request: Vec<Vec<u8>> = call.arguments.iter().map(<[u8]>::to_vec).collect();
    *bytes += request.iter().map(|argument| argument.len() + 24).sum::<usize>();
    if *bytes > MOST_QUEUED_BYTES {
        *is_broken = true;
        requests.clear();
        call.answers.reply.error("ERR the transaction is too large");
        return;
    }
    requests.push(request);
    call.answers.reply.status("QUEUED");
}

impl Call<'_, '_> {
    /// The row of a key in the client's database.
    pub(crate) fn row(&self, key: &[u8]) -> Vec<u8> {
        key_row(self.client.database, key)
    }

    /// The reply that is being written.
    pub(crate) fn reply(&mut self) -> &mut Reply {
        &mut self.answers.reply
    }

    /// An argument.
    pub(crate) fn argument(&self, index: usize) -> Vec<u8> {
        self.arguments.get(index).to_vec()
    }
}
