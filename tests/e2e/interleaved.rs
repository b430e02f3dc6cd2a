//! Stops, injected words, resets and deletions in every order, sent at once, at each step of a run: what was said before a reset
//! is whole in the old transcript and nothing of it is in the new one, and each request is answered with what it did.

use std::collections::{BTreeMap, BTreeSet};

use openclaw_testkit::model_server::{Captured, ModelServer, Reply, ScriptedCall, Step};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::conversation::{end, history, message, sessions_dir, turn, well_formed, words};
use crate::gateway;

/// How far the run is when the requests come.
#[derive(Debug, Clone, Copy)]
enum Progress {
    /// It waits for another session to give it a place.
    Queued,
    /// The model was asked and has said nothing.
    Asked,
    /// The model has said something.
    Streaming,
    /// A tool works.
    Tool,
    /// The model has the tool's result.
    ToolDone,
    /// It is over.
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
}

const ACTIONS: [Action; 4] = [Action::Abort, Action::Inject, Action::Reset, Action::Delete];

/// One, two, or all of them, in every order.
fn orders() -> Vec<Vec<Action>> {
    let mut longer = vec![vec![]];
    let mut all = Vec::new();
    for length in 1..=ACTIONS.len() {
        longer = longer
            .into_iter()
            .flat_map(|order: Vec<Action>| {
                let others = ACTIONS.into_iter().filter(|action| !order.contains(action)).collect::<Vec<_>>();
                others.into_iter().map(move |action| [order.clone(), vec![action]].concat())
            })
            .collect();
        if length != 3 {
            all.extend(longer.clone());
        }
    }
    all
}

#[tokio::test]
async fn every_order_of_changes_at_every_step_of_a_run() {
    let (asked_in, mut asked) = mpsc::unbounded_channel();
    let answer = move |request: &Captured| {
        let reply = answer(request);
        // The test may be over.
        let _ = asked_in.send(request.last_user_text());
        reply
    };
    let model = ModelServer::answering(answer).await.forgetful();
    // One place, so that a run of another session keeps all others waiting.
    let config = json!({"agents": {"defaults": {"maxConcurrent": 1}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let login = Login::token(TOKEN).with("caps", json!(["tool-activity"]));
    let (mut client, _) = WsClient::connect(gateway.port(), login).await.unwrap();
    let mut injected = BTreeMap::new();
    let mut sessions = BTreeSet::new();
    let orders = orders();
    for progress in EACH_STEP {
        for (number, order) in orders.iter().enumerate() {
            if matches!(progress, Progress::Tool) && order == &[Action::Inject] {
                // It would be refused after eight seconds: the tool's result comes first.
                continue;
            }
            let case = Case { session: format!("{progress:?}-{number}").to_lowercase(), progress, order };
            for (word, count) in case.check(&mut client, &mut asked).await {
                injected.insert(word, count);
            }
            client.take_passed();
            sessions.insert(case.session);
        }
    }
    drop(client);
    gateway.terminate().await.unwrap();
    let said = said(&gateway);
    for session in sessions {
        for text in [format!("before {session}"), format!("work {session}"), format!("after {session}")] {
            assert_eq!(said.get(&text), Some(&1), "{text} stands once, wherever");
        }
    }
    for (text, count) in injected {
        assert_eq!(said.get(&text).copied().unwrap_or(0), count, "{text}");
    }
}

/// How often each text stands in any transcript, also in those that were put away.
fn said(gateway: &GatewayUnderTest) -> BTreeMap<String, usize> {
    let mut said = BTreeMap::new();
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
            *said.entry(words.to_owned()).or_default() += 1;
        }
    }
    said
}

fn answer(request: &Captured) -> Reply {
    // What was stopped before, and a note about it, may stand in front of it.
    let text = request.last_user_text();
    let text = text.rsplit_once(" UTC] ").map_or(text.as_str(), |(_, text)| text);
    let is = |asked: &str| text.contains(asked);
    if is("after ") || is("before ") || is("work over") || is("work queued") {
        Reply::text("well")
    } else if is("block") || is("work asked") {
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

/// One order of requests at one step of a run.
struct Case<'a> {
    session: String,
    progress: Progress,
    order: &'a [Action],
}

impl Case<'_> {
    /// Gives how often each injected text has to stand in a transcript.
    async fn check(
        &self,
        client: &mut WsClient,
        asked: &mut mpsc::UnboundedReceiver<String>,
    ) -> Vec<(String, usize)> {
        let session = &self.session;
        let run = format!("run-{session}");
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
        let mut sent = Vec::new();
        for (at, action) in self.order.iter().enumerate() {
            let (method, params) = match action {
                Action::Abort => ("chat.abort", json!({"sessionKey": session})),
                Action::Inject => ("chat.inject", json!({"sessionKey": session, "message": self.note(at)})),
                Action::Reset => ("sessions.reset", json!({"key": session})),
                Action::Delete => ("sessions.delete", json!({"key": session})),
            };
            sent.push(client.send(method, params).await.unwrap());
        }
        let mut now = Now { is_active: !matches!(self.progress, Progress::Over), is_old: true };
        let mut expected = Vec::new();
        let mut counts = Vec::new();
        for (at, (action, id)) in self.order.iter().zip(&sent).enumerate() {
            let answer = client.answer(id).await.unwrap();
            match action {
                Action::Abort => {
                    let stopped = if now.is_active { json!([run]) } else { json!([]) };
                    assert_eq!(answer.payload["runIds"], stopped, "{context}");
                    now.is_active = false;
                }
                Action::Inject => {
                    // It needs a transcript: none is begun anew for it.
                    assert_eq!(answer.ok, now.is_old, "{context}: {answer:?}");
                    counts.push((self.note(at), usize::from(answer.ok)));
                    if answer.ok {
                        expected.push(format!("assistant: {}", self.note(at)));
                    }
                }
                Action::Reset | Action::Delete => {
                    assert!(answer.ok, "{context}: {answer:?}");
                    now = Now { is_active: false, is_old: false };
                    expected.clear();
                }
            }
        }
        if now.is_active {
            client.request("chat.abort", json!({"sessionKey": session})).await.unwrap();
        }
        if let Progress::Queued = self.progress {
            client.request("chat.abort", json!({"sessionKey": "other"})).await.unwrap();
        }
        if !matches!(self.progress, Progress::Over) {
            assert_eq!(end(client, &run).await["state"], "aborted", "{context}");
        }
        turn(client, session, &format!("after {session}"), &format!("after-{session}")).await;
        expected.extend([format!("user: after {session}"), "assistant: well".to_owned()]);
        let mut history = history(client, session).await;
        if now.is_old {
            let start = [format!("user: before {session}"), "assistant: well".to_owned()];
            assert_eq!(history.drain(..2).collect::<Vec<_>>(), start, "{context}");
            assert!(history.contains(&format!("user: {work}")), "{context}: {history:?}");
            // What the run said or did stands among them.
            history.retain(|line| expected.contains(line));
        }
        if matches!(self.progress, Progress::Over) && now.is_old {
            expected.insert(0, "assistant: well".to_owned());
        }
        assert_eq!(history, expected, "{context}");
        counts
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

/// What the session is between two requests.
struct Now {
    is_active: bool,
    /// Whether the conversation is that of the run.
    is_old: bool,
}

/// What a message means is settled when it is accepted.
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
