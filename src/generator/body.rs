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
        let bytes = word.to_le_bytes();
        let (into, into_tail) = veiled.as_chunks_mut::<8>();
        let (from, from_tail) = noise.as_chunks::<8>();
        for (into, from) in into.iter_mut().zip(from) {
            *into = (u64::from_le_bytes(*from) ^ word).to_le_bytes();
        }
        for ((into, from), byte) in into_tail.iter_mut().zip(from_tail).zip(bytes) {
            *into = from ^ byte;
        }
        let bytes = repeating(word).to_le_bytes();
        let (into, into_tail) = repeated.as_chunks_mut::<8>();
        into.fill(bytes);
        into_tail.copy_from_slice(&bytes[..into_tail.len()]);
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
        let bytes = word.to_le_bytes();
        let mut difference = 0_u64;
        let (actual, actual_tail) = veiled.as_chunks::<8>();
        let (from, from_tail) = noise.as_chunks::<8>();
        for (actual, from) in actual.iter().zip(from) {
            difference |= u64::from_le_bytes(*actual) ^ u64::from_le_bytes(*from) ^ word;
        }
        for ((actual, from), byte) in actual_tail.iter().zip(from_tail).zip(bytes) {
            difference |= u64::from(actual ^ from ^ byte);
        }
        let word = repeating(word);
        let bytes = word.to_le_bytes();
        let (actual, actual_tail) = repeated.as_chunks::<8>();
        for actual in actual {
            difference |= u64::from_le_bytes(*actual) ^ word;
        }
        for (actual, byte) in actual_tail.iter().zip(bytes) {
            difference |= u64::from(actual ^ byte);
        }
        difference == 0
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
