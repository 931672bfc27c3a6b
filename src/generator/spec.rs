//! The texts that people type for distributions, encodings and sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A text that is none of the forms; says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub String);

impl fmt::Display for SpecError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

/// Which item comes next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Distribution {
    /// `sequential`: 0, 1, 2 ...; each item once, then again from the start.
    Sequential,
    /// `uniform`: every item equally likely.
    #[default]
    Uniform,
    /// `permutation`: each item once in a random order, in O(1) memory; then again.
    Permutation,
    /// `zipf:THETA`: rank r with probability proportional to 1 / r^THETA over all N items (0 < THETA, also over 1).
    Zipf(f64),
    /// `ycsb-zipfian`: YCSB's ZipfianGenerator (theta 0.99), scrambled by FNV as its ScrambledZipfianGenerator does.
    YcsbZipfian,
    /// `latest`: YCSB's SkewedLatestGenerator: the newest item most likely.
    Latest,
    /// `hotspot:FRACTION,SHARE`: SHARE of the draws fall uniformly on the first FRACTION of the items.
    Hotspot(f64, f64),
    /// `exponential` or `exponential:PERCENTILE,FRACTION`: PERCENTILE % of the draws fall on the first FRACTION of the
    /// items (YCSB: 95, 0.8571428571).
    Exponential(f64, f64),
}

/// How a number becomes bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Big-endian, padded in front with zero bytes; ordered as the numbers are.
    #[default]
    Binary,
    /// Digits, padded in front with `0`.
    Decimal,
    /// Lower-case hexadecimal digits, padded in front with `0`.
    Hex,
    /// `user` and the digits of a 64-bit hash, as YCSB has them, padded; in no order.
    Hashed,
}

/// A size in bytes, or a distribution of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SizeText", into = "SizeText")]
#[schemars(with = "SizeText")]
pub enum SizeSpec {
    /// `100`
    Fixed(u32),
    /// `uniform:250-2500`, both ends included.
    Uniform(u32, u32),
    /// `zipf:1-1024`: small sizes likely, theta 0.99.
    Zipf(u32, u32),
    /// `normal:MEAN,DEVIATION`, cut at 1 and at mean + 4 deviations.
    Normal(f64, f64),
    /// `histogram:100*9,1000*1`: sizes with weights.
    Histogram(Vec<(u32, f64)>),
}

/// In TOML a size may be a number or a text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SizeText {
    /// `100`
    Number(u32),
    /// `"uniform:1-100"`
    Text(String),
}
