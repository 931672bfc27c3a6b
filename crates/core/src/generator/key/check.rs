//! Checks whether keys can be created by some rules: sizes, numbers that fit, a file that is long enough.

use super::random;
use super::{KeyFile, KeyRules, LEAST_KEY_BYTES, MOST_HASHED_DIGITS, MOST_KEY_BYTES, USER};
use crate::generator::alternate::turns;
use crate::generator::sizes::Sizes;
use crate::generator::spec::{Encoding, SpecError};

pub(super) fn prefix_bytes(rules: &KeyRules) -> usize {
    if rules.prefix_groups == 0 { 0 } else { rules.prefix_size as usize }
}

/// How many numbers fit into `bytes` of an encoding.
pub(super) fn numbers_held(encoding: Encoding, bytes: usize) -> u128 {
    let (base, most): (u128, usize) = match encoding {
        Encoding::Binary | Encoding::Random => (256, 8),
        Encoding::Decimal | Encoding::Hashed => (10, 20),
        Encoding::Hex => (16, 16),
    };
    base.pow(bytes.min(most) as u32)
}

/// How many distinct numbers fit into a hashed key of `bytes`.
pub(super) fn hashed_numbers(bytes: usize) -> u64 {
    let digits = (bytes.saturating_sub(USER.len()) as u32).min(MOST_HASHED_DIGITS);
    10_u64.pow(digits)
}

pub(super) fn check_sizes(rules: &KeyRules, sizes: &Sizes) -> Result<(), SpecError> {
    let wrong = |text: String| Err(SpecError(text));
    if sizes.min() < LEAST_KEY_BYTES || sizes.max() > MOST_KEY_BYTES {
        return wrong(format!(
            "keys must have {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes, got `{}`",
            rules.size
        ));
    }
    if rules.range == 0 || rules.range > 1 << 62 {
        return wrong(format!("the number of keys must be 1 to 2^62, got {}", rules.range));
    }
    if rules.spacing == 0 {
        return wrong("`key.spacing` must be at least 1".to_string());
    }
    if rules.alternate > 0 && rules.part.count > 1 {
        return wrong("`key.alternate` requires one load generator: turns have no parts".to_string());
    }
    if rules.alternate > 0
        && (rules.scattered
            || rules.prefix_groups > 0
            || rules.file.is_some()
            || !rules.encoding.is_ordered())
    {
        return wrong(
            "`key.alternate` requires plain keys: not scattered, hashed or random, not from a file, and without prefix groups"
                .to_string(),
        );
    }
    if (rules.prefix_groups == 0) != (rules.prefix_size == 0) {
        return wrong(
            "`key.prefix_groups` and `key.prefix_size` must be used together: set both or neither"
                .to_string(),
        );
    }
    let number = match rules.encoding {
        Encoding::Hashed => 5,
        Encoding::Random => random::LEAST as u32,
        Encoding::Binary | Encoding::Decimal | Encoding::Hex => 1,
    };
    let needed = rules.prefix_size.saturating_add(number);
    if rules.file.is_none() && sizes.min() < needed {
        let (encoding, prefix, size) = (rules.encoding, rules.prefix_size, sizes.min());
        return wrong(format!(
            "{encoding} keys with a prefix of {prefix} bytes need at least {needed} bytes, got {size}"
        ));
    }
    Ok(())
}

pub(super) fn check_capacity(rules: &KeyRules, sizes: &Sizes) -> Result<(), SpecError> {
    let (encoding, size, range, spacing) = (rules.encoding, sizes.min(), rules.range, rules.spacing);
    let bytes = size as usize - prefix_bytes(rules);
    let held = match encoding {
        Encoding::Hashed => u128::from(hashed_numbers(bytes)),
        _ => numbers_held(encoding, bytes),
    };
    let places = match rules.alternate {
        0 => u128::from(range),
        size => u128::from(turns(size, range)) * u128::from(size),
    };
    let needed = places.saturating_mul(u128::from(spacing)).saturating_mul(u128::from(rules.part.count));
    if needed > held.min(1 << 64) {
        let (unit, extra) = match encoding {
            Encoding::Binary | Encoding::Random => ("bytes", 0),
            Encoding::Hashed => ("bytes", USER.len()),
            Encoding::Decimal | Encoding::Hex => ("digits", 0),
        };
        let width = (1..20).find(|&width| numbers_held(encoding, width) >= needed).unwrap_or(20) + extra;
        let prefix = match prefix_bytes(rules) {
            0 => String::new(),
            prefix => format!(" after a prefix of {prefix} bytes"),
        };
        return Err(SpecError(format!(
            "{size}-byte {encoding} keys have space for {held} numbers{prefix}; {range} keys with spacing {spacing} need \
             {width} {unit}"
        )));
    }
    if rules.prefix_groups > 0
        && u128::from(rules.prefix_groups) > numbers_held(encoding, prefix_bytes(rules))
    {
        return Err(SpecError(format!(
            "a {encoding} prefix of {} bytes can distinguish {} groups, but {} are requested",
            rules.prefix_size,
            numbers_held(encoding, prefix_bytes(rules)),
            rules.prefix_groups
        )));
    }
    Ok(())
}

pub(super) fn check_file(rules: &KeyRules, sizes: &Sizes, file: &KeyFile) -> Result<KeyFile, SpecError> {
    let Some(size) = sizes.fixed() else {
        let text = format!(
            "keys from a file must have a fixed size, got `{}`; set `key.size` to a number",
            rules.size
        );
        return Err(SpecError(text));
    };
    if rules.prefix_groups > 0 {
        return Err(SpecError(
            "keys from a file cannot have prefix groups; set `key.prefix_groups` to 0".into(),
        ));
    }
    let bytes = (**file).as_ref().len() as u64;
    let (held, rest) = (bytes / u64::from(size), bytes % u64::from(size));
    if rest > 0 {
        let text = format!(
            "the key file has {bytes} bytes, which is not a multiple of `key.size` ({size} bytes); set `key.size` to the \
             size of its keys"
        );
        return Err(SpecError(text));
    }
    let range = rules.range.saturating_mul(rules.part.count);
    if held < range {
        return Err(SpecError(format!(
            "the key file contains {held} keys of {size} bytes, but {range} are needed"
        )));
    }
    Ok(file.clone())
}
