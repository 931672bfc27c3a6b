//! The names of cells in tables: an engine with the options that distinguish it from the other cells of its engine.

use kvdyno_measure::text::{middle_text, plain_text, short_text};
use std::collections::HashMap;

/// The maximum length of a label, in characters, unless two cells would have the same one.
pub const LIMIT: usize = 26;
/// The minimum lengths of the name and of the value of an option that is shortened.
#[derive(Clone, Copy)]
struct Least {
    name: usize,
    value: usize,
}

const LEAST: Least = Least { name: 4, value: 6 };

/// The options of a cell.
type Options = [(String, String)];

/// `redb`, or `redb (cache=1G, sync=on)` if options were requested.
pub fn full_name(engine: &str, options: &Options) -> String {
    let options: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if options.is_empty() { engine.to_string() } else { format!("{engine} ({})", options.join(", ")) }
}

/// The options of a cell and its label.
type Labelled = (Vec<(String, String)>, String);

/// The labels of all cells that are shown together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    of_engine: HashMap<String, Vec<Labelled>>,
}

impl Labels {
    /// The labels of these engines with their options.
    pub fn new<'a>(cells: impl IntoIterator<Item = (&'a str, &'a Options)>) -> Labels {
        let mut all = Labels::default();
        for (engine, options) in cells {
            let own = all.of_engine.entry(engine.to_string()).or_default();
            if !own.iter().any(|(seen, _)| seen == options) {
                own.push((options.to_vec(), String::new()));
            }
        }
        for (engine, own) in &mut all.of_engine {
            let variants: Vec<Vec<(String, String)>> =
                own.iter().map(|(options, _)| options.clone()).collect();
            for (options, text) in own {
                *text = label(engine, options, &variants, LEAST);
            }
        }
        // Cells that would have the same label show the values in full, then everything.
        let all_values = Least { value: usize::MAX, ..LEAST };
        for least in [all_values, Least { name: usize::MAX, value: usize::MAX }] {
            let mut count: HashMap<String, usize> = HashMap::new();
            let texts = all.of_engine.values().flatten().map(|(_, text)| text.clone());
            texts.for_each(|text| *count.entry(text).or_default() += 1);
            for (engine, own) in &mut all.of_engine {
                let variants: Vec<Vec<(String, String)>> =
                    own.iter().map(|(options, _)| options.clone()).collect();
                for (options, text) in own.iter_mut().filter(|(_, text)| count[text] > 1) {
                    *text = match least.name {
                        usize::MAX => plain_text(&full_name(engine, options)),
                        _ => label(engine, options, &variants, least),
                    };
                }
            }
        }
        all
    }

    /// The label of a cell; plain text.
    pub fn of(&self, engine: &str, options: &Options) -> String {
        let own = self.of_engine.get(engine).into_iter().flatten();
        let found = own.into_iter().find(|(seen, _)| seen == options).map(|(_, text)| text.clone());
        found.unwrap_or_else(|| label(engine, options, &[], LEAST))
    }
}

/// The label of a cell among all variants of its engine. The options that distinguish it are first; `..` stands for the others if
/// they do not fit. Names of options are shortened in the middle if these do not fit either, then their values.
fn label(engine: &str, options: &Options, variants: &[Vec<(String, String)>], least: Least) -> String {
    let full = plain_text(&full_name(engine, options));
    if full.len() <= LIMIT || options.is_empty() {
        return if options.is_empty() { short_text(engine, LIMIT) } else { full };
    }
    let is_apart = |option: &&(String, String)| variants.iter().any(|other| !other.contains(option));
    let (apart, common): (Vec<_>, Vec<_>) = options.iter().partition(is_apart);
    // One option is always shown.
    let shown = apart.len().max(1);
    let mut ordered =
        apart.into_iter().chain(common).map(|(name, value)| (plain_text(name), plain_text(value)));
    let engine = short_text(engine, LIMIT);
    let room = LIMIT.saturating_sub(engine.len() + " ()".len());
    let rest = if shown < options.len() { ", ..".len() } else { 0 };
    let first = shortened(ordered.by_ref().take(shown).collect(), room.saturating_sub(rest), least);
    let mut text = first.join(", ");
    let mut left = options.len() - shown;
    for (name, value) in ordered {
        let more = format!(", {name}={value}");
        let rest = if left > 1 { ", ..".len() } else { 0 };
        if text.len() + more.len() + rest > room {
            break;
        }
        text += &more;
        left -= 1;
    }
    if left > 0 {
        text += ", ..";
    }
    format!("{engine} ({text})")
}

/// The options as `name=value`, shortened until they fit, the longest name first, then the longest value.
fn shortened(options: Vec<(String, String)>, room: usize, least: Least) -> Vec<String> {
    let mut lengths: Vec<(usize, usize)> =
        options.iter().map(|(name, value)| (name.len(), value.len())).collect();
    let separators = options.len() + 2 * options.len().saturating_sub(1);
    while lengths.iter().map(|(name, value)| name + value).sum::<usize>() + separators > room {
        let longest = |of: fn(&mut (usize, usize)) -> &mut usize, least: usize| {
            move |all: &mut Vec<(usize, usize)>| {
                let found = all.iter_mut().map(of).max_by_key(|length| **length).filter(|own| **own > least);
                found.map(|own| *own -= 1).is_some()
            }
        };
        if !longest(|own| &mut own.0, least.name)(&mut lengths)
            && !longest(|own| &mut own.1, least.value)(&mut lengths)
        {
            break;
        }
    }
    let text = |((name, value), (of_name, of_value)): (&(String, String), &(usize, usize))| {
        format!("{}={}", middle_text(name, *of_name), middle_text(value, *of_value))
    };
    options.iter().zip(&lengths).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    fn labels(engine: &str, variants: &[&[(&str, &str)]]) -> Vec<String> {
        let variants: Vec<Vec<(String, String)>> = variants.iter().map(|own| options(own)).collect();
        let labels = Labels::new(variants.iter().map(|own| (engine, &own[..])));
        variants.iter().map(|own| labels.of(engine, own)).collect()
    }

    #[test]
    fn a_label_shows_what_distinguishes_the_rows_of_an_engine() {
        let variants: [&[(&str, &str)]; 3] = [
            &[],
            &[("block_size", "4096"), ("load_factor", "0.5")],
            &[("block_size", "4096"), ("load_factor", "0.7")],
        ];
        let wanted = ["nudb", "nudb (b..e=4096, l..r=0.5)", "nudb (b..e=4096, l..r=0.7)"];
        assert_eq!(labels("nudb", &variants), wanted);
    }

    #[test]
    fn options_that_all_rows_have_give_way() {
        let variants: [&[(&str, &str)]; 2] = [
            &[("block_size", "8192"), ("load_factor", "0.5")],
            &[("block_size", "8192"), ("load_factor", "0.75")],
        ];
        assert_eq!(labels("nudb", &variants), ["nudb (load_factor=0.5, ..)", "nudb (load..ctor=0.75, ..)"]);
        assert_eq!(labels("nudb", &variants[..1]), ["nudb (block_size=8192, ..)"]);
        assert_eq!(labels("redb", &[&[("a", "1"), ("b", "2")]]), ["redb (a=1, b=2)"]);
    }

    #[test]
    fn a_long_value_is_cut_in_its_middle_and_shown_if_that_is_where_rows_differ() {
        let long = |middle: &str| format!("/srv/databases/{middle}/a-long-way-down/server");
        let (one, two) = (long("one"), long("two"));
        let variants: [&[(&str, &str)]; 2] = [&[("server", &one)], &[("server", &two)]];
        for (label, value) in labels("redis", &variants).iter().zip([&one, &two]) {
            assert!(label.contains(value.as_str()), "{label}");
        }
        assert_eq!(labels("redis", &variants[..1]), ["redis (s..r=/srv/d..erver)"]);
    }

    proptest! {
        #[test]
        fn no_two_cells_have_the_same_label(
            variants in prop::collection::btree_set(prop::collection::btree_map("[a-c]{1,20}", "[0-9a-c/]{1,30}", 0..4), 1..6)
        ) {
            let variants: Vec<Vec<(String, String)>> =
                variants.into_iter().map(|own| own.into_iter().collect()).collect();
            let labels = Labels::new(variants.iter().map(|own| ("engine", &own[..])));
            let mut texts: Vec<String> = variants.iter().map(|own| labels.of("engine", own)).collect();
            for text in &texts {
                prop_assert_eq!(text.matches('(').count(), text.matches(')').count());
            }
            texts.sort();
            texts.dedup();
            prop_assert_eq!(texts.len(), variants.len());
        }
    }
}
