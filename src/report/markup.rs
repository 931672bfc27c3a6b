//! Markup that cannot carry what it was not meant to: text enters it escaped, and there is no other way in.

use super::escape::plain_text;

/// HTML or SVG. It is made of templates that stand in this program and of values, which are escaped; both are ASCII.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

/// What may stand in a template's `{}`: in text, and in an attribute between quotes.
pub(super) trait Escaped {
    /// Adds it, harmless.
    fn put(&self, out: &mut Html);
}

/// Markup of a template and the values for its `{}`, each of them escaped: `html!("<b>{}</b>", name)`.
macro_rules! html {
    ($template:literal $(, $value:expr)* $(,)?) => {
        $crate::report::markup::Html::filled($template, &[$(&$value as &dyn $crate::report::markup::Escaped),*])
    };
}
pub(super) use html;

impl Html {
    /// Markup that stands in this program, as it is.
    pub(super) fn constant(markup: &'static str) -> Html {
        Html(markup.to_string())
    }

    /// The template with its `{}` filled in turn. A template with another number of them than values is a mistake of
    /// the caller: values are left out, or `{}` stays empty.
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

    /// Adds the other behind it.
    pub(super) fn push(&mut self, other: &Html) {
        self.0.push_str(&other.0);
    }

    /// The markup as text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The markup as text.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// True if there is nothing in it.
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

/// Nothing where there is none.
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

/// A place in a picture: to a tenth of a unit, as short as it goes, and 0 for what is no number.
impl Escaped for f64 {
    fn put(&self, out: &mut Html) {
        let text = format!("{:.1}", if self.is_finite() { *self } else { 0.0 });
        let short = text.strip_suffix(".0").unwrap_or(&text);
        out.0.push_str(if short == "-0" { "0" } else { short });
    }
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
    fn braces_of_a_value_are_no_template() {
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
