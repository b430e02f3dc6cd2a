//! Answers that failed or were stopped: no model is shown them, and a request that failed is closed
//! where somebody spoke again behind it.

use std::sync::Arc;

use openclaw_protocol::message::{AssistantMessage, Block, Message, StopReason};

use super::pairing::has_failed;

/// Answer to a request that failed, as models are shown it. Without it the request
/// would stand in one turn with the next message, and be carried out with the rights of whoever
/// wrote that one.
const CLOSED: &str = "[openclaw] The request above ended without an answer and is closed. \
    It is not carried out any more, unless it is asked for again.";

/// Takes failed and stopped answers out. The last one before a user's message leaves a note in its
/// place if it failed: behind a stop a person goes on with what was said.
pub(super) fn close(messages: &mut Vec<Arc<Message>>) {
    if !messages.iter().any(is_failed) {
        return;
    }
    let mut is_next_of_user = false;
    let mut kept: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    for message in messages.drain(..).rev() {
        match &*message {
            Message::Assistant(answer) if has_failed(answer) => {
                if std::mem::take(&mut is_next_of_user) && answer.stop_reason == StopReason::Error {
                    kept.push(Arc::new(Message::Assistant(note(answer))));
                }
            }
            other => {
                is_next_of_user = matches!(other, Message::User(_));
                kept.push(message);
            }
        }
    }
    kept.reverse();
    *messages = kept;
}

fn is_failed(message: &Arc<Message>) -> bool {
    matches!(&**message, Message::Assistant(answer) if has_failed(answer))
}

fn note(failed: &AssistantMessage) -> AssistantMessage {
    AssistantMessage { content: vec![Block::text(CLOSED)], stop_reason: StopReason::Stop, ..failed.clone() }
}
