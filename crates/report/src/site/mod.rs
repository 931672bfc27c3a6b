//! A site of many runs: what to look at first, engines by workloads and machines, a comparison of two engines, and the history of each engine.
//! The files need no server and can be opened from a disk.

mod collect;
mod engine;
mod index;
mod picks;

pub use collect::Site;

use super::html::document;
use super::layout::Page;
use kvdyno_core::results::certificate::Certificate;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The folder with the pages of the engines.
const ENGINES: &str = "engines";

impl Site {
    /// Adds what was certified, in the order of engines and levels.
    pub fn certify(&mut self, mut certificates: Vec<Certificate>) {
        certificates.sort_by_key(Certificate::file_name);
        certificates.dedup();
        self.certificates = certificates;
    }

    /// The site's own pages: the index and one page for each engine. [`Site::add`] returns the pages of the runs.
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
