//! Formats numbers, sizes and lists for sentences, and wraps lines to fit a terminal.

use crate::generator::SizeSpec;

/// The maximum length of a line, in characters.
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

/// `second`, `third`, `4th`, `21st`.
pub fn ordinal(count: u64) -> String {
    match (count, count % 10, count % 100) {
        (2, ..) => "second".to_string(),
        (3, ..) => "third".to_string(),
        (_, 1, rest) if rest != 11 => format!("{}st", number(count)),
        (_, 2, rest) if rest != 12 => format!("{}nd", number(count)),
        (_, 3, rest) if rest != 13 => format!("{}rd", number(count)),
        _ => format!("{}th", number(count)),
    }
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
            format!("{} to {}, all sizes equally likely", number((*least).into()), bytes(*most))
        }
        SizeSpec::Zipf(least, most) => {
            format!("{} to {}, small sizes more likely", number((*least).into()), bytes(*most))
        }
        SizeSpec::Normal(mean, deviation) => format!("about {mean} bytes (standard deviation {deviation})"),
        SizeSpec::Histogram(bars) => {
            let all: f64 = bars.iter().map(|(_, weight)| weight).sum();
            let bar = |(size, weight): &(u32, f64)| format!("{} ({})", bytes(*size), percent(weight / all));
            listed(&bars.iter().map(bar).collect::<Vec<_>>())
        }
    }
}

/// Wraps a paragraph: the first line begins with `head`, and the others are indented by four spaces if there is a head.
/// An empty text stays empty.
pub fn wrapped(head: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let margin = if head.is_empty() { "" } else { "    " };
    let mut lines = String::new();
    let mut line = head.to_string();
    let mut is_begun = false;
    // Keep a number and its percent sign together.
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
