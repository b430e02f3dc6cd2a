//! GitHub Copilot: the protocols of its models, and the headers that it expects on each request
//! (spec `models.md` §2.3, §8.4).

use crate::api::Api;
use crate::conversation::RequestFacts;
use crate::model_spec::ModelSpec;
use crate::net::{Headers, NetError};

/// Provider id.
const PROVIDER: &str = "github-copilot";

/// Placeholder for the protocol where it depends on the model.
const BY_MODEL: &str = "github-copilot";
/// Id prefixes of the models that use Responses; all others use Chat Completions.
const RESPONSES: &[&str] = &["gpt-5", "o1", "o3", "o4", "codex"];
/// Client name for Copilot. Without the name of an editor Copilot refuses a token made by its
/// device flow, so we name ourselves.
const CLIENT: &str = concat!("openclaw/", env!("CARGO_PKG_VERSION"));

/// The protocol of a model, where only its id says which.
pub(crate) fn api_of(api: Api, model: &str) -> Api {
    if api.as_str() != BY_MODEL {
        api
    } else if RESPONSES.iter().any(|start| model.starts_with(start)) {
        Api::OpenAiResponses
    } else {
        Api::OpenAiCompletions
    }
}

/// Adds Copilot's headers to a request of one of its models; does nothing for others.
pub(crate) fn add_headers(
    headers: &mut Headers,
    spec: &ModelSpec,
    asked: RequestFacts,
) -> Result<(), NetError> {
    if spec.provider() != PROVIDER {
        return Ok(());
    }
    describe(asked).iter().try_for_each(|(name, value)| headers.set(name, value))
}

/// Returns headers with the initiator, the purpose, and the presence of images: Copilot bills by
/// the initiator.
fn describe(asked: RequestFacts) -> Vec<(&'static str, &'static str)> {
    let mut out = vec![
        ("X-Initiator", if asked.by_user { "user" } else { "agent" }),
        ("Openai-Intent", "conversation-edits"),
        ("Editor-Version", CLIENT),
        ("Editor-Plugin-Version", CLIENT),
    ];
    if asked.shows_images {
        out.push(("Copilot-Vision-Request", "true"));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openclaw_protocol::message::{
        AssistantMessage, Block, ImageBlock, Message, ToolResultMessage, UserMessage,
    };

    use super::*;
    use crate::conversation::RequestConversation;

    #[test]
    fn a_request_says_who_takes_the_step_and_whether_there_are_images() {
        let user = Arc::new(Message::User(UserMessage::text("hi", 1)));
        let answer = Arc::new(Message::Assistant(AssistantMessage::default()));
        let result = Arc::new(Message::ToolResult(ToolResultMessage::default()));
        let shown = Arc::new(Message::ToolResult(ToolResultMessage {
            content: vec![Block::Image(ImageBlock::default())],
            ..ToolResultMessage::default()
        }));
        let rows = [
            (vec![], "user", false),
            (vec![user.clone()], "user", false),
            (vec![user.clone(), answer.clone(), result], "agent", false),
            (vec![user.clone(), answer.clone(), shown.clone()], "agent", true),
            (vec![user.clone(), answer, shown, user], "user", true),
        ];
        for (messages, by, vision) in rows {
            let mut expect = vec![
                ("X-Initiator", by),
                ("Openai-Intent", "conversation-edits"),
                ("Editor-Version", CLIENT),
                ("Editor-Plugin-Version", CLIENT),
            ];
            expect.extend(vision.then_some(("Copilot-Vision-Request", "true")));
            assert_eq!(describe(RequestConversation::whole(&messages).asked()), expect, "{messages:?}");
        }
    }

    #[test]
    fn the_model_decides_the_protocol() {
        let rows = [
            ("gpt-5", Api::OpenAiResponses),
            ("gpt-5.2-codex", Api::OpenAiResponses),
            ("gpt-5-mini", Api::OpenAiResponses),
            ("o3-mini", Api::OpenAiResponses),
            ("gpt-4.1", Api::OpenAiCompletions),
            ("claude-sonnet-4.5", Api::OpenAiCompletions),
            ("gemini-2.5-pro", Api::OpenAiCompletions),
            ("grok-code-fast-1", Api::OpenAiCompletions),
        ];
        for (model, expect) in rows {
            assert_eq!(api_of(Api::from("github-copilot"), model), expect, "{model}");
        }
        assert_eq!(api_of(Api::AnthropicMessages, "gpt-5"), Api::AnthropicMessages);
    }

    #[test]
    fn only_copilot_gets_them() {
        let asked = RequestConversation::whole(&[]).asked();
        for (provider, expect) in [("github-copilot", 4), ("openai", 0)] {
            let mut headers = Headers::default();
            add_headers(&mut headers, &ModelSpec::sample(provider, "m", "openai-responses"), asked).unwrap();
            assert_eq!(headers.pairs().len(), expect, "{provider}");
        }
    }
}
