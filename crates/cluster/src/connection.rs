//! A rank's side of a connection to the hub.

use super::secret::{Secret, nonce};
use super::wire::{
    Answer, Ask, BEAT, Frames, Greeting, Hello, Line, MOST_STRANGER, NAME, PATIENCE, Tell, VERSION,
};
use kvdyno_measure::start;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);
/// The maximum time of an attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The maximum time until rank 0, which speaks first, has sent its greeting, and again until it has answered: another program may
/// use the port.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A connection whose hub has proven that it knows the secret. A thread says once a second that this side is alive.
pub(super) struct Connection {
    frames: Mutex<Frames>,
    line: Arc<Line>,
    is_over: Arc<AtomicBool>,
    beat: Option<JoinHandle<()>>,
}

impl Connection {
    /// Connects and proves the secret; tries again for `patience`, because rank 0 may start later. An error is final.
    pub fn open(
        rendezvous: &str,
        secret: &Secret,
        hello: Hello,
        (most, patience): (usize, Duration),
    ) -> Result<Connection, String> {
        let until = Instant::now() + patience;
        let (line, mut frames) = loop {
            let stream = connected(rendezvous, until)?;
            let line = Arc::new(Line::new(&stream)?);
            let mut frames = Frames::new(stream, MOST_STRANGER);
            match introduce(&mut frames, &line, secret, &hello, HANDSHAKE) {
                Ok(()) => break (line, frames),
                // Too many strangers are connected, or rank 0 is about to end.
                Err(Refusal::Broken(_)) if Instant::now() < until => std::thread::sleep(AGAIN),
                Err(Refusal::Broken(reason) | Refusal::Final(reason)) => {
                    return Err(format!("{rendezvous}: {reason}"));
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
        .map_err(|error| error.to_string())?;
        Ok(Connection { frames: Mutex::new(frames), line, is_over, beat: Some(beat) })
    }

    pub fn send(&self, ask: &Ask) -> Result<(), String> {
        self.line.send(ask)
    }

    /// The next message other than that the hub is alive; `on_wait` is called about once a second until it comes. An error:
    /// the hub is gone.
    pub fn next(&self, on_wait: &mut dyn FnMut()) -> Result<Tell, String> {
        let never = || {
            on_wait();
            false
        };
        self.next_unless(never).map(|tell| tell.expect("the wait is never stopped"))
    }

    /// The same; none if `is_stopped`, which is called about once a second.
    pub fn next_unless(&self, mut is_stopped: impl FnMut() -> bool) -> Result<Option<Tell>, String> {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match frames.next(Instant::now() + BEAT)? {
                Some(Tell::Alive) => {}
                Some(tell) => return Ok(Some(tell)),
                None if frames.heard.elapsed() > PATIENCE => {
                    return Err(format!("rank 0 has said nothing for {} s", PATIENCE.as_secs()));
                }
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
pub(super) fn resolved(rendezvous: &str) -> Result<Vec<SocketAddr>, String> {
    let found = rendezvous.to_socket_addrs().map_err(|error| {
        format!("--rendezvous {rendezvous}: {error}; expected HOST:PORT, such as 127.0.0.1:7707")
    })?;
    Ok(found.collect())
}

fn connected(rendezvous: &str, until: Instant) -> Result<TcpStream, String> {
    loop {
        let mut last = "no address".to_string();
        for address in resolved(rendezvous)? {
            match TcpStream::connect_timeout(&address, ATTEMPT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error.to_string(),
            }
        }
        if Instant::now() >= until {
            return Err(format!(
                "cannot reach rank 0 at {rendezvous}: {last}; start rank 0 with the same --rendezvous, an address that this \
                 machine can reach"
            ));
        }
        std::thread::sleep(AGAIN);
    }
}

/// Why a connection was not made.
enum Refusal {
    /// It was closed.
    Broken(String),
    /// The peer is silent, is not the right one, or does not want this rank.
    Final(String),
}

fn introduce(
    frames: &mut Frames,
    line: &Line,
    secret: &Secret,
    hello: &Hello,
    limit: Duration,
) -> Result<(), Refusal> {
    let silent = |what: &str| {
        Refusal::Final(format!(
            "no {what} within {} s: what listens there is not rank 0, or it hangs; correct --rendezvous, or stop that program",
            limit.as_secs_f64()
        ))
    };
    let stranger = || {
        let text = "what listens there is not the rendezvous of this version of kvdyno";
        Refusal::Final(text.to_string())
    };
    let greeting = frames.next(Instant::now() + limit).map_err(Refusal::Broken)?;
    let greeting: serde_json::Value = greeting.ok_or_else(|| silent("greeting"))?;
    let greeting: Greeting = serde_json::from_value(greeting).map_err(|_| stranger())?;
    if greeting.name != NAME || greeting.version != VERSION {
        return Err(stranger());
    }
    let nonce = nonce().map_err(Refusal::Final)?;
    let hello = Hello { version: VERSION, nonce, proof: String::new(), ..hello.clone() };
    let proven = hello.proven(&greeting.nonce);
    let parts: Vec<&str> = proven.iter().map(String::as_str).collect();
    let hello = Hello { proof: secret.proof(&parts), ..hello };
    line.send(&hello).map_err(Refusal::Broken)?;
    let answer = frames.next(Instant::now() + limit).map_err(Refusal::Broken)?;
    match answer.ok_or_else(|| silent("answer"))? {
        Answer::Welcome { proof } if secret.proves(&["hub", &hello.nonce, &greeting.nonce], &proof) => Ok(()),
        Answer::Welcome { .. } => {
            Err(Refusal::Final("what listens there does not know the secret".to_string()))
        }
        Answer::Refused { reason } => Err(Refusal::Final(format!("rank 0 refuses this rank: {reason}"))),
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
            rank: 1,
            ranks: 2,
            trial: None,
            plan: Vec::new(),
        };
        let limit = Duration::from_millis(100);
        match introduce(&mut Frames::new(stream, MOST_STRANGER), &line, &secret, &hello, limit) {
            Err(Refusal::Final(reason)) => {
                assert!(reason.starts_with("no greeting within 0.1 s: "), "{reason}")
            }
            Err(Refusal::Broken(reason)) => panic!("it would be tried again: {reason}"),
            Ok(()) => panic!("nobody has answered"),
        }
        drop(listener);
    }
}
