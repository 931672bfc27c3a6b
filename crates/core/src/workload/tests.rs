//! Tests of the file format: meaning, errors, schema and reference.

mod rounds;

use super::*;
use crate::generator::{Distribution, SizeSpec};

/// The smallest valid workload.
const LEAST: &str = "[[phase]]\nname = \"fill\"\nmix = { put = 1 }\nops = 10\n";

fn workload(text: &str) -> Workload {
    parse(text, "w.toml").unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

fn error(text: &str) -> String {
    match parse(text, "w.toml") {
        Ok(_) => "no error".to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_least_file_means_the_defaults() {
    let least = workload(LEAST);
    assert_eq!((least.name.as_str(), least.about.as_str()), ("w", ""));
    assert_eq!((least.seed, least.runs, least.keys), (1, 5, 1_000_000));
    assert_eq!((least.key, least.value), (KeySpec::default(), ValueSpec::default()));
    assert_eq!(
        (least.durability, least.budget_seconds, least.cache_bytes),
        (Durability::Process, None, None)
    );
    let mix = Mix { put: 1.0, ..Mix::default() };
    assert_eq!(least.phases, [Phase { name: "fill".to_string(), mix, ops: 10, ..Phase::default() }]);
    let phase = Phase::default();
    assert_eq!((phase.threads, phase.join, phase.multi_get_keys, phase.transaction_ops), (1, 1, 10, 10));
    assert_eq!((phase.distribution, phase.scan.rows), (Distribution::Uniform, 100));
}

#[test]
fn phases_inherit_threads_unless_they_set_their_own() {
    let text = "threads = 4\n".to_string()
        + LEAST
        + "[[phase]]\nname = 'b'\nthreads = 2\nmix = { get = 1 }\nops = 1\n";
    let threads: Vec<u32> = workload(&text).phases.iter().map(|phase| phase.threads).collect();
    assert_eq!(threads, [4, 2]);
}

#[test]
fn threads_may_be_counted_in_cpus() {
    let text = "threads = 'cpus'\n".to_string() + LEAST + "readers = 'cpus-1'\nwriters = 2\n";
    let cpus = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    let mut read = workload(&text);
    let of = |workload: &Workload| {
        let phase = &workload.phases[0];
        (phase.threads, phase.readers, phase.writers)
    };
    assert_eq!(of(&read), (cpus, (cpus - 1).max(1), 2));
    assert!(!read.to_toml().contains("cpus"), "records hold numbers");
    let set = vec!["threads=cpus-1".to_string(), "fill.writers=cpus".to_string()];
    Overrides { set, ..Overrides::default() }.apply(&mut read).unwrap();
    assert_eq!(of(&read), ((cpus - 1).max(1), (cpus - 1).max(1), cpus));
}

#[test]
fn units_may_be_written_everywhere() {
    let text = "keys = '200k'\nseed = '18446744073709551615'\ncache_bytes = '64MiB'\nbudget_seconds = '2m'\n\
        [key]\nsize = '1KiB'\n[value]\nsize = 'uniform:64-1024'\n\
        [[phase]]\nname = 'a'\nops = '1.5M'\nseconds = '500ms'\nwarmup_seconds = 0\nvalue_size = '4K'\n[phase.mix]\nput = 1\n";
    let read = workload(text);
    assert_eq!((read.keys, read.seed, read.cache_bytes), (200_000, u64::MAX, Some(64 << 20)));
    assert_eq!((read.budget_seconds, read.key.size), (Some(120.0), SizeSpec::Fixed(1024)));
    assert_eq!(read.value.size, SizeSpec::Uniform(64, 1024));
    assert_eq!((read.phases[0].ops, read.phases[0].seconds), (1_500_000, 0.5));
    assert_eq!(read.phases[0].value_size, Some(SizeSpec::Fixed(4096)));
}

/// Lines before the smallest file or in its phase, and the error.
const BROKEN: &[(&str, &str)] = &[
    ("", "w.toml:1: `phase`: expected at least one [[phase]], got none"),
    ("keys = = 5", "w.toml:1: invalid TOML: "),
    ("# a\nkeys = 5\nkeys = 6", "w.toml:3: invalid TOML: duplicate key"),
    ("\nkesy = 5\n$", "w.toml:2: unknown field `kesy`; did you mean `keys`?"),
    ("frobnicate = 5\n$", "w.toml:1: unknown field `frobnicate`; expected `name`, `about`, "),
    ("seconds = 5\n$", "w.toml:1: unknown field `seconds` here; it belongs to [[phase]], above its tables"),
    ("$mixx = { get = 1 }", "w.toml:5: unknown field `mixx`; did you mean `mix`?"),
    ("$put = 1", "w.toml:5: unknown field `put` here; it belongs to [phase.mix]"),
    (
        "$[phase.scan]\nrows = 5\nmiss = 0.5",
        "w.toml:7: unknown field `miss` here; it belongs to [[phase]], above",
    ),
    ("$[phase.scan]\nrow = 5", "w.toml:6: unknown field `row`; did you mean `rows`?"),
    ("keys = 'many'\n$", "w.toml:1: expected a count such as 200000 or \"200k\", got \"many\""),
    ("keys = -5\n$", "w.toml:1: expected a count such as 200000 or \"200k\", got the number `-5`"),
    ("keys = 1.5\n$", "w.toml:1: expected a count such as 200000 or \"200k\", got the number `1.5`"),
    ("keys = [1]\n$", "w.toml:1: expected a count such as 200000 or \"200k\", got an array"),
    (
        "keys = 0\n$",
        "w.toml:1: `keys`: expected 1 or more for phase `fill`, which puts, merges or processes each key",
    ),
    ("runs = 5000000000\n$", "w.toml:1: expected a count of at most 4294967295, got 5000000000"),
    (
        "budget_seconds = 0\n$",
        "w.toml:1: `budget_seconds`: expected a time over 0 and up to 100000000 seconds, got 0",
    ),
    ("cache_bytes = '64 MBi'\n$", "w.toml:1: unknown unit `MBi`; did you mean `MiB`?"),
    ("name = 'a/b'\n$", "w.toml:1: `name`: expected letters, digits, `-`, `_` and `.`, got \"a/b\""),
    ("durability = 'fsync'\n$", "w.toml:1: expected `none`, `process`, `power` or `default`, got `fsync`"),
    ("durability = 'pwer'\n$", "got `pwer`; did you mean `power`?"),
    ("key = 16\n$", "w.toml:1: expected a table, got the number `16`"),
    ("[key]\nsize = 2\n$", "w.toml:2: `key.size`: expected sizes from 4 B to 64 KiB, got 2 B"),
    (
        "[key]\nsize = 'uniform:64-8'\n$",
        "w.toml:2: size `uniform:64-8`: the smallest must be first, as in `uniform:250-2500`",
    ),
    ("[key]\nsize = 'normal:20,5'\n$", "sizes from 4 B to 64 KiB, got normal:20,5, which goes from 1 to 40"),
    (
        "[key]\nsize = 'histogram:8*0'\n$",
        "w.toml:2: size `histogram:8*0`: each weight must be a finite number over 0",
    ),
    (
        "[key]\nencoding = 'hexx'\n$",
        "w.toml:2: expected `binary`, `decimal`, `hex`, `hashed` or `random`, got `hexx`; did you mean `hex`?",
    ),
    ("[key]\nspacing = 0\n$", "w.toml:2: `key.spacing`: expected 1 or more, got 0"),
    (
        "[key]\nspacing = '9000000G'\n$",
        "w.toml:2: `key.spacing`: expected keys times spacing below 2^64, got",
    ),
    (
        "[key]\nprefix_groups = 5\nprefix_size = 16\n$",
        "w.toml:3: `key.prefix_size`: expected 1 or more and below key.size, 16",
    ),
    (
        "[key]\nfile = 'a'\nsize = 'uniform:8-9'\n$",
        "w.toml:3: `key.size`: expected one size for the keys of a file",
    ),
    ("[key]\nsize = 0\n$", "w.toml:2: `key.size`: expected sizes from 4 B to 64 KiB, got 0 B"),
    (
        "[value]\ncompressed_share = 0\n$",
        "w.toml:2: `value.compressed_share`: expected over 0 and up to 1, got 0",
    ),
    ("$name = 5", "w.toml:5: invalid TOML: duplicate key"),
    ("[[phase]]\nops = 5", "w.toml:1: phase 1: `name`: expected letters, digits, `-` and `_`, got none"),
    (
        "[[phase]]\nname = \"a\\nb\"",
        "w.toml:2: phase `a\\nb`: `name`: expected letters, digits, `-` and `_`, got \"a\\nb\"",
    ),
    (
        "[[phase]]\nname = 'key'",
        "w.toml:2: phase `key`: `name`: expected a name that is not a table of the file format, got \"key\"",
    ),
    (
        "$[[phase]]\nname = 'fill'",
        "w.toml:6: phase `fill`: `name`: expected a unique name, got the name of an earlier phase",
    ),
    ("$distribution = 'zpif:0.9'", "w.toml:5: unknown distribution `zpif`; did you mean `zipf:THETA`?"),
    ("$distribution = 5", "w.toml:5: expected a string in quotes, got the number `5`"),
    ("$distribution = 'zipf:-1'", "w.toml:5: "),
    (
        "$each_key = true",
        "w.toml:1: phase `fill`: `distribution`: expected `sequential` or `permutation` with each_key, got `uniform`",
    ),
    ("$each_key = 1", "w.toml:5: expected true or false, got the number `1`"),
    (
        "$seconds = -1",
        "w.toml:5: expected seconds such as 10 or a duration such as \"500ms\" or \"2m\", got the number `-1`",
    ),
    (
        "$seconds = -0.5",
        "w.toml:5: phase `fill`: `seconds`: expected a time from 0 to 100000000 seconds, got -0.5",
    ),
    (
        "$seconds = 5\nwarmup_seconds = 5",
        "w.toml:6: phase `fill`: `warmup_seconds`: expected less than the phase's 5 seconds, got 5",
    ),
    ("$seconds = '5 sec'", "w.toml:5: unknown unit `sec`; did you mean `s`?"),
    (
        "threads = 'cpus-one'\n$",
        "w.toml:1: expected threads such as 4, \"cpus\" or \"cpus-1\", got \"cpus-one\"",
    ),
    ("threads = -1\n$", "w.toml:1: expected threads such as 4, \"cpus\" or \"cpus-1\", got the number `-1`"),
    (
        "threads = 1.5\n$",
        "w.toml:1: expected threads such as 4, \"cpus\" or \"cpus-1\", got the number `1.5`",
    ),
    ("$readers = [1]", "w.toml:5: expected threads such as 4, \"cpus\" or \"cpus-1\", got an array"),
    ("layouts = 5\n$", "w.toml:1: expected a string in quotes, got the number `5`"),
    ("$join = 0", "w.toml:5: phase `fill`: `join`: expected 1 to 65536, got 0"),
    ("$multi_get_keys = 0", "w.toml:5: phase `fill`: `multi_get_keys`: expected 1 to 65536, got 0"),
    ("$transaction_ops = 0", "w.toml:5: phase `fill`: `transaction_ops`: expected 1 to 65536, got 0"),
    (
        "$threads = 0",
        "w.toml:5: phase `fill`: `threads`: expected 1 to 4096 threads, readers and writers together, got 0",
    ),
    ("$threads = 0\nwriters = 1", "w.toml:5: phase `fill`: `threads`: expected 1 or more for the mix, got 0"),
    ("$existing = 2", "w.toml:5: phase `fill`: `existing`: expected a share from 0 to 1, got 2"),
    (
        "$miss = 0.5",
        "w.toml:5: phase `fill`: `miss`: expected get or multi_get in the mix, or readers, if miss is over 0, got none",
    ),
    (
        "[key]\nspacing = 1\n$miss = 0.5\nreaders = 1",
        "w.toml:7: phase `fill`: `miss`: expected key.spacing of 2 or more, because misses use the numbers in the gaps, got 1",
    ),
    (
        "[key]\nfile = 'a'\n$miss = 0.5\nreaders = 1",
        "w.toml:7: phase `fill`: `miss`: expected 0 with a key file",
    ),
    (
        "$scan = { prefix = true }",
        "w.toml:5: phase `fill`: `scan.prefix`: expected key.prefix_groups over 0 for scans of a prefix, got 0",
    ),
    (
        "$scan = { rows = 0, uniform_rows = true }",
        "w.toml:5: phase `fill`: `scan.rows`: expected 1 or more with uniform_rows, got 0",
    ),
    (
        "$scan = { rows = 0, pareto_rows = '2,5' }",
        "w.toml:5: phase `fill`: `scan.rows`: expected 1 or more with pareto_rows, got 0",
    ),
    (
        "$scan = { uniform_rows = true, pareto_rows = '2,5' }",
        "w.toml:5: phase `fill`: `scan.uniform_rows`: expected false with pareto_rows, got true",
    ),
    ("$scan = { pareto_rows = '-2,5' }", "w.toml:5: K of a Pareto distribution must be 0 to 10, got -2"),
    (
        "$value_size = '2G'",
        "w.toml:5: phase `fill`: `value_size`: expected sizes from 0 B to 1 GiB, got 2 GiB",
    ),
    (
        "[[phase]]\nname = 'a'\nops = 1",
        "w.toml:1: phase `a`: `mix`: expected a share over 0 such as mix = { get = 1 }",
    ),
    (
        "[[phase]]\nname = 'a'\nmix = 'get'",
        "w.toml:3: expected a table of shares such as { get = 0.9, put = 0.1 }, got the string \"get\"",
    ),
    (
        "[[phase]]\nname = 'a'\nmix = { put = -1 }",
        "w.toml:1: phase `a`: `put`: expected a share of 0 or more, got -1",
    ),
    (
        "# a\n\n[[phase]]\nname = 'a'\nmix = { put = 1 }",
        "w.toml:3: phase `a`: expected an end (ops, seconds or each_key = true), got none",
    ),
    (
        "[[phase]]\nname = 'a'\nmix = { get = 1 }\nops = 1",
        "w.toml:3: phase `a`: `mix`: expected a phase that fills the database before this one, got an empty database",
    ),
    ("keyspaces = 0\n$", "w.toml:1: `keyspaces`: expected 1 to 4096, got 0"),
    (
        "memory_bytes = '1MiB'\n$",
        "w.toml:1: `memory_bytes`: expected 16 MiB or more, because the harness counts too, got 1 MiB",
    ),
    ("keys = 5\nkeyspaces = 6\n$", "w.toml:2: `keyspaces`: expected no more than 5 keys, got 6"),
    ("indexes = 5\n$", "w.toml:1: expected "),
    ("indexes = [{ form = 24 }]\n$", "w.toml:1: unknown field `form`; did you mean `from`?"),
    (
        "indexes = [{ from = 24, length = 80 }]\n$",
        "w.toml:1: `indexes`: expected bytes that every value has (the smallest value has 100), got 80 from byte 24 on",
    ),
    ("indexes = [{ length = 0 }]\n$", "w.toml:1: `indexes`: expected a length of 1 or more, got 0"),
    ("indexes = [{}, {}, {}, {}, {}, {}, {}, {}, {}]\n$", "w.toml:1: `indexes`: expected up to 8, got 9"),
    (
        "indexes = [{}]\n$",
        "w.toml:4: phase `fill`: `mix`: expected insert_indexed and reads only, because rows with indexes are written \
         once, got put",
    ),
    (
        "[[phase]]\nname = 'a'\nmix = { insert_indexed = 1 }\nops = 1",
        "w.toml:3: phase `a`: `mix`: expected indexes = [{ from = 24, length = 8 }] at the top of the file",
    ),
    (
        "indexes = [{}]\n[[phase]]\nname = 'a'\nmix = { insert_indexed = 1 }\nops = 1\nwriters = 1",
        "w.toml:6: phase `a`: `writers`: expected 0 with indexes, because their rows are written once, got 1",
    ),
    (
        "indexes = [{}]\n[[phase]]\nname = 'a'\nmix = { insert_indexed = 1 }\nops = 1\nvalue_size = 50",
        "w.toml:6: phase `a`: `value_size`: expected the workload's value.size with indexes, got 50",
    ),
    (
        "indexes = [{}]\n[[phase]]\nname = 'a'\nmix = { insert_indexed = 1, scan = 1 }\nops = 1\nscan = { index = 2 }",
        "w.toml:6: phase `a`: `scan.index`: expected 0 to 1, the number of indexes, got 2",
    ),
    (
        "$scan = { index = 1 }",
        "w.toml:5: phase `fill`: `scan.index`: expected 0 to 0, the number of indexes, got 1",
    ),
    ("indexes = [{}]\n[key]\nfile = 'a'\n$", "w.toml:1: `indexes`: expected none with a key file, got 1"),
    ("phase = 5", "w.toml:1: expected tables written as [[phase]], got the number `5`"),
];

#[test]
fn errors_are_one_line_with_place_and_reason() {
    let mut failures = String::new();
    for (text, expected) in BROKEN {
        let text = text.replace('$', LEAST);
        let got = error(&text);
        if !got.contains(expected) || got.contains('\n') || !got.starts_with("w.toml:") {
            failures += &format!("for\n{text}\nexpected {expected}\ngot    {got}\n\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn indexes_have_defaults_and_may_be_set() {
    let text = "keyspaces = 3\nindexes = [{}, { from = 32, length = 4, clustering = true }]\n\
        [[phase]]\nname = 'a'\nmix = { insert_indexed = 1 }\nops = 5\n\
        [[phase]]\nname = 'b'\nmix = { scan = 1 }\nscan = { index = 2 }\nops = 5\n";
    let mut read = workload(text);
    let second = Index { from: 32, length: 4, clustering: true };
    assert_eq!((read.keyspaces, &read.indexes), (3, &vec![Index::default(), second]));
    assert_eq!((read.phases[0].mix.insert_indexed, read.phases[1].scan.index), (1.0, 2));
    assert_eq!(parse(&read.to_toml(), "w.toml").unwrap(), read);
    let set = vec!["indexes=[{from=40,length=2}]".to_string(), "b.scan.index=1".to_string()];
    Overrides { set, ..Overrides::default() }.apply(&mut read).unwrap();
    assert_eq!(read.indexes, [Index { from: 40, length: 2, clustering: false }]);
}

#[test]
fn old_records_without_keyspaces_still_load() {
    let mut json = serde_json::to_value(workload(LEAST)).unwrap();
    let fields = json.as_object_mut().unwrap();
    assert!(fields.remove("keyspaces").is_some() && fields.remove("indexes").is_some());
    let phase = fields["phases"][0].as_object_mut().unwrap();
    assert!(phase["scan"].as_object_mut().unwrap().remove("index").is_some());
    assert!(phase["mix"].as_object_mut().unwrap().remove("insert_indexed").is_some());
    assert_eq!(serde_json::from_value::<Workload>(json).unwrap(), workload(LEAST));
}

#[test]
fn a_checked_workload_names_itself() {
    let mut broken = workload(LEAST);
    broken.phases[0].ops = 0;
    let got = broken.check().unwrap_err();
    let expected = "workload w: phase `fill`: expected an end (ops, seconds or each_key = true), got none";
    assert_eq!((got.to_string().as_str(), got.line), (expected, None));
}

#[test]
fn durability_levels_read_and_print_alike() {
    for level in [Durability::None, Durability::Process, Durability::Power, Durability::Default] {
        assert_eq!(level.to_string().parse::<Durability>().unwrap(), level);
        assert_eq!(serde_json::to_value(level).unwrap(), level.to_string());
    }
    let error = "powre".parse::<Durability>().unwrap_err().to_string();
    assert_eq!(
        error,
        "durability: expected `none`, `process`, `power` or `default`, got `powre`; did you mean `power`?"
    );
}

fn schema_path() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/schema.json")
}

#[test]
fn the_schema_file_is_fresh() {
    let fresh = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(schema_path(), &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(schema_path()).unwrap();
    assert!(kept == fresh, "workloads/schema.json is stale; run the tests with UPDATE=1");
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    for (name, _) in builtin_names() {
        for text in [builtin_text(name).unwrap().to_string(), builtin(name).unwrap().to_toml()] {
            let errors: Vec<String> =
                validator.iter_errors(&json(&text)).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
        }
    }
    for wrong in [
        "kesy = 5",
        "keys = 'many'",
        "keys = -1",
        "[[phase]]\nmixx = 1",
        "[[phase]]\nops = 1",
        "durability = 'x'",
    ] {
        assert!(!validator.is_valid(&json(wrong)), "{wrong}");
    }
}

/// Names of the fields in one table of the schema.
fn fields(schema: &serde_json::Value, pointer: &str) -> Vec<String> {
    schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_reference_names_every_field_and_every_workload() {
    let reference = include_str!("../../../../docs/workloads.md");
    let schema = schema();
    for table in [
        "/properties",
        "/$defs/Phase/properties",
        "/$defs/Mix/properties",
        "/$defs/Scan/properties",
        "/$defs/Index/properties",
    ] {
        for field in fields(&schema, table) {
            assert!(
                reference.contains(&format!("`{field}`")),
                "docs/workloads.md lacks `{field}` of {table}"
            );
        }
    }
    for (table, prefix) in [
        ("/$defs/Key/properties", "key"),
        ("/$defs/Value/properties", "value"),
        ("/$defs/Collections/properties", "collections"),
    ] {
        for field in fields(&schema, table) {
            assert!(
                reference.contains(&format!("`{prefix}.{field}`")),
                "docs/workloads.md lacks `{prefix}.{field}`"
            );
        }
    }
    for (name, _) in builtin_names() {
        assert!(reference.contains(&format!("`{name}`")), "docs/workloads.md lacks {name}");
    }
}

#[test]
fn the_examples_of_the_reference_are_workloads() {
    let reference = include_str!("../../../../docs/workloads.md");
    let examples: Vec<&str> =
        reference.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        if is_suite(example) {
            let suite = parse_suite(example, "s.toml").unwrap_or_else(|error| panic!("{error}"));
            assert!(suite.members(&builtin, &Changes::default()).is_ok());
        } else {
            workload(example);
        }
    }
}

#[test]
fn every_built_in_workload_reads_back_equal() {
    for (name, _) in builtin_names() {
        let workload = builtin(name).unwrap();
        assert_eq!(parse(&workload.to_toml(), "other.toml").unwrap(), workload, "{name}");
    }
}
