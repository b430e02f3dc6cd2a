//! Stops, injected words, settings, resets, `/new` and deletions in every order, sent at once, at each step of a run, also behind a
//! message that was steered into it and not taken: what was said before a reset is whole in the old transcript and nothing of it is
//! in the new one, and each request is answered with what it did.

use std::collections::BTreeMap;
use std::path::PathBuf;

use Action::{Abort, Delete, Inject, New, Patch, Reset};
use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::gateway;
use crate::support::conversation::{
    end, history, message, said_history, sessions_dir, turn, well_formed, words,
};

/// Progress of the run when the requests come.
#[derive(Debug, Clone, Copy)]
enum Progress {
    /// The run waits for another session to give it a place.
    Queued,
    /// The model was asked and has said nothing.
    Asked,
    /// The model has said something.
    Streaming,
    /// A tool works.
    Tool,
    /// The model has the tool's result.
    ToolDone,
    /// The run is over.
    Over,
}

const EACH_STEP: [Progress; 6] = [
    Progress::Queued,
    Progress::Asked,
    Progress::Streaming,
    Progress::Tool,
    Progress::ToolDone,
    Progress::Over,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Abort,
    Inject,
    Reset,
    Delete,
    New,
    Patch,
}

/// Orders of so many of these actions, each action at most once.
fn orders(actions: &[Action], length: usize) -> Vec<Vec<Action>> {
    let mut orders = vec![vec![]];
    for _ in 0..length {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<Action>| {
                let others = actions.iter().filter(|action| !order.contains(action)).collect::<Vec<_>>();
                others.into_iter().map(move |action| [order.clone(), vec![*action]].concat())
            })
            .collect();
    }
    // The order of a stop and `/new` can't be told from outside before `/new` has begun its
    // conversation.
    let is_told = |order: &Vec<Action>| {
        let at = |action| order.iter().position(|other| *other == action);
        at(New).zip(at(Abort)).is_none_or(|(new, abort)| new >= abort)
    };
    orders.into_iter().filter(is_told).collect()
}

/// Orders of one or two of all actions.
fn short_orders() -> Vec<Vec<Action>> {
    let all = [Abort, Inject, Reset, Delete, New, Patch];
    [orders(&all, 1), orders(&all, 2)].concat()
}

#[tokio::test]
async fn every_order_of_changes_at_every_step_of_a_run() {
    every_order("collect", &[short_orders(), orders(&[Abort, Inject, Reset, Delete], 4)].concat()).await;
}

#[tokio::test]
async fn every_order_of_changes_behind_a_steered_message() {
    every_order("steer", &[short_orders(), orders(&[Inject, Reset, New, Patch], 3)].concat()).await;
}

async fn every_order(queue_mode: &str, orders: &[Vec<Action>]) {
    let (asked_in, mut asked) = mpsc::unbounded_channel();
    let answer = move |request: &Captured| {
        let reply = answer(request);
        // The test may be over.
        let _ = asked_in.send(request.last_user_text());
        reply
    };
    let model = ModelServer::answering(answer).await.forgetful();
    // Waiting messages do not wait for a quiet moment.
    let queue = json!({"mode": queue_mode, "debounceMs": 0});
    // A single place, so that a run of another session keeps all others waiting.
    let config = json!({"agents": {"defaults": {"maxConcurrent": 1}}, "messages": {"queue": queue}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let login = Login::token(TOKEN).with("caps", json!(["tool-activity"]));
    let (mut client, _) = WsClient::connect(gateway.port(), login).await.unwrap();
    let mut injected = BTreeMap::new();
    let mut labels = BTreeMap::new();
    for progress in EACH_STEP {
        for (number, order) in orders.iter().enumerate() {
            let stops = order.iter().any(|action| !matches!(action, Inject | Patch));
            if matches!(progress, Progress::Tool) && order.contains(&Inject) && !stops {
                // An injection would be refused after eight seconds: the tool's result comes first.
                continue;
            }
            let session = format!("{progress:?}-{number}").to_lowercase();
            let case = Case { session, progress, order, is_steered: queue_mode == "steer" };
            let (words, label) = case.check(&mut client, &mut asked).await;
            injected.extend(words);
            labels.insert(case.session, label);
            client.take_passed();
        }
    }
    let rows = client.request("sessions.list", json!({"limit": 100_000})).await.unwrap();
    for row in rows["sessions"].as_array().unwrap() {
        let session = row["key"].as_str().unwrap().trim_start_matches("agent:main:");
        let expected = labels.get(session).cloned().flatten();
        assert_eq!(row["label"].as_str(), expected.as_deref(), "{session}");
    }
    drop(client);
    gateway.terminate().await.unwrap();
    let said = said(&gateway);
    for session in labels.keys() {
        let work = said.get(&format!("work {session}"));
        for text in ["before", "work", "after", "more"] {
            let files = said.get(&format!("{text} {session}")).map_or(0, Vec::len);
            assert_eq!(
                files,
                usize::from(text != "more" || queue_mode == "steer"),
                "{text} {session} stands once"
            );
        }
        assert!(
            queue_mode != "steer" || said.get(&format!("more {session}")) == work,
            "{session}: in one transcript"
        );
    }
    for (text, count) in injected {
        assert_eq!(said.get(&text).map_or(0, Vec::len), count, "{text}");
    }
}

/// The transcripts each text stands in, also those that were put away.
fn said(gateway: &GatewayUnderTest) -> BTreeMap<String, Vec<PathBuf>> {
    let mut said: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in std::fs::read_dir(sessions_dir(gateway)).unwrap() {
        let path = file.unwrap().path();
        if !path.display().to_string().contains(".jsonl") {
            continue;
        }
        for entry in well_formed(&path) {
            let content = &entry["message"]["content"];
            let text = content.as_str().or(content[0]["text"].as_str()).unwrap_or_default();
            // A note about a stop may stand in front of it.
            let words = words(text);
            let words = words.rsplit_once(" UTC] ").map_or(words, |(_, words)| words);
            said.entry(words.to_owned()).or_default().push(path.clone());
        }
    }
    said
}

fn answer(request: &Captured) -> Reply {
    // A stopped message, and a note about it, may stand in front of it.
    let text = request.last_user_text();
    let text = text.rsplit_once(" UTC] ").map_or(text.as_str(), |(_, text)| text);
    let is = |asked: &str| text.contains(asked);
    if is("after ") || is("before ") || is("work over") || is("work queued") {
        Reply::text("well")
    } else if is("block") || is("work asked") || is("more ") || is("fresh ") {
        Reply::never()
    } else if is("work streaming") {
        Reply::steps([Step::Text("par".to_owned()), Step::Hang])
    } else if is("work tooldone") && request.ends_with_tool_result() {
        Reply::never()
    } else {
        call(if is("work tooldone") { "true" } else { "sleep 600" })
    }
}

fn call(command: &str) -> Reply {
    Reply::tools([ScriptedCall::new("call-1", "exec", &json!({"command": command}))])
}

/// Test case: an order of requests at one step of a run.
struct Case<'a> {
    session: String,
    progress: Progress,
    order: &'a [Action],
    /// True if a message is steered into the run first.
    is_steered: bool,
}

impl Case<'_> {
    /// Gives how often each injected text has to stand in a transcript, and the label the session has to have.
    async fn check(
        &self,
        client: &mut WsClient,
        asked: &mut mpsc::UnboundedReceiver<String>,
    ) -> (Vec<(String, usize)>, Option<String>) {
        let session = &self.session;
        let (run, more, new) =
            (format!("run-{session}"), format!("more-{session}"), format!("new-{session}"));
        let context = format!("{session} {:?}", self.order);
        turn(client, session, &format!("before {session}"), &format!("before-{session}")).await;
        if let Progress::Queued = self.progress {
            client
                .request("chat.send", message("other", "block", &format!("block-{session}")))
                .await
                .unwrap();
            while !asked.recv().await.unwrap().contains("block") {}
        }
        let work = format!("work {session}");
        client.request("chat.send", message(session, &work, &run)).await.unwrap();
        self.reach(client, asked, &run, &work).await;
        let mut active = if let Progress::Over = self.progress { vec![] } else { vec![run.clone()] };
        if self.is_steered {
            client.request("chat.send", message(session, &format!("more {session}"), &more)).await.unwrap();
            active.push(more);
        }
        let mut sent = Vec::new();
        for (at, action) in self.order.iter().enumerate() {
            let (method, params) = match action {
                Action::Abort => ("chat.abort", json!({"sessionKey": session})),
                Action::Inject => ("chat.inject", json!({"sessionKey": session, "message": self.note(at)})),
                Action::Reset => ("sessions.reset", json!({"key": session})),
                Action::Delete => ("sessions.delete", json!({"key": session})),
                Action::New => ("chat.send", message(session, &format!("/new fresh {session}"), &new)),
                Action::Patch => {
                    ("sessions.patch", json!({"key": session, "label": format!("of {session}")}))
                }
            };
            sent.push(client.send(method, params).await.unwrap());
        }
        let has_new = self.order.contains(&New);
        if has_new && let Progress::Queued = self.progress {
            // `/new` stops the run that waits, and takes its place in the queue.
            client.request("chat.abort", json!({"sessionKey": "other"})).await.unwrap();
        }
        let (mut now, mut label) = (Conversation::Old, None);
        let mut expected = Vec::new();
        let mut counts = Vec::new();
        for (at, (action, id)) in self.order.iter().zip(&sent).enumerate() {
            let answer = client.answer(id).await.unwrap();
            match action {
                Action::Abort => {
                    assert_eq!(answer.payload["runIds"], json!(active), "{context}");
                    active.clear();
                }
                Action::Inject => {
                    // An injection needs a transcript: none is begun anew for it.
                    assert_eq!(answer.ok, now != Conversation::NotBegun, "{context}: {answer:?}");
                    counts.push((self.note(at), usize::from(answer.ok)));
                    if answer.ok {
                        expected.push(format!("assistant: {}", self.note(at)));
                    }
                }
                Action::Reset | Action::Delete => {
                    assert!(answer.ok, "{context}: {answer:?}");
                    active.clear();
                    now = Conversation::NotBegun;
                    expected.clear();
                    label = label.filter(|_| *action == Reset);
                }
                Action::New => {
                    assert_eq!(answer.payload["status"], "started", "{context}: {answer:?}");
                    active = vec![new.clone()];
                    now = Conversation::New;
                    expected = vec![format!("user: fresh {session}")];
                }
                Action::Patch => {
                    assert!(answer.ok, "{context}: {answer:?}");
                    label = Some(format!("of {session}"));
                }
            }
        }
        if now == Conversation::New {
            // Stopped before, it would not begin its conversation.
            while !asked.recv().await.unwrap().contains(&format!("fresh {session}")) {}
        }
        if !active.is_empty() {
            client.request("chat.abort", json!({"sessionKey": session})).await.unwrap();
        }
        if !has_new && let Progress::Queued = self.progress {
            client.request("chat.abort", json!({"sessionKey": "other"})).await.unwrap();
        }
        if !matches!(self.progress, Progress::Over) {
            assert_eq!(end(client, &run).await["state"], "aborted", "{context}");
        }
        turn(client, session, &format!("after {session}"), &format!("after-{session}")).await;
        expected.extend([format!("user: after {session}"), "assistant: well".to_owned()]);
        let mut history = said_history(client, session).await;
        if now == Conversation::Old {
            let start = [format!("user: before {session}"), "assistant: well".to_owned()];
            assert_eq!(history.drain(..2).collect::<Vec<_>>(), start, "{context}");
            assert!(history.contains(&format!("user: {work}")), "{context}: {history:?}");
        } else {
            let is_of_before =
                |line: &String| line.starts_with("user: work") || line.starts_with("user: more");
            assert!(!history.iter().any(is_of_before), "{context}: {history:?}");
        }
        if now != Conversation::NotBegun {
            // Words and actions of the runs stand among them.
            history.retain(|line| expected.contains(line));
        }
        if matches!(self.progress, Progress::Over) && now == Conversation::Old {
            expected.insert(0, "assistant: well".to_owned());
        }
        assert_eq!(history, expected, "{context}");
        (counts, label)
    }

    fn note(&self, at: usize) -> String {
        format!("note {} {at}", self.session)
    }

    async fn reach(
        &self,
        client: &mut WsClient,
        asked: &mut mpsc::UnboundedReceiver<String>,
        run: &str,
        work: &str,
    ) {
        let of_run = |payload: &Value| payload["runId"] == run;
        let mut times = match self.progress {
            Progress::Queued => return,
            Progress::Over => {
                end(client, run).await;
                return;
            }
            Progress::Asked | Progress::Streaming | Progress::Tool => 1,
            Progress::ToolDone => 2,
        };
        while times > 0 {
            times -= usize::from(asked.recv().await.unwrap().contains(work));
        }
        match self.progress {
            Progress::Streaming => {
                client.event("chat", |said| of_run(said) && said["state"] == "delta").await.unwrap();
            }
            Progress::Tool => {
                client.event("agent", |said| of_run(said) && said["stream"] == "tool").await.unwrap();
            }
            Progress::Queued | Progress::Asked | Progress::ToolDone | Progress::Over => {}
        }
    }
}

/// The session's conversation between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversation {
    /// Conversation of the run.
    Old,
    /// Conversation that `/new` begins.
    New,
    /// No conversation exists, or nothing was said in it.
    NotBegun,
}

/// Settings of a message are fixed when it is accepted.
#[tokio::test]
async fn a_message_goes_by_the_settings_it_was_accepted_with() {
    let model = ModelServer::answering(answer).await;
    let config =
        json!({"agents": {"defaults": {"maxConcurrent": 1}}, "session": {"resetTriggers": ["/fresh"]}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "before main", "r0").await;
    client.request("chat.send", message("other", "block", "block")).await.unwrap();
    model.arrived(2).await;
    client.request("chat.send", message("main", "/fresh work over", "r1")).await.unwrap();
    let file = gateway.state_dir().join("openclaw.json");
    let changed = std::fs::read_to_string(&file).unwrap().replace("/fresh", "/begin");
    std::fs::write(&file, changed).unwrap();
    gateway.logged("config change applied: session.resetTriggers").await.unwrap();
    client.request("chat.abort", json!({"sessionKey": "other"})).await.unwrap();
    end(&mut client, "r1").await;
    let fresh = ["user: work over", "assistant: well"];
    assert_eq!(history(&mut client, "main").await, fresh, "it began anew, as the settings were");
    turn(&mut client, "main", "/fresh work over", "r2").await;
    let words = [&fresh[..], &["user: /fresh work over", "assistant: well"]].concat();
    assert_eq!(history(&mut client, "main").await, words, "now these are words");
}
