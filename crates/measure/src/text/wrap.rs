//! Wraps lines between words.

use textwrap::{Options, WordSplitter};

/// A blank at which no line is broken.
pub const NO_BREAK: char = '\u{a0}';

/// Wraps a text to lines of at most `width` characters that end with a line break. The first line begins with `first`, all
/// others with `next`. A word that is longer than a line, such as a command to copy, is not broken, and a number stays
/// with its percent sign.
pub fn wrapped(first: &str, next: &str, text: &str, width: usize) -> String {
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(next)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    let text = text.replace(" %", "\u{a0}%");
    let lines = textwrap::wrap(&text, options).into_iter();
    lines.map(|line| line.trim_end().replace(NO_BREAK, " ") + "\n").collect()
}

/// The lines of a text wrapped to `width` characters; one empty line if the text is empty.
pub fn wrapped_lines(text: &str, width: usize) -> Vec<String> {
    wrapped("", "", text, width).lines().map(str::to_string).collect()
}

/// Names and their values in two aligned columns. Long texts are wrapped within the second column.
pub fn facts<Name: AsRef<str>, Value: AsRef<str>>(facts: &[(Name, Value)], width: usize) -> String {
    let names = facts.iter().map(|(name, _)| name.as_ref().chars().count());
    let widest = names.max().unwrap_or(0);
    let margin = " ".repeat(widest + 2);
    let lines = facts.iter().map(|(name, value)| {
        wrapped(&format!("{:widest$}  ", name.as_ref()), &margin, value.as_ref(), width)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_lines_are_wrapped_at_blanks_and_lose_nothing() {
        let words = "word ".repeat(60);
        let text = wrapped("  - ", "    ", words.trim_end(), 40);
        assert!(text.lines().all(|line| line.len() <= 40 && line == line.trim_end()), "{text}");
        assert!(
            text.starts_with("  - word") && text.lines().skip(1).all(|line| line.starts_with("    word"))
        );
        assert_eq!(text.matches("word").count(), 60);
        assert_eq!(wrapped("", "    ", "    short", 40), "    short\n");
        assert_eq!(wrapped("", "    ", "", 40), "\n");
        let long = "x".repeat(300);
        assert_eq!(wrapped("", "    ", &format!("{long} y"), 40), format!("{long}\n    y\n"));
        assert_eq!(wrapped("", "  ", "a share of 12 %", 13), "a share of\n  12 %\n");
        assert_eq!(wrapped_lines("one two", 5), ["one", "two"]);
    }

    #[test]
    fn facts_are_aligned() {
        assert_eq!(facts(&[("a", "x"), ("bcd", "y z")], 7), "a    x\nbcd  y\n     z\n");
    }

    proptest! {
        #[test]
        fn a_wrapped_text_keeps_its_words(text in "[ -~]{0,300}", width in 1usize..120) {
            let wrapped = wrapped("", "  ", &text, width);
            prop_assert_eq!(
                wrapped.split_whitespace().collect::<Vec<_>>(),
                text.split_whitespace().collect::<Vec<_>>()
            );
        }
    }
}
