//! Fates of events that belong together, in groups where the agent has to be addressed.

use std::collections::BTreeMap;
use std::path::Path;

use openclaw_channels::{
    ConversationKind, Inbound, InboundEvent, InboundMessage, MediaKind, MediaRef, Mentions, Quoted, Sender,
};
use openclaw_journal::testing::group_event;
use serde_json::json;

use super::Fate;
use super::desks::{Desks, Sink};
use crate::testing::{FakeModel, PATIENCE, Rig, crash};

const ADA: &str = "5";
const BOB: &str = "6";
/// Sender who may not give commands.
const EVE: &str = "7";
const NAME: &str = "@clawd_bot";
/// Length at which Telegram's programs cut texts.
const CUT_AT: usize = 4000;

fn text(sender: &str, words: &str) -> (String, InboundMessage) {
    let ours = words.contains(NAME);
    let message = InboundMessage {
        text: words.to_owned(),
        mentions: Mentions { ours, any: ours, can_tell: true },
        named_as: if ours { vec![NAME.to_owned()] } else { Vec::new() },
        goes_on: words.len() >= CUT_AT,
        ..InboundMessage::default()
    };
    (sender.to_owned(), message)
}

fn long(begin: &str) -> String {
    format!("{begin}{}", "x".repeat(CUT_AT))
}

fn photo(sender: &str, album: &str, caption: &str) -> (String, InboundMessage) {
    let (sender, message) = text(sender, caption);
    let photo = MediaRef {
        kind: MediaKind::Image,
        handle: "h".to_owned(),
        mime: None,
        name: None,
        size: None,
        description: None,
    };
    let album = Some(album.to_owned()).filter(|album| !album.is_empty());
    (sender, InboundMessage { media: vec![photo], album, ..message })
}

fn reply(sender: &str, words: &str) -> (String, InboundMessage) {
    let (sender, message) = text(sender, words);
    let answered = Quoted { is_ours: true, text: Some("mine".to_owned()), ..Quoted::default() };
    (sender, InboundMessage { reply_to: Some(answered), ..message })
}

/// Gives a message this number on the platform, for messages that are not in order.
fn numbered(number: usize, (sender, message): (String, InboundMessage)) -> (String, InboundMessage) {
    (sender, InboundMessage { message_id: number.to_string(), ..message })
}

/// Events of a group, numbered from 1.
fn events(group: &str, said: Vec<(String, InboundMessage)>) -> Vec<Inbound> {
    let numbered = said.into_iter().enumerate();
    numbered
        .map(|(at, (sender, message))| {
            let own = (at + 1).to_string();
            let message_id = if message.message_id.is_empty() { own } else { message.message_id.clone() };
            let message = InboundMessage { message_id, ..message };
            Inbound {
                sender: Sender { id: sender, ..Sender::default() },
                at: jiff::Timestamp::now().as_millisecond(),
                ..group_event(&format!("{group}:{}", at + 1), group, message)
            }
        })
        .collect()
}

async fn rig(dir: &Path, model: &FakeModel, debounce: u64) -> Rig {
    let groups = json!({"*": {}, "-always": {"requireMention": false}});
    let telegram =
        json!({"botToken": "1:t", "groupPolicy": "open", "groupAllowFrom": [ADA, BOB], "groups": groups});
    let messages = json!({
        "inbound": {"debounceMs": debounce},
        "groupChat": {"mentionPatterns": ["\\bclawd\\b"]},
        "queue": {"mode": "followup"},
    });
    Rig::with_config(dir, model, json!({"channels": {"telegram": telegram}, "messages": messages})).await
}

/// Returns the fates of the events of each group as text, those of one run in parentheses.
async fn fates(rig: &Rig, groups: &[&str]) -> Vec<String> {
    let journal = &rig.dispatch.arrivals().journal;
    let decided = async {
        loop {
            let tally = journal.arrival_tally().await.unwrap();
            if !tally.iter().any(|(fate, _)| fate == "waiting") {
                return journal.arrival_records(None, 1000).await.unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let records = tokio::time::timeout(PATIENCE, decided).await.expect("all of them are decided about");
    let of_group = |group: &&str| {
        let mut runs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut told = Vec::new();
        for record in records.iter().rev().filter(|record| record.target == *group) {
            let number = record.native_id.rsplit(':').next().unwrap();
            match record.fate.as_ref().unwrap() {
                Fate::Run(run_id) => runs.entry(run_id.to_string()).or_default().push(number),
                Fate::Noted => told.push((number, format!("{number} noted"))),
                Fate::Handled(how) => told.push((number, format!("{number} {how}"))),
                Fate::Dropped(why) => told.push((number, format!("{number} {why}"))),
            }
        }
        told.extend(runs.values().map(|numbers| (numbers[0], format!("({})", numbers.join(" ")))));
        told.sort();
        told.into_iter().map(|(_, what)| what).collect::<Vec<_>>().join(", ")
    };
    groups.iter().map(of_group).collect()
}

type Row = (&'static str, Vec<(String, InboundMessage)>, &'static str);

async fn check(debounce: u64, rows: Vec<Row>) {
    let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
    let rig = rig(dir.path(), &model, debounce).await;
    let sink = Sink(Desks::new(rig.dispatch.clone()));
    let (mut all, mut names, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (group, said, expect) in rows {
        all.extend(events(group, said));
        names.push(group);
        expected.push(expect);
    }
    openclaw_channels::InboundSink::take(&sink, all).await.unwrap();
    let found = fates(&rig, &names).await;
    let found: Vec<_> = names.iter().zip(&found).collect();
    let expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
    assert_eq!(found, names.iter().zip(&expected).collect::<Vec<_>>());
}

#[tokio::test]
async fn albums_and_cut_texts_are_whole_before_it_is_decided_whom_they_speak_to() {
    let two = "@clawd_bot what does it say?";
    let rows: Vec<Row> = vec![
        ("-first", vec![photo(ADA, "a", two), photo(ADA, "a", ""), photo(ADA, "a", "")], "(1 2 3)"),
        ("-middle", vec![photo(ADA, "a", ""), photo(ADA, "a", two), photo(ADA, "a", "")], "(1 2 3)"),
        ("-last", vec![photo(ADA, "a", ""), photo(ADA, "a", ""), photo(ADA, "a", two)], "(1 2 3)"),
        ("-name", vec![photo(ADA, "a", ""), photo(ADA, "a", "Clawd, look")], "(1 2)"),
        ("-none", vec![photo(ADA, "a", ""), photo(ADA, "a", "look, Bob")], "1 noted, 2 noted"),
        ("-other-album", vec![photo(ADA, "a", ""), photo(ADA, "b", two)], "1 noted, (2)"),
        (
            "-no-album",
            vec![photo(ADA, "", ""), photo(ADA, "", two), photo(ADA, "", "")],
            "1 noted, (2), 3 noted",
        ),
        (
            "-two-albums",
            vec![photo(ADA, "a", ""), photo(BOB, "b", ""), photo(ADA, "a", two)],
            "(1 3), 2 noted",
        ),
        ("-two-senders", vec![photo(ADA, "a", ""), text(BOB, two), photo(ADA, "a", two)], "(1 3), (2)"),
        ("-command", vec![photo(ADA, "a", ""), text(BOB, "/status"), photo(ADA, "a", two)], "(1 3), (2)"),
        ("-stop", vec![photo(ADA, "a", ""), text(BOB, "/stop"), photo(ADA, "a", two)], "(1 3), 2 stop"),
        (
            "-own-stop",
            vec![photo(ADA, "a", ""), text(ADA, "/stop"), photo(ADA, "a", two)],
            "1 noted, 2 stop, (3)",
        ),
        (
            "-stopped",
            vec![photo(ADA, "a", two), photo(ADA, "a", ""), text(BOB, "/stop")],
            "1 stopped, 2 stopped, 3 stop",
        ),
        ("-cut", vec![text(ADA, &long(two)), text(ADA, "the tail")], "(1 2)"),
        ("-cut-late", vec![text(ADA, &long("")), text(ADA, &long("")), text(ADA, two)], "(1 2 3)"),
        ("-cut-none", vec![text(ADA, &long("")), text(ADA, "the tail")], "1 noted, 2 noted"),
        (
            "-cut-by-other",
            vec![text(ADA, &long(two)), text(BOB, "hm"), text(ADA, "no tail")],
            "(1), 2 noted, 3 noted",
        ),
        ("-plain", vec![text(ADA, two), text(ADA, "and more"), text(BOB, "hm")], "(1), 2 noted, 3 noted"),
        ("-reply", vec![photo(ADA, "a", ""), numbered(2, reply(ADA, "this one?"))], "1 noted, (2)"),
    ];
    check(0, rows).await;
}

#[tokio::test]
async fn what_is_typed_at_once_speaks_to_the_agent_with_any_part_of_it() {
    let rows: Vec<Row> = vec![
        ("-first", vec![text(ADA, "@clawd_bot look at"), text(ADA, "the second line")], "(1 2)"),
        ("-last", vec![text(ADA, "look at this"), text(ADA, "Clawd, what is it?")], "(1 2)"),
        ("-reply", vec![text(ADA, "look at this"), reply(ADA, "what is it?")], "(1 2)"),
        ("-none", vec![text(ADA, "look at this"), text(ADA, "Bob")], "1 noted, 2 noted"),
        (
            "-two-senders",
            vec![text(ADA, "look"), text(BOB, "hm"), text(ADA, "@clawd_bot well?")],
            "(1 3), 2 noted",
        ),
        (
            "-command",
            vec![text(ADA, "@clawd_bot look"), text(ADA, "/status"), text(ADA, "more")],
            "(1), (2), 3 noted",
        ),
        ("-skill", vec![text(ADA, "@clawd_bot look"), text(ADA, "/weather x")], "(1), 2 noted"),
        (
            "-stop",
            vec![text(ADA, "look at"), text(BOB, "/stop"), text(ADA, "@clawd_bot this")],
            "(1 3), 2 stop",
        ),
        (
            "-own-stop",
            vec![text(ADA, "@clawd_bot look"), text(ADA, "/stop"), text(ADA, "more")],
            "1 stopped, 2 stop, 3 noted",
        ),
        ("-wait", vec![text(ADA, "@clawd_bot look"), text(ADA, "wait")], "(1 2)"),
    ];
    check(1500, rows).await;
}

#[tokio::test]
async fn a_bare_stop_counts_where_the_agent_is_spoken_to() {
    let rows: Vec<Row> = vec![
        ("-1", vec![text(ADA, "wait")], "1 noted"),
        ("-2", vec![text(ADA, "stop")], "1 noted"),
        ("-3", vec![text(ADA, "/stop")], "1 stop"),
        ("-4", vec![text(ADA, "/stop: \nplease")], "1 stop"),
        ("-5", vec![text(ADA, "@clawd_bot stop")], "1 stop"),
        ("-6", vec![text(ADA, "Clawd stop")], "1 stop"),
        ("-7", vec![text(ADA, "Clawd, stop")], "1 stop"),
        ("-8", vec![reply(ADA, "exit")], "1 stop"),
        ("-9", vec![text(ADA, "Clawd, stop it")], "(1)"),
        ("-10", vec![text(EVE, "Clawd, stop")], "(1)"),
        ("-11", vec![text(EVE, "/stop")], "1 command-unauthorised"),
        ("-12", vec![text(EVE, "/new: hello")], "1 command-unauthorised"),
        ("-always", vec![text(ADA, "stop")], "1 stop"),
    ];
    check(0, rows).await;
}

#[tokio::test]
async fn a_person_who_may_give_no_commands_gets_none_to_the_agent() {
    let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
    let telegram = json!({"botToken": "1:t", "dmPolicy": "open", "allowFrom": ["*"]});
    let config =
        json!({"channels": {"telegram": telegram}, "commands": {"native": false, "ownerAllowFrom": [ADA]}});
    let rig = Rig::with_config(dir.path(), &model, config).await;
    let sink = Sink(Desks::new(rig.dispatch.clone()));
    let words =
        ["/new", "/reset hello", "/new: hello", "/stop", "/stop\nnow", "/status", "stop", "hello /new"];
    let mut said = events(EVE, words.iter().map(|words| text(EVE, words)).collect());
    for event in &mut said {
        event.conversation.kind = ConversationKind::Direct;
    }
    openclaw_channels::InboundSink::take(&sink, said).await.unwrap();
    let swallowed =
        (1..=6).map(|number| format!("{number} command-unauthorised")).collect::<Vec<_>>().join(", ");
    assert_eq!(fates(&rig, &[EVE]).await, [format!("{swallowed}, (7), (8)")]);
}

#[tokio::test]
async fn an_album_is_sorted_and_the_words_of_it_are_answered() {
    let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
    let rig = rig(dir.path(), &model, 0).await;
    let sink = Sink(Desks::new(rig.dispatch.clone()));
    let said = vec![
        numbered(13, photo(ADA, "a", "")),
        numbered(12, photo(ADA, "a", "@clawd_bot compare these")),
        numbered(11, photo(ADA, "a", "")),
    ];
    openclaw_channels::InboundSink::take(&sink, events("-album", said)).await.unwrap();
    assert_eq!(fates(&rig, &["-album"]).await, ["(1 2 3)"]);
    model.asked(1).await;
    let heard = model.heard(0).pop().unwrap();
    assert!(heard.contains("[message_id: 12]") && heard.contains("@clawd_bot compare these"), "{heard}");
}

#[tokio::test]
async fn a_crash_before_it_is_decided_tears_nothing_apart() {
    let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
    let mut said = events("-crash", vec![photo(ADA, "a", ""), photo(ADA, "a", "@clawd_bot look")]);
    let second = said.pop().unwrap();
    let crashed = {
        let first = rig(dir.path(), &model, 0).await;
        let sink = Sink(Desks::new(first.dispatch.clone()));
        openclaw_channels::InboundSink::take(&sink, said).await.unwrap();
        crash(dir.path())
    };
    let rig = rig(crashed.path(), &model, 0).await;
    let tally = rig.dispatch.arrivals().journal.arrival_tally().await.unwrap();
    assert_eq!(tally, [("waiting".to_owned(), 1)], "nothing is decided about it");
    let desks = Desks::new(rig.dispatch.clone());
    desks.take_up().await.unwrap();
    openclaw_channels::InboundSink::take(&Sink(desks), vec![second]).await.unwrap();
    assert_eq!(fates(&rig, &["-crash"]).await, ["(1 2)"]);
}

/// Checks that commands do not take along the messages noted before them.
#[tokio::test]
async fn what_is_noted_waits_behind_commands_for_what_is_said_to_the_agent() {
    let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
    let rig = rig(dir.path(), &model, 0).await;
    let sink = Sink(Desks::new(rig.dispatch.clone()));
    let rows = [
        ("-status", "@clawd_bot /status"),
        ("-think", "@clawd_bot /think high"),
        ("-new", "@clawd_bot /new"),
        ("-words", "@clawd_bot /think high what now?"),
        ("-said", "@clawd_bot hi"),
    ];
    for (group, words) in rows {
        let said = vec![text(BOB, "lunch at noon"), text(ADA, words)];
        openclaw_channels::InboundSink::take(&sink, events(group, said)).await.unwrap();
    }
    fates(&rig, &[]).await;
    let journal = &rig.dispatch.arrivals().journal;
    let mut waits = Vec::new();
    for (group, _) in rows {
        let at = events(group, vec![text(BOB, "")]).remove(0).address;
        if !journal.noted_arrivals(&at, i64::MAX, 10).await.unwrap().is_empty() {
            waits.push(group);
        }
    }
    assert_eq!(waits, ["-status", "-think", "-new"]);
}

/// Other words for the message of this number.
fn edited(group: &str, sender: &str, message: usize, words: &str) -> Inbound {
    let event = InboundEvent::Edited { message_id: message.to_string(), text: words.to_owned() };
    let mut edit = events(group, vec![text(sender, "")]).remove(0);
    (edit.native_id, edit.event) = (format!("{group}:edit"), event);
    edit
}

#[tokio::test]
async fn what_is_edited_while_it_is_gathered_is_answered_as_it_is_then() {
    let rows = [
        ("-typed", vec![text(ADA, "@clawd_bot where is the moon?"), text(ADA, "tell me")]),
        ("-album", vec![photo(ADA, "a", "@clawd_bot where is the moon?"), photo(ADA, "a", "")]),
        ("-cut", vec![text(ADA, &format!("@clawd_bot where is the moon? {}", long("")))]),
    ];
    for (group, said) in rows {
        let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
        let rig = rig(dir.path(), &model, 1500).await;
        let sink = Sink(Desks::new(rig.dispatch.clone()));
        let mut all = events(group, said);
        all.push(edited(group, ADA, 1, "@clawd_bot where is the sun?"));
        // Of what is said elsewhere it changes nothing.
        all.push(edited("-other", ADA, 1, "@clawd_bot where is Mars?"));
        openclaw_channels::InboundSink::take(&sink, all).await.unwrap();
        fates(&rig, &[]).await;
        model.asked(1).await;
        let heard = model.heard(0).pop().unwrap();
        assert!(heard.contains("where is the sun?"), "{group}: {heard}");
        assert!(!heard.contains("moon") && !heard.contains("Mars"), "{group}: {heard}");
    }
}

#[tokio::test]
async fn an_edit_of_what_is_gathered_outlives_a_crash() {
    let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
    let crashed = {
        let first = rig(dir.path(), &model, 60_000).await;
        let sink = Sink(Desks::new(first.dispatch.clone()));
        let mut all = events("-crash", vec![text(ADA, "@clawd_bot where is the moon?")]);
        all.push(edited("-crash", ADA, 1, "@clawd_bot where is the sun?"));
        openclaw_channels::InboundSink::take(&sink, all).await.unwrap();
        let journal = &first.dispatch.arrivals().journal;
        let is_edited = async {
            let expect = [("handled".to_owned(), 1), ("waiting".to_owned(), 1)];
            while journal.arrival_tally().await.unwrap() != expect {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, is_edited).await.expect("the edit is decided about");
        crash(dir.path())
    };
    let rig = rig(crashed.path(), &model, 0).await;
    Desks::new(rig.dispatch.clone()).take_up().await.unwrap();
    model.asked(1).await;
    let heard = model.heard(0).pop().unwrap();
    assert!(heard.contains("where is the sun?") && !heard.contains("moon"), "{heard}");
}
