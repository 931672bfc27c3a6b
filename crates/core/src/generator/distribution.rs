//! The distributions in one table: texts that users type, their parameters, words for them, and samplers.
//!
//! A distribution is a file with a [`Row`] and a sampler, and a line of the table.

mod exponential;
mod hot_ranges;
mod hotspot;
mod latest;
mod moving_hotspot;
mod permutation;
mod sequential;
mod uniform;
mod ycsb;
pub(super) mod zipf;

use super::random::Random;
use super::sample::Partition;
use super::spec::{SpecError, misshapen, numbers, split, unknown};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A finite number over 0.
    Positive,
    /// Over 0 and at most 1.
    Share,
    /// Over 0 and under 100.
    Percentile,
    /// A whole number from 1 to this one.
    Whole(u64),
}

impl Bound {
    fn contains(self, value: f64) -> bool {
        match self {
            Bound::Positive => value > 0.0 && value.is_finite(),
            Bound::Share => value > 0.0 && value <= 1.0,
            Bound::Percentile => value > 0.0 && value < 100.0,
            Bound::Whole(most) => value >= 1.0 && value <= most as f64 && value.fract() == 0.0,
        }
    }

    fn words(self) -> Cow<'static, str> {
        match self {
            Bound::Positive => "a finite number over 0".into(),
            Bound::Share => "over 0 and at most 1".into(),
            Bound::Percentile => "over 0 and under 100".into(),
            Bound::Whole(most) => format!("a whole number from 1 to {most}").into(),
        }
    }
}

/// The items that a thread draws, and their meaning while the range grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// All items.
    All,
    /// All items, counted from the newest.
    FromNewest,
    /// All items of a range that never grows.
    Fixed,
    /// The items of the thread's own part, each once per pass.
    OwnPart,
}

/// Where the hot items are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hot {
    /// There are none, or the newest are, or the words for the distribution say where they are.
    Nowhere,
    /// The distribution itself scatters them.
    Scattered,
    /// Next to each other or scattered, as the user chooses.
    Chosen,
}

/// What is known of a distribution besides its sampler.
#[derive(Debug)]
pub struct Row {
    /// The name that users type.
    pub name: &'static str,
    /// The names of the parameters, which follow the name, and their bounds.
    pub parameters: &'static [(&'static str, Bound)],
    /// The parameters if the name is typed alone; empty: it cannot be.
    pub usual: &'static [f64],
    /// A text that users could type, with all parameters.
    pub example: &'static str,
    /// An addition to the form in the schema's description, or an empty text.
    pub note: &'static str,
    /// How keys are chosen, for the explanation of a workload. `{NAME}` is a parameter, `{NAME %}` a share in per cent, and
    /// `{ORDER}` the order of keys.
    pub words: &'static str,
    /// The items that a thread draws.
    pub places: Places,
    /// Where the hot items are.
    pub hot: Hot,
    /// Texts whose draws are compared with the exact probabilities by `kvdyno doctor --self`.
    pub tested: &'static [&'static str],
    /// The first of 1,000,000 items that are drawn with seed 42: the text, whether hot items are next to each other, the items.
    #[cfg(test)]
    pub first: &'static [(&'static str, bool, [u64; 6])],
}

impl Row {
    /// The name with the names of the parameters: `hotspot:FRACTION,SHARE`.
    pub fn form(&self) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| *name).collect();
        if names.is_empty() { self.name.to_string() } else { format!("{}:{}", self.name, names.join(",")) }
    }

    /// Whether the name may be typed alone.
    fn stands_alone(&self) -> bool {
        self.parameters.len() == self.usual.len()
    }
}

/// What a sampler draws from. It is the same for all threads except for `part`.
pub(super) struct Items {
    /// The items are [0, n).
    pub n: u64,
    /// Selects the hot items and the orders of passes.
    pub seed: u64,
    /// The thread's own items, at least one for [`Places::OwnPart`].
    pub part: Partition,
    /// Hot items are at the start instead of scattered.
    pub clustered: bool,
}

/// A sampler of one distribution.
pub(super) trait Draws {
    /// The next item.
    fn next(&mut self, random: &mut Random) -> u64;

    /// The next items: the same as by `next`.
    #[inline]
    fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
        out.iter_mut().for_each(|item| *item = self.next(random));
    }

    /// Sets the range to [0, n), which is larger than before.
    fn grow(&mut self, n: u64);

    /// The probabilities of the items if hot ones are at the start.
    fn masses(&self) -> Vec<f64>;
}

macro_rules! distributions {
    ($($(#[$meta:meta])* $name:ident $(($($parameter:ident: $float:ty),+))?, $file:ident::$sampler:ident
        $(, then $grown:ident)?;)*) => {
        /// How the next item is chosen.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Distribution {
            $($(#[$meta])* $name $(($($float),+))?,)*
        }

        impl Distribution {
            /// The rows of all distributions, in the order in which users see them.
            pub const ROWS: [&'static Row; [$(&$file::ROW),*].len()] = [$(&$file::ROW),*];

            /// What is known of the distribution.
            pub fn row(&self) -> &'static Row {
                match self {
                    $(Distribution::$name { .. } => &$file::ROW,)*
                }
            }

            /// The values of the row's parameters.
            pub fn parameters(&self) -> Vec<f64> {
                match self {
                    $(Distribution::$name $(($($parameter),+))? => vec![$($(*$parameter),+)?],)*
                }
            }

            /// The distribution with a name and parameters, which may be out of bounds; `None` if it has others.
            pub(super) fn of(name: &str, parameters: &[f64]) -> Option<Distribution> {
                match parameters {
                    $([$($($parameter),+)?] if name == $file::ROW.name => {
                        Some(Distribution::$name $(($(*$parameter),+))?)
                    })*
                    _ => None,
                }
            }
        }

        /// The sampler of any distribution; an enum, so that the hot loop has no dynamic call.
        #[derive(Clone, Debug)]
        pub(super) enum Form {
            $($name($file::$sampler), $($grown($file::$grown),)?)*
        }

        impl Form {
            /// The sampler of a distribution whose parameters are within their bounds.
            pub(super) fn new(distribution: &Distribution, items: &Items) -> Form {
                match *distribution {
                    $(Distribution::$name $(($($parameter),+))? => {
                        Form::$name($file::$sampler::new(items, $($($parameter),+)?))
                    })*
                }
            }

            /// The next item.
            #[inline]
            pub(super) fn next(&mut self, random: &mut Random) -> u64 {
                match self {
                    $(Form::$name(sampler) => sampler.next(random),
                    $(Form::$grown(sampler) => sampler.next(random),)?)*
                }
            }

            /// The next items.
            #[inline]
            pub(super) fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
                match self {
                    $(Form::$name(sampler) => sampler.fill(random, out),
                    $(Form::$grown(sampler) => sampler.fill(random, out),)?)*
                }
            }

            /// Whether the range never grows.
            #[inline]
            pub(super) fn is_fixed(&self) -> bool {
                match self {
                    $(Form::$name(_) => matches!($file::ROW.places, Places::Fixed),
                    $(Form::$grown(_) => false,)?)*
                }
            }

            /// Sets the range to [0, n), which is larger than before.
            pub(super) fn grow(&mut self, n: u64) {
                match self {
                    $(Form::$name(sampler) => sampler.grow(n),
                    $(Form::$grown(sampler) => sampler.grow(n),)?)*
                }
                $($(if let Form::$name(sampler) = &*self {
                    *self = Form::$grown($file::$grown::from(sampler.clone()));
                })?)*
            }

            /// The probabilities of the items if hot ones are at the start.
            pub(super) fn masses(&self) -> Vec<f64> {
                match self {
                    $(Form::$name(sampler) => sampler.masses(),
                    $(Form::$grown(sampler) => sampler.masses(),)?)*
                }
            }
        }
    };
}

// Name and parameters, file and sampler, and the sampler after the range has grown if it is another one.
distributions! {
    /// `sequential`: 0, 1, 2 ...; each item once, then again from the start.
    Sequential, sequential::Sequence;
    /// `uniform`: every item equally likely.
    #[default]
    Uniform, uniform::Uniform;
    /// `permutation`: each item once in a random order, in O(1) memory; then again.
    Permutation, permutation::Pass;
    /// `zipf:THETA`: rank r with probability proportional to 1 / r^THETA over all N items (0 < THETA, also over 1).
    Zipf(theta: f64), zipf::Zipf, then GrownZipf;
    /// `ycsb-zipfian`: YCSB's ZipfianGenerator (theta 0.99), scrambled by FNV as its ScrambledZipfianGenerator does.
    YcsbZipfian, ycsb::Ycsb;
    /// `latest`: YCSB's SkewedLatestGenerator: the newest item most likely.
    Latest, latest::Latest;
    /// `hotspot:FRACTION,SHARE`: SHARE of the draws fall uniformly on a FRACTION of the items (the first ones, or
    /// scattered ones).
    Hotspot(fraction: f64, share: f64), hotspot::Hotspot;
    /// `moving-hotspot:FRACTION,SHARE,DRAWS`: a hotspot that moves by its size after DRAWS draws of a thread.
    MovingHotspot(fraction: f64, share: f64, draws: f64), moving_hotspot::MovingHotspot;
    /// `hot-ranges:COUNT,A,B,C,D,POWER`: ranges of neighbouring items of which a few are hot, and hot items in each of them
    /// (db_bench's mixgraph).
    HotRanges(count: f64, a: f64, b: f64, c: f64, d: f64, power: f64), hot_ranges::HotRanges;
    /// `exponential` or `exponential:PERCENTILE,FRACTION`: PERCENTILE % of the draws fall on the newest FRACTION of
    /// the items, the newest most likely (YCSB: 95, 0.8571428571).
    Exponential(percentile: f64, fraction: f64), exponential::Exponential;
}

impl Distribution {
    /// The names of the distributions with a property, in the order in which users see them.
    pub fn names(has: impl Fn(&Row) -> bool) -> Vec<&'static str> {
        Distribution::ROWS.into_iter().filter(|row| has(row)).map(|row| row.name).collect()
    }

    /// Whether each item is drawn once per pass, and each thread has its own part of the items.
    pub fn is_pass(&self) -> bool {
        self.row().places == Places::OwnPart
    }

    /// The distribution, if its parameters are in range; otherwise an error that states the range.
    pub fn checked(self) -> Result<Self, SpecError> {
        for ((name, bound), value) in self.row().parameters.iter().zip(self.parameters()) {
            if !bound.contains(value) {
                return Err(SpecError(format!("{name} of `{self}` must be {}, got {value}", bound.words())));
            }
        }
        Ok(self)
    }
}

impl FromStr for Distribution {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (name, parameters) = split(text);
        let Some(row) = Distribution::ROWS.into_iter().find(|row| row.name == name) else {
            let forms = Distribution::ROWS.map(Row::form);
            return Err(unknown("distribution", name, &forms.each_ref().map(String::as_str)));
        };
        let values = match parameters {
            None if row.stands_alone() => Some(row.usual.to_vec()),
            Some(_) if row.parameters.is_empty() => {
                return Err(SpecError(format!("`{name}` does not accept parameters, got `{text}`")));
            }
            _ => numbers(parameters),
        };
        values
            .and_then(|values| Distribution::of(name, &values))
            .ok_or_else(|| misshapen(text, &row.form(), row.example))?
            .checked()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (row, parameters) = (self.row(), self.parameters());
        out.write_str(row.name)?;
        if parameters == row.usual {
            return Ok(());
        }
        for (place, parameter) in parameters.iter().enumerate() {
            let sign = if place == 0 { ':' } else { ',' };
            write!(out, "{sign}{parameter}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Distribution {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<Distribution> for String {
    fn from(distribution: Distribution) -> String {
        distribution.to_string()
    }
}

impl JsonSchema for Distribution {
    fn schema_name() -> Cow<'static, str> {
        "Distribution".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        const NUMBER: &str = "[0-9.eE+-]+";
        let described = Distribution::ROWS.map(|row| {
            let alone = if row.usual.is_empty() { String::new() } else { format!("`{}` or ", row.name) };
            let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
            format!("{alone}`{}`{note}", row.form())
        });
        let mut patterns = Distribution::names(Row::stands_alone);
        let most = Distribution::ROWS.map(|row| row.parameters.len()).into_iter().max().unwrap_or(0);
        let grouped = (1..=most).filter_map(|count| {
            let numbers = vec![NUMBER; count].join(",");
            match Distribution::names(|row| row.parameters.len() == count).as_slice() {
                [] => None,
                [name] => Some(format!("{name}:{numbers}")),
                names => Some(format!("({}):{numbers}", names.join("|"))),
            }
        });
        let grouped: Vec<String> = grouped.collect();
        patterns.extend(grouped.iter().map(String::as_str));
        json_schema!({
            "type": "string",
            "description": format!("How the next item is chosen: {}.", described.join(", ")),
            "pattern": format!("^({})$", patterns.join("|")),
            "examples": Distribution::ROWS.map(|row| row.example)
        })
    }
}

/// The probabilities of `n` items that are equally likely.
fn equal(n: u64) -> Vec<f64> {
    vec![1.0 / n as f64; n as usize]
}
