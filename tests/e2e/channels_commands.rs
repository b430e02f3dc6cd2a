//! `openclaw channels …`, and channels in `health` and `status`, against a gateway with a bot on a fake Bot API server.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::TelegramServer;
use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::telegram::bot;

async fn ok(gateway: &GatewayUnderTest, words: &[&str]) -> String {
    let (exit, out, err) = run(gateway, words).await;
    assert_eq!(exit, 0, "{words:?}: {out}{err}");
    out
}

#[tokio::test]
async fn the_commands_tell_what_is_there() {
    let server = TelegramServer::start().await;
    server.add_chat(
        json!({"id": -1001, "type": "supergroup", "title": "Team", "username": "team", "me": "member"}),
    );
    server.add_chat(json!({"id": 5, "type": "private", "first_name": "Ada", "last_name": "Lovelace"}));
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let section = json!({"groups": {"-1001": {"requireMention": false}, "-1002": {"requireMention": false}}});
    let mut gateway = bot(&server, &model, section, json!({})).await;
    server.nth_call("getUpdates", 1).await;

    let listed = ok(&gateway, &["channels", "list", "--no-usage"]).await;
    assert!(
        listed.starts_with("Chat channels:\n- Telegram default: configured, token=config, enabled\n\nAuth providers (OAuth + API keys):\n"),
        "{listed}"
    );
    let listed: Value = serde_json::from_str(&ok(&gateway, &["channels", "list", "--json"]).await).unwrap();
    assert_eq!(listed["chat"], json!({"telegram": ["default"]}));

    let status = ok(&gateway, &["channels", "status", "--probe"]).await;
    assert!(status.starts_with("Checking channel status…\nGateway reachable.\n- Telegram default: enabled, configured, running, connected, mode:polling, token:config"), "{status}");
    assert!(
        status.contains(
            "Group -1002 not reachable by bot.: Telegram 400: Bad Request: chat not found (Invite the bot"
        ),
        "{status}"
    );
    assert!(!status.contains("Group -1001"), "{status}");
    assert!(
        status.contains("works, bot:@fake_test_bot, reads all group messages: no (privacy mode)"),
        "{status}"
    );
    assert!(status.contains("privacy mode") && status.contains("- Run: openclaw doctor"), "{status}");

    for target in ["-1001", "-1001:topic:7"] {
        let can = ["channels", "capabilities", "--channel", "telegram", "--target", target];
        let can = ok(&gateway, &can).await;
        assert!(can.contains("Target: -1001 (Team)"), "{can}");
    }
    let resolved = ok(&gateway, &["channels", "resolve", "-1001", "@team", "--channel", "telegram"]).await;
    assert_eq!(resolved, "-1001 -> -1001 (Team)\n@team -> -1001 (Team)\n");
    let (exit, _, err) = run(&gateway, &["channels", "resolve", "--chanel", "telegram", "-1001"]).await;
    assert!(exit != 0 && err.contains("unknown option '--chanel'"), "{err}");
    let can = ok(&gateway, &["channels", "capabilities", "--channel", "telegram", "--target", "@team"]).await;
    for line in [
        "Telegram default",
        "Support: chatTypes=direct,group,channel,thread polls reactions threads media nativeCommands blockStreaming",
        "Actions: delete, edit, ",
        "Bot: @fake_test_bot",
        "Probe: ok",
        "Target: -1001 (Team)",
    ] {
        assert!(can.contains(line), "{line}: {can}");
    }
    let can: Value =
        serde_json::from_str(&ok(&gateway, &["channels", "capabilities", "--json"]).await).unwrap();
    assert_eq!(can["channels"][0]["support"]["threads"], json!(true), "{can}");

    let names = ["channels", "resolve", "--channel", "telegram", "@team", "5", "@nobody", "--json"];
    let found: Value = serde_json::from_str(&ok(&gateway, &names).await).unwrap();
    assert_eq!(found[0], json!({"input": "@team", "resolved": true, "id": "-1001", "name": "Team"}));
    assert_eq!(found[1]["name"], "Ada Lovelace");
    assert_eq!(
        (&found[2]["resolved"], &found[2]["note"]),
        (&json!(false), &json!("Telegram does not know it"))
    );
    let found =
        ok(&gateway, &["channels", "resolve", "--channel", "telegram", "@team", "--kind", "user"]).await;
    assert_eq!(found, "@team -> unresolved (it is a group)\n");

    let logs = ok(&gateway, &["channels", "logs", "--channel", "telegram"]).await;
    assert!(logs.starts_with("Log file: ") && logs.contains("channel.state started"), "{logs}");
    let (exit, _, err) = run(&gateway, &["channels", "logs", "--channel", "fax"]).await;
    assert!(exit != 0 && err.contains("Unknown channel: fax"), "{err}");

    let (exit, _, err) = run(&gateway, &["channels", "login", "--channel", "telegram"]).await;
    assert!(exit != 0 && err.contains("Channel telegram does not support login"), "{err}");

    let health = ok(&gateway, &["health"]).await;
    assert!(health.starts_with("Telegram: ok (@fake_test_bot)\n"), "{health}");
    let status: Value = serde_json::from_str(&ok(&gateway, &["status", "--json"]).await).unwrap();
    assert_eq!(status["channelSummary"], json!(["Telegram: configured", "  - default (token:config)"]));
    let status = ok(&gateway, &["status"]).await;
    assert!(status.contains("Channels") && status.contains("token config · accounts 1/1"), "{status}");

    gateway.terminate().await.unwrap();
    let (exit, out, err) = run(&gateway, &["channels", "status"]).await;
    assert!(exit == 0 && err.starts_with("Gateway not reachable: "), "{err}");
    assert!(out.starts_with("Gateway not reachable; showing config-only status.\nConfig: "), "{out}");
    assert!(
        out.contains("Mode: local\n")
            && out.contains(
                "- Telegram default: enabled, configured, not known whether it runs (no gateway runs here), mode:polling, \
                 token:config"
            ),
        "{out}"
    );
}

#[tokio::test]
async fn a_channel_that_nobody_set_up_is_not_listed() {
    let none = "- none\n\nAdd one: openclaw channels add --channel telegram --token <token>\n";
    let mut gateway = crate::gateway().start().await.unwrap();
    let mut listed = vec![ok(&gateway, &["channels", "status"]).await];
    assert!(
        listed[0].starts_with(&format!("Checking channel status…\nGateway reachable.\n{none}")),
        "{listed:?}"
    );
    gateway.terminate().await.unwrap();
    listed.push(ok(&gateway, &["channels", "status"]).await);
    listed.push(ok(&gateway, &["channels", "list"]).await);
    for listed in &listed {
        assert!(listed.contains(none) && !listed.contains("Telegram"), "{listed}");
        assert!(!listed.contains("Warnings:"), "{listed}");
    }
    // Half of a set-up is one.
    ok(&gateway, &["config", "set", "channels.telegram.dmPolicy", "pairing"]).await;
    let status = ok(&gateway, &["channels", "status"]).await;
    assert!(status.contains("- Telegram default: enabled, not configured"), "{status}");
}

#[tokio::test]
async fn a_token_that_is_revoked_is_told_with_what_to_do() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = bot(&server, &model, json!({}), json!({})).await;
    server.nth_call("getUpdates", 1).await;
    server.revoke(true);
    // A poll that is answered is followed by another.
    server.push(json!({}));
    gateway.logged("channel.state lost").await.unwrap();
    let status = ok(&gateway, &["channels", "status"]).await;
    assert!(status.contains("- Telegram default: enabled, configured, stopped"), "{status}");
    assert!(
        status.contains(
            "@BotFather makes a new one. (Run: openclaw channels add --channel telegram --token <token>)"
        ),
        "{status}"
    );
    let mut client = gateway.client().await.unwrap();
    let status = client.request("channels.status", json!({})).await.unwrap();
    let account = &status["channelAccounts"]["telegram"][0];
    assert_eq!(
        (&account["connected"], &account["lastDisconnect"]["loggedOut"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(account["issues"][0]["kind"], "auth");
    // Nor would a start help one that is stopped.
    ok(&gateway, &["channels", "stop", "--channel", "telegram"]).await;
    let stopped = ok(&gateway, &["channels", "status", "--probe"]).await;
    assert!(!stopped.contains("channels start"), "{stopped}");
    assert!(
        stopped.contains("Telegram refuses the token (")
            && stopped.contains("(Run: openclaw channels add --channel telegram --token <token>)"),
        "{stopped}"
    );
    // A working token brings it back at once.
    server.revoke(false);
    client.request("channels.start", json!({"channel": "telegram"})).await.unwrap();
    server.push(openclaw_testkit::telegram::private_message(5, "hi"));
    server.nth_call("sendMessage", 1).await;
}
