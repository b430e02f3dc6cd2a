//! More messages than the gateway can work on: what waits is on disk, and there is an end to it.

use openclaw_testkit::DEADLINE;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use serde_json::json;
use tokio::time::timeout;

use crate::support::conversation::message;
use crate::support::memory::resident_at_most;

/// Bytes of one message.
const BIG: usize = 1_000_000;
/// Messages that are sent: more than fit.
const SENT: usize = 150;
/// Memory that the gateway may need more than before, in bytes: a part of what waits.
const GROWTH: usize = 90_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_stays_on_disk_and_too_much_of_it_is_refused_for_now() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| Reply::text("done").after(Step::Wait(held.clone())))
        .await
        .forgetful();
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let before = resident_at_most(&gateway);
    let words = "word ".repeat(BIG / 5);
    let big = |n: usize| message(&format!("session-{n}"), &words, &format!("run-{n}"));
    let mut refused = None;
    for n in 0..SENT {
        let answer = client.call("chat.send", big(n)).await.unwrap();
        if !answer.ok {
            refused = Some((n, answer.error));
            break;
        }
    }
    let (accepted, error) = refused.expect("not all fit");
    assert!(accepted > 100, "{accepted}: there is room for many");
    assert_eq!((&error["code"], &error["retryable"]), (&json!("UNAVAILABLE"), &json!(true)), "{error}");
    assert!(error["retryAfterMs"].as_u64().is_some(), "{error}");
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < GROWTH, "{accepted} messages of 1 MB made the gateway grow by {grown} bytes");
    client.request("health", json!({})).await.unwrap();

    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let resumed = resident_at_most(&gateway);
    assert!(resumed < before + GROWTH, "{resumed} bytes after a start with {accepted} messages of 1 MB");
    let again = client.call("chat.send", big(accepted)).await.unwrap();
    assert_eq!(again.error["retryable"], true, "what a start finds counts: {again:?}");

    gate.open();
    let first = json!({"runId": "run-0", "timeoutMs": 25_000});
    assert_eq!(client.request("agent.wait", first).await.unwrap()["status"], "ok");
    // As a client does that was told to come again.
    let again = async { while !client.call("chat.send", big(accepted)).await.unwrap().ok {} };
    timeout(DEADLINE, again).await.expect("there is room again");
}
