//! A directory with 1,000 sessions of OpenClaw 2026.2.9: opened, changed and closed 100 times, nothing but what was
//! changed differs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{WsClient, reference_state};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{sessions_dir, turn};

const SESSIONS: usize = 1_000;
const CYCLES: usize = 100;

/// Fields that a turn may change. New fields may come, and only these may change.
const OF_A_TURN: &[&str] = &[
    "updatedAt",
    "lastInteractionAt",
    "lastInteractionKnownAt",
    "systemSent",
    "abortedLastRun",
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "modelProvider",
    "model",
    "contextTokens",
    "sessionFile",
    "skillsSnapshot",
    "systemPromptReport",
    "chatType",
    "origin",
    "deliveryContext",
    "lastChannel",
    "lastTo",
    "lastAccountId",
    "lastThreadId",
];

/// Action between start and stop.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// A setting of one session.
    Patch(usize),
    /// A turn in one session.
    Turn(usize),
    /// Looking at everything.
    Look,
}

#[tokio::test]
async fn only_what_was_changed_differs_after_a_hundred_lives_of_the_gateway() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let mut gateway = gateway()
        .fake_model(&model.v1())
        .config(json!({"session": {"reset": {"mode": "idle", "idleMinutes": 100_000_000}}}))
        .prepare()
        .unwrap();
    let sessions = reference_state::write(&gateway.state_dir(), SESSIONS).unwrap();
    let dir = sessions_dir(&gateway);
    let mut before = State::read(&dir);
    for cycle in 0..CYCLES {
        let deed = deed(cycle);
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        let target = match deed {
            Deed::Patch(number) => {
                let patch = json!({"key": sessions[number].key, "thinkingLevel": level(cycle)});
                client.request("sessions.patch", patch).await.unwrap();
                Some(&sessions[number])
            }
            Deed::Turn(number) => {
                let answer = turn(&mut client, &sessions[number].key, "hello", &format!("run-{cycle}")).await;
                assert_eq!(answer, "here");
                Some(&sessions[number])
            }
            Deed::Look => {
                look(&mut client, &sessions).await;
                None
            }
        };
        // A gateway waits a second for clients that do not hang up.
        drop(client);
        gateway.terminate().await.unwrap();
        let after = State::read(&dir);
        let what = format!("cycle {cycle}, {deed:?}");
        assert_eq!(before.rows_differing(&after), names(target.map(|s| s.key.as_str())), "{what}");
        let file = match deed {
            Deed::Turn(_) => before.transcript_of(&target.unwrap().id),
            Deed::Patch(_) | Deed::Look => None,
        };
        assert_eq!(before.files_differing(&after), names(file.as_deref()), "{what}");
        if let Some(target) = target {
            before.assert_row_keeps_the_rest(&after, &target.key, deed);
        }
        if let Some(file) = file {
            let (old, new) = (&before.files[&file], &after.files[&file]);
            assert!(new.starts_with(old), "{what}: only lines at the end are new");
        }
        before = after;
    }
}

fn deed(cycle: usize) -> Deed {
    // A session that may not send (every seventh, from the third) is only patched.
    let number = (cycle * 37) % SESSIONS;
    match (cycle % 3, number % 7) {
        (0, _) => Deed::Patch(number),
        (1, 2) => Deed::Turn(number + 1),
        (1, _) => Deed::Turn(number),
        (_, _) => Deed::Look,
    }
}

fn level(cycle: usize) -> &'static str {
    ["minimal", "medium"][cycle % 2]
}

fn names(name: Option<&str>) -> BTreeSet<String> {
    name.map(str::to_owned).into_iter().collect()
}

/// Calls everything that only reads.
async fn look(client: &mut WsClient, sessions: &[reference_state::DirectorySession]) {
    let all = json!({"includeDerivedTitles": true, "includeLastMessage": true});
    let listed = client.request("sessions.list", all).await.unwrap();
    // Rows of single cron runs are hidden.
    let hidden = sessions.iter().filter(|session| session.key.contains(":run:")).count();
    assert_eq!(listed["count"], sessions.len() - hidden);
    for session in sessions.iter().step_by(97) {
        client.request("chat.history", json!({"sessionKey": session.key})).await.unwrap();
        client.request("sessions.preview", json!({"keys": [session.key]})).await.unwrap();
    }
    for method in ["health", "status"] {
        client.request(method, json!({})).await.unwrap();
    }
}

/// Content of the directory: the store row by row, every other file whole.
struct State {
    rows: BTreeMap<String, String>,
    order: Vec<String>,
    files: BTreeMap<String, Vec<u8>>,
}

impl State {
    fn read(dir: &Path) -> Self {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            files.insert(entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
        }
        let store = String::from_utf8(files.remove("sessions.json").unwrap()).unwrap();
        let (order, rows) = rows_of(&store);
        Self { rows, order, files }
    }

    fn rows_differing(&self, after: &Self) -> BTreeSet<String> {
        assert_eq!(self.order, after.order, "rows keep their places");
        let differs = |key: &&String| self.rows[*key] != after.rows[*key];
        self.order.iter().filter(differs).cloned().collect()
    }

    fn files_differing(&self, after: &Self) -> BTreeSet<String> {
        let names: BTreeSet<&String> = self.files.keys().chain(after.files.keys()).collect();
        let differs = |name: &&&String| self.files.get(**name) != after.files.get(**name);
        names.iter().filter(differs).map(|name| (*name).clone()).collect()
    }

    fn transcript_of(&self, id: &str) -> Option<String> {
        self.files.keys().find(|name| name.starts_with(id)).cloned()
    }

    fn assert_row_keeps_the_rest(&self, after: &Self, key: &str, deed: Deed) {
        let [old, new] = [self, after].map(|state| {
            serde_json::from_str::<Value>(&state.rows[key]).unwrap_or_else(|error| panic!("{key}: {error}"))
        });
        let may_change = match deed {
            Deed::Turn(_) => OF_A_TURN,
            Deed::Patch(_) | Deed::Look => &["updatedAt", "thinkingLevel"][..],
        };
        for (field, value) in old.as_object().unwrap() {
            if !may_change.contains(&field.as_str()) {
                assert_eq!(new.get(field), Some(value), "{key}: {field}");
            }
        }
        for field in new.as_object().unwrap().keys() {
            assert!(
                old.get(field).is_some() || may_change.contains(&field.as_str()),
                "{key}: {field} is new"
            );
        }
    }
}

/// Keys in their order, and the text of each row, of a file that has one line a field.
fn rows_of(store: &str) -> (Vec<String>, BTreeMap<String, String>) {
    let mut order = Vec::new();
    let mut rows = BTreeMap::new();
    let body = store.strip_prefix("{\n").unwrap().strip_suffix("\n}").unwrap();
    let mut current = String::new();
    for line in body.lines() {
        current.push_str(line);
        current.push('\n');
        if line == "  }," || line == "  }" {
            let row = current.trim_end().trim_end_matches(',').to_owned();
            let (key, value) = row.split_once("\": ").unwrap();
            let key = key.trim_start().trim_start_matches('"').to_owned();
            order.push(key.clone());
            rows.insert(key, value.to_owned());
            current.clear();
        }
    }
    (order, rows)
}
