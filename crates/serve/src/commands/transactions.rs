//! MULTI, EXEC, DISCARD, WATCH: a client's transaction is a transaction of the engine.

use super::LIST;
use super::access::fits;
use super::connection::database_of;
use super::keys::copy_options;
use crate::client::{Queue, Watched};
use crate::command::{self, Call, Effect, Refusal};
use crate::error::StoreError;
use crate::parse::Arguments;
use crate::record::key_row;
use kvdyno_core::engine::abi::KV_TRANSACTION;

pub(super) fn multi(call: &mut Call) -> Result<(), Refusal> {
    if call.client.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    call.client.queue = Some(Queue::default());
    call.reply().ok();
    Ok(())
}

pub(super) fn discard(call: &mut Call) -> Result<(), Refusal> {
    call.client.queue.as_ref().ok_or("ERR DISCARD without MULTI")?;
    call.client.end_transaction();
    call.reply().ok();
    Ok(())
}

pub(super) fn watch(call: &mut Call) -> Result<(), Refusal> {
    if call.client.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    // This thread's uncommitted writes would count as changes by others.
    call.store.commit();
    for key in call.arguments.from(1).iter() {
        let row = call.row(key);
        // As it was at the first WATCH.
        if call.client.watched.contains_key(&row) {
            continue;
        }
        let commits = call.store.commits_of(&row);
        // After the count: a write in between counts as a change.
        let expires_ms = call.load(&row)?.and_then(|held| held.expires_ms);
        call.client.watched.insert(row, Watched { commits, expires_ms });
    }
    call.reply().ok();
    Ok(())
}

pub(super) fn unwatch(call: &mut Call) -> Result<(), Refusal> {
    call.client.watched.clear();
    call.reply().ok();
    Ok(())
}

/// A queued request in the form that the parser returns.
struct Request {
    bytes: Vec<u8>,
    spans: Vec<std::ops::Range<usize>>,
}

impl Request {
    fn new(words: &[Vec<u8>]) -> Request {
        let mut request = Request { bytes: Vec::new(), spans: Vec::new() };
        for word in words {
            let start = request.bytes.len();
            request.bytes.extend_from_slice(word);
            request.spans.push(start..request.bytes.len());
        }
        request
    }

    fn arguments(&self) -> Arguments<'_> {
        Arguments::of(&self.bytes, &self.spans)
    }
}

/// Executes the queued commands: all their keys are locked first, so that no other client changes one in between, and
/// the writes are one transaction of the engine.
pub(super) fn exec(call: &mut Call) -> Result<(), Refusal> {
    let queue = call.client.queue.take().ok_or("ERR EXEC without MULTI")?;
    let watched = std::mem::take(&mut call.client.watched);
    if queue.is_broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    let requests: Vec<Request> = queue.requests.into_iter().map(|words| Request::new(&words)).collect();
    let numbers = requests.iter().filter_map(|request| command::number_of(&request.arguments()).ok());
    let commands: Vec<_> = numbers.map(|number| &LIST[number]).collect();
    let writes = commands.iter().any(|command| command.effect == Effect::Writes);
    if writes && requests.len() > 1 && call.store.engine().capabilities & KV_TRANSACTION == 0 {
        return Err(StoreError::Lacks { what: "MULTI", capability: "transaction" }.into());
    }
    // From here on the commit contains only this transaction.
    call.store.commit();
    if let Some(error) = call.store.failure() {
        // It remains, because the writes that have failed are those of other requests.
        return Err(error.clone().into());
    }
    let mut rows: Vec<Vec<u8>> = watched.keys().cloned().collect();
    let mut database = call.client.database;
    for (command, request) in commands.iter().zip(&requests) {
        let arguments = request.arguments();
        if command.name == "SELECT" {
            database = database_of(arguments.get(1)).unwrap_or(database);
        }
        rows.extend(command.keys_of(&arguments).into_iter().map(|key| key_row(database, key)));
        if command.name == "COPY"
            && let Ok((to, _)) = copy_options(&arguments, database)
        {
            rows.push(key_row(to, arguments.get(2)));
        }
    }
    call.lock(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let now_ms = call.now_ms;
    if watched.iter().any(|(row, watched)| watched.has_changed(call.store.commits_of(row), now_ms)) {
        call.store.abandon();
        call.reply().nil_array();
        return Ok(());
    }
    let before = call.answers.bytes();
    call.reply().array(requests.len());
    for (command, request) in commands.iter().zip(&requests) {
        // Each time, because FLUSHALL commits.
        call.store.make_atomic();
        let mut inner = Call {
            arguments: request.arguments(),
            client: &mut *call.client,
            store: &mut *call.store,
            answers: &mut *call.answers,
            server: call.server,
            now_ms: call.now_ms,
            is_queued: true,
        };
        command::answer(&mut inner, command);
        if let Err(error) = fits(call.answers.bytes() - before) {
            call.store.abandon();
            return Err(error.into());
        }
    }
    drop(requests);
    call.store.commit();
    match call.store.take_failure() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
