//! The secret that the load generators of a run share, and the proofs that a process knows it.

use hmac::{Hmac, KeyInit, Mac};
use kvdyno_measure::{Cannot, read_limited};
use sha2::Sha256;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// The environment variable with the secret.
pub const VARIABLE: &str = "KVDYNO_SECRET";
/// The minimum length of a secret, bytes.
const LEAST_BYTES: usize = 16;
/// The maximum length of a file with a secret, bytes.
const MOST_FILE_BYTES: u64 = 4096;
/// Bytes of a nonce.
const NONCE_BYTES: usize = 16;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] Cannot),
    /// No file was named, and the environment has none.
    #[error("no secret: set the environment variable {VARIABLE}, or name a file with --secret-file")]
    Absent,
    /// It has only so many bytes.
    #[error(
        "the secret has {0} characters; use {LEAST_BYTES} or more, such as the output of `openssl rand -hex 16`"
    )]
    Short(usize),
}

/// The shared secret. It is never printed and never recorded.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

impl Secret {
    /// The first line of the file, or the value of the environment variable.
    pub fn find(file: Option<&Path>) -> Result<Secret, SecretError> {
        let text = match file {
            Some(path) => {
                let bytes =
                    read_limited(path, MOST_FILE_BYTES).map_err(Cannot::on("read the secret in", path))?;
                String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_string()
            }
            None => std::env::var(VARIABLE).map_err(|_| SecretError::Absent)?,
        };
        Secret::new(text.trim().as_bytes())
    }

    /// A secret of these bytes; an error if they are too few to be one.
    pub fn new(bytes: &[u8]) -> Result<Secret, SecretError> {
        if bytes.len() < LEAST_BYTES {
            return Err(SecretError::Short(bytes.len()));
        }
        Ok(Secret(bytes.to_vec()))
    }

    /// The secret itself, for the environment of a process that is started.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The proof that its author knows the secret, for these parts.
    pub fn proof(&self, parts: &[&str]) -> String {
        hex(&self.mac(parts).finalize().into_bytes())
    }

    /// Whether a proof is right. The comparison takes the same time wherever they differ.
    pub fn proves(&self, parts: &[&str], proof: &str) -> bool {
        let Some(bytes) = unhex(proof) else { return false };
        self.mac(parts).verify_slice(&bytes).is_ok()
    }

    fn mac(&self, parts: &[&str]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in parts {
            // The length before each part, so that no two lists give the same bytes.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// Random bytes of the kernel as hex digits, also for a secret of this run alone.
pub fn nonce() -> Result<String, SecretError> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; NONCE_BYTES];
    std::fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Cannot::on("read", source))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        Some((digit(0)? << 4 | digit(1)?) as u8)
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_needs_the_secret_and_the_same_parts() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let other = Secret::new(b"0123456789abcdeF").unwrap();
        let proof = secret.proof(&["hub", "12"]);
        assert!(secret.proves(&["hub", "12"], &proof));
        for parts in [&["hub", "1", "2"][..], &["hub1", "2"], &["hub"], &[]] {
            assert!(!secret.proves(parts, &proof), "{parts:?}");
        }
        assert!(!other.proves(&["hub", "12"], &proof));
        for wrong in ["", "0", "zz", &proof[1..], &proof[..62], "\u{e9}\u{e9}"] {
            assert!(!secret.proves(&["hub", "12"], wrong), "{wrong}");
        }
    }

    #[test]
    fn short_secrets_are_refused_and_none_is_printed() {
        assert!(matches!(Secret::new(b"0123456789"), Err(SecretError::Short(10))));
        let secret = Secret::new(b"correct horse battery").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }

    #[test]
    fn a_file_has_the_secret_in_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "0123456789abcdef\nmore\n").unwrap();
        let (found, same) = (Secret::find(Some(&file)).unwrap(), Secret::new(b"0123456789abcdef").unwrap());
        assert_eq!(found.proof(&["x"]), same.proof(&["x"]));
        assert!(Secret::find(Some(&folder.path().join("none"))).is_err());
    }
}
