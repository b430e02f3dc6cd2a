//! Files of conversations on disk. Conversations of older versions continue.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, group_message, private_message};
use openclaw_testkit::{DeviceIdentity, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::config::merge;
use crate::support::conversation::{history, sessions_dir, turn};
use crate::support::telegram::{bot, open};

/// Returns a transcript of one message and its answer.
fn transcript(id: &str, text: &str) -> String {
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-02-09T10:11:12.123Z", "cwd": "/"});
    let said = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_770_000_000_000_u64});
    let entry = json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2026-02-09T10:11:12.123Z", "message": said});
    let answer = json!({
        "role": "assistant", "content": [{"type": "text", "text": "noted"}], "api": "openai-completions",
        "provider": "fake", "model": "fake-1", "stopReason": "stop", "timestamp": 1_770_000_000_001_u64,
    });
    let answered = json!({"type": "message", "id": "bbbbbbbb", "parentId": "aaaaaaaa", "timestamp": "2026-02-09T10:11:12.124Z", "message": answer});
    format!("{header}\n{entry}\n{answered}\n")
}

#[tokio::test]
async fn a_group_of_an_old_version_goes_on_where_its_row_names_the_channel() {
    let telegram = json!({"channel": "telegram"});
    let delivered = json!({"deliveryContext": {"channel": "telegram", "to": "telegram:-100"}});
    let looked_into =
        json!({"channel": "webchat", "origin": {"provider": "telegram", "surface": "telegram"}});
    let rows = [
        ("group:-100", &telegram),
        ("agent:main:unknown:group:-100", &telegram),
        ("agent:main:group:-100", &delivered),
        ("agent:main:group:-100", &json!({"lastChannel": "telegram"})),
        ("group:-100", &json!({"lastProvider": "telegram"})),
        ("group:-100", &looked_into),
        ("group:-100", &json!({"channel": "webchat", "origin": {"surface": "telegram"}})),
    ];
    for (old, facts) in rows {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::text("hi")).await;
        let config = json!({
            "channels": {"telegram": {
                "botToken": server.token(), "apiRoot": server.root(), "groupPolicy": "open",
                "groups": {"*": {"requireMention": false}},
            }},
            "session": {"reset": {"mode": "idle", "idleMinutes": 10_000_000}},
        });
        let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
        let dir = sessions_dir(&gateway);
        std::fs::create_dir_all(&dir).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let mut row = json!({"sessionId": "s-old", "updatedAt": u64::try_from(now).unwrap()});
        merge(&mut row, facts.clone());
        std::fs::write(dir.join("sessions.json"), json!({old: row}).to_string()).unwrap();
        std::fs::write(dir.join("s-old.jsonl"), transcript("s-old", "said long ago")).unwrap();
        gateway.start().await.unwrap();
        server.push(group_message(-100, 5, "and today"));
        server.has_made("the answer", |made| made.len() == 1).await;
        let asked = model.requests().last().unwrap().body["messages"].to_string();
        assert!(asked.contains("said long ago") && asked.contains("and today"), "{old} {facts}: {asked}");
        let mut client = gateway.client().await.unwrap();
        let said = history(&mut client, "agent:main:telegram:group:-100").await;
        assert!(said[0].contains("said long ago") && said.len() == 4, "{old} {facts}: {said:?}");
    }
}

#[tokio::test]
async fn a_topic_of_a_private_chat_has_a_transcript_of_its_name() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    let mut update = private_message(5, "in the topic");
    update["message"]["message_thread_id"] = json!(9);
    update["message"]["is_topic_message"] = json!(true);
    server.push(update);
    server.has_made("the answer", |made| made.len() == 1).await;
    gateway.fates().await.unwrap();
    let names = std::fs::read_dir(sessions_dir(&gateway)).unwrap();
    let names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.ends_with("-topic-9.jsonl")), "{names:?}");
}

#[tokio::test]
async fn the_status_shows_where_sessions_are_stored() {
    let gateway = gateway().start().await.unwrap();
    let status = openclaw(&gateway, &["status"]).await;
    let path = "~/.openclaw/agents/main/sessions/sessions.json";
    assert!(status.out.contains(path), "{status:?}");
}

#[tokio::test]
async fn more_words_that_begin_a_conversation_leave_the_usual_ones() {
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let config = json!({"session": {"resetTriggers": ["/fresh"]}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut ids: Vec<Value> = Vec::new();
    for (n, text) in ["hello", "/fresh one", "/new two", "/reset three"].into_iter().enumerate() {
        turn(&mut client, "main", text, &format!("r{n}")).await;
        let row = client.request("sessions.list", json!({})).await.unwrap();
        ids.push(row["sessions"][0]["sessionId"].clone());
    }
    let all = ids.len();
    ids.sort_by_key(ToString::to_string);
    ids.dedup();
    assert_eq!(ids.len(), all, "each began one");
}

#[tokio::test]
async fn the_log_tells_under_which_name_a_client_and_its_reports_are_present() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let report = json!({"text": "Node: Mac (192.0.2.7) · mode ui · reason launch", "instanceId": "mac-1"});
    client.request("system-event", report).await.unwrap();
    gateway.logged("presence reported").await.unwrap();
    let log = gateway.log();
    let has = |words: [&str; 2]| log.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(["presence reported", "mac-1"]) && has(["connected", "presence="]), "{log}");
}

/// Decision 32: a client and its beacon are one row, whether it proves a device or not.
#[tokio::test]
async fn a_client_and_its_beacon_are_present_once_under_the_instance_id() {
    let gateway = gateway().start().await.unwrap();
    for (seed, instance) in [(None, "tab-1"), (Some(7), "mac-1")] {
        let client = json!({"id": "test", "version": "1.0.0", "platform": "linux", "mode": "test", "instanceId": instance});
        let login = Login::token(TOKEN).with("client", client);
        let login = match seed {
            Some(seed) => login.device(DeviceIdentity::from_seed(seed)),
            None => login,
        };
        let (mut client, _) = WsClient::connect(gateway.port(), login).await.unwrap();
        let beacon = json!({"text": "Node: Mac (192.0.2.7) · app 1 · mode ui · reason launch", "instanceId": instance});
        for _ in 0..2 {
            client.request("system-event", beacon.clone()).await.unwrap();
        }
        let list = client.request("system-presence", json!({})).await.unwrap();
        let own = list.as_array().unwrap().iter().filter(|row| row["mode"] != "gateway");
        let mine: Vec<&Value> = own
            .filter(|row| row["instanceId"] == instance || seed.is_some() && row.get("deviceId").is_some())
            .collect();
        assert_eq!(mine.len(), 1, "{instance}: {list}");
        assert_eq!(mine[0]["instanceId"], instance, "{list}");
        assert_eq!(mine[0].get("deviceId").is_some(), seed.is_some(), "{list}");
    }
}
