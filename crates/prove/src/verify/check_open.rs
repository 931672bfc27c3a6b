//! Checks of open: the effective settings, options, errors, and repeated opening of sessions.

use super::act::Act;
use super::failure::{CallError, Failure};
use super::subject::{Context, Setup, VALUE_BYTES, open_database};
use super::{Found, skip};
use crate::machine::MachineError;
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, OptionInfo, OptionKind};
use kvdyno_core::runner::option_value;
use std::fs;

/// Determines what the other checks need to know: effective capabilities, and which values the engine accepts.
/// Returns the library's version.
pub(super) fn probe(context: &mut Context<'_>) -> Result<String, Failure> {
    let mut setup = context.setup()?;
    setup.value_bytes = VALUE_BYTES;
    setup.out_bytes = VALUE_BYTES;
    setup.ops = 2;
    let mut subject = context.open(setup)?;
    let effective = subject.database()?.effective().clone();
    context.facts.capabilities = effective.capabilities;
    if context.engine.stores_nothing() {
        subject.close()?;
        return Ok(effective.version);
    }
    let lengths = [VALUE_BYTES, 16 << 10, 4 << 10, 1 << 10];
    let mut taken = None;
    for (number, length) in lengths.into_iter().enumerate() {
        let key = context.key(&format!("length{number}"));
        if subject.one(Act::put(&key, &vec![7; length]))?.status == KV_OK {
            taken = Some(length);
            break;
        }
    }
    let taken = taken.ok_or_else(|| Failure::Broken("the engine refuses a value of 1024 bytes".into()))?;
    if taken < VALUE_BYTES {
        context.note(format!("values of more than {taken} bytes are refused"));
    }
    context.facts.value_bytes = taken;
    subject.close()?;
    Ok(effective.version)
}

/// Rule 10: effective version and settings. (Each open checks that the level and the capabilities are declared ones.)
pub(super) fn effective(context: &Context<'_>) -> Found {
    let setup = context.setup()?;
    let database = open_database(context.engine, &setup)?;
    let effective = database.effective().clone();
    database.close().map_err(CallError::of("close"))?;
    if effective.version.is_empty() {
        return Err("rule 10: open does not report the library's version".into());
    }
    let is_said = |name: &str| {
        let by_field = name == "compression" && effective.compression.is_some();
        by_field || effective.settings.iter().any(|(said, _)| said == name)
    };
    if let Some(option) = context.engine.options().iter().find(|option| !is_said(&option.name)) {
        let name = &option.name;
        return Err(
            format!("rule 10: open does not report the effective value of the option `{name}`").into()
        );
    }
    if effective.compression.is_none() {
        context.note("open does not report the effective compression".into());
    }
    Ok(())
}

fn open_with(
    context: &Context<'_>,
    name: &str,
    value: &str,
) -> Result<Result<Database, CallError>, MachineError> {
    let mut setup = context.setup()?;
    setup.settings.retain(|(other, _)| other != name);
    setup.settings.push((name.into(), value.into()));
    Ok(open_database(context.engine, &setup))
}

/// An option that must be refused with an error text.
fn refused(context: &Context<'_>, name: &str, value: &str) -> Found {
    match open_with(context, name, value)? {
        Ok(database) => {
            database.close().map_err(CallError::of("close"))?;
            Err(format!("rule 10: open accepts the invalid option `{name}={value}`").into())
        }
        Err(refusal) => check_text(&refusal),
    }
}

/// An error of open must have a text.
fn check_text(refusal: &CallError) -> Found {
    let said = refusal.error.to_string();
    let silent =
        ["error without a text", "not supported by this engine", "open succeeded but returned no database"];
    if said.is_empty() || silent.contains(&said.as_str()) {
        Err("open failed without a text".into())
    } else {
        Ok(())
    }
}

/// Rule 10: an unknown option is refused; a declared option accepts its default and refuses invalid values.
pub(super) fn options(context: &Context<'_>) -> Found {
    refused(context, "no-such-option", "1")?;
    for option in context.engine.options() {
        option_is_honoured(context, &option)?;
    }
    Ok(())
}

fn option_is_honoured(context: &Context<'_>, option: &OptionInfo) -> Found {
    let OptionInfo { name, kind, default_value, help } = option;
    if name.is_empty() || help.is_empty() {
        return Err(format!("rule 10: an option has no name or no help: `{name}`").into());
    }
    let default = option_value(kind, default_value).map_err(|error| {
        format!("rule 10: the default of the option `{name}` is `{default_value}`, which type {kind} refuses: {error}")
    });
    let default = default?;
    // What is empty by default and given by the user may be what the engine cannot do without: a cluster's address.
    let is_given = context.setup()?.settings.iter().any(|(given, _)| given == name);
    if !(is_given && default_value.is_empty()) {
        // An unknown type is reported below.
        let fine = open_with(context, name, &default)?;
        let fine = fine.map_err(|error| {
            Failure::from(error).at(format!("the option `{name}` refuses its default `{default_value}`"))
        })?;
        fine.close().map_err(CallError::of("close"))?;
    }
    match kind {
        OptionKind::Choice(choices) => {
            refused(context, name, "no-such-choice")?;
            for choice in choices {
                match open_with(context, name, choice)? {
                    Ok(database) => {
                        database.close().map_err(CallError::of(format!("close with {name}={choice}")))?
                    }
                    Err(refusal) => {
                        check_text(&refusal)?;
                        context.note(format!("{name}={choice} does not open: {refusal}"));
                    }
                }
            }
            Ok(())
        }
        OptionKind::Bytes | OptionKind::Count => {
            for nonsense in ["banana", "-1", "", "12 apples"] {
                refused(context, name, nonsense)?;
            }
            Ok(())
        }
        OptionKind::Flag => refused(context, name, "maybe"),
        OptionKind::Text => Ok(()),
        OptionKind::Unknown(kind) => {
            Err(format!("rule 10: the option `{name}` has the unknown type `{kind}`").into())
        }
    }
}

/// What cannot be opened is an error with a text.
pub(super) fn errors(context: &Context<'_>) -> Found {
    // An engine in memory ignores the folder; at another level it may use it.
    for level in [KV_NONE, KV_PROCESS, KV_POWER] {
        let mut setup = Setup { level, ..context.setup()? };
        let is_kept = match open_database(context.engine, &setup) {
            Ok(database) => {
                let is_kept = database.effective().capabilities & KV_IN_MEMORY == 0;
                database.close().map_err(CallError::of("close"))?;
                is_kept
            }
            Err(_) => false,
        };
        if !is_kept {
            continue;
        }
        let file = context.folder()?.join("a-file");
        fs::write(&file, b"no folder").map_err(MachineError::file("write", &file))?;
        setup.folder = file;
        return match open_database(context.engine, &setup) {
            Ok(_) => Err("open accepts a file as its folder".into()),
            Err(refusal) => check_text(&refusal),
        };
    }
    skip("the engine is in memory and ignores the folder")
}

/// Sessions are opened and closed repeatedly, and several are open at once.
pub(super) fn sessions(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let keeps = !context.engine.stores_nothing();
    let key = context.key("kept");
    if keeps {
        subject.run(&[Act::put(&key, b"over sessions")])?;
    }
    for _ in 0..8 {
        subject.renew_session()?;
        if keeps {
            subject.run(&[Act::get(&key)])?;
        }
    }
    let stats = subject.database()?.stats().map_err(CallError::of("stats"))?;
    if let Some((name, _)) = stats.iter().find(|(name, value)| name.is_empty() || value.is_empty()) {
        return Err(format!("stats returns a line that is not name=value: `{name}`").into());
    }
    Ok(subject.close()?)
}
