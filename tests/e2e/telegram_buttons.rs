//! Commands that are called without an argument show their choices as buttons on Telegram.

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, button, group_message, private_message};
use serde_json::{Value, json};

use crate::telegram::bot;

/// What a message shows: its words, and what its buttons say, row by row.
async fn shown(server: &TelegramServer, sent: &mut usize, update: Value) -> (String, Vec<Vec<String>>) {
    server.push(update);
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
    let (text, rows) = shown(&server, &mut sent, button(5, 42, "/verbose full")).await;
    assert_eq!((text.as_str(), rows.len()), ("⚙️ Verbose logging set to full.", 0));

    let (text, rows) = shown(&server, &mut sent, private_message(5, "/think")).await;
    assert!(text.starts_with("Current thinking level: "), "{text}");
    assert_eq!(rows[0], ["/think off", "/think minimal"]);
    let (text, _) = shown(&server, &mut sent, button(5, 42, "/think low")).await;
    assert!(text.starts_with("Thinking level set to low."), "{text}");

    let (_, rows) = shown(&server, &mut sent, private_message(5, "/reasoning")).await;
    assert_eq!(rows, [vec!["/reasoning on", "/reasoning off"], vec!["/reasoning stream"]]);
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/queue")).await;
    assert!(text.starts_with("Current queue settings: mode=collect"), "{text}");
    assert_eq!(rows[0], ["/queue steer", "/queue interrupt"]);

    // What says nothing of how things are asks; and changes nothing by being called.
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/usage")).await;
    assert_eq!(text, "Choose off, tokens, full, or cost for /usage.");
    assert_eq!(rows, [["/usage off", "/usage tokens"], ["/usage full", "/usage cost"]]);
    let (text, _) = shown(&server, &mut sent, button(5, 42, "/usage tokens")).await;
    assert_eq!(text, "⚙️ Usage footer: tokens.");
    let (text, rows) = shown(&server, &mut sent, private_message(5, "/send")).await;
    assert_eq!(text, "Choose on, off, or inherit for /send.");
    assert_eq!(rows, [vec!["/send on", "/send off"], vec!["/send inherit"]]);

    // Where a choice would come to nothing there is none.
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
    server.push(button(5, 43, "mdl_prov"));
    let edited = server.nth_call("editMessageText", 1).await.params;
    assert_eq!((&edited["message_id"], &edited["text"]), (&json!(43), &json!("Select a provider:")));
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
