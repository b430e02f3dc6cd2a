//! Differences among the many servers that speak Chat Completions (spec `models.md` §4.2).

use crate::history::IdRule;
use crate::model_spec::ModelSpec;

/// A vendor told by provider id or by a part of its address.
struct Vendor {
    provider: &'static str,
    address: &'static str,
    traits: &'static [Trait],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trait {
    /// Knows neither `store` nor role `developer`.
    NotOpenAi,
    NoReasoningEffort,
    OldMaxTokens,
    Mistral,
    ZaiThinking,
}

use Trait::{Mistral, NoReasoningEffort, NotOpenAi, OldMaxTokens, ZaiThinking};

const VENDORS: &[Vendor] = &[
    Vendor { provider: "cerebras", address: "cerebras.ai", traits: &[NotOpenAi] },
    Vendor { provider: "xai", address: "api.x.ai", traits: &[NotOpenAi, NoReasoningEffort] },
    Vendor { provider: "mistral", address: "mistral.ai", traits: &[NotOpenAi, OldMaxTokens, Mistral] },
    Vendor { provider: "chutes", address: "chutes.ai", traits: &[NotOpenAi, OldMaxTokens] },
    Vendor { provider: "deepseek", address: "deepseek.com", traits: &[NotOpenAi] },
    Vendor { provider: "zai", address: "api.z.ai", traits: &[NotOpenAi, NoReasoningEffort, ZaiThinking] },
    Vendor { provider: "opencode", address: "opencode.ai", traits: &[NotOpenAi] },
    // Not in the table of the spec: the reference says so with each of its models.
    Vendor {
        provider: "github-copilot",
        address: "githubcopilot.com",
        traits: &[NotOpenAi, NoReasoningEffort],
    },
];

/// Form in which a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingFormat {
    /// `reasoning_effort`
    OpenAi,
    /// `thinking: {type: enabled|disabled}`
    Zai,
    /// `enable_thinking: bool`
    Qwen,
}

/// The answers to all questions, for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialect<'a> {
    pub(super) store: bool,
    pub(super) developer_role: bool,
    pub(super) reasoning_effort: bool,
    pub(super) usage_in_streaming: bool,
    pub(super) max_tokens_field: &'a str,
    pub(super) tool_result_name: bool,
    pub(super) assistant_after_tool_result: bool,
    pub(super) thinking_as_text: bool,
    pub(super) thinking_format: ThinkingFormat,
    pub(super) strict: bool,
    pub(super) ids: IdRule,
}

impl<'a> Dialect<'a> {
    /// Returns the model's `compat`, completed by what is known of its vendor, then by OpenAI's
    /// behaviour.
    pub(super) fn of(spec: &'a ModelSpec) -> Self {
        let is =
            |vendor: &&Vendor| vendor.provider == spec.provider() || spec.base_url.contains(vendor.address);
        let vendors: Vec<&Vendor> = VENDORS.iter().filter(is).collect();
        let has = |wanted: Trait| vendors.iter().any(|vendor| vendor.traits.contains(&wanted));
        let compat = &spec.compat;
        let mistral_ids = compat.requires_mistral_tool_ids.unwrap_or(has(Mistral));
        let thinking_format = match compat.thinking_format.as_deref() {
            Some("zai") => ThinkingFormat::Zai,
            Some("qwen") => ThinkingFormat::Qwen,
            Some(_) => ThinkingFormat::OpenAi,
            None if has(ZaiThinking) => ThinkingFormat::Zai,
            None => ThinkingFormat::OpenAi,
        };
        let max_tokens = if has(OldMaxTokens) { "max_tokens" } else { "max_completion_tokens" };
        Self {
            store: compat.supports_store.unwrap_or(!has(NotOpenAi)),
            developer_role: compat.supports_developer_role.unwrap_or(!has(NotOpenAi)),
            reasoning_effort: compat.supports_reasoning_effort.unwrap_or(!has(NoReasoningEffort)),
            usage_in_streaming: compat.supports_usage_in_streaming.unwrap_or(true),
            max_tokens_field: compat.max_tokens_field.as_deref().unwrap_or(max_tokens),
            tool_result_name: compat.requires_tool_result_name.unwrap_or(has(Mistral)),
            assistant_after_tool_result: compat.requires_assistant_after_tool_result.unwrap_or(false),
            thinking_as_text: compat.requires_thinking_as_text.unwrap_or(has(Mistral)),
            thinking_format,
            strict: compat.supports_strict_mode.unwrap_or(true),
            ids: match spec.provider() {
                _ if mistral_ids => IdRule::Mistral,
                "openai" => IdRule::CompletionsOpenAi,
                "github-copilot" if spec.id().contains("claude") => IdRule::Anthropic,
                _ => IdRule::Completions,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_entry::Compat;

    fn dialect(provider: &str, base_url: &str, compat: Compat) -> Dialect<'static> {
        let mut spec = ModelSpec::sample(provider, "m", "openai-completions");
        spec.base_url = base_url.to_owned();
        spec.compat = compat;
        // A dialect borrows from its model.
        Dialect::of(Box::leak(Box::new(spec)))
    }

    #[test]
    fn an_unknown_server_is_taken_for_openai() {
        let expect = Dialect {
            store: true,
            developer_role: true,
            reasoning_effort: true,
            usage_in_streaming: true,
            max_tokens_field: "max_completion_tokens",
            tool_result_name: false,
            assistant_after_tool_result: false,
            thinking_as_text: false,
            thinking_format: ThinkingFormat::OpenAi,
            strict: true,
            ids: IdRule::Completions,
        };
        assert_eq!(dialect("local", "http://127.0.0.1:1/v1", Compat::default()), expect);
    }

    /// Every row of the table in `models.md` §4.2, told by provider id and by address.
    #[test]
    fn vendors_are_told_by_id_and_by_address() {
        let openai = dialect("local", "http://127.0.0.1:1/v1", Compat::default());
        let plain = Dialect { store: false, developer_role: false, ..openai };
        let old = Dialect { max_tokens_field: "max_tokens", ..plain };
        let silent = Dialect { reasoning_effort: false, ..plain.clone() };
        let mistral =
            Dialect { tool_result_name: true, thinking_as_text: true, ids: IdRule::Mistral, ..old.clone() };
        let rows = [
            ("cerebras", "https://api.cerebras.ai/v1", plain.clone()),
            ("xai", "https://api.x.ai/v1", silent.clone()),
            ("mistral", "https://api.mistral.ai/v1", mistral),
            ("chutes", "https://llm.chutes.ai/v1", old),
            ("deepseek", "https://api.deepseek.com", plain.clone()),
            ("opencode", "https://opencode.ai/zen/v1", plain),
            ("github-copilot", "https://api.individual.githubcopilot.com", silent.clone()),
            (
                "zai",
                "https://api.z.ai/api/coding/paas/v4",
                Dialect { thinking_format: ThinkingFormat::Zai, ..silent },
            ),
        ];
        for (provider, address, expect) in rows {
            assert_eq!(dialect(provider, "http://proxy", Compat::default()), expect, "{provider}");
            assert_eq!(dialect("mine", address, Compat::default()), expect, "{address}");
        }
        let openai = dialect("openai", "http://proxy", Compat::default()).ids;
        assert_eq!(openai, IdRule::CompletionsOpenAi);
    }

    /// Fields of a model's `compat` take precedence over what is known of its vendor.
    #[test]
    fn compat_overrules_what_is_known() {
        let read = |json: serde_json::Value| serde_json::from_value::<Compat>(json).unwrap();
        let turned = read(serde_json::json!({
            "supportsStore": true, "supportsDeveloperRole": true, "supportsReasoningEffort": true,
            "supportsUsageInStreaming": false, "maxTokensField": "max_completion_tokens",
            "requiresToolResultName": false, "requiresAssistantAfterToolResult": true,
            "requiresThinkingAsText": false, "requiresMistralToolIds": false, "thinkingFormat": "qwen",
            "supportsStrictMode": false}));
        let expect = Dialect {
            usage_in_streaming: false,
            assistant_after_tool_result: true,
            thinking_format: ThinkingFormat::Qwen,
            strict: false,
            ..dialect("local", "x", Compat::default())
        };
        assert_eq!(dialect("mistral", "https://api.mistral.ai", turned.clone()), expect);
        assert_eq!(dialect("xai", "https://api.x.ai/v1", turned), expect);
        let zai_as_openai = read(serde_json::json!({"thinkingFormat": "openai"}));
        assert_eq!(dialect("zai", "x", zai_as_openai).thinking_format, ThinkingFormat::OpenAi);
        let needy = read(serde_json::json!({"requiresMistralToolIds": true, "requiresToolResultName": true,
            "requiresThinkingAsText": true, "maxTokensField": "max_tokens", "thinkingFormat": "zai"}));
        let found = dialect("local", "x", needy);
        assert_eq!((found.ids, found.thinking_format), (IdRule::Mistral, ThinkingFormat::Zai));
        assert!(found.tool_result_name && found.thinking_as_text && found.max_tokens_field == "max_tokens");
    }

    #[test]
    fn claude_at_copilot_has_the_ids_of_claude() {
        let mut spec = ModelSpec::sample("github-copilot", "claude-sonnet-4.5", "openai-completions");
        assert_eq!(Dialect::of(&spec).ids, IdRule::Anthropic);
        spec.reference.model = "gpt-4.1".to_owned();
        assert_eq!(Dialect::of(&spec).ids, IdRule::Completions);
    }
}
