//! What GitHub Copilot wants to know of each request (spec `models.md` §8.4).

use openclaw_protocol::message::{Block, Message, UserContent};

use crate::catalog::ModelSpec;
use crate::net::{Headers, NetError};
use crate::request::ModelRequest;

/// Provider id.
const PROVIDER: &str = "github-copilot";

/// Adds Copilot's headers to a request of one of its models; does nothing for others.
pub(crate) fn add_headers(
    headers: &mut Headers,
    spec: &ModelSpec,
    request: &ModelRequest,
) -> Result<(), NetError> {
    if spec.provider() != PROVIDER {
        return Ok(());
    }
    describe(&request.messages).iter().try_for_each(|(name, value)| headers.set(name, value))
}

/// Who takes this step, what for, and whether it has images: Copilot bills by the first.
fn describe(messages: &[Message]) -> Vec<(&'static str, &'static str)> {
    let by_user = matches!(messages.last(), Some(Message::User(_)) | None);
    let mut out = vec![
        ("X-Initiator", if by_user { "user" } else { "agent" }),
        ("Openai-Intent", "conversation-edits"),
    ];
    if messages.iter().any(shows_image) {
        out.push(("Copilot-Vision-Request", "true"));
    }
    out
}

fn shows_image(message: &Message) -> bool {
    let blocks = match message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks,
            UserContent::Text(_) => return false,
        },
        Message::ToolResult(result) => &result.content,
        Message::Assistant(_) => return false,
    };
    blocks.iter().any(|block| matches!(block, Block::Image(_)))
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, ImageBlock, ToolResultMessage, UserMessage};

    use super::*;

    #[test]
    fn a_request_says_who_takes_the_step_and_whether_there_are_images() {
        let user = Message::User(UserMessage::text("hi", 1));
        let answer = Message::Assistant(AssistantMessage::default());
        let result = Message::ToolResult(ToolResultMessage::default());
        let shown = Message::ToolResult(ToolResultMessage {
            content: vec![Block::Image(ImageBlock::default())],
            ..ToolResultMessage::default()
        });
        let intent = ("Openai-Intent", "conversation-edits");
        let vision = ("Copilot-Vision-Request", "true");
        let rows = [
            (vec![], vec![("X-Initiator", "user"), intent]),
            (vec![user.clone()], vec![("X-Initiator", "user"), intent]),
            (vec![user.clone(), answer.clone(), result], vec![("X-Initiator", "agent"), intent]),
            (
                vec![user.clone(), answer.clone(), shown.clone()],
                vec![("X-Initiator", "agent"), intent, vision],
            ),
            (vec![user.clone(), answer, shown, user], vec![("X-Initiator", "user"), intent, vision]),
        ];
        for (messages, expect) in rows {
            assert_eq!(describe(&messages), expect, "{messages:?}");
        }
    }

    #[test]
    fn only_copilot_gets_them() {
        let request = ModelRequest::default();
        for (provider, expect) in [("github-copilot", 2), ("openai", 0)] {
            let mut headers = Headers::default();
            add_headers(&mut headers, &ModelSpec::sample(provider, "m", "openai-responses"), &request)
                .unwrap();
            assert_eq!(headers.pairs().len(), expect, "{provider}");
        }
    }
}
