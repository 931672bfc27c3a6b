//! A load generator's side of a connection to the hub.

use super::secret::{Secret, SecretError, nonce};
use super::wire::{
    Answer, Ask, BEAT, Broken, Frames, Greeting, Hello, Line, MOST_STRANGER, NAME, PATIENCE, Tell, VERSION,
};
use kvdyno_measure::start;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);
/// The maximum time of an attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The maximum time until load generator 0, which speaks first, has sent its greeting, and again until it has answered: another
/// program may use the port.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A place that cannot be found.
#[derive(Debug, thiserror::Error)]
#[error("--rendezvous {rendezvous}: {error}; expected HOST:PORT, such as 127.0.0.1:7707")]
pub struct NoSuchPlace {
    /// The place.
    pub rendezvous: String,
    /// The reason.
    pub error: io::Error,
}

/// Why a load generator has no connection to the hub.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The place where the load generators meet cannot be found.
    #[error(transparent)]
    NoSuchPlace(#[from] NoSuchPlace),
    /// Nothing listens there.
    #[error(
        "cannot reach load generator 0 at {rendezvous}: {last}; start load generator 0 with the same --rendezvous, an address that this \
         machine can reach"
    )]
    Unreachable {
        /// The place.
        rendezvous: String,
        /// Why the last attempt failed.
        last: String,
    },
    /// A new connection has failed.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The two sides do not belong together.
    #[error("{rendezvous}: {refusal}")]
    Refused {
        /// The place.
        rendezvous: String,
        /// Why.
        refusal: Refusal,
    },
    /// The thread that says that this side is alive cannot be started.
    #[error("{0}")]
    Thread(io::Error),
}

/// Why a load generator hears no more from the hub.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// The connection is broken.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The hub is silent.
    #[error("load generator 0 has said nothing for {} s", PATIENCE.as_secs())]
    Silent,
    /// The hub has said that a load generator is gone.
    #[error("load generator {load_generator}: {reason}")]
    Lost {
        /// The load generator.
        load_generator: u32,
        /// Why.
        reason: String,
    },
}

/// A connection whose hub has proven that it knows the secret. A thread says once a second that this side is alive.
pub(super) struct Connection {
    frames: Mutex<Frames>,
    line: Arc<Line>,
    is_over: Arc<AtomicBool>,
    beat: Option<JoinHandle<()>>,
}

impl Connection {
    /// Connects and proves the secret; messages may then have `most` bytes. Tries again for `patience`, because load generator 0 may start later. An error is final.
    pub(crate) fn open(
        rendezvous: &str,
        secret: &Secret,
        hello: Hello,
        most: usize,
        patience: Duration,
    ) -> Result<Connection, JoinError> {
        let until = Instant::now() + patience;
        let (line, mut frames) = loop {
            let stream = connected(rendezvous, until)?;
            let line = Arc::new(Line::new(&stream)?);
            let mut frames = Frames::new(stream, MOST_STRANGER);
            match introduce(&mut frames, &line, secret, &hello, HANDSHAKE) {
                Ok(()) => break (line, frames),
                // Too many strangers are connected, or load generator 0 is about to end.
                Err(Refusal::Broken(_)) if Instant::now() < until => std::thread::sleep(AGAIN),
                Err(refusal) => {
                    return Err(JoinError::Refused { rendezvous: rendezvous.to_string(), refusal });
                }
            }
        };
        frames.allow(most);
        let is_over = Arc::new(AtomicBool::new(false));
        let (beaten, over) = (Arc::clone(&line), Arc::clone(&is_over));
        let beat = start::thread_named("rendezvous", move || {
            while !over.load(Ordering::Acquire) && beaten.send(&Ask::Alive).is_ok() {
                std::thread::park_timeout(BEAT);
            }
        })
        .map_err(JoinError::Thread)?;
        Ok(Connection { frames: Mutex::new(frames), line, is_over, beat: Some(beat) })
    }

    pub(crate) fn send(&self, ask: &Ask) -> Result<(), Broken> {
        self.line.send(ask)
    }

    /// The next message other than that the hub is alive; `on_wait` is called about once a second until it comes. An error:
    /// the hub is gone.
    pub(crate) fn next(&self, on_wait: &mut dyn FnMut()) -> Result<Tell, Gone> {
        let never = || {
            on_wait();
            false
        };
        self.next_unless(never).map(|tell| tell.expect("the wait is never stopped"))
    }

    /// The same; none if `is_stopped`, which is called about once a second.
    pub(crate) fn next_unless(&self, mut is_stopped: impl FnMut() -> bool) -> Result<Option<Tell>, Gone> {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match frames.next(Instant::now() + BEAT)? {
                Some(Tell::Alive) => {}
                Some(tell) => return Ok(Some(tell)),
                None if frames.heard.elapsed() > PATIENCE => return Err(Gone::Silent),
                None => {}
            }
            if is_stopped() {
                return Ok(None);
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.line.close();
        if let Some(beat) = self.beat.take() {
            beat.thread().unpark();
            // It ends at the next message.
            let _ = beat.join();
        }
    }
}

/// The addresses of `HOST:PORT`.
pub(super) fn resolved(rendezvous: &str) -> Result<Vec<SocketAddr>, NoSuchPlace> {
    match rendezvous.to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(NoSuchPlace { rendezvous: rendezvous.to_string(), error }),
    }
}

fn connected(rendezvous: &str, until: Instant) -> Result<TcpStream, JoinError> {
    loop {
        let mut last = "no address".to_string();
        for address in resolved(rendezvous)? {
            match TcpStream::connect_timeout(&address, ATTEMPT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error.to_string(),
            }
        }
        if Instant::now() >= until {
            return Err(JoinError::Unreachable { rendezvous: rendezvous.to_string(), last });
        }
        std::thread::sleep(AGAIN);
    }
}

/// Why the two sides of a connection do not belong together.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The connection is broken; the only reason for another attempt.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The peer is silent.
    #[error(
        "no {what} within {} s: what listens there is not load generator 0, or it hangs; correct --rendezvous, or stop that program",
        limit.as_secs_f64()
    )]
    Silent {
        /// What it should have sent.
        what: &'static str,
        /// Within this time.
        limit: Duration,
    },
    /// The peer is another program, or has another version.
    #[error("what listens there is not the rendezvous of this version of kvdyno")]
    Stranger,
    /// The peer has not proven that it knows the secret.
    #[error("what listens there does not know the secret")]
    NoProof,
    /// This side cannot prove it.
    #[error(transparent)]
    Nonce(#[from] SecretError),
    /// Load generator 0 does not want this load generator, and says why.
    #[error("load generator 0 refuses this load generator: {0}")]
    Unwanted(String),
}

fn introduce(
    frames: &mut Frames,
    line: &Line,
    secret: &Secret,
    hello: &Hello,
    limit: Duration,
) -> Result<(), Refusal> {
    let silent = |what| Refusal::Silent { what, limit };
    let greeting = frames.next(Instant::now() + limit)?;
    let greeting: serde_json::Value = greeting.ok_or_else(|| silent("greeting"))?;
    let greeting: Greeting = serde_json::from_value(greeting).map_err(|_| Refusal::Stranger)?;
    if greeting.name != NAME || greeting.version != VERSION {
        return Err(Refusal::Stranger);
    }
    let nonce = nonce()?;
    let hello = Hello { version: VERSION, nonce, proof: String::new(), ..hello.clone() };
    let proven = hello.proven(&greeting.nonce);
    let parts: Vec<&str> = proven.iter().map(String::as_str).collect();
    let hello = Hello { proof: secret.proof(&parts), ..hello };
    line.send(&hello)?;
    let answer = frames.next(Instant::now() + limit)?;
    match answer.ok_or_else(|| silent("answer"))? {
        Answer::Welcome { proof } if secret.proves(&["hub", &hello.nonce, &greeting.nonce], &proof) => Ok(()),
        Answer::Welcome { .. } => Err(Refusal::NoProof),
        Answer::Refused { reason } => Err(Refusal::Unwanted(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_program_that_accepts_and_says_nothing_is_not_waited_for_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let line = Line::new(&stream).unwrap();
        let secret = Secret::new(b"a secret of this test only").unwrap();
        let hello = Hello {
            version: VERSION,
            nonce: String::new(),
            proof: String::new(),
            load_generator: 1,
            load_generators: 2,
            trial: None,
            plan: Vec::new(),
        };
        let limit = Duration::from_millis(100);
        match introduce(&mut Frames::new(stream, MOST_STRANGER), &line, &secret, &hello, limit) {
            Err(refusal @ Refusal::Silent { .. }) => {
                let text = refusal.to_string();
                assert!(text.starts_with("no greeting within 0.1 s: "), "{text}")
            }
            other => panic!("nobody has answered: {other:?}"),
        }
        drop(listener);
    }
}
