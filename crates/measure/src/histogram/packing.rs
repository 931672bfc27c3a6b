//! Buckets of a histogram in few bytes: gaps and counts as numbers of 7 bits per byte. Created only here, so always
//! valid.

/// Index and count of each bucket in use, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed(Vec<u8>);

impl Packed {
    /// Creates an empty one that allocates nothing.
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The buckets, in ascending order.
    pub(super) fn iter(&self) -> Buckets<'_> {
        Buckets { rest: self.0.iter(), next_index: 0 }
    }
}

impl FromIterator<(usize, u64)> for Packed {
    fn from_iter<I: IntoIterator<Item = (usize, u64)>>(buckets: I) -> Self {
        let mut bytes = Vec::new();
        let mut next_index = 0;
        for (index, count) in buckets {
            write(&mut bytes, (index - next_index) as u64);
            write(&mut bytes, count);
            next_index = index + 1;
        }
        bytes.shrink_to_fit();
        Self(bytes)
    }
}

/// Iterates over the packed buckets.
pub(super) struct Buckets<'a> {
    rest: std::slice::Iter<'a, u8>,
    next_index: usize,
}

impl Iterator for Buckets<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        let gap = read(&mut self.rest)?;
        let count = read(&mut self.rest)?;
        let index = self.next_index + gap as usize;
        self.next_index = index + 1;
        Some((index, count))
    }
}

fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
