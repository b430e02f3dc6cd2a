//! Files that Telegram does not take: their words arrive all the same, and everybody hears which file did not.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{CallFault, TelegramServer, forum_message, private_message};
use serde_json::{Value, json};

use crate::support::command::{has, json_of, ok, openclaw};
use crate::support::config::merge;
use crate::support::telegram::{bot, connected, last_said, open};
use crate::support::trace::{numbered, traced};
use crate::support::wait::until;

const BLOCKED: CallFault = CallFault::Refuse(403, "Forbidden: bot was blocked by the user");

/// Writes a file of the agent's workspace.
fn write(gateway: &GatewayUnderTest, name: &str, content: &str) {
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join(name), content).unwrap();
}

fn texts(server: &TelegramServer) -> Vec<String> {
    server.made().iter().filter_map(|made| made["text"].as_str().map(str::to_owned)).collect()
}

/// Says an answer with a file, and then what it was told.
async fn showing(answer: &'static str) -> ModelServer {
    ModelServer::answering(move |request| match last_said(request).contains("show me") {
        true => Reply::deltas(answer.split_inclusive(' ')),
        false => Reply::text("I see."),
    })
    .await
}

async fn sent(gateway: &GatewayUnderTest, id: i64) -> Value {
    traced(gateway, id, |event| event["run"]["deliveries"][0]["state"] == "sent").await
}

#[tokio::test]
async fn the_text_of_an_answer_arrives_where_its_file_is_refused() {
    let rows = [
        (
            CallFault::Refuse(400, "Bad Request: file must be non-empty"),
            "Telegram 400: Bad Request: file must be non-empty",
        ),
        (
            CallFault::Refuse(400, "Bad Request: not enough rights to send documents to the chat"),
            "Telegram 400: Bad Request: not enough rights to send documents to the chat",
        ),
        (CallFault::Garbage(413, "<html>"), "it is larger than Telegram takes from bots (Telegram 413)"),
    ];
    for (fault, why) in rows {
        let server = TelegramServer::start().await;
        let model = showing("here **it** is & more\nMEDIA:./a_b.txt\nend").await;
        let gateway = bot(&server, &model, open(), json!({})).await;
        write(&gateway, "a_b.txt", "words");
        server.fail("sendDocument", fault);
        server.push(private_message(5, "show me"));
        server.nth_answer("sendMessage", 1).await;
        let said = server.calls("sendMessage")[0].params.clone();
        assert_eq!(said["parse_mode"], "HTML");
        let text = said["text"].as_str().unwrap();
        has(
            text,
            &["here <b>it</b> is &amp; more\n", "end\n\n", &format!("(file a_b.txt was not sent: {why})")],
        );
        let known = sent(&gateway, 11).await;
        let error = known["run"]["deliveries"][0]["error"].as_str().unwrap_or_default();
        has(error, &["file a_b.txt was not sent: "]);
        assert_eq!(ok(&gateway, &["message", "failed"]).await, "Nothing was given up.\n");
        assert_eq!(server.calls("sendDocument").len(), 1, "nothing is tried twice");
        // The agent hears of it.
        server.push(numbered(private_message(5, "did you?"), 12));
        model.arrived(2).await;
        let told = last_said(&model.requests()[1]);
        has(&told, &["To telegram 5 only the words were sent", "file a_b.txt was not sent: "]);
    }
}

/// Refusals by the chat itself say nothing about the file: all of it is kept for a person.
#[tokio::test]
async fn a_chat_that_takes_nothing_keeps_the_file_with_its_words() {
    let server = TelegramServer::start().await;
    let model = showing("here it is\nMEDIA:./a.txt").await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    write(&gateway, "a.txt", "words");
    server.fail("sendDocument", BLOCKED);
    server.push(private_message(5, "show me"));
    gateway.logged("a delivery is given up").await.unwrap();
    let listed = until("it is listed", async || {
        let listed = ok(&gateway, &["message", "failed"]).await;
        listed.contains("here it is").then_some(listed)
    })
    .await;
    has(&listed, &["bot was blocked by the user", "\"here it is\", with the file a.txt"]);
    let again = ok(&gateway, &["message", "retry", "--all"]).await;
    has(&again, &["✅ Will be sent again, in its place in the order: "]);
    server.nth_answer("sendDocument", 2).await;
    assert_eq!(server.calls("sendDocument")[1].params["caption"], "here it is");
    assert_eq!(server.calls("sendMessage").len(), 0);
}

/// In blocks a file is a message of its own.
#[tokio::test]
async fn a_refused_file_of_an_answer_in_blocks_is_told_of_by_its_name() {
    let server = TelegramServer::start().await;
    let model =
        showing("Here is the first one of them, look.\nMEDIA:./a.txt\nThat was all there is, I think.").await;
    let mut section = open();
    let coalesce = json!({"minChars": 1, "maxChars": 60, "idleMs": 10});
    merge(&mut section, json!({"blockStreaming": true, "blockStreamingCoalesce": coalesce}));
    let chunk = json!({"minChars": 20, "maxChars": 100, "breakPreference": "newline"});
    let rest = json!({"agents": {"defaults": {"blockStreamingChunk": chunk}}});
    let gateway = bot(&server, &model, section, rest).await;
    write(&gateway, "a.txt", "words");
    server.fail("sendDocument", CallFault::Garbage(413, "<html>"));
    server.push(private_message(5, "show me"));
    server.has_made("both paragraphs, and a line of the file", |made| made.len() == 3).await;
    let why = "(file a.txt was not sent: it is larger than Telegram takes from bots (Telegram 413))";
    assert_eq!(texts(&server)[1], why, "in its place");
    assert_eq!(json_of(&gateway, &["message", "failed", "--json"]).await["total"], 0);
    traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
    server.push(numbered(private_message(5, "did you?"), 12));
    model.arrived(2).await;
    let told = last_said(&model.requests()[1]);
    has(&told, &["A file for telegram 5 was not delivered", "file a.txt was not sent: it is larger than"]);
}

/// An answer that is too long for a caption, in a topic of a group: the file is a message of its own, and its reader hears of it there.
#[tokio::test]
async fn the_readers_of_a_topic_hear_once_of_files_that_are_refused() {
    let long = "MEDIA:./a.txt\nMEDIA:./b.txt\n".to_owned() + &"word ".repeat(300);
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(move |_| Reply::text(&long)).await;
    let mut section = open();
    merge(&mut section, json!({"groupPolicy": "open", "groups": {"*": {"requireMention": false}}}));
    let gateway = bot(&server, &model, section, json!({})).await;
    write(&gateway, "a.txt", "words");
    write(&gateway, "b.txt", "words");
    for _ in 0..2 {
        server.fail("sendDocument", CallFault::Refuse(400, "Bad Request: something new"));
    }
    server.push(forum_message(-100, 7, 5, "show me"));
    let is_over = |event: &Value| {
        let deliveries = event["run"]["deliveries"].as_array().cloned().unwrap_or_default();
        let is_over = |one: &Value| one["state"] == "sent" || one["state"] == "failed";
        event["run"]["state"] == "ok" && deliveries.len() >= 3 && deliveries.iter().all(is_over)
    };
    traced(&gateway, 11, is_over).await;
    let notes: Vec<Value> = server.calls("sendMessage").into_iter().map(|call| call.params).collect();
    let is_note = |said: &&Value| said["text"].as_str().is_some_and(|text| text.contains("was not sent"));
    let notes: Vec<&Value> = notes.iter().filter(is_note).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0]["text"], "(file a.txt was not sent: Telegram 400: Bad Request: something new)");
    assert_eq!(notes[0]["message_thread_id"].to_string().trim_matches('"'), "7");
    has(&ok(&gateway, &["message", "failed"]).await, &["the file b.txt"]);
}

#[tokio::test]
async fn whoever_sends_a_file_that_is_refused_hears_that_its_words_arrived() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, open(), json!({})).await;
    connected(&server).await;
    let path = gateway.state_dir().join("a.txt");
    std::fs::write(&path, "words").unwrap();
    let path = path.display().to_string();
    server.fail("sendDocument", CallFault::Refuse(400, "Bad Request: something new"));
    let send = ["message", "send", "--target", "5", "--message", "look", "--media", &path];
    openclaw(&gateway, &send).await.failed(&[
        "file a.txt was not sent: Telegram 400: Bad Request: something new. 1 arrived (message 501): do not send those again",
    ]);
    assert_eq!(
        texts(&server),
        ["look\n\n(file a.txt was not sent: Telegram 400: Bad Request: something new)"]
    );
}

#[tokio::test]
async fn an_empty_file_and_one_that_lies_elsewhere_are_told_like_a_missing_one() {
    let rows = [
        ("empty.txt", "it is empty"),
        (
            "link.txt",
            "Local media path is not under an allowed directory. Copy the file into the workspace and send that",
        ),
        ("none.txt", "No such file or directory (os error 2)"),
    ];
    for (name, why) in rows {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(move |_| Reply::text(&format!("here\nMEDIA:./{name}\nend"))).await;
        let gateway = bot(&server, &model, open(), json!({})).await;
        write(&gateway, "empty.txt", "");
        std::os::unix::fs::symlink("/etc/hostname", gateway.state_dir().join("workspace/link.txt")).unwrap();
        server.push(private_message(5, "show me"));
        server.nth_answer("sendMessage", 1).await;
        has(&texts(&server)[0], &["here", "end", &format!("(file ./{name} was not sent: {why})")]);
    }
}

#[tokio::test]
async fn a_file_that_an_answer_names_twice_is_sent_once_in_every_mode() {
    for blocks in [false, true] {
        let server = TelegramServer::start().await;
        let model =
            showing("one\n\nMEDIA:./e.mp3\nMEDIA:./a.txt\n\ntwo\n\nMEDIA:./e.mp3\nMEDIA:./a.txt\n\nend")
                .await;
        let mut section = open();
        merge(&mut section, json!({"blockStreaming": blocks}));
        let gateway = bot(&server, &model, section, json!({})).await;
        write(&gateway, "e.mp3", "ID3\u{3}\0\0\0\0\0\0");
        write(&gateway, "a.txt", "words");
        server.push(private_message(5, "show me"));
        let all_are_sent = |event: &Value| {
            let deliveries = event["run"]["deliveries"].as_array().cloned().unwrap_or_default();
            event["run"]["state"] == "ok"
                && !deliveries.is_empty()
                && deliveries.iter().all(|one| one["state"] == "sent")
        };
        traced(&gateway, 11, all_are_sent).await;
        let mut names: Vec<String> = ["sendAudio", "sendDocument"]
            .iter()
            .flat_map(|method| server.calls(method))
            .flat_map(|call| call.uploads)
            .map(|upload| upload.name)
            .collect();
        names.sort();
        assert_eq!(names, ["a.txt", "e.mp3"], "in blocks: {blocks}");
    }
}
