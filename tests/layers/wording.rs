//! Words and phrases that do not come back: what people read is plain technical English.

use super::source::{Source, is_test};

/// What is not written, and what is written instead. A phrase matches whole words, in any case, also across a line break.
const PHRASES: &[(&str, &str)] = &[
    ("a look at everything", "compare all engines"),
    ("anybody", "anyone"),
    ("as far as they are", "say which"),
    ("asked for by name", "named on the command line"),
    ("behind the last", "after the last"),
    ("broken off", "interrupted"),
    ("brings it", "install command"),
    ("brings them", "install command"),
    ("every 2. ", "every second "),
    ("for ever", "forever"),
    ("go on with", "resume, continue"),
    ("goes on with", "resumes, continues"),
    ("in force", "effective"),
    ("hence", "so"),
    ("in vain", "miss, expected miss"),
    ("lest", "so that ... not"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("nought", "zero"),
    ("left out", "skipped"),
    ("of old", "earlier"),
    ("stands beside", "is next to"),
    ("stands in", "is in"),
    ("stands there", "is there"),
    ("tell apart", "distinguish"),
    ("thus", "so"),
    ("told apart", "distinguished"),
    ("upon", "on"),
    ("whence", "from where"),
    ("what brings", "install command"),
    ("yonder", "there"),
];

/// Files in which the phrases may be: this list.
const MAY_QUOTE: &[&str] = &["tests/layers/wording.rs"];

/// What people read of a file: prose of documents, comments and strings of code.
fn prose(source: &Source) -> String {
    if source.code.is_empty() {
        return source.text.to_ascii_lowercase();
    }
    let bytes = source.text.bytes().zip(source.code.bytes());
    let kept =
        bytes.map(|(text, code)| if text == code && !text.is_ascii_whitespace() { b' ' } else { text });
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).to_ascii_lowercase()
}

/// The places of a phrase: its words, one after the other, with nothing but space and the marks of comments between.
fn places(prose: &str, phrase: &str) -> Vec<usize> {
    let words: Vec<&str> = phrase.split(' ').filter(|word| !word.is_empty()).collect();
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let is_between = |byte: &u8| b" \n\r\t/!*#>\\".contains(byte);
    let bytes = prose.as_bytes();
    let Some(first) = words.first() else { return Vec::new() };
    prose
        .match_indices(first)
        .map(|(at, _)| at)
        .filter(|at| !is_word(at.checked_sub(1).and_then(|before| bytes.get(before))))
        .filter(|at| {
            let mut end = at + first.len();
            words[1..].iter().all(|word| {
                let gap = bytes[end..].iter().take_while(|byte| is_between(byte)).count();
                let is_next = gap > 0 && prose[end + gap..].starts_with(word);
                end += gap + word.len();
                is_next
            }) && !is_word(bytes.get(end))
        })
        .collect()
}

/// Where the file has a phrase of the list; tests may quote what they refuse, and a string of only one word may be a name in
/// old files and records.
pub fn violations(source: &Source) -> Vec<String> {
    if source.is_in(MAY_QUOTE) || source.path.ends_with(".json") {
        return Vec::new();
    }
    let prose = prose(source);
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        let is_name = |at: usize| {
            source
                .text
                .get(at.saturating_sub(1)..)
                .is_some_and(|text| text.starts_with(&format!("\"{phrase}\"")))
        };
        let outside = places(&prose, phrase).into_iter().filter(|at| !is_test(source, *at) && !is_name(*at));
        found.extend(outside.map(|at| source.at(at, format!("`{}`: write `{instead}`", phrase.trim()))));
    }
    found
}

#[test]
fn phrases_are_found_across_lines_and_not_inside_words() {
    let source = Source::new(
        "src/planted.rs",
        "//! A head. It goes\n//! on with it.\nlet mend = \"Mend it\"; // amend\n",
    );
    let found = violations(&source);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(violations(&Source::new("a.md", "The harness recommends it, thusly.\n")).is_empty());
}
