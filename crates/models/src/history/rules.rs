//! Requirements of each model on a history (spec `agent-runtime.md` §9.1).

use super::call_ids::{IdMap, IdRule};

/// Rules that adapt a history to one model. Calls and results are paired for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRules<'a> {
    /// The model's provider, wire protocol and id: only its own answers keep their proofs and ids.
    pub(super) model: (&'a str, &'a str, &'a str),
    /// Drop blank assistant text and messages without content.
    pub(super) drop_blank: bool,
    /// Form of tool call ids.
    pub(super) ids: IdRule,
    /// Merge consecutive assistant messages.
    pub(super) merge_assistants: bool,
    /// Method of merging consecutive user messages.
    pub(super) join: Join,
}

/// Method of merging the contents of consecutive user messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Keeps the blocks, one after the other.
    Blocks,
    /// Joins the texts with a blank line between, for servers that accept one text only.
    BlankLine,
}

/// Parts of model ids that are Mistral's.
const MISTRAL: [&str; 7] =
    ["mistral", "mixtral", "codestral", "pixtral", "devstral", "ministral", "mistralai"];
const GOOGLE_APIS: [&str; 4] =
    ["google-generative-ai", "google-gemini-cli", "google-antigravity", "google-vertex"];

impl<'a> HistoryRules<'a> {
    /// The rules for a provider, wire protocol and model id. `ids` is what the protocol asks of ids; Mistral's models
    /// want theirs behind any.
    pub fn of(provider: &'a str, api: &'a str, model: &'a str, ids: IdRule) -> Self {
        let plain = Self {
            model: (provider, api, model),
            drop_blank: false,
            ids,
            merge_assistants: false,
            join: Join::BlankLine,
        };
        let is = |name: &str| provider.eq_ignore_ascii_case(name);
        let id = model.to_ascii_lowercase();
        if GOOGLE_APIS.iter().any(|name| api.eq_ignore_ascii_case(name)) {
            return Self { drop_blank: true, merge_assistants: true, ..plain };
        }
        if is("anthropic") || api.eq_ignore_ascii_case("anthropic-messages") {
            return Self { drop_blank: true, join: Join::Blocks, ..plain };
        }
        if is("mistral") || MISTRAL.iter().any(|name| id.contains(name)) {
            return Self { drop_blank: true, ids: IdRule::Strict9, ..plain };
        }
        if (is("openrouter") || is("opencode")) && id.contains("gemini") {
            return Self { drop_blank: true, ..plain };
        }
        plain
    }

    /// Creates a map for the ids of a conversation from its start.
    pub(crate) fn id_map(&self) -> IdMap<'static> {
        IdMap::new(self.ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_get_what_they_need() {
        use IdRule::{Completions as Kept, Strict9};
        use Join::{BlankLine, Blocks};
        let rows = [
            ("openai", "openai-responses", "gpt-5.2", (false, Kept, false, BlankLine)),
            ("ollama", "openai-completions", "llama3", (false, Kept, false, BlankLine)),
            ("anthropic", "anthropic-messages", "claude-opus-4-6", (true, Kept, false, Blocks)),
            ("fake", "anthropic-messages", "m", (true, Kept, false, Blocks)),
            ("google", "google-generative-ai", "gemini-3", (true, Kept, true, BlankLine)),
            ("mistral", "openai-completions", "x", (true, Strict9, false, BlankLine)),
            ("groq", "openai-completions", "Mixtral-8x7b", (true, Strict9, false, BlankLine)),
            ("openrouter", "openai-completions", "google/gemini-3", (true, Kept, false, BlankLine)),
        ];
        for (provider, api, model, expect) in rows {
            let rules = HistoryRules::of(provider, api, model, Kept);
            let found = (rules.drop_blank, rules.ids, rules.merge_assistants, rules.join);
            assert_eq!(found, expect, "{provider}/{model}");
        }
    }
}
