//! What each provider needs (spec `agent-runtime.md` §9.1).

use super::roles::Join;

/// What is done to history for one provider. Pairing runs for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Drop blank assistant text and messages without content.
    pub drop_blank: bool,
    /// How ids of tool calls are rewritten.
    pub call_ids: CallIds,
    /// Merge consecutive assistant messages.
    pub merge_assistants: bool,
    /// How consecutive user messages are merged.
    pub join: Join,
}

/// How ids of tool calls are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// Not here; the wire client fits them to its API.
    Keep,
    /// Letters and digits, at most 40.
    Strict,
    /// Exactly nine letters and digits.
    Strict9,
}

/// Parts of model ids that are Mistral's.
const MISTRAL: [&str; 7] =
    ["mistral", "mixtral", "codestral", "pixtral", "devstral", "ministral", "mistralai"];
const GOOGLE_APIS: [&str; 4] =
    ["google-generative-ai", "google-gemini-cli", "google-antigravity", "google-vertex"];

impl Policy {
    /// The policy for a provider, wire protocol and model id.
    pub fn of(provider: &str, api: &str, model: &str) -> Self {
        let provider = provider.to_ascii_lowercase();
        let api = api.to_ascii_lowercase();
        let model = model.to_ascii_lowercase();
        let plain = Self {
            drop_blank: false,
            call_ids: CallIds::Keep,
            merge_assistants: false,
            join: Join::BlankLine,
        };
        if GOOGLE_APIS.contains(&api.as_str()) {
            return Self { drop_blank: true, call_ids: CallIds::Strict, merge_assistants: true, ..plain };
        }
        if provider == "anthropic" || api == "anthropic-messages" {
            return Self { drop_blank: true, join: Join::Blocks, ..plain };
        }
        if provider == "mistral" || MISTRAL.iter().any(|name| model.contains(name)) {
            return Self { drop_blank: true, call_ids: CallIds::Strict9, ..plain };
        }
        if matches!(provider.as_str(), "openrouter" | "opencode") && model.contains("gemini") {
            return Self { drop_blank: true, ..plain };
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_get_what_they_need() {
        let rows = [
            ("openai", "openai-responses", "gpt-5.2", (false, CallIds::Keep, false, Join::BlankLine)),
            ("ollama", "openai-completions", "llama3", (false, CallIds::Keep, false, Join::BlankLine)),
            (
                "anthropic",
                "anthropic-messages",
                "claude-opus-4-6",
                (true, CallIds::Keep, false, Join::Blocks),
            ),
            ("fake", "anthropic-messages", "m", (true, CallIds::Keep, false, Join::Blocks)),
            ("google", "google-generative-ai", "gemini-3", (true, CallIds::Strict, true, Join::BlankLine)),
            ("mistral", "openai-completions", "x", (true, CallIds::Strict9, false, Join::BlankLine)),
            ("groq", "openai-completions", "Mixtral-8x7b", (true, CallIds::Strict9, false, Join::BlankLine)),
            (
                "openrouter",
                "openai-completions",
                "google/gemini-3",
                (true, CallIds::Keep, false, Join::BlankLine),
            ),
        ];
        for (provider, api, model, expect) in rows {
            let p = Policy::of(provider, api, model);
            assert_eq!((p.drop_blank, p.call_ids, p.merge_assistants, p.join), expect, "{provider}/{model}");
        }
    }
}
