//! Suites: several workloads, with their sizes, durability levels and engines, run together.

use super::check::Fault;
use super::list::List;
use super::parse::{Form, Source, finished, stem};
use super::quantity::Count;
use super::{Axes, Changes, Durability, Overrides, Workload, WorkloadError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use toml::de::DeTable;

/// A kvdyno suite: parts that run together, each with workloads, sizes, durability levels and engines.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Suite")]
struct SuiteFile {
    /// The name to type on the command line. Letters, digits, `-`, `_` and `.`. Default: the file's name.
    name: Option<String>,
    /// A description of one line. Default: empty.
    about: Option<String>,
    /// The engines: names, groups or patterns as for `--engines`; those that are not available are reported and skipped.
    /// Default: one engine of each kind.
    engines: Option<List<String>>,
    /// The layouts that its report uses if none is requested. Default: those of its workloads.
    layouts: Option<List<String>>,
    /// Repetitions of each cell. Default: as in its workloads.
    runs: Option<Count<u32>>,
    /// The parts, in order.
    #[serde(rename = "part")]
    parts: Vec<PartFile>,
}

/// Workloads with sizes and durability levels, on some engines.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Part")]
struct PartFile {
    /// Built-in workloads by name, or files (paths relative to the suite's folder). Required.
    workload: Option<List<String>>,
    /// A suffix for the names of its workloads, to distinguish them from those of another part. Default: none.
    variant: Option<String>,
    /// Numbers of keys. Default: as in the workload.
    keys: Option<List<Count<u64>>>,
    /// Requested durability levels. Default: as in the workload.
    durability: Option<List<Durability>>,
    /// Engines of this part. Default: the suite's.
    engines: Option<List<String>>,
    /// Fields of its workloads, as in `--set`. Default: none.
    set: Option<List<String>>,
}

/// The file of a suite.
const SUITE: Form = Form {
    list: "part",
    tables: &[("/properties", "the top of the file"), ("/$defs/Part/properties", "[[part]]")],
    schema: suite_schema,
};

/// Several workloads, run as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// The name to type on the command line.
    pub name: String,
    /// A description of one line.
    pub about: String,
    /// The words that select the engines of parts that have none; none: the default set.
    pub engines: Vec<String>,
    /// The layouts of its report, by name; none: those of its workloads.
    pub layouts: Vec<String>,
    /// Repetitions of each cell; none: as in its workloads.
    pub runs: Option<u32>,
    /// The parts, in order.
    pub parts: Vec<Part>,
    origin: String,
}

/// Workloads with sizes and durability levels, on some engines.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Names, or files.
    pub workloads: Vec<String>,
    /// A suffix for their names.
    pub variant: Option<String>,
    /// Sizes and levels.
    pub axes: Axes,
    /// Engines of this part; none: the suite's.
    pub engines: Vec<String>,
    /// Fields of its workloads.
    pub set: Vec<String>,
    line: usize,
}

/// A workload of a suite, and the words that select its engines; none: the default set.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The workload, with all changes applied.
    pub workload: Workload,
    /// Words that select engines.
    pub engines: Vec<String>,
    /// Flags of the command line that do not apply to it.
    pub missed: Vec<&'static str>,
}

/// Whether a text is a suite and not a workload: it has parts and no phases.
pub fn is_suite(text: &str) -> bool {
    DeTable::parse(text).is_ok_and(|table| {
        let has = |field: &str| table.get_ref().get(field).is_some();
        has("part") && !has("phase")
    })
}

/// Parses a suite; `origin` is its path, for errors and as the default name.
///
/// An error reports the first line that is not valid TOML or not part of a suite. [`Suite::members`] checks that the
/// workloads exist and accept the settings.
pub fn parse_suite(text: &str, origin: &str) -> Result<Suite, WorkloadError> {
    let (source, file) = Source::read::<SuiteFile>(text, origin, &SUITE)?;
    let texts = |list: Option<List<String>>| list.map_or_else(Vec::new, |list| list.0);
    let part = |(place, part): (usize, PartFile)| Part {
        workloads: texts(part.workload),
        variant: part.variant,
        axes: Axes {
            keys: part.keys.map_or_else(Vec::new, |list| list.0.into_iter().map(|count| count.0).collect()),
            durability: part.durability.map_or_else(Vec::new, |list| list.0),
            ..Axes::default()
        },
        engines: texts(part.engines),
        set: texts(part.set),
        line: source.line(place),
    };
    let suite = Suite {
        name: file.name.unwrap_or_else(|| stem(origin).to_string()),
        about: file.about.unwrap_or_default(),
        engines: texts(file.engines),
        layouts: texts(file.layouts),
        runs: file.runs.map(|runs| runs.0),
        parts: file.parts.into_iter().enumerate().map(part).collect(),
        origin: origin.to_string(),
    };
    suite.sound().map_err(|fault| source.error(fault))?;
    Ok(suite)
}

/// The JSON Schema of suites, for editors; `workloads/suite-schema.json` is a copy of it.
pub(super) fn suite_schema() -> Value {
    finished(schemars::schema_for!(SuiteFile).to_value(), &[("", "part"), ("/$defs/Part", "workload")])
}

impl Suite {
    /// Checks the rules of suites; an error is the first fault, with its place.
    fn sound(&self) -> Result<(), Fault> {
        let fault = |phase: Option<usize>, field: &'static str, message: &str| {
            let part = phase.map_or_else(String::new, |place| format!("part {}: ", place + 1));
            Err(Fault { phase, field, message: format!("{part}`{field}`: {message}") })
        };
        if !is_name(&self.name) {
            return fault(None, "name", &format!("expected {NAME}, got {:?}", self.name));
        }
        if self.runs == Some(0) {
            return fault(None, "runs", "expected 1 or more, got 0");
        }
        if self.parts.is_empty() {
            return fault(None, "part", "expected at least one [[part]], got none");
        }
        for (place, part) in self.parts.iter().enumerate() {
            if part.workloads.is_empty() {
                return fault(Some(place), "workload", "expected the name of a workload, got none");
            }
            if let Some(variant) = part.variant.as_ref().filter(|variant| !is_name(variant)) {
                return fault(Some(place), "variant", &format!("expected {NAME}, got {variant:?}"));
            }
            if part.axes.keys.contains(&0) {
                return fault(Some(place), "keys", "expected 1 or more, got 0");
            }
        }
        Ok(())
    }

    /// The workloads of all parts with the changes of the command line applied; `find` returns a workload by its name or
    /// path.
    ///
    /// An error names the line of the part whose workload does not exist or does not accept the part's settings, or the
    /// change that does not apply.
    pub fn members(
        &self,
        find: &dyn Fn(&str) -> Result<Workload, WorkloadError>,
        changes: &Changes,
    ) -> Result<Vec<Member>, WorkloadError> {
        let mut members: Vec<Member> = Vec::new();
        let mut names = HashSet::new();
        for (place, part) in self.parts.iter().enumerate() {
            let wrong = |message: &str| {
                WorkloadError::at_line(&self.origin, part.line, format!("part {}: {message}", place + 1))
            };
            for name in &part.workloads {
                let mut workload = find(name).map_err(|error| wrong(error.message()))?;
                let set = Overrides { set: part.set.clone(), ..Overrides::default() };
                set.apply(&mut workload).map_err(|error| wrong(&format!("`set`, {error}")))?;
                workload.runs = self.runs.unwrap_or(workload.runs);
                if !self.layouts.is_empty() {
                    workload.layouts.clone_from(&self.layouts);
                }
                if let Some(variant) = &part.variant {
                    workload.suffix_name(variant);
                }
                let (fitting, missed) = changes.fitting(&workload);
                for workload in fitting.variants(&workload, &part.axes)? {
                    if !names.insert(workload.name.clone()) {
                        let name = &workload.name;
                        return Err(wrong(&format!(
                            "two workloads have the name `{name}`; add a `variant` to one of the parts"
                        )));
                    }
                    let engines = if part.engines.is_empty() { &self.engines } else { &part.engines };
                    members.push(Member { workload, engines: engines.clone(), missed: missed.clone() });
                }
            }
        }
        Ok(members)
    }
}

const NAME: &str = "letters, digits, `-`, `_` and `.`";

fn is_name(text: &str) -> bool {
    super::check::is_name(text, "-_.")
}

#[cfg(test)]
mod tests;
