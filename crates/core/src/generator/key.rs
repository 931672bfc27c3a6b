//! Keys: converts an item's index to bytes and, except for keys from a file, back.
//!
//! The index is mapped to a place (scattered by a permutation, or unchanged), the place times the spacing is the
//! key's number, and the number is encoded. Half a spacing after each number is a number that is never written: the
//! misses. Keys in turns of serial and random ones have different numbers (`alternate.rs`).

mod check;
mod random;

use super::alternate::Alternate;
use super::permutation::Permutation;
use super::random::{derive, mix64};
use super::sample::Partition;
use super::sizes::Sizes;
use super::spec::{Encoding, SizeSpec, SpecError};
use check::{check_capacity, check_file, check_sizes, hashed_numbers, prefix_bytes};
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// The largest key, in bytes.
pub const MOST_KEY_BYTES: u32 = 65_536;
/// The largest file of keys: each trial keeps one in memory.
pub const MOST_KEY_FILE_BYTES: u64 = 8 << 30;
/// The smallest key, in bytes.
pub const LEAST_KEY_BYTES: u32 = 4;
/// YCSB's prefix of a key's digits.
const USER: &[u8; 4] = b"user";
/// Sizes of keys of [`Form::User`].
const USER_BYTES: RangeInclusive<u32> = 21..=24;
/// Digits of a hashed key's number: the maximum that a permutation supports.
const MOST_HASHED_DIGITS: u32 = 18;
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes of a key file, read or mapped.
pub type KeyFile = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The form of keys.
#[derive(Clone)]
pub struct KeyRules {
    /// The maximum number of items, growth included.
    pub range: u64,
    /// Bytes of a key, 4 to 65536, prefix included.
    pub size: SizeSpec,
    /// How a number is converted to bytes.
    pub encoding: Encoding,
    /// Whether a permutation of the range, selected by the seed, maps index to number (`hashed` and `random` need
    /// none).
    pub scattered: bool,
    /// The distance between the numbers of neighbours, at least 1; misses need at least 2.
    pub spacing: u64,
    /// Keys alternate between this many serial and as many random ones, over the range of those before; 0: they do
    /// not.
    pub alternate: u64,
    /// The part of all keys that these are: key i of part p of n has the number of key i n + p of the whole, so that no two parts
    /// have a key in common, present or missing.
    pub part: Partition,
    /// Keys share this many distinct prefixes; 0: none. A group is a run of neighbours in number order, so that
    /// prefixes preserve the order of keys.
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
            alternate: 0,
            part: Partition::WHOLE,
            prefix_groups: 0,
            prefix_size: 0,
            file: None,
        }
    }
}

/// Creates keys; cheap to clone, one for each thread.
#[derive(Clone)]
pub struct Keys {
    form: Form,
    range: u64,
    spacing: u64,
    /// The distance between the numbers of neighbours of this part, and the first number.
    stride: u64,
    base: u64,
    order: Order,
    frame: Frame,
    /// The places of a file's keys in the order of the keys; none: nobody looks for them.
    sorted: Option<Arc<[u64]>>,
}

/// The mapping between index and number.
#[derive(Clone)]
enum Order {
    Plain,
    Scattered(Permutation),
    Alternate(Alternate),
}

#[derive(Clone)]
enum Form {
    /// 16 bytes, binary, no prefix: the form of most runs, with a separate code path.
    Binary16,
    /// YCSB's keys: "user" and 17 to 20 digits, all of the same size, without prefix; also with a separate code path.
    User,
    Framed,
    File(KeyFile),
    Listed(Arc<KeyList>),
}

/// Keys of any sizes, one after the other.
#[derive(Clone, Debug)]
pub struct KeyList {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// The end of each key in them.
    pub ends: Vec<usize>,
    /// The length of the longest key, which may be in a scan and not in this list, bytes.
    pub longest: usize,
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
    /// Bytes of the number, the same for all keys; a larger key is padded at the end, so that keys have the order of
    /// numbers.
    number_bytes: usize,
    /// The bijection used in place of YCSB's hash.
    hash: Option<Permutation>,
}

impl Keys {
    /// Returns a one-line error if the numbers do not fit into the size and encoding, a size is not in 4 to 65536
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
            None if rules.encoding == Encoding::Hashed
                && sizes.fixed().is_some_and(|size| USER_BYTES.contains(&size))
                && prefix_bytes(rules) == 0 =>
            {
                Form::User
            }
            None => Form::Framed,
        };
        if rules.file.is_none() {
            check_capacity(rules, &sizes)?;
        }
        let is_scattered = rules.scattered && rules.encoding.is_ordered();
        let stride = rules.spacing.saturating_mul(rules.part.count);
        let number_bytes = sizes.min() as usize - prefix_bytes(rules);
        let hash = (rules.encoding == Encoding::Hashed && rules.file.is_none())
            .then(|| Permutation::new(hashed_numbers(number_bytes), derive(seed, 0x6861_7368)));
        let frame = Frame {
            encoding: rules.encoding,
            sizes,
            seed: derive(seed, 0x7369_7a65),
            prefix_bytes: prefix_bytes(rules),
            group_numbers: range.div_ceil(rules.prefix_groups.max(1)).saturating_mul(stride),
            number_bytes,
            hash,
        };
        let order = match rules.alternate {
            0 if is_scattered => Order::Scattered(Permutation::new(range, derive(seed, 0x6b65_7973))),
            0 => Order::Plain,
            size => Order::Alternate(Alternate::new(size, rules.spacing, range, seed)?),
        };
        let base = rules.part.index * rules.spacing;
        Ok(Keys { form, range, spacing: rules.spacing, stride, base, order, frame, sorted: None })
    }

    /// The keys of a list, in its order.
    pub fn listed(list: KeyList) -> Keys {
        let longest = list.longest as u32;
        let frame = Frame {
            encoding: Encoding::Binary,
            sizes: Sizes::between(0, longest),
            seed: 0,
            prefix_bytes: 0,
            group_numbers: 1,
            number_bytes: 0,
            hash: None,
        };
        let (range, form) = (list.ends.len() as u64, Form::Listed(Arc::new(list)));
        Keys { form, range, spacing: 1, stride: 1, base: 0, order: Order::Plain, frame, sorted: None }
    }

    /// Writes the key of an index (below the range) at the start of `out`, which has at least `max_len` bytes.
    /// Returns the key's length.
    #[inline]
    pub fn write(&self, index: u64, out: &mut [u8]) -> usize {
        let mut codes = [0];
        self.codes(&[index], &mut codes);
        self.write_code(codes[0], out)
    }

    /// The codes of indices (below the range): what [`Keys::write_code`] makes keys of. Much of the work for a key is here, and
    /// takes less time for many indices at once.
    #[inline]
    pub fn codes(&self, indices: &[u64], codes: &mut [u64]) {
        debug_assert!(
            indices.iter().all(|index| *index < self.range),
            "indices must be in the range of {}",
            self.range
        );
        match &self.order {
            Order::Alternate(turns) => {
                codes.iter_mut().zip(indices).for_each(|(code, index)| *code = turns.number(*index));
            }
            Order::Plain => codes.copy_from_slice(indices),
            Order::Scattered(scatter) => {
                codes.copy_from_slice(indices);
                scatter.map(codes);
            }
        }
        if !matches!(self.order, Order::Alternate(_)) {
            codes.iter_mut().for_each(|code| *code = *code * self.stride + self.base);
        }
        if let (Form::User, Some(hash)) = (&self.form, &self.frame.hash) {
            hash.map(codes);
        }
    }

    /// Writes the key of a code, like [`Keys::write`].
    #[inline(always)]
    pub fn write_code(&self, code: u64, out: &mut [u8]) -> usize {
        match self.form {
            Form::Binary16 => write_binary16(code, out),
            Form::User => write_user(code, self.frame.number_bytes, out),
            _ => self.write_number(code, out),
        }
    }

    /// Writes a key that `write` never creates, next to the one of `index`; see `misses`.
    #[inline]
    pub fn write_missing(&self, index: u64, out: &mut [u8]) -> usize {
        debug_assert!(self.spacing > 1, "the caller must check `misses` first");
        let number = match &self.order {
            Order::Alternate(turns) => turns.missing(index),
            _ => self.number(index) + self.spacing / 2,
        };
        if let Form::Binary16 = self.form {
            return write_binary16(number, out);
        }
        self.write_number(number, out)
    }

    #[inline(never)]
    fn write_number(&self, number: u64, out: &mut [u8]) -> usize {
        if let Form::File(file) = &self.form {
            let size = self.frame.number_bytes;
            let start = (number / self.spacing) as usize * size;
            out[..size].copy_from_slice(&(**file).as_ref()[start..start + size]);
            return size;
        }
        if let Form::Listed(list) = &self.form {
            let place = number as usize;
            let start = place.checked_sub(1).map_or(0, |before| list.ends[before]);
            let key = &list.bytes[start..list.ends[place]];
            out[..key.len()].copy_from_slice(key);
            return key.len();
        }
        self.frame.write(number, out)
    }

    /// Whether keys for misses exist; `Err` holds the reason if not, and what to do.
    pub fn misses(&self) -> Result<(), SpecError> {
        if let Form::File(_) | Form::Listed(_) = self.form {
            let text = "keys from a file leave no gap for absent keys; set `miss` to 0";
            return Err(SpecError(text.to_string()));
        }
        if self.spacing < 2 {
            let text = "a `key.spacing` of 1 leaves no gap for absent keys; set it to 2 or more, \
                or `miss` to 0";
            return Err(SpecError(text.to_string()));
        }
        if let Order::Alternate(turns) = &self.order
            && !turns.has_gap()
        {
            let text = "the turns of `key.alternate` leave no gap for absent keys; increase `key.spacing`, \
                or set `miss` to 0";
            return Err(SpecError(text.to_string()));
        }
        Ok(())
    }

    /// The index of a key; `None` for a key that `write` does not create, and for keys from a file that is not sorted.
    #[inline]
    pub fn index_of(&self, key: &[u8]) -> Option<u64> {
        let number = self.number_of(key)?;
        match &self.order {
            Order::Alternate(turns) => turns.index(number),
            Order::Plain => self.place_of_number(number),
            Order::Scattered(scatter) => self.place_of_number(number).map(|place| scatter.inverse(place)),
        }
    }

    /// Sorts the keys of a file, so that `index_of` finds them: 8 bytes and some hundred ns per key. Does nothing if keys are
    /// not from a file.
    pub fn sort_file(&mut self) {
        if let Form::File(file) = &self.form {
            let count = (**file).as_ref().len() / self.frame.number_bytes;
            self.sorted = self.sorted_places(count as u64).map(Arc::from);
        }
    }

    #[inline(never)]
    fn number_in_file(&self, key: &[u8]) -> Option<u64> {
        let sorted = self.sorted.as_ref()?;
        let found = sorted.binary_search_by_key(&Some(key), |place| self.key_in_file(*place)).ok()?;
        Some(sorted[found] * self.spacing)
    }

    /// The key at a place of a file; none: keys are not from a file.
    fn key_in_file(&self, place: u64) -> Option<&[u8]> {
        let Form::File(file) = &self.form else { return None };
        let size = self.frame.number_bytes;
        (**file).as_ref().get(place as usize * size..)?.get(..size)
    }

    /// The first `count` places of a file in the order of their keys.
    fn sorted_places(&self, count: u64) -> Option<Vec<u64>> {
        let Form::File(_) = &self.form else { return None };
        let mut places: Vec<u64> = (0..count).collect();
        places.sort_unstable_by_key(|&place| (self.key_in_file(place), place));
        Some(places)
    }

    /// Whether this is the key at a place, which takes less time than to find the key's index; `false` also if that is not
    /// known, as for keys without places and keys in turns.
    #[inline]
    pub fn is_at_place(&self, key: &[u8], place: u64) -> bool {
        if place >= self.range || !self.has_places() || matches!(self.order, Order::Alternate(_)) {
            return false;
        }
        self.number_of(key) == Some(place * self.stride + self.base)
    }

    #[inline]
    fn number_of(&self, key: &[u8]) -> Option<u64> {
        match self.form {
            Form::Binary16 => read_binary16(key),
            Form::Framed | Form::User => self.frame.read(key),
            Form::File(_) => self.number_in_file(key),
            Form::Listed(_) => None,
        }
    }

    #[inline]
    fn place_of_number(&self, number: u64) -> Option<u64> {
        let number = number.checked_sub(self.base)?;
        let place = number / self.stride;
        (place < self.range && place * self.stride == number).then_some(place)
    }

    /// The place of an index's key among the keys of the complete range, in byte order; `None` for `hashed` and
    /// `random` keys and keys from a file, whose order is unknown. Places ascend with keys; not every place has a key
    /// (`key.alternate`).
    pub fn place_of(&self, index: u64) -> Option<u64> {
        let place = || match &self.order {
            Order::Plain => index,
            Order::Scattered(scatter) => scatter.at(index),
            Order::Alternate(turns) => turns.place(index),
        };
        self.has_places().then(place)
    }

    /// The index whose key has this place; see `place_of`.
    pub fn at_place(&self, place: u64) -> Option<u64> {
        if !self.has_places() {
            return None;
        }
        match &self.order {
            Order::Alternate(turns) => turns.at_place(place),
            _ if place >= self.range => None,
            Order::Plain => Some(place),
            Order::Scattered(scatter) => Some(scatter.inverse(place)),
        }
    }

    /// The indices whose keys have the places from `first` on, or down from it; see `at_place`. `u64::MAX` stands for none.
    #[inline]
    pub fn at_places(&self, first: u64, is_down: bool, indices: &mut [u64]) {
        let count = indices.len() as u64;
        let is_within = if is_down {
            first < self.range && first + 1 >= count
        } else {
            first.saturating_add(count) <= self.range
        };
        for (distance, index) in (0..).zip(indices.iter_mut()) {
            *index = if is_down { first.wrapping_sub(distance) } else { first.wrapping_add(distance) };
        }
        match &self.order {
            Order::Plain if self.has_places() && is_within => {}
            Order::Scattered(scatter) if self.has_places() && is_within => scatter.unmap(indices),
            _ => {
                for (distance, index) in (0..).zip(indices) {
                    let place =
                        if is_down { first.checked_sub(distance) } else { first.checked_add(distance) };
                    *index = place.and_then(|place| self.at_place(place)).unwrap_or(u64::MAX);
                }
            }
        }
    }

    /// Upper bound of the places of all keys of the items below `items`.
    pub fn places(&self, items: u64) -> u64 {
        match &self.order {
            _ if !self.has_places() => self.range,
            Order::Plain => items,
            Order::Scattered(_) => self.range,
            Order::Alternate(turns) => turns.places(items),
        }
    }

    /// The places of the keys that share the prefix of an index's key; `None` without prefixes, or if places are
    /// unknown. The last may be beyond the range.
    pub fn prefix_places(&self, index: u64) -> Option<Range<u64>> {
        let place = self.place_of(index).filter(|_| self.frame.prefix_bytes > 0)?;
        let places = match &self.order {
            Order::Alternate(_) => return None,
            _ => self.frame.group_numbers / self.stride,
        };
        let first = place / places * places;
        Some(first..first.saturating_add(places))
    }

    fn has_places(&self) -> bool {
        !matches!(self.form, Form::File(_) | Form::Listed(_)) && self.frame.encoding.is_ordered()
    }

    /// Whether keys in byte order are indices in ascending order.
    pub fn is_ordered(&self) -> bool {
        self.has_places() && matches!(self.order, Order::Plain)
    }

    /// The length of the longest key, bytes.
    pub fn max_len(&self) -> usize {
        self.frame.sizes.max() as usize
    }

    /// The length of every key, bytes; `None` if sizes differ.
    pub fn fixed_len(&self) -> Option<usize> {
        self.frame.sizes.fixed().map(|size| size as usize)
    }

    /// The number of bytes that the keys of a group share; 0 without groups.
    pub fn prefix_len(&self) -> usize {
        self.frame.prefix_bytes
    }

    /// The number of items that the keys are created for.
    pub fn range(&self) -> u64 {
        self.range
    }

    /// Two places of a key file with the same key, if there are any: such a file cannot be verified. Sorts the file's
    /// keys: 8 bytes and some hundred ns per key. `None` for keys that are not from a file, which never repeat.
    pub fn repeated_in_file(&self) -> Option<(u64, u64)> {
        let places = self.sorted_places(self.range)?;
        let is_same = |pair: &&[u64]| self.key_in_file(pair[0]) == self.key_in_file(pair[1]);
        places.windows(2).find(is_same).map(|pair| (pair[0], pair[1]))
    }

    /// The key's number; for keys from a file the place times the spacing too.
    #[inline]
    fn number(&self, index: u64) -> u64 {
        debug_assert!(index < self.range, "index {index} must be in the range of {}", self.range);
        match &self.order {
            Order::Plain => index * self.stride + self.base,
            Order::Scattered(scatter) => scatter.at(index) * self.stride + self.base,
            Order::Alternate(turns) => turns.number(index),
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

/// Writes "user" and the digits of a number below 10^18, `size` bytes in all, which is in [`USER_BYTES`].
#[inline(always)]
fn write_user(number: u64, size: usize, out: &mut [u8]) -> usize {
    let (high, low) = (number / EIGHT_DIGITS, number % EIGHT_DIGITS);
    let (front, high) = (high / EIGHT_DIGITS, high % EIGHT_DIGITS);
    // 16 digits at the end; up to four before them are next to "user" in one word, and what that has too many is overwritten.
    let digits = u64::from_le_bytes(eight_digits(front)) >> (8 * (28 - size as u64));
    let user = u64::from(u32::from_le_bytes(*USER)) | digits << 32;
    let out = &mut out[..size];
    out[..8].copy_from_slice(&user.to_le_bytes());
    out[size - 16..size - 8].copy_from_slice(&eight_digits(high));
    out[size - 8..].copy_from_slice(&eight_digits(low));
    size
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
        if !prefix.is_empty() {
            encode(self.encoding, number / self.group_numbers, prefix);
        }
        if self.encoding == Encoding::Random {
            random::write(number, self.seed, rest);
            return size;
        }
        let (digits, padding) = rest.split_at_mut(self.number_bytes);
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
            _ if self.encoding == Encoding::Random => random::read(rest, self.seed)?,
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
        let is_padded =
            self.encoding == Encoding::Random || padding.iter().all(|&byte| byte == pad(self.encoding));
        let has_prefix =
            prefix.is_empty() || decode(self.encoding, prefix) == Some(number / self.group_numbers);
        (has_size && is_padded && has_prefix).then_some(number)
    }
}

fn pad(encoding: Encoding) -> u8 {
    if encoding == Encoding::Binary { 0 } else { b'0' }
}

/// Writes a number right-aligned; it fits, as `check_capacity` ensures.
fn encode(encoding: Encoding, mut number: u64, out: &mut [u8]) {
    match encoding {
        Encoding::Binary | Encoding::Random => {
            let bytes = number.to_be_bytes();
            let width = out.len().min(8);
            let (padding, tail) = out.split_at_mut(out.len() - width);
            padding.fill(0);
            tail.copy_from_slice(&bytes[8 - width..]);
        }
        Encoding::Decimal | Encoding::Hashed => {
            let (front, parts) = out.as_rchunks_mut::<8>();
            for part in parts.iter_mut().rev() {
                *part = eight_digits(number % EIGHT_DIGITS);
                number /= EIGHT_DIGITS;
            }
            let digits = eight_digits(number % EIGHT_DIGITS);
            front.copy_from_slice(&digits[8 - front.len()..]);
        }
        Encoding::Hex => {
            for digit in out.iter_mut().rev() {
                *digit = HEX_DIGITS[(number & 15) as usize];
                number >>= 4;
            }
        }
    }
}

/// 10 to the power of 8.
const EIGHT_DIGITS: u64 = 100_000_000;

/// The decimal digits of a number below 10^8, in parallel: halves of four digits in the halves of a word, then pairs, then
/// digits, in each of which the first is the least significant byte. The multipliers divide exactly in these ranges.
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    debug_assert!(number < EIGHT_DIGITS, "the number has more than eight digits");
    let high = (number * 3_518_437_209) >> 45;
    let halves = high | (number - 10_000 * high) << 32;
    let high = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = high | (halves - 100 * high) << 16;
    let high = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = high | (pairs - 10 * high) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The number of eight decimal digits, by the same steps backward; `None` if a byte is not a digit.
#[inline]
fn of_eight_digits(bytes: [u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(bytes);
    let digits = word ^ 0x3030_3030_3030_3030;
    // A byte over 9 reaches its upper half itself or with 6 more; nothing is carried into the next byte, because bytes over
    // 15 are excluded first.
    if digits & 0xf0f0_f0f0_f0f0_f0f0 != 0 || (digits + 0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let halves = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((halves * 10_000 + (halves >> 32)) & 0xffff_ffff)
}

/// The number of decimal digits; `None` if a byte is not a digit, or the number has more than 64 bits.
#[inline]
fn decimal(bytes: &[u8]) -> Option<u64> {
    let (front, parts) = bytes.as_rchunks::<8>();
    let mut first = [b'0'; 8];
    first[8 - front.len()..].copy_from_slice(front);
    parts.iter().try_fold(of_eight_digits(first)?, |number, part| {
        number.checked_mul(EIGHT_DIGITS)?.checked_add(of_eight_digits(*part)?)
    })
}

fn decode(encoding: Encoding, bytes: &[u8]) -> Option<u64> {
    if let Encoding::Decimal | Encoding::Hashed = encoding {
        return decimal(bytes);
    }
    let shift = |number: u64, base: u64, digit: u8| number.checked_mul(base)?.checked_add(u64::from(digit));
    bytes.iter().try_fold(0_u64, |number, &byte| match (encoding, byte) {
        (Encoding::Binary | Encoding::Random, _) => shift(number, 256, byte),
        (_, b'0'..=b'9') => shift(number, if encoding == Encoding::Hex { 16 } else { 10 }, byte - b'0'),
        (Encoding::Hex, b'a'..=b'f') => shift(number, 16, byte - b'a' + 10),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Random;

    #[test]
    fn decimal_digits_are_those_of_std() {
        let mut random = Random::seeded(1);
        let edges = [0, 1, 9, 10, 99, 100, 9_999, 10_000, 99_999_999, 100_000_000, 10_u64.pow(16), u64::MAX];
        let more = edges.into_iter().flat_map(|edge| [edge, edge.wrapping_sub(1), edge.saturating_add(1)]);
        let drawn = std::iter::repeat_with(|| random.next_u64() >> (random.next_u64() % 64)).take(100_000);
        for number in more.chain(drawn) {
            let text = number.to_string();
            for width in [text.len(), text.len() + 1, 20, 24, 31] {
                let wanted = format!("{number:0width$}");
                let mut digits = vec![0; wanted.len()];
                encode(Encoding::Decimal, number, &mut digits);
                assert_eq!(digits, wanted.as_bytes(), "{number} in {width} digits, seed 1");
                assert_eq!(decode(Encoding::Decimal, &digits), Some(number), "{wanted}, seed 1");
            }
        }
        assert_eq!(decode(Encoding::Decimal, b"18446744073709551616"), None);
        assert_eq!(decode(Encoding::Decimal, b"100000000000000000000"), None);
        assert_eq!(decode(Encoding::Decimal, b""), Some(0));
    }

    #[test]
    fn keys_of_ycsb_are_the_same_on_the_short_way() {
        for size in *USER_BYTES.start() - 1..=USER_BYTES.end() + 1 {
            let rules = KeyRules {
                range: 1_000_000,
                size: SizeSpec::Fixed(size),
                encoding: Encoding::Hashed,
                ..KeyRules::default()
            };
            let keys = Keys::new(&rules, 42).unwrap();
            assert_eq!(matches!(keys.form, Form::User), USER_BYTES.contains(&size));
            for index in (0..rules.range).step_by(999) {
                let (mut short, mut long) = ([0; 32], [0; 32]);
                keys.write(index, &mut short);
                assert_eq!(keys.write_number(keys.number(index), &mut long), size as usize);
                assert_eq!(short, long, "{size} bytes, key {index}");
            }
        }
    }

    #[test]
    fn a_byte_that_is_no_digit_makes_no_number() {
        for len in [1, 7, 8, 9, 16, 19] {
            for place in 0..len {
                for byte in 0..=u8::MAX {
                    let mut digits = vec![b'5'; len];
                    digits[place] = byte;
                    let found = decode(Encoding::Decimal, &digits);
                    let wanted = std::str::from_utf8(&digits).ok().filter(|_| byte.is_ascii_digit());
                    assert_eq!(
                        found,
                        wanted.map(|text| text.parse().unwrap()),
                        "byte {byte} at {place} of {len}"
                    );
                }
            }
        }
    }
}
