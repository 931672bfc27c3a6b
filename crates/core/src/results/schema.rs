//! The JSON schema of results, for other programs; `docs/record-schema.json` is generated from it.

use super::{Record, Run};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema: `Record` (a `record.json`) at its root, and `Run` (a `run.json`) among its definitions.
pub(super) fn schema() -> Value {
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
mod tests {
    use super::schema;
    use crate::results::store::RunFolder;
    use crate::results::{fixture, sane_record};
    use serde_json::Value;
    use std::path::{Path, PathBuf};

    fn published() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/record-schema.json")
    }

    /// The schema with one definition at its root, to validate a text against that definition only.
    fn validator(definition: &str) -> jsonschema::Validator {
        let mut schema = schema();
        let fields = schema.as_object_mut().unwrap();
        fields.remove("anyOf");
        fields.insert("$ref".to_string(), Value::String(format!("#/$defs/{definition}")));
        jsonschema::validator_for(&schema).unwrap()
    }

    #[test]
    fn the_published_schema_is_fresh() {
        let fresh = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(published(), &fresh).unwrap();
        }
        let kept = std::fs::read_to_string(published()).unwrap_or_default();
        assert!(kept == fresh, "docs/record-schema.json is stale: run the tests with UPDATE=1 and commit it");
    }

    #[test]
    fn the_first_schema_still_loads() {
        let folder = RunFolder::open(&fixture::folder()).unwrap();
        assert_eq!(folder.warnings(), &[] as &[String]);
        assert_eq!(folder.run().plan.trials.len(), 21);
        let records = folder.finished().unwrap();
        assert_eq!(records.len(), 20);
        for record in &records {
            assert_eq!(sane_record(record), Vec::<String>::new(), "trial {}", record.trial.id);
        }
    }

    #[test]
    fn the_fixture_loads_as_it_was_written() {
        let folder = RunFolder::open(&fixture::folder()).unwrap();
        assert_eq!(folder.run().plan.trials, fixture::run().plan.trials);
        let pairs = folder.finished().unwrap().into_iter().zip(fixture::records());
        for (kept, written) in pairs {
            assert!(kept == written, "trial {} changed", written.trial.id);
        }
    }

    #[test]
    fn the_fixture_matches_the_schema_and_a_damaged_one_does_not() {
        let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
        let run = read(&fixture::folder().join("run.json"));
        let errors: Vec<String> = validator("Run").iter_errors(&run).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        let of_records = validator("Record");
        let trials = std::fs::read_dir(fixture::folder().join("trials")).unwrap();
        let mut seen = 0;
        for trial in trials {
            let mut record = read(&trial.unwrap().path().join("record.json"));
            let errors: Vec<String> =
                of_records.iter_errors(&record).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new());
            record["phases"] = Value::String("none".to_string());
            assert!(!of_records.is_valid(&record));
            seen += 1;
        }
        assert_eq!(seen, 20);
    }
}
