//! Answers that Telegram shows in blocks while they are written.

use std::time::Duration;

use openclaw_testkit::model_server::{Gate, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::telegram::{CallFault, TelegramServer, private_message};
use serde_json::{Value, json};

use crate::support::config::merge;
use crate::support::telegram::{bot, in_blocks, last_said, open, small};
use crate::support::trace::{numbered, traced};

#[tokio::test]
async fn blocks_are_sent_while_the_rest_is_written_and_nothing_twice() {
    let server = TelegramServer::start().await;
    let (first, second) = ("One paragraph is here. ".repeat(3), "And another one follows. ".repeat(3));
    let whole = format!("{first}\n\n{second}");
    let told = whole.clone();
    let model = ModelServer::answering(move |_| Reply::deltas(told.split_inclusive(' '))).await;
    let gateway = bot(&server, &model, in_blocks(), small()).await;
    server.push(private_message(5, "tell me"));
    let sent = |made: &[Value]| {
        made.iter()
            .filter_map(|message| message["text"].as_str())
            .collect::<Vec<_>>()
            .join(" ")
            .replace('\n', " ")
    };
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    server.has_made("all of the answer", |made| plain(&sent(made)) == plain(&whole)).await;
    let mut client = gateway.client().await.unwrap();
    let traced = client.request("trace", json!({})).await.unwrap();
    let deliveries = traced["events"][0]["run"]["deliveries"].as_array().unwrap();
    assert!(deliveries.len() > 1, "it came in blocks: {traced}");
}

/// Texts of the bot's messages, and the message that each quotes.
fn quoting(made: &[Value]) -> Vec<(String, Option<i64>)> {
    let one = |message: &Value| {
        let text = message["text"].as_str().unwrap_or_default().trim().to_owned();
        (text, message["reply_parameters"]["message_id"].as_i64())
    };
    made.iter().map(one).collect()
}

#[tokio::test]
async fn a_tag_makes_the_block_behind_it_a_reply() {
    let (first, second) = ("One paragraph is here, of some length.", "And another one follows, as long.");
    let rows = [
        ("[[reply_to_current]] ", "", "first", [Some(11), None]),
        ("", "[[reply_to:7]]", "first", [None, Some(7)]),
        ("[[reply_to_current]]", "[[reply_to:7]] ", "all", [Some(11), Some(7)]),
        ("[[reply_to_current]]", "[[reply_to:7]] ", "first", [Some(11), None]),
        ("[[reply_to_current]]", "", "off", [None, None]),
    ];
    for (before, between, mode, expect) in rows {
        let server = TelegramServer::start().await;
        let answer = format!("{before}{first}\n\n{between}{second}");
        let said = answer.clone();
        let model = ModelServer::answering(move |_| Reply::deltas(said.split_inclusive(' '))).await;
        let mut section = in_blocks();
        merge(&mut section, json!({"replyToMode": mode}));
        let _gateway = bot(&server, &model, section, small()).await;
        server.push(private_message(5, "tell me"));
        server.has_made("both paragraphs", |made| made.len() == 2).await;
        let expect = [first, second].map(str::to_owned).into_iter().zip(expect).collect::<Vec<_>>();
        assert_eq!(quoting(&server.made()), expect, "{answer:?} with {mode}");
    }
}

/// An answer with files between its paragraphs.
const WITH_FILES: &str = "Here is the first one of them, look.\nMEDIA:./one.txt\nAnd here is another one, as nice.\nMEDIA:./two.txt\nThat was all there is, I think.";

/// Items that a reader sees, in order: words, and the names of files.
fn seen(server: &TelegramServer) -> Vec<String> {
    let mut names =
        server.calls("sendDocument").into_iter().flat_map(|call| call.uploads).map(|file| file.name);
    let one = |message: &Value| match message["text"].as_str() {
        Some(text) => text.trim().to_owned(),
        None => names.next().unwrap_or_default(),
    };
    server.made().iter().map(one).collect()
}

fn write_files(gateway: &openclaw_testkit::GatewayUnderTest) {
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    for name in ["one.txt", "two.txt"] {
        std::fs::write(workspace.join(name), format!("this is {name}")).unwrap();
    }
}

/// Spec `streaming.md` §5.
#[tokio::test]
async fn files_are_sent_where_they_stand() {
    for at in ["text_end", "message_end"] {
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|_| Reply::deltas(WITH_FILES.split_inclusive(' '))).await;
        let mut rest = small();
        merge(&mut rest, json!({"agents": {"defaults": {"blockStreamingBreak": at}}}));
        let gateway = bot(&server, &model, in_blocks(), rest).await;
        write_files(&gateway);
        server.push(private_message(5, "show me"));
        server
            .has_made("the end", |made| {
                made.iter().any(|m| m["text"].as_str().is_some_and(|t| t.contains("I think")))
            })
            .await;
        traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
        let expect = [
            "Here is the first one of them, look.",
            "one.txt",
            "And here is another one, as nice.",
            "two.txt",
            "That was all there is, I think.",
        ];
        assert_eq!(seen(&server), expect, "{at}");
    }
}

#[tokio::test]
async fn a_file_that_was_sent_as_a_block_is_not_sent_again_after_a_crash() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |_| {
        let (begin, end) = WITH_FILES.split_at(WITH_FILES.find("MEDIA:./two").unwrap());
        Reply::steps([Step::Text(begin.to_owned()), Step::Wait(held.clone()), Step::Text(end.to_owned())])
    })
    .await;
    let mut gateway = bot(&server, &model, in_blocks(), small()).await;
    write_files(&gateway);
    server.push(private_message(5, "show me"));
    server.has_made("the first file", |made| made.iter().any(|message| message["text"].is_null())).await;
    // If the process dies before the receipt is stored, nobody can tell whether the message
    // arrived.
    traced(&gateway, 11, |event| {
        let deliveries = event["run"]["deliveries"].as_array();
        deliveries.is_some_and(|all| all.len() > 1 && all.iter().all(|each| each["state"] == "sent"))
    })
    .await;
    gateway.kill().await.unwrap();
    gate.open();
    gateway.start().await.unwrap();
    traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
    server.nth_answer("sendDocument", 2).await;
    traced(&gateway, 11, |event| {
        let deliveries = event["run"]["deliveries"].as_array();
        deliveries.is_some_and(|all| all.iter().all(|each| each["state"] == "sent"))
    })
    .await;
    let files: Vec<String> = seen(&server).into_iter().filter(|seen| seen.ends_with(".txt")).collect();
    assert_eq!(files, ["one.txt", "two.txt"]);
}

/// Waits until all that the run has said so far was sent, as so many messages.
async fn all_sent(gateway: &openclaw_testkit::GatewayUnderTest, id: i64, count: usize) {
    traced(gateway, id, |event| {
        let deliveries = event["run"]["deliveries"].as_array();
        deliveries.is_some_and(|all| all.len() == count && all.iter().all(|each| each["state"] == "sent"))
    })
    .await;
}

/// Killed or stopped behind a tool's call or in the middle of a text: the reader has each word once.
#[tokio::test]
async fn words_that_were_sent_as_blocks_are_not_said_again_after_a_stop() {
    let [first, second] = ["One paragraph is here, of some length.", "And another one follows, as long."];
    for (has_call, is_killed) in [(false, true), (true, true), (false, false), (true, false)] {
        let (server, gate) = (TelegramServer::start().await, Gate::new());
        let held = gate.clone();
        let model = ModelServer::answering(move |request| {
            let text = |text: &str| Step::Text(text.to_owned());
            let call = ScriptedCall::new("c1", "read", &json!({"path": "no-such-file"}));
            match (has_call, request.ends_with_tool_result()) {
                (false, _) => Reply::steps([
                    text(first),
                    text("\n\n"),
                    text("And"),
                    Step::Wait(held.clone()),
                    text(&second[3..]),
                ]),
                (true, false) => Reply::steps([text(first), Step::ToolCalls(vec![call])]),
                (true, true) => Reply::steps([Step::Wait(held.clone()), text(second)]),
            }
        })
        .await;
        let mut gateway = bot(&server, &model, in_blocks(), small()).await;
        server.push(private_message(5, "tell me"));
        all_sent(&gateway, 11, 1).await;
        if has_call {
            model.arrived(2).await;
        }
        match is_killed {
            true => gateway.kill().await.unwrap(),
            false => drop(gateway.terminate().await.unwrap()),
        }
        gate.open();
        gateway.start().await.unwrap();
        traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
        all_sent(&gateway, 11, 2).await;
        assert_eq!(seen(&server), [first, second], "call: {has_call}, killed: {is_killed}");
    }
}

/// Words of which some were sent are said to their end, although the answer is the tool's.
#[tokio::test]
async fn words_before_an_answer_by_tool_do_not_break_off_over_a_stop() {
    let [first, second] = ["One paragraph is here, of some length.", "And another one follows, as long."];
    let (server, gate) = (TelegramServer::start().await, Gate::new());
    let held = gate.clone();
    let model = ModelServer::answering(move |request| {
        let text = |text: &str| Step::Text(text.to_owned());
        let send = json!({"action": "send", "message": "the answer, by tool"});
        let call = Step::ToolCalls(vec![ScriptedCall::new("c1", "message", &send)]);
        match request.ends_with_tool_result() {
            false => Reply::steps([
                text(first),
                text("\n\n"),
                text("And"),
                Step::Wait(held.clone()),
                text(&second[3..]),
                call,
            ]),
            true => Reply::text("NO_REPLY"),
        }
    })
    .await;
    let mut gateway = bot(&server, &model, in_blocks(), small()).await;
    server.push(private_message(5, "tell me"));
    all_sent(&gateway, 11, 1).await;
    gateway.kill().await.unwrap();
    gate.open();
    gateway.start().await.unwrap();
    traced(&gateway, 11, |event| event["run"]["state"] == "ok").await;
    all_sent(&gateway, 11, 3).await;
    assert_eq!(seen(&server), [first, "the answer, by tool", second]);
}

#[tokio::test]
async fn a_voice_tag_in_blocks_makes_the_recording_a_voice_message() {
    let server = TelegramServer::start().await;
    let answer = "[[audio_as_voice]] Here is how it sounds, listen well.\n\nMEDIA:./said.ogg";
    let model = ModelServer::answering(|_| Reply::deltas(answer.split_inclusive(' '))).await;
    let gateway = bot(&server, &model, in_blocks(), small()).await;
    std::fs::create_dir_all(gateway.state_dir().join("workspace")).unwrap();
    std::fs::write(gateway.state_dir().join("workspace/said.ogg"), b"OggS\0\x02").unwrap();
    server.push(private_message(5, "say it"));
    server.nth_answer("sendVoice", 1).await;
    assert_eq!(server.made()[0]["text"], "Here is how it sounds, listen well.");
    assert_eq!(server.made().len(), 2);
}

/// Spec `queue.md` §4.3.
#[tokio::test]
async fn what_waited_behind_a_run_is_answered_whole() {
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let answer = "One paragraph is here, of some length.\n\nAnd another one follows, as long.";
    let model = ModelServer::answering(move |request| {
        let reply = Reply::deltas(answer.split_inclusive(' '));
        if last_said(request).contains("first") { reply.after(Step::Wait(held.clone())) } else { reply }
    })
    .await;
    let mut rest = small();
    merge(&mut rest, json!({"messages": {"queue": {"mode": "followup", "debounceMs": 0}}}));
    let gateway = bot(&server, &model, in_blocks(), rest).await;
    server.push(private_message(5, "first"));
    model.arrived(1).await;
    server.push(numbered(private_message(5, "second"), 12));
    traced(&gateway, 12, |event| !event["run"].is_null()).await;
    gate.open();
    server.has_made("both answers", |made| made.len() == 3).await;
    let texts: Vec<String> = quoting(&server.made()).into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts[..2].join("\n\n"), answer, "in blocks");
    assert_eq!(texts[2], answer, "whole");
}

#[tokio::test]
async fn a_message_that_telegram_has_trouble_with_is_soon_sent_again() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here it is")).await;
    let mut section = open();
    merge(&mut section, json!({"retry": {"attempts": 3, "minDelayMs": 5, "maxDelayMs": 20}}));
    let gateway = bot(&server, &model, section, json!({})).await;
    for _ in 0..2 {
        server.fail("sendMessage", CallFault::Refuse(500, "Internal Server Error"));
    }
    server.push(private_message(5, "hi"));
    server.has_made("the answer", |made| made.len() == 1).await;
    let known = traced(&gateway, 11, |event| event["run"]["deliveries"][0]["state"] == "sent").await;
    assert_eq!(known["run"]["deliveries"][0]["attempts"], 3, "{known}");
}

/// Time between the last try that `retry.attempts` counts and the first later round of the outbox, where
/// each try fails like this.
async fn pause_behind(attempts: usize, fault: CallFault) -> Duration {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("here it is")).await;
    let mut section = open();
    merge(&mut section, json!({"retry": {"attempts": attempts, "minDelayMs": 5, "maxDelayMs": 20}}));
    let _gateway = bot(&server, &model, section, json!({})).await;
    for _ in 0..attempts {
        server.fail("sendMessage", fault.clone());
    }
    server.push(private_message(5, "hi"));
    server.has_made("the answer", |made| made.len() == 1).await;
    let calls = server.calls("sendMessage");
    let [.., last, later] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(calls.len(), attempts + 1, "{fault:?}");
    later.at.duration_since(last.at)
}

/// `retry.attempts` counts tries, the first one included.
#[tokio::test]
async fn a_message_is_tried_as_often_as_is_configured_before_it_waits() {
    let trouble = || CallFault::Refuse(500, "Internal Server Error");
    let pauses = tokio::join!(
        pause_behind(1, trouble()),
        pause_behind(3, trouble()),
        pause_behind(1, CallFault::Drop),
        pause_behind(3, CallFault::Drop),
    );
    let pauses = [pauses.0, pauses.1, pauses.2, pauses.3];
    assert!(pauses.iter().all(|pause| *pause > Duration::from_secs(4)), "{pauses:?}");
}

/// In front of words the prefix stands on their line, elsewhere it would break what begins there.
#[tokio::test]
async fn the_prefix_of_a_reply_leaves_its_blocks_whole() {
    let rows = [
        ("hello", "[M] hello"),
        ("```\ncode\n```", "[M]\n\n<pre><code>code\n</code></pre>"),
        ("# Title\n\nwords", "[M]\n\nTitle\n\nwords"),
        ("- a\n- b", "[M]\n\n• a\n• b"),
        ("| a | b |\n| - | - |\n| 1 | 2 |", "[M]\n\n<pre><code>| a"),
    ];
    let (server, replies) = (TelegramServer::start().await, rows.iter().map(|(said, _)| Reply::text(said)));
    let model = ModelServer::queue(replies).await;
    let config = json!({"messages": {"responsePrefix": "[M]"}});
    let gateway = bot(&server, &model, open(), config).await;
    for (n, (said, expect)) in rows.iter().enumerate() {
        server.push(private_message(5, said));
        server.nth_answer("sendMessage", n + 1).await;
        gateway.fates().await.unwrap();
        let text = server.calls("sendMessage")[n].params["text"].as_str().unwrap().to_owned();
        let text = text.replace("<b>", "").replace("</b>", "");
        assert!(text.starts_with(expect), "{text:?} is not {expect:?}");
    }
}
