//! Reads files that people name: whole, and never without an end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// A file's bytes, `limit_bytes` at most. What is no regular file is an error, and so is a larger one.
pub fn read_limited(path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
    // A pipe in the place of a file would hold the opening for ever, and a device the reading.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is larger than {limit_bytes} bytes"),
        ));
    }
    Ok(bytes)
}

/// A text that people write, 16 MiB at most.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_limited(path, 16 << 20)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}
