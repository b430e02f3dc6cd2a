//! `sessions.list` of 200 rows out of few, many and very many sessions, over the wire. `store.rs` has the store alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that can't run stops")]

#[allow(dead_code, reason = "each benchmark uses a part")]
mod support;

use divan::Bencher;
use serde_json::json;

fn main() {
    divan::main();
}

/// From the request to the last byte of the answer; what a client makes of that is its own affair.
#[divan::bench(args = [10, 1_000, 10_000, 50_000])]
fn over_the_wire(bencher: Bencher<'_, '_>, sessions: usize) {
    let mut bench = support::gateway(sessions);
    bencher.bench_local(|| {
        let answer = bench.runtime.block_on(async {
            let id = bench.client.send("sessions.list", json!({"limit": 200})).await.unwrap();
            bench.client.answer_text(&id).await.unwrap()
        });
        assert!(answer.contains(&format!("\"count\":{}", sessions.min(200))), "{}", &answer[..200]);
    });
}
