//! Unique file names from arbitrary names: lower-case letters, digits, `-` and `_`.

use std::collections::HashMap;

/// The assigned names.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: HashMap<String, String>,
}

/// The maximum length of a name, without the number that makes it unique.
const LONGEST: usize = 80;

impl Names {
    /// The file name for a name, the same on each call, without folder and extension.
    pub fn of(&mut self, name: &str) -> String {
        if let Some(known) = self.given.get(name) {
            return known.clone();
        }
        let safe = |letter: char| match letter {
            'a'..='z' | '0'..='9' | '-' | '_' => letter,
            'A'..='Z' => letter.to_ascii_lowercase(),
            _ => '_',
        };
        let base: String = name.chars().take(LONGEST).map(safe).collect();
        let base = if base.is_empty() { "_".to_string() } else { base };
        let is_free = |candidate: &String| !self.given.values().any(|taken| taken == candidate);
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let file = [base.clone()].into_iter().chain(numbered).find(is_free).unwrap_or(base);
        self.given.insert(name.to_string(), file.clone());
        file
    }

    /// The file name that was assigned to this name, if any.
    pub fn known(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::escape::HOSTILE;

    #[test]
    fn file_names_stay_in_their_folder_and_are_unique() {
        let mut names = Names::default();
        let mut seen = std::collections::HashSet::new();
        for name in HOSTILE.iter().chain(&["../../x", "..", "a/b", "a_b", "A_B", "CON"]) {
            let file = names.of(name);
            assert!(file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{file}");
            assert!(!file.is_empty() && file.len() < 100 && seen.insert(file.clone()), "{name:?}: {file}");
            assert_eq!(names.of(name), file);
        }
    }
}
