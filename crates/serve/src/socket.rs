//! Sockets on which clients connect: TCP ports, and Unix sockets with the files that belong to them.

use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A socket that accepts clients.
pub enum Listener {
    /// A TCP port.
    Tcp(mio::net::TcpListener),
    /// A Unix socket.
    Unix(UnixSocket),
}

impl Listener {
    /// Listens on a TCP port; 0 is any that is free.
    pub fn tcp(address: SocketAddr) -> io::Result<Listener> {
        Ok(Listener::Tcp(mio::net::TcpListener::bind(address)?))
    }

    /// Its address, as users write it.
    pub fn address(&self) -> io::Result<String> {
        match self {
            Listener::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Listener::Unix(socket) => Ok(socket.path.display().to_string()),
        }
    }

    /// A client that waits, and its address.
    pub fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), peer.to_string()))
            }
            Listener::Unix(socket) => {
                let (stream, _) = socket.listener.accept()?;
                // As Redis writes it.
                Ok((Stream::Unix(stream), format!("{}:0", socket.path.display())))
            }
        }
    }

    /// Where it reports clients that wait.
    pub fn register(&mut self, registry: &Registry) -> io::Result<()> {
        let source: &mut dyn Source = match self {
            Listener::Tcp(listener) => listener,
            Listener::Unix(socket) => &mut socket.listener,
        };
        source.register(registry, Token(0), Interest::READABLE)
    }
}

/// A client's connection, which never blocks.
pub enum Stream {
    /// Over TCP.
    Tcp(mio::net::TcpStream),
    /// Over a Unix socket.
    Unix(mio::net::UnixStream),
}

impl Stream {
    /// What reports when bytes have arrived or more can be sent.
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The contents of the lock file of a socket.
const MARKER: &str = "kvdyno serve\n";

/// A Unix socket whose path is removed with it. Whether a socket that is already at the path belongs to a server that was
/// killed, and may be replaced, is known from a file beside it: the server keeps it locked, so the kernel releases it.
pub struct UnixSocket {
    listener: mio::net::UnixListener,
    path: PathBuf,
    /// Device and inode: what is at the path later may be another's.
    identity: (u64, u64),
    _lock: Lock,
}

/// The lock beside a socket; removed when it is dropped.
struct Lock {
    file: File,
    path: PathBuf,
    /// A server before has left it.
    is_left: bool,
}

/// Why a Unix socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another server listens on it.
    #[error("another server listens on {}", .0.display())]
    InUse(PathBuf),
    /// Something else has its path.
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// Another program has created it.
    #[error("{} is a socket that `kvdyno serve` did not create", .0.display())]
    Foreign(PathBuf),
    /// Another program has created its lock file.
    #[error("{} exists and is not a file of `kvdyno serve`", .0.display())]
    ForeignLock(PathBuf),
    /// The machine has refused the socket or its lock file.
    #[error("cannot {what} {}: {error}", path.display())]
    Refused {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
}

impl UnixSocket {
    /// Listens at `path`. Fails with the reason if something is there that is not the socket of a killed server.
    pub fn bind(path: &Path) -> Result<UnixSocket, SocketError> {
        let failed = |error| SocketError::Refused { what: "listen on", path: path.to_path_buf(), error };
        let in_use = || SocketError::InUse(path.to_path_buf());
        let lock = Lock::take(path)?.ok_or_else(in_use)?;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(SocketError::NotASocket(path.to_path_buf()));
            }
            Ok(_) if UnixStream::connect(path).is_ok() => return Err(in_use()),
            Ok(_) if !lock.is_left => {
                return Err(SocketError::Foreign(path.to_path_buf()));
            }
            Ok(_) => fs::remove_file(path).map_err(failed)?,
        }
        let listener = mio::net::UnixListener::bind(path).map_err(failed)?;
        let made = fs::symlink_metadata(path).map_err(failed)?;
        Ok(UnixSocket { listener, path: path.to_path_buf(), identity: identity(&made), _lock: lock })
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Lock {
    /// Takes the lock of a socket; `None` if a server holds it.
    fn take(socket: &Path) -> Result<Option<Lock>, SocketError> {
        let mut name = socket.as_os_str().to_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let failed = |error| SocketError::Refused { what: "use", path: path.clone(), error };
        loop {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            let file = options.open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // A server that has ended in the meantime has removed the file that is locked now.
            let ours = file.metadata().map_err(failed)?;
            if !fs::symlink_metadata(&path).is_ok_and(|found| identity(&found) == identity(&ours)) {
                continue;
            }
            let is_left = ours.len() > 0;
            let mut text = String::new();
            let is_marker = (&file).take(64).read_to_string(&mut text).is_ok() && text == MARKER;
            if is_left && !is_marker {
                return Err(SocketError::ForeignLock(path));
            }
            let lock = Lock { file, path: path.clone(), is_left };
            if !is_left {
                (&lock.file).write_all(MARKER.as_bytes()).map_err(failed)?;
            }
            return Ok(Some(lock));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the lock is released, so that no other server has the file.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_and_its_lock_are_gone_when_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = UnixSocket::bind(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        let text = UnixSocket::bind(&path).err().unwrap().to_string();
        assert!(text.starts_with("another server listens on "), "{text}");
        drop(socket);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_the_socket_of_a_killed_server_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let refusal = |path: &Path| UnixSocket::bind(path).err().unwrap().to_string();
        fs::write(&path, "data").unwrap();
        assert!(refusal(&path).ends_with("exists and is not a socket"), "{}", refusal(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(refusal(&path).ends_with("exists and is not a socket"));
        fs::remove_file(&path).unwrap();
        // The stale socket of another program.
        drop(UnixListener::bind(&path).unwrap());
        assert!(refusal(&path).ends_with("is a socket that `kvdyno serve` did not create"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the socket, and no lock");
        // What a killed server leaves.
        let lock = folder.path().join("socket.lock");
        fs::write(&lock, MARKER).unwrap();
        drop(UnixSocket::bind(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // Another program listens where a killed server did.
        let other = UnixListener::bind(&path).unwrap();
        fs::write(&lock, MARKER).unwrap();
        assert!(refusal(&path).starts_with("another server listens on "));
        drop(other);
        fs::write(&lock, "text").unwrap();
        assert!(refusal(&path).ends_with("is not a file of `kvdyno serve`"));
        assert_eq!(fs::read_to_string(&lock).unwrap(), "text");
    }

    #[test]
    fn what_has_replaced_a_socket_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = UnixSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "data").unwrap();
        drop(socket);
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }
}
