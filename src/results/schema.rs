//! The JSON schema of results, for other programs; `docs/record-schema.json` is generated from it.

use super::{Record, Run};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema: `Record` (a `record.json`) at its root, and `Run` (a `run.json`) among its definitions.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let record = generator.subschema_for::<Record>();
    let run = generator.subschema_for::<Run>();
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of a kvdyno run",
        "description": "Generated from src/results. A record.json is a Record, a run.json is a Run; the values of fields that are null or absent are unknown.",
        "anyOf": [record, run],
        "$defs": definitions,
    })
}

#[cfg(test)]
mod tests;
