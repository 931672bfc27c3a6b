//! The sample outputs of the pages have the form of what their commands print.

use super::command::kvdyno;
use super::commands::present;
use super::page::{TOOLS, text};
use std::collections::BTreeSet;

/// A sample output, and the command above it.
struct Sample {
    words: String,
    lines: Vec<String>,
}

/// The samples of a page.
fn samples(page: &str) -> Vec<Sample> {
    let text = text(page);
    let part = text.split("\n## Output of kvdyno\n").nth(1).unwrap_or_else(|| panic!("{page}: no samples"));
    let part = part.split("\n## ").next().unwrap();
    let mut samples: Vec<Sample> = Vec::new();
    let (mut words, mut is_inside) = (None, false);
    for line in part.lines() {
        match line {
            "```text" => {
                let words = words.clone().unwrap_or_else(|| panic!("{page}: a sample without a command"));
                samples.push(Sample { words, lines: Vec::new() });
                is_inside = true;
            }
            "```" => is_inside = false,
            _ if is_inside => samples.last_mut().unwrap().lines.push(line.to_string()),
            _ => {
                let command = line.split('`').find_map(|span| span.strip_prefix("kvdyno run "));
                words = command.map(String::from).or(words);
            }
        }
    }
    samples
}

/// The engines of a command.
fn engines(words: &str) -> Vec<&str> {
    let mut words = words.split_whitespace().skip_while(|word| *word != "--engines");
    words.nth(1).expect("a sample names its engines").split(',').collect()
}

/// The command at tiny sizes, with these engines.
fn tiny(words: &str, engines: &[&str]) -> String {
    let mut kept = Vec::new();
    let mut rest = words.split_whitespace();
    while let Some(word) = rest.next() {
        let value = match word {
            "--engines" => engines.join(","),
            "--keys" if words.contains("nudb") => "1k,2k".to_string(),
            "--keys" => "2k".to_string(),
            "--ops" => "500".to_string(),
            // Rows of the layout are whole seconds.
            "--seconds" if words.contains("seconds") && words.contains("kvdk") => "2".to_string(),
            "--seconds" => "0.03".to_string(),
            _ => {
                kept.push(word.to_string());
                continue;
            }
        };
        rest.next();
        kept.extend([word.to_string(), value]);
    }
    let more = match kept[0].as_str() {
        "mininb-get" => " --keys 2k --set get.drop_caches_before=false",
        "toku-scan" => " --set cold.drop_caches_before=false",
        "kvdk-mixed" => " --set mixed.warmup_seconds=0.02",
        _ => "",
    };
    let runs = if words.contains("--runs") { "" } else { " --runs 1" };
    format!("run {}{more}{runs} --quiet", kept.join(" "))
}

/// A line with its figures, sizes and engines replaced by signs.
fn form(line: &str, engines: &[&str]) -> String {
    let mut names = engines.to_vec();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let named = names.iter().fold(line.to_string(), |line, name| line.replace(name, "E"));
    let mut signs = String::new();
    let mut letters = named.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_digit() {
            signs.push(letter);
            continue;
        }
        while letters.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
        signs.push('#');
    }
    for unit in ["KiB", "MiB", "GiB"] {
        signs = signs.replace(&format!("#{unit}"), "#B");
    }
    // A percentile of too few ops, and a row of part of a second.
    let signs = signs.replace("n/a", "#").replace("(# ms)", "");
    let is_row = signs.starts_with("| ") && (signs.contains('E') || signs.starts_with("| #"));
    if is_row && !signs.contains("name") && !signs.contains("Rank") {
        return "| row |".to_string();
    }
    // Which rows are whole seconds depends on the machine.
    if signs.starts_with("(averages of") {
        return "(averages of".to_string();
    }
    let mut words: Vec<&str> = signs.split_whitespace().collect();
    words.dedup_by(|word, before| word == before && ["#", "E"].contains(word));
    words.join(" ")
}

fn forms<'a>(lines: impl Iterator<Item = &'a str>, engines: &[&str]) -> BTreeSet<String> {
    lines.map(|line| form(line, engines)).filter(|form| !form.is_empty() && form != "...").collect()
}

/// What a run prints in its layout.
fn printed(words: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "kvdyno {words}\n{}", printed.stderr);
    let ends = ["\nWarnings\n", "\nTrials that failed or are missing\n", "\nFor the complete report"];
    let end = ends.iter().filter_map(|end| printed.stdout.find(end)).min();
    printed.stdout[..end.unwrap_or(printed.stdout.len())].to_string()
}

#[test]
fn the_sample_outputs_of_the_pages_have_the_form_of_real_ones() {
    let here = present();
    let mut wrong = Vec::new();
    for (page, _) in TOOLS {
        for sample in samples(page) {
            let all = engines(&sample.words);
            let own: Vec<&str> = all.iter().copied().filter(|name| here.contains(*name)).collect();
            if own.is_empty() {
                println!("{page}: no engine of `kvdyno run {}` is here", sample.words);
                continue;
            }
            let words = tiny(&sample.words, &own);
            let real = printed(&words);
            let (shown, real) =
                (forms(sample.lines.iter().map(String::as_str), &all), forms(real.lines(), &all));
            // Some lines are about one engine, which may be absent.
            let starts = ["miss=", "* ", "toku-scan: ", "toku-insert: "];
            let is_of_one = |form: &&String| starts.iter().any(|start| form.starts_with(start));
            let stale = shown.difference(&real).filter(|form| own.len() == all.len() || !is_of_one(form));
            wrong.extend(stale.map(|form| format!("{page}: `kvdyno {words}` does not print: {form}")));
            if !sample.lines.iter().any(|line| line == "...") {
                let missing = real.difference(&shown);
                wrong.extend(missing.map(|form| format!("{page}: `kvdyno {words}` also prints: {form}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn figures_sizes_and_engines_are_no_part_of_the_form_of_a_line() {
    let engines = ["tokukv", "tokukv-plain"];
    let form = |line: &str| form(line, &engines);
    assert_eq!(form("File size 31.3MiB, 16KiB on disk"), form("File size 1GiB, 12.1MiB on disk"));
    assert_eq!(form("   10000   0.03   0.05"), form("20000 1.5"));
    assert_eq!(form("toku-insert: tokukv, level none"), form("toku-insert: tokukv-plain, level none"));
    assert_ne!(form("Shutdown  0.03s"), form("Shut down  0.03s"));
    assert_ne!(form("| name | Get op/s |"), form("| tokukv | 12 |"));
}
