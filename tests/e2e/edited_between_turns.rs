//! Edits between two turns, by a person or another program, are in the next request: lines of a
//! long transcript, and the files of the workspace.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openclaw_testkit::model_server::ModelServer;
use openclaw_testkit::{GatewayUnderTest, WsClient, long_sessions};
use serde_json::Value;

use crate::gateway;
use crate::support::conversation::{turn, words};
use crate::support::skills::model;

/// A gateway with one session of so many messages.
async fn long_session(model: &ModelServer, messages: usize) -> (GatewayUnderTest, WsClient, PathBuf) {
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    long_sessions::write(&gateway.state_dir(), 1, messages).unwrap();
    gateway.start().await.unwrap();
    let client = gateway.client().await.unwrap();
    let path = long_sessions::transcript(&gateway.state_dir(), 0);
    (gateway, client, path)
}

/// Texts of a list of messages, in order, without the system prompt.
fn said<'m>(messages: impl IntoIterator<Item = &'m Value>) -> Vec<String> {
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => words(text).to_owned(),
        blocks => words(blocks[0]["text"].as_str().unwrap()).to_owned(),
    };
    messages.into_iter().filter(|message| message["role"] != "system").map(text).collect()
}

/// Texts of a transcript.
fn said_in(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    said(entries.iter().map(|entry| &entry["message"]).filter(|message| message.is_object()))
}

#[tokio::test]
async fn the_next_request_says_what_a_transcript_says_that_was_edited_by_hand() {
    let model = model().await;
    let (_gateway, mut client, path) = long_session(&model, 2_000).await;
    let session = long_sessions::key(0);
    turn(&mut client, &session, "before", "run-before").await;
    let read = || std::fs::read_to_string(&path).unwrap();
    let replace = |text: String| {
        let beside = path.with_extension("new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, &path).unwrap();
    };
    let append = || {
        let text = read();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let parent = &last["id"];
        let lines: String =
            [("user", "aa000001", parent.clone()), ("assistant", "aa000002", "aa000001".into())]
                .map(|(role, id, parent)| {
                    let mut entry = last.clone();
                    entry["id"] = id.into();
                    entry["parentId"] = parent;
                    entry["message"]["role"] = role.into();
                    entry["message"]["content"][0]["text"] = format!("appended by hand, {role}").into();
                    format!("{entry}\n")
                })
                .concat();
        std::fs::write(&path, text + &lines).unwrap();
    };
    let cut_off = || {
        let text = read();
        let half: usize = text.split_inclusive('\n').take(1_001).map(str::len).sum();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(half as u64).unwrap();
    };
    // Of the same length, so that only the time of the file tells.
    let change = || std::fs::write(&path, read().replace("Line 1000 of a", "Line 1000, the")).unwrap();
    let edits: [(&str, &dyn Fn()); 5] = [
        ("a line in the middle is changed", &change),
        ("lines are appended", &append),
        ("the file is replaced", &|| replace(read().replace("Line 1001 of a", "Line 1001, another"))),
        ("it is replaced by one of the same length", &|| {
            replace(read().replace("Line 1002 of", "Line 1002 at"))
        }),
        ("its end is cut off", &cut_off),
    ];
    for (number, (what, edit)) in edits.iter().enumerate() {
        let before = said_in(&path);
        edit();
        let mut expected = said_in(&path);
        assert_ne!(before, expected, "{what}: nothing was edited");
        expected.push(what.to_string());
        turn(&mut client, &session, what, &format!("run-{number}")).await;
        let asked = said(model.requests().last().unwrap().messages());
        let different = expected.iter().zip(&asked).find(|(expected, asked)| expected != asked);
        assert_eq!((different, asked.len()), (None, expected.len()), "{what}");
        expected.push("well".to_owned());
        assert_eq!(said_in(&path), expected, "{what}: the conversation goes on behind it");
    }
}

#[tokio::test]
async fn a_session_of_ten_thousand_turns_answers() {
    const TURNS: usize = 10_000;
    let model = model().await;
    let (_gateway, mut client, path) = long_session(&model, 2 * TURNS).await;
    for number in 0..2 {
        assert_eq!(
            turn(&mut client, &long_sessions::key(0), "hello", &format!("run-{number}")).await,
            "well"
        );
        let asked = said(model.requests().last().unwrap().messages());
        assert_eq!(asked.len(), 2 * TURNS + 2 * number + 1);
    }
    assert_eq!(said_in(&path).len(), 2 * TURNS + 4);
}

#[tokio::test]
async fn the_next_prompt_shows_a_workspace_file_that_was_changed_replaced_or_removed() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let (soul, beside) = (workspace.join("SOUL.md"), workspace.join("new"));
    let write = |text: &str| std::fs::write(&soul, text).unwrap();
    let replace = |text: &str| {
        std::fs::write(&beside, text).unwrap();
        let modified = soul.metadata().unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&beside).unwrap().set_modified(modified).unwrap();
        std::fs::rename(&beside, &soul).unwrap();
    };
    let steps: [(&dyn Fn(), Option<&str>); 6] = [
        (&|| write("soul: one"), Some("soul: one")),
        // Within the same second, and of the same length.
        (&|| write("soul: two"), Some("soul: two")),
        (&|| replace("soul: six"), Some("soul: six")),
        (&|| std::fs::remove_file(&soul).unwrap(), None),
        (&|| write("soul: ten"), Some("soul: ten")),
        (&|| write("soul: a longer one"), Some("soul: a longer one")),
    ];
    let mut turns = 0;
    // At once; and once the gateway has seen the file unchanged for so long that it need not read it again.
    for settled in [Duration::ZERO, Duration::from_millis(1_100)] {
        for (change, expected) in &steps {
            change();
            let changed = Instant::now();
            loop {
                turns += 1;
                turn(&mut client, "main", "hello", &format!("run-{turns}")).await;
                let prompt = model.requests().last().unwrap().messages()[0].to_string();
                for text in steps.iter().filter_map(|(_, text)| *text) {
                    assert_eq!(prompt.contains(text), *expected == Some(text), "turn {turns}: {text}");
                }
                if changed.elapsed() >= settled {
                    break;
                }
            }
        }
    }
}
