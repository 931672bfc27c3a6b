//! Numbers, sizes and lists as sentences have them, and lines that fit a terminal.

use crate::generator::SizeSpec;

/// Characters of a line.
const WIDTH: usize = 100;

/// `1,234,567`.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 key`, `2,000 keys`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// `50 %`, `0.1 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => items.concat(),
    }
}

/// Sizes in words.
pub fn size(size: &SizeSpec) -> String {
    let bytes = |bytes: u32| counted(bytes.into(), "byte", "bytes");
    match size {
        SizeSpec::Fixed(size) => bytes(*size),
        SizeSpec::Uniform(least, most) => {
            format!("{} to {}, each size as likely", number((*least).into()), bytes(*most))
        }
        SizeSpec::Zipf(least, most) => {
            format!("{} to {}, small ones likelier", number((*least).into()), bytes(*most))
        }
        SizeSpec::Normal(mean, deviation) => format!("about {mean} bytes (standard deviation {deviation})"),
        SizeSpec::Histogram(bars) => {
            let all: f64 = bars.iter().map(|(_, weight)| weight).sum();
            let bar = |(size, weight): &(u32, f64)| format!("{} ({})", bytes(*size), percent(weight / all));
            listed(&bars.iter().map(bar).collect::<Vec<_>>())
        }
    }
}

/// A paragraph in lines: `head` stands before the first, and the others have a margin of four where there is a head.
/// Nothing of nothing.
pub fn wrapped(head: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let margin = if head.is_empty() { "" } else { "    " };
    let mut lines = String::new();
    let mut line = head.to_string();
    let mut is_begun = false;
    // A number and its sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if is_begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{line}\n");
            (line, is_begun) = (margin.to_string(), false);
        }
        if is_begun {
            line.push(' ');
        }
        line += word;
        is_begun = true;
    }
    (lines + &line + "\n").replace('\u{a0}', " ")
}
