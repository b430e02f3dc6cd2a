//! Several accounts of Telegram, lists of groups and topics, and the files of topics.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::telegram::{forum_message, group_message, private_message};
use serde_json::json;

use crate::support::command::run;
use crate::support::telegram::{all_sent, bot, last_said, open, server_and_model};

/// The transcripts of the default agent, by name.
fn transcripts(gateway: &GatewayUnderTest) -> Vec<String> {
    let dir = gateway.state_dir().join("agents/main/sessions");
    let names =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".jsonl")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_account_is_for_those_it_names_itself_and_sends_where_the_default_one_cannot() {
    let (server, model) = server_and_model().await;
    let accounts =
        json!({"default": {"enabled": false}, "b": {"botToken": server.token(), "allowFrom": [5]}});
    let mut section = open();
    section["accounts"] = accounts;
    let mut gateway = bot(&server, &model, section, json!({})).await;
    // The stranger is not heard, though the channel's door is open.
    server.push(private_message(9, "a stranger"));
    server.push(private_message(5, "a friend"));
    server.nth_call("sendMessage", 1).await;
    model.arrived(1).await;
    assert!(last_said(&model.requests()[0]).contains("a friend"));
    server.all_confirmed().await;
    assert_eq!((model.requests().len(), server.made().len()), (1, 1));

    // No account is named, and the one that is meant is off.
    let (exit, out, err) = run(&gateway, &["message", "send", "--target", "5", "--message", "by hand"]).await;
    assert_eq!(exit, 0, "{out}{err}");
    let sent = server.nth_call("sendMessage", 2).await.params;
    assert_eq!((&sent["chat_id"], &sent["text"]), (&json!(5), &json!("by hand")));
    let (exit, _, err) =
        run(&gateway, &["message", "send", "--target", "+15551234567", "--message", "x"]).await;
    assert!(exit != 0 && err.contains("Unknown target \"+15551234567\" for Telegram"), "{err}");

    const WARNING: &str = "config warning: channels.telegram.accounts.b.allowFrom: dmPolicy=\"open\" lets in nobody but who is in \
                           this list";
    for page in [&["channels", "list"][..], &["pairing", "list", "telegram"], &["status"]] {
        let (exit, out, err) = run(&gateway, page).await;
        assert!(exit == 0 && err.contains(WARNING), "{page:?}: {out}{err}");
    }
    gateway.logged("lets in nobody but who is in this list").await.unwrap();
    gateway.kill().await.unwrap();
    let (exit, out, err) = run(&gateway, &["channels", "status"]).await;
    assert!(exit == 0 && out.contains("showing config-only status") && err.contains(WARNING), "{out}{err}");
}

#[tokio::test]
async fn lists_of_groups_and_topics_hold_in_open_groups_and_topics_have_files_of_their_own() {
    let (server, model) = server_and_model().await;
    let section = json!({"groupPolicy": "open", "allowFrom": [5], "groups": {
        "-100": {"requireMention": false, "topics": {"42": {"allowFrom": [5]}}},
        "-200": {"requireMention": false, "allowFrom": [5]},
    }});
    let mut gateway = bot(&server, &model, section, json!({})).await;
    server.push(forum_message(-100, 42, 9, "a stranger in the topic"));
    server.push(group_message(-200, 9, "a stranger in the group"));
    server.push(forum_message(-100, 42, 5, "in the topic"));
    server.nth_call("sendMessage", 1).await;
    server.push(forum_message(-100, 43, 9, "in another topic"));
    server.nth_call("sendMessage", 2).await;
    server.push(group_message(-200, 5, "in the group"));
    server.nth_call("sendMessage", 3).await;
    let asked: Vec<String> = model.requests().iter().map(last_said).collect();
    for (said, words) in asked.iter().zip(["in the topic", "in another topic", "in the group"]) {
        assert!(said.contains(words) && !said.contains("stranger"), "{asked:?}");
    }
    assert_eq!(asked.len(), 3, "{asked:?}");

    let topic = |names: &[String], topic: &str| -> Vec<String> {
        names.iter().filter(|name| name.ends_with(&format!("-topic-{topic}.jsonl"))).cloned().collect()
    };
    let names = transcripts(&gateway);
    let (first, other) = (topic(&names, "42"), topic(&names, "43"));
    assert_eq!((names.len(), first.len(), other.len()), (3, 1, 1), "{names:?}");
    // The conversation goes on in the same file after a crash, and a new conversation has a new
    // one.
    all_sent(&gateway).await;
    gateway.crash_and_restart().await.unwrap();
    server.push(forum_message(-100, 42, 5, "once more"));
    server.nth_call("sendMessage", 4).await;
    assert_eq!(transcripts(&gateway), names);
    let file =
        std::fs::read_to_string(gateway.state_dir().join("agents/main/sessions").join(&first[0])).unwrap();
    assert!(file.contains("in the topic") && file.contains("once more"), "{file}");
    server.push(forum_message(-100, 42, 5, "/new"));
    server.nth_call("sendMessage", 5).await;
    server.push(forum_message(-100, 42, 5, "anew"));
    server.nth_call("sendMessage", 6).await;
    let names = transcripts(&gateway);
    assert_eq!((names.len(), topic(&names, "42").len()), (4, 2), "{names:?}");

    // Deleting a session takes its file along.
    let key = "agent:main:telegram:group:-100:topic:43";
    let mut client = gateway.client().await.unwrap();
    client.request("sessions.delete", json!({"key": key, "deleteTranscript": true})).await.unwrap();
    assert!(topic(&transcripts(&gateway), "43").is_empty(), "{:?}", transcripts(&gateway));
}
