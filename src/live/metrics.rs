//! An endpoint for Prometheus: the current metrics of the run, as text over HTTP.
//!
//! Each connection has its own thread and a timeout of a few seconds. If too many connections are open, the oldest is
//! closed, so slow or silent clients do not block others. A client locks the state only while the metrics are written into
//! memory.

mod text;

use super::state::State;
use super::{Shared, locked};
use kvdyno_measure::start;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of open connections.
const PLACES: usize = 16;
/// The timeout for a client's request, and again for the response.
const PATIENCE: Duration = Duration::from_secs(3);
/// The maximum size of a request.
const REQUEST_BYTES: usize = 8 << 10;

/// Parses `9187`, `127.0.0.1:9187`, `[::1]:9187` or `localhost:9187`.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return Some((Ipv4Addr::LOCALHOST, port).into());
    }
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| (IpAddr::from(Ipv4Addr::LOCALHOST), port).into()),
        None => text.parse().ok(),
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
}

/// The open connections, the oldest first.
type Open = Arc<Mutex<VecDeque<(u64, TcpStream)>>>;

impl Server {
    pub(super) fn start(address: SocketAddr, state: Shared) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ends);
        start::thread_named("metrics", move || accept(&listener, &state, &has_ended))?;
        Ok(Server { address, ends })
    }

    /// The address that the server listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // The thread waits for a connection, so this one wakes it. If the connection fails, the thread ends with the process.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(200));
    }
}

fn accept(listener: &TcpListener, state: &Shared, ends: &AtomicBool) {
    let open: Open = Arc::default();
    for number in 0_u64.. {
        let Ok((stream, _)) = listener.accept() else {
            // For example, no file descriptor is free. Try again later.
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
        let spawned = start::thread_named("metrics client", move || {
            // It does not matter if the client has disconnected.
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
        ("GET" | "HEAD", _) => ("404 Not Found", "not found; the metrics are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "method not allowed; use GET or HEAD\n".to_string()),
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

/// The time until `end`, for the next wait.
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
