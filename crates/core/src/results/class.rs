//! What an engine is: embedded, a cache, a server, a store with several copies; and where its servers run.

use super::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// `REFERENCES`: the names of the reference engines of this project, from their engine.toml.
include!(concat!(env!("OUT_DIR"), "/references.rs"));

/// What an engine is. Each kind is ranked by itself: a cache has less work than an engine that keeps all rows, an op on a
/// server crosses a socket, several copies cost more than one, and a read that need not be the newest costs less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An engine in the process that uses it, which keeps all rows.
    #[default]
    Embedded,
    /// An engine on the database of another program, whose values are not checked.
    Foreign,
    /// The same, but it may evict rows.
    Cache,
    /// A server with one copy of the rows.
    Server,
    /// A server that may evict rows.
    CacheServer,
    /// Servers with several copies of the rows.
    Distributed,
    /// The same, and reads may return older values than acknowledged ones.
    Stale,
    /// A reference engine of this project and no library that an application can use. No record has it: it is known by the name.
    #[schemars(skip)]
    Reference,
}

impl Kind {
    /// Whether it is the usual kind, which needs no name.
    pub fn is_embedded(&self) -> bool {
        *self == Kind::Embedded
    }

    /// Whether its engines may evict rows.
    pub fn is_cache(self) -> bool {
        matches!(self, Kind::Cache | Kind::CacheServer)
    }

    /// Whether an op crosses a socket to another process.
    pub fn is_server(self) -> bool {
        matches!(self, Kind::Server | Kind::CacheServer | Kind::Distributed | Kind::Stale)
    }

    /// Its name in titles; none: the usual kind.
    pub fn plural(self) -> Option<&'static str> {
        match self {
            Kind::Embedded => None,
            Kind::Foreign => Some(FOREIGN_DATA),
            Kind::Cache => Some("caches"),
            Kind::Server => Some("servers"),
            Kind::CacheServer => Some("cache servers"),
            Kind::Distributed => Some("distributed stores"),
            Kind::Stale => Some("stores with stale reads"),
            Kind::Reference => Some("references"),
        }
    }
}

/// Where the servers of an engine run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On the machine of the load.
    OneMachine,
    /// On other machines.
    Network,
}

/// What an engine is, and where it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Class {
    /// What it is.
    pub kind: Kind,
    /// Where its servers run; none: it has none, or the driver does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

impl Class {
    /// The class that a driver reports by its capabilities and the effective settings `class` (`server, one machine`) and
    /// `stale_reads`. Only this function reads these words.
    pub fn reported(capabilities: &[String], settings: &[(String, String)]) -> Class {
        let setting =
            |wanted| settings.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let mut words = setting("class").unwrap_or_default().split(", ");
        let word = words.next().unwrap_or_default();
        let place = match words.next() {
            Some("one machine") => Some(Place::OneMachine),
            Some("over a network") => Some(Place::Network),
            _ => None,
        };
        let is_cache = capabilities.iter().any(|name| name == "evicts");
        let kind = match word {
            _ if setting("stale_reads") == Some("possible") => Kind::Stale,
            "" if is_cache => Kind::Cache,
            "" => Kind::Embedded,
            _ if is_cache => Kind::CacheServer,
            "distributed" => Kind::Distributed,
            _ => Kind::Server,
        };
        Class { kind, place }
    }
}

impl Record {
    /// The class of its engine; that of engines on foreign data is their own.
    pub fn class(&self) -> Class {
        if self.trial.is_foreign() {
            return Class { kind: Kind::Foreign, place: None };
        }
        // Records of older versions have only the settings.
        let class = |engine: &super::EngineFacts| {
            if REFERENCES.contains(&engine.name.as_str()) {
                return Class { kind: Kind::Reference, place: None };
            }
            engine.class.unwrap_or_else(|| Class::reported(&engine.capabilities, &engine.options))
        };
        self.engine.as_deref().map_or_else(Class::default, class)
    }

    /// The class in words, with what a server promises (the effective settings `replication`, `consistency`, `persistence`);
    /// none: it is embedded.
    pub fn class_words(&self) -> Option<String> {
        let kind = self.class().kind;
        if matches!(kind, Kind::Embedded | Kind::Foreign | Kind::Cache | Kind::Reference) {
            return match kind {
                Kind::Reference => Some("reference".to_string()),
                Kind::Foreign => Some(FOREIGN_DATA.to_string()),
                Kind::Cache => Some("cache".to_string()),
                _ => None,
            };
        }
        let setting = |wanted| self.setting(wanted);
        let class = setting("class").unwrap_or("store");
        let promises = [("replication factor ", "replication"), ("", "consistency"), ("", "persistence")];
        let promises =
            promises.iter().filter_map(|(words, name)| Some(format!(", {words}{}", setting(name)?)));
        let (word, place) = class.split_at(class.find(',').unwrap_or(class.len()));
        let cache = if self.engine.as_ref()?.capabilities.iter().any(|name| name == "evicts") {
            "cache "
        } else {
            ""
        };
        let stale = if kind == Kind::Stale { " with stale reads" } else { "" };
        Some(format!("{cache}{word}{stale}{place}{}", promises.collect::<String>()))
    }

    /// An effective setting of its engine.
    pub fn setting(&self, wanted: &str) -> Option<&str> {
        let options = &self.engine.as_ref()?.options;
        options.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

/// The name of the kind of engines on the database of another program.
const FOREIGN_DATA: &str = "foreign data, values not checked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_the_engines_of_this_project_that_store_rows() {
        for name in ["memory-btree", "memory-map", "example"] {
            assert!(REFERENCES.contains(&name), "{name}: {REFERENCES:?}");
        }
        let is_other =
            |name: &&&str| name.contains("null") || name.contains("mutant") || name.contains("redb");
        assert_eq!(REFERENCES.iter().find(is_other), None);
    }

    #[test]
    fn what_a_driver_reports_is_read_once_and_in_every_form() {
        use Kind::*;
        use Place::*;
        type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], Kind, Option<Place>);
        let cases: [Case<'_>; 8] = [
            (&[], &[], Embedded, None),
            (&["evicts"], &[], Cache, None),
            (&[], &[("class", "server, one machine")], Server, Some(OneMachine)),
            (&["evicts"], &[("class", "server, over a network")], CacheServer, Some(Network)),
            (&[], &[("class", "distributed, over a network")], Distributed, Some(Network)),
            (
                &[],
                &[("class", "distributed, one machine"), ("stale_reads", "possible")],
                Stale,
                Some(OneMachine),
            ),
            (&[], &[("stale_reads", "possible")], Stale, None),
            (&[], &[("class", "server")], Server, None),
        ];
        for (capabilities, settings, kind, place) in cases {
            let capabilities: Vec<String> = capabilities.iter().map(|name| name.to_string()).collect();
            let settings: Vec<(String, String)> =
                settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let class = Class::reported(&capabilities, &settings);
            assert_eq!(class, Class { kind, place }, "{capabilities:?} {settings:?}");
        }
    }
}
