//! The HTML report in a browser: no errors, no requests, and what its script does. In `make test-all`; it needs Chromium.
//!
//! KVDYNO_PAGE names another page than the fixture's, and KVDYNO_SHOTS a folder for pictures of it.

#[path = "browser/devtools.rs"]
mod devtools;

use devtools::Browser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Texts of charts that are cut off at an edge, and pairs of them that lie on each other.
const BAD_TEXTS: &str = r#"(() => {
  const bad = [];
  for (const svg of document.querySelectorAll("svg.chart")) {
    const edge = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.getClientRects().length);
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [name, box] of boxes) {
      const out = box.left < edge.left - 1 || box.right > edge.right + 1 || box.bottom > edge.bottom + 1;
      if (out) bad.push(`cut off: ${name} in ${svg.getAttribute("aria-label")}`);
    }
    boxes.forEach(([one, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) bad.push(`${one} lies on ${other} in ${svg.getAttribute("aria-label")}`);
    }));
  }
  return bad;
})()"#;

fn report(folder: &Path) -> PathBuf {
    if let Some(page) = std::env::var_os("KVDYNO_PAGE") {
        return std::fs::canonicalize(page).expect("KVDYNO_PAGE names a page");
    }
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-v1");
    let made = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
        .args(["report", "--format", "html"])
        .arg(results)
        .output()
        .expect("it was built for this test");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let page = folder.join("report.html");
    std::fs::write(&page, made.stdout).expect("the folder is there");
    page
}

/// The browser's command; none if there is none here.
fn chromium() -> Option<&'static str> {
    let is_here = |command: &&str| Command::new(command).arg("--version").output().is_ok();
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_here)
}

fn keep_picture(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("KVDYNO_SHOTS") else { return };
    let picture = browser.call("Page.captureScreenshot", json!({"captureBeyondViewport": true, "format": "png",
        "clip": {"x": 0, "y": 0, "width": if name.contains("400") { 400 } else { 1280 }, "height": 6000, "scale": 1}}));
    let data = picture["data"].as_str().expect("a picture has data");
    let mut decode = Command::new("base64")
        .arg("-d")
        .stdin(std::process::Stdio::piped())
        .stdout(std::fs::File::create(Path::new(&folder).join(name)).expect("KVDYNO_SHOTS is a folder"))
        .spawn()
        .expect("coreutils are here");
    std::io::Write::write_all(&mut decode.stdin.take().expect("it was asked for"), data.as_bytes())
        .expect("it reads");
    decode.wait().expect("it ends");
}

/// Errors of the page, warnings of its policy, and requests beside the page's own.
fn complaints(browser: &Browser, address: &str) -> Vec<Value> {
    let is_bad = |event: &&Value| match event["method"].as_str().unwrap_or("") {
        "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => true,
        "Network.requestWillBeSent" => event["params"]["request"]["url"] != address,
        _ => false,
    };
    browser.events.iter().filter(is_bad).cloned().collect()
}

fn look_at(browser: &mut Browser, address: &str) {
    for width in [1280, 400] {
        for look in ["light", "dark"] {
            browser.show(width, look);
            browser.open(address);
            let over = browser.value("document.documentElement.scrollWidth - innerWidth");
            assert!(over.as_i64() <= Some(0), "at {width} the page is {over} too wide");
            let ground = browser.value("getComputedStyle(document.body).backgroundColor");
            assert_eq!(ground == "rgb(255, 255, 255)", look == "light", "{ground}");
            // What is out of sight is not laid out, and has no boxes.
            browser.value("document.querySelectorAll('.phase').forEach((part) => part.style.contentVisibility = 'visible')");
            browser.value("document.querySelectorAll('details').forEach((part) => part.open = true)");
            let bad = browser.value(BAD_TEXTS);
            assert_eq!(bad, json!([]), "at {width}, {look}");
            keep_picture(browser, &format!("page-{width}-{look}.png"));
        }
    }
    let lines = r#"(() => {
      const box = document.querySelector("figure .scale");
      const shown = (name) => getComputedStyle(box.parentNode.querySelector(`svg .r ${name}`)).display !== "none";
      const seen = [[shown(".lin"), shown(".log")]];
      document.querySelector(`label[for=${box.id}]`).click();
      seen.push([shown(".lin"), shown(".log")]);
      return seen;
    })()"#;
    assert_eq!(browser.value(lines), json!([[true, false], [false, true]]), "the switch of scales");
}

/// The engines of each level of the heat-map, after sorting by the column `read`: they stay below their level.
const HEAT: &str = r#"(() => {
  const heat = document.querySelector("table.heat");
  const column = [...heat.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "read");
  const read = () => [...heat.tBodies].map((body) => [...body.rows].map((row) => row.cells[0].textContent));
  const before = read();
  heat.tHead.rows[0].cells[column].querySelector("button").click();
  const rates = [...heat.tBodies].map((body) => [...body.rows].slice(1).map((row) => value(row.cells[column].textContent)));
  const is_sorted = rates.every((rates) => rates.every((rate, place) => !place || rates[place - 1] <= rate));
  const same = read().every((body, place) => body[0] === before[place][0] && [...body].sort().join() === [...before[place]].sort().join());
  const side = heat.tBodies[0].rows[1].cells[0];
  return [before.length > 1, is_sorted, same, getComputedStyle(side).position];
})()"#;

fn sort_and_filter(browser: &mut Browser) {
    assert_eq!(browser.value(HEAT), json!([true, true, true, "sticky"]), "the heat-map");
    let sorted = r#"(() => {
      const place = (found) => [...found.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "ops/s");
      const table = [...document.querySelectorAll(".phase table")].find((found) => found.tBodies[0].rows.length > 2 && place(found) >= 0);
      const column = place(table);
      const read = () => [...table.tBodies[0].rows].map((row) => row.cells[column].textContent);
      const seen = [read()];
      for (let turn = 0; turn < 2; turn++) {
        table.tHead.rows[0].cells[column].querySelector("button").click();
        seen.push(read());
      }
      return seen;
    })()"#;
    let seen = browser.value(sorted);
    let rates = |at: usize| -> Vec<f64> {
        let number = |text: &Value| {
            let text = text.as_str().unwrap_or("");
            let unit =
                [("k", 1e3), ("M", 1e6), ("G", 1e9)].into_iter().find(|(unit, _)| text.ends_with(unit));
            text.trim_end_matches(['k', 'M', 'G']).parse::<f64>().unwrap_or(0.0)
                * unit.map_or(1.0, |(_, size)| size)
        };
        seen[at].as_array().expect("a column").iter().map(number).collect()
    };
    assert!(rates(1).is_sorted() && rates(2).is_sorted_by(|one, other| one >= other), "{seen}");
    assert_ne!(seen[1], seen[2]);
    let filtered = r#"(() => {
      const chip = document.querySelector("[data-pick]");
      // A line that a chart with many engines shows only if it is picked.
      [...document.querySelectorAll("svg [data-e]")].find((node) => node.dataset.e !== chip.dataset.pick).classList.add("extra");
      chip.click();
      const shown = (nodes, name) => [...new Set([...nodes].filter((node) => node.getClientRects().length).map(name))];
      const found = [chip.dataset.pick, shown(document.querySelectorAll("svg [data-e]"), (node) => node.dataset.e),
        shown(document.querySelectorAll(".phase table tbody tr"), (row) => row.cells[1].textContent).length];
      document.getElementById("all").click();
      found.push(shown(document.querySelectorAll("svg [data-e]"), (node) => node.dataset.e).length);
      return found;
    })()"#;
    let found = browser.value(filtered);
    assert_eq!(found[1], json!([found[0]]), "only the picked engine is in the charts");
    assert!(found[3].as_u64() > Some(1), "all are back: {found}");
}

/// Waits until the page has been drawn where it was scrolled to.
fn still(browser: &mut Browser) {
    browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))");
}

fn point_at(browser: &mut Browser) {
    // Those of phases that only load are folded.
    browser.value("document.querySelector('.phase > .charts .r').scrollIntoView({block: 'center'})");
    still(browser);
    let place = browser.value(
        "(() => { const box = document.querySelector('.phase > .charts .r').getBoundingClientRect(); \
         return [box.x + 40, box.y + box.height / 2] })()",
    );
    let event = json!({"type": "mouseMoved", "x": place[0], "y": place[1]});
    browser.call("Input.dispatchMouseEvent", event);
    let tip = browser
        .value("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent");
    assert!(tip.as_str().is_some_and(|tip| tip.contains("ops/s")), "nothing is told of a bar: {tip}");
    browser.value(
        "document.querySelector('.phase > .charts .r .log polyline').scrollIntoView({block: 'center'})",
    );
    still(browser);
    let place = browser.value(
        "(() => { const line = document.querySelector('.phase > .charts .r .log polyline'); \
         const point = line.points[1]; \
         const at = new DOMPoint(point.x, point.y).matrixTransform(line.getScreenCTM()); return [at.x, at.y] })()",
    );
    browser.call("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": place[0], "y": place[1]}));
    let tip = browser
        .value("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent");
    assert!(tip.as_str().is_some_and(|tip| tip.contains(" at ")), "nothing is told of a point: {tip}");
}

/// What axe-core finds of serious faults; none where npm cannot bring it.
fn accessibility(browser: &mut Browser) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let brought = Command::new("npm")
        .args(["install", "--silent", "--no-audit", "--prefix"])
        .arg(&folder)
        .arg("axe-core@4")
        .status();
    let source = std::fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js"));
    let (Ok(true), Ok(source)) = (brought.map(|status| status.success()), source) else {
        assert!(std::env::var("CI").is_err(), "npm did not bring axe-core");
        println!("skipped: npm did not bring axe-core");
        return;
    };
    for look in ["light", "dark"] {
        browser.show(1280, look);
        browser.value(&format!("{source}; 0"));
        let found = browser.value(
            "axe.run().then((found) => found.violations.filter((fault) => ['serious', 'critical'].includes(fault.impact))\
             .map((fault) => [fault.id, fault.nodes.length, fault.nodes[0].html.slice(0, 200), fault.nodes[0].failureSummary]))",
        );
        assert_eq!(found, json!([]), "{look}");
    }
}

/// The browser's command; says so, and fails in CI, where there is none.
fn wanted_chromium() -> Option<&'static str> {
    let found = chromium();
    if found.is_none() {
        assert!(std::env::var("CI").is_err(), "no Chromium here: apt-get install chromium");
        println!("skipped: no Chromium here (apt-get install chromium)");
    }
    found
}

/// A site of the fixture, or of the runs below KVDYNO_SITE.
fn site(folder: &Path) -> PathBuf {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-v1");
    let results = std::env::var_os("KVDYNO_SITE").map_or(fixture, PathBuf::from);
    let out = folder.join("site");
    let made = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
        .args(["report", "--site"])
        .arg(results)
        .arg("--out")
        .arg(&out)
        .output();
    let made = made.expect("it was built for this test");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    out
}

#[test]
#[ignore = "needs Chromium: `cargo test --test browser -- --ignored`"]
fn the_site_works_in_a_browser() {
    let Some(command) = wanted_chromium() else { return };
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let site = site(folder.path());
    let mut browser = Browser::start(command, &folder.path().join("profile"));
    let address = format!("file://{}", site.join("index.html").display());
    for width in [1280, 400] {
        for look in ["light", "dark"] {
            browser.show(width, look);
            browser.open(&address);
            let over = browser.value("document.documentElement.scrollWidth - innerWidth");
            assert!(over.as_i64() <= Some(0), "at {width} the page is {over} too wide");
            keep_picture(&mut browser, &format!("site-{width}-{look}.png"));
        }
    }
    let compared = browser.value(
        "(() => { const pick = (id, place) => { const box = document.getElementById(id); box.selectedIndex = place; \
         box.dispatchEvent(new Event('input')); }; const names = [...document.getElementById('one').options].map((option) => option.value); \
         const seen = []; names.forEach((name, one) => names.slice(one + 1).forEach((other, place) => { \
         pick('one', one); pick('other', one + 1 + place); \
         for (const row of document.querySelectorAll('#pairs tbody tr')) seen.push(row.lastChild.textContent); })); return seen })()",
    );
    let verdicts: Vec<&str> = compared.as_array().expect("rows").iter().filter_map(Value::as_str).collect();
    let known = |verdict: &&str| verdict.ends_with(" is faster") || *verdict == "inconclusive";
    assert!(verdicts.len() > 3 && verdicts.iter().any(known), "{verdicts:?}");
    let shown = browser.value(
        "(() => { const rows = () => [...document.querySelectorAll('table.figures tbody tr')].filter((row) => row.getClientRects().length).length; \
         const find = document.getElementById('find'); const seen = [rows()]; find.value = document.getElementById('one').options[0].value; \
         find.dispatchEvent(new Event('input')); seen.push(rows()); find.value = ''; find.dispatchEvent(new Event('input')); \
         seen.push(rows()); return seen })()",
    );
    assert!(shown[1].as_u64() < shown[0].as_u64() && shown[0] == shown[2], "{shown}");
    assert_eq!(complaints(&browser, &address), [] as [Value; 0]);
    accessibility(&mut browser);
    // From a figure to the report of its run, from an engine to its history, by the links as they stand.
    for link in ["table.figures td a", "table.figures tbody th a"] {
        browser.open(&address);
        let target = browser.value(&format!("document.querySelector('{link}').href"));
        let target = target.as_str().expect("a link").to_string();
        browser.open(&target);
        assert!(
            browser
                .value("document.querySelector('h1').textContent")
                .as_str()
                .is_some_and(|head| !head.is_empty())
        );
        assert_eq!(complaints(&browser, &target), [] as [Value; 0], "{target}");
    }
}

#[test]
#[ignore = "needs Chromium: `cargo test --test browser -- --ignored`"]
fn the_page_works_in_a_browser() {
    let Some(command) = wanted_chromium() else { return };
    let folder = tempfile::tempdir().expect("there is room for a profile");
    let page = report(folder.path());
    let address = format!("file://{}", page.display());
    let mut browser = Browser::start(command, &folder.path().join("profile"));
    look_at(&mut browser, &address);
    browser.show(1280, "light");
    browser.open(&address);
    let paint = browser.value(
        "new Promise((done) => new PerformanceObserver((list) => list.getEntriesByName('first-contentful-paint')\
         .forEach((entry) => done(entry.startTime))).observe({type: 'paint', buffered: true}))",
    );
    println!("first paint after {paint} ms");
    sort_and_filter(&mut browser);
    point_at(&mut browser);
    assert_eq!(complaints(&browser, &address), [] as [Value; 0]);
    accessibility(&mut browser);
    assert!(paint.as_f64().is_some_and(|ms| ms < 1_000.0), "first paint after {paint} ms");
}
