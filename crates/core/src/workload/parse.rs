//! Reads workloads from TOML, with the line of each error, and writes them as TOML.

use super::Workload;
use super::check::Fault;
use super::file::WorkloadFile;
use kvdyno_measure::text::{listed, nearest};
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a workload, in one line: the file and line or the text of the command line, what was expected, what was
/// found instead, and the nearest name for a mistyped one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    origin: String,
    pub(super) line: Option<usize>,
    message: String,
}

impl WorkloadError {
    /// An error without a line in `origin` (a path, or the text of the command line; empty: the message includes it).
    pub fn new(origin: &str, message: impl Into<String>) -> Self {
        WorkloadError { origin: origin.to_string(), line: None, message: message.into() }
    }

    /// An error in a line of a file, counted from 1.
    pub(super) fn at_line(origin: &str, line: usize, message: impl Into<String>) -> Self {
        WorkloadError { line: Some(line), ..WorkloadError::new(origin, message) }
    }

    /// The error with its place as part of the message, for callers that add another place.
    pub fn with_place(self) -> Self {
        WorkloadError::new("", self.to_string())
    }

    /// The message without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "{}:{line}: {}", self.origin, self.message),
            None if self.origin.is_empty() => out.write_str(&self.message),
            None => write!(out, "{}: {}", self.origin, self.message),
        }
    }
}

impl std::error::Error for WorkloadError {}

/// The properties of a kind of file: its list of tables, and the tables that have fields.
pub(super) struct Form {
    /// `phase`, written `[[phase]]`.
    pub list: &'static str,
    /// The path in the schema of the fields of each table, and the table's name in messages.
    pub tables: &'static [(&'static str, &'static str)],
    /// Its schema.
    pub schema: fn() -> Value,
}

/// The file of a workload.
pub(super) const WORKLOAD: Form = Form {
    list: "phase",
    tables: &[
        ("/properties", "the top of the file"),
        ("/$defs/Phase/properties", "[[phase]], above its tables"),
        ("/$defs/Mix/properties", "[phase.mix]"),
        ("/$defs/Scan/properties", "[phase.scan]"),
        ("/$defs/Key/properties", "[key]"),
        ("/$defs/Value/properties", "[value]"),
        ("/$defs/Index/properties", "a table of indexes"),
        ("/$defs/Collections/properties", "[collections]"),
        ("/$defs/Fault/properties", "[[fault]]"),
    ],
    schema,
};

/// A parsed text, with the information needed to find the line of a fault.
pub(super) struct Source<'t> {
    text: &'t str,
    origin: &'t str,
    list: &'static str,
    table: Spanned<DeTable<'t>>,
}

impl<'t> Source<'t> {
    /// Parses a text. An error reports the first line that is not valid TOML or does not fit the form.
    pub(super) fn read<File: serde::de::DeserializeOwned>(
        text: &'t str,
        origin: &'t str,
        form: &Form,
    ) -> Result<(Source<'t>, File), WorkloadError> {
        let at = |span: Option<Range<usize>>, message: String| WorkloadError {
            origin: origin.to_string(),
            line: span.map(|span| line_of(text, span.start)),
            message,
        };
        let table = DeTable::parse(text)
            .map_err(|error| at(error.span(), format!("invalid TOML: {}", one_line(error.message()))))?;
        let file = toml::from_str(text).map_err(|error| at(error.span(), explain(error.message(), form)))?;
        Ok((Source { text, origin, list: form.list, table }, file))
    }

    /// The fault with its line.
    pub(super) fn error(&self, fault: Fault) -> WorkloadError {
        let start = place(self.table.get_ref(), self.list, &fault).map_or(0, |span| span.start);
        WorkloadError::at_line(self.origin, line_of(self.text, start), fault.message)
    }

    /// The line of a table of the list, counted from 1.
    pub(super) fn line(&self, index: usize) -> usize {
        let fault = Fault { phase: Some(index), field: "", message: String::new() };
        self.error(fault).line.unwrap_or(1)
    }
}

/// Parses a workload; `origin` is its path, for errors and as the default name.
///
/// An error reports the first line that is not valid TOML, not part of a workload, or breaks a rule.
pub fn parse(text: &str, origin: &str) -> Result<Workload, WorkloadError> {
    let (source, file) = Source::read::<WorkloadFile>(text, origin, &WORKLOAD)?;
    let workload = file.into_workload(stem(origin));
    workload.sound().map_err(|fault| source.error(fault))?;
    match workload.idle().into_iter().next() {
        Some(fault) => Err(source.error(fault)),
        None => Ok(workload),
    }
}

/// The JSON Schema of the file format, for editors; `workloads/schema.json` is a copy of it.
pub fn schema() -> Value {
    finished(schemars::schema_for!(WorkloadFile).to_value(), &[("", "phase"), ("/$defs/Phase", "name")])
}

/// A schema without the types that TOML lacks, and with the required fields.
pub(super) fn finished(mut schema: Value, all_required: &[(&str, &str)]) -> Value {
    without_null(&mut schema);
    for (table, required) in all_required {
        if let Some(table) = schema.pointer_mut(table).and_then(Value::as_object_mut) {
            table.insert("required".to_string(), Value::from(vec![*required]));
        }
    }
    schema
}

impl Workload {
    /// The workload as an equivalent file, without the fields of phases that have their default.
    pub fn to_toml(&self) -> String {
        toml::to_string(&WorkloadFile::of(self)).expect("every field of a workload has a form in TOML")
    }
}

/// Removes null from a schema: TOML has no null, so editors should not suggest it.
fn without_null(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| !(name == "default" && (field.is_null() || is_empty(field))));
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_string(), only);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type") != Some(&Value::from("null")));
                if let [only] = choices.as_slice() {
                    let only = only.clone();
                    fields.remove("anyOf");
                    if let Value::Object(only) = only {
                        fields.extend(only);
                    }
                }
            }
            fields.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// The name of a file without folder and extension.
pub(super) fn stem(origin: &str) -> &str {
    std::path::Path::new(origin).file_stem().and_then(|stem| stem.to_str()).unwrap_or("workload")
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The place of a fault in the text: the field, or its nearest parent; none if the text has neither.
fn place(table: &DeTable<'_>, list: &str, fault: &Fault) -> Option<Range<usize>> {
    let mut found = None;
    let mut table = Some(table);
    if let Some(index) = fault.phase {
        let phase = table?.get(list)?.get_ref().as_array()?.get(index)?;
        found = Some(phase.span());
        table = phase.get_ref().as_table();
    }
    for name in fault.field.split('.') {
        let Some(field) = table.and_then(|table| table.get(name)) else { break };
        found = Some(field.span());
        table = match field.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    found
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Converts a message of the deserializer to ours: what was expected, what was found, and the nearest name.
pub(super) fn explain(message: &str, form: &Form) -> String {
    let message = one_line(message);
    for kind in ["field", "variant"] {
        let Some(rest) = message.strip_prefix(&format!("unknown {kind} ")) else { continue };
        let names: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let [typed, known @ ..] = names.as_slice() else { continue };
        return unknown(kind, typed, known, form);
    }
    for kind in ["invalid type: ", "invalid value: "] {
        let parts = message.strip_prefix(kind).and_then(|rest| rest.rsplit_once(", expected "));
        if let Some((got, expected)) = parts {
            return format!("expected {}, got {}", plain_expected(expected, form), plain_got(got));
        }
    }
    message
}

fn unknown(kind: &str, typed: &str, known: &[&str], form: &Form) -> String {
    let near = nearest(typed, known);
    if kind == "variant" {
        let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        return format!("expected {}, got `{typed}`{hint}", quoted(known));
    }
    // A field right after `[phase.mix]` belongs to the mix, which is the most common mistake in TOML.
    match (home(typed, form), near) {
        (Some(home), _) => format!("unknown field `{typed}` here; it belongs to {home}"),
        (None, Some(name)) => format!("unknown field `{typed}`; did you mean `{name}`?"),
        (None, None) => format!("unknown field `{typed}`; expected {}", quoted(known)),
    }
}

/// The tables that have a field of this name, as they are written in files.
fn home(field: &str, form: &Form) -> Option<String> {
    let schema = (form.schema)();
    let has = |pointer: &str| schema.pointer(pointer).is_some_and(|fields| fields.get(field).is_some());
    let homes: Vec<&str> =
        form.tables.iter().filter(|(pointer, _)| has(pointer)).map(|(_, home)| *home).collect();
    if homes.is_empty() { None } else { Some(homes.join(" or ")) }
}

/// Names in backquotes: "`a`, `b` or `c`".
fn quoted(names: &[&str]) -> String {
    listed(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>(), "or")
}

fn plain_expected(expected: &str, form: &Form) -> String {
    match expected {
        "f64" => "a number".to_string(),
        "a boolean" => "true or false".to_string(),
        "a string" => "a string in quotes".to_string(),
        "a sequence" => format!("tables written as [[{}]]", form.list),
        other => other.to_string(),
    }
}

/// Replaces Rust's names of types by TOML's.
fn plain_got(got: &str) -> String {
    const WORDS: &[(&str, &str)] = &[
        ("string ", "the string "),
        ("floating point ", "the number "),
        ("integer ", "the number "),
        ("boolean ", ""),
        ("sequence", "an array"),
        ("map", "a table"),
    ];
    let word = WORDS.iter().find_map(|(word, plain)| got.strip_prefix(word).map(|rest| (plain, rest)));
    word.map_or_else(|| got.to_string(), |(plain, rest)| format!("{plain}{rest}"))
}
