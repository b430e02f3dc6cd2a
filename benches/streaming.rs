//! A long answer, word by word, to one client and to many: from `chat.send` until the last of them has read the end.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that can't run stops")]

#[allow(dead_code, reason = "each benchmark uses a part")]
mod support;

use std::iter;

use divan::Bencher;
use futures_util::future::join_all;
use openclaw_testkit::model_server::Reply;
use serde_json::json;

const WORD: &str = "word ";

fn main() {
    divan::main();
}

/// Characters of the answer, and clients that hear it.
#[divan::bench(args = [(10_000, 1), (10_000, 8), (40_000, 1), (40_000, 8)], sample_count = 10, sample_size = 1)]
fn until_all_have_the_last_word(bencher: Bencher<'_, '_>, (chars, clients): (usize, usize)) {
    let words = move || Reply::deltas(iter::repeat_n(WORD, chars / WORD.len()));
    let mut bench = support::gateway_with(0, words);
    let gateway = &bench.gateway;
    let others = join_all((1..clients).map(|_| gateway.client()));
    let others: Result<Vec<_>, _> = bench.runtime.block_on(others).into_iter().collect();
    let mut others = others.unwrap();
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        let name = format!("turn-{turn}");
        let params = json!({"sessionKey": name, "message": "hello", "idempotencyKey": name});
        bench.runtime.block_on(async {
            bench.client.send("chat.send", params).await.unwrap();
            let all = others.iter_mut().chain([&mut bench.client]);
            let ends = join_all(all.map(|client| client.answer_text(r#""state":"final""#))).await;
            assert!(ends.iter().all(|end| end.as_ref().unwrap().contains(&name)));
        });
    });
}
