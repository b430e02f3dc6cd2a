//! Commands that are called without an argument show their choices as buttons on Telegram. Buttons of agents give no commands.

use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, button, group_message, private_message};
use serde_json::{Value, json};

use crate::support::telegram::{all_sent, bot, last_said};

/// Content of a message: its words, and the labels of its buttons, row by row.
async fn shown(server: &TelegramServer, sent: &mut usize, update: Value) -> (String, Vec<Vec<String>>) {
    server.push(update);
    next(server, sent).await
}

/// The same of what is said when a button is pressed.
async fn pressed(server: &TelegramServer, sent: &mut usize, data: &str) -> (String, Vec<Vec<String>>) {
    server.press(5, data);
    next(server, sent).await
}

async fn next(server: &TelegramServer, sent: &mut usize) -> (String, Vec<Vec<String>>) {
    *sent += 1;
    let params = server.nth_call("sendMessage", *sent).await.params;
    let rows = params["reply_markup"]["inline_keyboard"].as_array().cloned().unwrap_or_default();
    let data = |row: &Value| -> Vec<String> {
        let buttons = row.as_array().cloned().unwrap_or_default();
        buttons.iter().map(|button| button["callback_data"].as_str().unwrap().to_owned()).collect()
    };
    (params["text"].as_str().unwrap().to_owned(), rows.iter().map(data).collect())
}

#[tokio::test]
async fn choices_are_buttons_and_a_pressed_one_is_the_command() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let section = json!({"allowFrom": [5], "groupAllowFrom": [5], "groups": {"*": {}}});
    let _gateway = bot(&server, &model, section, json!({})).await;
    let mut sent = 0;

    let (text, rows) = shown(&server, &mut sent, private_message(5, "/verbose")).await;
    assert!(text.starts_with("Current verbose level: off."), "{text}");
    assert_eq!(rows, [vec!["/verbose on", "/verbose full"], vec!["/verbose off"]]);
    let (text, rows) = pressed(&server, &mut sent, "/verbose full").await;
    assert_eq!((text.as_str(), rows.len()), ("⚙️ Verbose logging set to full.", 0));

    let (text, rows) = shown(&server, &mut sent, private_message(5, "/think")).await;
    assert!(text.starts_with("Current thinking level: "), "{text}");
    assert_eq!(rows[0], ["/think off", "/think minimal"]);
    let (text, _) = pressed(&server, &mut sent, "/think low").await;
    assert!(text.starts_with("Thinking level set to low."), "{text}");

    let (_, rows) = shown(&server, &mut sent, private_message(5, "/reasoning")).await;
    assert_eq!(rows, [vec!["/reasoning on", "/reasoning off"], vec!["/reasoning stream"]]);
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/queue")).await;
    assert!(text.starts_with("Current queue settings: mode=collect"), "{text}");
    assert_eq!(rows[0], ["/queue steer", "/queue interrupt"]);

    // A command without a state to show asks for a choice, and changes nothing by being called.
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/usage")).await;
    assert_eq!(text, "Choose off, tokens, full, or cost for /usage.");
    assert_eq!(rows, [["/usage off", "/usage tokens"], ["/usage full", "/usage cost"]]);
    let (text, _) = pressed(&server, &mut sent, "/usage tokens").await;
    assert_eq!(text, "⚙️ Usage footer: tokens.");
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/send")).await;
    assert_eq!(text, "Choose on, off, or inherit for /send.");
    assert_eq!(rows, [vec!["/send on", "/send off"], vec!["/send inherit"]]);

    // No choice is offered where it would have no effect.
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/activation")).await;
    assert_eq!((text.as_str(), rows.len()), ("⚙️ Group activation only applies to group chats.", 0));
    let (text, rows) = shown(&server, &mut sent, group_message(-100, 5, "/activation")).await;
    assert_eq!((text.as_str(), rows.len()), ("Choose mention or always for /activation.", 1));
    let (_, rows) = shown(&server, &mut sent, private_message(5, "/elevated")).await;
    assert!(rows.is_empty(), "who may not have it is offered nothing: {rows:?}");

    let (text, rows) = shown(&server, &mut sent, private_message(5, "/model")).await;
    assert!(
        text.starts_with("Current: fake/") && text.contains("\n\nTap below to browse models, or use:\n"),
        "{text}"
    );
    assert_eq!(rows, [["mdl_prov"]]);
    server.press(5, "mdl_prov");
    let edited = server.nth_call("editMessageText", 1).await.params;
    assert_eq!(edited["text"], "Select a provider:");
    assert_eq!(edited["message_id"].as_u64().unwrap(), 500 + sent as u64, "in its place");
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn a_model_whose_name_is_too_long_for_a_button_is_named_to_be_typed() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let (name, provider) = ("z".repeat(80), "p".repeat(70));
    let models = |ids: &[&str]| -> Vec<Value> {
        ids.iter()
            .map(|id| json!({"id": id, "name": id, "contextWindow": 32_000, "maxTokens": 4_096}))
            .collect()
    };
    let other = json!({
        "baseUrl": model.v1(), "apiKey": "k", "api": "openai-completions", "models": models(&["a"]),
    });
    let rest = json!({"models": {"providers": {"fake": {"models": models(&["fake-1", &name])}, (&provider): other}}});
    let section = json!({"dmPolicy": "open", "allowFrom": ["*", 5]});
    let _gateway = bot(&server, &model, section, rest).await;
    let mut sent = 0;
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/models")).await;
    assert!(
        text.contains(&format!("Too long for a button, so type:\n<code>/models {provider}</code>")),
        "{text}"
    );
    let rows = rows.concat();
    assert!(rows.iter().any(|data| data == "mdl_list_fake_1"), "{rows:?}");
    assert!(!rows.iter().any(|data| data.contains(&provider)), "{rows:?}");
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/models fake")).await;
    assert!(text.contains("2 available"), "{text}");
    assert!(text.contains(&format!("<code>/model fake/{name}</code>")), "{text}");
    assert_eq!(rows.concat(), ["mdl_sel_fake/fake-1", "mdl_back"]);
    let (text, _) = shown(&server, &mut sent, private_message(5, &format!("/models {provider}"))).await;
    assert!(text.contains(&format!("{provider}/a")), "{text}");
}

#[tokio::test]
async fn where_elevated_commands_are_allowed_their_levels_are_buttons() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let rest = json!({"tools": {"elevated": {"enabled": true, "allowFrom": {"telegram": [5]}}}});
    let _gateway = bot(&server, &model, json!({"allowFrom": [5]}), rest).await;
    let mut sent = 0;
    let (_, rows) = shown(&server, &mut sent, private_message(5, "/elevated")).await;
    assert_eq!(rows, [["/elevated on", "/elevated off"], ["/elevated ask", "/elevated full"]]);
}

/// Callback data that an agent may give its buttons.
const DATA: [&str; 12] = [
    "/elevated full",
    "/bash touch made",
    "! touch made",
    "/exec security=full",
    "/approve 0f8fad5b-d9cb-469f-a165-70867728950e allow-always",
    "/new",
    "/stop",
    "stop",
    "mdl_prov",
    "mdl_sel_fake/fake-1",
    "commands_page_2:main",
    "please /status now",
];

/// Starts a model that makes a button when asked for one, and calls no tool otherwise.
async fn maker() -> ModelServer {
    ModelServer::answering(|request: &Captured| {
        let said = last_said(request);
        let number =
            said.split("make ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
        match number.filter(|_| !request.ends_with_tool_result()) {
            Some(number) => {
                let button = json!([[{"text": "Yes", "callback_data": DATA[number]}]]);
                Reply::tool(
                    "c0",
                    "message",
                    &json!({"action": "send", "message": "Shall I?", "buttons": button}),
                )
            }
            None => Reply::text("read"),
        }
    })
    .await
}

#[tokio::test]
async fn a_button_that_the_agent_made_says_words_whatever_it_carries() {
    let server = TelegramServer::start().await;
    let model = maker().await;
    let rest = json!({
        "tools": {"elevated": {"enabled": true, "allowFrom": {"telegram": [5]}}},
        "commands": {"bash": true},
        // The press may come before the run is over that made the button.
        "messages": {"queue": {"mode": "followup", "debounceMs": 0}},
    });
    let section = json!({"allowFrom": [5]});
    let gateway = bot(&server, &model, section, rest).await;
    for (number, data) in DATA.into_iter().enumerate() {
        // The agent answers with the tool's result.
        server.push(private_message(5, &format!("make {number} of them")));
        server.nth_answer("sendMessage", 2 * number + 1).await;
        server.press(5, data);
        server.nth_answer("sendMessage", 2 * number + 2).await;
        let said = last_said(&model.requests()[3 * number + 2]);
        assert!(said.contains(&format!("] {data}\n")), "{said}");
    }
    let said = |made: &Value| made["text"].as_str().unwrap_or_default().to_owned();
    let others: Vec<String> =
        server.made().iter().map(said).filter(|text| text != "read" && text != "Shall I?").collect();
    assert_eq!(others, Vec::<String>::new(), "nothing was done by the gateway");
    assert_eq!(server.calls("editMessageText").len(), 0);
    assert!(!gateway.state_dir().join("workspace/made").exists());
}

/// Both buttons are below one message, whose id is that of both presses.
#[tokio::test]
async fn a_press_that_waits_keeps_no_other_press_below_the_same_message_out() {
    let server = TelegramServer::start().await;
    let gate = Gate::default();
    let held = gate.clone();
    let model = ModelServer::answering(move |request: &Captured| {
        let said = last_said(request);
        if said.contains("ask") && !request.ends_with_tool_result() {
            let yes = json!({"text": "Yes", "callback_data": "yes, deploy"});
            let no = json!({"text": "No", "callback_data": "no, wait"});
            let args = json!({"action": "send", "message": "Deploy?", "buttons": [[yes, no]]});
            return Reply::tool("c0", "message", &args);
        }
        match ["work", "yes, deploy", "no, wait"].into_iter().find(|words| said.contains(words)) {
            Some("work") => Reply::text("read work").after(Step::Wait(held.clone())),
            Some(words) => Reply::text(&format!("read {words}")),
            None => Reply::text("NO_REPLY"),
        }
    })
    .await;
    let rest = json!({"messages": {"queue": {"mode": "followup", "debounceMs": 0}}});
    let mut gateway = bot(&server, &model, json!({"allowFrom": [5]}), rest).await;
    server.push(private_message(5, "ask"));
    server.nth_answer("sendMessage", 1).await;
    server.push(private_message(5, "work"));
    model.arrived(3).await;
    server.press(5, "yes, deploy");
    server.press(5, "no, wait");
    server.nth_answer("answerCallbackQuery", 2).await;
    gateway.crash_and_restart().await.unwrap();
    model.arrived(4).await;
    gate.open();
    server.nth_answer("sendMessage", 4).await;
    let sent = server.made();
    for words in ["read work", "read yes, deploy", "read no, wait"] {
        assert!(sent.iter().any(|made| made["text"] == words), "{words}: {sent:?}");
    }
}

#[tokio::test]
async fn a_button_of_the_gateway_works_after_a_restart_and_one_that_nobody_knows_says_words() {
    let server = TelegramServer::start().await;
    let model = maker().await;
    let mut gateway = bot(&server, &model, json!({"allowFrom": [5]}), json!({})).await;
    let mut sent = 0;
    shown(&server, &mut sent, private_message(5, "/think")).await;
    all_sent(&gateway).await;
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let (text, _) = pressed(&server, &mut sent, "/think low").await;
    assert!(text.starts_with("Thinking level set to low."), "{text}");
    server.push(button(5, 4_321, "/think high"));
    model.arrived(1).await;
    assert!(last_said(&model.requests()[0]).contains("] /think high\n"));
}

/// A question about a command has to stay as it was asked.
#[tokio::test]
async fn the_agent_changes_no_message_of_the_gateways_own() {
    let server = TelegramServer::start().await;
    const CALLS: [&str; 6] = [
        r#"{"action": "edit", "messageId": "501", "message": "ls"}"#,
        r#"{"action": "edit", "messageId": 501, "message": "ls", "buttons": []}"#,
        r#"{"action": "delete", "messageId": " +0501 "}"#,
        r#"{"action": "delete", "target": "@ada", "messageId": "501"}"#,
        r#"{"action": "react", "messageId": "501", "emoji": "👍"}"#,
        r#"{"action": "pin", "messageId": "501"}"#,
    ];
    let model = ModelServer::answering(|request: &Captured| {
        let done = request.messages().iter().filter(|message| message["role"] == "tool").count();
        match CALLS.get(done) {
            Some(call) => Reply::tool(&format!("c{done}"), "message", &serde_json::from_str(call).unwrap()),
            None => Reply::text("read"),
        }
    })
    .await;
    let section = json!({"allowFrom": [5], "reactionLevel": "extensive"});
    let _gateway = bot(&server, &model, section, json!({})).await;
    let mut sent = 0;
    let (text, _) = shown(&server, &mut sent, private_message(5, "/whoami")).await;
    assert!(text.contains("Identity"), "{text}");
    server.nth_answer("sendMessage", 1).await;
    shown(&server, &mut sent, private_message(5, "change it")).await;
    let told = model.requests().pop().unwrap();
    let results: Vec<Value> =
        told.messages().iter().filter(|message| message["role"] == "tool").cloned().collect();
    assert_eq!(results.len(), CALLS.len());
    for result in &results {
        assert!(result.to_string().contains("Message 501 is the gateway's own"), "{result}");
    }
    let changes = ["editMessageText", "deleteMessage", "pinChatMessage"];
    assert!(changes.iter().all(|method| server.calls(method).is_empty()));
    let reacted = |call: &openclaw_testkit::telegram::BotCall| call.params["message_id"] == 501;
    assert!(!server.calls("setMessageReaction").iter().any(reacted));
}
