//! Commands that wait for a person's word: over the protocol, in a chat, and on the allowlist.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::turn;
use crate::support::telegram::{bot, last_said, open};

/// Runs the command it is told, then repeats what it is told of it.
async fn runner() -> ModelServer {
    ModelServer::answering(|request: &Captured| {
        let said = last_said(request);
        if let Some(at) = said.find("Exec ") {
            return Reply::text(&format!("heard: {}", &said[at..].split("\n\n").next().unwrap_or_default()));
        }
        if request.ends_with_tool_result() {
            return Reply::text("asked");
        }
        let command = said.split("run: ").nth(1).unwrap_or_default();
        let command = command.split("\n[message_id").next().unwrap_or_default();
        Reply::tool("c0", "exec", &json!({"command": command}))
    })
    .await
}

fn on_this_host(more: Value) -> Value {
    let mut config = json!({
        "tools": {"exec": {"host": "gateway"}},
        "agents": {"defaults": {"heartbeat": {"every": "1h", "target": "last"}}},
    });
    crate::support::config::merge(&mut config, more);
    config
}

fn approvals_file(gateway: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(gateway.state_dir().join("exec-approvals.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_client_decides_and_the_agent_hears_of_it() {
    let model = runner().await;
    let gateway = gateway().fake_model(&model.v1()).config(on_this_host(json!({}))).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "run: /usr/bin/printf it-ran", "run-1").await, "asked");
    let asked = client.event("exec.approval.requested", |_| true).await.unwrap();
    let request = &asked["request"];
    assert_eq!(
        (&request["command"], &request["host"], &request["security"], &request["ask"], &request["agentId"]),
        (
            &json!("/usr/bin/printf it-ran"),
            &json!("gateway"),
            &json!("allowlist"),
            &json!("on-miss"),
            &json!("main")
        ),
        "{asked}"
    );
    assert_eq!(request["sessionKey"], "agent:main:main");
    let decide = json!({"id": asked["id"], "decision": "allow-always"});
    client.request("exec.approval.resolve", decide).await.unwrap();
    let resolved = client.event("exec.approval.resolved", |_| true).await.unwrap();
    assert_eq!((&resolved["id"], &resolved["decision"]), (&asked["id"], &json!("allow-always")));
    let heard = client.event("heartbeat", |event| event["preview"].is_string()).await.unwrap();
    let heard = heard["preview"].as_str().unwrap();
    assert!(
        heard.starts_with("heard: Exec finished (gateway id=") && heard.ends_with("code 0) it-ran"),
        "{heard}"
    );
    let list = &approvals_file(&gateway)["agents"]["main"]["allowlist"];
    assert!(list[0]["pattern"].as_str().unwrap().ends_with("/printf"), "{list}");

    // The command is on the list now.
    assert_eq!(turn(&mut client, "main", "run: /usr/bin/printf again", "run-2").await, "asked");
    let told = model.requests().pop().unwrap();
    let result = told.messages().iter().rev().find(|message| message["role"] == "tool").unwrap().clone();
    assert_eq!(result["content"], "again", "{result}");
}

/// Checks that with heartbeats off none is made for a command that has ended: what came of it is told in the next turn. The other agent's
/// beats show that the time for one has passed.
#[tokio::test]
async fn with_heartbeats_off_the_end_of_a_command_waits_for_the_next_turn() {
    let model = ModelServer::answering(|request: &Captured| match last_said(request) {
        _ if request.ends_with_tool_result() => Reply::text("asked"),
        said if said.contains("the pulse") => Reply::text("HEARTBEAT_OK"),
        said if said.contains("run it") => {
            Reply::tool("c0", "exec", &json!({"command": "/usr/bin/printf it-ran"}))
        }
        said => Reply::text(if said.contains("Exec finished") { "heard" } else { "nothing" }),
    })
    .await;
    let beats = json!({"agents": {"list": [
        {"id": "main", "default": true, "heartbeat": {"every": "0m", "target": "last"}},
        {"id": "other", "heartbeat": {"every": "500ms", "prompt": "the pulse"}},
    ]}});
    let gateway = gateway().fake_model(&model.v1()).config(on_this_host(beats)).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "run it", "run-1").await, "asked");
    let asked = client.event("exec.approval.requested", |_| true).await.unwrap();
    let decide = json!({"id": asked["id"], "decision": "allow-once"});
    client.request("exec.approval.resolve", decide).await.unwrap();
    for at in 0.. {
        match turn(&mut client, "main", "anything new?", &format!("ask-{at}")).await.as_str() {
            "heard" => break,
            said => assert_eq!(said, "nothing"),
        }
    }
    for _ in 0..3 {
        let beat = client.event("heartbeat", |_| true).await.unwrap();
        assert!(!beat["reason"].to_string().contains("exec-event"), "{beat}");
    }
    let expected = ["run it", "anything new?", "the pulse"];
    let others = model.requests().into_iter().map(|request| last_said(&request));
    let others: Vec<String> =
        others.filter(|said| !expected.iter().any(|known| said.contains(known))).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Puts a script into the workspace.
fn put_script(gateway: &GatewayUnderTest, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = gateway.state_dir().join("workspace").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the command, and decides the question about it; `meanwhile` happens before. Returns what
/// the agent hears of it.
async fn decided(
    client: &mut WsClient,
    (command, run): (&str, &str),
    decision: &str,
    meanwhile: impl FnOnce(),
) -> String {
    assert_eq!(turn(client, "main", &format!("run: {command}"), run).await, "asked");
    let asked = client
        .event("exec.approval.requested", |asked| asked["request"]["command"] == command)
        .await
        .unwrap();
    meanwhile();
    client.request("exec.approval.resolve", json!({"id": asked["id"], "decision": decision})).await.unwrap();
    let is_told = |event: &Value| {
        event["preview"].as_str().is_some_and(|told| told.contains(asked["id"].as_str().unwrap()))
    };
    let heard = client.event("heartbeat", is_told).await.unwrap();
    heard["preview"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_program_of_the_workspace_is_allowed_by_its_content_and_asked_about_again_when_it_changes() {
    let model = runner().await;
    let gateway = gateway().fake_model(&model.v1()).config(on_this_host(json!({}))).start().await.unwrap();
    put_script(&gateway, "build.sh", "#!/bin/sh\necho first\n");
    let mut client = gateway.client().await.unwrap();
    let heard = decided(&mut client, ("./build.sh", "run-1"), "allow-always", || ()).await;
    assert!(heard.ends_with("code 0) first"), "{heard}");
    let list = approvals_file(&gateway)["agents"]["main"]["allowlist"].clone();
    let [entry] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
    assert!(entry["pattern"].as_str().unwrap().ends_with("/workspace/build.sh"), "{list}");
    assert_eq!(entry["sha256"].as_str().unwrap().len(), 64, "{list}");

    // The same is not asked about, another one is.
    turn(&mut client, "main", "run: ./build.sh", "run-2").await;
    let result = |model: &ModelServer| {
        let told = model.requests().pop().unwrap();
        told.messages().iter().rev().find(|message| message["role"] == "tool").unwrap()["content"].clone()
    };
    assert_eq!(result(&model), "first");
    put_script(&gateway, "build.sh", "#!/bin/sh\necho second\n");
    let heard = decided(&mut client, ("./build.sh", "run-3"), "allow-always", || ()).await;
    assert!(heard.ends_with("code 0) second"), "{heard}");
    let list = &approvals_file(&gateway)["agents"]["main"]["allowlist"];
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    assert_ne!(list[0]["sha256"], entry["sha256"]);

    // Behind a change of directory its name means another file: nothing is remembered.
    put_script(&gateway, "sub/b.sh", "#!/bin/sh\necho below\n");
    put_script(&gateway, "b.sh", "#!/bin/sh\necho never shown\n");
    let heard = decided(&mut client, ("cd sub && ./b.sh", "run-4"), "allow-always", || ()).await;
    assert!(heard.ends_with("code 0) below"), "{heard}");
    assert_eq!(&approvals_file(&gateway)["agents"]["main"]["allowlist"], list);
}

#[tokio::test]
async fn what_was_shown_is_what_runs() {
    let model = runner().await;
    let gateway = gateway().fake_model(&model.v1()).config(on_this_host(json!({}))).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let never_made = gateway.state_dir().join("workspace/never-made");
    for (at, (command, script, decision)) in [
        ("./build.sh", "build.sh", "allow-once"),
        ("./build.sh", "build.sh", "allow-always"),
        ("sh build.sh", "build.sh", "allow-once"),
        ("sh -c 'A=1; ./build.sh'", "build.sh", "allow-once"),
        ("cd sub && ./build.sh", "sub/build.sh", "allow-always"),
        ("(cd sub && ./build.sh)", "sub/build.sh", "allow-once"),
        (". ./build.sh", "build.sh", "allow-once"),
        ("cat build.sh | sh", "build.sh", "allow-once"),
    ]
    .into_iter()
    .enumerate()
    {
        put_script(&gateway, script, "#!/bin/sh\necho shown\n");
        let change =
            || put_script(&gateway, script, &format!("#!/bin/sh\ntouch '{}'\n", never_made.display()));
        let heard = decided(&mut client, (command, &format!("run-{at}")), decision, change).await;
        assert!(heard.contains("changed-since-asked"), "{command}: {heard}");
        assert!(!never_made.exists(), "{command}");
    }
    let file = approvals_file_or_none(&gateway);
    assert!(!file.contains("build.sh"), "{file}");
}

fn approvals_file_or_none(gateway: &GatewayUnderTest) -> String {
    std::fs::read_to_string(gateway.state_dir().join("exec-approvals.json")).unwrap_or_default()
}

#[tokio::test]
async fn a_person_is_asked_in_the_chat_and_decides_there() {
    let server = TelegramServer::start().await;
    let model = runner().await;
    let config = on_this_host(json!({"approvals": {"exec": {"enabled": true}}}));
    let gateway = bot(&server, &model, open(), config).await;
    let said = |text: &'static str| {
        let server = &server;
        async move {
            server
                .has_made(text, |made| {
                    made.iter().any(|message| message["text"].as_str().unwrap_or_default().contains(text))
                })
                .await;
            let made = server.made();
            let of = |message: &&Value| message["text"].as_str().unwrap_or_default().contains(text);
            made.iter().rev().find(of).unwrap().clone()
        }
    };
    server.push(private_message(5, "run: touch made-by-hand"));
    let asked = said("A command waits for your approval.").await;
    let data: Vec<Value> = asked["reply_markup"]["inline_keyboard"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|button| button["callback_data"].clone())
        .collect();
    let allow = data[0].as_str().unwrap().to_owned();
    assert!(allow.starts_with("/approve ") && allow.ends_with(" allow-once"), "{data:?}");
    assert!(!gateway.state_dir().join("workspace/made-by-hand").exists());
    server.press(5, &allow);
    said("Exec approval: allow-once by ").await;
    said("heard: Exec finished (gateway id=").await;
    assert!(gateway.state_dir().join("workspace/made-by-hand").exists());

    // By words, and no.
    server.push(private_message(5, "run: touch never-made"));
    server
        .has_made("the second question", |made| {
            made.iter()
                .filter(|message| message["text"].as_str().unwrap_or_default().contains("touch never-made"))
                .count()
                > 0
        })
        .await;
    let id = said("touch never-made").await["text"].as_str().unwrap().split("ID: ").nth(1).unwrap()[..36]
        .to_owned();
    server.push(private_message(5, &format!("/approve {id} deny")));
    said("✅ Exec approval deny submitted for").await;
    said("user-denied): touch never-made").await;
    assert!(!gateway.state_dir().join("workspace/never-made").exists());
    server.push(private_message(5, &format!("/approve {id} deny")));
    said("❌ Failed to submit approval: unknown approval id. It was decided, its time is up, or").await;
}

/// Shows in the question exactly what would run: with its variables, in one line, and with nothing
/// unseen in it.
/// The question stands above buttons that decide: it has to say what will run.
#[tokio::test]
async fn the_agent_does_not_change_the_question_about_its_command() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request: &Captured| {
        let said = last_said(request);
        let changed = said.split("change ").nth(1).and_then(|rest| rest.split_whitespace().next());
        match changed {
            _ if request.ends_with_tool_result() => Reply::text("done"),
            Some(id) => {
                Reply::tool("c1", "message", &json!({"action": "edit", "messageId": id, "message": "ls"}))
            }
            None => Reply::tool("c0", "exec", &json!({"command": "touch never-made"})),
        }
    })
    .await;
    let config = on_this_host(json!({"approvals": {"exec": {"enabled": true}}}));
    let gateway = bot(&server, &model, open(), config).await;
    server.push(private_message(5, "run it"));
    server.nth_answer("sendMessage", 2).await;
    gateway.fates().await.unwrap();
    let sent = server.calls("sendMessage");
    let is_question = |text: &Value| text.as_str().unwrap().contains("A command waits for your approval.");
    let at = sent.iter().position(|call| is_question(&call.params["text"])).unwrap();
    server.push(private_message(5, &format!("change {}", 501 + at)));
    server.nth_answer("sendMessage", 3).await;
    let told = model.requests().pop().unwrap().messages().last().unwrap().to_string();
    assert!(told.contains("is the gateway's own"), "{told}");
    assert!(server.calls("editMessageText").is_empty());
}

#[tokio::test]
async fn a_question_shows_the_variables_and_no_command_forges_its_lines() {
    const COMMAND: &str = "touch a #\nIn: /safe\r\u{1b}[2KID: 0\u{85}\u{2028}\u{202e}cod\u{2066}\u{200b}\u{200f}\u{feff}\nReply with: /approve 0 deny";
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request: &Captured| {
        if request.ends_with_tool_result() {
            return Reply::text("asked");
        }
        let env = json!({"LANG": "C", "A": "x y\nProgram: /bin/true", "echo hi #": "1"});
        Reply::tool("c0", "exec", &json!({"command": COMMAND, "env": env}))
    })
    .await;
    let config = on_this_host(json!({"approvals": {"exec": {"enabled": true}}}));
    let gateway = bot(&server, &model, open(), config).await;
    let mut client = gateway.client().await.unwrap();
    server.push(private_message(5, "go"));
    let event = client.event("exec.approval.requested", |_| true).await.unwrap();
    let shown = format!("LANG=C A='x y\nProgram: /bin/true' 'echo hi #'=1 {COMMAND}");
    assert_eq!(event["request"]["command"], shown, "clients have it as it is");
    let is_question =
        |message: &Value| message["text"].as_str().unwrap_or_default().contains("waits for your approval");
    server.has_made("the question", |made| made.iter().any(is_question)).await;
    let question = server.made().into_iter().find(is_question).unwrap()["text"].as_str().unwrap().to_owned();
    let id = event["id"].as_str().unwrap();
    let workspace = gateway.state_dir().join("workspace").canonicalize().unwrap();
    let expect = [
        "🔒 A command waits for your approval.".to_owned(),
        "Command: LANG=C A='x y\\nProgram: /bin/true' 'echo hi #'=1 touch a #\\nIn: /safe\\u000d\\u001b[2KID: \
         0\\u0085\\u2028\\u202ecod\\u2066\\u200b\\u200f\\ufeff\\nReply with: /approve 0 deny"
            .to_owned(),
        format!("In: {}", workspace.display()),
        "On: gateway".to_owned(),
        "Agent: main".to_owned(),
        "It waits for 120 s.".to_owned(),
        format!("ID: {id}"),
        format!("Reply with: /approve {id} allow-once|allow-always|deny"),
    ];
    assert_eq!(question.lines().collect::<Vec<_>>(), expect);
}

#[tokio::test]
async fn a_client_that_may_not_decide_does_not_decide_by_a_chat_command() {
    let model = runner().await;
    let gateway = gateway().fake_model(&model.v1()).config(on_this_host(json!({}))).start().await.unwrap();
    let mut owner = gateway.client().await.unwrap();
    assert_eq!(turn(&mut owner, "main", "run: touch made", "run-1").await, "asked");
    let asked = owner.event("exec.approval.requested", |_| true).await.unwrap();
    let login = Login::token(TOKEN).with("scopes", json!(["operator.write", "operator.read"]));
    let (mut writer, _) = WsClient::connect(gateway.port(), login).await.unwrap();
    let command = format!("/approve {} allow-once", asked["id"].as_str().unwrap());
    let said = turn(&mut writer, "main", &command, "run-2").await;
    assert_eq!(said, "❌ /approve requires operator.approvals for gateway clients.");
    assert_eq!(
        turn(&mut owner, "main", &command, "run-3").await,
        format!("✅ Exec approval allow-once submitted for {}.", asked["id"].as_str().unwrap())
    );
}

#[tokio::test]
async fn listed_senders_run_commands_on_this_host_and_others_do_not() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request: &Captured| {
        if request.ends_with_tool_result() {
            let told = request.messages().iter().rev().find(|message| message["role"] == "tool").unwrap();
            return Reply::text(told["content"].as_str().unwrap_or_default());
        }
        Reply::tool("c0", "exec", &json!({"command": "echo on-the-host", "elevated": true}))
    })
    .await;
    let config = json!({"tools": {"elevated": {"allowFrom": {"telegram": [5]}}}});
    let _gateway = bot(&server, &model, open(), config).await;
    let answer = async |from: i64, text: &str, count: usize| {
        server.push(private_message(from, text));
        server.has_made("an answer", |made| made.len() >= count).await;
        server.made()[count - 1]["text"].as_str().unwrap().to_owned()
    };
    let refused = answer(6, "go", 1).await;
    assert!(refused.contains("elevated is not available right now"), "{refused}");
    assert!(refused.contains("tools.elevated.allowFrom.telegram"), "{refused}");
    let command = answer(6, "/elevated full", 2).await;
    assert!(command.contains("elevated is not available right now"), "{command}");
    let asked = answer(5, "go", 3).await;
    assert!(asked.starts_with("Approval required (id "), "{asked}");
    let full = answer(5, "/elevated full", 4).await;
    assert!(full.starts_with("⚙️ Elevated mode set to full (auto-approve)."), "{full}");
    assert_eq!(answer(5, "go", 5).await, "on-the-host");
}

#[tokio::test]
async fn exec_settings_of_a_session_hold_until_they_are_changed() {
    let model = runner().await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let said = turn(&mut client, "main", "/exec", "r1").await;
    assert!(
        said.starts_with(
            "Current exec defaults: host=(unset), security=(unset), ask=(unset), node=(unset).\n\
             Nothing is set: commands run on this machine, and nobody is asked.\nOptions: "
        ),
        "{said}"
    );
    for (n, (text, says)) in [
        ("/exec foo", "Unrecognized exec option: foo. Options: "),
        ("/exec hots=gateway", "Unrecognized exec option: hots=gateway. Options: "),
        ("/exec host=node", "⚠️ host=node needs a paired node, and this version has no nodes yet."),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = turn(&mut client, "main", text, &format!("wrong-{n}")).await;
        assert!(answer.starts_with(says), "{text}: {answer}");
    }
    assert!(model.requests().is_empty(), "the gateway answers");
    let wrong = turn(&mut client, "main", "/exec host=moon", "r2").await;
    assert!(wrong.starts_with("Unrecognized exec option: host \"moon\". Options: "), "{wrong}");
    let set = turn(&mut client, "main", "/exec host=gateway security=deny", "r3").await;
    assert_eq!(set, "⚙️ Exec defaults set (host=gateway, security=deny).");
    assert_eq!(turn(&mut client, "main", "run: touch never", "r4").await, "asked");
    let told = model.requests().pop().unwrap();
    let result = told.messages().iter().rev().find(|message| message["role"] == "tool").unwrap().clone();
    assert!(
        result["content"].as_str().unwrap().contains("exec denied: host=gateway security=deny"),
        "{result}"
    );
    assert!(!gateway.state_dir().join("workspace/never").exists());
    let reset = turn(&mut client, "main", "/exec reset", "r5").await;
    assert_eq!(reset, "⚙️ Exec defaults are those of the configuration again.");
    let shown = turn(&mut client, "main", "/exec", "r6").await;
    assert!(shown.contains("host=(unset), security=(unset)"), "{shown}");
    assert_eq!(turn(&mut client, "main", "run: touch made", "r7").await, "asked");
    assert!(gateway.state_dir().join("workspace/made").exists());

    // `ask=off` alone is a rule as it is with a host: what is not on the list does not run.
    turn(&mut client, "main", "/exec ask=off", "r8").await;
    assert_eq!(turn(&mut client, "main", "run: touch neither", "r9").await, "asked");
    assert!(!gateway.state_dir().join("workspace/neither").exists());
}
