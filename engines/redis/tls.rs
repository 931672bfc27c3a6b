//! TLS for `rediss://`: rustls with ring, and certificates from PEM files.

use super::address::Address;
use super::wire::{Socket, Stream, seconds};
use kvdyno_driver::Error;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The usual files of trusted system certificates.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Files that the options name; an empty name means no file.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// Trusted certificates; without one: those of the system.
    pub authority: String,
    /// The client's certificate, for servers that require one.
    pub certificate: String,
    pub key: String,
}

fn failed(file: &str, error: impl std::fmt::Display) -> Error {
    Error::new(format!("TLS: {file}: {error}"))
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = CertificateDer::pem_file_iter(file).map_err(|error| failed(file, error))?;
    all.collect::<Result<Vec<_>, _>>().map_err(|error| failed(file, error))
}

fn config(files: &Files) -> Result<ClientConfig, Error> {
    let system = SYSTEM.into_iter().find(|file| Path::new(file).exists());
    let authority = if files.authority.is_empty() { system } else { Some(files.authority.as_str()) };
    let authority = authority.ok_or_else(|| {
        Error::new("TLS: cannot find this system's certificates; name a file with the option ca-file")
    })?;
    let mut roots = RootCertStore::empty();
    // Some certificates of a system's bundle are of obsolete kinds.
    let (added, _) = roots.add_parsable_certificates(certificates(authority)?);
    if added == 0 {
        return Err(failed(authority, "it has no certificate"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(authority, error))?
        .with_root_certificates(roots);
    match (files.certificate.as_str(), files.key.as_str()) {
        ("", "") => Ok(config.with_no_client_auth()),
        ("", _) | (_, "") => Err(Error::new("TLS: use the options cert-file and key-file together")),
        (certificate, key) => {
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error))?;
            let own = certificates(certificate)?;
            config.with_client_auth_cert(own, private).map_err(|error| failed(certificate, error))
        }
    }
}

/// The handshake of a connection to `host`; `limit` is the time of the socket for all of it.
pub(super) fn wrap(
    mut socket: Socket<TcpStream>,
    address: &Address,
    host: &str,
    (files, limit): (&Files, Duration),
) -> Result<Box<dyn Stream>, Error> {
    let name = ServerName::try_from(host.to_string()).map_err(|error| failed(host, error))?;
    let mut connection =
        ClientConnection::new(Arc::new(config(files)?), name).map_err(|error| failed(host, error))?;
    let plain = "a server without TLS is named by redis://";
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| {
            let why = match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    format!("no answer to the handshake within {}; {plain}", seconds(limit))
                }
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                    format!("the server ends the connection in the handshake; {plain}")
                }
                _ if error.to_string().contains("InvalidContentType") => {
                    format!("the server does not speak TLS; {plain}")
                }
                _ => error.to_string(),
            };
            Error::new(format!("{address}: TLS: {why}"))
        })?;
    }
    Ok(Box::new(StreamOwned::new(connection, socket)))
}
