//! Upkeep of the state directory by a gateway itself: taking over state of older versions, and
//! `session.maintenance`.

use std::path::Path;

use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::sessions_dir;

fn keys(store: &Path) -> Vec<String> {
    let rows: Value = serde_json::from_slice(&std::fs::read(store).unwrap()).unwrap();
    rows.as_object().unwrap().keys().cloned().collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_start_takes_over_state_of_older_versions_once_and_says_where_the_backup_is() {
    let mut gateway = gateway().prepare().unwrap();
    let old = gateway.state_dir().join("sessions");
    std::fs::create_dir(&old).unwrap();
    let rows = json!({
        "main": {"sessionId": "m", "updatedAt": 5}, "group:123@g.us": {"sessionId": "g", "updatedAt": 4, "room": "#r"},
    });
    std::fs::write(old.join("sessions.json"), rows.to_string()).unwrap();
    std::fs::write(old.join("g.jsonl"), "{\"type\":\"session\",\"version\":3,\"id\":\"g\"}\n").unwrap();

    gateway.start().await.unwrap();
    gateway.logged("the state as it was is kept").await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    let mut seen: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["agent:main:main", "agent:main:whatsapp:group:123@g.us"]);
    assert!(sessions_dir(&gateway).join("g.jsonl").exists() && !old.exists());
    let backups = names(&gateway.state_dir().join("backups"));
    assert_eq!(backups.len(), 1, "{backups:?}");

    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    assert_eq!(names(&gateway.state_dir().join("backups")), backups, "there is nothing left to do");
}

#[tokio::test]
async fn maintenance_warns_until_it_is_told_to_enforce() {
    let mut gateway =
        gateway().config(json!({"session": {"maintenance": {"pruneAfter": "30d"}}})).prepare().unwrap();
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    let rows = json!({
        "agent:main:main": {"sessionId": "m", "updatedAt": 5}, "agent:main:old": {"sessionId": "o", "updatedAt": 6},
        "agent:main:named": {"sessionId": "n", "updatedAt": 7, "label": "keep"},
    });
    std::fs::write(dir.join("sessions.json"), rows.to_string()).unwrap();
    std::fs::write(dir.join("o.jsonl"), "{\"type\":\"session\",\"version\":3,\"id\":\"o\"}\n").unwrap();
    gateway.start().await.unwrap();
    gateway.logged("session maintenance would remove this much").await.unwrap();
    assert!(dir.join("o.jsonl").exists() && keys(&dir.join("sessions.json")).len() == 3);

    // The change of the config takes effect while the gateway runs.
    let path = gateway.state_dir().join("openclaw.json");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("\"pruneAfter\"", "\"mode\": \"enforce\", \"pruneAfter\"")).unwrap();
    gateway.logged("session maintenance done").await.unwrap();
    assert!(!dir.join("o.jsonl").exists());
    assert!(names(&dir).iter().any(|name| name.starts_with("o.jsonl.deleted.")), "{:?}", names(&dir));
    gateway.terminate().await.unwrap();
    assert_eq!(keys(&dir.join("sessions.json")), ["agent:main:main", "agent:main:named"]);
}

#[tokio::test]
async fn without_maintenance_in_the_config_nothing_is_ever_removed() {
    let mut gateway = gateway().prepare().unwrap();
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    let rows = json!({"agent:main:old": {"sessionId": "o", "updatedAt": 6}});
    std::fs::write(dir.join("sessions.json"), rows.to_string()).unwrap();
    std::fs::write(dir.join("x.jsonl.deleted.2020-01-01T00-00-00.000Z"), "").unwrap();
    let before = (names(&dir), std::fs::read(dir.join("sessions.json")).unwrap());
    gateway.start().await.unwrap();
    gateway.client().await.unwrap().request("sessions.list", json!({})).await.unwrap();
    gateway.terminate().await.unwrap();
    assert_eq!((names(&dir), std::fs::read(dir.join("sessions.json")).unwrap()), before);
}
