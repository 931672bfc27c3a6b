//! The address and user of a server: the option `url`.

use kvdyno_driver::Error;
use std::fmt;
use std::path::PathBuf;

/// The port of a URL without one.
const PORT: u16 = 6379;
const FORMS: &str = "expected redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE], the same with rediss:// for TLS, or \
                     unix:///PATH[?db=DATABASE]";

/// How the server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tcp { host: String, port: u16, is_tls: bool },
    Unix(PathBuf),
}

/// A parsed URL. It is printed without the password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub place: Place,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        match &self.place {
            Place::Tcp { host, port, is_tls } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                let scheme = if *is_tls { "rediss" } else { "redis" };
                write!(out, "{scheme}://{user}{host}:{port}/{}", self.database)
            }
            Place::Unix(path) => write!(out, "unix://{user}{}?db={}", path.display(), self.database),
        }
    }
}

impl Address {
    /// A server on this machine that the driver has started.
    pub fn local(port: u16, password: Option<String>) -> Address {
        Address::at("127.0.0.1", port, password)
    }

    /// The same, at another address of the loopback interface.
    pub fn at(host: &str, port: u16, password: Option<String>) -> Address {
        let place = Place::Tcp { host: host.into(), port, is_tls: false };
        Address { place, user: None, password, database: 0 }
    }

    /// Another node of the same cluster. A node that does not know its own address names none.
    pub fn beside(&self, host: &str, port: u16) -> Address {
        let (own, is_tls) = match &self.place {
            Place::Tcp { host, is_tls, .. } => (host.as_str(), *is_tls),
            Place::Unix(_) => ("127.0.0.1", false),
        };
        let host = if host.is_empty() || host == "?" { own } else { host };
        Address { place: Place::Tcp { host: host.into(), port, is_tls }, ..self.clone() }
    }

    /// Host and port; a socket in the file system has none.
    pub fn host_port(&self) -> (String, u16) {
        match &self.place {
            Place::Tcp { host, port, .. } => (host.clone(), *port),
            Place::Unix(_) => (String::new(), 0),
        }
    }

    /// Parses a URL. The error never repeats it, because it may contain a password.
    pub fn parse(url: &str) -> Result<Address, Error> {
        let wrong = |what: &str| Error::new(format!("option url: {what}; {FORMS}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => (decoded(user)?, decoded(password)?),
            None => (None, None),
        };
        let number = |text: &str| text.parse().map_err(|_| wrong("the database is not a number"));
        if scheme == "unix" {
            let (path, query) = rest.split_once('?').unwrap_or((rest, "db=0"));
            let database = number(query.strip_prefix("db=").ok_or_else(|| wrong("unknown query"))?)?;
            if !path.starts_with('/') {
                return Err(wrong("the socket's path is not absolute"));
            }
            return Ok(Address { place: Place::Unix(path.into()), user, password, database });
        }
        let is_tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(wrong("unknown scheme")),
        };
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = if database.is_empty() { 0 } else { number(database)? };
        let (host, port) = match server.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => server.split_once(':').map_or((server, None), |(host, port)| (host, Some(port))),
        };
        let port =
            port.map_or(Ok(PORT), |port| port.parse().map_err(|_| wrong("the port is not a number")))?;
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        Ok(Address { place: Place::Tcp { host: host.into(), port, is_tls }, user, password, database })
    }

    /// In the form of other programs: `127.0.0.1:6379`.
    pub fn host_and_port(&self) -> String {
        match &self.place {
            Place::Tcp { host, port, .. } => format!("{host}:{port}"),
            Place::Unix(path) => path.display().to_string(),
        }
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        match &self.place {
            Place::Unix(_) => true,
            Place::Tcp { host, .. } => {
                host == "localhost"
                    || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

/// Decodes `%40` and the like; without any input: empty.
pub(super) fn decoded(text: &str) -> Result<Option<String>, Error> {
    let wrong = || {
        Error::new(
            "option url: after a % in user or password two hexadecimal digits must follow, and the result must be UTF-8",
        )
    };
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
