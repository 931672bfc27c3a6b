//! Passwords in the URLs of options. Records and the process list show options, so passwords are passed in the environment.

use super::error::CliError;

/// The environment variable from which a driver reads the password of its URL.
const VARIABLE: &str = "KVDYNO_URL_PASSWORD";

/// Removes the password from the URL in a text. Returns the text and the password.
pub fn split_password(text: &str) -> (String, Option<String>) {
    let unchanged = || (text.to_string(), None);
    let Some((scheme, rest)) = text.split_once("://") else { return unchanged() };
    let Some((login, server)) = rest.rsplit_once('@') else { return unchanged() };
    let Some((user, password)) = login.split_once(':').filter(|(_, password)| !password.is_empty()) else {
        return unchanged();
    };
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    (format!("{scheme}://{user}{server}"), Some(password.to_string()))
}

/// The environment variables that trials need: the password from the URLs of the options.
pub fn environment(options: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let mut found: Vec<String> = options.iter().filter_map(|option| split_password(option).1).collect();
    found.dedup();
    if found.len() > 1 {
        return Err(CliError::usage("the URLs of this run contain several passwords; only one is supported")
            .hint("remove them from the URLs and use files: --option redis.password-file=FILE"));
    }
    Ok(found.into_iter().map(|password| (VARIABLE.to_string(), password)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_is_removed() {
        for (text, without, password) in [
            ("redis.url=redis://:secret@host:1/2", "redis.url=redis://host:1/2", Some("secret")),
            ("redis://user:se:cr@et@host", "redis://user@host", Some("se:cr@et")),
            ("redis.url=rediss://user@host/1", "redis.url=rediss://user@host/1", None),
            ("unix://:p@/tmp/s?db=1", "unix:///tmp/s?db=1", Some("p")),
            ("redb.page=4k", "redb.page=4k", None),
        ] {
            assert_eq!(split_password(text), (without.to_string(), password.map(String::from)), "{text}");
        }
        let several = ["a=redis://:x@h", "a=redis://:y@h"].map(String::from);
        assert!(environment(&several).is_err());
        assert_eq!(environment(&several[..1]).unwrap(), [(VARIABLE.to_string(), "x".to_string())]);
    }
}
