//! The files of the tree as the rules see them: read once, with comments and strings blanked out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Endings of text files.
const ENDINGS: &[&str] =
    &["rs", "c", "h", "cc", "hpp", "go", "toml", "md", "json", "map", "txt", "yml", "sh"];

/// A text file.
pub struct Source {
    /// From the root, with `/`.
    pub path: String,
    /// As it is.
    pub text: String,
    /// With comments and strings blanked out; empty for what is no code. As long as `text`.
    pub code: String,
    /// With comments blanked out.
    pub code_and_strings: String,
}

impl Source {
    /// Of a file with this path and text.
    pub fn new(path: &str, text: &str) -> Source {
        let (code, code_and_strings) = if is_code(path) {
            (blank(text, false), blank(text, true))
        } else {
            (String::new(), String::new())
        };
        Source { path: path.to_string(), text: text.to_string(), code, code_and_strings }
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// `path:line: text` for a position in bytes.
    pub fn at(&self, position: usize, text: impl std::fmt::Display) -> String {
        let line = self.text[..position].matches('\n').count() + 1;
        format!("{}:{line}: {text}", self.path)
    }

    /// Whether the list has its path, or a folder above it with `/` at the end.
    pub fn is_in(&self, list: &[&str]) -> bool {
        list.iter().any(|entry| self.path == *entry || (entry.ends_with('/') && self.path.starts_with(entry)))
    }
}

fn is_code(path: &str) -> bool {
    [".rs", ".c", ".h", ".cc", ".hpp", ".go"].iter().any(|ending| path.ends_with(ending))
}

/// The root of the tree: the package under test, or the folder that the test was started in.
pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// What .gitignore names in full, from the root, and git's own folder.
fn ignored() -> Vec<PathBuf> {
    let text = fs::read_to_string(root().join(".gitignore")).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.strip_prefix('/')).map(|line| line.trim_end_matches('/'));
    names.chain([".git"]).map(|name| root().join(name)).collect()
}

fn walk(folder: &Path, ignored: &[PathBuf], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder was listed just now").flatten() {
        let path = entry.path();
        if ignored.contains(&path) || path.ends_with("target") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, ignored, found);
        } else {
            found.push(path);
        }
    }
}

/// Every text file that git does not ignore, by path.
pub static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let mut paths = Vec::new();
    walk(&root(), &ignored(), &mut paths);
    paths.sort();
    let of = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        let is_text = ENDINGS.contains(&ending) || ["Makefile", "run"].contains(&name);
        let path_text = path.strip_prefix(root()).ok()?.to_str()?;
        is_text.then(|| fs::read_to_string(&path).ok().map(|text| Source::new(path_text, &text))).flatten()
    };
    paths.into_iter().filter_map(of).collect()
});

/// The end of the character literal that begins at `at`; none if it is a lifetime.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let end = bytes[at + 3..].iter().position(|&byte| byte == b'\'')?;
        return Some(at + 3 + end);
    }
    (2..=5)
        .map(|ahead| at + ahead)
        .find(|&end| bytes.get(end) == Some(&b'\''))
        .filter(|&end| end == at + 2 || !bytes[at + 1].is_ascii())
}

/// The end of the comment or the string that begins at `at`, and whether it is a string.
fn skipped(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let find = |from: usize, what: &[u8]| {
        let tail = bytes.get(from..).unwrap_or_default();
        tail.windows(what.len())
            .position(|part| part == what)
            .map_or(bytes.len(), |place| from + place + what.len())
    };
    let is_name = |place: usize| bytes[place].is_ascii_alphanumeric() || bytes[place] == b'_';
    match (bytes[at], bytes.get(at + 1)) {
        (b'/', Some(b'/')) => Some((find(at, b"\n") - usize::from(bytes[at..].contains(&b'\n')), false)),
        (b'/', Some(b'*')) => {
            let (mut depth, mut place) = (1, at + 2);
            while depth > 0 && place + 1 < bytes.len() {
                match &bytes[place..place + 2] {
                    b"/*" => (depth, place) = (depth + 1, place + 2),
                    b"*/" => (depth, place) = (depth - 1, place + 2),
                    _ => place += 1,
                }
            }
            Some((place, false))
        }
        (b'r', Some(b'"' | b'#')) if at == 0 || !is_name(at - 1) || b"bc".contains(&bytes[at - 1]) => {
            let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
            let is_raw = bytes.get(at + 1 + hashes) == Some(&b'"');
            let end = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
            is_raw.then(|| (find(at + 2 + hashes, &end), true))
        }
        (b'"', _) => {
            let mut place = at + 1;
            while place < bytes.len() && bytes[place] != b'"' {
                place += 1 + usize::from(bytes[place] == b'\\');
            }
            Some(((place + 1).min(bytes.len()), true))
        }
        (b'\'', Some(_)) => literal_end(bytes, at).map(|end| (end + 1, true)),
        _ => None,
    }
}

/// The text with comments, and with `keep_strings` false also the insides of strings, replaced by blanks; as long.
fn blank(text: &str, keep_strings: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some((end, is_string)) = skipped(bytes, at) else {
            at += 1;
            continue;
        };
        if !is_string || !keep_strings {
            out[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where `word` stands in `code` as a word of its own.
pub fn words<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    let is_edge = |byte: Option<&u8>| !byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        is_edge(at.checked_sub(1).map(|before| &bytes[before])) && is_edge(bytes.get(at + word.len()))
    })
}

/// The brace that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    code.len()
}

/// The first `{` or `;` behind `from` that lies in no bracket.
pub fn body(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' | b';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

fn is_for_tests(attributes: &str) -> bool {
    let conditions =
        attributes.match_indices("#[cfg(").map(|(at, _)| &attributes[at..closing(attributes, at + 1)]);
    conditions.into_iter().any(|text| words(text, "test").next().is_some() && !text.contains("not(test"))
}

/// The blocks that `#[cfg(test)]` stands before, from it to their last brace.
fn test_blocks(code: &str) -> Vec<(usize, usize)> {
    let attributes = code.match_indices("#[cfg(").map(|(at, _)| (at, closing(code, at + 1)));
    let conditions = attributes.filter(|&(at, end)| is_for_tests(&code[at..(end + 1).min(code.len())]));
    let blocks = conditions.map(|(at, end)| (at, body(code, end + 1)));
    blocks
        .filter(|&(_, open)| code[open..].starts_with('{'))
        .map(|(at, open)| (at, closing(code, open)))
        .collect()
}

/// The files that `mod name;` may mean, each with whether it stands behind `#[cfg(test)]`.
fn modules(source: &Source) -> Vec<(String, bool)> {
    let path = Path::new(&source.path);
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for at in words(&source.code, "mod") {
        let name = source.code[at + 3..].split(['{', ';']).next().unwrap_or("").trim();
        if !source.code[at + 3..].trim_start().trim_start_matches(name).starts_with(';') {
            continue;
        }
        let start = source.code[..at].rfind([';', '{', '}']).map_or(0, |before| before + 1);
        let is_for_tests = is_for_tests(&source.code[start..at]);
        let given = source.code_and_strings[start..at].split("path = \"").nth(1);
        let places = match given.and_then(|rest| rest.split('"').next()) {
            Some(file) => vec![folder.join(file)],
            None => vec![folder.join(name), path.with_extension("").join(name)],
        };
        found.extend(places.into_iter().map(|place| (place.to_string_lossy().into_owned(), is_for_tests)));
    }
    found
}

/// Files that are compiled for tests only: what a `mod` for tests names, and what that names in turn.
static TEST_FILES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut found: BTreeSet<String> = BTreeSet::new();
    loop {
        let before = found.len();
        for source in SOURCES.iter().filter(|source| source.is_rust()) {
            for (place, is_for_tests) in modules(source) {
                let names = [place.clone(), format!("{place}.rs"), format!("{place}/mod.rs")];
                if is_for_tests || found.contains(&source.path) {
                    let files = SOURCES.iter().filter(|other| names.contains(&other.path));
                    found.extend(files.map(|file| file.path.clone()));
                }
            }
        }
        if found.len() == before {
            return found;
        }
    }
});

/// What is compiled always, but for tests of other crates.
const FOR_TESTS: &[&str] = &["crates/core/src/results/fixture.rs", "crates/core/src/results/fixture/"];

/// Whether the code at a position is for tests only.
pub fn is_test(source: &Source, at: usize) -> bool {
    let outside = ["tests/", "benches/", "fuzz/"].iter().any(|folder| source.path.starts_with(folder));
    let inside = || test_blocks(&source.code).iter().any(|&(start, end)| (start..=end).contains(&at));
    outside || source.is_in(FOR_TESTS) || TEST_FILES.contains(&source.path) || inside()
}
