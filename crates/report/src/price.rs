//! The table of what a million ops cost, if the user has given prices.

use super::block::Block;
use super::describe::{cell_name, phase_name};
use super::figure::{known, price};
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_measure::text::{Align, Table};

/// How to read the table.
const LEGEND: &str = "Prices are those of the file that was given, and no part of the results. An hour: one machine if the \
    engine, or all of its servers, ran on the machine of the load; otherwise each server and each load generator. A million \
    ops: that by the median of ops/s, with the interval of that median. -: a price, the rate or the number of servers is \
    unknown. Nothing else is included: no disks, no traffic, no licence, no idle time.";

/// The table and its legend; empty without prices.
pub(super) fn blocks(summary: &Summary) -> Vec<Block> {
    let Some(prices) = &summary.prices else { return Vec::new() };
    let currency = &prices.currency;
    let (hour, million) = (format!("{currency}/hour"), format!("{currency}/Mops"));
    let mut table = Table::with_titles(&[
        ("phase", Align::Left),
        ("engine", Align::Left),
        (&hour, Align::Right),
        (&million, Align::Right),
        ("interval", Align::Left),
    ]);
    for (phase, cell) in summary.phases.iter().flat_map(|phase| phase.cells().map(move |cell| (phase, cell)))
    {
        table.push(row(phase, cell));
    }
    vec![
        Block::Part("Cost per million ops".to_string()),
        Block::Table(table),
        Block::Lines(vec![LEGEND.to_string()]),
    ]
}

fn row(phase: &PhaseSummary, cell: &Cell) -> Vec<String> {
    let interval = cell.price.and_then(|found| found.interval);
    vec![
        phase_name(phase),
        cell_name(cell),
        known(cell.price, |found| price(found.per_hour)),
        known(cell.price, |found| price(found.per_million_ops)),
        known(interval, |range| format!("{}..{}", price(range.low), price(range.high))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use kvdyno_core::results::fixture::{records, run};
    use kvdyno_core::results::price::Prices;

    #[test]
    fn each_format_has_the_prices_if_they_are_given_and_no_word_of_them_otherwise() {
        let prices = Prices::parse("currency = \"XYZ\"\nmachine = 0.5\n").unwrap();
        let priced = Summary::new(&run(), records()).priced(prices);
        let plain = Summary::new(&run(), records());
        for format in FORMATS.iter().filter(|format| format.has_prices) {
            let text = (format.render)(&priced, &run());
            assert!(text.contains("XYZ"), "{}: {text}", format.name);
            let text = (format.render)(&plain, &run());
            assert!(!text.contains("XYZ") && !text.contains("\"price\""), "{}", format.name);
        }
        let text = crate::text::blocks(blocks(&priced));
        let row = text.lines().find(|line| line.contains("/ read ") && line.contains("lmdb")).unwrap();
        assert!(row.contains("0.50") && row.contains(".."), "{row}");
        assert!(blocks(&plain).is_empty());
    }
}
