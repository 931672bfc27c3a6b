//! Escapes strings from engines, options and the environment, which may contain anything, for each format.

use kvdyno_measure::text::plain_text;
use std::fmt;
use std::path::Path;

/// Escapes text for Markdown: [`plain_text`] with every special character of Markdown or HTML escaped.
pub fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    for letter in plain_text(text).chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Text for Markdown that people also read in a terminal: as it is if none of it is special, otherwise as a code span, which shows
/// everything but a backquote as it is.
pub(crate) fn markdown_words(text: &str) -> String {
    let plain = plain_text(text);
    if markdown_text(&plain) == plain {
        return plain;
    }
    format!("`{}`", plain.replace('`', "'").replace('|', "\\|"))
}

/// Escapes text for CSV (RFC 4180): quoted if necessary, control characters replaced by spaces, and a `'` before text that
/// a spreadsheet would read as a formula.
pub fn csv_cell(text: &str) -> String {
    let starts_formula = |letter: char| matches!(letter, '=' | '+' | '-' | '@' | '\t' | '\r');
    let hostile =
        text.chars().next().is_some_and(starts_formula) || text.trim_start().starts_with(starts_formula);
    let clean: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let clean = if hostile { format!("'{clean}") } else { clean };
    if clean.contains([',', '"', ';', '\'']) { format!("\"{}\"", clean.replace('"', "\"\"")) } else { clean }
}

/// One word of a shell command, quoted if it contains special characters of the shell.
pub fn shell_word(word: &str) -> String {
    let plain = plain_text(word);
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "_./:=,@%+-".contains(letter);
    if !plain.is_empty() && plain.chars().all(safe) {
        plain
    } else {
        format!("'{}'", plain.replace('\'', "'\\''"))
    }
}

/// A command line of kvdyno for people to paste, with its words quoted for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// The command line with these words after `kvdyno`.
    pub fn new<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> CommandLine {
        CommandLine(["kvdyno".to_string()].into_iter().chain(words.into_iter().map(Into::into)).collect())
    }

    /// Words that need no quotes, separated by spaces: `CommandLine::of("report --full")`.
    pub fn of(words: &str) -> CommandLine {
        CommandLine::new(words.split(' '))
    }

    /// The same with another word at its end.
    pub fn with(mut self, word: impl Into<String>) -> CommandLine {
        self.0.push(word.into());
        self
    }

    /// The same with a path at its end, which begins with `./` if it would be taken for a flag.
    pub fn with_path(self, path: &Path) -> CommandLine {
        let path = path.display().to_string();
        self.with(if path.starts_with('-') { format!("./{path}") } else { path })
    }

    /// The same with a flag and its value at its end for each of these values.
    pub fn with_flags<Value: Into<String>>(
        mut self,
        flag: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> CommandLine {
        for value in values {
            let value = value.into();
            match value.starts_with('-') {
                true => self.0.push(format!("{flag}={value}")),
                false => self.0.extend([flag.to_string(), value]),
            }
        }
        self
    }

    /// Its words, without quotes.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|word| shell_word(word)).collect();
        out.write_str(&words.join(" "))
    }
}

/// Names that a hostile engine might use.
#[cfg(test)]
pub(super) const HOSTILE: &[&str] = &[
    "\u{1b}[2J\u{1b}]0;title\u{7}",
    "a\r\nrm -rf\n",
    "| x | y |",
    "<script>alert(1)</script>",
    "![x](http://example.org/x.png)",
    "[x](javascript:alert(1))",
    "`code` **bold** __bold__ ~~gone~~ # head",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "  =1",
    "\u{202e}txt.exe",
    "\u{9b}31m",
    "\"quoted\", comma; semicolon",
    "&amp;",
    "\" onmouseover=alert(1) x=\"",
    "' autofocus onfocus=alert(1) '",
    "</title></style></script><img src=x onerror=alert(1)>",
    "--><!--",
    "]]>",
    "{{7*7}} {} ${x}",
    "javascript:alert(1)",
    "url(http://example.org/)",
    "-",
    "\u{0}",
    "",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_special_character_of_markdown_remains() {
        for text in HOSTILE {
            let escaped = markdown_text(text);
            assert!(!escaped.contains(['<', '>', '\n', '\r', '\u{1b}']), "{text:?} became {escaped:?}");
            let mut letters = escaped.chars();
            while let Some(letter) = letters.next() {
                match letter {
                    '\\' => assert!(letters.next().is_some(), "{text:?} ends in a backslash"),
                    _ => assert!(
                        !"`*_[]|~#!".contains(letter),
                        "{letter:?} of {text:?} is bare in {escaped:?}"
                    ),
                }
            }
        }
    }

    #[test]
    fn words_have_no_backslashes_and_nothing_leaves_their_code_span() {
        assert_eq!(markdown_words("redb, get: no scans"), "redb, get: no scans");
        assert_eq!(markdown_words("nudb (block_size=1)"), "`nudb (block_size=1)`");
        assert_eq!(markdown_words("see `kvdyno engines`"), "`see 'kvdyno engines'`");
        for text in HOSTILE {
            let words = markdown_words(text);
            let inside = words.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            match inside {
                Some(inside) => {
                    assert!(!inside.contains('`') && !inside.replace("\\|", "").contains('|'), "{words:?}");
                }
                None => assert_eq!(markdown_text(text), words),
            }
        }
    }

    #[test]
    fn no_cell_is_read_as_a_formula() {
        for text in HOSTILE {
            let cell = csv_cell(text);
            let seen = cell.trim_start_matches('"').trim_start();
            assert!(!seen.starts_with(['=', '+', '-', '@']), "{text:?} became {cell:?}");
            assert!(!cell.contains(['\n', '\r', '\t', '\u{1b}']), "{text:?} became {cell:?}");
            assert_eq!(cell.matches('"').count() % 2, 0, "{text:?} became {cell:?}");
        }
        assert_eq!(csv_cell("redb"), "redb");
        assert_eq!(csv_cell("a,b"), "\"a,b\"");
        assert_eq!(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(csv_cell("=1+1"), "\"'=1+1\"");
    }

    #[test]
    fn a_shell_word_stays_one_word() {
        assert_eq!(shell_word("--keys"), "--keys");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("$(rm -rf /)"), "'$(rm -rf /)'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
