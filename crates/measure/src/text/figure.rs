//! Formats figures for sentences and tables: three digits and a unit. Records keep plain numbers.

/// `23.5 GiB`; plain bytes below 1 KiB.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (bytes.max(1).ilog2() / 10).min(UNITS.len() as u32 - 1);
    let value = bytes as f64 / (1_u64 << (10 * power)) as f64;
    format!("{} {}", three_digits(value), UNITS[power as usize])
}

/// `2.81 ms`.
pub fn time_text(ns: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let (unit, size) = UNITS.into_iter().find(|(_, size)| ns >= *size).unwrap_or(("ns", 1.0));
    format!("{} {unit}", three_digits(ns / size))
}

/// `1.9 %` for a share from 0 to 1.
pub fn share_text(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// A short form of a count: `1M`, `500k`, or all digits if it is not round.
pub fn count_text(count: u64) -> String {
    match count {
        _ if count > 0 && count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        _ if count > 0 && count.is_multiple_of(1000) => format!("{}k", count / 1000),
        _ => count.to_string(),
    }
}

/// A count with thousands separators: `200,000`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    short.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let cases = [
            (bytes_text(0), "0 B"),
            (bytes_text(1023), "1023 B"),
            (bytes_text(1024), "1 KiB"),
            (bytes_text(25_276_510_208), "23.5 GiB"),
            (bytes_text(u64::MAX), "16384 PiB"),
            (time_text(0.0), "0 ns"),
            (time_text(24.16), "24.2 ns"),
            (time_text(2_812_345.0), "2.81 ms"),
            (time_text(207_000_000.0), "207 ms"),
            (time_text(3e12), "3000 s"),
            (share_text(0.019), "1.9 %"),
            (share_text(1.0), "100 %"),
        ];
        for (actual, wanted) in cases {
            assert_eq!(actual, wanted);
        }
    }

    #[test]
    fn counts_are_grouped_or_short() {
        for (count, wanted) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(count), wanted);
        }
        for (count, wanted) in [(0, "0"), (999, "999"), (1500, "1500"), (2000, "2k"), (1_500_000, "1500k")] {
            assert_eq!(count_text(count), wanted);
        }
        assert_eq!((count_text(10_000_000), count_text(4_000_000_000)), ("10M".into(), "4000M".into()));
    }
}
