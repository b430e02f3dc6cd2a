//! Contract of [`TranscriptLogs`](crate::transcript::TranscriptLogs): laws that every implementation
//! keeps, whatever it stores bytes in, and laws of [`Transcripts`] above it. An implementation's tests
//! give [`keeps_every_law`] a way to make a [`Storage`]; other crates find this module behind the feature
//! `contract`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test support: a broken law panics"
)]

mod logs;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::message::{
    AssistantMessage, Block, MISSING_RESULT, Message, ToolCall, ToolResultMessage, UserMessage,
};
use openclaw_protocol::{AgentId, SessionId};
use serde_json::{Value, json};

use crate::entry::SessionEntry;
use crate::history;
use crate::key::SessionKey;
use crate::transcript::format::{BranchSummary, Compaction, CustomMessage};
use crate::transcript::{
    Body, Branch, EntryId, LockError, ModelSettings, NewTranscript, Part, StoredMessage, Transcript,
    TranscriptError, TranscriptLock, TranscriptRef, Transcripts, TurnState,
};
use logs::{
    a_log_has_the_bytes_that_were_written, a_log_is_created_once, a_log_may_take_another_name,
    a_replaced_log_stays_with_whoever_has_it_open, what_is_written_goes_on_from_what_is_there,
};

/// Storage that outlives the transcripts opened in it.
pub trait Storage: Send + Sync {
    /// The transcripts, as a process finds them at its start.
    fn open(&self) -> Transcripts;

    /// Makes another process, which lives, have a transcript, or not any more.
    fn hold(&self, transcript: &TranscriptRef, is_held: bool);
}

/// A law is checked in a storage of its own.
type Law = for<'a> fn(&'a dyn Storage) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

macro_rules! laws {
    ($($law:ident),* $(,)?) => { &[$((stringify!($law), |storage| Box::pin($law(storage)))),*] };
}

/// The laws by name.
const LAWS: &[(&str, Law)] = laws![
    a_log_has_the_bytes_that_were_written,
    a_log_is_created_once,
    a_replaced_log_stays_with_whoever_has_it_open,
    a_log_may_take_another_name,
    what_is_written_goes_on_from_what_is_there,
    a_row_finds_its_transcript_once_it_is_there,
    an_id_that_is_unfit_names_none,
    a_topic_has_a_transcript_of_its_own_name,
    every_kind_of_entry_comes_back_as_it_was,
    ids_are_unique,
    entries_are_those_of_the_branch,
    what_was_synced_is_seen_by_the_next_who_opens,
    a_kept_transcript_is_used_until_somebody_touches_it,
    readers_see_the_branch_and_its_ends,
    calls_without_a_result_get_one,
    settings_are_noted_once,
    a_compaction_hides_what_was_before,
    a_compaction_may_show_what_it_keeps_in_part,
    a_message_finds_its_turn,
    a_plain_turn_can_be_left_behind,
    a_fork_has_the_branch_and_its_labels,
    a_cut_parts_no_call_from_its_result,
    an_archived_transcript_is_gone,
    a_transcript_has_one_writer_at_a_time,
    what_another_process_has_is_waited_for,
];

/// Checks every law, each in a new storage. Panics in the first that is broken.
pub async fn keeps_every_law<S: Storage>(new_storage: impl Fn() -> S) {
    for (name, law) in LAWS {
        tracing::info!(law = name, "checking");
        law(&new_storage()).await;
    }
}

const NOW: Duration = Duration::ZERO;

fn agent() -> AgentId {
    AgentId::default()
}

fn row(id: &str) -> SessionEntry {
    SessionEntry { session_id: Some(SessionId::new(id)), ..SessionEntry::default() }
}

fn new(id: &str) -> NewTranscript {
    NewTranscript { session_id: id.to_owned(), cwd: "/work".to_owned(), parent: None }
}

fn user(text: &str, at: i64) -> Message {
    Message::User(UserMessage::text(text, at))
}

fn answer(text: &str) -> Message {
    Message::Assistant(AssistantMessage { content: vec![Block::text(text)], ..AssistantMessage::default() })
}

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| {
        let (id, name, arguments) = ((*id).to_owned(), "exec".to_owned(), json!({}));
        Block::ToolCall(ToolCall { id, name, arguments, ..ToolCall::default() })
    };
    Message::Assistant(AssistantMessage {
        content: ids.iter().map(call).collect(),
        ..AssistantMessage::default()
    })
}

fn result(id: &str) -> Message {
    let (tool_call_id, content) = (id.to_owned(), vec![Block::text("done")]);
    Message::ToolResult(ToolResultMessage { tool_call_id, content, ..ToolResultMessage::default() })
}

async fn lock(all: &Transcripts, transcript: &TranscriptRef) -> TranscriptLock {
    TranscriptLock::acquire_soon(all, transcript, NOW).await.unwrap()
}

/// The transcript of a session, made where there is none.
async fn opened(all: &Transcripts, id: &str) -> Transcript {
    let transcript = all.to_write(&agent(), &row(id)).unwrap().unwrap();
    lock(all, &transcript).await.reopen(None, new(id)).await.unwrap()
}

async fn say(transcript: &mut Transcript, messages: impl IntoIterator<Item = (&str, Message)>) {
    for (id, message) in messages {
        transcript.append_message(message, Some(EntryId::new(id))).await.unwrap();
    }
}

async fn ids(transcript: &Transcript) -> Vec<String> {
    transcript.entries().await.unwrap().iter().map(|entry| entry.id.to_string()).collect()
}

fn visited(all: &Transcripts, transcript: &TranscriptRef, part: Part, most: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut visit = |_: crate::transcript::head::Kind, id: Option<&EntryId>, line: &[u8]| {
        let value: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(value["id"].as_str(), id.map(EntryId::as_str));
        seen.extend(id.map(EntryId::to_string));
        if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    all.reader(transcript).visit(part, &mut visit).unwrap();
    seen
}

async fn a_row_finds_its_transcript_once_it_is_there(storage: &dyn Storage) {
    let all = storage.open();
    assert_eq!(all.find(&agent(), &row("s")), None);
    assert_eq!(all.find(&agent(), &SessionEntry::default()), None);
    assert_eq!(all.to_write(&agent(), &SessionEntry::default()), Ok(None));
    let named = all.to_write(&agent(), &row("s")).unwrap().unwrap();
    assert_eq!(all.of_new(&agent(), &SessionId::new("s")).unwrap(), named);
    assert!(!all.exists(&named) && all.all_of(&agent(), &row("s")).is_empty());
    let missing = lock(&all, &named).await.open().await;
    assert!(matches!(missing, Err(TranscriptError::Missing(ref at)) if *at == named), "{missing:?}");
    assert!(history::read(&all.reader(&named), 5).unwrap().is_empty());
    drop(opened(&all, "s").await);
    assert!(all.exists(&named) && !all.is_named_by(&named, &agent(), &row("s")));
    assert_eq!(all.find(&agent(), &row("s")), Some(named.clone()));
    assert_eq!(all.all_of(&agent(), &row("s")), std::slice::from_ref(&named));
    assert_ne!(all.to_write(&AgentId::normalize("ops"), &row("s")).unwrap(), Some(named.clone()));
    // A row that says it, in the text of the reference, has it under any id.
    let says = SessionEntry { session_file: Some(named.to_string().into()), ..row("other") };
    assert_eq!(all.to_write(&agent(), &says), Ok(Some(named.clone())));
    assert!(all.is_named_by(&named, &agent(), &says));
    assert_eq!(all.find(&agent(), &says), Some(named));
}

async fn an_id_that_is_unfit_names_none(storage: &dyn Storage) {
    let all = storage.open();
    for id in ["../x", "a/b", ""] {
        assert!(all.of_new(&agent(), &SessionId::new(id)).is_err(), "{id:?}");
        assert!(all.to_write(&agent(), &row(id)).is_err(), "{id:?}");
        assert_eq!(all.find(&agent(), &row(id)), None, "{id:?}");
    }
}

/// Spec `channels.md` §3.6, `sessions.md` §3.1.
async fn a_topic_has_a_transcript_of_its_own_name(storage: &dyn Storage) {
    let all = storage.open();
    let key = |text: &str| SessionKey::parse(text).unwrap();
    let topic = key("agent:main:telegram:group:-100:topic:5");
    let of = |key: &SessionKey, id: &str| all.of_conversation(&agent(), key, &SessionId::new(id)).unwrap();
    let plain = |id: &str| all.of_new(&agent(), &SessionId::new(id)).unwrap();
    let named = of(&topic, "s");
    assert!(named.to_string().ends_with("/s-topic-5.jsonl"), "{named}");
    assert_eq!(named, all.of_topic(&agent(), &SessionId::new("s"), "5").unwrap());
    // A topic of a private chat has a file of its own too.
    assert_eq!(of(&key("agent:main:main:thread:5"), "s"), named);
    for other in ["agent:main:telegram:group:-100", "agent:main:main"] {
        assert_eq!(of(&key(other), "s"), plain("s"), "{other}");
    }
    // A turn begun before a crash goes on, even if an earlier version began it.
    drop(opened(&all, "old").await);
    assert_eq!(of(&topic, "old"), plain("old"));
    drop(lock(&all, &named).await.reopen(None, new("s")).await.unwrap());
    assert_eq!(of(&topic, "s"), named);
    let says = SessionEntry { session_file: Some(named.to_string().into()), ..row("s") };
    assert_eq!(all.find(&agent(), &says), Some(named.clone()));
    assert_eq!(all.to_write(&agent(), &says), Ok(Some(named.clone())));
    assert_eq!(all.all_of(&agent(), &says), std::slice::from_ref(&named));
    assert!(all.of_conversation(&agent(), &topic, &SessionId::new("../x")).is_err());
}

async fn every_kind_of_entry_comes_back_as_it_was(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    assert_eq!((transcript.header().id, transcript.header().cwd), ("s".to_owned(), "/work".to_owned()));
    let text = |text: &str| text.to_owned();
    let bodies = [
        user("hi", 1).into(),
        answer("yes").into(),
        Body::Message(StoredMessage::Other(json!({"role": "custom", "content": "x", "timestamp": 3}))),
        Body::ModelChange { provider: text("p"), model_id: text("m") },
        Body::ThinkingLevelChange { thinking_level: text("low") },
        Body::Compaction(Compaction {
            summary: text("S"),
            first_kept_entry_id: text("0"),
            tokens_before: 5,
            details: Some(json!({"b": 1, "a": [null]})),
            from_hook: Some(true),
        }),
        Body::BranchSummary(BranchSummary {
            from_id: text("root"),
            summary: text("B"),
            details: None,
            from_hook: None,
        }),
        Body::Custom { custom_type: text("ours"), data: Some(json!({"z": {}, "a": "é"})) },
        Body::Custom { custom_type: text("bare"), data: None },
        Body::CustomMessage(CustomMessage {
            custom_type: text("ours"),
            content: serde_json::from_value(json!("hello")).unwrap(),
            display: true,
            details: None,
        }),
        Body::Label { target_id: EntryId::new("0"), label: Some(text("start")) },
        Body::SessionInfo { name: Some(text("name")) },
        Body::Other(json!({"type": "novel", "deep": {"b": 1, "a": 2}})),
    ];
    let mut parent = None;
    for (number, body) in bodies.iter().enumerate() {
        let id = EntryId::new(number.to_string());
        assert_eq!(transcript.append(body.clone(), Some(id.clone())).await.unwrap(), id);
        assert_eq!(transcript.leaf(), Some(id));
    }
    transcript.sync().await.unwrap();
    drop(transcript);
    let all = storage.open();
    let entries = opened(&all, "s").await.entries().await.unwrap();
    assert_eq!(entries.len(), bodies.len());
    for (number, (entry, body)) in entries.into_iter().zip(bodies).enumerate() {
        assert_eq!((entry.id.as_str(), entry.parent_id), (number.to_string().as_str(), parent));
        match (&entry.body, &body) {
            // Other bodies also hold the fields of their frame.
            (Body::Other(found), Body::Other(put)) => {
                assert_eq!((&found["type"], &found["deep"]), (&put["type"], &put["deep"]));
            }
            (found, put) => assert_eq!(found, put),
        }
        assert!(crate::time::parse_iso(&entry.timestamp).is_some());
        parent = Some(entry.id);
    }
}

async fn ids_are_unique(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("a", user("1", 1)), ("b", answer("2"))]).await;
    let again = transcript.append_message(user("3", 3), Some(EntryId::new("a"))).await;
    assert!(matches!(again, Err(TranscriptError::DuplicateId { id, .. }) if id.as_str() == "a"));
    let mut made = Vec::new();
    for number in 0..20 {
        made.push(transcript.append_message(user("x", number), None).await.unwrap());
    }
    assert!(made.iter().all(|id| transcript.contains(id.as_str())) && !transcript.contains("nowhere"));
    made.sort();
    made.dedup();
    assert_eq!((made.len(), ids(&transcript).await.len()), (20, 22));
}

async fn entries_are_those_of_the_branch(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("a", user("1", 1)), ("b", answer("2")), ("left", user("3", 3))]).await;
    transcript.branch(Branch::At(EntryId::new("b"))).await.unwrap();
    say(&mut transcript, [("c", user("4", 4))]).await;
    assert_eq!(ids(&transcript).await, ["a", "b", "c"]);
    let texts = transcript.context().await.unwrap().messages;
    assert_eq!(texts, [user("1", 1), answer("2"), user("4", 4)].map(Arc::new));
    transcript.branch(Branch::Root).await.unwrap();
    assert_eq!((ids(&transcript).await.len(), transcript.leaf()), (0, None));
    transcript.branch(Branch::Latest).await.unwrap();
    assert_eq!(transcript.leaf(), Some(EntryId::new("c")));
    let unknown = transcript.branch(Branch::At(EntryId::new("nowhere"))).await;
    assert!(matches!(unknown, Err(TranscriptError::UnknownId { .. })));
}

async fn what_was_synced_is_seen_by_the_next_who_opens(storage: &dyn Storage) {
    {
        let all = storage.open();
        let mut transcript = opened(&all, "s").await;
        say(&mut transcript, [("a", user("1", 1)), ("b", answer("2"))]).await;
        transcript.sync().await.unwrap();
    }
    let all = storage.open();
    let transcript = opened(&all, "s").await;
    assert_eq!(
        (ids(&transcript).await, transcript.leaf()),
        (vec!["a".into(), "b".into()], Some(EntryId::new("b")))
    );
    assert_eq!(transcript.context().await.unwrap().messages, [user("1", 1), answer("2")].map(Arc::new));
}

async fn a_kept_transcript_is_used_until_somebody_touches_it(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("a", user("1", 1)), ("b", answer("2"))]).await;
    transcript.sync().await.unwrap();
    transcript.branch(Branch::At(EntryId::new("a"))).await.unwrap();
    let named = transcript.transcript().clone();
    let kept = transcript.keep();
    assert_eq!(kept.transcript(), &named);
    // The position of the leaf tells that it is the very same transcript.
    let transcript = lock(&all, &named).await.reopen(Some(kept), new("s")).await.unwrap();
    assert_eq!(transcript.leaf(), Some(EntryId::new("a")));
    let kept = transcript.keep();
    say(&mut opened(&all, "s").await, [("c", user("3", 3))]).await;
    let transcript = lock(&all, &named).await.reopen(Some(kept), new("s")).await.unwrap();
    assert_eq!(ids(&transcript).await, ["a", "b", "c"]);
    let kept = transcript.keep();
    drop(opened(&all, "other").await);
    let other = all.find(&agent(), &row("other")).unwrap();
    let other = lock(&all, &other).await.reopen(Some(kept), new("other")).await.unwrap();
    assert_eq!(ids(&other).await.len(), 0, "another one's is not used");
}

async fn readers_see_the_branch_and_its_ends(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("a", user("first", 1)), ("b", answer("2")), ("left", user("3", 3))]).await;
    transcript.branch(Branch::At(EntryId::new("b"))).await.unwrap();
    say(&mut transcript, [("c", user("4", 4)), ("d", answer("last"))]).await;
    transcript.sync().await.unwrap();
    let named = transcript.transcript();
    assert_eq!(visited(&all, named, Part::Branch, 9), ["d", "c", "b", "a"]);
    assert_eq!(visited(&all, named, Part::Branch, 2), ["d", "c"]);
    assert_eq!(visited(&all, named, Part::End { bytes: 1 << 20 }, 9), ["d", "c", "b", "a"]);
    let end = visited(&all, named, Part::End { bytes: 400 }, 9);
    assert!(!end.is_empty() && end.len() < 4 && end[0] == "d", "{end:?}");
    let first = visited(&all, named, Part::Beginning { lines: 4, bytes: 1 << 20 }, 9);
    assert_eq!(first.iter().filter(|id| *id != "s").collect::<Vec<_>>(), ["a", "b", "left"]);
    let reader = all.reader(named);
    assert_eq!(history::read(&reader, 2).unwrap().len(), 2);
    assert_eq!(history::first_user_text(&reader).unwrap().as_deref(), Some("first"));
    assert_eq!(history::last_text(&reader, 99).unwrap().as_deref(), Some("last"));
}

async fn calls_without_a_result_get_one(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("u", user("1", 1)), ("a", calls(&["x", "y"])), ("r", result("x"))]).await;
    let pending = transcript.pending_calls().await.unwrap();
    assert_eq!(pending.calls().map(|(id, _)| id).collect::<Vec<_>>(), ["y"]);
    transcript.append(Body::SessionInfo { name: None }, None).await.unwrap();
    assert!(!transcript.pending_calls().await.unwrap().is_empty());
    say(&mut transcript, [("v", user("2", 2))]).await;
    assert!(transcript.pending_calls().await.unwrap().is_empty());
    let context = transcript.context().await.unwrap().messages;
    let Message::ToolResult(made) = &*context[3] else { panic!("{context:?}") };
    assert_eq!((made.tool_call_id.as_str(), made.is_error), ("y", true));
    assert_eq!(made.content, [Block::text(MISSING_RESULT)]);
    assert_eq!(context.len(), 5);
}

async fn settings_are_noted_once(storage: &dyn Storage) {
    let all = storage.open();
    let named = all.of_new(&agent(), &SessionId::new("s")).unwrap();
    let settings = |model: &str| ModelSettings {
        provider: "p".to_owned(),
        model_id: model.to_owned(),
        api: "api".to_owned(),
        thinking_level: "low".to_owned(),
        touches_cache: false,
    };
    for (model, count) in [("m", 3), ("m", 3), ("n", 5), ("n", 5)] {
        let (transcript, context) =
            lock(&all, &named).await.begin(None, new("s"), settings(model), None).await.unwrap();
        assert_eq!(context.model, Some(("p".to_owned(), model.to_owned())));
        assert_eq!(context.thinking_level.as_deref(), Some("low"));
        assert_eq!(ids(&transcript).await.len(), count, "{model}");
    }
}

async fn a_compaction_hides_what_was_before(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("a", user("1", 1)), ("b", answer("2")), ("c", user("3", 3))]).await;
    let compaction = Compaction {
        summary: "S".to_owned(),
        first_kept_entry_id: "c".to_owned(),
        tokens_before: 9,
        details: None,
        from_hook: None,
    };
    transcript.append(Body::Compaction(compaction), None).await.unwrap();
    say(&mut transcript, [("d", answer("4"))]).await;
    let messages = transcript.context().await.unwrap().messages;
    assert_eq!(messages[1..], [user("3", 3), answer("4")].map(Arc::new));
    let Message::User(summary) = &*messages[0] else { panic!("{messages:?}") };
    assert!(summary.content.to_text().contains("\nS\n"));
    assert_eq!(ids(&transcript).await.len(), 5);
}

async fn a_compaction_may_show_what_it_keeps_in_part(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    let long = |id: &str| {
        let (tool_call_id, content) = (id.to_owned(), vec![Block::text("x".repeat(9_000))]);
        Message::ToolResult(ToolResultMessage { tool_call_id, content, ..ToolResultMessage::default() })
    };
    let said = [("a", user("1", 1)), ("b", calls(&["1"])), ("c", long("1"))];
    say(&mut transcript, said).await;
    let before = transcript.view().await.unwrap();
    assert_eq!((before.compaction, before.kept.len(), before.later.len()), (None, 0, 3));
    let compaction = Compaction {
        summary: "S".to_owned(),
        first_kept_entry_id: "b".to_owned(),
        tokens_before: 9,
        details: Some(json!({Compaction::RESULTS_UP_TO: 5_000})),
        from_hook: None,
    };
    let context = transcript.compact(compaction).await.unwrap();
    say(&mut transcript, [("d", calls(&["2"])), ("e", long("2"))]).await;
    let chars = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => match &result.content[0] {
            Block::Text(text) => Some(text.text.len()),
            _ => None,
        },
        _ => None,
    };
    let after = transcript.context().await.unwrap().messages;
    assert_eq!(context.messages[..], after[..3]);
    let shown: Vec<usize> = after.iter().filter_map(chars).collect();
    assert!(shown.len() == 2 && shown[0] <= 5_000 && shown[1] == 9_000, "{shown:?}");
    let view = transcript.view().await.unwrap();
    assert_eq!((view.kept.len(), view.later.len()), (2, 2));
    assert!(matches!(view.compaction.map(|entry| entry.body.clone()), Some(Body::Compaction(_))));
    assert_eq!(chars(view.kept[1].body.message().unwrap()), Some(9_000), "the entry itself is as it was");
}

async fn a_message_finds_its_turn(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    let turn = async |transcript: &Transcript, id: &str, at| {
        transcript.turn_of(vec![EntryId::new(id)], at, |_| true).await.unwrap().map(|turn| turn.state)
    };
    say(&mut transcript, [("a", user("1", 1))]).await;
    assert_eq!(turn(&transcript, "a", 1).await, Some(TurnState::Last));
    assert_eq!(turn(&transcript, "a", 2).await, None);
    say(&mut transcript, [("b", answer("2"))]).await;
    transcript.begin_turn().await.unwrap();
    say(&mut transcript, [("c", user("3", 3))]).await;
    assert_eq!(ids(&transcript).await, ["a", "b", "c"], "the turn before it has its end");
    let answered = turn(&transcript, "a", 1).await;
    let Some(TurnState::Answered(context)) = answered else { panic!("{answered:?}") };
    assert_eq!(context.messages, [user("1", 1), answer("2")].map(Arc::new));
    transcript.begin_turn().await.unwrap();
    say(&mut transcript, [("d", user("4", 4)), ("e", answer("5"))]).await;
    assert_eq!(ids(&transcript).await.len(), 6, "what comes next is said to be a turn of its own");
    assert_eq!(turn(&transcript, "c", 3).await, Some(TurnState::Overtaken));
    assert_eq!(turn(&transcript, "d", 4).await, Some(TurnState::Last));
}

async fn a_plain_turn_can_be_left_behind(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    let leave = async |transcript: &mut Transcript, id: &str, at| {
        transcript.leave_turn(vec![EntryId::new(id), EntryId::new("other")], at).await.unwrap()
    };
    let change = || Body::ModelChange { provider: "p".to_owned(), model_id: "m".to_owned() };
    // The first of all, with the settings noted for it.
    transcript.append(change(), None).await.unwrap();
    say(&mut transcript, [("a", user("1", 1)), ("b", answer("2"))]).await;
    assert!(!leave(&mut transcript, "a", 2).await, "said at another time");
    assert!(!leave(&mut transcript, "b", 1).await, "no message of that id");
    assert!(leave(&mut transcript, "a", 1).await);
    assert_eq!(ids(&transcript).await.len(), 1, "only what says that it was left");
    assert_eq!(transcript.context().await.unwrap().messages, []);
    assert!(!leave(&mut transcript, "a", 1).await, "it is gone");
    // Behind another turn, twice.
    say(&mut transcript, [("c", user("3", 3)), ("d", answer("4"))]).await;
    for (id, at) in [("e", 5), ("f", 6)] {
        transcript.append(change(), None).await.unwrap();
        transcript.append_message(user("beat", at), Some(EntryId::new(id))).await.unwrap();
        transcript.append_message(answer("ok"), None).await.unwrap();
        assert!(leave(&mut transcript, id, at).await);
        assert!(transcript.contains(id), "it stays in the file");
        let context = transcript.context().await.unwrap();
        assert_eq!(context.messages, [user("3", 3), answer("4")].map(Arc::new));
    }
    let left = ids(&transcript).await;
    assert_eq!((left.len(), &left[1..3]), (4, &["c".to_owned(), "d".to_owned()][..]), "{left:?}");
    // The next process finds it so.
    transcript.sync().await.unwrap();
    let named = transcript.transcript().clone();
    drop(transcript);
    let mut transcript = lock(&storage.open(), &named).await.open().await.unwrap();
    assert_eq!(ids(&transcript).await, left);
    // A turn that did something, or in which others spoke, stays.
    say(&mut transcript, [("g", user("7", 7)), ("h", calls(&["x"])), ("i", result("x")), ("j", answer("8"))])
        .await;
    assert!(!leave(&mut transcript, "g", 7).await);
    say(&mut transcript, [("k", user("9", 9)), ("l", user("10", 10)), ("m", answer("11"))]).await;
    assert!(!leave(&mut transcript, "k", 9).await);
    say(&mut transcript, [("n", user("12", 12))]).await;
    assert!(!leave(&mut transcript, "n", 12).await, "it has no answer");
}

async fn a_fork_has_the_branch_and_its_labels(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    let label = |target: &str, label: Option<&str>| Body::Label {
        target_id: EntryId::new(target),
        label: label.map(str::to_owned),
    };
    say(&mut transcript, [("a", user("1", 1)), ("b", answer("2")), ("left", user("3", 3))]).await;
    for body in [label("a", Some("old")), label("left", Some("x")), label("b", Some("y")), label("b", None)] {
        transcript.append(body, None).await.unwrap();
    }
    transcript.append(label("a", Some("start")), None).await.unwrap();
    transcript.branch(Branch::At(EntryId::new("b"))).await.unwrap();
    say(&mut transcript, [("c", user("4", 4))]).await;
    let named = transcript.transcript().clone();
    drop(transcript);
    let child = all.of_fork(&named, &SessionId::new("child"), 7);
    lock(&all, &named).await.fork(child.clone(), new("child")).await.unwrap();
    let forked = lock(&all, &child).await.open().await.unwrap();
    let header = forked.header();
    assert_eq!((header.id.as_str(), header.parent_session), ("child", Some(named.to_string())));
    let entries = forked.entries().await.unwrap();
    assert_eq!(entries[..3].iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(
        entries[3..].iter().map(|entry| entry.body.clone()).collect::<Vec<_>>(),
        [label("a", Some("start"))]
    );
    assert_eq!(ids(&opened(&all, "s").await).await, ["a", "b", "c"], "the parent stays as it is");
    let none = all.of_new(&agent(), &SessionId::new("none")).unwrap();
    let refused = lock(&all, &none).await.fork(child, new("child")).await;
    assert!(matches!(refused, Err(TranscriptError::Missing(_))), "{refused:?}");
}

async fn a_cut_parts_no_call_from_its_result(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("u1", user("1", 1)), ("a1", answer("2")), ("u2", user("3", 3))]).await;
    say(&mut transcript, [("a2", calls(&["x"])), ("r2", result("x")), ("a3", answer("4"))]).await;
    let named = transcript.transcript().clone();
    drop(transcript);
    let most = |most: usize| NonZeroUsize::new(most).unwrap();
    let whole = lock(&all, &named).await.truncate(most(6)).await.unwrap();
    assert_eq!((whole.kept, whole.archived), (6, None));
    let cut = lock(&all, &named).await.truncate(most(2)).await.unwrap();
    assert_eq!(cut.kept, 4, "the last turn stays whole");
    assert!(cut.archived.is_some_and(|archived| archived.starts_with(&format!("{named}.bak."))));
    let entries = opened(&all, "s").await.entries().await.unwrap();
    let links: Vec<_> = entries
        .iter()
        .map(|entry| (entry.id.as_str(), entry.parent_id.as_ref().map(EntryId::as_str)))
        .collect();
    assert_eq!(links, [("u2", None), ("a2", Some("u2")), ("r2", Some("a2")), ("a3", Some("r2"))]);
    let none = all.of_new(&agent(), &SessionId::new("none")).unwrap();
    let refused = lock(&all, &none).await.truncate(most(1)).await;
    assert!(matches!(refused, Err(TranscriptError::Missing(_))), "{refused:?}");
}

async fn an_archived_transcript_is_gone(storage: &dyn Storage) {
    let all = storage.open();
    let mut transcript = opened(&all, "s").await;
    say(&mut transcript, [("a", user("1", 1))]).await;
    transcript.sync().await.unwrap();
    let named = transcript.transcript().clone();
    let kept = transcript.keep();
    let archived = all.archive(&named).unwrap();
    assert!(archived.starts_with(&format!("{named}.deleted.")), "{archived}");
    assert_eq!(all.find(&agent(), &row("s")), None);
    assert!(all.archive(&named).is_err() && !all.exists(&named));
    let fresh = lock(&all, &named).await.reopen(Some(kept), new("s")).await.unwrap();
    assert!(ids(&fresh).await.is_empty(), "who kept it begins anew");
}

async fn a_transcript_has_one_writer_at_a_time(storage: &dyn Storage) {
    let all = storage.open();
    let transcript = opened(&all, "s").await;
    let named = transcript.transcript().clone();
    let held = TranscriptLock::acquire_soon(&all, &named, NOW).await;
    let us = Some(std::process::id());
    assert!(matches!(held, Err(LockError::Held { holder, .. }) if holder == us), "{held:?}");
    let mut next = Box::pin(TranscriptLock::acquire(&all, &named));
    assert!(tokio::time::timeout(NOW, &mut next).await.is_err());
    drop(transcript);
    let lock = next.await.unwrap();
    assert!(all.is_locked(&named).unwrap());
    // The opener keeps the lock for as long as they use the transcript.
    let transcript = lock.open().await.unwrap();
    drop(lock);
    assert!(all.is_locked(&named).unwrap());
    let kept = transcript.keep();
    assert!(!all.is_locked(&named).unwrap(), "{kept:?}");
}

async fn what_another_process_has_is_waited_for(storage: &dyn Storage) {
    let all = storage.open();
    drop(opened(&all, "s").await);
    let named = all.find(&agent(), &row("s")).unwrap();
    storage.hold(&named, true);
    assert!(all.is_locked(&named).unwrap());
    let held = TranscriptLock::acquire_now(&all, &named).await;
    let Err(LockError::Held { transcript, .. }) = &held else { panic!("{held:?}") };
    assert_eq!(*transcript, named);
    let waiting = TranscriptLock::until_free(&all, &named);
    let release = async { storage.hold(&named, false) };
    tokio::join!(waiting, release);
    assert!(TranscriptLock::acquire_now(&all, &named).await.is_ok());
}
