//! A provider behind TLS is spoken to in HTTP/2: one connection for all calls, of which each can end by itself.

use openclaw_testkit::model_server::{ModelServer, Reply, Step};
use serde_json::json;

use crate::gateway;
use crate::support::conversation::{send, turn};

#[tokio::test(flavor = "multi_thread")]
async fn calls_share_a_connection_and_a_stopped_one_ends_alone() {
    let model = ModelServer::queue([
        Reply::text("first"),
        Reply::deltas(["never"]).then(Step::Hang),
        Reply::text("third"),
    ])
    .await;
    let door = model.over_tls().await;
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), &door.certificate).unwrap();
    let gateway = gateway()
        .fake_model(&door.v1)
        .env("SSL_CERT_FILE", certificate.path().to_str().unwrap())
        .start()
        .await
        .unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "one", "run-1").await, "first");
    send(&mut client, "main", "two", "run-2").await;
    client.event("agent", |payload| payload["data"]["text"] == "never").await.unwrap();
    let stop = json!({"sessionKey": "main", "runId": "run-2"});
    assert_eq!(client.request("chat.abort", stop).await.unwrap()["aborted"], true);
    // The server is told at once, though the connection stays.
    tokio::time::timeout(openclaw_testkit::DEADLINE, model.over(1)).await.unwrap();
    assert_eq!(turn(&mut client, "main", "three", "run-3").await, "third");

    let requests = model.requests();
    let seen: Vec<_> = requests.iter().map(|request| (request.version.as_str(), request.peer)).collect();
    assert_eq!(seen, [("HTTP/2.0", requests[0].peer); 3]);
}
