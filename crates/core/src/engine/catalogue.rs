//! Every engine that the project knows, installed or not: the contents of the `engine.toml` of each folder, collected by
//! the build script.

use super::defect::Defect;
use super::gives::Gives;
use super::properties::{BadValue, Properties, PropertiesFile};
use serde::Deserialize;
use std::sync::LazyLock;

// `FILES`: the name of each folder of engines, and the text of its engine.toml. `REPORTS`: of each folder with a program for reports the
// name, the ending of the program's name, and its text.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The facts about an engine that are known before it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The name on the command line.
    pub name: String,
    /// Its folder below `engines`, with `/`; variants of an engine share one.
    pub folder: String,
    /// Its origin.
    pub upstream: String,
    /// Its licence as an SPDX expression.
    pub licence: String,
    /// `lsm`, `b+tree` ...
    pub family: String,
    /// Its place in the set of engines that a run compares by default, where the first available engine of a place
    /// runs; `None`: it is not in the set.
    pub default: Option<String>,
    /// Its option with the number of nodes of the cluster that it starts; `None`: it starts none.
    pub nodes: Option<String>,
    /// The name of the file that has its whole database; `None`: there are several, or they are elsewhere.
    pub file: Option<String>,
    /// The members that it starts, and that may fail while a phase is measured; `None`: none of them may.
    pub members: Option<MemberOptions>,
    /// The engine's own language.
    pub language: String,
    /// How it is built, in words.
    pub build: String,
    /// The install command.
    pub get: String,
    /// Whether it must be available where the tests may skip nothing (`CI=true`).
    pub is_required: bool,
    /// Environment variables that must be set before it is loaded, `NAME=value`.
    pub needs_env: Vec<String>,
    /// Instruction sets that its library needs when it runs, by the names of Linux: `avx512f`.
    pub needs_cpu: Vec<String>,
    /// Notes for readers of its figures, one sentence each.
    pub fairness: Vec<String>,
    /// What decides for or against it and cannot be measured.
    pub properties: Properties,
    /// The options that give it capabilities.
    pub gives: Vec<Gives>,
    /// Its known defects.
    pub defects: Vec<Defect>,
}

/// The options with the numbers of members of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberOptions {
    /// All members, of which one leads; or those that lead, if there is another option.
    pub first: String,
    /// The members that follow each of those that lead.
    pub followers: Option<String>,
}

impl MemberOptions {
    /// `members`, or `masters/replicas`.
    fn parse(text: &str) -> MemberOptions {
        match text.split_once('/') {
            Some((first, more)) => MemberOptions { first: first.into(), followers: Some(more.into()) },
            None => MemberOptions { first: text.into(), followers: None },
        }
    }

    /// The number of members, and of those that follow another one; `value` returns the value of an option. `None`: it is no number.
    pub fn count(&self, value: impl Fn(&str) -> Option<u64>) -> Option<(u64, u64)> {
        let first = value(&self.first)?;
        Some(match &self.followers {
            Some(own) => {
                let followers = first.saturating_mul(value(own)?);
                (first.saturating_add(followers), followers)
            }
            None => (first, first.saturating_sub(1)),
        })
    }
}

impl Known {
    /// The plug-in that contains it, unless that has the engine's name: the first part of its folder.
    pub fn plugin(&self) -> &str {
        self.folder.split('/').next().unwrap_or(&self.folder)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Sentences {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    upstream: String,
    licence: String,
    family: String,
    #[serde(default)]
    default: String,
    #[serde(default)]
    nodes: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    members: String,
    language: String,
    build: String,
    get: String,
    // An engine that nobody thought of here is not skipped unnoticed.
    #[serde(default = "is_required_unless_it_says_no")]
    required: bool,
    needs_env: Vec<String>,
    #[serde(default)]
    needs_cpu: Vec<String>,
    fairness: Sentences,
    #[serde(default)]
    properties: PropertiesFile,
    #[serde(default)]
    gives: Vec<Gives>,
    #[serde(default)]
    defect: Vec<Defect>,
}

fn is_required_unless_it_says_no() -> bool {
    true
}

/// Why an `engine.toml` is not used.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("engines/{folder}/engine.toml: {error}")]
    Toml { folder: String, error: toml::de::Error },
    #[error(
        "engines/{folder}/engine.toml: `{field}` must have one value, or one for each of the {names} names"
    )]
    Values { folder: String, field: &'static str, names: usize },
    #[error("engines/{folder}/engine.toml: properties: `{field}` cannot be `{value}`")]
    Property { folder: String, field: &'static str, value: String },
}

/// The engines of one file: `name` is a list if an engine has variants; so are `family`, `default`, `nodes`, `members` and `file`
/// if theirs differ. In `default`, `-` is a variant that is not in the set; in `nodes` and `members`, one that starts no cluster; in
/// `file`, one whose database is not one file.
fn parse(folder: &str, text: &str) -> Result<Vec<Known>, FileError> {
    let file: File =
        toml::from_str(text).map_err(|error| FileError::Toml { folder: folder.to_string(), error })?;
    let list = |text: &str| text.split(',').map(|part| part.trim().to_string()).collect::<Vec<_>>();
    let names = list(&file.name);
    let of_each = |field: &'static str, text: &str| {
        let values = list(text);
        match values.len() {
            1 => Ok(vec![values[0].clone(); names.len()]),
            count if count == names.len() => Ok(values),
            _ => Err(FileError::Values { folder: folder.to_string(), field, names: names.len() }),
        }
    };
    let families = of_each("family", &file.family)?;
    let defaults = of_each("default", &file.default)?;
    let nodes = of_each("nodes", &file.nodes)?;
    let files = of_each("file", &file.file)?;
    let members = of_each("members", &file.members)?;
    let unless_none = |text: &String| Some(text.clone()).filter(|text| !text.is_empty() && text != "-");
    let fairness = match file.fairness {
        Sentences::One(sentence) => vec![sentence],
        Sentences::Many(sentences) => sentences,
    };
    let properties: Result<Vec<Properties>, BadValue> =
        (0..names.len()).map(|index| file.properties.of(index, names.len())).collect();
    let properties = properties.map_err(|BadValue(field, value)| FileError::Property {
        folder: folder.to_string(),
        field,
        value,
    })?;
    let known = names.iter().enumerate().map(|(index, name)| Known {
        name: name.clone(),
        folder: folder.to_string(),
        upstream: file.upstream.clone(),
        licence: file.licence.clone(),
        family: families[index].clone(),
        default: unless_none(&defaults[index]),
        nodes: unless_none(&nodes[index]),
        file: unless_none(&files[index]),
        members: unless_none(&members[index]).map(|text| MemberOptions::parse(&text)),
        language: file.language.clone(),
        build: file.build.clone(),
        get: file.get.clone(),
        is_required: file.required,
        needs_env: file.needs_env.clone(),
        needs_cpu: file.needs_cpu.clone(),
        fairness: fairness.clone(),
        properties: properties[index].clone(),
        gives: file.gives.clone(),
        defects: file.defect.iter().filter(|defect| defect.is_of(name)).cloned().collect(),
    });
    Ok(known.collect())
}

// A file that does not parse is skipped here; the tests below report it.
static CATALOGUE: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let parsed = FILES.iter().filter_map(|(folder, text)| parse(folder, text).ok());
    let mut known: Vec<Known> = parsed.flatten().filter(|known| !known.name.contains(':')).collect();
    known.sort_by(|one, other| one.name.cmp(&other.name));
    known
});

/// All engines except those with planted bugs, by name.
pub fn catalogue() -> &'static [Known] {
    &CATALOGUE
}

/// The names of the engines that must be available where the tests may skip nothing: all but those whose `engine.toml` says
/// `required = false`.
pub fn required_engines() -> impl Iterator<Item = &'static str> {
    catalogue().iter().filter(|known| known.is_required).map(|known| &known.name[..])
}

/// The known defects of the engine `name`.
pub fn defects_of(name: &str) -> &'static [Defect] {
    catalogue().iter().find(|known| known.name == name).map_or(&[], |known| &known.defects)
}

/// The option of the engine `name` with the number of nodes of the cluster that it starts; `None`: it starts none.
pub fn nodes_option_of(name: &str) -> Option<&'static str> {
    catalogue().iter().find(|known| known.name == name)?.nodes.as_deref()
}

/// The name of the file in which the engine `name` keeps its whole database; `None`: there are several, or they are elsewhere.
pub fn file_of(name: &str) -> Option<&'static str> {
    catalogue().iter().find(|known| known.name == name)?.file.as_deref()
}

/// The program that shows what is wrong with a database of the engine `name`: the ending of its name and its text, in which the version
/// and options are to be filled in. That of NAME-system, which is the same engine in a library of the system, is that of NAME. `None`:
/// it has none.
pub fn report_of(name: &str) -> Option<(&'static str, &'static str)> {
    let folder = &catalogue().iter().find(|known| known.name == name)?.folder;
    let of = |wanted: &str| REPORTS.iter().find(|(folder, ..)| *folder == wanted);
    let (_, ending, text) = of(folder).or_else(|| of(folder.strip_suffix("-system")?))?;
    Some((*ending, *text))
}

/// Why this processor cannot run the plug-in `name`, which is not loaded then, because code that runs when it is loaded may already
/// need what is missing. `None`: it has what is needed, or that is unknown.
pub(super) fn lacking_here(name: &str) -> Option<String> {
    let known = catalogue().iter().find(|known| known.name == name || known.plugin() == name)?;
    if known.needs_cpu.is_empty() {
        return None;
    }
    lacking(&known.needs_cpu, &std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The instruction sets that a processor lacks, by the list in `cpuinfo`; `None` if it has all, or if there is no list.
fn lacking(needed: &[String], cpuinfo: &str) -> Option<String> {
    let list = cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"))?;
    let here: Vec<&str> = list.split_once(':')?.1.split_whitespace().collect();
    let missing: Vec<&str> =
        needed.iter().map(String::as_str).filter(|needed| !here.contains(needed)).collect();
    (!missing.is_empty())
        .then(|| format!("its library needs {}, which this processor does not have", missing.join(", ")))
}

/// The environment variables that a process must set before it loads the engine `name`: names and values. Variables that
/// the user has already set stay unchanged and are not included.
pub fn environment_of(name: &str) -> Vec<(&'static str, &'static str)> {
    let known = catalogue().iter().find(|known| known.name == name);
    let needed = known.into_iter().flat_map(|known| &known.needs_env).filter_map(|text| text.split_once('='));
    needed.filter(|(variable, _)| std::env::var_os(variable).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::is_engine_name;
    use crate::engine::properties::Storage;
    use std::collections::BTreeSet;

    #[test]
    fn every_engine_toml_is_read_and_complete() {
        for (folder, text) in FILES {
            let found = parse(folder, text).unwrap_or_else(|error| panic!("{error}"));
            for known in found.iter().filter(|known| !known.name.contains(':')) {
                assert!(
                    is_engine_name(&known.name),
                    "engines/{folder}: `{}` is not a valid name",
                    known.name
                );
                let fields = [
                    &known.upstream,
                    &known.licence,
                    &known.family,
                    &known.language,
                    &known.build,
                    &known.get,
                ];
                assert!(
                    fields.iter().all(|field| !field.trim().is_empty()),
                    "engines/{folder}: an empty field"
                );
                let says = |defect: &Defect| {
                    [&defect.version, &defect.what, &defect.reproduction].iter().all(|text| !text.is_empty())
                };
                assert!(known.defects.iter().all(says), "engines/{folder}: an empty field of a defect");
                let file: File = toml::from_str(text).unwrap();
                let is_known = |defect: &Defect| found.iter().any(|variant| defect.is_of(&variant.name));
                assert!(file.defect.iter().all(is_known), "engines/{folder}: a defect of an unknown variant");
                let is_variable =
                    |text: &String| text.split_once('=').is_some_and(|(name, _)| !name.is_empty());
                assert!(
                    known.needs_env.iter().all(is_variable),
                    "engines/{folder}: needs_env must be NAME=value"
                );
            }
        }
        let names: BTreeSet<&str> = catalogue().iter().map(|known| known.name.as_str()).collect();
        assert_eq!(names.len(), catalogue().len(), "two engines with the same name");
    }

    #[test]
    fn the_properties_of_every_library_are_given_and_agree() {
        // A new engine has no upstream yet.
        let has_upstream = |known: &&Known| !["this project", "-"].contains(&known.upstream.as_str());
        for known in catalogue().iter().filter(has_upstream) {
            let own = &known.properties;
            let name = &known.name;
            assert!(own != &Properties::default(), "engines/{}: no properties", known.folder);
            if known.family != "server" {
                assert!(!own.callable_from.is_empty(), "{name}: nothing calls it");
            }
            // A database that is one file for `--foreign` is one.
            assert!(known.file.is_none() || own.storage == Some(Storage::File), "{name}: {:?}", own.storage);
            for gives in &known.gives {
                let bits = super::super::capability::known_capabilities();
                let names = super::super::capability_names(bits);
                assert!(gives.capabilities.iter().all(|own| names.contains(&&own[..])), "{name}: {gives:?}");
            }
        }
    }

    /// Folders of engines that the machines of CI do not have. This list may only shrink.
    const NOT_REQUIRED: [&str; 7] = [
        // Libraries that no package of Debian has.
        "kvdk",
        "nessdb",
        "nudb",
        "tokukv",
        // A large download, of `make engines-extra` or of `make test-all`.
        "rocksdb-jni",
        "servers/cassandra",
        // A cluster of the user's.
        "servers/tikv",
    ];

    #[test]
    fn every_engine_is_required_unless_its_engine_toml_says_no() {
        let optional = catalogue().iter().filter(|known| !known.is_required);
        let optional: BTreeSet<&str> = optional.map(|known| &known.folder[..]).collect();
        assert_eq!(optional, BTreeSet::from(NOT_REQUIRED));
        let required: BTreeSet<&str> = required_engines().collect();
        // Built in, in Rust as a plug-in, in C, in Go, a variant, and a server.
        for name in ["null", "redb", "persy", "null-c", "rocksdb", "grocksdb", "go-btree-memory", "etcd"] {
            assert!(required.contains(name), "{name}: {required:?}");
        }
        let text = "name = \"a, b\"\nupstream = \"u\"\nlicence = \"l\"\nfamily = \"lsm\"\nlanguage = \"C\"\nbuild = \"b\"\n\
             get = \"g\"\nneeds_env = []\nfairness = \"f\"\n";
        let required =
            |text: &str| parse("a", text).unwrap().iter().map(|known| known.is_required).collect::<Vec<_>>();
        assert_eq!(required(text), [true, true]);
        assert_eq!(required(&format!("required = false\n{text}")), [false, false]);
    }

    #[test]
    fn what_a_processor_lacks_is_named() {
        let needed = ["avx512f", "avx2", "avx512bw"].map(String::from);
        let info = "processor\t: 0\nflags\t\t: fpu avx avx2 avx512fp16\nbugs\t\t:\n";
        assert_eq!(
            lacking(&needed, info).as_deref(),
            Some("its library needs avx512f, avx512bw, which this processor does not have")
        );
        assert_eq!(lacking(&needed, "flags : avx512bw avx2 avx512f\n"), None);
        assert_eq!(lacking(&needed, "processor : 0\n"), None, "it is not known what it has");
    }

    #[test]
    fn an_engine_that_needs_more_than_every_processor_has_says_so() {
        let needing: Vec<&Known> = catalogue().iter().filter(|known| !known.needs_cpu.is_empty()).collect();
        assert!(needing.iter().any(|known| known.folder == "kvdk"), "{needing:?}");
        assert_eq!(lacking_here("no such engine"), None);
    }

    #[test]
    fn a_fault_of_an_engine_that_its_page_tells_of_is_declared() {
        let tree = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines");
        let mut pages = 0;
        for (folder, text) in FILES {
            let page = std::fs::read_to_string(tree.join(folder).join("README.md")).unwrap();
            let tells = ["Faults found", "fault of the engine", "Contrary to the manual"];
            if tells.iter().any(|words| page.contains(words)) {
                pages += 1;
                assert!(
                    text.contains("[[defect]]"),
                    "engines/{folder}: README.md tells of an undeclared defect"
                );
            }
        }
        assert!(pages >= 5, "the words of the pages have changed: {pages} of them tell of faults");
    }

    #[test]
    fn the_catalogue_is_that_of_the_tree() {
        let tree = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines");
        let (mut there, mut programs) = (BTreeSet::new(), BTreeSet::new());
        for parent in ["", "go/", "servers/"] {
            for entry in std::fs::read_dir(tree.join(parent)).unwrap().flatten() {
                if let Ok(text) = std::fs::read_to_string(entry.path().join("engine.toml")) {
                    let folder = format!("{parent}{}", entry.file_name().into_string().unwrap());
                    for ending in ["c", "cc", "go", "rs"] {
                        let program =
                            std::fs::read_to_string(entry.path().join(format!("report.{ending}.in")));
                        programs.extend(program.ok().map(|text| (folder.clone(), ending.to_string(), text)));
                    }
                    there.insert((folder, text));
                }
            }
        }
        let embedded = FILES.iter().map(|(folder, text)| (folder.to_string(), text.to_string()));
        assert!(
            there == embedded.collect(),
            "a folder of engines was added or removed since the build: `touch engines/plugins.rs` and build again"
        );
        let embedded = REPORTS
            .iter()
            .map(|(folder, ending, text)| (folder.to_string(), ending.to_string(), text.to_string()));
        assert!(
            programs == embedded.collect(),
            "a program for reports was added or removed since the build: `touch engines/plugins.rs` and build again"
        );
    }

    #[test]
    fn variants_share_a_file_and_may_differ_in_family() {
        let text = "name = \"a, a-hash\"\nupstream = \"u\"\nlicence = \"l\"\nfamily = \"b+tree, hash\"\nlanguage = \"C\"\n\
             build = \"b\"\nget = \"g\"\nneeds_env = []\nfairness = \"f\"\n";
        let found = parse("a", text).unwrap();
        let pairs: Vec<_> = found.iter().map(|known| (&known.name[..], &known.family[..])).collect();
        assert_eq!(pairs, [("a", "b+tree"), ("a-hash", "hash")]);
        let three = text.replace("b+tree, hash", "b+tree, hash, lsm");
        assert!(parse("a", &three).unwrap_err().to_string().contains("one for each of the 2 names"));
        assert!(found.iter().all(|known| known.default.is_none()));
        let clustered = format!("nodes = \"-, shards\"\n{text}");
        let nodes: Vec<_> = parse("a", &clustered).unwrap().into_iter().map(|known| known.nodes).collect();
        assert_eq!(nodes, [None, Some("shards".to_string())]);
        let disturbed = format!("members = \"nodes, shards/copies\"\n{text}");
        let members: Vec<_> =
            parse("a", &disturbed).unwrap().into_iter().map(|known| known.members).collect();
        let value = |option: &str| {
            [("nodes", 3), ("shards", 2), ("copies", 4)].into_iter().find(|(name, _)| *name == option)
        };
        let counts: Vec<_> = members
            .iter()
            .map(|own| own.as_ref().and_then(|own| own.count(|option| value(option).map(|(_, count)| count))))
            .collect();
        assert_eq!(counts, [Some((3, 2)), Some((10, 8))]);
        let marked = format!("default = \"-, b\"\n{text}");
        let places: Vec<_> = parse("a", &marked).unwrap().into_iter().map(|known| known.default).collect();
        assert_eq!(places, [None, Some("b".to_string())]);
        let three = marked.replace("-, b", "-, b, c");
        assert!(parse("a", &three).unwrap_err().to_string().contains("`default` must have one value"));
        assert!(
            parse("a", &text.replace("get =", "got ="))
                .unwrap_err()
                .to_string()
                .contains("engines/a/engine.toml")
        );
    }
}
