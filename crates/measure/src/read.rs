//! Reads complete files that users name, with a size limit.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// A file's bytes, at most `limit_bytes`. Anything but a regular file is an error, and so is a larger file.
pub fn read_limited(path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would block without end, and so would reading a device.
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

/// A text file written by users, at most 16 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_limited(path, 16 << 20)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}
