//! A limit that a rate must keep, as a person writes it: `p99<1ms`, `errors<0.1%`, `backlog<1000`.

use std::fmt;
use std::str::FromStr;

use super::binomial;

/// What a limit bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The median response time.
    P50,
    /// The 90th percentile of response times.
    P90,
    /// The 95th percentile of response times.
    P95,
    /// The 99th percentile of response times.
    P99,
    /// The 99.9th percentile of response times.
    P999,
    /// The 99.99th percentile of response times.
    P9999,
    /// The longest response time.
    Max,
    /// The share of requests that failed or were dropped.
    Errors,
    /// Requests that have arrived and have no answer yet, at the end of a probe.
    Backlog,
}

/// Each metric with the word that a limit begins with.
const METRICS: [(&str, Metric); 9] = [
    ("p50", Metric::P50),
    ("p90", Metric::P90),
    ("p95", Metric::P95),
    ("p99", Metric::P99),
    ("p99.9", Metric::P999),
    ("p99.99", Metric::P9999),
    ("max", Metric::Max),
    ("errors", Metric::Errors),
    ("backlog", Metric::Backlog),
];

/// Units of time with their nanoseconds, longest first.
const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    metric: Metric,
    /// Whether the bound itself keeps the limit (`<=`).
    inclusive: bool,
    /// Nanoseconds of a response time, per cent of errors, requests of a backlog.
    bound: f64,
}

/// Why a text is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is no text.
    #[error("no limit: expected for example p99<1ms")]
    Empty,
    /// There is no `<`.
    #[error("limit `{0}` has no `<`: expected for example p99<1ms")]
    NoSign(String),
    /// The word before `<` names no metric.
    #[error("unknown metric `{0}`: expected p50, p90, p95, p99, p99.9, p99.99, max, errors or backlog")]
    UnknownMetric(String),
    /// The bound of a response time is no time.
    #[error("`{0}` is not a time: expected a number with ns, us, ms or s, for example 1ms")]
    NotATime(String),
    /// The bound of errors is no share.
    #[error("`{0}` is not a share of requests: expected a percentage over 0 and under 100, for example 0.1%")]
    NotAShare(String),
    /// The bound of a backlog is no count.
    #[error("`{0}` is not a number of requests: expected a whole number over 0, for example 1000")]
    NotACount(String),
    /// Two limits bound the same metric.
    #[error("two limits for `{0}`: expected one for each metric")]
    Twice(String),
}

impl Metric {
    /// The percentile of response times that it is, as a fraction; none: it is no percentile.
    pub fn percentile(self) -> Option<(u64, u64)> {
        match self {
            Metric::P50 => Some((1, 2)),
            Metric::P90 => Some((9, 10)),
            Metric::P95 => Some((19, 20)),
            Metric::P99 => Some((99, 100)),
            Metric::P999 => Some((999, 1_000)),
            Metric::P9999 => Some((9_999, 10_000)),
            Metric::Max | Metric::Errors | Metric::Backlog => None,
        }
    }
}

impl Limit {
    /// Its bound as users write it: `1ms`, `0.1%`, `1000`.
    pub fn bound_text(&self) -> String {
        match self.metric {
            Metric::Errors => format!("{}%", self.bound),
            Metric::Backlog => self.bound.to_string(),
            _ => {
                let (unit, ns) = UNITS.iter().find(|(_, ns)| self.bound >= *ns).unwrap_or(&UNITS[3]);
                format!("{}{unit}", self.bound / ns)
            }
        }
    }

    /// What it bounds.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The longest response time that keeps the limit, nanoseconds. A request that takes longer is over the limit.
    /// Absent for errors and backlogs.
    pub fn longest_ns(&self) -> Option<u64> {
        if matches!(self.metric, Metric::Errors | Metric::Backlog) {
            return None;
        }
        Some(self.largest())
    }

    /// The largest backlog that keeps the limit, requests. Absent for all other metrics.
    pub fn largest_backlog(&self) -> Option<u64> {
        (self.metric == Metric::Backlog).then(|| self.largest())
    }

    /// The share of requests that must be within the limit, from 0 to 1. Absent if it does not bound a share: for the
    /// longest response time and for backlogs.
    pub fn quantile(&self) -> Option<f64> {
        match self.metric {
            Metric::P50 => Some(0.5),
            Metric::P90 => Some(0.9),
            Metric::P95 => Some(0.95),
            Metric::P99 => Some(0.99),
            Metric::P999 => Some(0.999),
            Metric::P9999 => Some(0.9999),
            Metric::Errors => Some(1.0 - self.bound / 100.0),
            Metric::Max | Metric::Backlog => None,
        }
    }

    /// The least number of requests that can show with 99 % confidence that the limit is kept: the smallest n with
    /// q^n <= 0.01, if none of them is over it. It is 459 for p99, and 1 for limits that bound no share.
    pub fn needed(&self) -> u64 {
        self.quantile().map_or(1, |quantile| binomial::needed(quantile, 0.99))
    }

    /// The bound as a whole number, itself excluded if the sign is `<`.
    fn largest(&self) -> u64 {
        self.bound as u64 - u64::from(!self.inclusive)
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Limit, LimitError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(LimitError::Empty);
        }
        let (name, rest) = text.split_once('<').ok_or_else(|| LimitError::NoSign(text.to_owned()))?;
        let name = name.trim();
        let (_, metric) = *METRICS
            .iter()
            .find(|(word, _)| *word == name)
            .ok_or_else(|| LimitError::UnknownMetric(name.to_owned()))?;
        let (inclusive, bound) = match rest.strip_prefix('=') {
            Some(bound) => (true, bound.trim()),
            None => (false, rest.trim()),
        };
        let bound = match metric {
            Metric::Errors => share(bound).ok_or_else(|| LimitError::NotAShare(bound.to_owned()))?,
            Metric::Backlog => count(bound).ok_or_else(|| LimitError::NotACount(bound.to_owned()))?,
            _ => time_ns(bound).ok_or_else(|| LimitError::NotATime(bound.to_owned()))?,
        };
        Ok(Limit { metric, inclusive, bound })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.inclusive { "<=" } else { "<" };
        write!(f, "{}{sign}{}", self.metric, self.bound_text())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = METRICS.iter().find(|(_, metric)| metric == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// A time over 0, nanoseconds, rounded to whole ones. A day is the longest.
fn time_ns(text: &str) -> Option<f64> {
    let at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let time = (plain(number.trim_end())? * ns).round();
    (1.0..=86_400e9).contains(&time).then_some(time)
}

/// A percentage over 0 and under 100.
fn share(text: &str) -> Option<f64> {
    let percent = plain(text.strip_suffix('%')?.trim_end())?;
    (percent > 0.0 && percent < 100.0).then_some(percent)
}

/// A whole number over 0. A billion is the largest.
fn count(text: &str) -> Option<f64> {
    let count: u32 = text.parse().ok()?;
    (1..=1_000_000_000).contains(&count).then_some(f64::from(count))
}

/// A number of digits and at most one point: no sign, no exponent, no `inf`.
fn plain(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { text.parse().ok() } else { None }
}

/// Limits that a rate must keep together.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits(Vec<Limit>);

impl Limits {
    /// The limits, in the order in which they were written. There is at least one.
    pub fn list(&self) -> &[Limit] {
        &self.0
    }

    /// The least number of requests that can show that all limits are kept.
    pub fn needed(&self) -> u64 {
        self.0.iter().map(Limit::needed).max().unwrap_or(1)
    }
}

impl FromStr for Limits {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Limits, LimitError> {
        let mut limits: Vec<Limit> = Vec::new();
        for part in text.split(',') {
            let limit: Limit = part.parse()?;
            if limits.iter().any(|other| other.metric == limit.metric) {
                return Err(LimitError::Twice(limit.metric.to_string()));
            }
            limits.push(limit);
        }
        Ok(Limits(limits))
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, limit) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{limit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        const CASES: &[(&str, &str)] = &[
            ("p99<1ms", "p99<1ms"),
            (" p99.9 <= 1.5 ms ", "p99.9<=1.5ms"),
            ("p50<1500us", "p50<1.5ms"),
            ("p99.99<20s", "p99.99<20s"),
            ("max<0.5us", "max<500ns"),
            ("errors<0.1%", "errors<0.1%"),
            ("backlog<=1000", "backlog<=1000"),
            ("p99<1ms, p90<100us,errors<1%", "p99<1ms,p90<100us,errors<1%"),
        ];
        for (text, printed) in CASES {
            let limits: Limits = text.parse().expect(text);
            assert_eq!(limits.to_string(), *printed, "{text}");
            assert_eq!(limits.to_string().parse::<Limits>().expect(printed), limits, "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_in_one_line() {
        const CASES: &[(&str, &str)] = &[
            ("", "no limit: expected for example p99<1ms"),
            ("p99<1ms,", "no limit: expected for example p99<1ms"),
            ("p99>1ms", "limit `p99>1ms` has no `<`: expected for example p99<1ms"),
            (
                "mean<1ms",
                "unknown metric `mean`: expected p50, p90, p95, p99, p99.9, p99.99, max, errors or backlog",
            ),
            (
                "p9x<1ms",
                "unknown metric `p9x`: expected p50, p90, p95, p99, p99.9, p99.99, max, errors or backlog",
            ),
            ("p99<1", "`1` is not a time: expected a number with ns, us, ms or s, for example 1ms"),
            ("p99<1m", "`1m` is not a time: expected a number with ns, us, ms or s, for example 1ms"),
            ("p99<-1ms", "`-1ms` is not a time: expected a number with ns, us, ms or s, for example 1ms"),
            ("p99<0ms", "`0ms` is not a time: expected a number with ns, us, ms or s, for example 1ms"),
            ("p99<inf", "`inf` is not a time: expected a number with ns, us, ms or s, for example 1ms"),
            ("p99<<1ms", "`<1ms` is not a time: expected a number with ns, us, ms or s, for example 1ms"),
            (
                "errors<1",
                "`1` is not a share of requests: expected a percentage over 0 and under 100, for example 0.1%",
            ),
            (
                "backlog<1.5",
                "`1.5` is not a number of requests: expected a whole number over 0, for example 1000",
            ),
            ("p99<1ms,p99<2ms", "two limits for `p99`: expected one for each metric"),
        ];
        for (text, message) in CASES {
            assert_eq!(text.parse::<Limits>().expect_err(text).to_string(), *message, "{text}");
        }
    }

    #[test]
    fn says_how_many_requests_it_needs() {
        const CASES: &[(&str, u64)] = &[
            ("p50<1ms", 7),
            ("p90<1ms", 44),
            ("p95<1ms", 90),
            ("p99<1ms", 459),
            ("p99.9<1ms", 4_603),
            ("p99.99<1ms", 46_050),
            ("max<1ms", 1),
            ("errors<0.1%", 4_603),
            ("backlog<10", 1),
            ("p99<1ms,p99.9<2ms", 4_603),
        ];
        for (text, needed) in CASES {
            assert_eq!(text.parse::<Limits>().expect(text).needed(), *needed, "{text}");
        }
    }

    #[test]
    fn counts_the_bound_itself_only_with_an_equals_sign() {
        let longest = |text: &str| text.parse::<Limit>().expect(text).longest_ns();
        assert_eq!(longest("p99<1ms"), Some(999_999));
        assert_eq!(longest("p99<=1ms"), Some(1_000_000));
        assert_eq!(longest("errors<1%"), None);
        assert_eq!("backlog<10".parse::<Limit>().expect("a limit").largest_backlog(), Some(9));
    }
}
