//! Linear and logarithmic scales: from figures to positions on an axis, with ticks at round figures.

use crate::figure::{bytes, rate, three_digits, time};
use kvdyno_core::results::figures::Form;

/// The unit of a figure, which determines its format and which figures are round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Ops per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A number without a unit.
    Plain,
    /// A count; round ones are printed short (`10k`).
    Count,
    /// A percentile p as 1/(1-p): 100 is p99.
    Percentile,
}

impl From<Form> for Unit {
    fn from(form: Form) -> Unit {
        match form {
            Form::Rate => Unit::Rate,
            Form::Time | Form::TimePerOp => Unit::Time,
            Form::Bytes | Form::BytesPerOp => Unit::Bytes,
            Form::Plain | Form::Ratio | Form::Amount => Unit::Plain,
        }
    }
}

impl Unit {
    /// The figure in the format of the tables.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Unit::Rate => rate(value),
            Unit::Time => time(value.round() as u64),
            Unit::Bytes => bytes(value.round() as u64),
            Unit::Seconds => format!("{}s", trimmed(&three_digits(value))),
            Unit::Plain => three_digits(value),
            Unit::Count => trimmed(&rate(value)),
            Unit::Percentile => percentile(value),
        }
    }

    /// The label of a tick, without trailing zeros.
    pub(super) fn tick(self, value: f64) -> String {
        match self {
            // There is little room, and the axis title has the unit.
            Unit::Percentile => self.text(value).trim_end_matches(" %").to_string(),
            _ if value == 0.0 => "0".to_string(),
            _ => trimmed(&self.text(value)),
        }
    }

    /// The base of round figures near this figure.
    fn base(self, near: f64) -> f64 {
        match self {
            Unit::Bytes if near >= 1.0 => 1024_f64.powi((near.log2() / 10.0).floor() as i32),
            _ => 1.0,
        }
    }
}

/// `99.9 %` for 1000: the share that does not exceed the value, never rounded up to another percentile.
fn percentile(beyond_one_in: f64) -> String {
    if beyond_one_in <= 1.0 {
        return "0 %".to_string();
    }
    let decimals = (beyond_one_in.log10() + 1e-9).floor().max(1.0) as usize;
    format!("{} %", trimmed(&format!("{:.decimals$}", 100.0 - 100.0 / beyond_one_in)))
}

/// `2us` from `2.00us`, `1.5M` from `1.50M`.
fn trimmed(text: &str) -> String {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    match number.contains('.') {
        true => format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => text.to_string(),
    }
}

/// The limits of figures. Real figures are never close to them; outside, the next round figure may not be finite.
const LEAST: f64 = 1e-300;
const LARGEST: f64 = 1e300;

/// Where something along an axis begins and ends in the drawing.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub from: f64,
    pub to: f64,
}

/// Maps figures from `low` to `high` to positions from `from` to `to`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    unit: Unit,
    is_log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale from 0 to a round figure at or above the largest.
    pub(super) fn linear(unit: Unit, largest: f64, Ends { from, to }: Ends) -> Scale {
        let largest = if largest.is_finite() && largest > 0.0 { largest.clamp(LEAST, LARGEST) } else { 1.0 };
        let step = step(unit, largest, 4.0);
        // A small tolerance, so that a maximum at a tick does not add an empty step.
        let high = (largest / step - 1e-9).ceil() * step;
        Scale { unit, is_log: false, low: 0.0, high, from, to }
    }

    /// A scale between round figures around the least and the largest, which need not begin at 0. It shows at least 4 % of the
    /// largest, so that noise in the last digits fills no chart.
    pub(super) fn around(unit: Unit, least: f64, largest: f64, Ends { from, to }: Ends) -> Scale {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let largest = if usable(largest) { largest.clamp(LEAST, LARGEST) } else { 1.0 };
        let least = if usable(least) { least.clamp(0.0, largest) } else { 0.0 };
        let more = (0.04 * largest - (largest - least)).max(0.0) / 2.0;
        let (least, largest) = ((least - more).max(0.0), largest + more);
        let step = step(unit, largest - least, 4.0);
        let (low, high) = ((least / step + 1e-9).floor() * step, (largest / step - 1e-9).ceil() * step);
        Scale { unit, is_log: false, low, high, from, to }
    }

    /// A scale from a round figure at or below the least to one at or above the largest; both should be above 0.
    pub(super) fn log(unit: Unit, least: f64, largest: f64, Ends { from, to }: Ends) -> Scale {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let largest = if usable(largest) { largest.clamp(LEAST, LARGEST) } else { 1.0 };
        let least = if usable(least) { least.clamp(LEAST, largest) } else { largest };
        let base = unit.base(largest);
        let low = round_log(least / base, f64::floor) * base;
        let high = round_log(largest / base, f64::ceil) * base;
        let high = if high > low * 1.5 { high } else { low * 10.0 };
        Scale { unit, is_log: true, low, high, from, to }
    }

    /// The position of a figure; a figure outside the scale gets the position of the nearer end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true if value <= 0.0 => 0.0,
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + (self.to - self.from) * if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The positions and labels of round figures along the axis, as many as there is room for.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = if self.is_log { self.log_ticks() } else { self.linear_ticks() };
        let mut ticks: Vec<(f64, String)> =
            values.into_iter().map(|value| (self.at(value), self.unit.tick(value))).collect();
        // Nanoseconds and bytes are whole, and there may be several ticks within one.
        ticks.dedup_by(|next, kept| next.1 == kept.1);
        ticks
    }

    fn linear_ticks(&self) -> Vec<f64> {
        // Up to a step is added at each end of a scale that does not begin at 0.
        let step = step(self.unit, self.high - self.low, if self.low > 0.0 { 6.0 } else { 4.0 });
        let (first, last) = ((self.low / step - 1e-6).ceil(), (self.high / step + 1e-6).floor());
        let count = (last - first).max(0.0) as usize;
        (0..=count.min(20)).map(|place| (first + place as f64) * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let base = self.unit.base(self.high);
        let first = (self.low / base).log10().floor() as i32;
        let last = (self.high / base).log10().ceil() as i32;
        // On a vertical axis labels are above each other and need less room than side by side.
        let each = if self.from > self.to { 24.0 } else { 45.0 };
        let room = ((self.to - self.from).abs() / each).max(2.0) as i32;
        let decades = (last - first).max(1);
        let within = |value: &f64| *value >= self.low * 0.999 && *value <= self.high * 1.001;
        let of = |powers: &[f64], every: usize| -> Vec<f64> {
            let steps = (first..=last).step_by(every.max(1));
            let all =
                steps.flat_map(|power| powers.iter().map(move |digit| digit * 10_f64.powi(power) * base));
            all.filter(within).collect()
        };
        match decades {
            few if few <= room && self.unit == Unit::Percentile => of(&[1.0], 1),
            few if few * 3 <= room => of(&[1.0, 2.0, 5.0], 1),
            few if few * 2 <= room => of(&[1.0, 3.0], 1),
            _ => of(&[1.0], (decades + room - 1) as usize / room as usize),
        }
    }
}

/// The distance between ticks: 1, 2 or 5 times a power of ten, so that about `count` steps reach `largest`.
fn step(unit: Unit, largest: f64, count: f64) -> f64 {
    let base = unit.base(largest);
    let wanted = largest / base / count;
    let power = 10_f64.powf(wanted.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= wanted * 0.999);
    digit.unwrap_or(10.0) * power * base
}

/// The nearest 1, 2 or 5 times a power of ten, below or above the value as `to` rounds.
fn round_log(value: f64, to: fn(f64) -> f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digit = value / power;
    let digits = [1.0, 2.0, 5.0, 10.0];
    let is_up = to(0.5) > 0.0;
    let found = match is_up {
        true => digits.into_iter().find(|candidate| *candidate >= digit * 0.999_999),
        false => digits.into_iter().rev().find(|candidate| *candidate <= digit * 1.000_001),
    };
    found.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, text)| text).collect()
    }

    /// The next round figure above the largest number is infinite; counting decades up to it used to exhaust memory.
    #[test]
    fn extreme_figures_have_few_ticks() {
        for (least, largest) in
            [(1.0, f64::MAX), (f64::MIN_POSITIVE, 1.5e308), (5e-324, 5e-324), (5e-324, 1.7e308)]
        {
            for scale in [
                Scale::log(Unit::Time, least, largest, Ends { from: 0.0, to: 9.0 }),
                Scale::linear(Unit::Rate, largest, Ends { from: 0.0, to: 9.0 }),
            ] {
                assert!(scale.high.is_finite() && scale.low.is_finite(), "{scale:?}");
                assert!((1..100).contains(&scale.ticks().len()), "{scale:?}");
            }
        }
    }

    #[test]
    fn ticks_are_at_round_figures() {
        let room = Ends { from: 0.0, to: 200.0 };
        assert_eq!(texts(&Scale::linear(Unit::Rate, 1_234_567.0, room)), ["0", "500k", "1M", "1.5M"]);
        assert_eq!(texts(&Scale::linear(Unit::Rate, 400.0, room)), ["0", "100", "200", "300", "400"]);
        assert_eq!(texts(&Scale::linear(Unit::Bytes, 70e6, room)), ["0", "20MiB", "40MiB", "60MiB", "80MiB"]);
        assert_eq!(texts(&Scale::linear(Unit::Plain, 0.0, room)), ["0", "0.5", "1"]);
        assert_eq!(texts(&Scale::log(Unit::Time, 300.0, 4e6, room)), ["10us", "1ms"]);
        let wide = Ends { from: 0.0, to: 320.0 };
        let decades = ["1us", "10us", "100us", "1ms"];
        assert_eq!(texts(&Scale::log(Unit::Time, 300.0, 4e6, wide)), decades);
        assert_eq!(texts(&Scale::log(Unit::Rate, 120.0, 800.0, room)), ["100", "200", "500", "1k"]);
        assert_eq!(texts(&Scale::log(Unit::Percentile, 1.0, 1e4, wide)), ["0", "90", "99", "99.9", "99.99"]);
    }

    #[test]
    fn a_scale_around_figures_has_round_ticks_and_no_two_with_the_same_text() {
        let room = Ends { from: 0.0, to: 200.0 };
        let around = |unit, least, largest| texts(&Scale::around(unit, least, largest, room));
        assert_eq!(
            around(Unit::Rate, 1_152_000.0, 1_231_000.0),
            ["1.14M", "1.16M", "1.18M", "1.2M", "1.22M", "1.24M"]
        );
        assert_eq!(around(Unit::Time, 16.0, 16.0), ["16ns"]);
        assert_eq!(around(Unit::Plain, 0.0, 0.0), ["0", "0.5", "1"]);
        let scale = Scale::around(Unit::Rate, 1_152_000.0, 1_231_000.0, room);
        assert!(scale.at(1_152_000.0) > 0.0 && scale.at(1_231_000.0) < 200.0, "{scale:?}");
    }

    #[test]
    fn percentiles_are_never_rounded_up_to_100() {
        let cases = [
            (1.0, "0 %"),
            (2.0, "50 %"),
            (100.0, "99 %"),
            (1e3, "99.9 %"),
            (700.0, "99.86 %"),
            (1e6, "99.9999 %"),
        ];
        for (one_in, text) in cases {
            assert_eq!(Unit::Percentile.text(one_in), text);
        }
    }

    proptest! {
        #[test]
        fn every_figure_is_on_its_axis_and_larger_ones_are_farther(
            one in -1.0_f64..1e15, other in 1e-9_f64..1e15, is_log: bool, unit in 0..5_usize,
        ) {
            let unit = [Unit::Rate, Unit::Time, Unit::Bytes, Unit::Seconds, Unit::Plain][unit];
            let (low, high) = (one.min(other), one.max(other));
            let scale = match is_log {
                true => Scale::log(unit, low, high, Ends { from: 300.0, to: 20.0 }),
                false => Scale::linear(unit, high, Ends { from: 300.0, to: 20.0 }),
            };
            prop_assert!(scale.at(low) >= scale.at(high) - 1e-9);
            let ticks = scale.ticks();
            prop_assert!((1..=21).contains(&ticks.len()), "{ticks:?} of {scale:?}");
            prop_assert!(ticks.iter().all(|(at, _)| (20.0..=300.0).contains(at)), "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0].0 > pair[1].0), "{ticks:?}");
            if !is_log {
                prop_assert!(scale.high >= high && scale.high <= high.max(1.0) * 2.5, "{scale:?}");
            }
        }

        #[test]
        fn a_scale_accepts_any_number(one: f64, other: f64, value: f64) {
            for scale in [Scale::linear(Unit::Rate, one, Ends { from: 0.0, to: 9.0 }), Scale::log(Unit::Time, one, other, Ends { from: 0.0, to: 9.0 })] {
                prop_assert!((0.0..=9.0).contains(&scale.at(value)));
                prop_assert!(scale.ticks().len() < 100);
            }
        }
    }
}
