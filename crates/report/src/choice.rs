//! The section on the choice of an engine, of a run of `kvdyno choose`.

use super::block::Block;
use super::verdict::recommendation;
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::text::{Align, Table, plain_text};

/// The recommendation, the needs, and what was decided before anything was measured. Empty: the run has no choice.
pub(super) fn blocks(summary: &Summary, run: &Run) -> Vec<Block> {
    let Some(choice) = &run.choice else { return Vec::new() };
    let mut blocks =
        vec![Block::Part("Choice of an engine".to_string()), Block::Lines(recommendation(summary, run))];
    let table = |titles: [&str; 2], rows: Vec<[String; 2]>| {
        let mut table = Table::with_titles(&titles.map(|title| (title, Align::Left)));
        rows.into_iter().for_each(|row| table.push(row.map(|cell| plain_text(&cell)).to_vec()));
        Block::Table(table)
    };
    blocks.push(Block::Section("What the application needs".to_string()));
    let needs = choice.needs.iter().map(|(name, answer)| [name.clone(), answer.clone()]);
    blocks.push(table(["need", "answer"], needs.collect()));
    if !choice.ruled_out.is_empty() {
        blocks.push(Block::Section("Ruled out before the measurement".to_string()));
        let rows = choice.ruled_out.iter().map(|out| [out.reason.clone(), out.engines.join(", ")]);
        blocks.push(table(["reason", "engines"], rows.collect()));
    }
    let lists = [
        ("What was measured instead of the application", &choice.size),
        ("What the measurement does not show", &choice.not_shown),
        ("Engines that fit and were not measured", &choice.others),
    ];
    for (title, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        blocks.push(Block::Section(title.to_string()));
        blocks.push(Block::Lines(lines.iter().map(|line| plain_text(line)).collect()));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture;
    use kvdyno_core::results::{Choice, RuledOut};

    /// The fixture's requests did not arrive at a rate, so no engine is recommended for one.
    const NOT_AT_RATE: &str = "its requests did not arrive at the rate";

    #[test]
    fn text_markdown_and_page_show_the_choice_and_other_runs_have_none() {
        let (run, records) = (fixture::run(), fixture::records());
        let choice = Choice {
            needs: vec![("durability".into(), "power".into())],
            ruled_out: vec![RuledOut {
                reason: "no transactions".into(),
                flag: "--transactions".into(),
                engines: vec!["pogreb".into(), "sniper".into()],
            }],
            size: vec!["64 MiB of data are measured instead of 200 GB".into()],
            rate: Some("poisson:2k".into()),
            limits: Some("p99<1ms".into()),
            ..Choice::default()
        };
        let chosen = Run { choice: Some(choice), ..run.clone() };
        for name in ["text", "markdown", "html"] {
            let render = crate::format(name).unwrap().render;
            let with = render(&Summary::new(&chosen, records.clone()), &chosen);
            let without = render(&Summary::new(&run, records.clone()), &run);
            // As in a folder: what the command has printed is printed again.
            let loaded: Run = serde_json::from_str(&serde_json::to_string(&chosen).unwrap()).unwrap();
            assert_eq!(with, render(&Summary::new(&loaded, records.clone()), &loaded), "{name}");
            for words in [
                "Choice of an engine",
                "no transactions",
                "pogreb, sniper",
                "64 MiB of data are measured",
                NOT_AT_RATE,
            ] {
                assert!(with.contains(words), "{name}: {words}\n{with}");
            }
            assert!(!without.contains("Choice of an engine"), "{name}");
        }
    }
}
