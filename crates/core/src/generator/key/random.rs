//! Keys of random bytes from which their number can be computed: a bijection of 64 bits, then bytes that depend on
//! it.

use crate::generator::random::mix64;

/// The bytes for the number: the minimum length of a random key.
pub(in crate::generator) const LEAST: usize = 8;

/// Fills `out`, which has at least `LEAST` bytes, with the bytes of a number.
pub(super) fn write(number: u64, seed: u64, out: &mut [u8]) {
    let head = mix64(number ^ seed);
    for (word, bytes) in (0..).zip(out.chunks_mut(8)) {
        bytes.copy_from_slice(&word_of(head, seed, word).to_be_bytes()[..bytes.len()]);
    }
}

/// The number of such bytes; `None` if `write` did not create them.
pub(super) fn read(bytes: &[u8], seed: u64) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk::<LEAST>()?;
    let head = u64::from_be_bytes(*first);
    let is_right =
        |(word, bytes): (u64, &[u8])| *bytes == word_of(head, seed, word).to_be_bytes()[..bytes.len()];
    (1..).zip(rest.chunks(8)).all(is_right).then(|| unmix64(head) ^ seed)
}

fn word_of(head: u64, seed: u64, word: u64) -> u64 {
    if word == 0 { head } else { mix64(mix64(head ^ word.rotate_left(40)) ^ seed) }
}

/// The inverse of `mix64`.
fn unmix64(number: u64) -> u64 {
    // The multipliers' inverses modulo 2^64.
    let z = number ^ (number >> 31) ^ (number >> 62);
    let z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
    let z = z ^ (z >> 27) ^ (z >> 54);
    let z = z.wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ (z >> 30) ^ (z >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_lead_back(number in any::<u64>(), seed in any::<u64>(), size in 8usize..90, at in 0usize..90) {
            prop_assert_eq!(unmix64(mix64(number)), number);
            let mut out = vec![0; size];
            write(number, seed, &mut out);
            prop_assert_eq!(read(&out, seed), Some(number));
            if (8..size).contains(&at) {
                out[at] ^= 4;
                prop_assert_eq!(read(&out, seed), None);
            }
            prop_assert_eq!(read(&out[..7], seed), None);
        }
    }
}
