//! A browser without a window, driven through its developer tools: commands and events as JSON over a pair of pipes.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take; machines that run other tests too are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// A browser with one page.
pub struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    /// Events seen so far, in order.
    pub events: Vec<Value>,
    session: Option<String>,
    last: u64,
}

impl Browser {
    /// Starts the browser of this command with a profile of its own; the page is empty.
    pub fn start(command: &str, profile: &Path) -> Browser {
        // It speaks on the descriptors 3 and 4, which a shell makes of those that a child has.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null", command])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .args(["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let commands = process.stdin.take().expect("it was asked for");
        let messages = read(process.stdout.take().expect("it was asked for"));
        let mut browser = Browser { process, commands, messages, events: Vec::new(), session: None, last: 0 };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// A command's result. Panics where the browser refuses it or does not answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("the browser lives");
        loop {
            let answer =
                self.messages.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Loads the page and waits until it is whole.
    pub fn open(&mut self, address: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": address}));
        let end = Instant::now() + LIMIT;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let left = end.saturating_duration_since(Instant::now());
            self.events.push(self.messages.recv_timeout(left).expect("the page loads"));
        }
    }

    /// What an expression of the page's language gives; promises are waited for.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let found = self.call("Runtime.evaluate", params);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {}", found["exceptionDetails"]);
        found["result"]["value"].clone()
    }

    /// The size of the window, and which look is preferred.
    pub fn show(&mut self, width: u32, look: &str) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{"name": "prefers-color-scheme", "value": look}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }
}

/// The messages, each of which ends in a zero byte.
fn read(pipe: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for message in BufReader::new(pipe).split(0).map_while(Result::ok) {
            let Ok(message) = serde_json::from_slice(&message) else { continue };
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
