//! The bounds and the rows of a scan.

use kvdyno_driver::{Error, Op, Status};
use persy::{ByteVec, ValueIter};
use std::ops::Bound;

/// A bound as the engine expects it.
pub fn own(bound: Bound<&[u8]>) -> Bound<ByteVec> {
    bound.map(ByteVec::from)
}

/// Delivers the rows of a scan.
pub fn rows(
    op: &mut Op<'_>,
    found: impl Iterator<Item = (ByteVec, ValueIter<ByteVec>)>,
) -> Result<Status, Error> {
    let mut writer = op.rows();
    for (key, mut values) in found {
        let value = values.next().ok_or_else(|| Error::new("a key without a value"))?;
        if !writer.push(&key, &value) {
            break;
        }
    }
    Ok(writer.status())
}
