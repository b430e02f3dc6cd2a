//! Channel switches: whatever switches a channel off or keeps it from working is named wherever
//! channels are reported, with a remedy; and settings that do other than they seem to are reported
//! when they are written.

use openclaw_testkit::telegram::{CallFault, private_message};
use openclaw_testkit::{GatewayUnderTest, ReservedPort};
use serde_json::{Value, json};

use crate::support::command::{has, ok, openclaw};
use crate::support::http::request_at;
use crate::support::telegram::{bot, open, server_and_model};
use crate::support::wait::until;

/// Edits the file by hand.
fn edit(gateway: &GatewayUnderTest, change: impl FnOnce(&mut Value)) {
    let path = gateway.state_dir().join("openclaw.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut file);
    std::fs::write(path, file.to_string()).unwrap();
}

#[tokio::test]
async fn the_entry_that_openclaw_writes_by_itself_switches_a_channel_off_and_is_told_of() {
    const TURN_ON: &str = "openclaw config set plugins.entries.telegram.enabled true";
    const BY: &str =
        "switched off by plugins.entries.telegram.enabled: false, which OpenClaw 2026.2.9 writes by itself";
    let (server, model) = server_and_model().await;
    let off = json!({"plugins": {"entries": {"telegram": {"enabled": false}}}});
    let gateway = bot(&server, &model, open(), off).await;
    gateway.logged("plugins.entries.telegram.enabled is false and switches telegram off").await.unwrap();
    has(&gateway.log(), &[TURN_ON]);
    assert!(!gateway.log().contains("not supported yet: plugins"), "{}", gateway.log());
    has(
        &ok(&gateway, &["channels", "status"]).await,
        &["- Telegram default: disabled, configured, stopped", BY, TURN_ON],
    );
    for page in [&["channels", "list"][..], &["status"], &["health"], &["doctor"]] {
        has(&ok(&gateway, page).await, &["plugins.entries.telegram.enabled", TURN_ON]);
    }
    let start =
        crate::support::command::openclaw(&gateway, &["channels", "start", "--channel", "telegram"]).await;
    start.failed(&[BY, TURN_ON]);
    assert!(server.calls("getUpdates").is_empty());

    // The edit takes effect as it is written.
    ok(&gateway, &["config", "set", "plugins.entries.telegram.enabled", "true"]).await;
    server.push(private_message(5, "hi"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "here");
    ok(&gateway, &["config", "set", "plugins.entries.telegram.enabled", "false"]).await;
    gateway.logged("channel.state stopped").await.unwrap();

    let token = server.token();
    let added = ok(&gateway, &["channels", "add", "--channel", "telegram", "--token", &token]).await;
    has(&added, &["Switched on. It was switched off by plugins.entries.telegram.enabled: false"]);
    server.push(private_message(5, "again"));
    server.nth_call("sendMessage", 2).await;
    has(&ok(&gateway, &["channels", "status"]).await, &["- Telegram default: enabled, configured, running"]);
}

/// OpenClaw 2026.2.9 brings its platforms in plugins, so that these keys switch them off there.
#[tokio::test]
async fn the_lists_of_plugins_switch_a_channel_off_and_are_told_of() {
    const ALL: &str = "openclaw config set plugins.enabled true && openclaw config set plugins.deny '[\"line\"]' && openclaw config \
                       set plugins.allow '[\"memory-core\",\"telegram\"]'";
    let (server, model) = server_and_model().await;
    let off = json!({"plugins": {"enabled": false, "deny": ["telegram", "line"], "allow": ["memory-core"]}});
    let gateway = bot(&server, &model, open(), off).await;
    for told in
        ["plugins.enabled is false", "plugins.deny names telegram", "plugins.allow does not name telegram"]
    {
        gateway.logged(&format!("{told} and switches telegram off")).await.unwrap();
    }
    has(&gateway.log(), &[ALL]);
    assert!(!gateway.log().contains("not supported yet: plugins"), "{}", gateway.log());
    for page in [&["channels", "status"][..], &["channels", "list"], &["status"], &["health"], &["doctor"]] {
        has(&ok(&gateway, page).await, &["plugins.enabled", "plugins.deny", "plugins.allow", ALL]);
    }
    assert!(server.calls("getUpdates").is_empty());
    // Edits come one after the other, as the command makes them; each is taken while the gateway
    // runs.
    ok(&gateway, &["config", "set", "plugins.enabled", "true"]).await;
    ok(&gateway, &["config", "set", "plugins.deny", r#"["line"]"#]).await;
    let left = "switched off by plugins.allow, which does not name telegram";
    until("one key is left", async || {
        ok(&gateway, &["channels", "status"]).await.contains(left).then_some(())
    })
    .await;
    ok(&gateway, &["config", "set", "plugins.allow", r#"["memory-core","telegram"]"#]).await;
    server.push(private_message(5, "hi"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "here");
    ok(&gateway, &["config", "set", "plugins.deny", r#"["telegram"]"#]).await;
    gateway.logged("channel.state stopped").await.unwrap();

    let token = server.token();
    let added = ok(&gateway, &["channels", "add", "--channel", "telegram", "--token", &token]).await;
    has(&added, &["Switched on. It was switched off by plugins.deny, which names telegram."]);
    server.push(private_message(5, "again"));
    server.nth_call("sendMessage", 2).await;
}

#[tokio::test]
async fn an_account_that_is_switched_off_is_configured_all_the_same() {
    let (server, model) = server_and_model().await;
    let gateway = bot(&server, &model, json!({"enabled": false}), json!({})).await;
    let status = ok(&gateway, &["channels", "status"]).await;
    has(&status, &["- Telegram default: disabled, configured, stopped"]);
    assert!(!status.contains("Warnings:"), "somebody wants it so: {status}");
    let why = "it is switched off by channels.telegram.enabled: false. Run: openclaw config set channels.telegram.enabled true";
    for channel in [&[][..], &["--channel", "telegram"]] {
        let send = [&["message", "send", "--target", "5", "--message", "x"], channel].concat();
        openclaw(&gateway, &send).await.failed(&[why]);
    }
    for words in [&["channels", "start"][..], &["channels", "resolve", "@somebody"]] {
        let words = [words, &["--channel", "telegram"]].concat();
        openclaw(&gateway, &words).await.failed(&[&format!("Error: Telegram default: {why}")]);
    }
}

#[tokio::test]
async fn a_token_file_that_cannot_be_read_is_named_with_the_reason() {
    let (server, model) = server_and_model().await;
    let nowhere = json!({"tokenFile": "/nowhere/token"});
    let gateway = bot(&server, &model, nowhere, json!({})).await;
    let why = "the token file /nowhere/token of Telegram account \"default\" can't be read: No such file or directory";
    for page in
        [&["channels", "status"][..], &["channels", "status", "--probe"], &["channels", "list"], &["status"]]
    {
        has(&ok(&gateway, page).await, &[why]);
    }
    has(&ok(&gateway, &["channels", "status", "--probe"]).await, &["probe failed"]);
    gateway.logged(why).await.unwrap();
    let unsent = openclaw(&gateway, &["message", "send", "--target", "5", "--message", "x"]).await;
    unsent.failed(&["Channel is required (the token file /nowhere/token", "can't be read"]);
}

/// A list that the bot could not read is no list: the settings in force stay, and the bot with them.
#[tokio::test]
async fn a_list_with_something_else_than_ids_is_refused_and_the_bot_stays() {
    let (server, model) = server_and_model().await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    edit(&gateway, |file| file["channels"]["telegram"]["groupAllowFrom"] = json!([5, null]));
    gateway.logged("channels.telegram.groupAllowFrom.1: Invalid input").await.unwrap();
    server.push(private_message(5, "hi"));
    server.nth_answer("sendMessage", 1).await;
    let rows = [
        (
            "channels.telegram.groups",
            r#"{"-1": {"allowFrom": [{"id": 5}]}}"#,
            "channels.telegram.groups.-1.allowFrom.0",
        ),
        ("commands.ownerAllowFrom", "[true]", "commands.ownerAllowFrom.0"),
    ];
    edit(&gateway, |file| file["channels"]["telegram"]["groupAllowFrom"] = json!([5]));
    for (key, value, place) in rows {
        let refused = openclaw(&gateway, &["config", "set", key, value]).await;
        refused.failed(&[&format!("{place}: Invalid input")]);
    }
    // Values that name nothing are valid, and reported.
    edit(&gateway, |file| {
        file["bindings"] = json!([{"agentId": "main", "match": {"channel": "telegrm"}}]);
        file["messages"]["groupChat"]["mentionPatterns"] = json!(["("]);
    });
    gateway.logged("bindings.0.match.channel: unknown channel \"telegrm\"").await.unwrap();
    gateway.logged("messages.groupChat.mentionPatterns.0: \"(\" is no regular expression").await.unwrap();
}

#[tokio::test]
async fn another_program_with_the_same_token_is_told_with_what_to_do() {
    const REMEDY: &str = "Another program receives with the same bot token";
    let (server, model) = server_and_model().await;
    let conflict =
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
    for _ in 0..50 {
        server.fail("getUpdates", CallFault::Refuse(409, conflict));
    }
    let gateway = bot(&server, &model, open(), json!({})).await;
    gateway.logged(REMEDY).await.unwrap();
    let status = ok(&gateway, &["channels", "status", "--probe"]).await;
    has(&status, &["disconnected", "- telegram default: Telegram 409: ", REMEDY, "/revoke"]);
}

#[tokio::test]
async fn warnings_of_who_is_heard_are_told_when_the_file_is_edited() {
    let (server, model) = server_and_model().await;
    let gateway = bot(&server, &model, json!({"allowFrom": ["*", 5]}), json!({})).await;
    let at_start = "so that dmPolicy=\"pairing\" does nothing";
    gateway.logged(at_start).await.unwrap();
    edit(&gateway, |file| file["channels"]["telegram"]["groupAllowFrom"] = json!(["Ada Lovelace"]));
    gateway.logged("\"Ada Lovelace\" can match nobody on Telegram").await.unwrap();
    edit(&gateway, |file| file["messages"]["responsePrefix"] = json!("x"));
    gateway.logged("config change applied: messages.responsePrefix").await.unwrap();
    for told in ["\"Ada Lovelace\" can match nobody", at_start] {
        assert_eq!(gateway.log().matches(told).count(), 1, "{told}\n{}", gateway.log());
    }
    // A warning that went and comes again is new.
    edit(&gateway, |file| file["channels"]["telegram"]["groupAllowFrom"] = json!([7]));
    gateway.logged("config change applied: channels.telegram.groupAllowFrom").await.unwrap();
    edit(&gateway, |file| file["channels"]["telegram"]["groupAllowFrom"] = json!([7, "Ada Lovelace"]));
    gateway.logged("groupAllowFrom.1: \"Ada Lovelace\"").await.unwrap();
}

#[tokio::test]
async fn owners_are_looked_up_by_name_once_and_their_ids_count() {
    const REFUSED: &str = "You are not authorized to use this command.";
    let (server, model) = server_and_model().await;
    server.add_chat(json!({"id": 7, "type": "private", "username": "ada_l", "first_name": "Ada"}));
    let named = json!({
        "commands": {"ownerAllowFrom": ["telegram:@Ada_L", "telegram:@nobody_here"]},
        "tools": {"elevated": {"allowFrom": {"telegram": ["@ada_l"]}}},
    });
    let gateway = bot(&server, &model, open(), named).await;
    let status = until("the names are known", async || {
        let status = ok(&gateway, &["channels", "status"]).await;
        status.contains("@nobody_here").then_some(status)
    })
    .await;
    has(&status, &["matches nobody", "commands.ownerAllowFrom"]);
    let command = |from: i64, name: &str, text: &str| {
        let mut update = private_message(from, text);
        update["message"]["from"]["username"] = json!(name);
        update["message"]["entities"] = json!([{"type": "bot_command", "offset": 0, "length": text.len()}]);
        update
    };
    // A person who merely uses the name is nobody.
    server.push(command(8, "ada_l", "/status"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], REFUSED);
    server.push(command(7, "renamed", "/status"));
    assert_ne!(server.nth_call("sendMessage", 2).await.params["text"], REFUSED);
    server.push(private_message(7, "/elevated on"));
    let said = server.nth_call("sendMessage", 3).await.params["text"].clone();
    assert!(!said.as_str().unwrap().contains("Failing gates"), "{said}");
}

/// There is one count of wrong secrets for all surfaces (decision 26).
#[tokio::test]
async fn guesses_of_a_webhooks_secret_lock_out_wherever_somebody_knocks() {
    let (server, model) = server_and_model().await;
    let reserved = ReservedPort::any().unwrap();
    let port = reserved.number().unwrap();
    let url = format!("http://127.0.0.1:{port}/telegram-webhook");
    let section = json!({
        "dmPolicy": "open", "allowFrom": ["*"],
        "webhookUrl": url, "webhookSecret": "a-secret-of-the-test", "webhookPort": port,
    });
    let gateway = bot(&server, &model, section, json!({"gateway": {"trustedProxies": ["127.0.0.1"]}})).await;
    server.nth_answer("setWebhook", 1).await;
    let ask = async |port: u16, path: &str, headers: String| {
        let (status, head, _) = request_at(port, &format!("POST {path}"), &headers, b"{}").await;
        (status, head.contains("\r\nretry-after: "))
    };
    let knock = async |secret: &str, client: &str| {
        let headers = format!("X-Telegram-Bot-Api-Secret-Token: {secret}\r\n{client}");
        ask(port, "/telegram-webhook", headers).await
    };
    let (first, second) = ("X-Forwarded-For: 203.0.113.5\r\n", "X-Forwarded-For: 203.0.113.6\r\n");
    for _ in 0..10 {
        assert_eq!(knock("guess", first).await, (401, false));
    }
    assert_eq!(knock("guess", first).await, (429, true));
    assert_eq!(knock("a-secret-of-the-test", first).await, (429, true), "what is right too");
    assert_eq!(knock("guess", second).await, (401, false), "somebody else");
    for _ in 0..15 {
        assert_eq!(knock("guess", "").await, (401, false), "whoever is on this host reads the secret");
    }
    let own = ask(gateway.port(), "/tools/invoke", format!("Authorization: Bearer guess\r\n{first}")).await;
    assert_eq!(own, (429, true), "the gateway's own surfaces count with it");
    assert_eq!(server.push_to_webhook(private_message(5, "hello")).await, 200);
    server.nth_call("sendMessage", 1).await;
}

/// Telegram does not say when a button was pressed.
#[tokio::test]
async fn an_old_press_is_not_obeyed() {
    let (server, model) = server_and_model().await;
    let mut gateway = bot(&server, &model, open(), json!({})).await;
    server.push(private_message(5, "/models"));
    server.nth_answer("sendMessage", 1).await;
    server.all_confirmed().await;
    crate::support::telegram::all_sent(&gateway).await;
    gateway.terminate().await.unwrap();
    // Nothing tells any more until when it has heard everything.
    std::fs::remove_file(gateway.state_dir().join("telegram/update-offset-default.json")).unwrap();
    let hours_ago = |hours: u64| std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() - hours * 3_600;
    let mut said = private_message(5, "hello");
    said["message"]["date"] = json!(hours_ago(2));
    let mut pressed = openclaw_testkit::telegram::button(5, 501, "mdl_prov");
    pressed["callback_query"]["message"]["date"] = json!(hours_ago(3));
    let too_old = "Bad Request: query is too old and response timeout expired or query ID is invalid";
    server.fail("answerCallbackQuery", CallFault::Refuse(400, too_old));
    server.push(said);
    server.push(pressed);
    gateway.start().await.unwrap();
    server
        .has_made("a word about the press", |made| {
            made.iter().any(|one| {
                one["text"].as_str().unwrap_or_default().contains("was sent 2 hours ago, while I was offline")
            })
        })
        .await;
    assert_eq!(server.calls("editMessageText").len(), 0);
}
