//! One turn as a client sees it: from `chat.send` to the final `chat` event, the model answering at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that can't run stops")]

#[allow(dead_code, reason = "each benchmark uses a part")]
mod support;

use divan::Bencher;
use serde_json::json;

/// Turns a session has before the next begins: the context stays that of a short chat.
const TURNS_A_SESSION: usize = 20;

fn main() {
    divan::main();
}

/// What a turn costs must not depend on how many other sessions there are.
#[divan::bench(args = [0, 1_000, 10_000], sample_count = 100, sample_size = 1)]
fn chat_send_to_final(bencher: Bencher<'_, '_>, sessions: usize) {
    let mut bench = support::gateway(sessions);
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        let (run, session) = (format!("turn-{turn}"), format!("bench-{}", turn / TURNS_A_SESSION));
        let params = json!({"sessionKey": session, "message": "hello", "idempotencyKey": run});
        bench.runtime.block_on(async {
            bench.client.request("chat.send", params).await.unwrap();
            let is_final =
                |chat: &serde_json::Value| chat["runId"] == run.as_str() && chat["state"] == "final";
            bench.client.event("chat", is_final).await.unwrap();
            bench.client.take_passed();
        });
    });
}
