//! An endpoint for Prometheus: what is known of the run at this moment, as text over HTTP.
//!
//! Each connection has a thread of its own and a few seconds. When all places are taken the oldest is closed, so clients
//! that are slow, or say nothing, keep nobody else out; and none of them holds the state for longer than it takes to write
//! its figures into memory.

mod text;

use super::state::State;
use super::{Shared, locked};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections at once.
const PLACES: usize = 16;
/// The time that a client has for its request, and then for its answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest request.
const REQUEST_BYTES: usize = 8 << 10;

/// `9187`, `127.0.0.1:9187`, `[::1]:9187` or `localhost:9187`.
pub fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return Some((Ipv4Addr::LOCALHOST, port).into());
    }
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| (IpAddr::from(Ipv4Addr::LOCALHOST), port).into()),
        None => text.parse().ok(),
    }
}

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
}

/// The connections that are open, the oldest first.
type Open = Arc<Mutex<VecDeque<(u64, TcpStream)>>>;

impl Server {
    pub(super) fn start(address: SocketAddr, state: Shared) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ends);
        std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || accept(&listener, &state, &has_ended))?;
        Ok(Server { address, ends })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // It waits for a connection, and this is one. If it cannot be made, the thread ends with the process.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(200));
    }
}

fn accept(listener: &TcpListener, state: &Shared, ends: &AtomicBool) {
    let open: Open = Arc::default();
    for number in 0_u64.. {
        let Ok((stream, _)) = listener.accept() else {
            // No descriptor is free, say: later there may be one.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if ends.load(Ordering::Acquire) {
            return;
        }
        let Ok(copy) = stream.try_clone() else { continue };
        {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            if open.len() >= PLACES
                && let Some((_, oldest)) = open.pop_front()
            {
                let _ = oldest.shutdown(Shutdown::Both);
            }
            open.push_back((number, copy));
        }
        let (state, place) = (Arc::clone(state), Arc::clone(&open));
        let spawned = std::thread::Builder::new().name("metrics client".into()).spawn(move || {
            // A client that is gone is no matter.
            let _ = answer(stream, &state);
            leave(&place, number);
        });
        if spawned.is_err() {
            leave(&open, number);
        }
    }
}

fn leave(open: &Open, number: u64) {
    open.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != number);
}

fn answer(mut stream: TcpStream, state: &Shared) -> io::Result<()> {
    let head = read_head(&mut stream)?;
    let mut words = head.lines().next().unwrap_or("").split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", figures(&locked(state))),
        ("GET" | "HEAD", _) => ("404 Not Found", "the figures are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "only GET and HEAD\n".to_string()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let body = if method == "HEAD" { "" } else { &body };
    write_all(&mut stream, (head + body).as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

fn figures(state: &State) -> String {
    text::figures(state)
}

/// What is left until `end`, for the next wait.
fn until(end: Instant) -> io::Result<Duration> {
    let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let end = Instant::now() + PATIENCE;
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        stream.set_read_timeout(Some(until(end)?))?;
        let count = stream.read(&mut piece)?;
        head.extend(&piece[..count]);
        if count == 0 || head.len() > REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(until(end)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
