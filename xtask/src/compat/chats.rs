//! Conversations on Telegram, as OpenClaw's programs see them beside this gateway, and as its gateway takes them over.

use std::path::Path;

use anyhow::Result;
use openclaw_testkit::model_server::ModelServer;
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};
use serde_json::json;

use super::model;
use super::original::{OWN_CONFIG, Original};
use super::report::Report;
use super::state::listed_row;
use crate::generate::root;

const PERSON: i64 = 5;

pub(super) async fn check(program: &Path, original: &Original, report: &mut Report) -> Result<()> {
    let (server, model) = (TelegramServer::start().await, model().await);
    let mut gateway = bot(program, &server, &model).await?;
    let mut update = private_message(PERSON, "only once");
    update["message"]["message_id"] = json!(77);
    for again in [false, true] {
        if again {
            gateway.crash_and_restart().await?;
        }
        // Twice: each time under an update id of its own.
        for _ in 0..2 {
            server.push(update.clone());
            server.all_confirmed().await;
            gateway.fates().await?;
        }
    }
    let history = original.call(&gateway, "chat.history", &json!({"sessionKey": "main"})).await?.to_string();
    let once = history.matches("You said:").count() == 1 && model.requests().len() == 1;
    report.check("a message that comes again under a new update id is answered once", once, &history);

    let listed = original.call(&gateway, "sessions.list", &json!({})).await?;
    let row = listed_row(&listed, "agent:main:main");
    let address = json!(format!("telegram:{PERSON}"));
    let written = row["lastTo"] == address && row["deliveryContext"]["to"] == address;
    report.check("the row of a direct chat names its channel before the id", written, &format!("{row:#}"));

    let health = original.call(&gateway, "health", &json!({})).await?;
    let bot = &health["channels"]["telegram"]["probe"]["bot"]["username"];
    report.check(
        "health names the bot before anybody probes",
        bot == "fake_test_bot",
        &format!("{health:#}"),
    );

    gateway.terminate().await?;
    let variables = [
        ("NODE_OPTIONS", format!("--import={}", root().join("xtask/src/compat/telegram.mjs").display())),
        ("TELEGRAM_ROOT", server.root()),
        // The program sends, and does not listen for messages beside the server's own poll.
        ("OPENCLAW_SKIP_CHANNELS", "1".to_owned()),
    ];
    let _theirs = original.with(variables).gateway(&gateway).await?;
    let args = ["agent", "--agent", "main", "--message", "from 2.9", "--deliver", "--channel", "last"];
    let printed = original.run(&gateway, &args).await?.all();
    let made = server.made();
    let sent = made.iter().any(|made| {
        let text = made["text"].as_str().unwrap_or_default();
        made["chat_id"].to_string().trim_matches('"') == PERSON.to_string() && text.contains("from 2.9")
    });
    let found = format!("{printed}\n{made:#?}");
    report.check("OpenClaw's gateway takes the row over and sends to its chat", sent, &found);
    Ok(())
}

/// A bot that OpenClaw knows too, by a configuration without the address of the server.
async fn bot(program: &Path, server: &TelegramServer, model: &ModelServer) -> Result<GatewayUnderTest> {
    let telegram = json!({"botToken": server.token(), "dmPolicy": "open", "allowFrom": ["*"]});
    let switch = json!({"entries": {"telegram": {"enabled": true}}});
    let shared = GatewaySetup::new(program)
        .fake_model(&model.v1())
        .config(json!({"channels": {"telegram": telegram}, "plugins": switch}));
    let theirs = shared.clone().prepare()?;
    let ours = json!({"channels": {"telegram": {"apiRoot": server.root()}}});
    let gateway = shared.config(ours).start().await?;
    std::fs::copy(theirs.state_dir().join("openclaw.json"), gateway.home().join(OWN_CONFIG))?;
    Ok(gateway)
}
