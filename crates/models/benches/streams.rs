//! 64 answers side by side at 5,000 tokens a second each, over real HTTP on this machine: how far behind the listener is.
//!
//! Every token says when it was sent, so that its way can be timed: through the kernel, the HTTP layer, the decoder, to the
//! event. `cargo bench -p openclaw-models --bench streams`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a benchmark that can't run stops"
)]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use openclaw_models::{Ask, Http, ModelEvent, ModelRequest, ModelSettings, Models, Variables};
use openclaw_protocol::AgentId;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

const STREAMS: usize = 64;
/// A second, for each stream.
const RATE: u32 = 5_000;
const SECONDS: u32 = 4;
/// Interval at which a stream writes; everything that falls due in between is written together.
const TICK: Duration = Duration::from_millis(2);

fn main() {
    // The model server is another machine in real life: its threads are counted apart.
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let begun = Instant::now();
    let listener = server.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let accepting = server.spawn(async move {
        let mut calls = tokio::task::JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            calls.spawn(answer(socket, begun));
        }
    });
    let mut ways = client.block_on(async {
        let all = (0..STREAMS).map(|_| tokio::spawn(listen(format!("http://{address}/v1"), begun)));
        let ended = futures_util::future::join_all(all.collect::<Vec<_>>()).await;
        ended.into_iter().flat_map(Result::unwrap).collect::<Vec<_>>()
    });
    let took = begun.elapsed();
    accepting.abort();
    assert_eq!(ways.len(), STREAMS * (RATE * SECONDS) as usize, "every token arrived");
    ways.sort_unstable();
    let at = |part: f64| ways[((ways.len() - 1) as f64 * part) as usize];
    println!(
        "{STREAMS} streams of {RATE} tokens/s for {SECONDS} s: {} tokens in {took:.2?}, {:.0} tokens/s",
        ways.len(),
        ways.len() as f64 / took.as_secs_f64()
    );
    println!("sent to heard: p50 {:?}, p90 {:?}, p99 {:?}, last {:?}", at(0.5), at(0.9), at(0.99), at(1.0));
}

/// Writes one answer at its pace.
async fn answer(mut socket: tokio::net::TcpStream, begun: Instant) {
    socket.set_nodelay(true).unwrap();
    let mut request = [0; 4096];
    let _ = socket.read(&mut request).await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    if socket.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let start = Instant::now();
    let mut sent = 0;
    let mut ticks = tokio::time::interval(TICK);
    while sent < RATE * SECONDS {
        ticks.tick().await;
        let due = (start.elapsed().as_secs_f64() * f64::from(RATE)) as u32;
        let mut bytes = String::new();
        let due = due.min(RATE * SECONDS);
        for _ in sent..due {
            let now = begun.elapsed().as_micros();
            bytes.push_str(&format!(
                "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{now} \"}},\"finish_reason\":null}}]}}\n\n"
            ));
        }
        sent = sent.max(due);
        if socket.write_all(bytes.as_bytes()).await.is_err() {
            return;
        }
    }
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let _ = socket.write_all(end.as_bytes()).await;
}

/// Calls the model as a run does; how long each token was on its way.
async fn listen(url: String, begun: Instant) -> Vec<Duration> {
    let provider = json!({"baseUrl": url, "api": "openai-completions", "models": [{"id": "m", "name": "M"}]});
    let settings = ModelSettings {
        providers: vec![("local".to_owned(), serde_json::from_value(provider).unwrap())],
        ..ModelSettings::default()
    };
    let (agent, dir) = (AgentId::default(), std::env::temp_dir());
    let ask = Ask { model: Some("local/m"), ..Ask::new(&agent, &dir) };
    let models = Models::new(Variables::default(), Http::default());
    let selected = models.select(&settings, &ask).await.unwrap();
    let request = ModelRequest::default();
    let mut stream = selected.candidates[0].model.stream(request, CancellationToken::new());
    let mut ways = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            ModelEvent::TextDelta { delta, .. } => {
                let sent = Duration::from_micros(delta.trim().parse().unwrap());
                ways.push(begun.elapsed().saturating_sub(sent));
            }
            ModelEvent::Done { failure: Some(failure), .. } => {
                println!("a stream failed: {}", failure.message)
            }
            _ => {}
        }
    }
    ways
}
