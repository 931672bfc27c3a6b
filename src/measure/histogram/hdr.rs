//! A histogram in HdrHistogram's own format: the compressed form (V2) of its interval logs, for programs that read
//! these. The buckets are the same, so nothing is lost except values above 73 minutes, which have no bucket.

use super::{BUCKETS, HIGHEST_NS, Histogram};

/// The first words of the compressed and of the plain form, both of version 2.
const COMPRESSED: u32 = 0x1c84_9304 | 0x10;
const PLAIN: u32 = 0x1c84_9303 | 0x10;
const SIGNIFICANT_DIGITS: u32 = 3;
/// Maximum bytes of a stored block of DEFLATE.
const STORED_BYTES: usize = 0xffff;

impl Histogram {
    /// The text at the end of a line of an interval log: base64 of the compressed form. It is stored without
    /// compression, because it is small; every reader accepts both.
    pub fn hdr_log_text(&self) -> String {
        let packed = zlib_stored(&self.hdr_plain());
        let mut bytes = COMPRESSED.to_be_bytes().to_vec();
        bytes.extend((packed.len() as u32).to_be_bytes());
        bytes.extend(packed);
        base64(&bytes)
    }

    /// Words of the header, then counts as numbers of 7 bits per byte, with runs of empty buckets as negative
    /// numbers.
    fn hdr_plain(&self) -> Vec<u8> {
        let mut counts = Vec::new();
        let mut next = 0;
        for (index, count) in self.occupied() {
            if index > next {
                write_zigzag(&mut counts, -((index - next) as i64));
            }
            write_zigzag(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
            next = index + 1;
        }
        debug_assert!(next <= BUCKETS);
        let mut bytes = PLAIN.to_be_bytes().to_vec();
        bytes.extend((counts.len() as u32).to_be_bytes());
        // No bucket shift.
        bytes.extend(0_u32.to_be_bytes());
        bytes.extend(SIGNIFICANT_DIGITS.to_be_bytes());
        // The lowest value that is distinct from 0, and the highest that has a bucket.
        bytes.extend(1_u64.to_be_bytes());
        bytes.extend(HIGHEST_NS.to_be_bytes());
        bytes.extend(1_f64.to_be_bytes());
        bytes.extend(counts);
        bytes
    }
}

/// The lowest bit is the sign; the ninth byte, if there is one, has eight bits.
fn write_zigzag(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            bytes.push(rest as u8);
            return;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// A zlib stream (RFC 1950) of stored blocks.
fn zlib_stored(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(STORED_BYTES).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let is_there = place <= three.len();
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if is_there { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    /// What the reference implementation reads from the text.
    fn read_back(text: &str) -> hdrhistogram::Histogram<u64> {
        let bytes = decoded(text);
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    fn decoded(text: &str) -> Vec<u8> {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut bytes = Vec::new();
        for four in text.as_bytes().chunks(4) {
            let bits = four.iter().fold(0_u32, |bits, letter| {
                bits << 6 | letters.find(char::from(*letter)).unwrap_or(0) as u32
            });
            let kept = 3 - four.iter().filter(|letter| **letter == b'=').count();
            bytes.extend(&bits.to_be_bytes()[1..1 + kept]);
        }
        bytes
    }

    #[test]
    fn the_reference_reads_the_same_counts() {
        let cases: [&[(u64, u64)]; 6] = [
            &[],
            &[(0, 1)],
            &[(585, 1), (2_047, 3), (2_048, 5), (2_049, 7), (1_000_000_007, 11)],
            &[(HIGHEST_NS, 2)],
            &[(1, 1 << 40), (70_000_000, 1 << 50)],
            &[(3, 127), (4, 128), (700, 8_191), (701, 8_192)],
        ];
        for case in cases {
            let mut histogram = Histogram::new();
            case.iter().for_each(|(ns, count)| histogram.record_n(*ns, *count));
            let read = read_back(&histogram.hdr_log_text());
            assert_eq!(read.len(), histogram.count(), "{case:?}");
            for bucket in histogram.buckets() {
                assert_eq!(read.count_at(bucket.lowest_ns), bucket.count, "{case:?}");
            }
            for (numerator, denominator) in [(1, 2), (99, 100), (1, 1)] {
                let own = histogram.quantile(numerator, denominator);
                let theirs = read.value_at_quantile(numerator as f64 / denominator as f64);
                let own = own.map_or(0, |own| read.highest_equivalent(own));
                assert_eq!(own, theirs, "{case:?} {numerator}/{denominator}");
            }
            assert_eq!(histogram.packed().hdr_log_text(), histogram.hdr_log_text());
        }
    }

    #[test]
    fn many_buckets_take_more_than_one_stored_block() {
        let mut histogram = Histogram::new();
        // Counts of four bytes in each of 30,000 buckets.
        let all: Vec<u64> = (0..30_000).map(super::super::lowest_of).collect();
        all.iter().for_each(|ns| histogram.record_n(*ns, 1 << 24));
        assert!(histogram.hdr_plain().len() > STORED_BYTES);
        let read = read_back(&histogram.hdr_log_text());
        assert_eq!(read.len(), 30_000 << 24);
        assert_eq!(read.count_at(all[29_999]), 1 << 24);
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn coarse_buckets_hold_all_that_the_fine_ones_do() {
        let mut histogram = Histogram::new();
        (0..100_000_u64).for_each(|ns| histogram.record(ns * ns / 7));
        let coarse = histogram.coarse();
        assert_eq!(coarse.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
        assert!(coarse.is_sorted() && coarse.len() < 140, "{}", coarse.len());
        assert!(coarse.iter().all(|(ns, _)| *ns < 8 || ns.trailing_zeros() + 3 >= 64 - ns.leading_zeros()));
    }
}
