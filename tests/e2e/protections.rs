//! A protection that the config asks for and this version can't give: what would rely on it is refused, and every surface
//! says why and what to do.

use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::gateway;
use crate::support::command::{Ended, openclaw};
use crate::support::conversation::{end, send, turn};

/// A model that would run a command and write outside of the workspace.
async fn harmful(marks: &std::path::Path) -> ModelServer {
    let path = marks.join("written");
    ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": format!("touch {}", marks.join("executed").display())})),
        Reply::tool("c2", "write", &json!({"path": path, "content": "x"})),
        Reply::text("done"),
    ])
    .await
}

#[tokio::test]
async fn the_tool_policy_of_a_group_holds_for_runs_in_its_session() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let channels = json!({"telegram": {"groups": {"-1": {"tools": {"deny": ["exec"]}}}}});
    let gateway =
        gateway().fake_model(&model.v1()).config(json!({"channels": channels})).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here");
    send(&mut client, "agent:main:telegram:group:-1", "hello", "run-2").await;
    assert_eq!(end(&mut client, "run-2").await["state"], "final");
    let has_exec = |request: &openclaw_testkit::model_server::Captured| {
        request.body["tools"].as_array().unwrap().iter().any(|tool| tool["function"]["name"] == "exec")
    };
    let requests = model.requests();
    assert!(has_exec(&requests[0]) && !has_exec(&requests[1]));
}

#[tokio::test]
async fn rules_of_exec_that_cannot_be_kept_refuse_its_calls() {
    let rows = [
        (json!({"security": "deny"}), json!({}), "exec denied: security=deny"),
        (json!({"ask": "always"}), json!({}), "Approval required (id "),
        (json!({"host": "sandbox"}), json!({}), "exec host=sandbox is not available"),
        (json!({}), json!({"execSecurity": "deny"}), "exec denied: security=deny"),
    ];
    for (exec, of_session, says) in rows {
        let marks = tempfile::tempdir().unwrap();
        let model = harmful(marks.path()).await;
        let gateway =
            gateway().fake_model(&model.v1()).config(json!({"tools": {"exec": exec}})).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        if let Some((key, value)) = of_session.as_object().unwrap().iter().next() {
            client.request("sessions.patch", json!({"key": "main", key: value})).await.unwrap();
        }
        turn(&mut client, "main", "go", "run-1").await;
        let told = model.requests()[1].messages().last().unwrap().to_string();
        assert!(told.contains(says), "no \"{says}\" in {told}");
        assert!(!marks.path().join("executed").exists());
    }
}

#[tokio::test]
async fn a_gateway_that_should_serve_tls_does_not_start() {
    let tls = json!({"gateway": {"tls": {"enabled": true}}});
    let gateway = gateway().config(tls).prepare().unwrap();
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
    refused.failed(&["gateway.tls.enabled is true, but this version does not serve TLS yet", "TLS proxy"]);
}

#[tokio::test]
async fn a_client_does_not_connect_without_the_certificate_check_it_is_told_to_make() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("wss://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let remote = json!({"mode": "remote", "remote": {"url": url, "token": "t", "tlsFingerprint": "ab:cd"}});
    let gateway = gateway().config(json!({"gateway": remote})).prepare().unwrap();
    let run = async |args: &[&str]| {
        let mut command = gateway.command();
        command.args(args);
        Ended::of(command).await
    };
    for command in [&["health"][..], &["gateway", "call", "status"]] {
        run(command).await.failed(&["gateway.remote.tlsFingerprint is set, but"]);
    }
    for command in [&["gateway", "probe"][..], &["status"]] {
        let said = run(command).await.out;
        assert!(said.contains("gateway.remote.tlsFingerprint is set, but"), "{said}");
    }
    let knocked = listener.accept();
    assert!(knocked.is_err(), "somebody connected: {knocked:?}");
}
