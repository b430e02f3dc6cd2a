//! A headless Chromium, driven over its DevTools protocol, for tests of the web chat.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Keeps Chromium offline, quiet and usable as root in a container.
const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
];

/// Starting a browser on a loaded machine takes a while.
const START: Duration = Duration::from_secs(60);

/// A running browser with one page.
pub struct Browser {
    _process: Child,
    _profile: TempDir,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    next_id: u64,
    events: VecDeque<Value>,
}

impl Browser {
    /// Starts Chromium with an empty profile; `None` when none is installed.
    ///
    /// # Errors
    /// When it is installed and does not start.
    pub async fn launch() -> Result<Option<Self>> {
        let Some(program) = find() else { return Ok(None) };
        let profile = tempfile::tempdir()?;
        let mut process = Command::new(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start Chromium")?;
        let stderr = process.stderr.take().context("no stderr")?;
        let endpoint = timeout(START, endpoint(stderr)).await.context("Chromium did not start in time")??;
        let (socket, _) = connect_async(endpoint).await?;
        let mut browser = Self {
            _process: process,
            _profile: profile,
            socket,
            session: String::new(),
            next_id: 1,
            events: VecDeque::new(),
        };
        browser.attach().await?;
        Ok(Some(browser))
    }

    async fn attach(&mut self) -> Result<()> {
        let target = self.command("Target.createTarget", json!({"url": "about:blank"})).await?;
        let attached = self
            .command("Target.attachToTarget", json!({"targetId": at(&target, "/targetId"), "flatten": true}))
            .await?;
        self.session = at(&attached, "/sessionId").as_str().context("no DevTools session")?.to_owned();
        self.command("Page.enable", json!({})).await?;
        // Without it a page of a browser nobody looks at is told of no focus.
        self.command("Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await?;
        Ok(())
    }

    /// Opens `url` and waits until it has loaded.
    ///
    /// # Errors
    /// When the page does not load by the deadline.
    pub async fn open(&mut self, url: &str, deadline: Duration) -> Result<()> {
        self.events.clear();
        self.command("Page.navigate", json!({"url": url})).await?;
        self.loaded(deadline).await
    }

    /// Reloads the page and waits until it has loaded.
    ///
    /// # Errors
    /// When the page does not load by the deadline.
    pub async fn reload(&mut self, deadline: Duration) -> Result<()> {
        self.events.clear();
        self.command("Page.reload", json!({})).await?;
        self.loaded(deadline).await
    }

    /// Evaluates a JavaScript expression in the page; promises are awaited.
    ///
    /// # Errors
    /// When the expression throws.
    pub async fn eval(&mut self, expression: &str) -> Result<Value> {
        let answer = self
            .command(
                "Runtime.evaluate",
                json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}),
            )
            .await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{expression} threw {thrown}");
        }
        Ok(at(&answer, "/result/value").clone())
    }

    /// Waits until an expression over the document is truthy, looking again at every change of the document and of the
    /// focus.
    ///
    /// # Errors
    /// With the page's text, when it is not so by the deadline.
    pub async fn wait_for(&mut self, expression: &str, deadline: Duration) -> Result<Value> {
        let script = format!(
            "new Promise((resolve) => {{ const look = () => {{ const found = ({expression}); \
             if (found) {{ watch.disconnect(); document.removeEventListener('focusin', look); resolve(found); }} }}; \
             const watch = new MutationObserver(look); document.addEventListener('focusin', look); \
             watch.observe(document, {{subtree: true, childList: true, characterData: true, attributes: true}}); look(); }})"
        );
        match timeout(deadline, self.eval(&script)).await {
            Ok(found) => found,
            Err(_) => {
                let text = self.eval("document.body.innerText").await.unwrap_or_default();
                bail!("`{expression}` did not become true; the page says: {text}")
            }
        }
    }

    /// Shows the page in a window of this size, with the colours of a scheme (`light` or `dark`).
    ///
    /// # Errors
    /// When the browser is gone.
    pub async fn show_as(&mut self, scheme: &str, width: u32, height: u32) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", json!({"features": features})).await?;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", size).await.map(drop)
    }

    /// A PNG of the page.
    ///
    /// # Errors
    /// When the browser is gone.
    pub async fn screenshot(&mut self) -> Result<Vec<u8>> {
        use base64::Engine as _;
        let shot = self.command("Page.captureScreenshot", json!({"format": "png"})).await?;
        let data = at(&shot, "/data").as_str().context("no picture")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(data)?)
    }

    async fn loaded(&mut self, deadline: Duration) -> Result<()> {
        timeout(deadline, async {
            loop {
                if self.events.pop_front().is_some_and(|event| at(&event, "/method") == "Page.loadEventFired")
                {
                    return Ok(());
                }
                if self.events.is_empty() {
                    let frame = self.receive().await?;
                    self.events.push_back(frame);
                }
            }
        })
        .await
        .context("the page did not load in time")?
    }

    async fn command(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let command = if self.session.is_empty() {
            json!({"id": id, "method": method, "params": params})
        } else {
            json!({"id": id, "method": method, "params": params, "sessionId": self.session})
        };
        self.socket.send(Message::text(command.to_string())).await?;
        loop {
            let frame = self.receive().await?;
            if *at(&frame, "/id") == id {
                if let Some(error) = frame.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(at(&frame, "/result").clone());
            }
            self.events.push_back(frame);
        }
    }

    async fn receive(&mut self) -> Result<Value> {
        loop {
            match self.socket.next().await.context("Chromium closed the connection")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(_) => bail!("Chromium closed the connection"),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// The value at a JSON pointer, `null` where there is none.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

fn find() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .flat_map(|dir| NAMES.iter().map(move |name| dir.join(name)))
        .find(|candidate| candidate.is_file())
}

async fn endpoint(stderr: tokio::process::ChildStderr) -> Result<String> {
    let mut lines = BufReader::new(stderr).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((_, endpoint)) = line.split_once("DevTools listening on ") {
            return Ok(endpoint.trim().to_owned());
        }
    }
    bail!("Chromium ended before it listened")
}
