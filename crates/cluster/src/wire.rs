//! Messages: four bytes of length, most significant first, then JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The version of the messages.
pub(super) const VERSION: u32 = 4;
/// What the greeting of a hub begins with.
pub(super) const NAME: &str = "kvdyno rendezvous";
/// The maximum message of a peer that has not proven the secret, bytes.
pub(super) const MOST_STRANGER: usize = 8 << 10;
/// The maximum message in a trial, bytes.
pub(super) const MOST_TRIAL: usize = 64 << 10;
/// The maximum message in a run, bytes: the record of a trial.
pub(super) const MOST_RUN: usize = 1 << 30;
/// A peer that says nothing for this long is gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How often each side says that it is alive.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// The maximum time of a write.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The hub's first words.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub name: String,
    pub version: u32,
    pub nonce: String,
}

/// Who connects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub version: u32,
    pub load_generator: u32,
    /// The number of load generators: of the run, or of the trial.
    pub load_generators: u32,
    /// The trial; none: the connection of the run.
    pub trial: Option<String>,
    /// What must be equal in all load generators.
    pub plan: super::PlanParts,
    pub nonce: String,
    pub proof: String,
}

impl Hello {
    /// What the proof covers: everything that is said.
    pub(crate) fn proven(&self, nonce: &str) -> Vec<String> {
        let Hello { version, load_generator, load_generators, trial, plan, nonce: own, .. } = self;
        vec![
            "rank".to_string(),
            nonce.to_string(),
            own.clone(),
            format!("{version} {load_generator} {load_generators} {trial:?} {plan:?}"),
        ]
    }
}

/// The hub's answer to a hello.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Welcome { proof: String },
    Refused { reason: String },
}

/// From a load generator to the hub.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Alive,
    /// What time is it?
    Time {
        number: u64,
    },
    /// Waits until all load generators are at this gate.
    Meet {
        gate: String,
        /// What load generator 0 tells the others there.
        note: String,
    },
    /// Waits for all load generators and a common start.
    Start {
        gate: String,
    },
    /// All threads of the phase have ended.
    Ended {
        gate: String,
    },
    /// The trial has failed.
    Failed {
        reason: String,
    },
    /// The trial has ended well.
    Leave,
    /// The record of a trial, as JSON.
    Record {
        trial: String,
        record: String,
    },
}

/// From the hub to a load generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Tell {
    Alive,
    /// The hub's time, nanoseconds since 1970.
    Time {
        number: u64,
        at_ns: u64,
    },
    Met {
        gate: String,
        /// What load generator 0 has said there.
        note: String,
    },
    /// The phase starts at this time of the hub.
    Go {
        gate: String,
        at_ns: u64,
    },
    /// A load generator has ended the phase.
    Stop {
        gate: String,
    },
    /// All load generators have ended it.
    Over {
        gate: String,
    },
    Lost {
        load_generator: u32,
        reason: String,
    },
    /// The outcome of a trial in all load generators, as JSON.
    Outcome {
        trial: String,
        outcome: String,
        /// Why the run ends with this trial; none: it goes on.
        broken: Option<String>,
    },
}

/// Why a connection carries no more messages.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The system reports it.
    #[error("the connection failed: {0}")]
    Failed(#[from] io::Error),
    /// The peer has closed it.
    #[error("the connection was closed")]
    Closed,
    /// A message of the peer is too long.
    #[error("a message of {bytes} bytes; at most {most} are accepted")]
    Long {
        /// Its length.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
    /// A message of the peer is not one that is expected.
    #[error("a message cannot be read: {0}")]
    Unreadable(serde_json::Error),
    /// An own message cannot be written as JSON.
    #[error("{0}")]
    Unwritable(serde_json::Error),
    /// An own message is too long for its head.
    #[error("a message of more than 4 GiB")]
    TooLong,
}

/// Reads messages from a stream. Memory grows with the bytes that have arrived and never with an announced length.
pub(super) struct Frames {
    stream: TcpStream,
    bytes: Vec<u8>,
    most: usize,
    /// When something last arrived.
    pub heard: Instant,
}

impl Frames {
    pub(crate) fn new(stream: TcpStream, most: usize) -> Frames {
        Frames { stream, bytes: Vec::new(), most, heard: Instant::now() }
    }

    /// Allows larger messages, once the peer is known.
    pub(crate) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// The next message; none if `until` is reached first. An error says why there will be no more.
    pub(crate) fn next<Message: DeserializeOwned>(
        &mut self,
        until: Instant,
    ) -> Result<Option<Message>, Broken> {
        loop {
            if let Some(bytes) = self.take()? {
                return serde_json::from_slice(&bytes).map(Some).map_err(Broken::Unreadable);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.receive(left)?;
        }
    }

    fn take(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let Some((head, _)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > self.most {
            return Err(Broken::Long { bytes: length, most: self.most });
        }
        if self.bytes.len() < 4 + length {
            return Ok(None);
        }
        let message = self.bytes[4..4 + length].to_vec();
        self.bytes.drain(..4 + length);
        Ok(Some(message))
    }

    fn receive(&mut self, limit: Duration) -> Result<(), Broken> {
        self.stream.set_read_timeout(Some(limit.max(Duration::from_micros(100))))?;
        let mut piece = [0_u8; PIECE];
        match self.stream.read(&mut piece) {
            Ok(0) => Err(Broken::Closed),
            Ok(count) => {
                self.bytes.extend_from_slice(&piece[..count]);
                self.heard = Instant::now();
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
                _ => Err(error.into()),
            },
        }
    }
}

/// The writing side of a connection, for several threads. Messages arrive in the order in which they were queued.
pub(super) struct Line {
    queued: Mutex<VecDeque<Vec<u8>>>,
    stream: Mutex<TcpStream>,
}

impl Line {
    pub(crate) fn new(stream: &TcpStream) -> Result<Line, Broken> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_LIMIT))?;
        let stream = Mutex::new(stream.try_clone()?);
        Ok(Line { queued: Mutex::default(), stream })
    }

    /// Appends a message, which the next [`Line::flush`] of any thread sends. It waits for nothing, so that whoever holds a
    /// lock can fix the order of messages.
    pub(crate) fn queue<Message: Serialize>(&self, message: &Message) -> Result<(), Broken> {
        let mut bytes = vec![0; 4];
        serde_json::to_writer(&mut bytes, message).map_err(Broken::Unwritable)?;
        let length = u32::try_from(bytes.len() - 4).map_err(|_| Broken::TooLong)?;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).push_back(bytes);
        Ok(())
    }

    /// Sends what is queued. After an error the connection is closed, because a part of a message may have been sent.
    pub(crate) fn flush(&self) -> Result<(), Broken> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let next = self.queued.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(bytes) = next else { return Ok(()) };
            if let Err(error) = stream.write_all(&bytes) {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return Err(error.into());
            }
        }
    }

    pub(crate) fn send<Message: Serialize>(&self, message: &Message) -> Result<(), Broken> {
        self.queue(message)?;
        self.flush()
    }

    /// Ends the connection for both sides.
    pub(crate) fn close(&self) {
        // It may be closed already.
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}
