//! Values: a pure function of an item's index and a version, so that every byte read can be checked.
//!
//! Little endian; `h` is a hash of index, version and seed; the body is described in body.rs.
//!
//! | bytes | form |
//! |---|---|
//! | 24 and more | tag: low half of h, u32; length, u32; index, u64; version, u64; body |
//! | 16 to 23 | index XOR a hash of version and seed, u64; version, u64; bytes of h |
//! | 8 to 15 | version, 40 bits; check, upper 24 bits of h; more bytes of h |
//! | 1 to 7 | bytes of a hash of index and seed, the same for every version |
//! | 0 | nothing: only presence and length can be checked |

use super::body::Body;
use super::random::{derive, mix64};
use super::sizes::Sizes;
use super::spec::{SizeSpec, SpecError};

/// Bytes before the body of a value of full form.
pub(super) const HEADER_BYTES: usize = 24;
/// Versions of values of 8 to 15 bytes.
const SMALL_VERSION_BITS: u32 = 40;

/// The form of values.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRules {
    /// Bytes of a value.
    pub size: SizeSpec,
    /// The share of their bytes that values keep when they are compressed in blocks of 4 to 64 KiB: 1 is noise; must
    /// be over 0. LZ4 keeps within 0.03 of it (0.04 at 200 bytes) for values of 100 bytes and more, and never less
    /// than about 23 bytes of a value; at 1, the headers still compress (0.93 kept of 100 bytes). See
    /// `shape::compressibility`.
    pub compressed_share: f64,
}

/// What is wrong with a value that was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongValue {
    /// Its length differs from the written one.
    #[error("the value has {actual} bytes, but {wanted} were written")]
    Length {
        /// Bytes that were written.
        wanted: usize,
        /// Bytes that were read.
        actual: usize,
    },
    /// An intact value, but of another key.
    #[error("the value belongs to key {actual}, but key {wanted} was requested")]
    Key {
        /// The requested index.
        wanted: u64,
        /// The index in the value.
        actual: u64,
    },
    /// An intact value of this key, but of another version.
    #[error("the value is version {actual} of its key, but version {wanted} was expected")]
    Version {
        /// The requested version.
        wanted: u64,
        /// The version in the value.
        actual: u64,
    },
    /// The header is inconsistent: damaged, from another run, or never written.
    #[error("the value's header is damaged or from another run")]
    Header,
    /// The first byte that differs, counted from the value's start.
    #[error("the value is damaged starting at byte {at}")]
    Body {
        /// From 0.
        at: usize,
    },
}

/// Creates and checks values; clones share the noise.
#[derive(Clone, Debug)]
pub struct Values {
    sizes: Sizes,
    /// The length of every value, if all have the same.
    fixed: Option<usize>,
    key: u64,
    body: Body,
    /// Another program wrote them, so nothing is known of their bytes.
    is_foreign: bool,
    /// Values of other sizes that the same keys may have.
    others: Box<[Values]>,
}

impl Values {
    /// Values of up to `longest` bytes that another program wrote: they cannot be written, and pass every check.
    pub fn foreign(longest: u32) -> Values {
        let sizes = Sizes::between(0, longest);
        let body = Body::new(1.0, None, 0);
        Values { sizes, fixed: None, key: 0, body, is_foreign: true, others: Box::default() }
    }

    /// Whether another program wrote them.
    pub fn are_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Returns an error if the sizes are out of range, or the share is not over 0 and at most 1. Creates 20 KiB of noise.
    pub fn new(rules: &ValueRules, seed: u64) -> Result<Values, SpecError> {
        let sizes = Sizes::new(&rules.size)?;
        let share = rules.compressed_share;
        if !(share > 0.0 && share <= 1.0) {
            let text = format!("`value.compressed_share` must be over 0 and at most 1, got {share}");
            return Err(SpecError(text));
        }
        let fixed = sizes.fixed().map(|size| size as usize);
        let body = Body::new(share, fixed, derive(seed, 0x6e6f_6973));
        let key = derive(seed, 0x7661_6c75);
        Ok(Values { sizes, fixed, key, body, is_foreign: false, others: Box::default() })
    }

    /// The same seed and noise with other sizes; an error if they are out of range.
    pub fn resized(&self, size: &SizeSpec) -> Result<Values, SpecError> {
        let sizes = Sizes::new(size)?;
        let fixed = sizes.fixed().map(|size| size as usize);
        let body = self.body.resized(fixed);
        Ok(Values { sizes, fixed, key: self.key, body, is_foreign: false, others: Box::default() })
    }

    /// The same values, where checks also accept those of other sizes: for keys that several phases write.
    #[must_use]
    pub fn accepting(self, others: impl Iterator<Item = Values>) -> Values {
        Values { others: others.collect(), ..self }
    }

    /// The length of a value that is written, bytes.
    #[inline]
    pub fn len_of(&self, index: u64, version: u64) -> usize {
        self.len_from(self.hash(index, version))
    }

    /// Whether a value may have this length, bytes: one of these or of the other sizes.
    pub fn may_have_len(&self, index: u64, version: u64, len: usize) -> bool {
        self.len_of(index, version) == len
            || self.others.iter().any(|other| other.len_of(index, version) == len)
    }

    /// The length of the shortest value that is written, bytes.
    pub fn min_len(&self) -> usize {
        self.sizes.min() as usize
    }

    /// The length of the longest value that is written, bytes.
    pub fn max_len(&self) -> usize {
        self.sizes.max() as usize
    }

    /// The length of the longest value that checks accept, bytes.
    pub fn max_read_len(&self) -> usize {
        self.others.iter().map(Values::max_len).fold(self.max_len(), usize::max)
    }

    /// Writes a value at the start of `out`, which has at least `max_len` bytes. Returns its length. Values of 8 to
    /// 15 bytes contain versions below 2^40, smaller ones contain none.
    // Always: a call costs a put of the null engine 0.4 of 28 ns.
    #[inline(always)]
    pub fn write(&self, index: u64, version: u64, out: &mut [u8]) -> usize {
        let hash = self.hash(index, version);
        let len = self.len_from(hash);
        let out = &mut out[..len];
        let Some((header, body)) = out.split_first_chunk_mut::<HEADER_BYTES>() else {
            self.write_small(index, version, hash, out);
            return len;
        };
        let words = header.as_chunks_mut::<8>().0;
        words[0] = tag_and_length(hash, len).to_le_bytes();
        words[1] = index.to_le_bytes();
        words[2] = version.to_le_bytes();
        self.body.write(hash, body);
        len
    }

    /// Checks every byte of a value read for `index`, including its length. Returns its version; `None` for values
    /// under 8 bytes, which do not contain it.
    #[inline]
    pub fn check(&self, index: u64, bytes: &[u8]) -> Result<Option<u64>, WrongValue> {
        let Some((header, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return self.check_small(index, bytes).or_else(|wrong| self.check_others(index, bytes, wrong));
        };
        let words = header.as_chunks::<8>().0;
        let version = u64::from_le_bytes(words[2]);
        let hash = self.hash(index, version);
        let is_header = (u64::from_le_bytes(words[0]) == tag_and_length(hash, bytes.len()))
            & (u64::from_le_bytes(words[1]) == index);
        if is_header && bytes.len() == self.len_from(hash) && self.body.equals(hash, body) {
            return Ok(Some(version));
        }
        // Here, so that the check of other values is as fast as without it.
        if self.is_foreign {
            return Ok(None);
        }
        self.check_others(index, bytes, WrongValue::Header).map_err(|_| self.diagnose(index, bytes))
    }

    /// Checks a value that has none of these sizes; an `Err` is what is wrong that was found with these.
    #[inline(never)]
    fn check_others(&self, index: u64, bytes: &[u8], wrong: WrongValue) -> Result<Option<u64>, WrongValue> {
        self.others.iter().find_map(|other| other.check(index, bytes).ok()).ok_or(wrong)
    }

    /// Checks a value whose version is known.
    #[inline]
    pub fn check_version(&self, index: u64, version: u64, bytes: &[u8]) -> Result<(), WrongValue> {
        match self.check(index, bytes)? {
            Some(actual) if actual != version => Err(WrongValue::Version { wanted: version, actual }),
            None if bytes.len() != self.len_of(index, version) => {
                Err(WrongValue::Length { wanted: self.len_of(index, version), actual: bytes.len() })
            }
            _ => Ok(()),
        }
    }

    /// Whether every value contains the index of its key.
    pub fn has_index(&self) -> bool {
        self.min_len() >= 16
    }

    /// Index and version as stored in a value of 16 bytes and more; `None` if the header is inconsistent. (Under 24
    /// bytes every header is consistent: only `check` detects wrong values.)
    #[inline]
    pub fn read_header(&self, bytes: &[u8]) -> Option<(u64, u64)> {
        let (words, _) = bytes.as_chunks::<8>();
        match bytes.len() {
            HEADER_BYTES.. => {
                let (index, version) = (u64::from_le_bytes(words[1]), u64::from_le_bytes(words[2]));
                let wanted = tag_and_length(self.hash(index, version), bytes.len());
                (u64::from_le_bytes(words[0]) == wanted).then_some((index, version))
            }
            16.. => {
                let version = u64::from_le_bytes(words[1]);
                Some((u64::from_le_bytes(words[0]) ^ self.veil(version), version))
            }
            _ => None,
        }
    }

    /// Two different indices or versions, both below 2^32, never have the same input to the mixer.
    #[inline]
    fn hash(&self, index: u64, version: u64) -> u64 {
        mix64(index ^ version.rotate_left(32) ^ self.key)
    }

    #[inline]
    fn len_from(&self, hash: u64) -> usize {
        match self.fixed {
            Some(len) => len,
            None => self.sizes.of(mix64(hash ^ self.key)) as usize,
        }
    }

    /// The mask of the index of a value without a tag, so that a flip in its version appears as a wrong index.
    fn veil(&self, version: u64) -> u64 {
        mix64(version ^ self.key.rotate_left(17))
    }

    #[inline(never)]
    fn write_small(&self, index: u64, version: u64, hash: u64, out: &mut [u8]) {
        let len = out.len();
        debug_assert!(
            len >= 16 || version >> SMALL_VERSION_BITS == 0,
            "a small value has space for 40 bits of version"
        );
        out.copy_from_slice(&self.small(index, version, hash, len)[..len]);
    }

    /// A value under 24 bytes, in a buffer of 24.
    fn small(&self, index: u64, version: u64, hash: u64, len: usize) -> [u8; HEADER_BYTES] {
        let more = mix64(hash);
        let words = match len {
            16.. => [index ^ self.veil(version), version, more],
            8.. => [small_version(version) | hash >> SMALL_VERSION_BITS << SMALL_VERSION_BITS, more, 0],
            _ => [mix64(mix64(index ^ self.key)), 0, 0],
        };
        let mut bytes = [0; HEADER_BYTES];
        for (into, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *into = word.to_le_bytes();
        }
        bytes
    }

    #[inline(never)]
    fn check_small(&self, index: u64, bytes: &[u8]) -> Result<Option<u64>, WrongValue> {
        if self.is_foreign {
            return Ok(None);
        }
        let len = bytes.len();
        let word =
            |place: usize| bytes.as_chunks::<8>().0.get(place).map_or(0, |word| u64::from_le_bytes(*word));
        if let Some(wanted) = self.fixed.filter(|&wanted| wanted != len) {
            return Err(WrongValue::Length { wanted, actual: len });
        }
        if len < 8 {
            if len < self.min_len() || len > self.max_len() {
                let wanted = len.clamp(self.min_len(), self.max_len());
                return Err(WrongValue::Length { wanted, actual: len });
            }
            let same = self.small(index, 0, 0, len)[..len] == *bytes;
            return if same { Ok(None) } else { Err(WrongValue::Body { at: 0 }) };
        }
        let version = if len < 16 { small_version(word(0)) } else { word(1) };
        if len >= 16 && word(0) ^ self.veil(version) != index {
            let actual = word(0) ^ self.veil(version);
            // Without a tag, only plausibility distinguishes another key from damage, which results in a number of 64
            // random bits.
            let is_plausible = actual >> 48 == 0;
            return Err(if is_plausible {
                WrongValue::Key { wanted: index, actual }
            } else {
                WrongValue::Header
            });
        }
        let hash = self.hash(index, version);
        if self.len_from(hash) != len {
            return Err(WrongValue::Length { wanted: self.len_from(hash), actual: len });
        }
        match first_difference(&self.small(index, version, hash, len)[..len], bytes) {
            None => Ok(Some(version)),
            Some(at) if at < 8 => Err(WrongValue::Header),
            Some(at) => Err(WrongValue::Body { at }),
        }
    }

    /// Determines what is wrong with a value of full form that `check` refused.
    #[cold]
    #[inline(never)]
    fn diagnose(&self, index: u64, bytes: &[u8]) -> WrongValue {
        let word =
            |place: usize| bytes.as_chunks::<8>().0.get(place).map_or(0, |word| u64::from_le_bytes(*word));
        let (tag, length) = (word(0) as u32, (word(0) >> 32) as usize);
        let (actual, version) = (word(1), word(2));
        let hash = self.hash(actual, version);
        if tag != hash as u32 {
            // If everything else is right, the length may be wrong: a shorter form cannot be read as a longer one.
            return match self.fixed {
                Some(wanted) if wanted != bytes.len() => WrongValue::Length { wanted, actual: bytes.len() },
                _ => WrongValue::Header,
            };
        }
        if actual != index {
            return WrongValue::Key { wanted: index, actual };
        }
        let wanted = self.len_from(hash);
        if bytes.len() != wanted {
            return WrongValue::Length { wanted, actual: bytes.len() };
        }
        if length != wanted {
            return WrongValue::Header;
        }
        let mut body = vec![0; wanted - HEADER_BYTES];
        self.body.write(hash, &mut body);
        match first_difference(&body, &bytes[HEADER_BYTES..]) {
            Some(at) => WrongValue::Body { at: HEADER_BYTES + at },
            None => WrongValue::Header,
        }
    }
}

#[inline]
fn tag_and_length(hash: u64, len: usize) -> u64 {
    hash & 0xffff_ffff | (len as u64) << 32
}

fn small_version(version: u64) -> u64 {
    version & ((1 << SMALL_VERSION_BITS) - 1)
}

fn first_difference(wanted: &[u8], actual: &[u8]) -> Option<usize> {
    wanted.iter().zip(actual).position(|(wanted, actual)| wanted != actual)
}
