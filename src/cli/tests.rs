//! Random command lines: each is parsed and planned, or refused with a message, and none panics.

mod printed;

use super::{Command, Parsed, definition, parsed, request};
use kvdyno_core::generator::Random;

/// Valid and invalid values for flags.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "2",
    "7.5",
    "1e-300",
    "1e308",
    "NaN",
    "inf",
    "-inf",
    "18446744073709551615",
    "18446744073709551616",
    "1000000000000000",
    "9007199254740993",
    "4294967296",
    "1G",
    "64MiB",
    "1000TiB",
    "1h",
    "0.0000001ns",
    "uniform:1-4294967295",
    "uniform:9-1",
    "normal:1,1e300",
    "zipf:1-0",
    "histogram:1*0",
    "histogram:",
    "=",
    ".=.",
    "read.seconds=1e300",
    "read.threads=0",
    "keys=18446744073709551615",
    "key.size=4",
    "key.spacing=0",
    "key.spacing=18446744073709551615",
    "read.ops=1000000000000000",
    "fill.join=65536",
    "rounds=10000",
    "keyspaces=4096",
    "value.size=1GiB",
    "mix.mix={}",
    "read.mix={ get = nan }",
    "key.file=/dev/zero",
    "a.b.c.d=1",
    "cpus",
    "cpus-99999999",
    "power",
    "none,none",
    "0-4294967295",
    "1,,2",
    ",",
    "quick",
    "ycsb-a",
    "mininb-suite",
    "/dev/zero",
    "..",
    "memory-btree",
    "memory-btree.log=on",
    "json",
    "bash",
    "c",
    "127.0.0.1",
    "65536",
];

/// Appends random flags of a command, with random values if they take one.
fn words(command: &clap::Command, random: &mut Random, words: &mut Vec<String>) {
    let mut pick = |count: usize| random.below(count as u64) as usize;
    let args: Vec<&clap::Arg> = command.get_arguments().collect();
    let count = if args.is_empty() { 0 } else { pick(5) };
    for _ in 0..count {
        let arg = args[pick(args.len())];
        let value = VALUES[pick(VALUES.len())];
        match (arg.get_long(), arg.get_action().takes_values()) {
            (Some(flag), true) => words.push(format!("--{flag}={value}")),
            (Some(flag), false) => words.push(format!("--{flag}")),
            (None, _) => words.push(value.into()),
        }
    }
    let below: Vec<&clap::Command> = command.get_subcommands().collect();
    if !below.is_empty() {
        let next = below[pick(below.len())];
        words.push(next.get_name().into());
        self::words(next, random, words);
    }
}

#[test]
fn random_flags_with_hostile_values_are_planned_or_refused_and_never_panic() {
    let mut definition = definition();
    definition.build();
    let (mut planned, mut refused) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random::seeded(seed);
        let mut all = vec!["kvdyno".to_string()];
        if seed % 2 == 0 {
            all.extend(["run".into(), "quick".into()]);
            let run = definition.find_subcommand("run").expect("it is a command");
            words(run, &mut random, &mut all);
        } else {
            words(&definition, &mut random, &mut all);
        }
        // A panic fails the test. This prints the words that reproduce it.
        std::println!("{all:?}");
        match parsed(&all) {
            Ok(Parsed { command: Command::Run(args), words, .. }) => match request::members(&args) {
                Ok((members, _)) => {
                    planned += 1;
                    let again = parsed(&words).unwrap_or_else(|error| panic!("{all:?}: {error}"));
                    assert_eq!(again.words, words, "the recorded command repeats the run");
                    for member in members {
                        kvdyno_core::runner::memory_estimate_bytes(&member.workload);
                        member.workload.clone().shrink_to(0.001);
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty(), "{all:?}");
                }
            },
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty(), "{all:?}"),
        }
    }
    assert!(planned > 20 && refused > 10, "{planned} planned, {refused} refused");
}

#[test]
fn the_recorded_command_names_a_file_without_its_folder_unless_choose_has_written_it() {
    for (given, recorded) in [
        ("mine.toml", "mine.toml"),
        ("customers/acme/mine.toml", "mine.toml"),
        ("/srv/customers/mine.toml", "mine.toml"),
        ("/srv/customers/kvdyno-results/mine.toml", "mine.toml"),
        ("kvdyno-results/choose-power.toml", "kvdyno-results/choose-power.toml"),
    ] {
        let parsed = parsed(["kvdyno", "run", given, "--runs", "5"]).unwrap();
        assert_eq!(parsed.words, ["kvdyno", "run", recorded, "--runs", "5"], "{given}");
    }
}
