//! Figures for people: three digits and a unit, and `-` for unknown values.

use kvdyno_core::results::figures::{Figure, Form};
use kvdyno_core::results::summary::Cell;
use kvdyno_measure::text::{Align, bytes_text};

/// The text for an unknown value.
pub(super) const UNKNOWN: &str = "-";

/// The value as formatted by `format`, or `-` if it is unknown.
pub(super) fn known<Value>(value: Option<Value>, format: impl Fn(Value) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_string(), format)
}

/// A column of a table of cells.
pub(super) type Field = (&'static str, Align, Box<dyn Fn(&Cell) -> String>);

/// A figure in its form.
pub(super) fn text(form: Form, value: f64) -> String {
    match form {
        Form::Rate => rate(value),
        Form::Time => time(value.round() as u64),
        Form::Bytes => bytes(value.round() as u64),
        Form::Plain => three_digits(value),
        Form::Ratio => ratio(value),
        Form::Amount => unless_tiny(value, "", rate),
        Form::TimePerOp => unless_tiny(value, "ns", |ns| match ns < 999.5 {
            true => format!("{}ns", three_digits(ns)),
            false => time(ns.round() as u64),
        }),
        Form::BytesPerOp => unless_tiny(value, "B", |value| match value < 1023.5 {
            true => format!("{}B", three_digits(value)),
            false => bytes(value.round() as u64),
        }),
    }
}

/// The figure of a cell, or `-` if it is unknown.
pub(super) fn of_cell(figure: &Figure, cell: &Cell) -> String {
    known(figure.of_cell(cell), |value| text(figure.form, value))
}

/// A small amount that is not 0 must not look like 0.
fn unless_tiny(value: f64, unit: &str, format: impl Fn(f64) -> String) -> String {
    if value > 0.0 && value < 0.0005 { format!("<0.001{unit}") } else { format(value) }
}

/// Ops per second: `1.23M`, `456k`, `12.3`.
pub(super) fn rate(per_second: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
    // A value that would be printed as 1000 of a unit uses the next unit.
    let found = UNITS.into_iter().find(|(_, size)| per_second >= *size * 0.9995);
    let (unit, size) = found.unwrap_or(("", 1.0));
    format!("{}{unit}", three_digits(per_second / size))
}

/// A plain number with three digits: `2.50`, `0.104`, `352`.
pub(super) fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 || value == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// An amount of money with at least three significant digits: `12.50`, `0.104`, `0.00000123`.
pub(super) fn price(amount: f64) -> String {
    let decimals = match amount {
        amount if amount >= 1.0 || amount <= 0.0 => 2,
        amount => ((2.0 - amount.log10().floor()) as usize).clamp(2, 12),
    };
    format!("{amount:.decimals$}")
}

/// A ratio: `0.979`, `1.053`, `12.3`, `0.00123`. Near 1 a thousandth matters.
pub(super) fn ratio(ratio: f64) -> String {
    format!("{ratio:.0$}", ratio_decimals(ratio))
}

/// A range of ratios, rounded outward so that the printed range is never narrower than the real one: `0.951..1.002`.
pub(super) fn ratio_range(low: f64, high: f64) -> String {
    let outward = |ratio: f64, round: fn(f64) -> f64| {
        let decimals = ratio_decimals(ratio);
        let unit = 10_f64.powi(decimals as i32);
        format!("{:.decimals$}", round(ratio * unit) / unit)
    };
    format!("{}..{}", outward(low, f64::floor), outward(high, f64::ceil))
}

/// Decimals that show three significant digits, and four of ratios from 1 to 2.
fn ratio_decimals(ratio: f64) -> usize {
    match ratio {
        _ if !ratio.is_finite() || ratio <= 0.0 => 0,
        _ if ratio < 0.1 => ((2.0 - ratio.log10().floor()) as usize).min(9),
        _ if ratio < 2.0 => 3,
        _ if ratio < 10.0 => 2,
        _ if ratio < 100.0 => 1,
        _ => 0,
    }
}

/// A time in nanoseconds as text: `41ns`, `2.80us`. For narrow columns: without a space, and with three digits from 1 us on.
pub(super) fn time(ns: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    match UNITS.into_iter().find(|(_, size)| ns as f64 >= *size * 0.9995) {
        Some((unit, size)) => format!("{}{unit}", three_digits(ns as f64 / size)),
        None => format!("{ns}ns"),
    }
}

/// An amount of memory or disk space: `23.5GiB`.
pub(super) fn bytes(bytes: u64) -> String {
    bytes_text(bytes).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_keep_three_digits() {
        for (amount, text) in [
            (0.0, "0.00"),
            (12.5, "12.50"),
            (1_234.567, "1234.57"),
            (0.5, "0.500"),
            (0.010_44, "0.0104"),
            (0.000_001_234, "0.00000123"),
        ] {
            assert_eq!(price(amount), text);
        }
    }

    #[test]
    fn ratios_keep_their_digits_and_ranges_are_rounded_outward() {
        for (value, text) in [
            (1.0, "1.000"),
            (0.9796, "0.980"),
            (12.34, "12.3"),
            (0.01234, "0.0123"),
            (0.000_45, "0.000450"),
            (5.0, "5.00"),
            (1234.0, "1234"),
        ] {
            assert_eq!(ratio(value), text);
        }
        assert_eq!(ratio_range(0.9996, 1.0002), "0.999..1.001");
        assert_eq!(ratio_range(0.9799, 0.9991), "0.979..1.000");
        assert_eq!(ratio_range(0.001_234, 12.31), "0.00123..12.4");
    }

    #[test]
    fn rates_have_three_digits() {
        const CASES: &[(f64, &str)] = &[
            (0.0, "0.00"),
            (0.25, "0.250"),
            (7.0, "7.00"),
            (999.4, "999"),
            (999.8, "1.00k"),
            (1_234.0, "1.23k"),
            (45_678.0, "45.7k"),
            (456_789.0, "457k"),
            (999_700.0, "1.00M"),
            (1_234_567.0, "1.23M"),
            (2.5e9, "2.50G"),
        ];
        for (per_second, text) in CASES {
            assert_eq!(rate(*per_second), *text, "{per_second}");
        }
    }

    #[test]
    fn times_and_bytes_fit_narrow_columns() {
        const CASES: &[(u64, &str)] = &[
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.00us"),
            (2_804, "2.80us"),
            (999_600, "1.00ms"),
            (35_000_000, "35.0ms"),
            (3_000_000_000, "3.00s"),
            (u64::MAX, "18446744074s"),
        ];
        for (ns, text) in CASES {
            assert_eq!(time(*ns), *text, "{ns} ns");
        }
        assert_eq!(bytes(30 << 20), "30MiB");
    }

    #[test]
    fn figures_fit_narrow_columns_and_what_is_little_is_not_zero() {
        for (value, text) in [(0.0, "0.00"), (0.0001, "<0.001"), (0.25, "0.250"), (12_345.0, "12.3k")] {
            assert_eq!(super::text(Form::Amount, value), text);
        }
        for (value, text) in [(0.0, "0.00ns"), (0.000_2, "<0.001ns"), (52.25, "52.2ns"), (2_804.0, "2.80us")]
        {
            assert_eq!(super::text(Form::TimePerOp, value), text);
        }
        for (value, text) in [(0.0, "0.00B"), (16.0, "16.0B"), (1_023.6, "1KiB"), (4_096.0, "4KiB")] {
            assert_eq!(super::text(Form::BytesPerOp, value), text);
        }
    }

    #[test]
    fn the_unknown_is_a_dash_and_never_zero() {
        assert_eq!(known(None, rate), "-");
        assert_eq!(known(Some(0.0), rate), "0.00");
        assert_eq!(known(None, time), "-");
    }
}
