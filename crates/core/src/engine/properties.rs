//! What decides for or against an engine in an application and cannot be measured: the table `properties` of its `engine.toml`.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

/// Properties of an engine. Each is a fact with a source: its documentation, its own code, its headers, or its package's metadata;
/// what none of them supports is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The languages that it can be called from: its own, and those with a maintained binding. Empty: unknown.
    pub callable_from: Vec<String>,
    /// The largest key, bytes.
    pub largest_key: Option<u64>,
    /// The largest value, bytes.
    pub largest_value: Option<u64>,
    /// Where it keeps its data.
    pub storage: Option<Storage>,
    /// Whether several processes may open a database.
    pub processes: Option<Processes>,
    /// Whether space of deleted data is given back to the file system.
    pub space: Option<Space>,
    /// Whether entries expire by themselves.
    pub expiry: Option<Expiry>,
    /// The release that the driver is made for.
    pub release: Option<Release>,
}

/// Where an engine keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// In one file, apart from logs and locks that exist while it is open.
    File,
    /// In a folder of files.
    Folder,
    /// In memory only.
    Memory,
}

/// The processes that may open a database at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processes {
    /// One.
    One,
    /// Several that read, at least while none writes.
    Readers,
    /// Several that read and write.
    Several,
}

/// When space of deleted data is given back to the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// Never: it is used again for other data of the database.
    Kept,
    /// When the application calls for it.
    OnCall,
    /// In the background.
    GivenBack,
}

/// How entries expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expiry {
    /// They do not.
    No,
    /// All after the same time, when files are merged.
    ForAll,
    /// Each after a time of its own.
    ForEach,
}

/// A release of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Its version.
    pub version: String,
    /// When upstream published it, `2026-10-13`.
    pub date: String,
}

macro_rules! words {
    ($name:ident: $($value:ident $words:literal),*) => {
        impl $name {
            /// In words, for people.
            pub fn words(self) -> &'static str {
                match self { $($name::$value => $words),* }
            }
        }
    };
}

words!(Storage: File "one file", Folder "a folder of files", Memory "only memory");
words!(Processes: One "one", Readers "several that read", Several "several");
words!(Space: Kept "kept for other data of the database", OnCall "given back when the application calls for it", GivenBack "given back in the background");
words!(Expiry: No "no", ForAll "all entries after the same time", ForEach "each entry after its own time");

/// The table in a file: a text is one value, or one for each variant, separated by commas; `-` is unknown.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PropertiesFile {
    callable_from: Vec<String>,
    largest_key: String,
    largest_value: String,
    storage: String,
    processes: String,
    space: String,
    expiry: String,
    release: Option<Release>,
}

/// A value that a property cannot have: the property and the value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadValue(pub &'static str, pub String);

/// The value of one variant among `count`. `Err` is a wrong number of values.
fn of_variant<'t>(
    field: &'static str,
    text: &'t str,
    index: usize,
    count: usize,
) -> Result<Option<&'t str>, BadValue> {
    let values: Vec<&str> = text.split(',').map(str::trim).collect();
    let own = match values.len() {
        1 => values[0],
        many if many == count => values[index],
        _ => return Err(BadValue(field, text.to_string())),
    };
    Ok(Some(own).filter(|own| !own.is_empty() && *own != "-"))
}

impl PropertiesFile {
    /// The properties of the variant at this place among `count`.
    pub(super) fn of(&self, index: usize, count: usize) -> Result<Properties, BadValue> {
        fn word<'d, T: Deserialize<'d>>(
            field: &'static str,
            text: Option<&'d str>,
        ) -> Result<Option<T>, BadValue> {
            let parse = |text: &'d str| {
                let deserializer: serde::de::value::StrDeserializer<'d, Error> = text.into_deserializer();
                T::deserialize(deserializer).map_err(|_| BadValue(field, text.to_string()))
            };
            text.map(parse).transpose()
        }
        let own = |field: &'static str, text: &'_ str| -> Result<Option<String>, BadValue> {
            Ok(of_variant(field, text, index, count)?.map(str::to_string))
        };
        let bytes = |field: &'static str, text: &str| -> Result<Option<u64>, BadValue> {
            let parse = |text: String| text.parse::<u64>().map_err(|_| BadValue(field, text));
            own(field, text)?.map(parse).transpose()
        };
        let (storage, processes) = (own("storage", &self.storage)?, own("processes", &self.processes)?);
        let (space, expiry) = (own("space", &self.space)?, own("expiry", &self.expiry)?);
        if let Some(release) = self.release.as_ref().filter(|release| !is_date(&release.date)) {
            return Err(BadValue("release", release.date.clone()));
        }
        Ok(Properties {
            callable_from: self.callable_from.clone(),
            largest_key: bytes("largest_key", &self.largest_key)?,
            largest_value: bytes("largest_value", &self.largest_value)?,
            storage: word("storage", storage.as_deref())?,
            processes: word("processes", processes.as_deref())?,
            space: word("space", space.as_deref())?,
            expiry: word("expiry", expiry.as_deref())?,
            release: self.release.clone(),
        })
    }
}

/// Whether a text is a date like `2026-10-13`, so that dates compare as texts.
pub fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number = |part: &&str, len: usize, most: u32| {
        part.len() == len && part.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number))
    };
    matches!(&parts[..], [year, month, day] if is_number(year, 4, 9999) && is_number(month, 2, 12) && is_number(day, 2, 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, index: usize, count: usize) -> Result<Properties, BadValue> {
        toml::from_str::<PropertiesFile>(text).expect("the fields are known").of(index, count)
    }

    #[test]
    fn variants_have_their_own_values_and_a_dash_is_unknown() {
        let text = "largest_key = \"511, -\"\nstorage = \"file, folder\"\nexpiry = \"for-each\"\nprocesses = \"readers\"\n";
        let first = parsed(text, 0, 2).unwrap();
        assert_eq!((first.largest_key, first.storage), (Some(511), Some(Storage::File)));
        let second = parsed(text, 1, 2).unwrap();
        assert_eq!((second.largest_key, second.storage), (None, Some(Storage::Folder)));
        assert_eq!((second.expiry, second.processes), (Some(Expiry::ForEach), Some(Processes::Readers)));
        assert_eq!(second.space, None);
    }

    #[test]
    fn other_words_numbers_of_values_and_dates_are_refused() {
        assert_eq!(parsed("storage = \"tape\"", 0, 1), Err(BadValue("storage", "tape".into())));
        assert!(parsed("storage = \"file, file, file\"", 0, 2).is_err());
        assert!(parsed("largest_key = \"many\"", 0, 1).is_err());
        assert!(parsed("release = { version = \"1\", date = \"May 2026\" }", 0, 1).is_err());
        assert!(toml::from_str::<PropertiesFile>("colour = \"red\"").is_err());
        assert!(is_date("2026-10-13") && !is_date("2026-13-01") && !is_date("2026-1-01") && !is_date("2026"));
    }
}
