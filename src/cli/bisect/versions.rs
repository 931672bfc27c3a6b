//! The versions that are searched, as the user lists them.

use super::super::error::CliError;
use crate::cli::turns::Given;
use kvdyno_measure::text::plain_text;
use std::path::Path;

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// Its name, as the user wrote it.
    pub name: String,
    /// What it is; none: it is built when it is needed.
    pub given: Option<Given>,
}

/// Reads the value of --versions.
pub(super) fn read(value: &str, is_built: bool) -> Result<Vec<Version>, CliError> {
    let is_file = Path::new(value).is_file() || !is_built;
    let text = match is_file {
        true => std::fs::read_to_string(value).map_err(|error| {
            let expected = "a file with a line `NAME ARM` for each version; for a list of names, add --build";
            CliError::usage(format!("--versions {}: {error}", plain_text(value)))
                .hint(format!("--versions takes {expected}"))
        })?,
        false => value.replace(',', "\n"),
    };
    let versions = parse(&text, is_built).map_err(|(line, what)| match is_file {
        true => CliError::usage(format!("{}:{line}: {what}", plain_text(value))),
        false => CliError::usage(format!("--versions: {what}")),
    })?;
    if versions.len() < 2 {
        return Err(CliError::usage(format!(
            "--versions {}: it names {} of the two versions that are needed at least",
            plain_text(value),
            versions.len()
        ))
        .hint("name a good version, a bad one, and those between them, in their order"));
    }
    Ok(versions)
}

/// The versions of these lines. An error has the number of its line.
fn parse(text: &str, is_built: bool) -> Result<Vec<Version>, (usize, String)> {
    let mut versions: Vec<Version> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or("").trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| (number + 1, what);
        let (name, arm) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let given = match (arm.trim(), is_built) {
            ("", true) => None,
            (_, true) => {
                return Err(wrong(format!("expected the name of one version, got `{}`", plain_text(line))));
            }
            ("", false) => return Err(wrong(format!("expected NAME ARM, got `{}`", plain_text(line)))),
            (arm, false) => Some(arm.parse().map_err(wrong)?),
        };
        if versions.iter().any(|other| other.name == name) {
            return Err(wrong(format!("two versions are named `{}`", plain_text(name))));
        }
        versions.push(Version { name: plain_text(name), given });
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_an_arm() {
        let text = "# from old to new\n1.0 old/libkvdyno_x.so\n\n 1.1\tlmdb:map=1GiB  # tried\n";
        let versions = parse(text, false).unwrap();
        let names: Vec<&str> = versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!(names, ["1.0", "1.1"]);
        assert_eq!(versions[1].given, "lmdb:map=1GiB".parse().ok());
        assert_eq!(parse("1.0\n1.1\n", true).unwrap().len(), 2);
        for (text, is_built, line) in [
            ("1.0 a.so\n1.1\n", false, 2),
            ("1.0 a.so\n1.0 b.so\n", false, 2),
            ("1.0 a:b\n", false, 1),
            ("\n1.0 a.so\n", true, 2),
            ("1.0\n1.1\n1.0\n", true, 3),
        ] {
            assert_eq!(parse(text, is_built).unwrap_err().0, line, "{text:?}");
        }
    }

    #[test]
    fn a_list_needs_a_command_that_builds() {
        assert_eq!(read("1.0,1.1, 1.2", true).unwrap().len(), 3);
        assert!(read("1.0,1.1", false).is_err());
        assert!(read("1.0", true).unwrap_err().to_string().contains("names 1 of the two"));
        assert!(read(",", true).unwrap_err().to_string().contains("names 0 of the two"));
    }
}
