//! A minimal client of the Redis protocol, and servers that end with the test.

use super::command::required_engines;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Reports that something a test needs is not available, which CI does not allow.
pub fn is_absent(what: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs {what}");
    println!("skipped: {what} is not available");
}

/// The available engines among `names`. Every required engine must be available.
pub fn engines_here<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let out = Command::new(env!("CARGO_BIN_EXE_kvdyno")).args(["engines", "--json"]).output().unwrap();
    let engines: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let present: Vec<&str> = engines
        .as_array()
        .unwrap()
        .iter()
        .filter(|engine| engine["is_present"] == true)
        .map(|engine| engine["name"].as_str().unwrap())
        .collect();
    let required = required_engines();
    let is_here = |name: &&&str| {
        let is_here = present.contains(name);
        assert!(is_here || !required.contains(*name), "{name} is required and absent");
        is_here
    };
    names.iter().filter(is_here).copied().collect()
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Reply>),
    /// Pairs of RESP3.
    Map(Vec<Reply>),
    Set(Vec<Reply>),
    Double(String),
    /// Text of RESP3, after its format.
    Verbatim(Vec<u8>),
}

/// A connection.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        // If the server hangs, the test fails instead of hanging.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { reader: BufReader::new(stream) }
    }

    /// Sends raw bytes.
    pub fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Closes its direction of the connection.
    pub fn send_no_more(&mut self) {
        self.reader.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Whether the server has closed the connection, and sent nothing more before. One that it leaves open is not closed.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0]), Ok(0))
    }

    /// Sends requests without waiting for replies.
    pub fn send<W: AsRef<[u8]>>(&mut self, requests: &[Vec<W>]) {
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend_from_slice(format!("*{}\r\n", request.len()).as_bytes());
            for word in request {
                let word = word.as_ref();
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        self.send_raw(&bytes).unwrap();
    }

    /// Sends a request and reads its reply.
    pub fn ask(&mut self, words: &[&str]) -> Reply {
        self.send(&[words.to_vec()]);
        self.read().expect("the server has closed the connection")
    }

    /// The same; `None` if the server has closed the connection before.
    pub fn try_ask(&mut self, words: &[&str]) -> Option<Reply> {
        let mut bytes = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| bytes += &format!("${}\r\n{word}\r\n", word.len()));
        self.send_raw(bytes.as_bytes()).ok()?;
        self.read()
    }

    /// Reads a reply; `None` if the server has closed the connection.
    pub fn read(&mut self) -> Option<Reply> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).ok()?;
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r\n")?).into_owned();
        let (kind, rest) = text.split_at(1);
        let count = || rest.parse::<i64>().unwrap();
        Some(match kind {
            "+" => Reply::Status(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Integer(count()),
            "," => Reply::Double(rest.into()),
            "_" => Reply::Nil,
            "$" if count() < 0 => Reply::Nil,
            "$" | "=" => {
                let mut bytes = vec![0; count() as usize + 2];
                self.reader.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                if kind == "$" { Reply::Bulk(bytes) } else { Reply::Verbatim(bytes) }
            }
            "*" if count() < 0 => Reply::Nil,
            "*" => Reply::Array(self.many(count())?),
            "~" => Reply::Set(self.many(count())?),
            "%" => Reply::Map(self.many(2 * count())?),
            _ => panic!("no reply begins with {text:?}"),
        })
    }

    fn many(&mut self, count: i64) -> Option<Vec<Reply>> {
        (0..count).map(|_| self.read()).collect()
    }
}

/// A server's process; killed when the test ends.
pub struct Served {
    pub child: Child,
    pub address: SocketAddr,
}

impl Served {
    /// Starts `kvdyno serve` with these arguments, in `folder`, on a free port.
    pub fn start(folder: &Path, arguments: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
            .arg("serve")
            .args(arguments)
            .args(["--port", "0"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let from = said.len();
            let count = lines.read_line(&mut said).unwrap();
            assert!(count > 0, "no address in {said:?}");
            let words = said[from..].split_whitespace();
            let mut found = words.filter_map(|word| word.trim_end_matches(',').parse().ok());
            if let Some(address) = found.next() {
                break address;
            }
        };
        // Later output is discarded, but the pipe stays open.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Served { child, address }
    }

    /// Starts Debian's redis-server without persistence; `None` if it is not installed, which CI does not allow.
    pub fn redis(folder: &Path) -> Option<Served> {
        let has = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !has {
            is_absent("redis-server (apt-get install redis-server)");
            return None;
        }
        let start = |_| {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let child = Command::new("redis-server")
                .args([
                    "--port",
                    &port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ])
                .current_dir(folder)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let mut served = Served { child, address };
            while TcpStream::connect(address).is_err() {
                if served.child.try_wait().unwrap().is_some() {
                    return None;
                }
                std::thread::yield_now();
            }
            // Another process may have taken the port meanwhile.
            served.child.try_wait().unwrap().is_none().then_some(served)
        };
        Some((0..5).find_map(start).expect("redis-server does not start"))
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Resident memory of the server, bytes.
    pub fn rss_bytes(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    /// The highest resident memory since the start or the last `forget_peak`, bytes.
    pub fn peak_bytes(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }

    /// Measures the peak anew.
    pub fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// Kills it, as in a crash.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
