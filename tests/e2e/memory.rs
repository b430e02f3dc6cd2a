//! Memory: what is written down is found, by tools, clients and the command line, with and without a provider of embeddings.

#[path = "../../crates/encoder/tests/model/tiny_model.rs"]
#[expect(dead_code, reason = "tests of the encoder use all of it")]
mod tiny_model;

use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedUsage};
use openclaw_testkit::{DEADLINE, GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{has, json_of, ok, openclaw, run};
use crate::support::conversation::turn;
use crate::support::http::get;
use crate::support::memory_files::{found, note, paths, tool, with_embeddings, workspace};

const KEY: &str = "agent:main:main";

const GARDEN: &str = "# 2026-01-29\n\n- Garden: planted three apple trees.\n- 会议记录：网关架构评审。\n";

#[tokio::test]
async fn a_newcomer_without_a_key_finds_what_was_written_down() {
    let gateway = gateway().prepare().unwrap();
    note(&gateway, "memory/2026-01-29.md", GARDEN);
    note(&gateway, "MEMORY.md", "# Notes\n- commit a828e60 fixes the backoff\n");
    let mut gateway = gateway;
    gateway.start().await.unwrap();
    assert!(!gateway.state_dir().join("memory").exists(), "nothing is opened before the first use");
    let answer = found(&gateway, "apple trees").await;
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["results", "provider", "model", "citations", "mode"], "{answer}");
    let hit = &answer["results"][0];
    let keys: Vec<&String> = hit.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["path", "startLine", "endLine", "score", "snippet", "source", "citation"]);
    assert_eq!(hit["path"], "memory/2026-01-29.md");
    assert_eq!(hit["citation"], "memory/2026-01-29.md#L1-L5");
    assert_eq!(hit["snippet"], format!("{}\n\nSource: memory/2026-01-29.md#L1-L5", GARDEN.trim_end()));
    assert_eq!([&answer["provider"], &answer["citations"], &answer["mode"]], ["none", "auto", "keyword"]);
    // Words of every script, and exact ones.
    assert_eq!(paths(&found(&gateway, "架构").await), ["memory/2026-01-29.md"]);
    assert_eq!(paths(&found(&gateway, "a828e60").await), ["MEMORY.md"]);
    // In a group nothing is cited.
    let group = "agent:main:discord:group:123";
    let answer = tool(&gateway, "memory_search", group, json!({"query": "apple", "maxResults": "1"})).await;
    assert_eq!(
        (&answer["results"][0]["citation"], &answer["results"][0]["snippet"]),
        (&Value::Null, &json!(GARDEN))
    );
    assert_eq!(found(&gateway, "  ").await["message"], "query required");

    let get = async |args: Value| tool(&gateway, "memory_get", "main", args).await;
    let lines = get(json!({"path": "memory/2026-01-29.md", "from": 3, "lines": 1})).await;
    assert_eq!(
        lines.to_string(),
        r#"{"text":"- Garden: planted three apple trees.","path":"memory/2026-01-29.md"}"#
    );
    assert_eq!(get(json!({"path": ""})).await["message"], "path required");
    let missing = get(json!({"path": "memory/missing.md"})).await;
    assert!(
        missing["error"].as_str().unwrap().starts_with("not found") && missing["disabled"].is_null(),
        "{missing}"
    );
    for path in ["NOTES.md", "../etc/passwd", "memory/../../x.md", "memory", "memory/x.txt"] {
        let refused = get(json!({"path": path})).await;
        assert!(
            refused["text"] == "" && refused["error"].as_str().unwrap().contains("path required"),
            "{refused}"
        );
    }

    // The command line asks the gateway, and reads by itself why there are no vectors.
    let told = ok(&gateway, &["memory", "status"]).await;
    has(
        &told,
        &[
            "Provider: none (requested: auto)",
            "Indexed: 2/2 files · 2 chunks",
            "FTS: ready",
            "OPENAI_API_KEY",
        ],
    );
    let hits = json_of(&gateway, &["memory", "search", "apple", "--json"]).await;
    assert_eq!(hits["results"][0]["path"], "memory/2026-01-29.md");
    assert!(hits["results"][0].get("citation").is_none());
    assert_eq!(ok(&gateway, &["memory", "search", "zebra"]).await, "No matches.\n");
    note(&gateway, "memory/later.md", "The zebra came later.\n");
    assert_eq!(ok(&gateway, &["memory", "index"]).await, "Memory index updated (main).\n");
    assert_eq!(paths(&found(&gateway, "zebra").await), ["memory/later.md"]);
    // Without it the same files are opened here.
    gateway.terminate().await.unwrap();
    note(&gateway, "memory/last.md", "The okapi came last.\n");
    has(&ok(&gateway, &["memory", "search", "okapi"]).await, &["memory/last.md:1-2\nThe okapi came last.\n"]);
    has(&ok(&gateway, &["status"]).await, &["4 files · 4 chunks · sources memory · plugin memory-core"]);
}

/// `spec/golden/cli-memory.json`, but for what is known to be wrong there: an index that is in step is not dirty.
#[tokio::test]
async fn the_command_line_tells_what_was_recorded() {
    let model = ModelServer::queue([]).await;
    let list = json!({"agents": {"list": [{"id": "main"}, {"id": "work"}]}});
    let gateway = gateway().config(with_embeddings(&model)).config(list).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    note(&gateway, "memory/day.md", "# Day\n- walked\n");
    let indexed = ok(&gateway, &["memory", "index"]).await;
    assert_eq!(indexed, "Memory index updated (main).\nMemory index updated (work).\n");
    let told = ok(&gateway, &["memory", "status", "--agent", "main"]).await;
    let dims = told.lines().find_map(|line| line.strip_prefix("Vector dims: ")).unwrap().to_owned();
    let expect = format!(
        "Memory Search (main)\nProvider: openai (requested: openai)\nModel: emb-1\nSources: memory\nIndexed: 2/2 files · 2 chunks\n\
         Dirty: no\nStore: ~/.openclaw/memory/main.sqlite\nWorkspace: ~/.openclaw/workspace\nBy source:\n  memory · 2/2 files · 2 \
         chunks\nVector: ready\nVector dims: {dims}\nFTS: ready\nEmbedding cache: enabled (2 entries)\nBatch: disabled (failures \
         0/2)\n\n"
    );
    assert_eq!(told, expect);
    let all = json_of(&gateway, &["memory", "status", "--deep", "--json"]).await;
    let (main, work) = (&all[0], &all[1]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(main), "agentId status embeddingProbe scan");
    assert_eq!(
        keys(&main["status"]),
        "backend files chunks dirty workspaceDir dbPath provider model requestedProvider sources extraPaths sourceCounts cache \
         fts vector batch bytes"
    );
    assert_eq!(main["embeddingProbe"], json!({"ok": true}));
    assert_eq!(
        main["status"]["vector"],
        json!({"enabled": true, "available": true, "dims": dims.parse::<u64>().unwrap()})
    );
    assert_eq!(main["status"]["cache"], json!({"enabled": true, "entries": 2}));
    assert_eq!(
        main["scan"],
        json!({"sources": [{"source": "memory", "totalFiles": 2, "issues": []}], "totalFiles": 2, "issues": []})
    );
    let missing =
        format!("memory directory missing ({}/memory)", work["status"]["workspaceDir"].as_str().unwrap());
    assert_eq!(work["scan"]["issues"], json!([missing]));
    let hits = json_of(&gateway, &["memory", "search", "tea", "--json"]).await;
    let hit = &hits["results"][0];
    assert_eq!(
        [&hit["path"], &hit["snippet"], &hit["source"]],
        ["MEMORY.md", "# Notes\n- likes tea\n", "memory"]
    );
    let text = ok(&gateway, &["memory", "search", "tea"]).await;
    assert!(text.contains(" MEMORY.md:1-3\n# Notes\n- likes tea\n"), "{text}");
    // All texts are known: nothing is embedded anew.
    let before = model.requests().len();
    has(
        &ok(&gateway, &["memory", "index", "--force", "--verbose", "--agent", "main"]).await,
        &["Memory Index (main)\n", "Files: 2 indexed"],
    );
    assert_eq!(model.requests().len(), before);
}

/// A model server that refuses the key of whoever wants embeddings.
async fn refusing_embeddings() -> ModelServer {
    ModelServer::queue([]).await.listing(|request| {
        request
            .path
            .ends_with("/embeddings")
            .then(|| Reply::openai_error(401, "invalid_request_error", "bad key"))
    })
}

#[tokio::test]
async fn a_provider_that_fails_is_told_and_words_are_searched_all_the_same() {
    let model = refusing_embeddings().await;
    let gateway = gateway().config(with_embeddings(&model)).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    openclaw(&gateway, &["memory", "index"])
        .await
        .failed(&["Memory index failed (main): openai embeddings failed: 401"]);
    let mut gateway = gateway;
    gateway.start().await.unwrap();
    let answer = found(&gateway, "tea").await;
    assert_eq!(paths(&answer), ["MEMORY.md"]);
    assert!(answer["warning"].as_str().unwrap().contains("keywords alone"), "{answer}");
    let probe = json_of(&gateway, &["memory", "status", "--deep", "--json"]).await;
    assert_eq!(probe[0]["embeddingProbe"]["ok"], false, "{probe}");
}

#[tokio::test]
async fn when_a_provider_fails_its_fallback_embeds_and_is_named() {
    let model = refusing_embeddings().await;
    let dir = tempfile::tempdir().unwrap();
    tiny_model::bert(dir.path(), tiny_model::Numbers::F32);
    let fallback = json!({"agents": {"defaults": {"memorySearch": {
        "fallback": "local", "local": {"modelPath": dir.path()},
    }}}});
    let gateway = gateway().config(with_embeddings(&model)).config(fallback).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    let mut gateway = gateway;
    gateway.start().await.unwrap();
    assert_eq!(ok(&gateway, &["memory", "index"]).await, "Memory index updated (main).\n");
    let answer = found(&gateway, "tea").await;
    assert_eq!(
        (paths(&answer), &answer["provider"], &answer["fallback"]["from"], &answer["warning"]),
        (vec!["MEMORY.md".to_owned()], &json!("local"), &json!("openai"), &Value::Null),
        "{answer}"
    );
    assert!(answer["fallback"]["reason"].as_str().unwrap().contains("401"), "{answer}");
    let told = ok(&gateway, &["memory", "status"]).await;
    has(&told, &["Provider: local (requested: openai)", "Fallback: openai", "Vector dims: 16"]);
}

#[tokio::test]
async fn a_model_directory_embeds_without_a_key_or_a_server() {
    let dir = tempfile::tempdir().unwrap();
    tiny_model::bert(dir.path(), tiny_model::Numbers::F32);
    let local = json!({"agents": {"defaults": {"memorySearch": {"local": {"modelPath": dir.path()}}}}});
    let gateway = gateway().config(local).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    assert_eq!(ok(&gateway, &["memory", "index"]).await, "Memory index updated (main).\n");
    let told = ok(&gateway, &["memory", "status", "--deep"]).await;
    has(&told, &["Provider: local (requested: auto)", "Embeddings: ready", "Vector dims: 16"]);
    // Without its weights memory goes on by words, and says what is missing.
    std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    has(&ok(&gateway, &["memory", "search", "tea"]).await, &["MEMORY.md:1-3"]);
    has(&ok(&gateway, &["memory", "status"]).await, &["Local embeddings unavailable", "model.safetensors"]);
}

#[tokio::test]
async fn the_doctor_names_a_provider_that_cannot_be_used() {
    let missing = json!({"agents": {"defaults": {"memorySearch": {
        "provider": "local", "local": {"modelPath": "/nowhere/model.gguf"},
    }}}});
    let gateway = gateway().config(missing).prepare().unwrap();
    let (_, told, _) = run(&gateway, &["doctor", "--non-interactive"]).await;
    has(&told, &["Memory of agent main: Keywords alone are searched", "/nowhere/model.gguf"]);
}

#[tokio::test]
async fn an_index_that_cannot_be_written_is_told_by_readyz() {
    let mut gateway = gateway().prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    // A file stands where the directory of the index is to be.
    std::fs::write(gateway.state_dir().join("memory"), "").unwrap();
    gateway.start().await.unwrap();
    let answer = found(&gateway, "tea").await;
    assert!(answer["disabled"] == true && answer["error"].as_str().is_some(), "{answer}");
    let ready = get(gateway.port(), "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("memory index failing"), "{ready}");
}

#[tokio::test]
async fn a_model_is_offered_memory_and_asks_for_it() {
    let model = ModelServer::queue([
        Reply::tool("call_1", "memory_search", &json!({"query": "tea"})),
        Reply::text("You like tea."),
    ])
    .await;
    let gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    note(&gateway, "MEMORY.md", "- likes tea\n");
    let mut gateway = gateway;
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, KEY, "What do I drink?", "one").await, "You like tea.");
    let asked = model.requests();
    let names = asked[0].tool_names();
    assert!(
        names.iter().any(|name| name == "memory_search") && names.iter().any(|name| name == "memory_get"),
        "{names:?}"
    );
    assert!(asked[0].body["messages"][0].to_string().contains("## Memory Recall"));
    let told = asked[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.contains("Source: MEMORY.md#L1-L2"), "{told}");
}

/// Searches until an answer is as wanted: a change of the file is noticed a moment after it.
async fn until(gateway: &GatewayUnderTest, is_wanted: impl Fn(&Value) -> bool) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let answer = found(gateway, "tea").await;
        if is_wanted(&answer) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{answer}\n{}", gateway.log());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn switches_take_effect_while_the_gateway_runs() {
    let mut gateway = gateway().prepare().unwrap();
    note(&gateway, "MEMORY.md", "- likes tea\n");
    gateway.start().await.unwrap();
    assert_eq!(paths(&found(&gateway, "tea").await), ["MEMORY.md"]);
    for (path, off, on) in [
        ("agents.defaults.memorySearch.enabled", "false", "true"),
        ("plugins.slots.memory", "none", "memory-core"),
    ] {
        ok(&gateway, &["config", "set", path, off]).await;
        until(&gateway, |answer| answer["type"] == "not_found").await;
        assert_eq!(ok(&gateway, &["memory", "status"]).await, "Memory search disabled.\n");
        assert_eq!(ok(&gateway, &["memory", "search", "tea"]).await, "Memory search disabled.\n");
        ok(&gateway, &["config", "set", path, on]).await;
        until(&gateway, |answer| answer["results"][0]["path"] == "MEMORY.md").await;
    }
    ok(&gateway, &["config", "set", "memory.citations", "off"]).await;
    until(&gateway, |answer| answer["citations"] == "off" && answer["results"][0].get("citation").is_none())
        .await;
    ok(&gateway, &["config", "set", "plugins.slots.memory", "none"]).await;
    has(&ok(&gateway, &["status"]).await, &["disabled (plugins.slots.memory=\"none\")"]);
}

#[tokio::test]
async fn two_agents_never_share_an_index() {
    let config = json!({"agents": {
        "defaults": {"memorySearch": {"store": {"path": "~/.openclaw/memory/all.sqlite"}}},
        "list": [{"id": "main"}, {"id": "work"}],
    }});
    let mut gateway = gateway().config(config).start().await.unwrap();
    let answer = found(&gateway, "tea").await;
    assert!(
        answer["disabled"] == true && answer["error"].as_str().unwrap().contains("{agentId}"),
        "{answer}"
    );
    openclaw(&gateway, &["memory", "index"]).await.failed(&["main", "work", "{agentId}"]);
    has(&ok(&gateway, &["doctor"]).await, &["have the same memory index"]);
    gateway.terminate().await.unwrap();
    assert!(!gateway.state_dir().join("memory").exists());
}

/// Model that saves a note when it is asked to, in its first answer.
fn saver(request: &Captured) -> Reply {
    let text = request.last_user_text();
    let used = |input| ScriptedUsage { input, output: 7, ..ScriptedUsage::default() };
    match text.split_once("memory/20").filter(|_| text.contains("compacted: write")) {
        Some(_) if request.ends_with_tool_result() => Reply::text("NO_REPLY"),
        Some((_, rest)) => {
            let path = format!("memory/20{}.md", rest.split_once(".md").unwrap().0);
            Reply::tool("call_1", "write", &json!({"path": path, "content": "- the okapi is called Otto"}))
        }
        None => Reply::text("Hello.").usage(used(9_100)),
    }
}

#[tokio::test]
async fn a_note_that_is_saved_before_a_compaction_is_added_and_found() {
    let model = ModelServer::answering(saver).await;
    let zone = json!({"agents": {"defaults": {"userTimezone": "Pacific/Kiritimati"}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(zone).start().await.unwrap();
    let today = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::get("Pacific/Kiritimati").unwrap());
    let day = format!("memory/{}.md", today.strftime("%Y-%m-%d"));
    note(&gateway, &day, "# Today\n- tea at four\n");
    let mut client: WsClient = gateway.client().await.unwrap();
    turn(&mut client, KEY, "hello", "one").await;
    turn(&mut client, KEY, "hello again", "two").await;
    let kept = std::fs::read_to_string(workspace(&gateway).join(&day)).unwrap();
    assert_eq!(kept, "# Today\n- tea at four\n\n- the okapi is called Otto\n");
    assert_eq!(paths(&found(&gateway, "Otto").await), std::slice::from_ref(&day));
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    assert_eq!(paths(&found(&gateway, "okapi").await), [day]);
}

#[tokio::test]
async fn what_was_said_is_found_without_its_secrets() {
    let model = ModelServer::answering(|_: &Captured| Reply::text("Noted.")).await;
    let sessions = json!({"agents": {"defaults": {"memorySearch": {
        "sources": ["memory", "sessions"], "experimental": {"sessionMemory": true},
        "sync": {"sessions": {"deltaBytes": 0, "deltaMessages": 0}},
    }}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(sessions).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, KEY, "The okapi has API_KEY=abcdefghijklmnopqrstuvwxyz", "one").await;
    let hits = found(&gateway, "okapi").await;
    let hit = &hits["results"][0];
    assert!(hit["path"].as_str().unwrap().starts_with("sessions/") && hit["source"] == "sessions", "{hits}");
    assert!(hit["snippet"].as_str().unwrap().contains("API_KEY=abcdef…wxyz"), "{hits}");
    // What is said later is found too.
    turn(&mut client, KEY, "The quagga is in the barn", "two").await;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while paths(&found(&gateway, "quagga").await).is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "{}", gateway.log());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let refused = tool(&gateway, "memory_get", "main", json!({"path": hit["path"]})).await;
    assert!(refused["error"].as_str().unwrap().contains("sessions_history"), "{refused}");
    gateway.terminate().await.unwrap();
    let index = std::fs::read(gateway.state_dir().join("memory/main.sqlite")).unwrap();
    let secret = b"abcdefghijklmnopqrstuvwxyz";
    assert!(!index.windows(secret.len()).any(|bytes| bytes == secret));
}

#[tokio::test]
async fn entries_are_shown_before_they_are_forgotten() {
    let gateway = gateway().prepare().unwrap();
    note(&gateway, "memory/2026-01-29.md", "# Day\n\n- the old address is Elm Street 5\n- tea\n");
    ok(&gateway, &["memory", "index"]).await;
    let shown = ok(&gateway, &["memory", "forget", "old address"]).await;
    has(
        &shown,
        &["memory/2026-01-29.md:3-3 (since 2026-01-29)\n- the old address is Elm Street 5\n", "--yes"],
    );
    let file = workspace(&gateway).join("memory/2026-01-29.md");
    assert!(std::fs::read_to_string(&file).unwrap().contains("Elm Street"));
    let done = json_of(&gateway, &["memory", "forget", "old address", "--yes", "--json"]).await;
    assert_eq!((&done["removed"], &done["entries"][0]["startLine"]), (&json!(1), &json!(3)));
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(!left.contains("Elm Street") && left.contains("- tea"), "{left}");
    assert_eq!(ok(&gateway, &["memory", "search", "Elm Street"]).await, "No matches.\n");
    let index = std::fs::read(gateway.state_dir().join("memory/main.sqlite")).unwrap();
    assert!(!index.windows(10).any(|bytes| bytes == b"Elm Street"));
}
