//! Text for people and from people: wrapped lines, tables, lists in sentences, figures, quantities with units, escapes.

mod escape;
mod figure;
mod quantity;
mod sentence;
mod table;
mod wrap;

pub use escape::{harmless_text, middle_text, plain_text, short_text};
pub use figure::{bytes_text, count_text, grouped, share_text, time_text};
pub use quantity::{
    A_BYTE_COUNT, A_COUNT, A_DURATION, BYTE_PATTERN, EXACT, QuantityError, parse_bytes, parse_count,
    parse_seconds, ungrouped,
};
pub use sentence::{counted, few, listed, nearest, ordinal};
pub use table::{Align, Column, Field, Table};
pub use wrap::{NO_BREAK, facts, wrapped, wrapped_lines};
