//! Hooks: programs that are told what happens, and may change some of it; the bundled ones; `openclaw hooks`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::sys::stat::Mode;
use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{end, send, transcript_path, turn};
use crate::support::files::put;
use crate::support::hooks::{Heard, commands};
use crate::support::telegram::{bot, open};

/// A hook in the state directory.
fn put_hook(gateway: &GatewayUnderTest, name: &str, events: &[&str], handler: (&str, &str)) {
    let dir = gateway.state_dir().join("hooks").join(name);
    let metadata = json!({"openclaw": {"events": events}});
    put(
        &dir.join("HOOK.md"),
        &format!("---\nname: {name}\ndescription: of a test\nmetadata: {metadata}\n---\n"),
        0o644,
    );
    put(&dir.join(handler.0), handler.1, 0o755);
}

fn naming() -> impl Fn(&Captured) -> Reply + Send + Sync + 'static {
    |request| match request.body.to_string().contains("You name conversations.") {
        true => Reply::text("Vendor Pitch!"),
        false => Reply::text("ok"),
    }
}

#[tokio::test]
async fn commands_are_told_to_programs_and_the_bundled_hooks_do_their_work() {
    let model = ModelServer::answering(naming()).await;
    let on = json!({"hooks": {"internal": {"enabled": true}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(on).prepare().unwrap();
    let mut heard = Heard::at(gateway.home().join("heard"));
    let events = ["command", "gateway:startup", "session:start"];
    put_hook(&gateway, "tells", &events, ("handler.sh", &heard.script("")));
    put(&gateway.state_dir().join("workspace/BOOT.md"), "Water the plants.", 0o644);
    gateway.start().await.unwrap();

    let started = heard.next().await;
    assert_eq!((&started["type"], &started["action"]), (&json!("gateway"), &json!("startup")));
    let workspace = gateway.state_dir().join("workspace");
    assert_eq!(started["context"]["workspaceDir"], json!(workspace));
    assert_eq!(started["context"]["cfg"]["gateway"]["auth"]["token"], "__OPENCLAW_REDACTED__");
    model.arrived(1).await;
    assert!(model.requests()[0].body.to_string().contains("BOOT.md:\\nWater the plants."));
    gateway.logged("nothing is told of the event \"session:start\" yet").await.unwrap();

    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "tell me about the pitch", "run-1").await, "ok");
    send(&mut client, "main", "/new", "run-2").await;
    let new = heard.next().await;
    end(&mut client, "run-2").await;
    assert_eq!((&new["action"], &new["context"]["commandSource"]), (&json!("new"), &json!("webchat")));
    let left = new["context"]["previousSessionEntry"]["sessionId"].as_str().unwrap();
    assert_ne!(new["context"]["sessionEntry"]["sessionId"], left);
    assert_eq!(new["sessionKey"], "agent:main:main");

    gateway.logged("session-memory kept the end of a conversation").await.unwrap();
    let kept: Vec<_> =
        std::fs::read_dir(workspace.join("memory")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    assert!(kept.to_str().unwrap().ends_with("-vendor-pitch.md"), "{kept:?}");
    let text = std::fs::read_to_string(kept).unwrap();
    // The start-up check may be at work still: the message then comes with the frame of a queued one.
    assert!(text.contains("tell me about the pitch\nassistant: ok\n"), "{text}");
    assert!(text.contains(&format!("- **Session ID**: {left}\n- **Source**: webchat\n")), "{text}");

    client.request("sessions.reset", json!({"key": "main"})).await.unwrap();
    let reset = heard.next().await;
    assert_eq!((&reset["action"], &reset["context"]["commandSource"]), (&json!("new"), &json!("rpc")));
    send(&mut client, "main", "/reset", "run-3").await;
    assert_eq!(heard.next().await["action"], "reset");
    end(&mut client, "run-3").await;
    client
        .request("chat.send", json!({"sessionKey": "main", "message": "/stop", "idempotencyKey": "s"}))
        .await
        .unwrap();
    assert_eq!(heard.next().await["action"], "stop");

    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    let log = std::fs::read_to_string(gateway.state_dir().join("logs/commands.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> =
        lines.iter().map(|line| format!("{} {}", line["action"], line["source"])).collect();
    assert_eq!(
        told,
        ["\"new\" \"webchat\"", "\"new\" \"rpc\"", "\"reset\" \"webchat\"", "\"stop\" \"webchat\""]
    );
}

/// A hook in any directory, with a handler that says who it is.
fn put_hook_in(dir: &Path, name: &str, heard: &Heard) {
    let metadata = json!({"openclaw": {"events": ["command:new"]}});
    put(
        &dir.join("HOOK.md"),
        &format!("---\nname: {name}\ndescription: d\nmetadata: {metadata}\n---\n"),
        0o644,
    );
    let says = format!("#!/bin/sh\ncat > /dev/null\necho '\"{name}\"' > {}\n", heard.path().display());
    put(&dir.join("handler.sh"), &says, 0o755);
}

#[tokio::test]
async fn nothing_runs_from_a_place_that_a_sandbox_may_write() {
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let home = gateway.home().to_owned();
    let (state, at) = (gateway.state_dir(), |path: &str| home.join(path));
    let mut heard = Heard::at(at("heard"));
    // By a bind, by another agent's workspace above, by links in the state and in a safe directory, and by the command line.
    put_hook_in(&at("bound/by-bind"), "by-bind", &heard);
    put_hook_in(&at("projects/ws/hooks/by-workspace"), "by-workspace", &heard);
    put_hook_in(&at("projects/linked"), "by-link", &heard);
    put_hook_in(&at("projects/elsewhere/by-directory"), "by-directory", &heard);
    put_hook_in(&at("safe/fine"), "fine", &heard);
    put(&at("projects/run.sh"), &format!("echo '\"by-argument\"' > {}\n", heard.path().display()), 0o755);
    std::fs::create_dir_all(state.join("hooks")).unwrap();
    std::os::unix::fs::symlink(at("projects/linked"), state.join("hooks/by-link")).unwrap();
    std::os::unix::fs::symlink(at("projects/elsewhere"), at("extra")).unwrap();
    put(&at("projects/ws/BOOT.md"), "Water the plants.", 0o644);
    let file = state.join("openclaw.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    crate::support::config::merge(
        &mut config,
        json!({
            "agents": {
                "defaults": {"sandbox": {"docker": {"binds": [format!("{}:/b", at("bound").display())]}}},
                "list": [
                    {"id": "main", "workspace": at("projects/ws"), "sandbox": {"mode": "off"}},
                    {"id": "work", "workspace": at("projects"), "sandbox": {"mode": "all", "workspaceAccess": "rw"}},
                ],
            },
            "hooks": {"internal": {
                "enabled": true,
                "load": {"extraDirs": [at("bound"), at("extra"), at("safe")]},
                "commands": [
                    {"event": "command:new", "command": [at("projects/run.sh")]},
                    {"event": "command:new", "command": ["sh", at("projects/run.sh")]},
                ],
            }},
        }),
    );
    std::fs::write(&file, config.to_string()).unwrap();
    gateway.start().await.unwrap();
    gateway.logged("BOOT.md is not used: a sandbox may write there").await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for run in ["run-1", "run-2"] {
        send(&mut client, "main", "/new", run).await;
        assert_eq!(heard.next().await, "fine", "alone, so it is the next one too");
        end(&mut client, run).await;
    }
    let told = openclaw(&gateway, &["hooks", "check", "--json"]).await;
    for path in ["bound", "projects/ws/hooks", ".openclaw/hooks/by-link", "extra", "projects/run.sh"] {
        let says = format!("{} is not used: a sandbox may write there", at(path).display());
        assert!(told.out.contains(&says), "{path}: {told:?}");
    }
    assert!(!model.requests().iter().any(|request| request.body.to_string().contains("Water the plants")));
}

#[tokio::test]
async fn the_files_of_the_prompt_can_be_changed() {
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let entries = json!({"soul-evil": {"enabled": true, "chance": 1}});
    let on = json!({"hooks": {"internal": {"enabled": true, "entries": entries}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(on).prepare().unwrap();
    let mut heard = Heard::at(gateway.home().join("heard"));
    let answer = json!({"context": {"bootstrapFiles": [{"name": "RULES.md", "content": "be kind"}, {"name": "SOUL.md", "content": "of the hook"}]}});
    put_hook(&gateway, "files", &["agent:bootstrap"], ("handler", &heard.script(&answer.to_string())));
    put(&gateway.state_dir().join("workspace/SOUL_EVIL.md"), "cackle", 0o644);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    let given = heard.next().await;
    let soul =
        given["context"]["bootstrapFiles"].as_array().unwrap().iter().find(|file| file["name"] == "SOUL.md");
    assert_eq!(soul.unwrap()["content"], "cackle", "the bundled hook comes first");
    let prompt = model.requests()[0].body.to_string();
    assert!(
        prompt.contains("be kind") && prompt.contains("of the hook") && !prompt.contains("cackle"),
        "{prompt}"
    );
}

fn answers(answer: &Value) -> String {
    format!("cat > /dev/null; printf '%s' '{answer}'")
}

#[tokio::test]
async fn runs_and_tool_calls_can_be_changed_and_are_told() {
    const SECRET: &str = "ghp_0123456789abcdef";
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": "echo one"})),
        Reply::tool("c2", "read", &json!({"path": "forbidden.txt"})),
        Reply::text("done"),
    ])
    .await;
    let gateway = gateway().fake_model(&model.v1());
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let tell = || format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let changes_exec = r#"if grep -q '"toolName":"exec"'; then printf '{"params":{"command":"echo two"}}'; else printf '{"block":true,"blockReason":"not that file"}'; fi"#;
    // A secret that it has from elsewhere is taken out like one that a tool prints.
    let hides = r#"sed -n 's/.*"payload":{.*"message":\({.*}\),"isSynthetic".*/{"message":\1}/p' | sed "s/two/HIDDEN ghp_0123456789$(printf abcdef)/""#;
    let rows = [
        ("before_agent_start", answers(&json!({"prependContext": "It is raining."})), 1),
        (
            "before_agent_start",
            answers(&json!({"prependContext": "It is late.", "systemPrompt": "Only this."})),
            0,
        ),
        ("before_tool_call", changes_exec.to_owned(), 5),
        ("before_tool_call", answers(&json!({"block": false})), 0),
        ("tool_result_persist", hides.to_owned(), 0),
        ("after_tool_call", tell(), 0),
        ("agent_end", tell(), 0),
    ];
    let secret = json!({"env": {"vars": {"GITHUB_TOKEN": SECRET}}});
    let mut gateway = gateway.config(commands(&rows)).config(secret).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "run-1").await, "done");

    let requests = model.requests();
    let first = requests[0].messages();
    assert_eq!(first[0]["content"], "Only this.");
    let said = first[1]["content"].to_string();
    assert!(said.contains("It is raining.\\n\\nIt is late.\\n\\n") && said.contains("look"), "{said}");
    let results: Vec<String> = requests[2]
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        results[0].contains("HIDDEN __OPENCLAW_REDACTED__") && !results[0].contains("one"),
        "{results:?}"
    );
    let kept = std::fs::read_to_string(transcript_path(&gateway, "main").await).unwrap();
    assert!(kept.contains("HIDDEN") && !kept.contains(SECRET));
    assert!(results[1].contains("not that file"), "{results:?}");

    let (one, two) = (heard.next().await, heard.next().await);
    let (call, ended) = if one["hook"] == "agent_end" { (two, one) } else { (one, two) };
    assert_eq!(
        (&call["payload"]["toolName"], &call["payload"]["params"]),
        (&json!("exec"), &json!({"command": "echo two"}))
    );
    assert_eq!((&call["context"]["toolCallId"], &call["context"]["agentId"]), (&json!("c1"), &json!("main")));
    assert_eq!((&ended["hook"], &ended["payload"]["success"]), (&json!("agent_end"), &json!(true)));
    assert!(ended["payload"]["messages"].as_array().unwrap().len() >= 5, "{ended}");
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
}

/// Each is told the channel of the message that its run answers.
#[tokio::test]
async fn hooks_of_runs_are_told_the_channel() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let tell = format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let rows = ["before_agent_start", "agent_end"].map(|point| (point, tell.clone(), 0));
    let gateway = bot(&server, &model, open(), commands(&rows)).await;
    server.push(private_message(5, "hello"));
    for hook in ["before_agent_start", "agent_end"] {
        let told = heard.next().await;
        assert_eq!((&told["hook"], &told["context"]["messageProvider"]), (&json!(hook), &json!("telegram")));
    }
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "ok");
    for hook in ["before_agent_start", "agent_end"] {
        let told = heard.next().await;
        assert_eq!((&told["hook"], &told["context"]["messageProvider"]), (&json!(hook), &json!("webchat")));
    }
}

#[tokio::test]
async fn messages_sessions_and_the_gateway_itself_are_told_of() {
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let tell = format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let points = ["message_received", "session_start", "session_end", "gateway_start", "gateway_stop"];
    let rows: Vec<_> = points.iter().map(|point| (*point, tell.clone(), 0)).collect();
    let mut gateway = gateway().fake_model(&model.v1()).config(commands(&rows)).start().await.unwrap();
    let started = heard.next().await;
    assert_eq!(
        (&started["hook"], &started["payload"]["port"]),
        (&json!("gateway_start"), &json!(gateway.port()))
    );

    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "hello", "run-1").await;
    let mut told = [heard.next().await, heard.next().await];
    told.sort_by_key(|told| told["hook"].as_str().unwrap().to_owned());
    end(&mut client, "run-1").await;
    assert_eq!(
        (&told[0]["payload"]["content"], &told[0]["payload"]["metadata"]["messageId"]),
        (&json!("hello"), &json!("run-1"))
    );
    let first = told[1]["payload"]["sessionId"].clone();
    assert_eq!(
        (&told[1]["hook"], &told[1]["payload"]["resumedFrom"]),
        (&json!("session_start"), &Value::Null)
    );
    // The same message again is none.
    send(&mut client, "main", "hello", "run-1").await;

    client.request("sessions.reset", json!({"key": "main"})).await.unwrap();
    let mut told = [heard.next().await, heard.next().await];
    told.sort_by_key(|told| told["hook"].as_str().unwrap().to_owned());
    assert_eq!(told[0]["payload"]["sessionId"], first);
    assert_eq!(told[0]["payload"]["messageCount"], 2, "{told:?}");
    assert_eq!(told[1]["payload"]["resumedFrom"], first);
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    assert_eq!(heard.next().await["hook"], "gateway_stop");
}

#[tokio::test]
async fn bad_hooks_are_named_in_the_log_and_hold_nobody_up() {
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let rows = [
        ("before_agent_start", "yes".to_owned(), 9),
        ("before_agent_start", "echo garbage".to_owned(), 8),
        ("before_agent_start", "exec <&- >&-; echo broken >&2; exit 3".to_owned(), 7),
        (
            "before_agent_start",
            "(sleep 10000 & ); printf '{\"prependContext\":\"left behind\"}'".to_owned(),
            6,
        ),
        ("before_agent_start", answers(&json!({"prependContext": "the last one"})), 1),
        ("agent_end", "sleep 10000".to_owned(), 0),
    ];
    let mut gateway = gateway().fake_model(&model.v1()).config(commands(&rows)).prepare().unwrap();
    put_hook(&gateway, "gone", &["agent:bootstrap"], ("handler", "#!/bin/sh\n"));
    put_hook(&gateway, "not-executable", &["agent:bootstrap"], ("handler", "#!/bin/sh\n"));
    let hooks = gateway.state_dir().join("hooks");
    put(&hooks.join("not-executable/handler"), "#!/bin/sh\n", 0o644);
    std::fs::create_dir_all(hooks.join("long")).unwrap();
    std::fs::File::create(hooks.join("long/HOOK.md")).unwrap().set_len(50 << 20).unwrap();
    std::fs::create_dir_all(hooks.join("pipe")).unwrap();
    nix::unistd::mkfifo(&hooks.join("pipe/HOOK.md"), Mode::S_IRWXU).unwrap();
    put_hook(&gateway, "open-to-all", &["command"], ("handler", "#!/bin/sh\n"));
    std::fs::set_permissions(hooks.join("open-to-all/handler"), std::fs::Permissions::from_mode(0o777))
        .unwrap();
    gateway.start().await.unwrap();
    std::fs::remove_file(hooks.join("gone/handler")).unwrap();

    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "ok");
    let said = model.requests()[0].messages()[1]["content"].to_string();
    assert!(said.contains("left behind\\n\\nthe last one\\n\\n"), "{said}");
    for line in [
        "handler from /bin/sh failed: printed more than 8388608 bytes and was killed",
        "failed: did not answer with the JSON object that is expected: it does not begin with {",
        "failed: ended with exit code 3: broken",
        "hooks/not-executable/handler is not executable; run chmod +x on it",
        "HOOK.md is longer than 262144 bytes",
        "HOOK.md is a pipe, not a regular file",
        "other users may write to",
        "Hook error [agent:bootstrap]: cannot be started",
    ] {
        gateway.logged(line).await.unwrap();
    }
    // The hook that hangs does not keep the gateway.
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_handler_of_openclaw_is_run_with_node_where_there_is_one() {
    const HANDLER: &str = r#"
import { appendFileSync } from "node:fs";
export default async function handler(event) {
  console.log("not an answer");
  appendFileSync(process.env.HEARD, JSON.stringify([event.type, event.action, event.timestamp instanceof Date]) + "\n");
  event.messages.push("noted");
}
"#;
    let model = ModelServer::answering(|_| Reply::text("ok")).await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let entries = json!({"script": {"env": {"HEARD": heard.path()}}});
    let on = json!({"hooks": {"internal": {"enabled": true, "entries": entries}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(on).prepare().unwrap();
    put_hook(&gateway, "script", &["command:stop"], ("handler.js", HANDLER));
    put(&gateway.state_dir().join("hooks/script/package.json"), "{\"type\": \"module\"}", 0o644);
    let check = openclaw(&gateway, &["hooks", "check", "--json"]).await;
    let check: Value = serde_json::from_str(&check.out).unwrap();
    if !check["hooks"]["eligible"].as_array().unwrap().contains(&json!("script")) {
        let found = check["hooks"]["notEligible"].to_string();
        assert!(found.contains("needs Node.js, and there is no node on PATH"), "{found}");
        return;
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client
        .request("chat.send", json!({"sessionKey": "main", "message": "/stop", "idempotencyKey": "s"}))
        .await
        .unwrap();
    assert_eq!(heard.next().await, json!(["command", "stop", true]));
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
    assert!(!gateway.log().contains("Hook error"), "{}", gateway.log());
}

/// The recorded runs of `cli-hooks.json`. The built-in hooks have no files.
#[tokio::test]
async fn hooks_are_listed_as_recorded() {
    let home = gateway().whole_config(json!({"gateway": {"mode": "local"}})).prepare().unwrap();
    let recorded: Vec<Value> = serde_json::from_str(include_str!("../golden/cli-hooks.json")).unwrap();
    let mut compared = 0;
    for run in recorded.iter().filter(|run| run["stdoutJson"].is_object()) {
        let args: Vec<&str> =
            run["argv"].as_array().unwrap()[1..].iter().map(|arg| arg.as_str().unwrap()).collect();
        let ended = openclaw(&home, &args).await;
        let mut found: Value =
            serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        let expect = run["stdoutJson"].to_string();
        for key in ["filePath", "baseDir", "handlerPath"] {
            if let Some(path) = found.get_mut(key) {
                *path = run["stdoutJson"][key].clone();
            }
        }
        let (state, home) = (home.state_dir().display().to_string(), home.home().display().to_string());
        let found =
            found.to_string().replace(&format!("{state}/hooks"), "<STATE>/hooks").replace(&home, "<HOME>");
        assert_eq!((ended.code, found), (Some(0), expect), "{args:?}");
        compared += 1;
    }
    assert_eq!(compared, 3);
    let text = openclaw(&home, &["hooks"]).await.out;
    assert!(text.starts_with("Hooks (3/4 ready)\n┌─"), "{text}");
    assert!(text.contains("│ ✓ ready   │ 🚀 boot-md        │ Run BOOT.md on gateway startup "), "{text}");
    assert!(text.contains("Hooks are off"), "{text}");
    let info = openclaw(&home, &["hooks", "info", "soul-evil"]).await.out;
    assert!(info.contains("Config: ✗ hooks.internal.entries.soul-evil.enabled"), "{info}");
    openclaw(&home, &["hooks", "info", "nobody"]).await.failed(&["Hook \"nobody\" not found."]);
}

#[tokio::test]
async fn a_hook_is_switched_on_and_off_beside_a_running_gateway() {
    let mut gateway = gateway().prepare().unwrap();
    let mut heard = Heard::at(gateway.home().join("heard"));
    put_hook(&gateway, "a.b", &["command:stop"], ("handler", &heard.script("")));
    put_hook(&gateway, "empty", &["command"], ("README", ""));
    gateway.start().await.unwrap();
    let config = || {
        let text = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["hooks"].clone()
    };
    let on = openclaw(&gateway, &["hooks", "enable", "a.b"]).await;
    assert!(on.code == Some(0) && on.out.starts_with("✓ Enabled hook: a.b\n"), "{on:?}");
    assert_eq!(config(), json!({"internal": {"enabled": true, "entries": {"a.b": {"enabled": true}}}}));
    gateway.logged("Registered hook: a.b -> command:stop").await.unwrap();
    gateway.logged("config change applied: hooks.internal").await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client
        .request("chat.send", json!({"sessionKey": "main", "message": "/stop", "idempotencyKey": "s"}))
        .await
        .unwrap();
    assert_eq!(heard.next().await["action"], "stop");

    let off = openclaw(&gateway, &["hooks", "disable", "a.b"]).await;
    assert!(off.code == Some(0) && off.out.starts_with("⏸ Disabled hook: a.b\n"), "{off:?}");
    assert_eq!(config(), json!({"internal": {"enabled": true, "entries": {"a.b": {"enabled": false}}}}));
    openclaw(&gateway, &["hooks", "enable", "soul-evil"]).await;
    assert_eq!(config()["internal"]["entries"]["soul-evil"], json!({"enabled": true}));
    openclaw(&gateway, &["hooks", "enable", "empty"])
        .await
        .failed(&["Hook \"empty\" cannot be used here: has no handler"]);
}

#[tokio::test]
async fn compactions_are_told_before_and_after() {
    let model = ModelServer::answering(|request: &Captured| {
        let is_summary = request.last_user_text().starts_with("<conversation>");
        Reply::text(if is_summary { "## Goal\nMuch was said." } else { "ok" })
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let tell = format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let rows = ["before_compaction", "after_compaction"].map(|point| (point, tell.clone(), 0));
    let mut gateway = gateway().fake_model(&model.v1()).config(commands(&rows)).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let long = "lorem ipsum ".repeat(3_400);
    turn(&mut client, "main", &long, "run-1").await;
    turn(&mut client, "main", &long, "run-2").await;
    let said = turn(&mut client, "main", "/compact", "run-3").await;
    assert!(said.starts_with("⚙️ Compacted ("), "{said}");
    let (one, two) = (heard.next().await, heard.next().await);
    let (before, after) = if one["hook"] == "before_compaction" { (one, two) } else { (two, one) };
    assert_eq!(before["payload"]["messageCount"], 4, "{before}");
    assert!(before["payload"]["tokenCount"].as_u64().is_some_and(|tokens| tokens > 100), "{before}");
    assert_eq!(before["context"]["sessionKey"], "agent:main:main");
    // The summary stands for the first question and its answer.
    let counts = (&after["payload"]["messageCount"], &after["payload"]["compactedCount"]);
    assert_eq!((&after["hook"], counts), (&json!("after_compaction"), (&json!(3), &json!(2))), "{after}");
    assert_eq!(gateway.terminate().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn what_a_hook_keeps_back_is_not_said_and_what_one_says_to_a_command_is() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request: &Captured| {
        Reply::text(if request.last_user_text().contains("hello") { "a secret" } else { "welcome" })
    })
    .await;
    let keeps = r#"case $(cat) in *secret*) echo '{"cancel": true}';; esac"#;
    let mut config = commands(&[("message_sending", keeps.to_owned(), 0)]);
    let telegram = json!({"botToken": server.token(), "apiRoot": server.root(), "allowFrom": [5]});
    crate::support::config::merge(&mut config, json!({"channels": {"telegram": telegram}}));
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    let says = "#!/bin/sh\ncat > /dev/null\necho '{\"messages\": [\"Noted.\", \"Bye.\"]}'\n";
    put_hook(&gateway, "says", &["command:new", "command:stop"], ("handler.sh", says));
    gateway.start().await.unwrap();
    server.push(private_message(5, "hello"));
    gateway.logged("a hook keeps a message back").await.unwrap();
    server.push(private_message(5, "/new"));
    server
        .has_made("the first words of the new session", |made| {
            made.iter().any(|one| one["text"] == "welcome")
        })
        .await;
    server.push(private_message(5, "stop"));
    let words = |made: &[Value]| -> Vec<String> {
        made.iter().map(|one| one["text"].as_str().unwrap_or_default().to_owned()).collect()
    };
    server
        .has_made("what is said to the stop", |made| {
            words(made).iter().filter(|text| *text == "Noted.\n\nBye.").count() == 2
        })
        .await;
    let said = words(&server.made());
    assert_eq!(said[0], "Noted.\n\nBye.", "{said:?}");
    assert!(
        !said.iter().any(|text| text.contains("secret") || text.contains("No response generated")),
        "{said:?}"
    );
}

/// A hook runs as the gateway's user after the next start: whoever may not run commands does not write one.
#[tokio::test]
async fn a_run_without_commands_writes_no_hook() {
    let hook = json!({"path": "hooks/mine/HOOK.md", "content": "---\nname: mine\n---\n"});
    let rows = [
        (json!({}), true),
        (json!({"tools": {"deny": ["exec"]}}), false),
        (json!({"tools": {"exec": {"security": "deny"}}}), false),
        (json!({"tools": {"exec": {"ask": "always", "security": "full"}}}), false),
    ];
    for (config, may) in rows {
        let model = crate::support::told_calls::model().await;
        let gateway = gateway().fake_model(&model.v1()).config(config.clone()).start().await.unwrap();
        let mut caller = crate::support::told_calls::Caller::new(gateway.client().await.unwrap());
        let said = caller.call("main", "write", hook.clone()).await;
        assert_eq!(said.contains("would be part of a hook"), !may, "{config}: {said}");
        let boot = caller.call("main", "write", json!({"path": "BOOT.md", "content": "Run id."})).await;
        assert_eq!(boot.contains("would be part of a hook"), !may, "{config}: {boot}");
        let dir = gateway.state_dir().join("workspace/hooks");
        assert_eq!(dir.exists(), may, "{config}");
        let said = caller.call("main", "write", json!({"path": "notes.md", "content": "x"})).await;
        assert!(said.contains("Successfully wrote"), "{config}: {said}");
    }
}

#[tokio::test]
async fn a_guard_that_cannot_be_found_is_named_everywhere() {
    let guard = json!({"event": "before_tool_call", "command": ["/nowhere/guard", "--strict"]});
    let on = json!({"hooks": {"internal": {"enabled": true, "commands": [guard]}}});
    let gateway = gateway().config(on).start().await.unwrap();
    let why = "there is no file /nowhere/guard; put it there, or correct its path. Until then no tool call is refused by it.";
    gateway.logged(&format!("hook not loaded: {why}")).await.unwrap();
    for page in [&["hooks", "check"][..], &["hooks", "list"], &["doctor"], &["status"]] {
        let told = openclaw(&gateway, page).await.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("hooks.internal.commands.0") && told.contains(why), "{page:?}: {told}");
    }
    let off = json!({"hooks": {"internal": {"commands": [{"event": "before_tool_call", "command": ["/nowhere/guard"]}]}}});
    let off = crate::gateway().config(off).prepare().unwrap();
    for page in ["doctor", "status"] {
        let told = openclaw(&off, &[page]).await;
        assert!(!told.out.contains("/nowhere/guard"), "hooks are off: {told:?}");
    }
}
