//! The options, and who asks: passwords come from a file, from the URL, or from the command line.

use super::address::{self, Address};
use kvdyno_driver::abi::kv_option;
use kvdyno_driver::{Error, option};

/// The password of a URL that the command line has taken out of it, for the record would show it.
const PASSWORD: &str = "KVDYNO_URL_PASSWORD";

pub(super) const OPTIONS: [kv_option; 9] = [
    option(
        c"url",
        c"text",
        c"",
        c"a server that runs: redis://HOST:PORT/DATABASE, rediss://, unix://; else one is started",
    ),
    option(
        c"server",
        c"text",
        c"redis-server",
        c"the program that is started; it takes the configuration of redis-server",
    ),
    option(c"serve", c"text", c"", c"an engine: what is started is `kvdyno serve ENGINE`"),
    option(c"password-file", c"text", c"", c"a file whose first line is the password"),
    option(
        c"database",
        c"choice:empty|flush|keep",
        c"empty",
        c"a database that must be empty, is emptied, or is taken as it is",
    ),
    option(
        c"multi-get",
        c"choice:mget|pipeline",
        c"mget",
        c"joined gets are one command, or one each in a pipeline",
    ),
    option(c"ca-file", c"text", c"", c"certificates to trust with rediss (PEM); else the system's"),
    option(c"cert-file", c"text", c"", c"the client's own certificate (PEM), for servers that ask"),
    option(c"key-file", c"text", c"", c"its key (PEM)"),
];

/// The first line of a file; no name is no password.
pub(super) fn password_in(file: &str) -> Result<Option<String>, Error> {
    if file.is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Error::new(format!("option password-file: {file}: {error}")))?;
    Ok(text.lines().next().map(String::from))
}

/// A server of the user's; the password comes from a file, from its URL, or from the command line that took it out.
pub(super) fn user_address(url: &str, password: Option<String>) -> Result<Address, Error> {
    let mut address = Address::parse(url)?;
    let known = std::env::var(PASSWORD).ok().and_then(|text| address::decoded(&text).ok().flatten());
    address.password = password.or(address.password).or(known);
    Ok(address)
}
