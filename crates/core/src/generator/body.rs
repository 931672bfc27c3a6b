//! The bytes after a value's header: noise that no compressor shrinks, and a repeating part that all compressors
//! shrink.
//!
//! The body is split into chunks of 4 KiB, each with a separate hash. A chunk starts with a slice of a noise table,
//! at an offset from the hash and XORed with a word of the hash, so that values of one block never share bytes
//! although the table is small; the rest of the chunk repeats half of that word. A byte that was moved, torn or left
//! from another version therefore differs in either part.

use super::random::{Random, mix64};
use super::value::HEADER_BYTES;
use std::sync::Arc;

/// Bytes of a chunk: the size of most engines' pages and blocks.
const CHUNK_BYTES: usize = 4096;
/// Places in the noise table. It fits into the L1 cache, so that a check evicts none of the engine's data from the
/// larger caches: with 1 MiB a get of LMDB took 15 % longer (`make bench`, core over hand). The word that is XORed
/// with a slice makes values differ.
const NOISE_BYTES: usize = 1 << 14;
/// Bytes that are written and compared together.
const BLOCK_BYTES: usize = 32;
/// Chunks of this size and more are written and compared by wider instructions.
#[cfg(target_arch = "x86_64")]
const WIDE_BYTES: usize = 256;
/// Bytes that LZ4 keeps of a header (tag, the changing bytes of index and version, two matches), measured by
/// `shape::compressibility`.
const HEADER_COST: f64 = 14.0;
/// Bytes that LZ4 keeps of a chunk's repeating part: the word, a match and a length.
const REPEAT_COST: f64 = 11.0;

/// Writes and compares bodies; clones share the noise.
#[derive(Clone, Debug)]
pub(super) struct Body {
    noise: Arc<[u8]>,
    share: f64,
    /// Noise bytes in the first chunk of a value if all values have the same size.
    first: Option<usize>,
}

impl Body {
    /// Bodies that keep `share` of their value's bytes; `fixed` is the length of every value, if all have the same.
    pub(super) fn new(share: f64, fixed: Option<usize>, seed: u64) -> Body {
        let mut random = Random::seeded(seed);
        let words = (NOISE_BYTES + CHUNK_BYTES) / 8;
        let noise: Vec<u8> = (0..words).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        Body { noise: noise.into(), share, first: None }.resized(fixed)
    }

    /// The same noise for values of another length.
    pub(super) fn resized(&self, fixed: Option<usize>) -> Body {
        let chunk = fixed.map(|len| len.saturating_sub(HEADER_BYTES).min(CHUNK_BYTES));
        let first = chunk.map(|chunk| self.noise_bytes(chunk, true));
        Body { noise: self.noise.clone(), share: self.share, first }
    }

    /// The number of noise bytes at the start of a chunk; the first chunk compensates for the header.
    fn noise_bytes(&self, chunk: usize, is_first: bool) -> usize {
        if self.share >= 1.0 {
            return chunk;
        }
        let (before, cost) = if is_first { (HEADER_BYTES, HEADER_COST) } else { (0, 0.0) };
        let kept = self.share * (chunk + before) as f64 - cost - REPEAT_COST;
        ((kept + 0.5) as usize).min(chunk)
    }

    #[inline]
    fn first_bytes(&self, chunk: usize) -> usize {
        match self.first {
            Some(first) => first,
            None => self.noise_bytes(chunk, true),
        }
    }

    /// The noise of a chunk and the word that it is XORed with.
    #[inline]
    fn source(&self, hash: u64, bytes: usize) -> (&[u8], u64) {
        let place = (hash >> 32) as usize & (NOISE_BYTES - 1);
        (&self.noise[place..place + bytes], hash.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Writes the body for `hash`.
    #[inline]
    pub(super) fn write(&self, hash: u64, body: &mut [u8]) {
        if body.len() > CHUNK_BYTES {
            return self.write_chunks(hash, body);
        }
        let first = self.first_bytes(body.len());
        self.write_chunk_quickly(hash, body, first);
    }

    #[inline(never)]
    fn write_chunks(&self, hash: u64, body: &mut [u8]) {
        for (place, chunk) in body.chunks_mut(CHUNK_BYTES).enumerate() {
            let noise = self.noise_bytes(chunk.len(), place == 0);
            self.write_chunk_quickly(chunk_hash(hash, place), chunk, noise);
        }
    }

    /// Writes a chunk, 32 bytes at a time if the processor has such registers and the chunk is worth the call.
    #[inline]
    #[allow(unsafe_code, reason = "a function for processors with AVX2 can only be called so")]
    fn write_chunk_quickly(&self, hash: u64, chunk: &mut [u8], noise_bytes: usize) {
        #[cfg(target_arch = "x86_64")]
        if chunk.len() >= WIDE_BYTES && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports it.
            return unsafe { write_wide(self, hash, chunk, noise_bytes) };
        }
        self.write_chunk(hash, chunk, noise_bytes);
    }

    #[inline(always)]
    fn write_chunk(&self, hash: u64, chunk: &mut [u8], noise_bytes: usize) {
        let (noise, word) = self.source(hash, noise_bytes);
        let (veiled, repeated) = chunk.split_at_mut(noise_bytes);
        veil_all(veiled, noise, word);
        repeat(repeated, repeating(word));
    }

    /// Compares a body with the one for `hash`.
    #[inline]
    pub(super) fn equals(&self, hash: u64, body: &[u8]) -> bool {
        if body.len() > CHUNK_BYTES {
            return self.equals_chunks(hash, body);
        }
        self.equals_chunk_quickly(hash, body, self.first_bytes(body.len()))
    }

    #[inline(never)]
    fn equals_chunks(&self, hash: u64, body: &[u8]) -> bool {
        body.chunks(CHUNK_BYTES).enumerate().all(|(place, chunk)| {
            let noise = self.noise_bytes(chunk.len(), place == 0);
            self.equals_chunk_quickly(chunk_hash(hash, place), chunk, noise)
        })
    }

    /// Compares a chunk; see [`Body::write_chunk_quickly`].
    #[inline]
    #[allow(unsafe_code, reason = "a function for processors with AVX2 can only be called so")]
    fn equals_chunk_quickly(&self, hash: u64, chunk: &[u8], noise_bytes: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if chunk.len() >= WIDE_BYTES && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports it.
            return unsafe { equals_wide(self, hash, chunk, noise_bytes) };
        }
        self.equals_chunk(hash, chunk, noise_bytes)
    }

    #[inline(always)]
    fn equals_chunk(&self, hash: u64, chunk: &[u8], noise_bytes: usize) -> bool {
        let (noise, word) = self.source(hash, noise_bytes);
        let (veiled, repeated) = chunk.split_at(noise_bytes);
        difference(veiled, noise, word) | difference_of_repeated(repeated, repeating(word)) == 0
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn write_wide(body: &Body, hash: u64, chunk: &mut [u8], noise_bytes: usize) {
    body.write_chunk(hash, chunk, noise_bytes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn equals_wide(body: &Body, hash: u64, chunk: &[u8], noise_bytes: usize) -> bool {
    body.equals_chunk(hash, chunk, noise_bytes)
}

/// Writes noise of the same length, XORed with a word. The last block overlaps the one before.
#[inline(always)]
fn veil_all(into: &mut [u8], noise: &[u8], word: u64) {
    let bytes = noise.len();
    if let Some(last) = noise.last_chunk::<BLOCK_BYTES>() {
        let blocks = into.as_chunks_mut().0.iter_mut().zip(noise.as_chunks().0);
        blocks.for_each(|(into, noise)| *into = veiled(noise, word));
        if let Some(into) = into.last_chunk_mut() {
            *into = veiled(last, word_at(bytes - BLOCK_BYTES, word));
        }
    } else if let Some(last) = noise.last_chunk::<8>() {
        let words = into.as_chunks_mut().0.iter_mut().zip(noise.as_chunks::<8>().0);
        words.for_each(|(into, noise)| *into = (u64::from_le_bytes(*noise) ^ word).to_le_bytes());
        if let Some(into) = into.last_chunk_mut() {
            *into = (u64::from_le_bytes(*last) ^ word_at(bytes - 8, word)).to_le_bytes();
        }
    } else {
        let bytes = noise.iter().zip(word.to_le_bytes());
        into.iter_mut().zip(bytes).for_each(|(into, (noise, byte))| *into = noise ^ byte);
    }
}

/// Fills with a word.
#[inline(always)]
fn repeat(into: &mut [u8], word: u64) {
    let bytes = into.len();
    into.as_chunks_mut().0.fill(word.to_le_bytes());
    match into.last_chunk_mut() {
        Some(last) => *last = word_at(bytes - 8, word).to_le_bytes(),
        None => into.iter_mut().zip(word.to_le_bytes()).for_each(|(into, byte)| *into = byte),
    }
}

/// The bits in which bytes differ from noise of the same length XORed with a word, in any place; 0: they are equal.
#[inline(always)]
fn difference(actual: &[u8], noise: &[u8], word: u64) -> u64 {
    let bytes = noise.len();
    if let (Some(last), Some(from)) = (actual.last_chunk::<BLOCK_BYTES>(), noise.last_chunk()) {
        let mut differences = [0; BLOCK_BYTES / 8];
        let blocks = actual.as_chunks().0.iter().zip(noise.as_chunks().0);
        blocks.for_each(|(actual, noise)| collect(&mut differences, actual, noise, word));
        collect(&mut differences, last, from, word_at(bytes - BLOCK_BYTES, word));
        differences.iter().fold(0, |all, bits| all | bits)
    } else if let (Some(last), Some(from)) = (actual.last_chunk::<8>(), noise.last_chunk::<8>()) {
        let words = actual.as_chunks::<8>().0.iter().zip(noise.as_chunks::<8>().0);
        let of = |actual: &[u8; 8], noise: &[u8; 8]| u64::from_le_bytes(*actual) ^ u64::from_le_bytes(*noise);
        let all = words.fold(0, |all, (actual, noise)| all | (of(actual, noise) ^ word));
        all | (of(last, from) ^ word_at(bytes - 8, word))
    } else {
        let bytes = noise.iter().zip(word.to_le_bytes());
        actual
            .iter()
            .zip(bytes)
            .fold(0, |all, (actual, (noise, byte))| all | u64::from(actual ^ noise ^ byte))
    }
}

/// The bits in which bytes differ from a repeated word, in any place.
#[inline(always)]
fn difference_of_repeated(actual: &[u8], word: u64) -> u64 {
    let bytes = actual.len();
    match actual.last_chunk() {
        Some(last) => {
            let words = actual.as_chunks::<8>().0.iter();
            let all = words.fold(0, |all, actual| all | (u64::from_le_bytes(*actual) ^ word));
            all | (u64::from_le_bytes(*last) ^ word_at(bytes - 8, word))
        }
        None => {
            let bytes = actual.iter().zip(word.to_le_bytes());
            bytes.fold(0, |all, (actual, byte)| all | u64::from(actual ^ byte))
        }
    }
}

/// A block of noise XORed with a word.
#[inline(always)]
fn veiled(noise: &[u8; BLOCK_BYTES], word: u64) -> [u8; BLOCK_BYTES] {
    let mut veiled = [0; BLOCK_BYTES];
    for (into, from) in veiled.as_chunks_mut::<8>().0.iter_mut().zip(noise.as_chunks::<8>().0) {
        *into = (u64::from_ne_bytes(*from) ^ word.to_le()).to_ne_bytes();
    }
    veiled
}

/// Adds the bits in which a block differs from noise XORed with a word.
#[inline(always)]
fn collect(
    differences: &mut [u64; BLOCK_BYTES / 8],
    actual: &[u8; BLOCK_BYTES],
    noise: &[u8; BLOCK_BYTES],
    word: u64,
) {
    let words = actual.as_chunks::<8>().0.iter().zip(noise.as_chunks::<8>().0);
    for (difference, (actual, noise)) in differences.iter_mut().zip(words) {
        *difference |= u64::from_ne_bytes(*actual) ^ u64::from_ne_bytes(*noise) ^ word.to_le();
    }
}

/// The word that a block is XORed with whose first byte is at `place`.
#[inline(always)]
fn word_at(place: usize, word: u64) -> u64 {
    word.rotate_right(place as u32 % 8 * 8)
}

/// The repeating part of a chunk: four bytes. With eight, LZ4, which skips ahead while it finds no match, takes
/// longer to detect the repetition.
#[inline]
fn repeating(word: u64) -> u64 {
    word >> 32 | word >> 32 << 32
}

/// The hash of chunk `place`; the first is the value's own.
#[inline]
fn chunk_hash(hash: u64, place: usize) -> u64 {
    if place == 0 { hash } else { mix64(hash.wrapping_add(place as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body by its definition, byte by byte.
    fn defined(body: &Body, hash: u64, bytes: usize, noise_bytes: usize) -> Vec<u8> {
        let (noise, word) = body.source(hash, noise_bytes);
        let of = |word: u64, place: usize| word.to_le_bytes()[place % 8];
        let veiled = noise.iter().enumerate().map(|(place, byte)| byte ^ of(word, place));
        veiled.chain((0..bytes - noise_bytes).map(|place| of(repeating(word), place))).collect()
    }

    #[test]
    fn blocks_are_the_bytes_of_the_definition() {
        let body = Body::new(1.0, None, 3);
        let mut random = Random::seeded(3);
        for bytes in (0..200_usize).chain([255, 256, 257, 976, 1_000, 4_095, 4_096]) {
            for noise_bytes in [0, bytes / 3, bytes / 2, bytes.saturating_sub(1), bytes] {
                let hash = random.next_u64();
                let wanted = defined(&body, hash, bytes, noise_bytes);
                let (mut plain, mut quick) = (vec![0; bytes], vec![0; bytes]);
                body.write_chunk(hash, &mut plain, noise_bytes);
                body.write_chunk_quickly(hash, &mut quick, noise_bytes);
                assert!(plain == wanted && quick == wanted, "seed 3, {noise_bytes} of {bytes}");
                assert!(body.equals_chunk(hash, &wanted, noise_bytes), "seed 3, {noise_bytes} of {bytes}");
                assert!(
                    body.equals_chunk_quickly(hash, &wanted, noise_bytes),
                    "seed 3, {noise_bytes} of {bytes}"
                );
                for at in 0..bytes {
                    plain[at] ^= 1 << (at % 8);
                    let is_equal = body.equals_chunk(hash, &plain, noise_bytes)
                        || body.equals_chunk_quickly(hash, &plain, noise_bytes);
                    assert!(!is_equal, "seed 3, {noise_bytes} of {bytes}: a flip at {at}");
                    plain[at] = wanted[at];
                }
            }
        }
    }
}
