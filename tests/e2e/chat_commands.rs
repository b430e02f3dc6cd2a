//! Chat commands through the real program: on WebChat, and on a bot of the fake Bot API (spec `messages.md` §5, §9).

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, group_message, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{history, turn};
use crate::support::telegram::{all_sent, bot, last_said};

/// The bot's owner.
fn owner() -> Value {
    json!({"dmPolicy": "allowlist", "allowFrom": [5]})
}

/// Next text of the bot, after the first `sent` messages.
async fn told(server: &TelegramServer, sent: &mut usize, update: Value) -> String {
    server.push(update);
    *sent += 1;
    server.nth_call("sendMessage", *sent).await.params["text"].as_str().unwrap().to_owned()
}

async fn row(gateway: &GatewayUnderTest, key: &str) -> Value {
    let mut client = gateway.client().await.unwrap();
    let sessions = client.request("sessions.list", json!({})).await.unwrap();
    let rows = sessions["sessions"].as_array().unwrap().clone();
    rows.into_iter().find(|row| row["key"] == key).unwrap_or_default()
}

#[tokio::test]
async fn each_command_of_web_chat_is_answered_without_the_model() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let rows = [
        ("/help", "ℹ️ Help\n\nSession\n  /new [model] [text]  |  "),
        ("/commands", "ℹ️ Slash commands\n\nSession\n  /new - Begin a new conversation."),
        ("/whoami", "🧭 Identity\nChannel: webchat"),
        ("/ID", "🧭 Identity\nChannel: webchat"),
        ("/usage", "⚙️ Usage footer: tokens."),
        ("/usage", "⚙️ Usage footer: full."),
        ("/usage", "⚙️ Usage footer: off."),
        ("/usage what", "⚙️ Usage: /usage off|tokens|full|cost"),
        ("/usage cost", "💸 Usage cost\nSession "),
        ("/activation always", "⚙️ Group activation only applies to group chats."),
        ("/subagents", "🧭 Subagents: none for this session."),
        ("/config show", "⚠️ /config is disabled. Set commands.config=true to enable."),
        ("/debug show", "⚠️ /debug is disabled. Set commands.debug=true to enable."),
        ("/restart", "⚠️ /restart is disabled. Set commands.restart=true to enable."),
        ("/allowlist", "⚠️ Unknown channel. Add channel=<id> to the command."),
        ("/allowlist channel=telegram", "🧾 Allowlist\nChannel: telegram\nDM policy: pairing\n"),
        (
            "/allowlist add channel=telegram 5",
            "⚠️ /allowlist edits are disabled. Set commands.config=true to enable.",
        ),
        ("/dock_telegram", "⚠️ No linked telegram target for you."),
        ("/tts on", "⚠️ /tts is not there yet in this version. /commands lists what there is."),
        ("/approve x deny", "❌ Failed to submit approval: "),
        ("! ls", "⚠️ bash is disabled. Set commands.bash=true to enable."),
        ("/send what", "⚙️ Usage: /send on|off|inherit"),
        ("/status", "🦞 OpenClaw 2026.2.9\n🧠 Model: fake/fake-1 · 🔑 api-key … (models.json)\n"),
    ];
    for (n, (text, expect)) in rows.into_iter().enumerate() {
        let said = turn(&mut client, "main", text, &format!("c{n}")).await;
        assert!(said.starts_with(expect), "{text}: {said}");
    }
    let said = turn(&mut client, "main", "/status", "before").await;
    assert!(said.contains("\n📚 Context: ?/32k · 🧹 Compactions: 0\n"), "{said}");
    assert!(model.requests().is_empty(), "no model is called");
    for (n, text) in ["/restart now", "/foo", "!!important"].into_iter().enumerate() {
        assert_eq!(turn(&mut client, "main", text, &format!("w{n}")).await, "from the model", "{text}");
    }
    let said = turn(&mut client, "main", "/status", "s").await;
    for line in [
        "🧮 Tokens: 100 in / 7 out",
        "🧵 Session: agent:main:main • updated just now",
        "🪢 Queue: collect (depth 0)",
    ] {
        assert!(said.lines().any(|own| own == line), "no {line} in\n{said}");
    }
    assert!(said.contains("\n📚 Context: 100/32k (0%) · 🧹 Compactions: 0\n"), "{said}");
    assert!(said.contains("\n⚙️ Runtime: direct · Think: off\n"), "{said}");
}

#[tokio::test]
async fn the_card_says_what_holds_the_commands_of_a_session() {
    for (mode, backend, session, expect) in [
        ("non-main", "local", "main", "direct/non-main"),
        ("non-main", "local", "side", "local/non-main"),
        ("all", "podman", "main", "podman/all"),
    ] {
        let sandbox = json!({"agents": {"defaults": {"sandbox": {"mode": mode, "backend": backend}}}});
        let model = ModelServer::queue([]).await;
        let gateway = gateway().fake_model(&model.v1()).config(sandbox).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let said = turn(&mut client, session, "/status", "s").await;
        assert!(said.contains(&format!("\n⚙️ Runtime: {expect} · ")), "{said}");
    }
}

#[tokio::test]
async fn a_session_that_may_not_send_still_hears_commands() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "/send off", "1").await, "⚙️ Send policy set to off.");
    let refused = crate::support::conversation::message("main", "hello", "2");
    assert!(client.request("chat.send", refused).await.is_err(), "nothing is sent");
    assert_eq!(turn(&mut client, "main", "/send inherit", "3").await, "⚙️ Send policy set to inherit.");
    assert_eq!(turn(&mut client, "main", "hello", "4").await, "from the model");
}

#[tokio::test]
async fn settings_are_changed_from_a_chat_in_the_file_or_for_this_process() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let config = json!({"commands": {"config": true, "debug": true}, "messages": {"responsePrefix": "a"}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let rows = [
        ("/config get messages.responsePrefix", "⚙️ Config `messages.responsePrefix`:\n```json\n\"a\"\n```"),
        ("/config set messages.responsePrefix=b c", "⚙️ Config updated: `messages.responsePrefix=\"b c\"`"),
        ("/config unset messages.responsePrefix", "⚙️ Config updated: `messages.responsePrefix` removed."),
        (
            "/config set messages.groupChat.mentionPatterns=[\"a  b\"]",
            "⚙️ Config updated: `messages.groupChat.mentionPatterns=[\"a  b\"]`",
        ),
        (
            r#"/config set agents.defaults.models["openai/gpt-5.2"].alias=gpt"#,
            "⚙️ Config updated: `agents.defaults.models[\"openai/gpt-5.2\"].alias=\"gpt\"`",
        ),
        (
            r"/config get agents.defaults.models.openai/gpt-5\.2.alias",
            "⚙️ Config `agents.defaults.models.openai/gpt-5\\.2.alias`:\n```json\n\"gpt\"\n```",
        ),
        ("/debug show", "⚙️ Debug overrides: (none)"),
        (
            "/debug set messages.responsePrefix=[dbg]",
            "⚠️ Invalid JSON: expected value at line 1 column 2\nA value that begins with [, { or a quote has to be whole JSON. \
             For text: `/debug set messages.responsePrefix=\"[dbg]\"`",
        ),
        ("/debug set messages.queue.mode=steer", "⚙️ Debug override set: `messages.queue.mode=\"steer\"`"),
    ];
    for (n, (text, expect)) in rows.into_iter().enumerate() {
        assert_eq!(turn(&mut client, "main", text, &format!("c{n}")).await, expect, "{text}");
    }
    let status = turn(&mut client, "main", "/status", "s1").await;
    assert!(status.contains("🪢 Queue: steer (depth 0)"), "the override is in force: {status}");
    let file = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    assert!(!file.contains("steer") && !file.contains("responsePrefix"), "{file}");
    let reset = turn(&mut client, "main", "/debug reset", "d").await;
    assert_eq!(reset, "⚙️ Debug overrides cleared; using config on disk.");
    let status = turn(&mut client, "main", "/status", "s2").await;
    assert!(status.contains("🪢 Queue: collect (depth 0)"), "{status}");
}

#[tokio::test]
async fn the_owner_of_a_bot_is_told_who_they_are_and_lists_turn_in_place() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let gateway = bot(&server, &model, owner(), json!({})).await;
    let mut sent = 0;
    let said = told(&server, &mut sent, private_message(5, "/whoami")).await;
    assert_eq!(said, "🧭 Identity\nChannel: telegram\nUser id: 5\nUsername: @user5\nAllowFrom: 5");
    let said = told(&server, &mut sent, private_message(5, "/commands")).await;
    assert!(said.starts_with("ℹ️ Commands (1/"), "{said}");
    let keyboard = &server.nth_call("sendMessage", sent).await.params["reply_markup"]["inline_keyboard"];
    assert_eq!(keyboard[0][1]["callback_data"], "commands_page_2:main");
    server.press(5, "commands_page_2:main");
    let edited = server.nth_call("editMessageText", 1).await.params;
    assert_eq!((&edited["chat_id"], &edited["message_id"]), (&json!(5), &json!(502)));
    assert!(edited["text"].as_str().unwrap().starts_with("ℹ️ Commands (2/"), "{edited}");
    assert_eq!(edited["reply_markup"]["inline_keyboard"][0][0]["callback_data"], "commands_page_1:main");

    let said = told(&server, &mut sent, private_message(5, "/models")).await;
    assert_eq!(said, "Select a provider:");
    server.press(5, "mdl_list_fake_1");
    let edited = server.nth_call("editMessageText", 2).await.params;
    let choice =
        edited["reply_markup"]["inline_keyboard"][0][0]["callback_data"].as_str().unwrap().to_owned();
    assert!(choice.starts_with("mdl_sel_fake/"), "{edited}");
    server.press(5, &choice);
    sent += 1;
    let said = server.nth_call("sendMessage", sent).await.params["text"].as_str().unwrap().to_owned();
    assert!(said.starts_with("Model "), "{said}");

    let said = told(&server, &mut sent, private_message(5, "/usage tokens")).await;
    assert_eq!(said, "⚙️ Usage footer: tokens.");
    let said = told(&server, &mut sent, private_message(5, "hello")).await;
    assert_eq!(said, "from the model\nUsage: 100 in / 7 out");
    assert_eq!(model.requests().len(), 1);
    let said = told(&server, &mut sent, private_message(5, "/send off")).await;
    assert_eq!(said, "⚙️ Send policy set to off.");
    assert_eq!(row(&gateway, "agent:main:main").await["sendPolicy"], "deny");
    let before = server.made().len();
    // A message right behind the command that lifts the block waits for it.
    for text in ["/send off", "/send on", "hello again"] {
        server.push(private_message(5, text));
    }
    let more =
        ["⚙️ Send policy set to off.", "⚙️ Send policy set to on.", "from the model\nUsage: 100 in / 7 out"];
    server.has_made("all three answers", |made| made.len() == before + more.len()).await;
    let said: Vec<Value> = server.made().iter().skip(before).map(|made| made["text"].clone()).collect();
    assert_eq!(said, more);
}

#[tokio::test]
async fn a_stranger_gets_no_answer_to_a_command_and_a_group_is_activated_by_who_may() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let section = json!({
        "dmPolicy": "allowlist", "allowFrom": [5], "groupPolicy": "open", "groupAllowFrom": [5], "groups": {"-100": {}},
    });
    let _gateway = bot(&server, &model, section, json!({})).await;
    let mut sent = 0;
    server.push(group_message(-100, 9, "/status"));
    server.push(group_message(-100, 9, "/activation always"));
    server.push(group_message(-100, 5, "nobody is spoken to"));
    let said = told(&server, &mut sent, group_message(-100, 5, "/activation always")).await;
    assert_eq!(said, "⚙️ Group activation set to always.", "the stranger's commands were not answered");
    let said = told(&server, &mut sent, group_message(-100, 9, "who is there?")).await;
    assert_eq!(said, "yes", "everybody is heard now");
    let said = told(&server, &mut sent, group_message(-100, 5, "/status")).await;
    assert!(said.contains("👥 Activation: always · 🪢 Queue: collect"), "{said}");
    let said = told(&server, &mut sent, group_message(-100, 5, "/activation mention")).await;
    assert_eq!(said, "⚙️ Group activation set to mention.");
    let said = told(&server, &mut sent, group_message(-100, 5, "/status")).await;
    assert!(said.contains("👥 Activation: mention · 🪢"), "{said}");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn lists_of_who_is_heard_are_changed_from_a_chat() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    let gateway = bot(&server, &model, owner(), json!({"commands": {"config": true}})).await;
    let mut sent = 0;
    let said = told(&server, &mut sent, private_message(5, "/allowlist add 6")).await;
    assert_eq!(said, "✅ DM allowlist added: channels.telegram.allowFrom + pairing store.");
    let said = told(&server, &mut sent, private_message(5, "/allowlist add 6")).await;
    assert_eq!(said, "✅ Already allowlisted.");
    let file = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    assert!(file.contains("\"6\""), "{file}");
}

/// An account that has no list of its own hears whom its channel hears, also where that list stands in another file.
#[tokio::test]
async fn a_list_of_an_included_file_shuts_nobody_out() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("welcome")).await;
    let section = json!({
        "$include": "./people.json5", "botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "allowlist",
        "accounts": {"default": {}},
    });
    let config = json!({"channels": {"telegram": section}, "commands": {"config": true}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    let people = gateway.state_dir().join("people.json5");
    std::fs::write(&people, "{allowFrom: [5, 7], groupAllowFrom: [5]}").unwrap();
    gateway.start().await.unwrap();
    let mut sent = 0;
    let said = told(&server, &mut sent, private_message(5, "/allowlist add 6 --config")).await;
    assert_eq!(said, "✅ DM allowlist added: channels.telegram.accounts.default.allowFrom.");
    for person in [6, 7, 5] {
        assert_eq!(told(&server, &mut sent, private_message(person, "hello")).await, "welcome", "{person}");
    }
    let file = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["channels"]["telegram"]["accounts"]["default"], json!({"allowFrom": [5, 7, "6"]}));
    // An account that stands in that file is not changed from here.
    std::fs::write(&people, "{accounts: {default: {groupAllowFrom: [5]}}}").unwrap();
    let said = told(&server, &mut sent, private_message(5, "/allowlist remove group 5")).await;
    let refused =
        "⚠️ channels.telegram.accounts.default.groupAllowFrom comes from an included file; change it there: ";
    assert!(said.starts_with(refused) && said.contains("people.json5"), "{said}");
}

#[tokio::test]
async fn the_menu_has_the_commands_of_the_table_and_can_be_switched_off() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let gateway = bot(&server, &model, owner(), json!({"commands": {"debug": true}})).await;
    let set = server.nth_call("setMyCommands", 1).await.params;
    let names: Vec<&str> =
        set["commands"].as_array().unwrap().iter().map(|row| row["command"].as_str().unwrap()).collect();
    for name in ["new", "status", "whoami", "commands", "models", "debug", "dock_telegram"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(!names.iter().any(|name| ["config", "compact", "bash", "allowlist"].contains(name)), "{names:?}");
    drop(gateway);
    let server = TelegramServer::start().await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5], "customCommands": [{"command": "mine", "description": "M"}]});
    let _gateway = bot(&server, &model, section, json!({"commands": {"native": false}})).await;
    let set = server.nth_call("setMyCommands", 1).await.params;
    assert_eq!(set["commands"], json!([{"command": "mine", "description": "M"}]));
}

#[tokio::test]
async fn a_menu_that_was_not_taken_is_offered_again() {
    let server = TelegramServer::start().await;
    server.fail("setMyCommands", CallFault::Refuse(500, "Internal Server Error"));
    let model = ModelServer::answering(|_| Reply::text("yes")).await;
    let _gateway = bot(&server, &model, owner(), json!({})).await;
    server.nth_call("setMyCommands", 2).await;
}

#[tokio::test]
async fn a_restart_is_said_before_it_happens_and_the_same_process_comes_back() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("I am back")).await;
    let gateway = bot(&server, &model, owner(), json!({"commands": {"restart": true}})).await;
    let mut sent = 0;
    let said = told(&server, &mut sent, private_message(5, "/restart")).await;
    assert_eq!(said, "⚙️ Restarting OpenClaw in-process (SIGUSR1); back in a few seconds.");
    // The bot introduces itself when it starts.
    server.nth_call("setMyCommands", 2).await;
    let said = told(&server, &mut sent, private_message(5, "hello")).await;
    assert_eq!(said, "I am back");
    assert_eq!(server.calls("sendMessage").len(), 2, "each was said once");
    drop(gateway);
}

/// Killed at once after a command was sent: it is done and told once, whatever of it the first process had done. Its own try to tell it is
/// refused, so that nobody can be in doubt whether it arrived.
#[tokio::test]
async fn a_command_is_told_once_although_the_gateway_dies_between() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let mut gateway = bot(&server, &model, owner(), json!({})).await;
    for round in 1..=3 {
        server.fail("sendMessage", CallFault::Slower(1));
        server.push(private_message(5, "/usage tokens"));
        server.all_confirmed().await;
        gateway.kill().await.unwrap();
        gateway.start().await.unwrap();
        server.has_made("what the command says", |made| made.len() == round).await;
        all_sent(&gateway).await;
    }
    server.push(private_message(5, "/whoami"));
    server.has_made("what comes behind them", |made| made.len() == 4).await;
    let said: Vec<_> = server.made().iter().map(|made| made["text"].as_str().unwrap().to_owned()).collect();
    assert!(said[..3].iter().all(|said| said == "⚙️ Usage footer: tokens."), "{said:?}");
    assert!(said[3].starts_with("🧭 Identity"), "nothing was told twice before it: {said:?}");
    let mut client = gateway.client().await.unwrap();
    assert_eq!(history(&mut client, "main").await, [""; 0], "what is told on a platform stays there");
}

/// Spec `messages.md` §4: the gateway's own answer is no part of a conversation, but where a client gave the command.
#[tokio::test]
async fn a_command_given_on_a_platform_is_answered_there_alone() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| match last_said(request).contains("take your time") {
        true => Reply::text("done").after(Step::Wait(held.clone())),
        false => Reply::text("from the model"),
    })
    .await;
    let gateway = bot(&server, &model, owner(), json!({})).await;
    let mut sent = 0;
    // The first that is said in a conversation, one beside a run, one in its turn.
    let said = told(&server, &mut sent, private_message(5, "/usage tokens")).await;
    assert_eq!(said, "⚙️ Usage footer: tokens.");
    server.push(private_message(5, "take your time"));
    model.arrived(1).await;
    let said = told(&server, &mut sent, private_message(5, "/think high")).await;
    assert_eq!(said, "Thinking level set to high. fake/fake-1 does not think: it has no effect there.");
    gate.open();
    server.has_made("the answer", |made| made.len() == 3).await;
    sent += 1;
    let said = told(&server, &mut sent, private_message(5, "/verbose off")).await;
    assert_eq!(said, "⚙️ Verbose logging disabled.");
    let mut client = gateway.client().await.unwrap();
    let said = turn(&mut client, "main", "/think low", "run-1").await;
    assert_eq!(said, "Thinking level set to low. fake/fake-1 does not think: it has no effect there.");
    assert_eq!(turn(&mut client, "main", "hello", "run-2").await, "from the model");
    let asked = model.requests();
    let seen = json!(asked.last().unwrap().messages()).to_string();
    let kept = history(&mut client, "main").await.join("\n");
    for (what, text) in [("the model", seen), ("the web chat", kept)] {
        assert!(text.contains("done") && text.contains("Thinking level set to low."), "{what}: {text}");
        for said in ["Usage footer", "set to high", "Verbose logging"] {
            assert!(!text.contains(said), "{what}: {text}");
        }
    }
}
