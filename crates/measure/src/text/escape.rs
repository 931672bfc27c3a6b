//! Escapes strings from engines, options and the environment, which may contain anything, for a terminal.

/// Escapes text for a terminal. Printable ASCII is kept, line breaks and tabs become a space, and every other character
/// (control, direction, wide) becomes `?`.
pub fn plain_text(text: &str) -> String {
    let harmless = |letter: char| match letter {
        ' '..='~' => letter,
        '\n' | '\r' | '\t' => ' ',
        _ => '?',
    };
    text.chars().map(harmless).collect()
}

/// Replaces what a terminal would act on: control characters except for line breaks, and marks of direction, become `?`.
/// Other characters stay, so that names of files are recognisable.
pub fn harmless_text(text: &str) -> String {
    let is_mark = |letter| matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let acts = |letter: char| letter != '\n' && letter.is_control() || is_mark(letter);
    text.chars().map(|letter| if acts(letter) { '?' } else { letter }).collect()
}

/// [`plain_text`], truncated to `limit` characters; `..` marks a truncated text.
pub fn short_text(text: &str, limit: usize) -> String {
    let plain = plain_text(text);
    if plain.len() <= limit { plain } else { format!("{}..", plain[..limit.saturating_sub(2)].trim_end()) }
}

/// [`plain_text`], cut in its middle to `limit` characters, 4 or more; `..` marks where.
pub fn middle_text(text: &str, limit: usize) -> String {
    let plain = plain_text(text);
    if plain.len() <= limit {
        return plain;
    }
    let kept = limit.saturating_sub(2);
    format!("{}..{}", &plain[..kept.div_ceil(2)], &plain[plain.len() - kept / 2..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_special_character_of_a_terminal_remains(text in any::<String>(), limit in 2usize..40) {
            prop_assert!(plain_text(&text).bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(plain_text(&text).len(), text.chars().count());
            prop_assert!(short_text(&text, limit).len() <= limit);
        }
    }

    #[test]
    fn a_harmless_text_keeps_letters_and_lines() {
        assert_eq!(harmless_text("a\u{e9}\n\u{65e5}"), "a\u{e9}\n\u{65e5}");
        assert_eq!(harmless_text("\u{1b}[31m\r\u{202e}x\u{9b}"), "?[31m??x?");
    }

    #[test]
    fn a_short_text_marks_where_it_was_cut() {
        assert_eq!(plain_text("redb 4.4"), "redb 4.4");
        assert_eq!(short_text("abcdefgh", 5), "abc..");
        assert_eq!((middle_text("abcdefgh", 5), middle_text("abcde", 5)), ("ab..h".into(), "abcde".into()));
        assert_eq!(short_text("\u{e9}\u{e9}\u{e9}\u{e9}", 3), "?..");
    }
}
