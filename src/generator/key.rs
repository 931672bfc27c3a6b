//! Keys: an item's index becomes bytes and, but for keys from a file, comes back from them.
//!
//! The index is placed (scattered by a permutation, or as it is), the place times the spacing is the key's number, and
//! the number is encoded. Half a spacing behind each number lies a number that is never written: the misses.

use super::permutation::Permutation;
use super::random::{derive, mix64};
use super::sizes::Sizes;
use super::spec::{Encoding, SizeSpec, SpecError};
use std::fmt;
use std::sync::Arc;

/// The largest key, in bytes.
pub const MOST_KEY_BYTES: u32 = 65_536;
/// The smallest key, in bytes.
pub const LEAST_KEY_BYTES: u32 = 4;
/// What YCSB puts before the digits of a key.
const USER: &[u8] = b"user";
/// Digits of a hashed key's number: the most that a permutation can hold.
const MOST_HASHED_DIGITS: u32 = 18;
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes of a key file, read or mapped.
pub type KeyFile = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// What keys look like.
#[derive(Clone)]
pub struct KeyRules {
    /// The most items there will ever be, growth included.
    pub range: u64,
    /// Bytes of a key, 4 to 65536, prefix included.
    pub size: SizeSpec,
    /// How a number becomes bytes.
    pub encoding: Encoding,
    /// A permutation of the range, named by the seed, stands between index and number (`hashed` needs none).
    pub scattered: bool,
    /// The distance between the numbers of neighbours, at least 1; misses need at least 2.
    pub spacing: u64,
    /// Keys share this many distinct prefixes; 0: none. A group is a run of neighbours in number order, so that
    /// prefixes keep the order of keys.
    pub prefix_groups: u64,
    /// Bytes of such a prefix.
    pub prefix_size: u32,
    /// Key material: the key at place i is its bytes [i * size, (i + 1) * size).
    pub file: Option<KeyFile>,
}

impl Default for KeyRules {
    /// 16 bytes, binary, in order, a spacing of 2; the range is 1 and must be set.
    fn default() -> KeyRules {
        KeyRules {
            range: 1,
            size: SizeSpec::Fixed(16),
            encoding: Encoding::Binary,
            scattered: false,
            spacing: 2,
            prefix_groups: 0,
            prefix_size: 0,
            file: None,
        }
    }
}

/// Makes keys; cheap to clone, one for each thread.
#[derive(Clone)]
pub struct Keys {
    form: Form,
    range: u64,
    spacing: u64,
    scatter: Option<Permutation>,
    frame: Frame,
}

#[derive(Clone)]
enum Form {
    /// 16 bytes, binary, no prefix: what most runs use, so it has a path of its own.
    Binary16,
    Framed,
    File(KeyFile),
}

/// Prefix, number and padding of a key.
#[derive(Clone, Debug)]
struct Frame {
    encoding: Encoding,
    sizes: Sizes,
    seed: u64,
    prefix_bytes: usize,
    /// Numbers that share a prefix: a run of places times the spacing.
    group_numbers: u64,
    /// Bytes of the number, the same for all keys; a larger key is padded behind, so that order is the numbers' order.
    number_bytes: usize,
    /// The bijection that stands for YCSB's hash.
    hash: Option<Permutation>,
}

impl Keys {
    /// Fails, in one line, where the numbers do not fit into the size and encoding, a size is out of 4 to 65536
    /// bytes, or a file has too few bytes.
    pub fn new(rules: &KeyRules, seed: u64) -> Result<Keys, SpecError> {
        let sizes = Sizes::new(&rules.size)?;
        check_sizes(rules, &sizes)?;
        let range = rules.range;
        let form = match &rules.file {
            Some(file) => Form::File(check_file(rules, &sizes, file)?),
            None if rules.encoding == Encoding::Binary
                && sizes.fixed() == Some(16)
                && prefix_bytes(rules) == 0 =>
            {
                Form::Binary16
            }
            None => Form::Framed,
        };
        if rules.file.is_none() {
            check_capacity(rules, &sizes)?;
        }
        let is_scattered = rules.scattered && rules.encoding != Encoding::Hashed;
        let number_bytes = sizes.min() as usize - prefix_bytes(rules);
        let hash = (rules.encoding == Encoding::Hashed && rules.file.is_none())
            .then(|| Permutation::new(hashed_numbers(number_bytes), derive(seed, 0x6861_7368)));
        let frame = Frame {
            encoding: rules.encoding,
            sizes,
            seed: derive(seed, 0x7369_7a65),
            prefix_bytes: prefix_bytes(rules),
            group_numbers: range.div_ceil(rules.prefix_groups.max(1)).saturating_mul(rules.spacing),
            number_bytes,
            hash,
        };
        let scatter = is_scattered.then(|| Permutation::new(range, derive(seed, 0x6b65_7973)));
        Ok(Keys { form, range, spacing: rules.spacing, scatter, frame })
    }

    /// Writes the key of an index (below the range) at the start of `out`, which holds at least `max_len` bytes.
    /// Returns the key's bytes.
    #[inline]
    pub fn write(&self, index: u64, out: &mut [u8]) -> usize {
        let place = self.place(index);
        if let Form::Binary16 = self.form {
            return write_binary16(place * self.spacing, out);
        }
        self.write_placed(place, 0, out)
    }

    /// Writes a key that `write` never makes, next to the one of `index`; see `misses`.
    #[inline]
    pub fn write_missing(&self, index: u64, out: &mut [u8]) -> usize {
        let place = self.place(index);
        let gap = self.spacing / 2;
        debug_assert!(gap > 0, "the caller asked `misses` before");
        if let Form::Binary16 = self.form {
            return write_binary16(place * self.spacing + gap, out);
        }
        self.write_placed(place, gap, out)
    }

    #[inline(never)]
    fn write_placed(&self, place: u64, gap: u64, out: &mut [u8]) -> usize {
        if let Form::File(file) = &self.form {
            let size = self.frame.number_bytes;
            let start = place as usize * size;
            out[..size].copy_from_slice(&(**file).as_ref()[start..start + size]);
            return size;
        }
        self.frame.write(place * self.spacing + gap, out)
    }

    /// Whether there are keys to miss with; else why not, and what to do.
    pub fn misses(&self) -> Result<(), SpecError> {
        if let Form::File(_) = self.form {
            let text = "keys from a file leave no gap for a key that is not there; set `miss` to 0";
            return Err(SpecError(text.to_string()));
        }
        if self.spacing < 2 {
            let text = "a `key.spacing` of 1 leaves no gap for a key that is not there; set it to 2 or more, \
                or `miss` to 0";
            return Err(SpecError(text.to_string()));
        }
        Ok(())
    }

    /// The index whose key this is; none for a key that `write` does not make, and for keys from a file.
    #[inline]
    pub fn index_of(&self, key: &[u8]) -> Option<u64> {
        let number = match self.form {
            Form::Binary16 => read_binary16(key)?,
            Form::Framed => self.frame.read(key)?,
            Form::File(_) => return None,
        };
        let place = number / self.spacing;
        if place >= self.range || place * self.spacing != number {
            return None;
        }
        Some(match &self.scatter {
            Some(scatter) => scatter.inverse(place),
            None => place,
        })
    }

    /// The rank of an index's key among the keys of the whole range, in byte order; none for `hashed` keys and keys
    /// from a file, whose order is not known.
    pub fn rank_of(&self, index: u64) -> Option<u64> {
        self.has_ranks().then(|| self.place(index))
    }

    /// The index whose key has this rank; see `rank_of`.
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let in_range = self.has_ranks() && rank < self.range;
        in_range.then(|| self.scatter.as_ref().map_or(rank, |scatter| scatter.inverse(rank)))
    }

    fn has_ranks(&self) -> bool {
        !matches!(self.form, Form::File(_)) && self.frame.hash.is_none()
    }

    /// Whether keys in byte order are indices in ascending order.
    pub fn is_ordered(&self) -> bool {
        self.has_ranks() && self.scatter.is_none()
    }

    /// The bytes of the longest key.
    pub fn max_len(&self) -> usize {
        self.frame.sizes.max() as usize
    }

    /// The bytes of every key; none where sizes differ.
    pub fn fixed_len(&self) -> Option<usize> {
        self.frame.sizes.fixed().map(|size| size as usize)
    }

    /// The mean bytes of a key.
    pub fn mean_len(&self) -> f64 {
        self.frame.sizes.mean()
    }

    /// The bytes that the keys of a group share; 0 without groups.
    pub fn prefix_len(&self) -> usize {
        self.frame.prefix_bytes
    }

    /// The items that the keys are made for.
    pub fn range(&self) -> u64 {
        self.range
    }

    /// Two places of a key file with the same key, if there are any: such a file cannot be verified. Sorts the
    /// file's keys: 8 bytes for each and some hundred ns. None for keys that are not from a file, which never repeat.
    pub fn repeated_in_file(&self) -> Option<(u64, u64)> {
        let Form::File(file) = &self.form else { return None };
        let size = self.frame.number_bytes;
        let bytes = (**file).as_ref();
        let key = |place: u64| &bytes[place as usize * size..][..size];
        let mut places: Vec<u64> = (0..self.range).collect();
        places.sort_unstable_by_key(|&place| (key(place), place));
        places.windows(2).find(|pair| key(pair[0]) == key(pair[1])).map(|pair| (pair[0], pair[1]))
    }

    #[inline]
    fn place(&self, index: u64) -> u64 {
        debug_assert!(index < self.range, "index {index} lies in the range of {}", self.range);
        match &self.scatter {
            Some(scatter) => scatter.at(index),
            None => index,
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if let Form::File(_) = self.form { ", from a file" } else { "" };
        write!(out, "Keys({} of {:?}{file})", self.range, self.frame)
    }
}

#[inline]
fn write_binary16(number: u64, out: &mut [u8]) -> usize {
    let bytes = u128::from(number).to_be_bytes();
    out[..16].copy_from_slice(&bytes);
    16
}

#[inline]
fn read_binary16(key: &[u8]) -> Option<u64> {
    let bytes: [u8; 16] = key.try_into().ok()?;
    u64::try_from(u128::from_be_bytes(bytes)).ok()
}

impl Frame {
    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let size = self.sizes.of(mix64(number ^ self.seed)) as usize;
        let out = &mut out[..size];
        let (prefix, rest) = out.split_at_mut(self.prefix_bytes);
        let (digits, padding) = rest.split_at_mut(self.number_bytes);
        if !prefix.is_empty() {
            encode(self.encoding, number / self.group_numbers, prefix);
        }
        match &self.hash {
            Some(hash) => {
                let (user, digits) = digits.split_at_mut(USER.len());
                user.copy_from_slice(USER);
                encode(Encoding::Decimal, hash.at(number), digits);
            }
            None => encode(self.encoding, number, digits),
        }
        padding.fill(pad(self.encoding));
        size
    }

    fn read(&self, key: &[u8]) -> Option<u64> {
        let (prefix, rest) = key.split_at_checked(self.prefix_bytes)?;
        let (digits, padding) = rest.split_at_checked(self.number_bytes)?;
        let number = match &self.hash {
            Some(hash) => {
                let image = decode(Encoding::Decimal, digits.strip_prefix(USER)?)?;
                if image >= hash.n() {
                    return None;
                }
                hash.inverse(image)
            }
            None => decode(self.encoding, digits)?,
        };
        let has_size = key.len() == self.sizes.of(mix64(number ^ self.seed)) as usize;
        let is_padded = padding.iter().all(|&byte| byte == pad(self.encoding));
        let has_prefix =
            prefix.is_empty() || decode(self.encoding, prefix) == Some(number / self.group_numbers);
        (has_size && is_padded && has_prefix).then_some(number)
    }
}

fn pad(encoding: Encoding) -> u8 {
    if encoding == Encoding::Binary { 0 } else { b'0' }
}

/// Writes a number right-aligned; it fits, for `check_capacity` saw to it.
fn encode(encoding: Encoding, mut number: u64, out: &mut [u8]) {
    match encoding {
        Encoding::Binary => {
            let bytes = number.to_be_bytes();
            let width = out.len().min(8);
            let (padding, tail) = out.split_at_mut(out.len() - width);
            padding.fill(0);
            tail.copy_from_slice(&bytes[8 - width..]);
        }
        Encoding::Decimal | Encoding::Hashed => {
            let (front, pairs) = out.as_rchunks_mut::<2>();
            for pair in pairs.iter_mut().rev() {
                let two = number % 100;
                *pair = [b'0' + (two / 10) as u8, b'0' + (two % 10) as u8];
                number /= 100;
            }
            if let [digit] = front {
                *digit = b'0' + (number % 10) as u8;
            }
        }
        Encoding::Hex => {
            for digit in out.iter_mut().rev() {
                *digit = HEX_DIGITS[(number & 15) as usize];
                number >>= 4;
            }
        }
    }
}

fn decode(encoding: Encoding, bytes: &[u8]) -> Option<u64> {
    let shift = |number: u64, base: u64, digit: u8| number.checked_mul(base)?.checked_add(u64::from(digit));
    bytes.iter().try_fold(0_u64, |number, &byte| match (encoding, byte) {
        (Encoding::Binary, _) => shift(number, 256, byte),
        (_, b'0'..=b'9') => shift(number, if encoding == Encoding::Hex { 16 } else { 10 }, byte - b'0'),
        (Encoding::Hex, b'a'..=b'f') => shift(number, 16, byte - b'a' + 10),
        _ => None,
    })
}

fn prefix_bytes(rules: &KeyRules) -> usize {
    if rules.prefix_groups == 0 { 0 } else { rules.prefix_size as usize }
}

/// How many numbers `bytes` hold in an encoding.
fn numbers_held(encoding: Encoding, bytes: usize) -> u128 {
    let (base, most): (u128, usize) = match encoding {
        Encoding::Binary => (256, 8),
        Encoding::Decimal | Encoding::Hashed => (10, 20),
        Encoding::Hex => (16, 16),
    };
    base.pow(bytes.min(most) as u32)
}

/// How many numbers a hashed key of `bytes` tells apart.
fn hashed_numbers(bytes: usize) -> u64 {
    let digits = (bytes.saturating_sub(USER.len()) as u32).min(MOST_HASHED_DIGITS);
    10_u64.pow(digits)
}

fn check_sizes(rules: &KeyRules, sizes: &Sizes) -> Result<(), SpecError> {
    let wrong = |text: String| Err(SpecError(text));
    if sizes.min() < LEAST_KEY_BYTES || sizes.max() > MOST_KEY_BYTES {
        return wrong(format!("keys have {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes, not `{}`", rules.size));
    }
    if rules.range == 0 || rules.range > 1 << 62 {
        return wrong(format!("there can be 1 to 2^62 keys, not {}", rules.range));
    }
    if rules.spacing == 0 {
        return wrong("`key.spacing` is at least 1".to_string());
    }
    if (rules.prefix_groups == 0) != (rules.prefix_size == 0) {
        return wrong(
            "`key.prefix_groups` and `key.prefix_size` go together: set both or neither".to_string(),
        );
    }
    let needed = rules.prefix_size.saturating_add(if rules.encoding == Encoding::Hashed { 5 } else { 1 });
    if rules.file.is_none() && sizes.min() < needed {
        let (encoding, prefix, size) = (rules.encoding, rules.prefix_size, sizes.min());
        return wrong(format!(
            "{encoding} keys with a prefix of {prefix} bytes need at least {needed} bytes, not {size}"
        ));
    }
    Ok(())
}

fn check_capacity(rules: &KeyRules, sizes: &Sizes) -> Result<(), SpecError> {
    let (encoding, size, range, spacing) = (rules.encoding, sizes.min(), rules.range, rules.spacing);
    let bytes = size as usize - prefix_bytes(rules);
    let held = match encoding {
        Encoding::Hashed => u128::from(hashed_numbers(bytes)),
        _ => numbers_held(encoding, bytes),
    };
    let needed = u128::from(range) * u128::from(spacing);
    if needed > held.min(1 << 64) {
        let (unit, extra) = match encoding {
            Encoding::Binary => ("bytes", 0),
            Encoding::Hashed => ("bytes", USER.len()),
            Encoding::Decimal | Encoding::Hex => ("digits", 0),
        };
        let width = (1..20).find(|&width| numbers_held(encoding, width) >= needed).unwrap_or(20) + extra;
        let prefix = match prefix_bytes(rules) {
            0 => String::new(),
            prefix => format!(" after a prefix of {prefix} bytes"),
        };
        return Err(SpecError(format!(
            "{size}-byte {encoding} keys hold {held} numbers{prefix}; {range} keys with spacing {spacing} need \
             {width} {unit}"
        )));
    }
    if rules.prefix_groups > 0
        && u128::from(rules.prefix_groups) > numbers_held(encoding, prefix_bytes(rules))
    {
        return Err(SpecError(format!(
            "a {encoding} prefix of {} bytes tells {} groups apart, not {}",
            rules.prefix_size,
            numbers_held(encoding, prefix_bytes(rules)),
            rules.prefix_groups
        )));
    }
    Ok(())
}

fn check_file(rules: &KeyRules, sizes: &Sizes, file: &KeyFile) -> Result<KeyFile, SpecError> {
    let Some(size) = sizes.fixed() else {
        let text =
            format!("keys from a file have one size, not `{}`; set `key.size` to a number", rules.size);
        return Err(SpecError(text));
    };
    if rules.prefix_groups > 0 {
        return Err(SpecError("keys from a file have no prefix groups; set `key.prefix_groups` to 0".into()));
    }
    let bytes = (**file).as_ref().len() as u64;
    let (held, rest) = (bytes / u64::from(size), bytes % u64::from(size));
    if rest > 0 {
        let text = format!(
            "the key file has {bytes} bytes, which is no multiple of the {size} bytes of a key; `key.size` must be that \
             of its keys"
        );
        return Err(SpecError(text));
    }
    if held < rules.range {
        let range = rules.range;
        return Err(SpecError(format!("the key file holds {held} keys of {size} bytes; {range} are needed")));
    }
    Ok(file.clone())
}
