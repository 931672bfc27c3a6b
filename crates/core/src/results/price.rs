//! Prices, which a user gives in a file, and what a million ops cost at them. A price is no measurement: records have none.
//!
//! What was used is what is paid for: one machine if the engine or its servers run on the machine of the load, and otherwise
//! a machine for each server and for each load generator.

use super::Place;
use super::statistics::Interval;
use super::summary::{Cell, Summary};
use serde::{Deserialize, Serialize};

/// The maximum length of a currency.
const CURRENCY_BYTES: usize = 12;

/// The prices of machines, per hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The unit of all prices, as the reports show it.
    pub currency: String,
    /// A machine that runs the load and the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<f64>,
    /// The machine of one server process that is reached over a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<f64>,
    /// The machine of one load generator whose servers are reached over a network; none: it is not paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_generator: Option<f64>,
}

/// Why a text has no prices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// It is not a file of prices.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The currency cannot be shown.
    #[error(
        "currency: expected 1 to {CURRENCY_BYTES} printable ASCII characters without spaces, such as \"EUR\""
    )]
    Currency,
    /// A price that is none: its field.
    #[error("{0}: expected a price per hour of at least 0")]
    Price(&'static str),
    /// Nothing has a price.
    #[error("it has neither `machine` nor `server`, so nothing has a price")]
    Nothing,
}

impl Prices {
    /// Reads a file of prices.
    pub fn parse(text: &str) -> Result<Prices, PriceError> {
        let prices: Prices = toml::from_str(text)?;
        let currency = &prices.currency;
        if !(1..=CURRENCY_BYTES).contains(&currency.len())
            || !currency.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(PriceError::Currency);
        }
        let all = [
            ("machine", prices.machine),
            ("server", prices.server),
            ("load_generator", prices.load_generator),
        ];
        for (name, price) in all {
            if price.is_some_and(|price| !price.is_finite() || price < 0.0) {
                return Err(PriceError::Price(name));
            }
        }
        if prices.machine.is_none() && prices.server.is_none() {
            return Err(PriceError::Nothing);
        }
        Ok(prices)
    }

    /// The price of an hour of what the cell used; none: a price or a number is unknown.
    fn per_hour(&self, cell: &Cell, load_generators: u32) -> Option<f64> {
        if !is_over_a_network(cell) {
            return self.machine;
        }
        let load = self.load_generator.unwrap_or(0.0) * f64::from(load_generators.max(1));
        Some(self.server? * f64::from(cell.servers?) + load)
    }
}

fn is_over_a_network(cell: &Cell) -> bool {
    cell.class.kind.is_server() && cell.class.place != Some(Place::OneMachine)
}

/// What a cell costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CellPrice {
    /// An hour of what it used, in the currency of the prices.
    pub per_hour: f64,
    /// A million ops.
    pub per_million_ops: f64,
    /// Its interval, from that of the rate; none: that is unknown.
    pub interval: Option<Interval>,
}

impl Summary {
    /// The same with the price of each cell.
    pub fn priced(mut self, prices: Prices) -> Summary {
        for phase in &mut self.phases {
            let load_generators = phase.load_generators;
            let ranked = phase.groups.iter_mut().flat_map(|group| &mut group.cells);
            let cells = ranked.chain(&mut phase.unranked);
            cells.for_each(|cell| cell.price = price(cell, &prices, load_generators));
        }
        self.prices = Some(prices);
        self
    }
}

fn price(cell: &Cell, prices: &Prices, load_generators: u32) -> Option<CellPrice> {
    // A cache that evicts what it is asked for, or a cell whose trials failed, has a rate all the same.
    let rate = cell.ops_per_second.filter(|rate| *rate > 0.0)?;
    let per_hour = prices.per_hour(cell, load_generators)?;
    let per_million = |rate: f64| per_hour / 3_600.0 / rate * 1e6;
    let interval = cell.ops_per_second_interval.filter(|rate| rate.low > 0.0).map(|rate| Interval {
        low: per_million(rate.high),
        high: per_million(rate.low),
        ..rate
    });
    Some(CellPrice { per_hour, per_million_ops: per_million(rate), interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Class, Kind, fixture};

    fn prices(machine: Option<f64>, server: Option<f64>, load_generator: Option<f64>) -> Prices {
        Prices { currency: "EUR".into(), machine, server, load_generator }
    }

    fn cell() -> Cell {
        let summary = Summary::new(&fixture::run(), fixture::records());
        let cells = summary.phases.into_iter().flat_map(|phase| phase.groups).flat_map(|group| group.cells);
        cells.into_iter().find(|cell| cell.ops_per_second_interval.is_some()).unwrap()
    }

    #[test]
    fn a_file_is_read_strictly() {
        let all = "currency = \"EUR\"\nmachine = 0.40\nserver = 1\nload_generator = 0.1\n";
        assert_eq!(Prices::parse(all), Ok(prices(Some(0.4), Some(1.0), Some(0.1))));
        for (text, said) in [
            ("machine = 1", "currency"),
            ("currency = \"\"\nmachine = 1", "currency: expected"),
            ("currency = \"two words\"\nmachine = 1", "currency: expected"),
            ("currency = \"\\u001b[1m\"\nmachine = 1", "currency: expected"),
            ("currency = \"EUR\"", "neither `machine` nor `server`"),
            ("currency = \"EUR\"\nload_generator = 1", "neither `machine` nor `server`"),
            ("currency = \"EUR\"\nmachine = -1", "machine: expected a price"),
            ("currency = \"EUR\"\nserver = nan", "server: expected a price"),
            ("currency = \"EUR\"\nmachine = \"1\"", "machine"),
            ("currency = \"EUR\"\nnode = 1", "unknown field `node`"),
        ] {
            let error = Prices::parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_million_ops_cost_the_hour_by_the_rate_and_intervals_change_ends() {
        let cell = Cell {
            ops_per_second: Some(1e6),
            ops_per_second_interval: Some(Interval { low: 5e5, high: 2e6, level: 0.9 }),
            ..cell()
        };
        let found = price(&cell, &prices(Some(3.6), None, Some(9.0)), 4).unwrap();
        assert!(
            (found.per_hour - 3.6).abs() < 1e-12 && (found.per_million_ops - 1e-3).abs() < 1e-12,
            "{found:?}"
        );
        let interval = found.interval.unwrap();
        assert!((interval.low - 5e-4).abs() < 1e-12 && (interval.high - 2e-3).abs() < 1e-12, "{interval:?}");
        assert_eq!(interval.level, 0.9);
        assert_eq!(price(&cell, &prices(None, Some(1.0), None), 1), None, "no price of a machine");
        assert_eq!(price(&Cell { ops_per_second: None, ..cell }, &prices(Some(1.0), None, None), 1), None);
    }

    #[test]
    fn servers_over_a_network_are_paid_for_each_and_those_on_one_machine_once() {
        let of = |kind: Kind, place: Option<Place>, servers: Option<u32>| Cell {
            class: Class { kind, place },
            servers,
            ops_per_second: Some(1.0),
            ops_per_second_interval: None,
            ..cell()
        };
        let all = prices(Some(1.0), Some(10.0), Some(100.0));
        let hour = |cell: &Cell, prices: &Prices| price(cell, prices, 2).map(|found| found.per_hour);
        let near = of(Kind::Distributed, Some(Place::OneMachine), Some(3));
        assert_eq!(hour(&near, &all), Some(1.0));
        let far = of(Kind::Distributed, Some(Place::Network), Some(3));
        assert_eq!(hour(&far, &all), Some(230.0));
        assert_eq!(hour(&far, &prices(Some(1.0), Some(10.0), None)), Some(30.0));
        assert_eq!(hour(&far, &prices(Some(1.0), None, None)), None, "no price of a server");
        assert_eq!(hour(&of(Kind::Server, Some(Place::Network), None), &all), None, "how many is unknown");
        assert_eq!(hour(&of(Kind::Cache, None, None), &all), Some(1.0), "an embedded cache");
    }
}
