//! QMD as the searcher of memory: a program beside the gateway, which is asked, fails in every way, and comes back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{has, json_of, ok, openclaw};
use crate::support::conversation::turn;
use crate::support::tools_invoke::invoke;

/// A search engine with the command line of `qmd`: it finds what holds a word. Its calls are noted in `calls`, and the file
/// `mode` beside it says how it fails.
const PROGRAM: &str = r##"#!/usr/bin/env python3
import fnmatch, hashlib, json, os, sqlite3, subprocess, sys, time
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
with open(here + "/calls", "a") as calls:
    calls.write(json.dumps({"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}) + "\n")
mode = open(here + "/mode").read() if os.path.exists(here + "/mode") else ""
cache = os.environ["XDG_CACHE_HOME"] + "/qmd"
os.makedirs(cache, exist_ok=True)
index = sqlite3.connect(cache + "/index.sqlite")
index.execute("CREATE TABLE IF NOT EXISTS store_collections (name TEXT, path TEXT, pattern TEXT)")
index.execute("CREATE TABLE IF NOT EXISTS documents (collection TEXT, path TEXT, hash TEXT, active INTEGER)")
known = index.execute("SELECT name, path, pattern FROM store_collections").fetchall()
if words[:2] == ["collection", "list"]:
    print(json.dumps([{"name": name} for name, _, _ in known]))
elif words[:2] == ["collection", "add"]:
    index.execute("INSERT INTO store_collections VALUES (?, ?, ?)", (words[4], words[2], words[6]))
elif words == ["update"]:
    index.execute("DELETE FROM documents")
    for name, root, pattern in known:
        for dir, _, files in os.walk(root):
            for file in files:
                path = os.path.relpath(os.path.join(dir, file), root)
                if path == pattern or (pattern == "**/*.md" and file.endswith(".md")):
                    digest = hashlib.sha256(open(os.path.join(root, path), "rb").read()).hexdigest()
                    index.execute("INSERT INTO documents VALUES (?, ?, ?, 1)", (name, path, digest))
elif words == ["embed"]:
    print("embedded")
elif words[0] in ("query", "search", "vsearch"):
    if mode == "fail":
        print("boom", file=sys.stderr)
        sys.exit(3)
    if mode == "hang":
        child = subprocess.Popen(["sleep", "1000"])
        with open(here + "/child", "w") as file:
            file.write(str(child.pid))
        time.sleep(1000)
    if mode == "flood":
        for _ in range(100):
            sys.stdout.write("x" * 1000000)
    if mode == "garbage":
        print("Searching...")
        sys.exit(0)
    collection = words[words.index("-c") + 1]
    roots = {name: root for name, root, _ in known}
    found = []
    for path, digest in index.execute("SELECT path, hash FROM documents WHERE collection = ?", (collection,)):
        lines = open(os.path.join(roots[collection], path)).read().split("\n")
        for number, line in enumerate(lines, 1):
            if words[1].lower() in line.lower():
                found.append({"docid": "#" + digest[:6], "score": 0.9 - number / 100, "snippet": "@@ -%d,1 @@\n%s" % (number, line)})
                break
    print(json.dumps(found[:int(words[4])]))
index.commit()
"##;

/// The program in a directory of its own.
struct FakeQmd(tempfile::TempDir);

impl FakeQmd {
    fn install() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("qmd");
        std::fs::write(&program, PROGRAM).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("qmd")
    }

    fn mode(&self, mode: &str) {
        std::fs::write(self.0.path().join("mode"), mode).unwrap();
    }

    /// The calls since the last look.
    fn calls(&self) -> Vec<Value> {
        let path = self.0.path().join("calls");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn config(&self, more: &Value) -> Value {
        let mut qmd = json!({"command": format!("{} --ignored-arg", self.path().display())});
        qmd.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"memory": {"backend": "qmd", "qmd": qmd}})
    }
}

fn words(calls: &[Value]) -> Vec<String> {
    let line = |call: &Value| {
        let words = call["words"].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    calls.iter().map(line).collect()
}

fn note(gateway: &GatewayUnderTest, path: &str, text: &str) {
    let file = gateway.state_dir().join("workspace").join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

async fn tool(gateway: &GatewayUnderTest, name: &str, session: &str, args: Value) -> Value {
    let asked = json!({"tool": name, "args": args, "sessionKey": session});
    let (_, answer) = invoke(gateway.port(), &asked).await;
    answer["result"]["details"].clone()
}

async fn found(gateway: &GatewayUnderTest, query: &str) -> Value {
    tool(gateway, "memory_search", "main", json!({"query": query})).await
}

/// Searches until the answer is as wanted: the index is made in the background.
async fn until(gateway: &GatewayUnderTest, query: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let answer = found(gateway, query).await;
        if is_wanted(&answer) {
            return answer;
        }
        assert!(tokio::time::Instant::now() < deadline, "{answer}\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_by_qmd(answer: &Value) -> bool {
    answer["provider"] == "qmd" && answer["results"][0].is_object()
}

#[tokio::test]
async fn a_model_the_tools_and_the_command_line_are_answered_by_qmd() {
    let qmd = FakeQmd::install();
    let model = ModelServer::queue([
        Reply::text("Noted: the okapi is called Otto."),
        Reply::tool("call_1", "memory_search", &json!({"query": "tea"})),
        Reply::text("You like tea."),
    ])
    .await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("Team.md"), "# Others\n- the llama is called Lotte\n").unwrap();
    let more = json!({
        "paths": [{"name": "Docs!", "path": outside.path()}], "sessions": {"enabled": true},
        "update": {"debounceMs": 0},
    });
    let mut gateway = gateway().fake_model(&model.v1()).config(qmd.config(&more)).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    note(&gateway, "memory/day.md", "# Day\n- tea with Ada\n");
    note(&gateway, "SOUL.md", "tea");
    // Looking starts nothing.
    let before = ok(&gateway, &["memory", "status", "--json"]).await;
    assert!(before.contains(r#""backend": "qmd""#) && qmd.calls().is_empty(), "{before}");
    assert!(!gateway.state_dir().join("agents/main/qmd").exists());
    gateway.start().await.unwrap();

    let answer = until(&gateway, "tea", is_by_qmd).await;
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["results", "provider", "model", "citations"], "{answer}");
    let hit = &answer["results"][0];
    assert_eq!([&hit["path"], &hit["citation"]], ["MEMORY.md", "MEMORY.md#L2"]);
    assert_eq!(hit["snippet"], "@@ -2,1 @@\n- likes tea\n\nSource: MEMORY.md#L2");
    let calls = qmd.calls();
    let lines = words(&calls);
    assert_eq!(lines[0], "collection list --json");
    let made = lines.iter().filter(|line| line.starts_with("collection add"));
    let made: Vec<&str> = made.map(|line| line.split(" --name ").nth(1).unwrap()).collect();
    let expect = [
        "memory-root --mask MEMORY.md",
        "memory-alt --mask memory.md",
        "memory-dir --mask **/*.md",
        "docs --mask **/*.md",
        "sessions --mask **/*.md",
    ];
    assert_eq!(made, expect);
    assert!(lines.contains(&"query tea --json -n 6 -c memory-root".to_owned()), "{lines:?}");
    let home = gateway.state_dir().join("agents/main/qmd");
    for call in &calls {
        assert_eq!(call["cwd"], json!(gateway.state_dir().join("workspace")));
        assert_eq!(call["env"]["XDG_CONFIG_HOME"], json!(home.join("xdg-config")));
        assert_eq!(call["env"]["NO_COLOR"], "1");
        let is_told = |name: &String| name.starts_with("OPENCLAW_") || name.ends_with("_API_KEY");
        assert!(!call["env"].as_object().unwrap().keys().any(is_told));
    }

    let llama = found(&gateway, "llama").await;
    assert_eq!(llama["results"][0]["path"], "qmd/docs/Team.md");
    let get =
        async |path: &str| tool(&gateway, "memory_get", "main", json!({"path": path, "lines": 1})).await;
    assert_eq!(get("qmd/docs/Team.md").await, json!({"text": "# Others", "path": "qmd/docs/Team.md"}));
    for (path, expect) in [
        ("qmd/docs/../x.md", "qmd path escapes collection"),
        ("qmd/nope/x.md", "unknown qmd collection: nope"),
        ("../x.md", "path escapes workspace"),
        ("SOUL.md", "path required"),
    ] {
        let refused = get(path).await;
        assert!(refused["error"].as_str().unwrap().starts_with(expect), "{refused}");
    }

    // What was said is found too, without its secrets.
    let mut client = gateway.client().await.unwrap();
    let said =
        turn(&mut client, "agent:main:main", "The okapi has the key sk-abcdefghijklmnopqrstuvwx", "one")
            .await;
    assert!(said.contains("Otto"));
    assert_eq!(ok(&gateway, &["memory", "index", "--force"]).await, "Memory index updated (main).\n");
    let okapi = until(&gateway, "okapi", is_by_qmd).await;
    let hit = &okapi["results"][0];
    assert_eq!(hit["source"], "sessions");
    assert!(hit["path"].as_str().unwrap().starts_with("qmd/sessions/"), "{hit}");
    assert!(!okapi.to_string().contains("abcdefghijklmnop"), "{okapi}");
    assert_eq!(turn(&mut client, "agent:main:main", "What do I drink?", "two").await, "You like tea.");
    let told = model.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("Source: MEMORY.md#L2"), "{told}");

    // A group may not search; the operator's command line may.
    let group = "agent:main:discord:group:123";
    let denied = tool(&gateway, "memory_search", group, json!({"query": "tea"})).await;
    assert_eq!([&denied["results"], &denied["provider"]], [&json!([]), &json!("qmd")]);
    let refusal = format!("qmd search denied by scope (channel=discord, chatType=group, session={group})");
    gateway.logged(&refusal).await.unwrap();
    let hits = json_of(&gateway, &["memory", "search", "tea", "--json"]).await;
    assert_eq!(hits["results"][0]["path"], "MEMORY.md");

    qmd.calls();
    let told = ok(&gateway, &["memory", "status", "--deep"]).await;
    assert!(qmd.calls().is_empty());
    let expect =
        "Memory Search (main)\nProvider: qmd (requested: qmd)\nModel: qmd\nSources: memory, sessions\n";
    has(
        &told,
        &[
            expect,
            "Dirty: no\nStore: ~/.openclaw/agents/main/qmd/xdg-cache/qmd/index.sqlite\nWorkspace: ~/.openclaw/workspace\n\
             Embeddings: ready\nBy source:\n  memory · 3/3 files · 3 chunks\n  sessions · 1/1 files · 1 chunks\n\
             Vector: ready\nBatch: disabled (failures 0/0)\n",
        ],
    );
    let status = &json_of(&gateway, &["memory", "status", "--json"]).await[0]["status"];
    assert_eq!(status["custom"]["qmd"]["collections"], 5);
    assert!(status["custom"]["qmd"]["lastUpdateAt"].is_i64() && status.get("fts").is_none());
    has(&ok(&gateway, &["status"]).await, &["sources memory, sessions · plugin memory-core · vector ready"]);
    // Without a gateway the command line asks by itself.
    gateway.terminate().await.unwrap();
    has(&ok(&gateway, &["memory", "search", "llama"]).await, &["qmd/docs/Team.md:2-2\n"]);
    has(&ok(&gateway, &["status"]).await, &["4 files"]);
}

#[tokio::test]
async fn however_qmd_fails_its_own_index_answers_and_qmd_is_asked_again() {
    let qmd = FakeQmd::install();
    let more = json!({"limits": {"timeoutMs": 3_000}, "update": {"interval": "0"}});
    let mut gateway = gateway().config(qmd.config(&more)).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    gateway.start().await.unwrap();
    until(&gateway, "tea", is_by_qmd).await;
    for (mode, reason) in [
        ("fail", "qmd query tea --json -n 6 -c memory-root failed (code 3): boom"),
        ("garbage", "qmd query tea --json -n 6 -c memory-root returned invalid JSON: "),
        ("flood", "qmd query tea --json -n 6 -c memory-root printed too much"),
        ("hang", "qmd query tea --json -n 6 -c memory-root timed out after 3000ms"),
    ] {
        qmd.mode(mode);
        let answer = found(&gateway, "tea").await;
        assert_eq!(answer["results"][0]["path"], "MEMORY.md", "{mode}: {answer}");
        assert_eq!([&answer["provider"], &answer["fallback"]["from"]], ["none", "qmd"], "{answer}");
        assert!(answer["fallback"]["reason"].as_str().unwrap().starts_with(reason), "{answer}");
        let told = ok(&gateway, &["memory", "status"]).await;
        has(&told, &["Provider: none", "Fallback: qmd\n", reason]);
        // The next request is answered by QMD.
        qmd.mode("");
        assert!(is_by_qmd(&found(&gateway, "tea").await), "{mode}: {}", gateway.log());
    }
    gone(&qmd.0.path().join("child")).await;
    qmd.mode("fail");
    let warned = openclaw(&gateway, &["memory", "search", "tea"]).await;
    assert!(warned.out.contains("MEMORY.md") && warned.err.contains("QMD does not answer"), "{warned:?}");
    // After a second failure in a row it is left alone for a while.
    found(&gateway, "tea").await;
    qmd.calls();
    assert_eq!(found(&gateway, "tea").await["fallback"]["from"], "qmd");
    assert_eq!(qmd.calls().len(), 0);
}

/// Waits until the process whose number stands in a file runs no more.
async fn gone(pid: &Path) {
    let pid = std::fs::read_to_string(pid).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    tokio::time::timeout(DEADLINE, async {
        while !state().is_empty() && !state().contains(") Z ") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_qmd_that_is_not_installed_is_told_and_found_once_it_is() {
    let qmd = FakeQmd::install();
    let later = qmd.0.path().join("later");
    std::fs::rename(qmd.path(), &later).unwrap();
    let mut gateway = gateway().config(qmd.config(&json!({}))).prepare().unwrap();
    note(&gateway, "MEMORY.md", "# Notes\n- likes tea\n");
    gateway.start().await.unwrap();
    let answer = found(&gateway, "tea").await;
    assert_eq!(answer["results"][0]["path"], "MEMORY.md");
    let reason = answer["fallback"]["reason"].as_str().unwrap();
    assert!(reason.contains("is not installed, or not on the PATH"), "{answer}");
    has(&ok(&gateway, &["doctor"]).await, &["memory.backend is qmd", "is not installed"]);
    has(&ok(&gateway, &["memory", "status"]).await, &["Fallback: qmd\n", "is not installed"]);
    assert_eq!(ok(&gateway, &["memory", "index"]).await, "Memory index updated (main).\n");
    std::fs::rename(&later, qmd.path()).unwrap();
    until(&gateway, "tea", is_by_qmd).await;
    assert!(!ok(&gateway, &["doctor"]).await.contains("memory.backend is qmd"));
    // The other way round takes effect while the gateway runs too.
    ok(&gateway, &["config", "set", "memory.backend", "builtin"]).await;
    until(&gateway, "tea", |answer| answer["provider"] == "none" && answer.get("fallback").is_none()).await;
}
