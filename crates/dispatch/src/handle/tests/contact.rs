//! Tests of what session rows say about the conversation's place.

use openclaw_sessions::SessionKey;

use super::*;

/// Reads a row without the fields that change from run to run.
async fn row(rig: &Rig, key: &str) -> Value {
    let row = rig.store.get(&SessionKey::parse(key).unwrap()).await.unwrap().unwrap();
    let Value::Object(mut row) = serde_json::to_value(&*row.entry).unwrap() else { panic!("{row:?}") };
    let kept = ["chatType", "origin", "deliveryContext", "lastChannel", "lastTo", "label", "systemSent"];
    row.retain(|name, _| kept.contains(&name.as_str()));
    Value::Object(row)
}

/// Rows of `golden/gw-sessions.jsonl`: one of `chat.send` and one of `agent`.
#[tokio::test]
async fn rows_are_written_as_recorded() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    let mut here = chat("r1", "hi");
    here.session_key = key_of("agent:main:abort");
    let mut side = agent("r2", "hi");
    side.session_key = key_of("agent:main:side");
    side.entry_patch.insert("label".to_owned(), json!("side-label"));
    drop(rig.chat(here).await.unwrap());
    drop(rig.agent(side).await.unwrap());
    for run in ["r1", "r2"] {
        rig.end(run).await;
    }
    let route = json!({"channel": "webchat"});
    let origin =
        json!({"label": "golden", "provider": "webchat", "surface": "webchat", "chatType": "direct"});
    let chatted = json!({"chatType": "direct", "origin": origin, "deliveryContext": route, "lastChannel": "webchat",
                         "systemSent": true});
    assert_eq!(row(&rig, "agent:main:abort").await, chatted);
    assert_eq!(row(&rig, "agent:main:side").await, json!({"label": "side-label", "systemSent": true}));
}

#[tokio::test]
async fn a_message_from_here_leaves_the_way_to_a_platform_alone() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    let stored = json!({"origin": {"label": "Al", "provider": "telegram"}, "lastChannel": "telegram", "lastTo": "1",
                        "deliveryContext": {"channel": "telegram", "to": "1"}});
    let fields = stored.as_object().unwrap().clone();
    let change = Box::new(move |edit: openclaw_sessions::store::Edit<'_>| {
        edit.entry.merge(&fields, edit.now);
        Ok(())
    });
    rig.store.update(&SessionKey::parse(KEY).unwrap(), change).await.unwrap();
    send(&rig, "r1", "hi").await;
    rig.end("r1").await;
    let mut expected = stored;
    expected["chatType"] = json!("direct");
    expected["systemSent"] = json!(true);
    assert_eq!(row(&rig, KEY).await, expected);
}
