//! Table that assigns the code to each protocol.
//!
//! A new protocol is a variant of [`Api`] with its name, a line here and a module that implements [`Protocol`].

use crate::anthropic::Anthropic;
use crate::api::Api;
use crate::bedrock::Bedrock;
use crate::google::{Google, Vertex};
use crate::openai_completions::Completions;
use crate::openai_responses::{Azure, Codex, Responses};
use crate::wire::Protocol;

/// The code that speaks a protocol; nothing where there is no client for it, or nothing goes over a wire.
pub(crate) fn protocol(api: &Api) -> Option<&'static dyn Protocol> {
    match api {
        Api::AnthropicMessages => Some(&Anthropic),
        Api::OpenAiCompletions => Some(&Completions),
        Api::OpenAiResponses => Some(&Responses),
        Api::OpenAiCodexResponses => Some(&Codex),
        Api::AzureOpenAiResponses => Some(&Azure),
        Api::GoogleGenerativeAi => Some(&Google),
        Api::GoogleVertex => Some(&Vertex),
        Api::BedrockConverseStream => Some(&Bedrock),
        Api::Offline | Api::Other(_) => None,
    }
}
