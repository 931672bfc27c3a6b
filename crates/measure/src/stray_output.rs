//! What a trial's processes print that is not ours: a driver must never print (rule 9 of driver.h).

use super::shortage::explained;
use crate::text::{counted, plain_text, short_text};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of a line that are read, and more than are shown of it.
const LINE_BYTES: u64 = 4 << 10;
/// Characters of a line that are shown.
const SHOWN: usize = 120;

/// Lines that were not ours: how many there were, the first and the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    lines: u64,
    first: String,
    last: String,
}

impl Printed {
    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Adds a line, or a part of one. The first one with text is kept.
    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        if self.first.is_empty() {
            self.first = short_text(&plain_text(line.trim()), SHOWN);
        }
        if !line.trim().is_empty() {
            self.last.clear();
            self.last.push_str(line.trim());
        }
    }

    /// The last line with text, as it was printed; empty if there was none.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// Adds lines that were printed later.
    pub fn append(&mut self, later: Printed) {
        self.lines += later.lines;
        if !later.last.is_empty() {
            self.last = later.last;
        }
        if self.first.is_empty() {
            self.first = later.first;
        }
    }

    /// `printed 3 lines, the first of which is: TEXT`, for a message; the text is harmless for a terminal.
    pub fn text(&self) -> String {
        let lines = counted(self.lines, "line", "lines");
        match &*self.first {
            "" => format!("printed {lines} without text"),
            first if self.lines == 1 => format!("printed {lines}: {first}"),
            first => format!("printed {lines}, the first of which is: {first}"),
        }
    }

    /// What is in a file, which is counted and not kept.
    pub fn in_file(file: &Path) -> io::Result<Printed> {
        let mut reader = BufReader::new(File::open(file)?);
        let mut printed = Printed::default();
        let mut line = Vec::new();
        let mut is_new = true;
        loop {
            line.clear();
            if reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                return Ok(printed);
            }
            if is_new {
                printed.add(&String::from_utf8_lossy(&line));
            }
            is_new = line.ends_with(b"\n");
        }
    }
}

/// A file that receives what processes print on stderr. It does not grow without limit: a driver that prints for each op
/// would fill the disk.
pub struct PrintedFile {
    path: PathBuf,
    file: File,
    /// What was removed from it.
    removed: Printed,
}

/// A file is shortened when it is larger than this.
const FILE_BYTES: u64 = 4 << 20;
/// The end of a shortened file, which is kept.
const KEPT_BYTES: u64 = 64 << 10;

impl PrintedFile {
    /// Creates it, empty; returns what the process prints into.
    pub fn create(path: &Path) -> io::Result<(PrintedFile, File)> {
        // It appends, so that it can be shortened while others write to it.
        let open = || OpenOptions::new().create(true).append(true).read(true).open(path);
        let file = open()?;
        file.set_len(0)?;
        Ok((PrintedFile { path: path.into(), file, removed: Printed::default() }, open()?))
    }

    /// Shortens the file if it has become too large. A line that is written meanwhile may be lost, and is then not counted.
    pub fn shorten(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() <= FILE_BYTES {
            return Ok(());
        }
        self.removed.append(Printed::in_file(&self.path)?);
        self.file.set_len(0)
    }

    /// All that was printed, and the end of it; a large file is shortened to that.
    pub fn finish(mut self) -> io::Result<(Printed, Vec<u8>)> {
        let mut printed = self.removed;
        printed.append(Printed::in_file(&self.path)?);
        let length = self.file.metadata()?.len();
        self.file.seek(SeekFrom::Start(length.saturating_sub(KEPT_BYTES)))?;
        let mut end = Vec::new();
        Read::by_ref(&mut self.file).take(KEPT_BYTES).read_to_end(&mut end)?;
        if length > KEPT_BYTES {
            self.file.set_len(0)?;
            self.file.write_all(&end)?;
        }
        Ok((printed, end))
    }
}

/// A file in memory, without a name and a folder: it is gone when the last process that uses it has ended.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a system call")]
pub fn memory_file() -> io::Result<File> {
    use std::os::fd::FromRawFd;

    // SAFETY: the name is a string that ends in 0; the descriptor is checked, and has no other owner.
    unsafe {
        let file = libc::memfd_create(c"kvdyno-printed".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 { Err(explained(io::Error::last_os_error())) } else { Ok(File::from_raw_fd(file)) }
    }
}

/// A file without a name.
#[cfg(not(target_os = "linux"))]
pub fn memory_file() -> io::Result<File> {
    tempfile::tempfile()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_cut_and_harmless() {
        let mut printed = Printed::default();
        assert!(printed.is_empty());
        printed.add("  ");
        assert_eq!(printed.text(), "printed 1 line without text");
        printed.add(&format!("\u{1b}[2J{}", "x".repeat(1000)));
        printed.add("later");
        let text = printed.text();
        assert!(text.starts_with("printed 3 lines, the first of which is: ?[2Jxxx"), "{text}");
        assert!(text.chars().count() < 200 && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_file_that_grows_is_shortened_and_its_lines_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stderr");
        let (mut file, mut stream) = PrintedFile::create(&path).unwrap();
        let line = [b"a line of the engine's log ".repeat(10), b"\n".to_vec()].concat();
        for _ in 0..20_000 {
            stream.write_all(&line).unwrap();
            file.shorten().unwrap();
            assert!(path.metadata().unwrap().len() <= FILE_BYTES + line.len() as u64);
        }
        let (printed, end) = file.finish().unwrap();
        assert_eq!(printed.lines, 20_000);
        assert!(printed.text().contains("a line of the engine's log"));
        assert!(end.ends_with(&line) && end.len() as u64 <= KEPT_BYTES);
    }

    #[test]
    fn a_line_without_an_end_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stderr");
        std::fs::write(&path, vec![b'x'; 3 * LINE_BYTES as usize]).unwrap();
        assert_eq!(Printed::in_file(&path).unwrap().lines, 1);
        std::fs::write(&path, "").unwrap();
        assert!(Printed::in_file(&path).unwrap().is_empty());
    }
}
