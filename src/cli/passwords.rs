//! Passwords in the URLs of options: records and the list of processes show options, so they go another way.

use super::error::CliError;

/// Where a driver finds the password of its URL.
const VARIABLE: &str = "KVDYNO_URL_PASSWORD";

/// A text without the password of the URL that it holds, and that password, if there is one.
pub fn apart(text: &str) -> (String, Option<String>) {
    let whole = || (text.to_string(), None);
    let Some((scheme, rest)) = text.split_once("://") else { return whole() };
    let Some((login, server)) = rest.rsplit_once('@') else { return whole() };
    let Some((user, password)) = login.split_once(':').filter(|(_, password)| !password.is_empty()) else {
        return whole();
    };
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    (format!("{scheme}://{user}{server}"), Some(password.to_string()))
}

/// What the processes of a run's trials need in their environment: the password of its options' URLs.
pub fn environment(options: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let mut found: Vec<String> = options.iter().filter_map(|option| apart(option).1).collect();
    found.dedup();
    if found.len() > 1 {
        return Err(CliError::usage("the URLs of this run have several passwords, and a trial is given one")
            .hint("leave them out of the URLs and name files: --option redis.password-file=FILE"));
    }
    Ok(found.into_iter().map(|password| (VARIABLE.to_string(), password)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_out_and_nothing_else_is_changed() {
        let told = |text: &str| apart(text);
        for (text, without, password) in [
            ("redis.url=redis://:secret@host:1/2", "redis.url=redis://host:1/2", Some("secret")),
            ("redis://user:se:cr@et@host", "redis://user@host", Some("se:cr@et")),
            ("redis.url=rediss://user@host/1", "redis.url=rediss://user@host/1", None),
            ("unix://:p@/tmp/s?db=1", "unix:///tmp/s?db=1", Some("p")),
            ("redb.page=4k", "redb.page=4k", None),
        ] {
            assert_eq!(told(text), (without.to_string(), password.map(String::from)), "{text}");
        }
        let several = ["a=redis://:x@h", "a=redis://:y@h"].map(String::from);
        assert!(environment(&several).is_err());
        assert_eq!(environment(&several[..1]).unwrap(), [(VARIABLE.to_string(), "x".to_string())]);
    }
}
