//! The texts that users type for encodings and sizes, and what they have in common with those for distributions.

use super::pareto::ParetoShape;
use kvdyno_measure::text::{BYTE_PATTERN, nearest, parse_bytes};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A text in none of the known forms; the message states in one line what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

/// The forms of a size, in the order in which users see them.
pub(super) const SIZES: [&str; 6] = [
    "N",
    "uniform:A-B",
    "zipf:A-B",
    "normal:MEAN,DEVIATION",
    "pareto:K,SIGMA,A-B",
    "histogram:SIZE*WEIGHT,...",
];

/// How a number is converted to bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Encoding {
    /// Big-endian, padded with leading zero bytes; in the order of the numbers.
    #[default]
    Binary,
    /// Digits, padded with leading `0`.
    Decimal,
    /// Lower-case hexadecimal digits, padded with leading `0`.
    Hex,
    /// `user` and the digits of a hash, padded, as in YCSB; in no order.
    Hashed,
    /// Random bytes, at least 8; in no order.
    Random,
}

impl Encoding {
    /// Whether keys have the order of their numbers.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Encoding::Hashed | Encoding::Random)
    }
}

/// A size in bytes, or a distribution of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SizeText", into = "SizeText")]
pub enum SizeSpec {
    /// `100`
    Fixed(u32),
    /// `uniform:250-2500`, both ends included.
    Uniform(u32, u32),
    /// `zipf:1-1024`: small sizes likely, theta 0.99.
    Zipf(u32, u32),
    /// `normal:MEAN,DEVIATION`, truncated at 4 deviations on either side of the mean, and at 1 byte.
    Normal(f64, f64),
    /// `pareto:0.2615,25.45,10-1024`: a generalized Pareto distribution, rounded up, of which only the sizes from 10 to 1024 are drawn.
    Pareto(ParetoShape, u32, u32),
    /// `histogram:100*9,1000*1`: sizes with weights.
    Histogram(Vec<(u32, f64)>),
}

/// In TOML a size may be a number or a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SizeText {
    /// `100`
    Number(u32),
    /// `"uniform:1-100"`
    Text(String),
}

impl FromStr for SizeSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (name, parameters) = split(text);
        match name {
            "uniform" => {
                range(text, parameters).and_then(|(least, most)| SizeSpec::Uniform(least, most).checked())
            }
            "zipf" => range(text, parameters).and_then(|(least, most)| SizeSpec::Zipf(least, most).checked()),
            "normal" => {
                let [mean, deviation] = sized_numbers(text, parameters)?;
                SizeSpec::Normal(mean, deviation).checked()
            }
            "pareto" => pareto(text, parameters).and_then(SizeSpec::checked),
            "histogram" => histogram(text, parameters).and_then(SizeSpec::checked),
            _ if name.starts_with(|first: char| first.is_ascii_digit()) => {
                SizeSpec::Fixed(size(text, text)?).checked()
            }
            _ => Err(unknown("size", name, &SIZES[1..])),
        }
    }
}

impl SizeSpec {
    /// The spec, if every size is in 0 to 4294967295 bytes and the rest is in range; otherwise an error that states
    /// what is not.
    pub fn checked(self) -> Result<Self, SpecError> {
        let wrong = |what: &str| Err(SpecError(format!("size `{self}`: {what}")));
        match &self {
            SizeSpec::Uniform(least, most) | SizeSpec::Zipf(least, most) if least > most => {
                wrong("the smallest must be first, as in `uniform:250-2500`")
            }
            SizeSpec::Normal(mean, deviation)
                if !(*mean >= 1.0 && *deviation >= 0.0 && mean + 4.0 * deviation <= f64::from(u32::MAX)) =>
            {
                wrong("MEAN must be at least 1, DEVIATION at least 0, and MEAN + 4 DEVIATION under 4 GiB")
            }
            SizeSpec::Pareto(_, least, most) if *least < 1 || least > most => {
                wrong("the smallest must be 1 or more, and first, as in `pareto:0.2615,25.45,10-1024`")
            }
            SizeSpec::Pareto(shape, ..) => match shape.checked() {
                Ok(_) => Ok(self),
                Err(error) => wrong(&error.0),
            },
            SizeSpec::Histogram(bars) if bars.is_empty() => wrong("needs at least one SIZE*WEIGHT"),
            SizeSpec::Histogram(bars) if bars.len() > 65_536 => wrong("must have at most 65536 sizes"),
            SizeSpec::Histogram(bars)
                if bars.iter().any(|&(_, weight)| !(weight > 0.0 && weight.is_finite())) =>
            {
                wrong("each weight must be a finite number over 0")
            }
            _ => Ok(self),
        }
    }
}

impl fmt::Display for SizeSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeSpec::Fixed(size) => write!(out, "{size}"),
            SizeSpec::Uniform(least, most) => write!(out, "uniform:{least}-{most}"),
            SizeSpec::Zipf(least, most) => write!(out, "zipf:{least}-{most}"),
            SizeSpec::Normal(mean, deviation) => write!(out, "normal:{mean},{deviation}"),
            SizeSpec::Pareto(shape, least, most) => write!(out, "pareto:{shape},{least}-{most}"),
            SizeSpec::Histogram(bars) => {
                out.write_str("histogram:")?;
                for (place, (size, weight)) in bars.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(out, "{comma}{size}*{weight}")?;
                }
                Ok(())
            }
        }
    }
}

impl TryFrom<SizeText> for SizeSpec {
    type Error = SpecError;

    fn try_from(text: SizeText) -> Result<Self, SpecError> {
        match text {
            SizeText::Number(size) => SizeSpec::Fixed(size).checked(),
            SizeText::Text(text) => text.parse(),
        }
    }
}

impl From<SizeSpec> for SizeText {
    fn from(spec: SizeSpec) -> SizeText {
        match spec {
            SizeSpec::Fixed(size) => SizeText::Number(size),
            other => SizeText::Text(other.to_string()),
        }
    }
}

impl JsonSchema for SizeSpec {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size in bytes: a number, or a text: `4KiB`, `uniform:A-B`, `zipf:A-B` (small ones \
                likely), `normal:MEAN,DEVIATION`, `pareto:K,SIGMA,A-B`, `histogram:SIZE*WEIGHT,...`; k = KiB = 1024, M = MiB, G = GiB.",
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": u32::MAX},
                {"type": "string", "pattern": format!("^({BYTE_PATTERN}|(uniform|zipf):.+-.+|normal:.+,.+|pareto:.+,.+,.+-.+|histogram:.+)$")}
            ],
            "examples": [100, "4KiB", "uniform:250-2500", "zipf:1-1024", "normal:400,50", "pareto:0.2615,25.45,10-1024",
                "histogram:100*9,1000*1"]
        })
    }
}

/// The one-line error for an unknown word, with the closest known name or, if there is none, all of them.
pub(super) fn unknown(kind: &str, word: &str, candidates: &[&str]) -> SpecError {
    SpecError(match nearest(word, candidates) {
        Some(near) => format!("unknown {kind} `{word}`; did you mean `{near}`?"),
        None => format!("unknown {kind} `{word}`; expected one of {}", candidates.join(", ")),
    })
}

/// The name and what follows the first colon.
pub(super) fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((name, parameters)) => (name.trim(), Some(parameters)),
        None => (text, None),
    }
}

/// Numbers separated by commas; `None` if a part is not a number.
pub(super) fn numbers(parameters: Option<&str>) -> Option<Vec<f64>> {
    parameters?.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// The error of a text that does not have the form of its name.
pub(super) fn misshapen(text: &str, form: &str, example: &str) -> SpecError {
    SpecError(format!("`{text}` is not of the form `{form}`; for example `{example}`"))
}

/// Mean and deviation, which may be fractions or have a suffix.
fn sized_numbers(text: &str, parameters: Option<&str>) -> Result<[f64; 2], SpecError> {
    let bytes = |size| parse_bytes(size).ok().map(|bytes| bytes as f64);
    let sizes = || parameters?.split(',').map(bytes).collect::<Option<Vec<f64>>>()?.try_into().ok();
    let plain = numbers(parameters).and_then(|numbers| numbers.try_into().ok());
    plain.or_else(sizes).ok_or_else(|| misshapen(text, "normal:MEAN,DEVIATION", "normal:400,50"))
}

/// One size of `text`.
fn size(text: &str, part: &str) -> Result<u32, SpecError> {
    let bytes = parse_bytes(part).map_err(|error| SpecError(error.to_string()))?;
    u32::try_from(bytes).map_err(|_| SpecError(format!("size `{text}`: must be under 4 GiB")))
}

/// `A-B`.
fn range(text: &str, parameters: Option<&str>) -> Result<(u32, u32), SpecError> {
    let name = split(text).0;
    let form = || misshapen(text, &format!("{name}:A-B"), &format!("{name}:250-2500"));
    let (least, most) = parameters.and_then(|range| range.split_once('-')).ok_or_else(form)?;
    Ok((size(text, least)?, size(text, most)?))
}

/// `K,SIGMA,A-B`.
fn pareto(text: &str, parameters: Option<&str>) -> Result<SizeSpec, SpecError> {
    let form = || misshapen(text, SIZES[4], "pareto:0.2615,25.45,10-1024");
    let (shape, sizes) = parameters.and_then(|all| all.rsplit_once(',')).ok_or_else(form)?;
    let shape: Option<[f64; 2]> = numbers(Some(shape)).and_then(|shape| shape.try_into().ok());
    let [k, sigma] = shape.ok_or_else(form)?;
    let (least, most) = sizes.split_once('-').ok_or_else(form)?;
    Ok(SizeSpec::Pareto(ParetoShape { k, sigma }, size(text, least)?, size(text, most)?))
}

/// `SIZE*WEIGHT,...`; the default weight is 1.
fn histogram(text: &str, parameters: Option<&str>) -> Result<SizeSpec, SpecError> {
    let form = || misshapen(text, "histogram:SIZE*WEIGHT,...", "histogram:100*9,1000*1");
    let bars = parameters.ok_or_else(form)?.split(',').map(|bar| {
        let (bytes, weight) = bar.split_once('*').unwrap_or((bar, "1"));
        Ok((size(text, bytes)?, weight.trim().parse::<f64>().map_err(|_| form())?))
    });
    bars.collect::<Result<Vec<_>, _>>().map(SizeSpec::Histogram)
}
