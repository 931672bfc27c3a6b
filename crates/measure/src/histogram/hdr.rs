//! A histogram in HdrHistogram's own format: the compressed form (V2) of its interval logs, for programs that read
//! these. The buckets are the same, so nothing is lost except values above 73 minutes, which have no bucket.

use super::record_form::SIGNIFICANT_DIGITS;
use super::{HIGHEST_NS, Histogram};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

impl Histogram {
    /// The text at the end of a line of an interval log: base64 of the compressed form.
    pub fn hdr_log_text(&self) -> String {
        let mut copy = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the crate accepts these constants");
        for bucket in self.buckets() {
            // Counts are signed in that format.
            copy.saturating_record_n(bucket.lowest_ns, bucket.count.min(i64::MAX as u64));
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&copy, &mut bytes)
            .expect("a vector accepts all bytes and every count fits");
        BASE64_STANDARD.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    /// What the reference implementation reads from the text.
    fn read_back(text: &str) -> hdrhistogram::Histogram<u64> {
        let bytes = BASE64_STANDARD.decode(text).unwrap();
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
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
    fn coarse_buckets_hold_all_that_the_fine_ones_do() {
        let mut histogram = Histogram::new();
        (0..100_000_u64).for_each(|ns| histogram.record(ns * ns / 7));
        let coarse = histogram.coarse();
        assert_eq!(coarse.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
        assert!(coarse.is_sorted() && coarse.len() < 140, "{}", coarse.len());
        assert!(coarse.iter().all(|(ns, _)| *ns < 8 || ns.trailing_zeros() + 3 >= 64 - ns.leading_zeros()));
    }
}
