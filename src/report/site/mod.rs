//! A site of many runs: engines x workloads x machines, two engines side by side, one engine over its versions. Files
//! that need nothing but each other, so that they can be opened from a disk.

mod collect;
mod engine;
mod index;
mod names;

pub use collect::Site;

use super::html::document;
use super::layout::Page;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The folder of the engines' pages.
const ENGINES: &str = "engines";

impl Site {
    /// The site's own pages: the first one, and one for each engine. Those of the runs are what [`Site::add`] gave.
    pub fn pages(&self) -> Vec<Page> {
        let page = |folder: Option<&str>, file: String, title: &str, body: &dyn Fn(&mut String)| Page {
            folder: folder.map(ToString::to_string),
            file,
            text: document(title, STYLE, SCRIPT, body),
        };
        let title = "kvdyno: engines, workloads, machines";
        let mut pages = vec![page(None, "index.html".to_string(), title, &|text| index::body(self, text))];
        for engine in self.engines() {
            let title = format!("kvdyno: {engine}");
            let body = |text: &mut String| engine::body(self, engine, text);
            pages.push(page(Some(ENGINES), self.engine_file(engine), &title, &body));
        }
        pages
    }
}

#[cfg(test)]
mod tests;
