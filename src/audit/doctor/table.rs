//! The rows of `doctor` as text: name, value, verdict; advice on separate lines below.

use super::{Finding, Verdict};
use std::fmt::{Formatter, Result};

/// Longer values push their verdict to the right instead of widening all rows.
const WIDEST_VALUE: usize = 76;
/// Advice wraps before this column.
const LINE: usize = 110;

pub(super) fn write(out: &mut Formatter<'_>, rows: &[Finding]) -> Result {
    let width =
        |text: fn(&Finding) -> &str| rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
    let name_width = width(|row| &row.name);
    let value_width = width(|row| &row.value).min(WIDEST_VALUE);
    for row in rows {
        let verdict = verdict_text(row.verdict);
        writeln!(out, "{:name_width$}  {:value_width$}  {verdict}", row.name, row.value)?;
        let advice = broken(row.advice.as_deref().unwrap_or_default(), LINE - name_width - 5);
        for (at, line) in advice.iter().enumerate() {
            let mark = if at == 0 { "->" } else { "" };
            writeln!(out, "{:name_width$}  {mark:2} {line}", "")?;
        }
    }
    Ok(())
}

fn verdict_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Info => "info",
        Verdict::Warn => "WARN",
        Verdict::Missing => "missing",
    }
}

/// Wraps a text between words into lines of at most `width` characters; a longer word gets its own line.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
