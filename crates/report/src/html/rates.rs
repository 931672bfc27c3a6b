//! The page of a search for rates: its table and its curves in one self-contained file.

use super::document;
use super::page::{Numbers, list};
use crate::chart::{RateCurve, rate_chart};
use crate::markup::{self, Html, html};
use kvdyno_measure::text::Table;

/// What a search has found, for its page.
#[derive(Clone, Debug)]
pub struct RatePage<'a> {
    /// The name of the workload.
    pub workload: &'a str,
    /// The figure of the curves: `response p99`.
    pub figure: &'static str,
    /// What was searched for, in a line.
    pub question: &'a str,
    /// A row for each engine.
    pub table: &'a Table,
    /// Why engines have no rate, a line each.
    pub reasons: &'a [String],
    /// What the columns mean.
    pub legend: &'a str,
    /// A curve for each engine.
    pub curves: &'a [RateCurve],
    /// Where the figures are from.
    pub source: &'a str,
}

/// The page.
pub fn rate_page(found: &RatePage) -> String {
    let title = format!("kvdyno slo: {}", found.workload);
    document(&title, "", "", &|page| page.push_str(body(found, &title).as_str()))
}

fn body(found: &RatePage, title: &str) -> Html {
    let chart = rate_chart(found.workload, found.figure, found.curves);
    html!(
        "<body>\n<header>\n<h1>{}</h1>\n<p class=\"about\">{}<br/>\n{}</p>\n</header>\n<main>\n\
         <section>\n<h2>Rates</h2>\n{}{}<p class=\"about\">{}</p>\n</section>\n{}</main>\n",
        title,
        found.question,
        found.source,
        markup::table(found.table),
        list(found.reasons),
        found.legend,
        chart.map(|chart| {
            let figures = Numbers::default().figures([chart]);
            html!("<section>\n<h2>Response times</h2>\n{}</section>\n", figures)
        })
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, elements, markup, text_of};
    use super::*;
    use crate::escape::HOSTILE;
    use kvdyno_measure::text::Align;
    use roxmltree::Document;

    /// A page in which every text is this one.
    fn page(text: &str) -> String {
        let mut table = Table::with_titles(&[("engine", Align::Left), ("requests/s", Align::Right)]);
        table.push(vec![text.to_string(), "20,000".to_string()]);
        let curve = RateCurve {
            engine: text.to_string(),
            points: vec![(10_000.0, Some(1e5)), (20_000.0, Some(9e5)), (30_000.0, None)],
        };
        rate_page(&RatePage {
            workload: text,
            figure: "response p99",
            question: text,
            table: &table,
            reasons: &[text.to_string()],
            legend: text,
            curves: &[curve],
            source: text,
        })
    }

    #[test]
    fn the_page_has_the_table_the_curves_and_the_reasons_and_needs_no_other_file() {
        let made = page("lmdb");
        check(&made);
        let markup = markup(&made);
        let document = Document::parse(&markup).unwrap();
        let texts = |name: &str| elements(&document, name).into_iter().map(text_of).collect::<Vec<_>>();
        assert_eq!(texts("td"), ["lmdb", "20,000"]);
        assert_eq!(texts("li"), ["lmdb"]);
        assert_eq!(texts("figcaption"), ["lmdb: response p99 by requests per second"]);
        assert_eq!(elements(&document, "svg").len(), 1);
        // Without a known point there is no chart, and the table is still there.
        let mut table = Table::with_titles(&[("engine", Align::Left)]);
        table.push(vec!["lmdb".to_string()]);
        let bare = rate_page(&RatePage {
            workload: "w",
            figure: "response p99",
            question: "",
            table: &table,
            reasons: &[],
            legend: "",
            curves: &[],
            source: "",
        });
        check(&bare);
        assert!(bare.contains("<td>lmdb</td>") && !bare.contains("<svg"), "{bare}");
    }

    #[test]
    fn no_name_becomes_markup() {
        for text in HOSTILE {
            let made = page(text);
            check(&made);
            assert!(made.is_ascii() && !made.contains("<script>alert"), "{text:?}");
        }
    }
}
