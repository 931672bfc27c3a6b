//! Patterns of KEYS and SCAN as in Redis: `*`, `?`, `[a-c]`, `[^x]`, and a backslash before a literal character.

/// The literal bytes that a key must begin with to match.
pub(crate) fn plain_prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| b"*?[\\".contains(byte));
    &pattern[..end.unwrap_or(pattern.len())]
}

/// Whether the text matches. The time is at most the product of the lengths: only the last `*` is ever retried.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, seen));
            continue;
        }
        if seen == text.len() {
            if at == pattern.len() {
                return true;
            }
        } else if let Some(taken) = one(&pattern[at..], text[seen]) {
            (at, seen) = (at + taken, seen + 1);
            continue;
        }
        match star {
            Some((behind, from)) if from < text.len() => {
                star = Some((behind, from + 1));
                (at, seen) = (behind, from + 1);
            }
            _ => return false,
        }
    }
}

/// The bytes of the pattern that match this byte; `None` if it does not match.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', plain, ..] => (plain == byte).then_some(2),
        [b'[', ..] => class(pattern, byte),
        [plain, ..] => (plain == byte).then_some(1),
    }
}

fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let mut at = 1;
    let is_negated = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negated);
    let mut is_in = false;
    loop {
        match pattern[at.min(pattern.len())..] {
            // As in Redis, an unclosed class ends with the pattern.
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', plain, ..] => {
                is_in |= plain == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                is_in |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [plain, ..] => {
                is_in |= plain == byte;
                at += 1;
            }
        }
    }
    (is_in != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        let cases: [(&str, &str, bool); 20] = [
            ("*", "", true),
            ("*", "any", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hbllo", true),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("a[bc", "ab", true),
            ("", "", true),
            ("", "x", false),
            ("*a*b", "xxaxxb", true),
            ("*a*b", "xxbxxa", false),
            ("a**", "a", true),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_more_than_the_product_of_the_lengths() {
        let pattern = [b"*a".repeat(200), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &b"a".repeat(5000)));
    }

    #[test]
    fn the_plain_prefix_ends_before_what_is_not_plain() {
        for (pattern, prefix) in [("foo-*", "foo-"), ("*", ""), ("plain", "plain"), ("a\\*", "a")] {
            assert_eq!(plain_prefix(pattern.as_bytes()), prefix.as_bytes());
        }
    }
}
