//! Selects engines by words: names, groups (a language, a family, a class), patterns of names, and what to exclude.

use super::abi::{KV_EVICTS, KV_IN_MEMORY};
use super::catalogue::{Known, catalogue};
use super::registry::{Lookup, Registry, mutant_names};
use super::{Engine, is_compared_family};
use std::collections::BTreeSet;

/// The word for all engines that comparisons include.
pub const ALL: &str = "all";
/// The word for the set of engines that a run compares by default.
pub const DEFAULT: &str = "default";
/// The family of engines that run in a process of their own. Only this word selects them as a group.
const SERVER: &str = "server";
/// Classes, with the capability that puts an engine into each.
const CLASSES: [(&str, u64); 2] = [("in-memory", KV_IN_MEMORY), ("cache", KV_EVICTS)];

/// A selected engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name, with options if they were typed.
    pub name: String,
    /// Whether its name was typed, and not only a group or pattern that contains it.
    pub is_named: bool,
}

/// An engine that is not available, and why and how to install it.
pub(super) type Missing = (String, String);

/// What words select.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The engines: those of groups are available, those that were named are known.
    pub chosen: Vec<Chosen>,
    /// Engines of groups that are not available.
    pub missing: Vec<Missing>,
    /// The words of groups and patterns that contain no available engine, with the engines that they contain.
    pub unmet: Vec<(String, Vec<Missing>)>,
}

/// Why words select nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// A word that is neither an engine nor a group; and all words that would be known.
    Unknown(String, Vec<String>),
    /// A pattern without a match, and all words that would be known.
    NoMatch(String, Vec<String>),
    /// A pattern that matches only engines that must be named.
    MustBeNamed(String, Vec<String>),
    /// The exclusions left no engine.
    Empty,
}

/// An engine with the facts that groups are made of.
struct Candidate<'r> {
    name: &'r str,
    family: String,
    language: String,
    capabilities: u64,
    /// Whether it is part of groups.
    is_grouped: bool,
    /// Its place in the default set.
    default: Option<&'r str>,
    /// If it is not available: why, and how to install it.
    advice: Option<String>,
}

fn known(name: &str) -> Option<&'static Known> {
    catalogue().iter().find(|known| known.name == name)
}

impl<'r> Candidate<'r> {
    fn available(engine: &'r Engine) -> Candidate<'r> {
        // The catalogue's texts, so that words mean the same whether an engine is available or not.
        let known = known(engine.name());
        Candidate {
            name: engine.name(),
            family: known.map_or_else(|| engine.family(), |known| known.family.clone()),
            language: known.map_or_else(|| engine.language(), |known| known.language.clone()),
            capabilities: engine.capabilities(),
            is_grouped: engine.is_compared(),
            default: known.and_then(|known| known.default.as_deref()),
            advice: None,
        }
    }

    fn is_of(&self, word: &str) -> bool {
        let is_class = |(name, bit): &(&str, u64)| *name == word && self.capabilities & bit != 0;
        word_of(&self.family) == word || word_of(&self.language) == word || CLASSES.iter().any(is_class)
    }

    fn is_server(&self) -> bool {
        self.family == SERVER
    }
}

/// The word for a family or language: `fractal tree` is `fractal-tree`.
fn word_of(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?'])
}

/// Whether a name matches a pattern: `*` is any number of characters, `?` is one. Only the last `*` is ever retried, so the
/// time is at most the product of the lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < name.len() {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, seen));
            }
            Some(letter) if *letter == '?' || *letter == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (at, seen) = (after, from + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// A name without the options in parentheses.
fn bare(name: &str) -> &str {
    name.split_once(" (").map_or(name, |(name, _)| name)
}

impl Registry {
    /// The engines that `words` select, from left to right. A word is an engine's name, with or without options; otherwise
    /// `all`, `default`, a language, a family, a class, or a pattern such as `*-memory`. A word after `-` excludes what it
    /// selects. Words that begin with an exclusion exclude from the group `start`.
    ///
    /// Engines with planted bugs, examples and engines that store nothing are in no group, and servers only in `server`.
    pub fn select(&self, words: &[String], start: &str) -> Result<Selection, SelectError> {
        let candidates = self.candidates();
        let mut selection = Selection::default();
        let excludes = |word: &String| word.strip_prefix('-').map(String::from);
        if words.first().and_then(excludes).is_some() {
            selection.add(start, &candidates, group(&candidates, start).unwrap_or_default());
        }
        for word in words.iter().map(|word| word.trim().to_string()) {
            if let Some(word) = excludes(&word) {
                let found = self.found(&word, &candidates)?;
                let names: BTreeSet<&str> = match &found {
                    Found::Engine => BTreeSet::from([bare(&word)]),
                    Found::Group(places) => places.iter().map(|place| candidates[*place].name).collect(),
                };
                selection.chosen.retain(|chosen| !names.contains(bare(&chosen.name)));
                selection.missing.retain(|(name, _)| !names.contains(name.as_str()));
                continue;
            }
            match self.found(&word, &candidates)? {
                Found::Engine => selection.push(Chosen { name: word, is_named: true }),
                Found::Group(places) => selection.add(&word, &candidates, places),
            }
        }
        let is_nothing = selection.chosen.is_empty() && selection.unmet.is_empty();
        if is_nothing && !words.is_empty() { Err(SelectError::Empty) } else { Ok(selection) }
    }

    /// The engines that a run compares if none are named: the first available one of each place in the set.
    pub fn default_set(&self) -> Selection {
        let candidates = self.candidates();
        let mut selection = Selection::default();
        selection.add(DEFAULT, &candidates, group(&candidates, DEFAULT).unwrap_or_default());
        selection
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        let absent = self.absent().iter().map(|absent| Candidate {
            name: &absent.known.name,
            family: absent.known.family.clone(),
            language: absent.known.language.clone(),
            capabilities: 0,
            is_grouped: is_compared_family(&absent.known.family),
            default: absent.known.default.as_deref(),
            advice: Some(absent.advice()),
        });
        self.engines().iter().map(Candidate::available).chain(absent).collect()
    }

    fn found(&self, word: &str, candidates: &[Candidate<'_>]) -> Result<Found, SelectError> {
        let mutants = match self.engine(bare(word)) {
            Ok(_) | Err(Lookup::Absent(_)) => return Ok(Found::Engine),
            Err(Lookup::Unknown(_)) => mutant_names(),
        };
        if let Some(places) = group(candidates, &word_of(word)) {
            return Ok(Found::Group(places));
        }
        if is_pattern(word) {
            let matching = |place: &usize| matches(word, candidates[*place].name);
            let (grouped, others): (Vec<usize>, Vec<usize>) =
                (0..candidates.len()).filter(matching).partition(|place| candidates[*place].is_grouped);
            if !grouped.is_empty() {
                return Ok(Found::Group(grouped));
            }
            let others: Vec<String> =
                others.into_iter().map(|place| candidates[place].name.to_string()).collect();
            if !others.is_empty() {
                return Err(SelectError::MustBeNamed(word.to_string(), others));
            }
        }
        let names = candidates.iter().map(|candidate| candidate.name.to_string());
        let known = names.chain(mutants).chain(words(candidates)).collect();
        let error = if is_pattern(word) { SelectError::NoMatch } else { SelectError::Unknown };
        Err(error(word.to_string(), known))
    }
}

/// What a word selects.
enum Found {
    /// The engine with this name.
    Engine,
    /// Candidates, by their positions.
    Group(Vec<usize>),
}

/// The words for groups.
fn words(candidates: &[Candidate<'_>]) -> BTreeSet<String> {
    let grouped = candidates.iter().filter(|candidate| candidate.is_grouped || candidate.is_server());
    let facts = grouped.flat_map(|candidate| [word_of(&candidate.family), word_of(&candidate.language)]);
    let fixed = [ALL, DEFAULT].into_iter().chain(CLASSES.map(|(name, _)| name)).map(String::from);
    facts.chain(fixed).collect()
}

/// The candidates of a group; none: there is no such group.
fn group(candidates: &[Candidate<'_>], word: &str) -> Option<Vec<usize>> {
    let places = |is_in: &dyn Fn(&Candidate<'_>) -> bool| -> Vec<usize> {
        (0..candidates.len()).filter(|place| is_in(&candidates[*place])).collect()
    };
    match word {
        ALL => Some(places(&|candidate| candidate.is_grouped)),
        DEFAULT => {
            let marked: BTreeSet<&str> =
                candidates.iter().filter_map(|candidate| candidate.default).collect();
            let first = |mark: &str| {
                let of_mark = places(&|candidate| candidate.default == Some(mark));
                of_mark.into_iter().min_by_key(|place| {
                    let candidate = &candidates[*place];
                    (candidate.advice.is_some(), candidate.name)
                })
            };
            Some(marked.into_iter().filter_map(first).collect())
        }
        SERVER => Some(places(&|candidate| candidate.is_server())),
        _ => words(candidates)
            .contains(word)
            .then(|| places(&|candidate| candidate.is_grouped && candidate.is_of(word))),
    }
}

impl Selection {
    /// Adds an engine unless it is selected already.
    fn push(&mut self, chosen: Chosen) {
        match self.chosen.iter_mut().find(|other| other.name == chosen.name) {
            Some(other) => other.is_named |= chosen.is_named,
            None => self.chosen.push(chosen),
        }
    }

    /// Adds the engines of a group.
    fn add(&mut self, word: &str, candidates: &[Candidate<'_>], places: Vec<usize>) {
        let (mut missing, mut is_met): (Vec<Missing>, bool) = (Vec::new(), false);
        for candidate in places.into_iter().map(|place| &candidates[place]) {
            let name = candidate.name.to_string();
            match &candidate.advice {
                None => {
                    is_met = true;
                    self.push(Chosen { name, is_named: false });
                }
                Some(advice) => missing.push((name, advice.clone())),
            }
        }
        if !is_met {
            self.unmet.push((word.to_string(), missing.clone()));
        }
        missing.retain(|one| !self.missing.contains(one));
        self.missing.extend(missing);
    }

    /// The names of the engines.
    pub fn names(&self) -> Vec<String> {
        self.chosen.iter().map(|chosen| chosen.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
