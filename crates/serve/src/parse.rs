//! Parses requests of the Redis protocol as their bytes arrive: arrays of bulk strings, and inline commands (RESP2
//! and RESP3 have the same requests; <https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! The parser keeps its place between calls, so that a request that arrives in pieces costs no more than one that
//! arrives at once, and it reserves no memory for lengths that are only claimed.

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Arguments of a request, including its name.
    pub arguments: usize,
    /// Bytes of an argument.
    pub bulk_bytes: usize,
    /// Bytes of an inline request.
    pub inline_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { arguments: 1 << 20, bulk_bytes: 64 << 20, inline_bytes: 64 << 10 }
    }
}

impl Limits {
    /// For clients that have not sent the password yet, as in Redis.
    pub fn before_password() -> Limits {
        Limits { arguments: 10, bulk_bytes: 16 << 10, inline_bytes: 16 << 10 }
    }
}

/// The result of parsing the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A complete request; its arguments are in `Parser::arguments`. `None` for an empty one, to be skipped.
    Request,
    /// More bytes are needed.
    More,
    /// The client speaks something else; the text of Redis's reply. The connection cannot continue.
    Broken(&'static str),
}

/// The place of an argument in the input.
pub(crate) type Span = std::ops::Range<usize>;

/// A partially received request.
#[derive(Debug, Default)]
pub struct Parser {
    /// Where parsing of the current request continues.
    at: usize,
    /// Arguments still to come; `None` if the request has not begun.
    left: Option<usize>,
    /// Bytes of the current argument.
    bulk: Option<usize>,
    /// No line end was found up to here.
    searched: usize,
    spans: Vec<Span>,
    /// Arguments of an inline request, without their quotes.
    inline: Vec<u8>,
    is_inline: bool,
}

/// Maximum digits of a length.
const MOST_DIGITS: usize = 20;

impl Parser {
    /// Continues to parse `input`, everything received from the client since the last `consume`.
    pub fn step(&mut self, input: &[u8], limits: &Limits) -> Step {
        let Some(mut left) = self.left else {
            return match input.get(self.at) {
                None => Step::More,
                Some(b'*') => match self.line(input, MOST_DIGITS + 3) {
                    Err(step) => step,
                    Ok(line) => self.begin(input, line, limits),
                },
                Some(_) => self.inline(input, limits),
            };
        };
        while left > 0 {
            let size = match self.bulk {
                Some(size) => size,
                None => match self.bulk_head(input, limits) {
                    Ok(size) => size,
                    Err(step) => return step,
                },
            };
            self.bulk = Some(size);
            if input.len() < self.at + size + 2 {
                return Step::More;
            }
            if &input[self.at + size..self.at + size + 2] != b"\r\n" {
                return Step::Broken("ERR Protocol error: expected the end of a bulk string");
            }
            self.spans.push(self.at..self.at + size);
            self.at += size + 2;
            self.searched = self.at;
            self.bulk = None;
            left -= 1;
            self.left = Some(left);
        }
        Step::Request
    }

    /// The arguments of the request that `step` has found; `input` as passed to it.
    pub fn arguments<'a>(&'a self, input: &'a [u8]) -> Arguments<'a> {
        Arguments { bytes: if self.is_inline { &self.inline } else { input }, spans: &self.spans }
    }

    /// The number of input bytes of the request; the next `step` gets the bytes after them.
    pub fn consume(&mut self) -> usize {
        let taken = self.at;
        self.spans.clear();
        self.inline.clear();
        (self.at, self.searched, self.left, self.bulk, self.is_inline) = (0, 0, None, None, false);
        taken
    }

    /// The next line without its end, moving the parser past it; at most `most` bytes.
    fn line(&mut self, input: &[u8], most: usize) -> Result<Span, Step> {
        let from = self.searched.max(self.at);
        let Some(found) = input[from..].iter().position(|&byte| byte == b'\n') else {
            self.searched = input.len();
            // The input may include the first byte of the line end.
            let is_long = input.len() - self.at > most + 1;
            return Err(if is_long {
                Step::Broken("ERR Protocol error: too big count string")
            } else {
                Step::More
            });
        };
        let end = from + found;
        let line = self.at..if end > self.at && input[end - 1] == b'\r' { end - 1 } else { end };
        if line.len() > most {
            return Err(Step::Broken("ERR Protocol error: too big count string"));
        }
        (self.at, self.searched) = (end + 1, end + 1);
        Ok(line)
    }

    fn begin(&mut self, input: &[u8], line: Span, limits: &Limits) -> Step {
        let Some(count) = number(&input[line.start + 1..line.end]) else {
            return Step::Broken("ERR Protocol error: invalid multibulk length");
        };
        if count > limits.arguments as i64 {
            return Step::Broken("ERR Protocol error: invalid multibulk length");
        }
        self.left = Some(count.max(0) as usize);
        self.step(input, limits)
    }

    fn bulk_head(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Step> {
        let Some(&first) = input.get(self.at) else { return Err(Step::More) };
        if first != b'$' {
            return Err(Step::Broken("ERR Protocol error: expected '$'"));
        }
        let line = self.line(input, MOST_DIGITS + 3)?;
        match number(&input[line.start + 1..line.end]) {
            Some(size) if (0..=limits.bulk_bytes as i64).contains(&size) => Ok(size as usize),
            _ => Err(Step::Broken("ERR Protocol error: invalid bulk length")),
        }
    }

    /// A line of words, as users type them; quotes as in Redis's `sdssplitargs`.
    fn inline(&mut self, input: &[u8], limits: &Limits) -> Step {
        let line = match self.line(input, limits.inline_bytes) {
            Ok(line) => line,
            Err(Step::More) => return Step::More,
            Err(_) => return Step::Broken("ERR Protocol error: too big inline request"),
        };
        self.is_inline = true;
        self.left = Some(0);
        match self.words(&input[line], limits.arguments) {
            true => Step::Request,
            false => Step::Broken("ERR Protocol error: unbalanced quotes in request"),
        }
    }

    /// Splits a line; `false` if quotes do not match.
    fn words(&mut self, line: &[u8], most: usize) -> bool {
        let mut at = 0;
        while self.spans.len() < most {
            while line.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            if at == line.len() {
                return true;
            }
            let start = self.inline.len();
            match word(&line[at..], &mut self.inline) {
                Some(taken) => at += taken,
                None => return false,
            }
            self.spans.push(start..self.inline.len());
        }
        true
    }
}

/// Appends one word of an inline request to `out`; returns the bytes that it used, or `None` if its quotes do not
/// match.
fn word(line: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    let mut quote: Option<u8> = None;
    loop {
        let Some(&byte) = line.get(at) else { return if quote.is_none() { Some(at) } else { None } };
        at += 1;
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, _) if byte.is_ascii_whitespace() => return Some(at),
            (Some(b'"'), b'\\') => at += escaped(&line[at..], out)?,
            (Some(b'\''), b'\\') if line.get(at) == Some(&b'\'') => {
                out.push(b'\'');
                at += 1;
            }
            (Some(open), _) if open == byte => {
                // A closing quote must be followed by a space or the end.
                return line.get(at).is_none_or(u8::is_ascii_whitespace).then_some(at);
            }
            _ => out.push(byte),
        }
    }
}

/// The character for a backslash sequence between double quotes.
fn escaped(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let hex = |byte: u8| (byte as char).to_digit(16);
    match *rest {
        [b'x', high, low, ..] if hex(high).is_some() && hex(low).is_some() => {
            out.push((hex(high)? * 16 + hex(low)?) as u8);
            return Some(3);
        }
        [b'n', ..] => out.push(b'\n'),
        [b'r', ..] => out.push(b'\r'),
        [b't', ..] => out.push(b'\t'),
        [b'b', ..] => out.push(8),
        [b'a', ..] => out.push(7),
        [byte, ..] => out.push(byte),
        [] => return None,
    }
    Some(1)
}

/// A decimal number with or without a sign; `None` for anything else.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let is_short = (1..=MOST_DIGITS).contains(&digits.len());
    if !is_short || (digits[0] == b'0' && text.len() > 1) {
        return None;
    }
    digits.iter().try_fold(0_i64, |sum, &byte| {
        let digit = i64::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
        let sum = sum.checked_mul(10)?;
        if is_negative { sum.checked_sub(digit) } else { sum.checked_add(digit) }
    })
}

/// The arguments of a request, its name first.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// The arguments at `spans` in `bytes`.
    pub fn of(bytes: &'a [u8], spans: &'a [Span]) -> Arguments<'a> {
        Arguments { bytes, spans }
    }

    /// Number of arguments; 0 for an empty request.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it is an empty request.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// One of them; empty if there is no such argument.
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.spans.get(index).map_or(&[], |span| &self.bytes[span.clone()])
    }

    /// The arguments from a number on.
    pub fn from(&self, index: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: &self.spans[index.min(self.spans.len())..] }
    }

    /// The first arguments, that many of them.
    pub fn to(&self, count: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: &self.spans[..count.min(self.spans.len())] }
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans.iter().map(move |span| &bytes[span.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The requests of a stream that arrives in pieces of `piece` bytes.
    fn requests(stream: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, &'static str> {
        let mut parser = Parser::default();
        let (mut input, mut found) = (Vec::new(), Vec::new());
        for bytes in stream.chunks(piece) {
            input.extend_from_slice(bytes);
            loop {
                match parser.step(&input, &Limits::default()) {
                    Step::More => break,
                    Step::Broken(text) => return Err(text),
                    Step::Request => {
                        found.push(parser.arguments(&input).iter().map(<[u8]>::to_vec).collect());
                        input.drain(..parser.consume());
                    }
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn requests_are_the_same_in_whatever_pieces_they_come() {
        let stream = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\nbc\r\nPING  x\r\n*0\r\n*1\r\n$0\r\n\r\nset \"a\\x41\\n\" 'it\\'s'\n";
        let words = |texts: &[&[u8]]| texts.iter().map(|text| text.to_vec()).collect::<Vec<_>>();
        let wanted = vec![
            words(&[b"SET", b"k", b"a\r\nbc"]),
            words(&[b"PING", b"x"]),
            words(&[]),
            words(&[b""]),
            words(&[b"set", b"aA\n", b"it's"]),
        ];
        for piece in 1..=stream.len() {
            assert_eq!(requests(stream, piece).as_ref(), Ok(&wanted), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_words_of_redis() {
        let cases: [(&[u8], &str); 7] = [
            (b"*x\r\n", "ERR Protocol error: invalid multibulk length"),
            (b"*2000000\r\n", "ERR Protocol error: invalid multibulk length"),
            (b"*1\r\nxx\r\n", "ERR Protocol error: expected '$'"),
            (b"*1\r\n$-5\r\n", "ERR Protocol error: invalid bulk length"),
            (b"*1\r\n$999999999999\r\n", "ERR Protocol error: invalid bulk length"),
            (b"get \"x\r\n", "ERR Protocol error: unbalanced quotes in request"),
            (b"*1111111111111111111111111111111111111111", "ERR Protocol error: too big count string"),
        ];
        for (stream, wanted) in cases {
            assert_eq!(requests(stream, 3), Err(wanted), "{}", stream.escape_ascii());
        }
        assert_eq!(requests(&[b'a'; 100_000], 1000), Err("ERR Protocol error: too big inline request"));
    }

    /// Streams of requests in which some bytes were changed, removed or inserted.
    fn mutated() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            Just(b"GET".to_vec()),
            Just(b"\r\n$1\r\n".to_vec()),
            Just(b"*2\r\n".to_vec()),
        ];
        let request = (any::<bool>(), proptest::collection::vec(word, 0..6));
        let change = (any::<proptest::sample::Index>(), 0..4_u8, any::<u8>());
        let parts = (proptest::collection::vec(request, 0..8), proptest::collection::vec(change, 0..6));
        parts.prop_map(|(requests, changes)| {
            let mut bytes = Vec::new();
            for (is_inline, words) in requests {
                if is_inline {
                    words.iter().for_each(|word| bytes.extend(word.iter().chain(b" ")));
                    bytes.extend_from_slice(b"\r\n");
                    continue;
                }
                bytes.extend(format!("*{}\r\n", words.len()).bytes());
                for word in words {
                    bytes.extend(format!("${}\r\n", word.len()).bytes().chain(word).chain(*b"\r\n"));
                }
            }
            for (place, kind, byte) in changes {
                let place = place.index(bytes.len() + 1);
                match kind {
                    0 => bytes.insert(place, byte),
                    1 => bytes.insert(place, b"*$0123456789-\r\n \""[usize::from(byte) % 17]),
                    _ if place == bytes.len() => {}
                    2 => drop(bytes.remove(place)),
                    _ => bytes[place] = byte,
                }
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_the_same_requests_in_whatever_pieces_they_come(bytes in mutated(), piece in 1..64_usize) {
            let whole = requests(&bytes, bytes.len().max(1));
            prop_assert_eq!(&requests(&bytes, piece), &whole);
            if let Ok(found) = whole {
                let words: usize = found.iter().flatten().map(Vec::len).sum();
                prop_assert!(words <= bytes.len());
            }
        }
    }

    #[test]
    fn a_length_that_is_only_claimed_takes_no_memory() {
        let mut parser = Parser::default();
        let input = b"*1000000\r\n$60000000\r\nabc";
        assert_eq!(parser.step(input, &Limits::default()), Step::More);
        assert!(parser.spans.capacity() < 64);
    }

    #[test]
    fn numbers_are_decimal_and_whole() {
        let cases: [(&[u8], Option<i64>); 9] = [
            (b"0", Some(0)),
            (b"-1", Some(-1)),
            (b"9223372036854775807", Some(i64::MAX)),
            (b"-9223372036854775808", Some(i64::MIN)),
            (b"9223372036854775808", None),
            (b"", None),
            (b"01", None),
            (b"1 ", None),
            (b"+1", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(number(text), wanted, "{}", text.escape_ascii());
        }
    }
}
