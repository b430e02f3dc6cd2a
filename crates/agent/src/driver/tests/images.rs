//! Images that are too large: whoever is called, and wherever in a run they come from.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use openclaw_protocol::message::{Block, ImageBlock, UserContent};
use tokio_util::sync::CancellationToken;

use super::stage::{Reply, Stage, call};
use super::*;
use crate::picture::samples::encoded;
use crate::picture::{PictureError, in_turn};

pub(super) fn picture(width: u32) -> Block {
    Block::Image(ImageBlock {
        data: STANDARD.encode(encoded(width, 10, ImageFormat::Png)),
        mime_type: "image/png".to_owned(),
        ..ImageBlock::default()
    })
}

fn said(words: &str, width: u32) -> UserMessage {
    let content = UserContent::Blocks(vec![Block::text(words), picture(width)]);
    UserMessage { content, ..UserMessage::default() }
}

fn images(messages: &[Arc<Message>]) -> Vec<&ImageBlock> {
    let blocks = messages.iter().flat_map(|message| match &**message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks.as_slice(),
            UserContent::Text(_) => &[],
        },
        Message::ToolResult(result) => &result.content,
        Message::Assistant(_) => &[],
    });
    blocks.filter_map(|block| if let Block::Image(image) = block { Some(image) } else { None }).collect()
}

/// Images of a message, a tool and a steered message are replaced in every later call, also of the
/// fallback.
#[tokio::test]
async fn every_call_of_a_run_sends_what_is_too_large_in_a_smaller_form() {
    let mut stage = Stage::new([
        Reply::calls("", [call("c1", "camera", json!({}))]),
        Reply::fail(FailureKind::Auth, "no"),
    ]);
    stage.fallback([Reply::say("ok")]);
    stage.set_transcript(vec![Message::User(said("go", 3000))]);
    stage.steer_with(said("look", 2001));
    stage.steer_with(said("and this", 20));
    let outcome = stage.resume().await;
    assert_eq!(outcome.end, RunEnd::Completed, "{:?}", stage.transcript());
    let requests = stage.sent();
    let last = images(&requests.last().unwrap().messages);
    let kinds: Vec<&str> = last.iter().map(|image| image.mime_type.as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "image/jpeg").count(), 3, "{kinds:?}");
    assert_eq!(kinds.len(), 4);
    assert_eq!(requests.len(), 3, "{:?}", stage.requests());
    for pair in requests.windows(2) {
        let (before, after) = (images(&pair[0].messages), images(&pair[1].messages));
        assert_eq!(before, after[..before.len()], "the same to the byte");
    }
    let stored = stage.messages();
    assert!(
        images(&stored).iter().all(|image| image.mime_type == "image/png"),
        "the transcript has them whole"
    );
    assert!(stage.images.memory() > 1000);
}

#[tokio::test]
async fn a_broken_image_is_told_of_and_the_run_goes_on() {
    let broken = ImageBlock {
        data: STANDARD.encode(&encoded(3000, 10, ImageFormat::Png)[..40]),
        mime_type: "image/png".to_owned(),
        ..ImageBlock::default()
    };
    let content = UserContent::Blocks(vec![Block::text("go"), Block::Image(broken)]);
    let mut stage = Stage::new([Reply::say("ok")]);
    stage.set_transcript(vec![Message::User(UserMessage { content, ..UserMessage::default() })]);
    let outcome = stage.resume().await;
    assert_eq!((outcome.end, outcome.payloads), (RunEnd::Completed, vec![text("ok")]));
    let requests = stage.requests();
    assert!(requests[0][0].starts_with("U go\n[session:history] omitted image payload: "), "{requests:?}");
}

/// Stopped by someone, or by the clock.
#[tokio::test]
async fn a_run_that_is_stopped_while_an_image_is_decoded_ends_at_once() {
    for by_clock in [false, true] {
        let mut stage = Stage::new([]);
        stage.set_transcript(vec![Message::User(said("go", 3000))]);
        // Another picture is at work until the run is over.
        let (begun, beginning) = tokio::sync::oneshot::channel();
        let (done, finish) = std::sync::mpsc::channel::<()>();
        let other = CancellationToken::new();
        let decoding = in_turn(&other, move |_| {
            begun.send(()).unwrap();
            finish.recv().map_err(|error| PictureError::Unreadable(error.to_string()))
        });
        if by_clock {
            stage.limits.timeout = Some(Duration::from_millis(20));
        }
        let cancel = stage.cancel();
        let run = async {
            beginning.await.unwrap();
            let stop = async {
                tokio::task::yield_now().await;
                if !by_clock {
                    cancel.cancel();
                }
            };
            let (outcome, ()) = tokio::join!(stage.resume(), stop);
            done.send(()).unwrap();
            outcome
        };
        let (decoded, outcome) = tokio::join!(decoding, run);
        let end = if by_clock { RunEnd::TimedOut } else { RunEnd::Aborted };
        assert_eq!((decoded, outcome.end), (Ok(()), end));
        assert_eq!((stage.transcript(), stage.requests()), (vec!["U go".to_owned()], vec![]));
    }
}
