//! Sections of the system prompt about the conversation in which the agent answers. They name nothing that does not exist.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::command::openclaw;
use crate::support::config::merge;
use crate::support::telegram::bot;

fn system(request: &Captured) -> String {
    request.messages()[0]["content"].as_str().unwrap().to_owned()
}

async fn prompt(section: Value, config: Value) -> String {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let mut whole = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    merge(&mut whole, section);
    let _gateway = bot(&server, &model, whole, config).await;
    server.push(private_message(5, "hello"));
    server.nth_call("sendMessage", 1).await;
    system(&model.requests()[0])
}

#[tokio::test]
async fn the_prompt_tells_whose_agent_it_is_and_what_the_chat_can_do() {
    let section = json!({"reactionLevel": "extensive", "capabilities": {"inlineButtons": "all"}});
    let told = prompt(section, json!({})).await;
    for line in [
        "## User Identity\nOwner numbers: 5. Treat",
        "Reactions are enabled for telegram in EXTENSIVE mode.",
        " | channel=telegram | capabilities=inlineButtons | ",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let section = json!({"reactionLevel": "off", "capabilities": {"inlineButtons": "off"}});
    let told = prompt(section, json!({"commands": {"ownerAllowFrom": ["telegram:5", "7"]}})).await;
    assert!(told.contains("Owner numbers: telegram:5, 7."), "{told}");
    assert!(told.contains("capabilities=none") && !told.contains("## Reactions"), "{told}");
}

#[tokio::test]
async fn the_prompt_names_only_commands_and_files_that_are_there() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hi")).await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let gateway =
        bot(&server, &model, section, json!({"agents": {"defaults": {"skipBootstrap": true}}})).await;
    server.push(private_message(5, "hello"));
    server.nth_call("sendMessage", 1).await;
    let told = system(&model.requests()[0]);
    assert!(told.contains("[MISSING]") && !told.contains("BOOTSTRAP.md"), "{told}");
    let (_, commands) = told.split_once("## OpenClaw CLI Quick Reference").unwrap();
    let named: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("- openclaw ")).collect();
    assert!(!named.is_empty(), "{commands}");
    for command in named {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = openclaw(&gateway, &words).await;
        assert_eq!(help.code, Some(0), "{command}: {help:?}");
    }
}
