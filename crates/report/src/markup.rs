//! Markup that is safe against injection: all text is escaped when it is added, and there is no other way to add it.

use kvdyno_measure::text::{Align, Column, Table, plain_text};

/// HTML or SVG, built from templates in this program and from escaped values. Both are ASCII.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

/// A value for a template's `{}`, in text or in a quoted attribute.
pub(super) trait Escaped {
    /// Adds the value, escaped.
    fn put(&self, out: &mut Html);
}

/// Markup from a template and the values for its `{}`, each of them escaped: `html!("<b>{}</b>", name)`.
macro_rules! html {
    ($template:literal $(, $value:expr)* $(,)?) => {
        $crate::markup::Html::filled($template, &[$(&$value as &dyn $crate::markup::Escaped),*])
    };
}
pub(super) use html;

impl Html {
    /// Constant markup from this program, unescaped.
    pub(super) fn constant(markup: &'static str) -> Html {
        Html(markup.to_string())
    }

    /// The template with each `{}` replaced by the next value. If their numbers differ, which is a mistake of the caller,
    /// surplus values are dropped and surplus `{}` stay empty.
    pub(super) fn filled(template: &'static str, values: &[&dyn Escaped]) -> Html {
        debug_assert_eq!(template.matches("{}").count(), values.len(), "{template}");
        let mut filled = Html::default();
        let mut values = values.iter();
        for (place, part) in template.split("{}").enumerate() {
            if place > 0
                && let Some(value) = values.next()
            {
                value.put(&mut filled);
            }
            filled.0.push_str(part);
        }
        filled
    }

    /// Appends other markup.
    pub(super) fn push(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    /// The markup as a string slice.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The markup as a string.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// Whether the markup is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<Parts: IntoIterator<Item = Html>>(parts: Parts) -> Html {
        let mut all = Html::default();
        parts.into_iter().for_each(|part| all.push(&part));
        all
    }
}

impl Escaped for Html {
    fn put(&self, out: &mut Html) {
        out.push(self);
    }
}

impl Escaped for str {
    fn put(&self, out: &mut Html) {
        for letter in plain_text(self).chars() {
            match letter {
                '<' => out.0.push_str("&lt;"),
                '>' => out.0.push_str("&gt;"),
                '&' => out.0.push_str("&amp;"),
                '"' => out.0.push_str("&quot;"),
                '\'' => out.0.push_str("&#39;"),
                _ => out.0.push(letter),
            }
        }
    }
}

impl Escaped for String {
    fn put(&self, out: &mut Html) {
        self.as_str().put(out);
    }
}

impl<Value: Escaped + ?Sized> Escaped for &Value {
    fn put(&self, out: &mut Html) {
        (**self).put(out);
    }
}

/// `None` adds nothing.
impl<Value: Escaped> Escaped for Option<Value> {
    fn put(&self, out: &mut Html) {
        self.iter().for_each(|value| value.put(out));
    }
}

impl Escaped for usize {
    fn put(&self, out: &mut Html) {
        out.0.push_str(&self.to_string());
    }
}

/// A coordinate, rounded to a tenth of a unit and without trailing zeros; 0 if it is not finite.
impl Escaped for f64 {
    fn put(&self, out: &mut Html) {
        let text = format!("{:.1}", if self.is_finite() { *self } else { 0.0 });
        let short = text.strip_suffix(".0").unwrap_or(&text);
        out.0.push_str(if short == "-0" { "0" } else { short });
    }
}

/// The maximum length of a cell that is not wrapped, in characters.
const LONG_CELL: usize = 48;

/// A table with a scroll bar if it is too wide. Cells with long texts are wrapped.
pub(super) fn table(table: &Table) -> Html {
    // Only the cells of the rarer alignment have a class, because there are thousands of cells.
    let right = table.columns().iter().filter(|column| column.align == Align::Right).count();
    let usual = if 2 * right > table.columns().len() { Align::Right } else { Align::Left };
    let class = |column: &Column, cell: &str| match column.align {
        Align::Left if cell.len() > LONG_CELL => Html::constant(" class=\"long\""),
        align if align == usual => Html::default(),
        Align::Right => Html::constant(" class=\"r\""),
        Align::Left => Html::constant(" class=\"l\""),
    };
    let title = |column: &Column| html!("<th scope=\"col\"{}>{}</th>", class(column, ""), column.title);
    let usual = if usual == Align::Right { " class=\"r\"" } else { "" };
    let titles: Html = table.columns().iter().map(title).collect();
    let cell = |(column, cell): (&Column, &String)| html!("<td{}>{}</td>", class(column, cell), cell);
    let row = |row: &Vec<String>| {
        html!("<tr>{}</tr>\n", table.columns().iter().zip(row).map(cell).collect::<Html>())
    };
    html!(
        "<div class=\"scroll\" tabindex=\"0\"><table{}>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
        Html::constant(usual),
        titles,
        table.rows().iter().map(row).collect::<Html>()
    )
}

#[cfg(test)]
mod tests {
    use super::super::escape::HOSTILE;

    #[test]
    fn no_text_becomes_markup() {
        for text in HOSTILE {
            let made = html!("<b title=\"{}\">{}</b>", text, text.to_string());
            let inside = made.as_str().strip_prefix("<b title=\"").unwrap().strip_suffix("</b>").unwrap();
            let (attribute, shown) = inside.split_once("\">").unwrap();
            for part in [attribute, shown] {
                assert!(!part.contains(['<', '>', '"', '\'']), "{text:?} became {part:?}");
                assert!(part.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?} became {part:?}");
                for (at, _) in part.match_indices('&') {
                    let entity = part[at + 1..].split(';').next().unwrap();
                    assert!(["lt", "gt", "amp", "quot", "#39"].contains(&entity), "{text:?}: {part:?}");
                }
            }
        }
    }

    #[test]
    fn braces_in_a_value_are_not_replaced() {
        assert_eq!(html!("{}-{}", "{}", "b").as_str(), "{}-b");
        assert_eq!(html!("<i>{}</i>", html!("<b>{}</b>", "a&b")).as_str(), "<i><b>a&amp;b</b></i>");
        assert_eq!(html!("{}{}", Some("a"), None::<String>).as_str(), "a");
    }

    #[test]
    fn numbers_are_short_and_finite() {
        for (number, text) in [(1.0, "1"), (1.25, "1.2"), (-0.01, "0"), (f64::NAN, "0"), (1e3, "1000")] {
            assert_eq!(html!("{}", number).as_str(), text);
        }
        assert_eq!(html!("{}", 12_usize).as_str(), "12");
    }
}
