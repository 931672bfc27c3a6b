//! Replies of the Redis protocol: a writer for each type, in RESP2 or RESP3 as the client has requested.

/// The protocol version that a client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RESP2, the initial version of every client.
    #[default]
    Two,
    /// RESP3, after `HELLO 3`.
    Three,
}

/// Writes replies one after the other.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The bytes written.
    pub bytes: Vec<u8>,
    /// The version of the client of this request.
    pub version: Version,
}

impl Reply {
    /// `+text`
    pub(crate) fn status(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `+OK`
    pub(crate) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// `-text`; line ends in it become spaces.
    pub(crate) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        self.bytes.extend(text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
        self.end();
    }

    /// `:number`
    pub(crate) fn integer(&mut self, number: i64) {
        self.bytes.push(b':');
        self.digits(number);
        self.end();
    }

    /// A count.
    pub(crate) fn count(&mut self, count: usize) {
        self.integer(count as i64);
    }

    /// `$length` and the bytes.
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.end();
    }

    /// A null in place of a bulk.
    pub(crate) fn nil(&mut self) {
        self.bytes.extend_from_slice(if self.version == Version::Three { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// A null in place of an array.
    pub(crate) fn nil_array(&mut self) {
        self.bytes.extend_from_slice(if self.version == Version::Three { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// Text for people; in RESP2 a bulk.
    pub(crate) fn text(&mut self, text: &str) {
        match self.version {
            Version::Two => self.bulk(text.as_bytes()),
            Version::Three => {
                self.head(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    /// Inserts what `write` writes at a place in the bytes.
    pub(crate) fn insert(&mut self, at: usize, write: impl FnOnce(&mut Reply)) {
        let mut part = Reply { bytes: Vec::new(), version: self.version };
        write(&mut part);
        self.bytes.splice(at..at, part.bytes);
    }

    /// A bulk, or a null.
    pub(crate) fn bulk_or_nil(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.nil(),
        }
    }

    /// The header of an array; its elements follow.
    pub(crate) fn array(&mut self, length: usize) {
        self.head(b'*', length);
    }

    /// The header of a map of `pairs`; in RESP2 an array of alternating keys and values.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Two => self.head(b'*', 2 * pairs),
            Version::Three => self.head(b'%', pairs),
        }
    }

    /// The header of a set; in RESP2 an array.
    pub(crate) fn set(&mut self, length: usize) {
        self.head(if self.version == Version::Three { b'~' } else { b'*' }, length);
    }

    /// A number with a fraction; in RESP2 a bulk.
    pub(crate) fn double(&mut self, number: f64) {
        let text = score_text(number);
        match self.version {
            Version::Two => self.bulk(text.as_bytes()),
            Version::Three => self.line(b',', text.as_bytes()),
        }
    }

    /// A number with a fraction, or a null.
    pub(crate) fn double_or_nil(&mut self, number: Option<f64>) {
        match number {
            Some(number) => self.double(number),
            None => self.nil(),
        }
    }

    fn head(&mut self, kind: u8, length: usize) {
        self.bytes.push(kind);
        self.digits(length as i64);
        self.end();
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.end();
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn digits(&mut self, number: i64) {
        let mut text = [0_u8; 20];
        let mut at = text.len();
        let mut left = number.unsigned_abs();
        loop {
            at -= 1;
            text[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if number < 0 {
            self.bytes.push(b'-');
        }
        self.bytes.extend_from_slice(&text[at..]);
    }
}

/// A score as Redis prints it: the shortest text that parses to the same number, whole numbers without a point.
pub(crate) fn score_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let magnitude = number.abs();
    if number != 0.0 && !(1e-5..1e17).contains(&magnitude) {
        // C's %.17g writes exponents with a sign and two digits.
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or_default();
        return format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    format!("{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_written_as_the_client_speaks() {
        let all = |version| {
            let mut reply = Reply { version, ..Reply::default() };
            reply.status("PONG");
            reply.error("ERR two\r\nlines");
            reply.integer(-42);
            reply.integer(i64::MIN);
            reply.bulk(b"a\r\nb");
            reply.nil();
            reply.nil_array();
            reply.map(1);
            reply.set(2);
            reply.double(1.5);
            String::from_utf8(reply.bytes).unwrap()
        };
        let head = "+PONG\r\n-ERR two  lines\r\n:-42\r\n:-9223372036854775808\r\n$4\r\na\r\nb\r\n";
        assert_eq!(all(Version::Two), format!("{head}$-1\r\n*-1\r\n*2\r\n*2\r\n$3\r\n1.5\r\n"));
        assert_eq!(all(Version::Three), format!("{head}_\r\n_\r\n%1\r\n~2\r\n,1.5\r\n"));
    }

    #[test]
    fn scores_are_printed_as_redis_does() {
        let cases = [
            (3.0, "3"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e20, "1e+20"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (17179869184.0, "17179869184"),
        ];
        for (number, text) in cases {
            assert_eq!(score_text(number), text);
        }
    }
}
