//! Any bytes of a client are requests, incomplete, or an error, with the same result for any division into pieces.
#![no_main]

use kvdyno::{Limits, Parser, Step};

/// The requests of a stream that arrives in two pieces, and the last step of the parser.
fn requests(first: &[u8], second: &[u8]) -> (Vec<Vec<Vec<u8>>>, Step) {
    let (mut parser, mut input, mut found) = (Parser::default(), Vec::new(), Vec::new());
    let mut last = Step::More;
    for piece in [first, second] {
        input.extend_from_slice(piece);
        loop {
            last = parser.step(&input, &Limits::before_password());
            if last != Step::Request {
                break;
            }
            found.push(parser.arguments(&input).iter().map(<[u8]>::to_vec).collect());
            input.drain(..parser.consume());
        }
        if matches!(last, Step::Broken(_)) {
            break;
        }
    }
    (found, last)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let whole = requests(bytes, &[]);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    assert_eq!(requests(first, second), whole);
});
