//! Rows of the golden recording `gw-sessions.jsonl`, volatile values aside.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::AgentId;
use openclaw_protocol::params::sessions::{SessionListDefaults, SessionsListParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::key::KeyRules;
use crate::layout::Layout;
use crate::store::{FileStore, FileStoreOptions, SessionStore};
use crate::time::now_ms;
use crate::transcript::Transcripts;

struct Bench {
    _dir: tempfile::TempDir,
    layout: Layout,
    store: FileStore,
}

impl Bench {
    fn with(rows: &Value) -> Self {
        Self::in_store(None, rows)
    }

    /// Bench with `session.store`, where `~` is the state directory.
    fn in_store(store: Option<&str>, rows: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path(), dir.path(), store);
        let agent = AgentId::default();
        std::fs::create_dir_all(layout.sessions_dir(&agent)).unwrap();
        std::fs::write(layout.store_path(&agent), rows.to_string()).unwrap();
        let store =
            FileStore::open(FileStoreOptions::new(layout.clone(), KeyRules::default(), Vec::new())).unwrap();
        Self { _dir: dir, layout, store }
    }

    fn transcripts(&self) -> Transcripts {
        Transcripts::in_files(self.layout.clone())
    }

    fn transcript(&self, id: &str, texts: &[(&str, &str)]) -> std::path::PathBuf {
        let path = self.layout.sessions_dir(&AgentId::default()).join(format!("{id}.jsonl"));
        let mut text =
            format!("{}\n", json!({"type": "session", "version": 3, "id": id, "timestamp": "t", "cwd": "/"}));
        let mut parent = Value::Null;
        for (at, (role, said)) in texts.iter().enumerate() {
            let id = format!("{at:08x}");
            let message = json!({"role": role, "content": [{"type": "text", "text": said}], "timestamp": at});
            let entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": message});
            text.push_str(&format!("{entry}\n"));
            parent = id.into();
        }
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn list(&self, params: Value) -> Value {
        let defaults = SessionListDefaults {
            model_provider: Some("fake".into()),
            model: Some("fake-1".into()),
            context_tokens: Some(32000),
        };
        let model = |_: &AgentId| Arc::new(ModelName::new("fake", "fake-1"));
        let params: SessionsListParams = read(params);
        let listed = list(&self.store, &self.transcripts(), &params, defaults, model, |_| None).await;
        serde_json::to_value(listed.unwrap()).unwrap()
    }

    async fn keys(&self, params: Value) -> Vec<String> {
        let listed = self.list(params).await;
        listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["key"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn patch(&self, params: Value) -> Result<Value, String> {
        let patched = patch(&self.store, &read(params), &rules()).await;
        patched.map(|result| serde_json::to_value(result).unwrap()).map_err(|error| error.to_string())
    }

    async fn resolve(&self, params: Value) -> Result<String, String> {
        resolve(&self.store, &read(params)).await.map(|result| result.key).map_err(|error| error.to_string())
    }
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn rules() -> PatchRules {
    let resolve = |text: &str| match text.split_once('/') {
        Some(("denied", _)) => Err(format!("model not allowed: {text}")),
        Some((provider, model)) => Ok(ModelName::new(provider, model)),
        None => Ok(ModelName::new("fake", text)),
    };
    PatchRules {
        default_model: ModelName::new("fake", "fake-1"),
        resolve_model: Arc::new(resolve),
        has_xhigh: |provider, _| provider == "deep",
        xhigh_models: "deep/one or deep/two".into(),
    }
}

fn golden_rows() -> Value {
    let now = now_ms();
    json!({
        "agent:main:main": {
            "sessionId": "2e158d2b-e08d-4fb7-9d48-8960b2c77a10", "updatedAt": now - 2000, "systemSent": true,
            "skillsSnapshot": {"prompt": "", "skills": [], "version": 0}, "deliveryContext": {"channel": "webchat"},
            "lastChannel": "webchat", "modelProvider": "fake", "model": "fake-1", "contextTokens": 32000,
            "abortedLastRun": false, "inputTokens": 100, "outputTokens": 7, "totalTokens": 100
        },
        "agent:main:side": {"sessionId": "f981c3e6-f7ec-49c9-b22e-416695aae90c", "updatedAt": now - 1000, "label": "side-label"},
        "agent:main:abort": {
            "sessionId": "611937ad", "updatedAt": now - 3000, "systemSent": true, "abortedLastRun": false,
            "chatType": "direct", "origin": {"label": "golden", "provider": "webchat", "surface": "webchat", "chatType": "direct"},
            "contextTokens": 32000, "deliveryContext": {"channel": "webchat"}, "lastChannel": "webchat"
        },
    })
}

#[tokio::test]
async fn rows_have_the_recorded_shape() {
    let rows = golden_rows();
    let bench = Bench::with(&rows);
    let listed = bench.list(json!({})).await;
    assert_eq!(listed["path"], "(multiple)");
    assert_eq!(listed["count"], 3);
    assert_eq!(
        listed["defaults"],
        json!({"modelProvider": "fake", "model": "fake-1", "contextTokens": 32000})
    );
    let at = |key: &str| rows[key]["updatedAt"].clone();
    let expect = json!([
        {"key": "agent:main:side", "kind": "direct", "label": "side-label", "displayName": "side-label",
         "updatedAt": at("agent:main:side"), "sessionId": "f981c3e6-f7ec-49c9-b22e-416695aae90c", "totalTokens": 0,
         "modelProvider": "fake", "model": "fake-1"},
        {"key": "agent:main:main", "kind": "direct", "updatedAt": at("agent:main:main"),
         "sessionId": "2e158d2b-e08d-4fb7-9d48-8960b2c77a10", "systemSent": true, "abortedLastRun": false,
         "inputTokens": 100, "outputTokens": 7, "totalTokens": 100, "modelProvider": "fake", "model": "fake-1",
         "contextTokens": 32000, "deliveryContext": {"channel": "webchat"}, "lastChannel": "webchat"},
        {"key": "agent:main:abort", "kind": "direct", "displayName": "golden", "chatType": "direct",
         "origin": {"label": "golden", "provider": "webchat", "surface": "webchat", "chatType": "direct"},
         "updatedAt": at("agent:main:abort"), "sessionId": "611937ad", "systemSent": true, "abortedLastRun": false,
         "totalTokens": 0, "modelProvider": "fake", "model": "fake-1", "contextTokens": 32000,
         "deliveryContext": {"channel": "webchat"}, "lastChannel": "webchat"},
    ]);
    assert_eq!(listed["sessions"], expect);
}

/// The fields of a row in `sessions.md` §7, those of the recording aside.
#[tokio::test]
async fn a_row_shows_what_is_set() {
    let now = now_ms();
    let entry = json!({
        "sessionId": "c", "updatedAt": now, "label": "l", "displayName": "Ops room", "channel": "slack", "subject": "S",
        "groupChannel": "#ops", "space": "acme", "chatType": "channel", "thinkingLevel": "high", "verboseLevel": "full",
        "reasoningLevel": "stream", "elevatedLevel": "off", "sendPolicy": "deny", "responseUsage": "tokens",
        "lastChannel": "slack", "lastTo": "channel:C1", "lastAccountId": "biz"
    });
    let bench = Bench::with(&json!({"agent:main:slack:channel:c1": entry}));
    let mut expect = entry;
    let more = json!({
        "key": "agent:main:slack:channel:c1", "kind": "group", "totalTokens": 0, "modelProvider": "fake", "model": "fake-1",
        "deliveryContext": {"channel": "slack", "to": "channel:C1", "accountId": "biz"}
    });
    expect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(bench.list(json!({})).await["sessions"], json!([expect]));
}

#[tokio::test]
async fn the_kind_of_a_row_follows_its_key_and_chat_type() {
    let rows = [
        ("agent:main:discord:channel:9", "", "group"),
        ("agent:main:telegram:group:-1", "", "group"),
        ("agent:main:telegram:dm:7", "", "direct"),
        ("agent:main:x", "group", "group"),
        ("agent:main:y", "channel", "group"),
        ("agent:main:z", "direct", "direct"),
        ("global", "", "global"),
        ("unknown", "", "unknown"),
    ];
    for (key, chat_type, kind) in rows {
        let mut entry = json!({"sessionId": "s", "updatedAt": 1});
        if !chat_type.is_empty() {
            entry["chatType"] = chat_type.into();
        }
        let bench = Bench::with(&json!({key: entry}));
        let listed = bench.list(json!({"includeGlobal": true, "includeUnknown": true})).await;
        let row = &listed["sessions"][0];
        assert_eq!((&row["key"], &row["kind"]), (&json!(key), &json!(kind)));
    }
}

#[tokio::test]
async fn a_store_that_agents_share_is_named() {
    let bench = Bench::in_store(Some("~/all.json"), &golden_rows());
    let listed = bench.list(json!({})).await;
    let path = bench.layout.state_dir().join("all.json");
    assert_eq!((&listed["path"], &listed["count"]), (&json!(path), &json!(3)));
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let now = now_ms();
    let bench = Bench::with(&json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": now},
        "agent:main:subagent:1": {"sessionId": "child", "updatedAt": now - 1, "spawnedBy": "main"},
        "agent:main:discord:channel:9": {"sessionId": "d", "updatedAt": now - 2, "subject": "Launch", "channel": "discord"},
        "agent:main:cron:j": {"sessionId": "c", "updatedAt": now - 3},
        "agent:main:cron:j:run:c": {"sessionId": "c", "updatedAt": now - 3},
        "agent:ops:old": {"sessionId": "o", "updatedAt": now - 3_600_000, "label": "ops-label"},
        "global": {"sessionId": "g", "updatedAt": now - 4},
        "unknown": {"sessionId": "u", "updatedAt": now - 5},
    }));
    let all = [
        "agent:main:main",
        "agent:main:subagent:1",
        "agent:main:discord:channel:9",
        "agent:main:cron:j",
        "agent:ops:old",
    ];
    let rows: Vec<(Value, Vec<&str>)> = vec![
        (json!({}), all.to_vec()),
        (json!({"limit": 2}), all[..2].to_vec()),
        (json!({"limit": 99}), all.to_vec()),
        (json!({"activeMinutes": 5}), all[..4].to_vec()),
        (json!({"spawnedBy": "agent:main:main"}), vec![all[1]]),
        (json!({"label": "ops-label"}), vec![all[4]]),
        (json!({"agentId": "OPS"}), vec![all[4]]),
        (json!({"search": "LAUNCH"}), vec![all[2]]),
        (json!({"search": "child"}), vec![all[1]]),
        (json!({"search": "OPS-LAB"}), vec![all[4]]),
        (json!({"search": "discord:g-launch"}), vec![all[2]]),
        (json!({"includeGlobal": true, "search": "global"}), vec!["global"]),
        (json!({"includeUnknown": true, "search": "unknown"}), vec!["unknown"]),
        (json!({"includeGlobal": true, "agentId": "main", "search": "global"}), vec![]),
    ];
    for (params, expect) in rows {
        assert_eq!(bench.keys(params.clone()).await, expect, "{params}");
    }
}

#[tokio::test]
async fn who_names_no_limit_gets_the_newest_ten_thousand() {
    let rows: serde_json::Map<String, Value> = (0..10_002)
        .map(|n| (format!("agent:main:s{n}"), json!({"sessionId": "s", "updatedAt": n})))
        .collect();
    let bench = Bench::with(&Value::Object(rows));
    let keys = bench.keys(json!({})).await;
    assert_eq!(
        (keys.len(), keys[0].as_str(), keys[9_999].as_str()),
        (10_000, "agent:main:s10001", "agent:main:s2")
    );
    assert_eq!(bench.keys(json!({"limit": 10_001})).await.len(), 10_001);
}

#[tokio::test]
async fn titles_and_last_messages_come_from_the_transcript() {
    let bench = Bench::with(&golden_rows());
    bench.transcript(
        "2e158d2b-e08d-4fb7-9d48-8960b2c77a10",
        &[("user", "[Sat 2026-11-21 02:42 UTC] hi there\n[message_id: r]"), ("assistant", "Hello.")],
    );
    let listed =
        bench.list(json!({"includeDerivedTitles": true, "includeLastMessage": true, "limit": 3})).await;
    let row = |at: usize| listed["sessions"][at].clone();
    assert!(row(0)["derivedTitle"].as_str().unwrap().starts_with("f981c3e6 (20"), "no transcript");
    assert_eq!(
        (row(1)["derivedTitle"].as_str(), row(1)["lastMessagePreview"].as_str()),
        (Some("hi there"), Some("Hello."))
    );
    assert_eq!(row(0).get("lastMessagePreview"), None);
}

#[tokio::test]
async fn sessions_are_resolved_by_exactly_one_selector() {
    let bench = Bench::with(&json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": 3},
        "agent:main:side": {"sessionId": "b", "updatedAt": 2, "label": "side-label"},
        "agent:main:x": {"sessionId": "twice", "updatedAt": 2, "label": "same"},
        "agent:ops:y": {"sessionId": "twice", "updatedAt": 1, "label": "same", "spawnedBy": "agent:main:main"},
        "global": {"sessionId": "g", "updatedAt": 1},
        "unknown": {"sessionId": "u", "updatedAt": 1},
    }));
    let ok = |key: &str| Ok(key.to_owned());
    let err = |text: &str| Err(text.to_owned());
    let rows = [
        (json!({"key": "main"}), ok("agent:main:main")),
        (json!({"label": "side-label"}), ok("agent:main:side")),
        (json!({"sessionId": "b"}), ok("agent:main:side")),
        (json!({"sessionId": "agent:main:side"}), ok("agent:main:side")),
        (json!({"label": "same", "agentId": "main"}), ok("agent:main:x")),
        (json!({"label": "same", "spawnedBy": "agent:main:main"}), ok("agent:ops:y")),
        (json!({"sessionId": "twice", "spawnedBy": "main"}), ok("agent:ops:y")),
        (json!({"sessionId": "g"}), err("No session found: g")),
        (json!({"sessionId": "g", "includeGlobal": true}), ok("global")),
        (json!({"sessionId": "u"}), err("No session found: u")),
        (json!({"sessionId": "u", "includeUnknown": true}), ok("unknown")),
        (
            json!({"sessionId": "a", "label": "b"}),
            err("Provide either key, sessionId, or label (not multiple)"),
        ),
        (json!({"key": "a", "label": "b"}), err("Provide either key, sessionId, or label (not multiple)")),
        (json!({}), err("Either key, sessionId, or label is required")),
        (json!({"key": "agent:main:none"}), err("No session found: agent:main:none")),
        (json!({"sessionId": "none"}), err("No session found: none")),
        (json!({"label": "none"}), err("No session found with label: none")),
        (
            json!({"sessionId": "twice"}),
            err("Multiple sessions found for sessionId: twice (agent:main:x, agent:ops:y)"),
        ),
        (
            json!({"label": "same"}),
            err("Multiple sessions found with label: same (agent:main:x, agent:ops:y)"),
        ),
        (
            json!({"key": "agent:main"}),
            err("session key \"agent:main\" is malformed, expected agent:<agentId>:<name>"),
        ),
    ];
    for (params, expect) in rows {
        assert_eq!(bench.resolve(params.clone()).await, expect, "{params}");
    }
}

#[tokio::test]
async fn a_patch_sets_and_clears_every_field() {
    let bench = Bench::with(&golden_rows());
    let before = golden_rows()["agent:main:main"].clone();
    let set = bench
        .patch(json!({"key": "main", "thinkingLevel": "Ultra", "verboseLevel": "on", "reasoningLevel": "stream",
                      "responseUsage": "on", "elevatedLevel": "ask", "execHost": "Gateway", "execSecurity": "allowlist",
                      "execAsk": "on-miss", "execNode": " n1 ", "sendPolicy": "deny", "label": "the-main",
                      "groupActivation": "always"}))
        .await
        .unwrap();
    let mut expect = before.clone();
    expect["updatedAt"] = set["entry"]["updatedAt"].clone();
    let fields = json!({"thinkingLevel": "high", "verboseLevel": "on", "reasoningLevel": "stream",
                        "responseUsage": "tokens", "elevatedLevel": "ask", "execHost": "gateway",
                        "execSecurity": "allowlist", "execAsk": "on-miss", "execNode": "n1", "sendPolicy": "deny",
                        "label": "the-main", "groupActivation": "always"});
    expect.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    assert_eq!(set["entry"], expect);
    assert_eq!((set["ok"].as_bool(), set["key"].as_str()), (Some(true), Some("agent:main:main")));
    assert_eq!(set["resolved"], json!({"modelProvider": "fake", "model": "fake-1"}));
    assert!(Path::new(set["path"].as_str().unwrap()).ends_with("agents/main/sessions/sessions.json"));

    let cleared = bench
        .patch(json!({"key": "main", "thinkingLevel": "off", "verboseLevel": null, "reasoningLevel": "off",
                      "responseUsage": null, "elevatedLevel": null, "execHost": null, "execSecurity": null,
                      "execAsk": null, "execNode": null, "sendPolicy": null, "label": null, "groupActivation": null}))
        .await
        .unwrap();
    let mut expect = before;
    expect["updatedAt"] = cleared["entry"]["updatedAt"].clone();
    assert_eq!(cleared["entry"], expect);
}

#[tokio::test]
async fn a_patch_of_the_model_is_an_override_unless_it_is_the_default() {
    let bench = Bench::with(&json!({"agent:main:main": {
        "sessionId": "a", "updatedAt": 1, "authProfileOverride": "p", "authProfileOverrideSource": "user"}}));
    let set = bench.patch(json!({"key": "main", "model": "nope/none"})).await.unwrap();
    assert_eq!(set["resolved"], json!({"modelProvider": "nope", "model": "none"}));
    assert_eq!(
        (set["entry"]["providerOverride"].as_str(), set["entry"]["modelOverride"].as_str()),
        (Some("nope"), Some("none"))
    );
    assert_eq!(set["entry"].get("authProfileOverride"), None);
    let back = bench.patch(json!({"key": "main", "model": "fake/fake-1"})).await.unwrap();
    assert_eq!((back["entry"].get("providerOverride"), back["entry"].get("modelOverride")), (None, None));
    bench.patch(json!({"key": "main", "model": "deep/one", "thinkingLevel": "xhigh"})).await.unwrap();
    let shallower = bench.patch(json!({"key": "main", "model": null})).await.unwrap();
    assert_eq!(shallower["entry"]["thinkingLevel"], "high");
}

#[tokio::test]
async fn wrong_patches_are_refused_in_the_recorded_words_and_change_nothing() {
    let bench = Bench::with(&json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": 1},
        "agent:main:side": {"sessionId": "b", "updatedAt": 1, "label": "side-label"},
        "agent:main:subagent:1": {"sessionId": "c", "updatedAt": 1, "spawnedBy": "agent:main:main"},
    }));
    let rows = [
        (
            json!({"key": "main", "thinkingLevel": "xhigh"}),
            "thinkingLevel \"xhigh\" is only supported for deep/one or deep/two",
        ),
        (
            json!({"key": "main", "thinkingLevel": "lots"}),
            "invalid thinkingLevel (use off|minimal|low|medium|high)",
        ),
        (json!({"key": "main", "verboseLevel": "loud"}), "invalid verboseLevel (use \"on\"|\"off\")"),
        (
            json!({"key": "main", "reasoningLevel": "x"}),
            "invalid reasoningLevel (use \"on\"|\"off\"|\"stream\")",
        ),
        (
            json!({"key": "main", "elevatedLevel": "x"}),
            "invalid elevatedLevel (use \"on\"|\"off\"|\"ask\"|\"full\")",
        ),
        (
            json!({"key": "main", "execHost": "moon"}),
            "invalid execHost (use \"sandbox\"|\"gateway\"|\"node\")",
        ),
        (
            json!({"key": "main", "execSecurity": "x"}),
            "invalid execSecurity (use \"deny\"|\"allowlist\"|\"full\")",
        ),
        (json!({"key": "main", "execAsk": "x"}), "invalid execAsk (use \"off\"|\"on-miss\"|\"always\")"),
        (json!({"key": "main", "execNode": " "}), "invalid execNode: empty"),
        (json!({"key": "main", "model": " "}), "invalid model: empty"),
        (json!({"key": "main", "model": "denied/x"}), "model not allowed: denied/x"),
        (json!({"key": "main", "label": "side-label"}), "label already in use: side-label"),
        (json!({"key": "main", "label": " "}), "invalid label: empty"),
        (json!({"key": "main", "label": "x".repeat(65)}), "invalid label: too long (max 64)"),
        (
            json!({"key": "main", "spawnedBy": "agent:main:main"}),
            "spawnedBy is only supported for subagent:* sessions",
        ),
        (json!({"key": "subagent:1", "spawnedBy": "agent:main:x"}), "spawnedBy cannot be changed once set"),
        (json!({"key": "subagent:1", "spawnedBy": null}), "spawnedBy cannot be cleared once set"),
    ];
    for (params, expect) in rows {
        assert_eq!(bench.patch(params.clone()).await, Err(expect.to_owned()), "{params}");
    }
    let main = bench.store.get(&KeyRules::default().canonical("main").unwrap()).await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(&*main.entry).unwrap(), json!({"sessionId": "a", "updatedAt": 1}));
    assert!(
        bench.patch(json!({"key": "subagent:1", "spawnedBy": "main"})).await.is_ok(),
        "the same parent again"
    );
}

#[tokio::test]
async fn a_reset_answers_as_recorded() {
    let mut rows = golden_rows();
    rows["agent:main:main"]["thinkingLevel"] = "high".into();
    let bench = Bench::with(&rows);
    let result = reset(&bench.store, &read(json!({"key": "main"}))).await.unwrap();
    let mut entry = Value::Object(result.entry);
    assert_ne!(entry["sessionId"], rows["agent:main:main"]["sessionId"]);
    entry["sessionId"] = "new".into();
    entry["updatedAt"] = 0.into();
    let expect = json!({
        "sessionId": "new", "updatedAt": 0, "systemSent": false, "abortedLastRun": false, "thinkingLevel": "high",
        "model": "fake-1", "contextTokens": 32000, "deliveryContext": {"channel": "webchat"}, "lastChannel": "webchat",
        "skillsSnapshot": {"prompt": "", "skills": [], "version": 0}, "inputTokens": 0, "outputTokens": 0, "totalTokens": 0
    });
    assert_eq!(entry, expect);

    let fresh = reset(&bench.store, &read(json!({"key": "agent:main:brand-new"}))).await.unwrap();
    let keys: Vec<&str> = fresh.entry.keys().map(String::as_str).collect();
    let expect = [
        "sessionId",
        "updatedAt",
        "systemSent",
        "abortedLastRun",
        "inputTokens",
        "outputTokens",
        "totalTokens",
    ];
    assert_eq!(keys, expect);
}

#[tokio::test]
async fn a_deleted_session_leaves_an_archive() {
    let bench = Bench::with(&json!({
        "agent:main:side": {"sessionId": "side", "updatedAt": 1},
        "agent:main:keep": {"sessionId": "keep", "updatedAt": 1},
        "agent:main:cron:j": {"sessionId": "job", "updatedAt": 1},
        "agent:main:cron:j:run:job": {"sessionId": "job", "updatedAt": 1},
    }));
    let delete = async |params: Value| {
        let result = super::delete(&bench.store, &bench.transcripts(), &read(params), Duration::ZERO).await;
        result.map(|result| (result.key, result.deleted, result.archived)).map_err(|error| error.to_string())
    };
    let files = ["side", "keep", "job"].map(|id| bench.transcript(id, &[("user", "x")]));
    assert_eq!(
        delete(json!({"key": "main"})).await,
        Err("Cannot delete the main session (agent:main:main).".into())
    );
    let (key, deleted, archived) = delete(json!({"key": "agent:main:side"})).await.unwrap();
    assert_eq!((key.as_str(), deleted, archived.len()), ("agent:main:side", true, 1));
    let prefix = format!("{}.deleted.", files[0].display());
    assert!(
        archived[0].starts_with(&prefix)
            && archived[0].ends_with('Z')
            && !archived[0][prefix.len()..].contains(':')
    );
    assert!(Path::new(&archived[0]).exists() && !files[0].exists());
    assert_eq!(
        delete(json!({"key": "agent:main:side"})).await,
        Ok(("agent:main:side".into(), false, vec![]))
    );
    assert_eq!(delete(json!({"key": "keep", "deleteTranscript": false})).await.unwrap().2, [""; 0]);
    assert!(files[1].exists());
    assert_eq!(delete(json!({"key": "cron:j:run:job"})).await.unwrap().2, [""; 0]);
    assert!(files[2].exists(), "the job's own row still stands for it");
    assert_eq!(delete(json!({"key": "cron:j"})).await.unwrap().2.len(), 1);
}

#[tokio::test]
async fn previews_answer_a_status_for_each_key() {
    let bench = Bench::with(&json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": 1},
        "agent:main:empty": {"sessionId": "none", "updatedAt": 1},
    }));
    bench.transcript(
        "a",
        &[
            ("user", "first"),
            ("assistant", "[ops]\n\ninjected note"),
            ("user", "[Sat 2026-11-21 02:42 UTC] hello agent"),
            ("assistant", "Hello from the fake model."),
        ],
    );
    let params = json!({"keys": ["main", "agent:main:none", "agent:main:empty", "agent:"], "limit": 3, "maxChars": 40});
    let result = preview(&bench.store, &bench.transcripts(), &read(params)).await.unwrap();
    let expect = json!([
        {"key": "main", "status": "ok", "items": [
            {"role": "assistant", "text": "[ops]\n\ninjected note"}, {"role": "user", "text": "hello agent"},
            {"role": "assistant", "text": "Hello from the fake model."}]},
        {"key": "agent:main:none", "status": "missing", "items": []},
        {"key": "agent:main:empty", "status": "empty", "items": []},
        {"key": "agent:", "status": "missing", "items": []},
    ]);
    assert_eq!(serde_json::to_value(result.previews).unwrap(), expect);
}

/// Defaults and limits of `sessions.md` §4.9 and §7.
#[tokio::test]
async fn previews_are_bounded() {
    let bench = Bench::with(&json!({"agent:main:main": {"sessionId": "a", "updatedAt": 1}}));
    let long = "x".repeat(3000);
    bench.transcript("a", &vec![("assistant", &*long); 60]);
    let rows = [
        (json!({"keys": ["main"]}), 12, 240),
        (json!({"keys": ["main"], "limit": 13, "maxChars": 300}), 13, 300),
        (json!({"keys": ["main"], "limit": 99, "maxChars": 5000}), 50, 2000),
        (json!({"keys": ["main"], "limit": 1, "maxChars": 5}), 1, 20),
    ];
    for (params, items, chars) in rows {
        let result = preview(&bench.store, &bench.transcripts(), &read(params.clone())).await.unwrap();
        let texts: Vec<&str> = result.previews[0].items.iter().map(|item| &*item.text).collect();
        let text = format!("{}...", "x".repeat(chars - 3));
        assert_eq!(texts, vec![text; items], "{params}");
    }
    let keys: Vec<String> = (0..65).map(|n| format!("k{n}")).collect();
    let result = preview(&bench.store, &bench.transcripts(), &read(json!({"keys": keys}))).await.unwrap();
    let asked: Vec<String> = result.previews.into_iter().map(|preview| preview.key).collect();
    assert_eq!(asked, keys[..64]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_transcript_that_may_not_be_read_has_a_preview_that_says_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::with(&json!({"agent:main:main": {"sessionId": "a", "updatedAt": 1}}));
    let file = bench.transcript("a", &[("user", "x")]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    // For root there is no such file.
    if std::fs::File::open(&file).is_err() {
        let result =
            preview(&bench.store, &bench.transcripts(), &read(json!({"keys": ["main"]}))).await.unwrap();
        let expect = json!([{"key": "main", "status": "error", "items": []}]);
        assert_eq!(serde_json::to_value(result.previews).unwrap(), expect);
    }
}

/// The refusal of `sessions.md` §7: the main session is that of the default agent, or everybody's.
#[test]
fn only_the_main_session_can_not_be_deleted() {
    use openclaw_protocol::SessionScope::{Global, PerSender};
    let rows = [
        (PerSender, "main", Err("Cannot delete the main session (agent:main:main).")),
        (PerSender, "agent:main:main", Err("Cannot delete the main session (agent:main:main).")),
        (PerSender, "agent:ops:main", Ok("agent:ops:main")),
        (PerSender, "global", Ok("global")),
        (Global, "main", Err("Cannot delete the main session (global).")),
        (Global, "global", Err("Cannot delete the main session (global).")),
        (Global, "side", Ok("agent:main:side")),
    ];
    for (scope, key, expect) in rows {
        let rules = KeyRules::new(AgentId::default(), "main", scope);
        let got =
            require_deletable(&rules, key).map(|key| key.to_string()).map_err(|error| error.to_string());
        assert_eq!(got, expect.map(str::to_owned).map_err(str::to_owned), "{scope:?} {key}");
    }
}

#[tokio::test]
async fn the_main_session_of_another_agent_is_deleted() {
    let rows = ["main", "ops"]
        .map(|agent| (format!("agent:{agent}:main"), json!({"sessionId": agent, "updatedAt": 1})));
    let bench = Bench::in_store(Some("~/all.json"), &rows.into_iter().collect());
    let params = read(json!({"key": "agent:ops:main"}));
    let result = super::delete(&bench.store, &bench.transcripts(), &params, Duration::ZERO).await.unwrap();
    assert_eq!((&*result.key, result.deleted), ("agent:ops:main", true));
    assert_eq!(bench.keys(json!({})).await, ["agent:main:main"]);
}

#[tokio::test]
async fn a_deleted_session_takes_the_files_of_its_topics_along() {
    let bench = Bench::with(&json!({
        "agent:main:telegram:group:1": {"sessionId": "sess", "updatedAt": 1},
        "agent:main:telegram:group:1:topic:7": {"sessionId": "sess", "updatedAt": 1},
        "agent:main:other": {"sessionId": "sess-topic", "updatedAt": 1},
    }));
    let [own, topic, used, other] = ["sess", "sess-topic-5", "sess-topic-7", "sess-topic"]
        .map(|id| bench.transcript(id, &[("user", "x")]));
    let key = bench.store.rules().canonical("agent:main:telegram:group:1:topic:7").unwrap();
    let file: Box<str> = used.display().to_string().into();
    let change: crate::store::Change = Box::new(move |edit| {
        edit.entry.session_file = Some(file);
        Ok(())
    });
    bench.store.update(&key, change).await.unwrap();
    let params = read(json!({"key": "telegram:group:1"}));
    let result = super::delete(&bench.store, &bench.transcripts(), &params, Duration::ZERO).await.unwrap();
    let begins = [&own, &topic].map(|file| format!("{}.deleted.", file.display()));
    assert_eq!(result.archived.len(), 2, "{result:?}");
    assert!(
        result.archived.iter().zip(begins).all(|(archive, begin)| archive.starts_with(&begin)),
        "{result:?}"
    );
    assert!(!own.exists() && !topic.exists() && used.exists() && other.exists());
}

#[tokio::test]
async fn a_session_whose_transcript_is_being_written_is_not_deleted() {
    let bench = Bench::with(&json!({"agent:main:busy": {"sessionId": "busy", "updatedAt": 1}}));
    let file = bench.transcript("busy", &[("user", "x")]);
    let held = crate::transcript::testing::lock(&file).await.unwrap();
    let params = read(json!({"key": "busy"}));
    let refused =
        super::delete(&bench.store, &bench.transcripts(), &params, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.to_string(), "Session agent:main:busy is still active; try again in a moment.");
    assert!(!refused.is_invalid_request() && file.exists());
    drop(held);
    assert!(
        super::delete(&bench.store, &bench.transcripts(), &params, Duration::ZERO).await.unwrap().deleted
    );
}

#[tokio::test]
async fn a_transcript_is_cut_to_its_last_lines_and_the_row_forgets_its_tokens() {
    let bench = Bench::with(&json!({
        "agent:main:main": {"sessionId": "long", "updatedAt": 1, "inputTokens": 5, "outputTokens": 6, "totalTokens": 7, "label": "l"},
        "agent:main:bare": {"updatedAt": 1},
        "agent:main:gone": {"sessionId": "gone", "updatedAt": 1, "totalTokens": 7},
    }));
    let said: Vec<(&str, &str)> = [("user", "q"), ("assistant", "a")].repeat(5);
    let file = bench.transcript("long", &said);
    let compact = async |params: Value| {
        let result = compact(&bench.store, &bench.transcripts(), &read(params), Duration::ZERO).await;
        result.map(|result| serde_json::to_value(result).unwrap()).map_err(|error| error.to_string())
    };
    let whole = compact(json!({"key": "main"})).await.unwrap();
    assert_eq!(whole, json!({"ok": true, "key": "agent:main:main", "compacted": false, "kept": 10}));
    let cut = compact(json!({"key": "main", "maxLines": 5})).await.unwrap();
    let archive = cut["archived"].as_str().unwrap().to_owned();
    assert!(archive.starts_with(&format!("{}.bak.", file.display())) && Path::new(&archive).exists());
    assert_eq!(
        cut,
        json!({"ok": true, "key": "agent:main:main", "compacted": true, "archived": archive, "kept": 4})
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 5, "header and four messages");
    let row = bench.store.get(&bench.store.rules().canonical("main").unwrap()).await.unwrap().unwrap();
    let mut row = serde_json::to_value(&*row.entry).unwrap();
    assert!(row["updatedAt"].as_i64() > Some(1));
    row["updatedAt"] = 0.into();
    assert_eq!(row, json!({"sessionId": "long", "updatedAt": 0, "label": "l"}));
    let huge = compact(json!({"key": "main", "maxLines": u64::MAX})).await.unwrap();
    assert_eq!(huge, json!({"ok": true, "key": "agent:main:main", "compacted": false, "kept": 4}));

    for (key, reason) in [("none", "no sessionId"), ("bare", "no sessionId"), ("gone", "no transcript")] {
        let expect =
            json!({"ok": true, "key": format!("agent:main:{key}"), "compacted": false, "reason": reason});
        assert_eq!(compact(json!({"key": key})).await.unwrap(), expect);
    }
    let gone = bench.store.get(&bench.store.rules().canonical("gone").unwrap()).await.unwrap().unwrap();
    assert_eq!(gone.entry.total_tokens, Some(7), "nothing was cut");
    assert!(bench.store.get(&bench.store.rules().canonical("none").unwrap()).await.unwrap().is_none());
    let malformed = compact(json!({"key": "agent:main"})).await.unwrap_err();
    assert!(malformed.starts_with("session key"), "{malformed}");
    let _held = crate::transcript::testing::lock(&file).await.unwrap();
    let busy = compact(json!({"key": "main", "maxLines": 2})).await.unwrap_err();
    assert_eq!(busy, "Session agent:main:main is still active; try again in a moment.");
}

/// The default `maxLines` of `sessions.md` §7.
#[tokio::test]
async fn four_hundred_lines_are_kept_unless_told() {
    let bench = Bench::with(&json!({"agent:main:main": {"sessionId": "long", "updatedAt": 1}}));
    bench.transcript("long", &[("user", "q"); 401]);
    let params = read(json!({"key": "main"}));
    for compacted in [true, false] {
        let result = compact(&bench.store, &bench.transcripts(), &params, Duration::ZERO).await.unwrap();
        assert_eq!((result.compacted, result.kept), (compacted, Some(400)));
    }
}
