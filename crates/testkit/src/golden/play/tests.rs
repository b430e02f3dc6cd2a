use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::*;

const ERRORS: &str = include_str!("../../../../../tests/golden/gw-errors.jsonl");
const REFUSED: &str = include_str!("../../../../../tests/golden/gw-connect-fail-bad-token.jsonl");

/// Plays the gateway's part of a recording of one connection, each frame changed by `change` (which may drop it).
async fn parrot(
    listener: &TcpListener,
    recording: &str,
    change: impl Fn(usize, Value) -> Option<Value>,
) -> Result<()> {
    let (stream, _) = listener.accept().await?;
    let mut socket = accept_async(stream).await?;
    let mut seq = 0;
    for line in read(recording)? {
        match line.step {
            RecordedStep::Send(_) | RecordedStep::SendRaw(_) => drop(hear(&mut socket).await),
            RecordedStep::Receive(mut frame) => {
                better_hello(&mut frame);
                if frame.get("seq").is_some() {
                    seq += 1;
                    frame["seq"] = json!(seq);
                }
                if let Some(frame) = change(line.number, frame) {
                    socket.send(Message::text(frame.to_string())).await?;
                }
            }
            RecordedStep::Closed { code, reason } => {
                socket.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).await?;
            }
            RecordedStep::Leave | RecordedStep::Note(_) => {}
        }
    }
    while let Some(text) = hear(&mut socket).await {
        let id = serde_json::from_str::<Value>(&text)?["id"].clone();
        socket.send(Message::text(json!({"type": "res", "id": id, "ok": false}).to_string())).await?;
    }
    Ok(())
}

async fn hear(socket: &mut WebSocketStream<TcpStream>) -> Option<String> {
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            return Some(text.to_string());
        }
    }
    None
}

async fn play(
    recording: &str,
    deviations: Vec<Deviation>,
    change: impl Fn(usize, Value) -> Option<Value>,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let replay = Replay::at(port, Live::default()).deviations(deviations);
    tokio::select! {
        result = replay.play(recording) => result.map_or_else(|error| format!("{error:#}"), |()| "as recorded".into()),
        Err(error) = parrot(&listener, recording, change) => panic!("{error}"),
    }
}

#[tokio::test]
async fn who_answers_as_recorded_passes() {
    assert_eq!(play(ERRORS, Vec::new(), |_, frame| Some(frame)).await, "as recorded");
    assert_eq!(play(REFUSED, Vec::new(), |_, frame| Some(frame)).await, "as recorded");
}

#[tokio::test]
async fn any_difference_is_found() {
    let other = |number, change: fn(&mut Value)| {
        move |line, mut frame: Value| {
            if line == number {
                change(&mut frame);
            }
            Some(frame)
        }
    };
    for (told, line, change) in [
        ("at /error/code", 6, (|frame| frame["error"]["code"] = json!("OTHER")) as fn(&mut Value)),
        ("at /id", 6, |frame| frame["id"] = json!("95")),
        ("\"more\" is not in the recording", 8, |frame| frame["more"] = json!(1)),
        ("no \"error\"", 8, |frame| drop(frame.as_object_mut().unwrap().remove("error"))),
        ("event number 7 after 0", 4, |frame| frame["seq"] = json!(7)),
    ] {
        let story = play(ERRORS, Vec::new(), other(line, change)).await;
        assert!(story.contains(told), "{told}: {story}");
    }
    let story = play(ERRORS, Vec::new(), |line, frame| (line != 56).then_some(frame)).await;
    assert!(story.contains("line 56"), "{story}");
    let extra = |line, frame| {
        if line == 60 { Some(json!({"type": "event", "event": "chat", "payload": {}})) } else { Some(frame) }
    };
    let deviations = vec![Deviation { lines: 60..=60, why: "", change: LineChange::Skip }];
    let story = play(ERRORS, deviations, extra).await;
    assert!(story.contains("came without being in the recording"), "{story}");
}

#[tokio::test]
async fn deviations_change_what_is_expected() {
    let closes = |text: &'static str| {
        vec![Deviation { lines: 4..=4, why: "", change: LineChange::CloseWith(1008, text) }]
    };
    let story = play(REFUSED, closes("another reason"), |_, frame| Some(frame)).await;
    assert!(story.contains("another reason"), "{story}");
    let skip = vec![Deviation { lines: 6..=6, why: "", change: LineChange::Skip }];
    assert_eq!(play(ERRORS, skip, |line, frame| (line != 6).then_some(frame)).await, "as recorded");
    let edit = vec![Deviation {
        lines: 6..=6,
        why: "",
        change: LineChange::Edit(|frame| frame["ok"] = json!(true)),
    }];
    let story = play(ERRORS, edit, |_, frame| Some(frame)).await;
    assert!(story.contains("at /ok"), "{story}");
}
