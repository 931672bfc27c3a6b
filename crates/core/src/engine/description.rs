//! The contents of a driver's table, read and checked once, so that they are known without the driver's library: the
//! process that plans loads no plug-in.

use super::abi::{KV_ABI, kv_driver};
use super::capability::{LEVELS, known_capabilities};
use super::option::{OptionInfo, OptionKind};
use serde::{Deserialize, Serialize};
use std::ffi::c_char;

/// Maximum length of a name.
const NAME_BYTES: usize = 64;
/// Maximum length of all other texts, bytes.
const TEXT_BYTES: usize = 4096;
/// More options than any driver has.
const MOST_OPTIONS: usize = 1000;

/// A driver's table as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) language: String,
    pub(super) family: String,
    pub(super) capabilities: u64,
    pub(super) levels: u64,
    pub(super) key_size_max: u32,
    /// The driver runs the loops of its sessions.
    pub(super) is_driven: bool,
    pub(super) options: Vec<OptionInfo>,
}

/// Why a driver's table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It is one of another version of the boundary.
    #[error("its driver table has ABI {0}, but this kvdyno requires ABI {KV_ABI}")]
    Abi(u32),
    /// It is shorter than that of its version.
    #[error("its driver table has {0} bytes, but ABI {KV_ABI} requires {wanted}", wanted = size_of::<kv_driver>())]
    Size(u32),
    /// It has no function for a call that every driver has: its name.
    #[error("the driver table of `{0}` lacks an entry")]
    Incomplete(String),
    /// A text has no end: which one.
    #[error("the driver's {0} does not end within {TEXT_BYTES} bytes")]
    Endless(String),
    /// It has no list with this many options.
    #[error("the driver table declares {0} options but does not contain them")]
    NoOptions(usize),
    /// No engine may have this name.
    #[error(
        "`{0}` is not a valid engine name; a name has 1 to {NAME_BYTES} characters of a-z, 0-9, _, . and -, and begins with a \
         letter or digit"
    )]
    Name(String),
    /// It declares what is not known here.
    #[error("`{name}` declares {what} that this kvdyno does not know (bit {bits}); update kvdyno")]
    Unknown {
        /// Its name.
        name: String,
        /// `capabilities` or `levels`.
        what: &'static str,
        /// Their numbers.
        bits: String,
    },
    /// An option without a name or without a type.
    #[error("option {index} of `{name}` has no name or no type")]
    Option {
        /// Its name.
        name: String,
        /// The place of the option, from 0.
        index: usize,
    },
    /// Two options with the same name.
    #[error("`{name}` has two options named `{option}`")]
    SameOption {
        /// Its name.
        name: String,
        /// That of the options.
        option: String,
    },
}

impl Description {
    /// Reads a table and checks its ABI, its size, its texts and that no entry is missing.
    pub(super) fn of(table: &kv_driver) -> Result<Description, TableError> {
        if table.abi != KV_ABI {
            return Err(TableError::Abi(table.abi));
        }
        if (table.size as usize) < size_of::<kv_driver>() {
            return Err(TableError::Size(table.size));
        }
        check_texts(table)?;
        let name = boundary_text(table.name);
        let is_complete = table.open.is_some()
            && table.session.is_some()
            && table.execute.is_some()
            && table.session_end.is_some()
            && table.maintain.is_some()
            && table.stats.is_some()
            && table.close.is_some();
        if is_engine_name(&name) && !is_complete {
            return Err(TableError::Incomplete(name));
        }
        let description = Description {
            about: boundary_text(table.engine),
            language: boundary_text(table.language),
            family: boundary_text(table.family),
            capabilities: table.capabilities,
            levels: table.levels,
            is_driven: table.drive.is_some(),
            key_size_max: table.key_size_max,
            options: options_of(table).iter().map(info).collect(),
            name,
        };
        description.checked()
    }

    /// The same with texts that are safe to show; refuses what no driver may declare. Also for descriptions from
    /// another process.
    pub(super) fn checked(mut self) -> Result<Description, TableError> {
        let name = &self.name;
        if !is_engine_name(name) {
            let shown = harmless(&name.chars().take(NAME_BYTES).collect::<String>());
            let more = if name.len() > NAME_BYTES { "..." } else { "" };
            return Err(TableError::Name(shown + more));
        }
        let unknown = |bits: u64| {
            let places = (0..64).filter(|bit| bits & (1 << bit) != 0);
            places.map(|bit: u32| bit.to_string()).collect::<Vec<_>>().join(", ")
        };
        let (capabilities, levels) = (self.capabilities & !known_capabilities(), self.levels & !LEVELS);
        for (bits, what) in [(capabilities, "capabilities"), (levels, "levels")] {
            if bits != 0 {
                return Err(TableError::Unknown { name: name.clone(), what, bits: unknown(bits) });
            }
        }
        for (index, option) in self.options.iter().enumerate() {
            if option.name.is_empty() || option.kind.to_string().is_empty() {
                return Err(TableError::Option { name: name.clone(), index });
            }
            if self.options[..index].iter().any(|other| other.name == option.name) {
                return Err(TableError::SameOption { name: name.clone(), option: harmless(&option.name) });
            }
        }
        let texts = [&mut self.about, &mut self.language, &mut self.family];
        texts.into_iter().for_each(|text| *text = harmless(text));
        for OptionInfo { name, kind, default_value, help } in &mut self.options {
            [name, default_value, help].into_iter().for_each(|text| *text = harmless(text));
            *kind = harmless(&kind.to_string()).into();
        }
        Ok(self)
    }
}

/// Refuses a table with a text that does not end, or with more options than any driver has.
fn check_texts(table: &kv_driver) -> Result<(), TableError> {
    let is_endless = |pointer: *const c_char| bounded_length(pointer) == TEXT_BYTES;
    let of_table = [
        (table.name, "name"),
        (table.engine, "description of the engine"),
        (table.language, "language"),
        (table.family, "family"),
    ];
    if let Some((_, what)) = of_table.iter().find(|(pointer, _)| is_endless(*pointer)) {
        return Err(TableError::Endless(what.to_string()));
    }
    let count = table.option_count as usize;
    if count > 0 && (table.options.is_null() || count > MOST_OPTIONS) {
        return Err(TableError::NoOptions(count));
    }
    for (at, option) in options_of(table).iter().enumerate() {
        if [option.name, option.kind, option.default_value, option.help].into_iter().any(is_endless) {
            return Err(TableError::Endless(format!("text of option {at}")));
        }
    }
    Ok(())
}

fn options_of(table: &kv_driver) -> &[super::abi::kv_option] {
    if table.option_count == 0 {
        return &[];
    }
    // SAFETY: a table has `option_count` options (driver.h).
    unsafe { std::slice::from_raw_parts(table.options, table.option_count as usize) }
}

fn info(option: &super::abi::kv_option) -> OptionInfo {
    OptionInfo {
        name: boundary_text(option.name),
        kind: OptionKind::from(boundary_text(option.kind)),
        default_value: boundary_text(option.default_value),
        help: boundary_text(option.help),
    }
}

/// The length of a text; `TEXT_BYTES` if it does not end before. 0 if the pointer is null.
fn bounded_length(pointer: *const c_char) -> usize {
    if pointer.is_null() {
        return 0;
    }
    // SAFETY: a driver's texts are constants that end with NUL (driver.h); at most this much is read of one that does
    // not.
    unsafe { libc::strnlen(pointer, TEXT_BYTES) }
}

/// A NUL-terminated text of the C boundary; empty if the pointer is null.
fn boundary_text(pointer: *const c_char) -> String {
    let length = bounded_length(pointer);
    if length == 0 {
        return String::new();
    }
    // SAFETY: this many bytes were just read there.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A driver's text in a form that is safe to show anywhere: characters that a terminal interprets (control
/// characters, and those that change the writing direction) are written as escapes, such as `\x1b`.
pub fn harmless(text: &str) -> String {
    let turns = |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => out.extend(letter.escape_default()),
            _ if letter.is_ascii_control() => out += &format!("\\x{:02x}", letter as u32),
            _ if letter.is_control() || turns(letter) => out.extend(letter.escape_unicode()),
            _ => out.push(letter),
        }
    }
    out
}

/// Whether a name is `[a-z0-9][a-z0-9_.-]{0,63}`.
pub fn is_engine_name(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=NAME_BYTES).contains(&bytes.len())
        && letters(bytes[0])
        && bytes.iter().all(|&byte| letters(byte) || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_written_as_an_escape_and_all_else_stays() {
        for (text, wanted) in [
            ("redb 4.4, \u{e9}t\u{e9}", "redb 4.4, \u{e9}t\u{e9}"),
            ("\u{1b}[31m", "\\x1b[31m"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{9b}1m\u{202e}x", "\\u{9b}1m\\u{202e}x"),
            ("\u{7}", "\\x07"),
        ] {
            assert_eq!(harmless(text), wanted);
            assert_eq!(harmless(&harmless(text)), wanted, "escaping twice changes nothing");
        }
    }

    #[test]
    fn a_description_that_another_process_told_is_checked_like_a_table() {
        let sound = Description {
            name: "sound".into(),
            about: "a\u{1b}b".into(),
            language: String::new(),
            family: String::new(),
            capabilities: 0,
            levels: 0,
            key_size_max: 0,
            is_driven: false,
            options: Vec::new(),
        };
        assert_eq!(sound.clone().checked().unwrap().about, "a\\x1bb");
        for (name, capabilities, levels, wanted) in [
            ("a/b", 0, 0, "not a valid engine name"),
            ("", 0, 0, "not a valid engine name"),
            ("a", 1 << 60, 0, "capabilities that this kvdyno does not know (bit 60)"),
            ("a", 0, 1 << 9, "levels that this kvdyno does not know (bit 9)"),
        ] {
            let description = Description { name: name.into(), capabilities, levels, ..sound.clone() };
            let reason = description.checked().unwrap_err().to_string();
            assert!(reason.contains(wanted), "{reason}");
        }
    }
}
