//! Methods of the Bot API.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{BotCall, TelegramShared, TelegramState, answer, bot, markup, refuse, result};

/// UTF-16 units of a message, and of the words below a file.
const TEXT: usize = 4096;
const CAPTION: usize = 1024;

/// Answers a call.
pub(super) async fn call(shared: &TelegramShared, call: BotCall) -> Response<Body> {
    match call.method.as_str() {
        "getMe" => result(&bot(shared.state().bot)),
        "getUpdates" => updates(shared, &call.params).await,
        "setWebhook" => {
            let url = call.params["url"].as_str().unwrap_or_default().to_owned();
            let secret = call.params["secret_token"].as_str().map(str::to_owned);
            shared.state().webhook = Some((url, secret)).filter(|(url, _)| !url.is_empty());
            result(&json!(true))
        }
        "deleteWebhook" => {
            shared.state().webhook = None;
            result(&json!(true))
        }
        "getWebhookInfo" => {
            let state = shared.state();
            let url = state.webhook.as_ref().map(|(url, _)| url.as_str()).unwrap_or_default();
            result(
                &json!({"url": url, "has_custom_certificate": false, "pending_update_count": state.updates.len()}),
            )
        }
        "getMyCommands" => {
            let state = shared.state();
            let last = state
                .calls
                .iter()
                .rev()
                .find(|call| matches!(call.method.as_str(), "setMyCommands" | "deleteMyCommands"));
            result(&last.map_or(json!([]), |call| call.params.get("commands").cloned().unwrap_or(json!([]))))
        }
        "getChatMember" => {
            let state = shared.state();
            let user = bot(state.bot);
            chat_info(
                &state,
                &call.params,
                |chat| json!({"status": chat["me"].as_str().unwrap_or("left"), "user": user}),
            )
        }
        "getFile" => file_info(&shared.state(), &call.params),
        "answerCallbackQuery"
        | "sendChatAction"
        | "setMessageReaction"
        | "deleteMessage"
        | "setMyCommands"
        | "deleteMyCommands"
        | "pinChatMessage"
        | "unpinChatMessage"
        | "sendMessageDraft" => {
            refusal(&shared.state(), &call.params).unwrap_or_else(|| result(&json!(true)))
        }
        "getChat" => {
            let state = shared.state();
            refusal(&state, &call.params).unwrap_or_else(|| chat(&state, &call.params))
        }
        "createForumTopic" => refusal(&shared.state(), &call.params).unwrap_or_else(|| {
            result(&json!({"message_thread_id": 77, "name": call.params["name"], "icon_color": 1}))
        }),
        method if method.starts_with("send") || method.starts_with("editMessage") => {
            send(&mut shared.state(), &call)
        }
        _ => refuse(404, "Not Found: method not found"),
    }
}

async fn updates(shared: &TelegramShared, params: &Value) -> Response<Body> {
    let mut changes = shared.changes.subscribe();
    let poll = {
        let mut state = shared.state();
        if state.webhook.is_some() {
            return refuse(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
            );
        }
        if let Some(offset) = params["offset"].as_i64().filter(|offset| *offset > 0) {
            let kept = state.updates.split_off(&offset);
            state.confirmed += state.updates.len();
            state.updates = kept;
        }
        state.poll += 1;
        state.poll
    };
    shared.changed();
    let limit = usize::try_from(params["limit"].as_i64().unwrap_or(100)).unwrap_or(100).clamp(1, 100);
    let found = async {
        loop {
            changes.borrow_and_update();
            {
                let mut state = shared.state();
                if state.poll != poll {
                    return refuse(
                        409,
                        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                    );
                }
                if !state.again.is_empty() || !state.updates.is_empty() {
                    let mut list = std::mem::take(&mut state.again);
                    list.extend(state.updates.values().take(limit).cloned());
                    state.brought += 1;
                    drop(state);
                    shared.changed();
                    return updates_in_order(&list);
                }
            }
            if changes.changed().await.is_err() {
                return result(&json!([]));
            }
        }
    };
    let hold = Duration::from_secs(params["timeout"].as_u64().unwrap_or_default());
    tokio::time::timeout(hold, found).await.unwrap_or_else(|_| result(&json!([])))
}

/// Writes updates as Telegram does: the number of an update before its content. Whole pieces of
/// JSON stand in for updates that are none.
fn updates_in_order(list: &[Value]) -> Response<Body> {
    let one = |update: &Value| match (update.as_str(), update.get("update_id")) {
        (Some(raw), _) => raw.to_owned(),
        (None, Some(id)) => {
            let text = update.to_string();
            format!("{{\"update_id\":{id},{}", text.get(1..).unwrap_or_default())
        }
        (None, None) => update.to_string(),
    };
    let updates: Vec<String> = list.iter().map(one).collect();
    let mut response = answer(200, &Value::Null);
    *response.body_mut() = Body::from(format!("{{\"ok\":true,\"result\":[{}]}}", updates.join(",")));
    response
}

/// Error for a call whose target is wrong.
fn refusal(state: &TelegramState, params: &Value) -> Option<Response<Body>> {
    if let Some(to) = params["chat_id"].as_i64().and_then(|chat| state.moved.get(&chat)) {
        return Some(answer(
            400,
            &json!({
                "ok": false,
                "error_code": 400,
                "description": "Bad Request: group chat was upgraded to a supergroup chat",
                "parameters": {"migrate_to_chat_id": to},
            }),
        ));
    }
    let is_sent = params.get("action").is_none();
    let thread = params["message_thread_id"].as_i64()?;
    let is_general = thread == 1 && is_sent && params["chat_id"].as_i64().is_some_and(|chat| chat < 0);
    (is_general || state.gone_threads.contains(&thread))
        .then(|| refuse(400, "Bad Request: message thread not found"))
}

fn send(state: &mut TelegramState, call: &BotCall) -> Response<Body> {
    let params = &call.params;
    if let Some(refusal) = refusal(state, params) {
        return refusal;
    }
    for (key, most, words) in
        [("text", TEXT, "message is too long"), ("caption", CAPTION, "message caption is too long")]
    {
        let Some(text) = params[key].as_str() else { continue };
        let visible = match params["parse_mode"].as_str() {
            Some("HTML") => match markup::visible(text) {
                Ok(text) => text,
                Err(why) => return refuse(400, &format!("Bad Request: can't parse entities: {why}")),
            },
            _ => text.to_owned(),
        };
        if visible.encode_utf16().count() > most {
            return refuse(400, &format!("Bad Request: {words}"));
        }
        if key == "text" && visible.trim().is_empty() {
            return refuse(400, "Bad Request: message text is empty");
        }
    }
    for button in params["reply_markup"]["inline_keyboard"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|row| row.as_array().into_iter().flatten())
    {
        if button["callback_data"].as_str().is_some_and(|data| data.len() > 64) {
            return refuse(400, "Bad Request: BUTTON_DATA_INVALID");
        }
    }
    state.made.push(params.clone());
    let id = params["message_id"].as_i64().unwrap_or_else(|| {
        state.next_message += 1;
        state.next_message
    });
    let chat = params["chat_id"].as_i64().unwrap_or(-1_000_000_000_001);
    let kind = if chat > 0 { "private" } else { "supergroup" };
    if let Some(keyboard) = params.get("reply_markup") {
        state.keyboards.push((chat, id, keyboard.clone()));
    }
    let mut message = json!({"message_id": id, "date": 1_735_787_046, "chat": {"id": chat, "type": kind}, "from": bot(state.bot)});
    for key in ["text", "caption"] {
        if params[key].is_string() {
            message[key] = json!(visible_of(params, key));
        }
    }
    for key in ["reply_markup", "message_thread_id"] {
        if let Some(value) = params.get(key) {
            message[key] = value.clone();
        }
    }
    if params.get("message_thread_id").is_some() {
        message["is_topic_message"] = json!(true);
    }
    if let Some((kind, content)) = sent_file(call) {
        message[kind] = content;
    }
    result(&message)
}

/// Words as they are read.
fn visible_of(params: &Value, key: &str) -> String {
    let text = params[key].as_str().unwrap_or_default();
    let is_html = params["parse_mode"].as_str() == Some("HTML");
    if is_html { markup::visible(text).unwrap_or_default() } else { text.to_owned() }
}

/// The file, or the poll, of a message that was sent.
fn sent_file(call: &BotCall) -> Option<(&'static str, Value)> {
    let file =
        json!({"file_id": "sent-file", "file_unique_id": "sent", "width": 1, "height": 1, "duration": 1});
    Some(match call.method.as_str() {
        "sendPhoto" => ("photo", json!([file])),
        "sendDocument" => ("document", file),
        "sendVideo" => ("video", file),
        "sendAnimation" => ("animation", file),
        "sendAudio" => ("audio", file),
        "sendVoice" => ("voice", file),
        "sendPoll" => {
            let text =
                |option: &Value| option["text"].as_str().or(option.as_str()).unwrap_or_default().to_owned();
            let options = call.params["options"].as_array().into_iter().flatten();
            let options: Vec<Value> =
                options.map(|option| json!({"text": text(option), "voter_count": 0})).collect();
            (
                "poll",
                json!({
                    "id": "1", "question": call.params["question"], "options": options, "total_voter_count": 0,
                    "is_closed": false, "is_anonymous": true, "type": "regular", "allows_multiple_answers": false,
                }),
            )
        }
        _ => return None,
    })
}

fn chat_info(state: &TelegramState, params: &Value, show: impl Fn(&Value) -> Value) -> Response<Body> {
    let wanted = &params["chat_id"];
    let name = wanted.as_str().map(|name| name.trim_start_matches('@'));
    let is_it = |chat: &&Value| {
        chat["id"] == *wanted
            || name.is_some_and(|name| {
                chat["username"].as_str() == Some(name) || chat["id"].as_i64() == name.parse().ok()
            })
    };
    match state.chats.iter().find(is_it) {
        Some(chat) => result(&show(chat)),
        None => refuse(400, "Bad Request: chat not found"),
    }
}

fn file_info(state: &TelegramState, params: &Value) -> Response<Body> {
    let id = params["file_id"].as_str().unwrap_or_default();
    match state.files.get(id) {
        Some((path, content)) => result(
            &json!({"file_id": id, "file_unique_id": id, "file_size": content.len(), "file_path": path}),
        ),
        None => refuse(400, "Bad Request: wrong file_id or the file is temporarily unavailable"),
    }
}

/// A chat that is known, or one in which something was pinned, with the message that was pinned last.
fn chat(state: &TelegramState, params: &Value) -> Response<Body> {
    let id = &params["chat_id"];
    let pins = |call: &&BotCall| call.method == "pinChatMessage" && call.params["chat_id"] == *id;
    let Some(pin) = state.calls.iter().rev().find(pins) else {
        return chat_info(state, params, |chat| {
            let mut whole = json!({"accent_color_id": 0, "max_reaction_count": 11});
            for (key, value) in chat.as_object().into_iter().flatten().filter(|(key, _)| *key != "me") {
                whole[key] = value.clone();
            }
            whole
        });
    };
    let mut info = json!({"id": id, "type": "supergroup", "accent_color_id": 0, "max_reaction_count": 11});
    info["pinned_message"] =
        json!({"message_id": pin.params["message_id"], "text": "pinned words", "date": 1_735_787_046});
    result(&info)
}

/// A file's content.
pub(super) fn file(shared: &TelegramShared, path: &str) -> Response<Body> {
    let state = shared.state();
    match state.files.values().find(|(own, _)| own == path) {
        Some((_, content)) => Response::new(Body::from(content.clone())),
        None => refuse(404, "Not Found"),
    }
}

/// Posts an update as Telegram does; the status of the answer.
pub(super) async fn post(url: &str, secret: Option<&str>, update: &Value) -> io::Result<u16> {
    let url = url::Url::parse(url).map_err(io::Error::other)?;
    let place = (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(80));
    let mut stream = tokio::net::TcpStream::connect((place.0.as_str(), place.1)).await?;
    let body = update.to_string();
    let secret =
        secret.map(|secret| format!("X-Telegram-Bot-Api-Secret-Token: {secret}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{secret}Connection: close\r\n\r\n",
        url.path(),
        place.0,
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| io::Error::other(line))
}
