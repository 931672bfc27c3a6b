//! Flags that take a whole number: what they accept, and the lists of numbers among them.

use kvdyno_measure::text::{QuantityError, parse_count, ungrouped};
use std::error::Error;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

/// A part of a whole: `2%` or `0.02`.
pub(super) fn share(text: &str) -> Option<f64> {
    match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.trim().parse().ok(),
    }
}

/// A number that a flag does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NumberError {
    /// It is none, or out of range: what is accepted.
    Other(String),
    /// It is one in a form that is not accepted.
    Quantity(QuantityError),
    /// A list that may also be one number.
    Ambiguous {
        /// The numbers around the separator.
        text: String,
        /// The number without it.
        plain: String,
        /// The flag of the list.
        flag: &'static str,
        /// All elements of the list.
        elements: Vec<String>,
    },
}

impl fmt::Display for NumberError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberError::Other(expected) => write!(out, "expected {expected}"),
            NumberError::Quantity(error) => error.fmt(out),
            NumberError::Ambiguous { text, plain, flag, elements } => {
                write!(
                    out,
                    "`{text}` is ambiguous; for one number write {plain}; for a list repeat the flag:"
                )?;
                elements.iter().try_for_each(|element| write!(out, " {flag} {element}"))
            }
        }
    }
}

impl Error for NumberError {}

impl From<QuantityError> for NumberError {
    fn from(error: QuantityError) -> NumberError {
        NumberError::Quantity(error)
    }
}

/// A parser of whole numbers in a range, also such as `1k`.
pub(super) fn number<Number>(
    range: RangeInclusive<Number>,
) -> impl Fn(&str) -> Result<Number, NumberError> + Clone + Send + Sync + 'static
where
    Number: TryFrom<u64> + PartialOrd + Copy + Send + Sync + Display + Most + 'static,
{
    move |text| {
        let refused = || NumberError::Other(accepted(&range));
        let found = match parse_count(text) {
            Err(error @ QuantityError::Separated { .. }) => return Err(error.into()),
            found => found.map_err(|_| refused())?,
        };
        Number::try_from(found).ok().filter(|number| range.contains(number)).ok_or_else(refused)
    }
}

/// The largest number of a type, which is no limit for people.
pub(super) trait Most {
    /// The number.
    const MOST: Self;
}

impl Most for u32 {
    const MOST: u32 = u32::MAX;
}

impl Most for u64 {
    const MOST: u64 = u64::MAX;
}

impl Most for u16 {
    // It is the limit of ports.
    const MOST: u16 = 0;
}

impl Most for usize {
    const MOST: usize = usize::MAX;
}

/// `a whole number from 1 to 1000`, `a whole number, 1 or more`.
fn accepted<Number: PartialOrd + Copy + Display + Most>(range: &RangeInclusive<Number>) -> String {
    let (least, most) = (*range.start(), *range.end());
    match most == Number::MOST {
        true => format!("a whole number, {least} or more"),
        false => format!("a whole number from {least} to {most}"),
    }
}

/// The elements of a list of counts such as `1M,5M`, which a comma separates. A comma that may also separate thousands is
/// refused: `flag` is for the message.
pub(super) fn counts(flag: &'static str, text: &str) -> Result<Vec<u64>, NumberError> {
    let elements: Vec<&str> = text.split(',').collect();
    let is_group = |element: &str| element.len() == 3 && element.bytes().all(|digit| digit.is_ascii_digit());
    // As many elements as look like groups of one number.
    for start in 0..elements.len() {
        let groups = elements[start + 1..].iter().take_while(|element| is_group(element)).count();
        if groups == 0 {
            continue;
        }
        let together = elements[start..=start + groups].join(",");
        let Some(plain) = ungrouped(&together) else { continue };
        let has_zero = elements[start + 1..=start + groups].iter().any(|element| element.starts_with('0'));
        if has_zero || groups > 1 && elements.len() == groups + 1 {
            return Err(QuantityError::Separated { text: together, plain }.into());
        }
        let elements = elements.iter().map(|element| element.to_string()).collect();
        return Err(NumberError::Ambiguous { text: together, plain, flag, elements });
    }
    elements.into_iter().map(|element| parse_count(element).map_err(NumberError::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_refused_with_the_range_and_no_machine_word() {
        let error = |found: Result<u32, NumberError>| found.unwrap_err().to_string();
        let runs = number(1..=u32::MAX);
        assert_eq!((runs("3"), runs("2k"), runs(" 4 ")), (Ok(3), Ok(2000), Ok(4)));
        for text in ["five", "", "-1", "0", "2.5", "4294967296", "99999999999999999999"] {
            assert_eq!(error(runs(text)), "expected a whole number, 1 or more", "{text}");
        }
        assert_eq!(error(number(1..=1440)("1441")), "expected a whole number from 1 to 1440");
        assert_eq!(error(runs("1,000")), "\"1,000\" has a thousands separator; write 1000 or 1k");
        let port = number(0..=u16::MAX);
        assert_eq!(port("65536").unwrap_err().to_string(), "expected a whole number from 0 to 65535");
    }

    #[test]
    fn a_list_whose_comma_may_separate_thousands_is_refused() {
        let of = |text: &str| counts("--keys", text);
        for (text, wanted) in [
            ("200k", vec![200_000]),
            ("1M,5M,10M", vec![1_000_000, 5_000_000, 10_000_000]),
            ("500,1000", vec![500, 1000]),
            ("1000,500", vec![1000, 500]),
            ("1k,500", vec![1000, 500]),
            ("1,2", vec![1, 2]),
        ] {
            assert_eq!(of(text), Ok(wanted), "{text}");
        }
        let error = |text: &str| of(text).unwrap_err().to_string();
        assert_eq!(error("1,000"), "\"1,000\" has a thousands separator; write 1000 or 1k");
        assert_eq!(error("1,000,000"), "\"1,000,000\" has a thousands separator; write 1000000 or 1M");
        assert_eq!(error("1,234,567"), "\"1,234,567\" has a thousands separator; write 1234567");
        assert_eq!(error("10.000"), "\"10.000\" has a thousands separator; write 10000 or 10k");
        assert_eq!(error("1k,2,000"), "\"2,000\" has a thousands separator; write 2000 or 2k");
        assert_eq!(
            error("10,500"),
            "`10,500` is ambiguous; for one number write 10500; for a list repeat the flag: --keys 10 --keys 500"
        );
        assert!(error("10,500,2k").ends_with("--keys 10 --keys 500 --keys 2k"), "{}", error("10,500,2k"));
        assert!(error("1k,x").starts_with("expected a count"), "{}", error("1k,x"));
    }
}
