//! What the benchmarks share: a gateway of the real binary, and stores and transcripts of a given size.

use std::fmt::Write as _;
use std::path::Path;

use openclaw_testkit::many_sessions::{self, Skills};
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest, WsClient};
use serde_json::json;
use tokio::runtime::Runtime;

/// A gateway, a client of it, and the runtime they live on.
pub(crate) struct Bench {
    /// Drives the client.
    pub(crate) runtime: Runtime,
    /// Logged in.
    pub(crate) client: WsClient,
    /// The real binary.
    pub(crate) gateway: GatewayUnderTest,
    _model: ModelServer,
}

/// Starts a gateway whose model answers at once, with this many sessions on disk.
pub(crate) fn gateway(sessions: usize) -> Bench {
    let runtime = Runtime::new().unwrap();
    let (gateway, client, model) = runtime.block_on(async {
        let model = ModelServer::answering(|_| Reply::text("hello to you too")).await;
        let setup = GatewaySetup::new(env!("CARGO_BIN_EXE_openclaw")).fake_model(&model.v1());
        let mut gateway = setup.prepare().unwrap();
        many_sessions::write(&gateway.state_dir(), sessions, Skills::Some).unwrap();
        gateway.start().await.unwrap();
        let client = gateway.client().await.unwrap();
        (gateway, client, model)
    });
    Bench { runtime, client, gateway, _model: model }
}

/// Writes a transcript of this many entries, user and assistant in turns.
pub(crate) fn write_transcript(path: &Path, entries: usize) {
    let at = "2026-02-09T10:00:00.000Z";
    let mut text =
        format!("{}\n", json!({"type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/"}));
    for n in 0..entries {
        let content = json!([{"type": "text", "text": format!("Line {n} of a long talk about nothing in particular.")}]);
        let message = match n % 2 {
            0 => json!({"role": "user", "content": content, "timestamp": 1_770_000_000_000_u64 + n as u64}),
            _ => json!({
                "role": "assistant", "content": content, "api": "openai-completions", "provider": "fake",
                "model": "fake-1", "stopReason": "stop", "timestamp": 1_770_000_000_000_u64 + n as u64,
                "usage": {"input": 100, "output": 7, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 107,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
            }),
        };
        let parent = n.checked_sub(1).map(|parent| format!("{parent:08x}"));
        let line = json!({"type": "message", "id": format!("{n:08x}"), "parentId": parent, "timestamp": at, "message": message});
        writeln!(text, "{line}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}
