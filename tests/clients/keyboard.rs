//! A browser that is led by its debugging protocol, over pipes, and given keys as a keyboard gives
//! them: synthetic events of a page's own script move no focus and press no button.

use super::PATIENCE;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// One page in a browser.
pub(super) struct Page {
    child: Child,
    input: File,
    said: Receiver<Value>,
    /// Of the page, once it is there.
    session: Option<String>,
    asked: u64,
}

impl Page {
    /// Opens a page; the browser keeps what it needs in the directory.
    pub(super) fn open(browser: &Path, url: &str, directory: &Path) -> Self {
        let (input, output) = (directory.join("to"), directory.join("from"));
        let made = Command::new("mkfifo").args([&input, &output]).status();
        assert!(made.unwrap().success());
        // It reads its orders from the third descriptor and answers on the fourth.
        let script = "to=$1; from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args([&input, &output]);
        command.arg(browser).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            "--window-size=1280,900",
        ]);
        let profile = directory.join("keyboard");
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let input = File::options().write(true).open(&input).unwrap();
        let output = BufReader::new(File::open(&output).unwrap());
        let (sender, said) = mpsc::channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut page = Self {
            child,
            input,
            said,
            session: None,
            asked: 0,
        };
        let target = page.ask("Target.createTarget", json!({"url": url}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.ask("Target.attachToTarget", attach);
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        page.ask(
            "Emulation.setFocusEmulationEnabled",
            json!({"enabled": true}),
        );
        page
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let mut order = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            order["sessionId"] = session.as_str().into();
        }
        self.input
            .write_all(format!("{order}\0").as_bytes())
            .unwrap();
        loop {
            let mut said = self.said.recv_timeout(PATIENCE).unwrap();
            if said["id"] == self.asked {
                assert_eq!(said["error"], Value::Null, "{method}: {said}");
                return said["result"].take();
            }
        }
    }

    /// The value of an expression in the page.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "returnByValue": true});
        let mut told = self.ask("Runtime.evaluate", ask);
        assert_eq!(
            told["exceptionDetails"],
            Value::Null,
            "{expression}: {told}"
        );
        told["result"]["value"].take()
    }

    /// Waits until this is true in the page.
    pub(super) fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            assert!(Instant::now() < deadline, "{expression} is never true");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses a key and lets it go.
    pub(super) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            other => panic!("no such key: {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.ask("Input.dispatchKeyEvent", event);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
