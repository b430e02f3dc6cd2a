//! What the many servers that speak Chat Completions do differently (spec `models.md` §4.2).

use crate::catalog::ModelSpec;
use crate::tool_id::IdRule;

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
];

/// How a model wants to be asked to think.
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
pub(super) struct Dialect {
    pub(super) store: bool,
    pub(super) developer_role: bool,
    pub(super) reasoning_effort: bool,
    pub(super) usage_in_streaming: bool,
    pub(super) max_tokens_field: String,
    pub(super) tool_result_name: bool,
    pub(super) assistant_after_tool_result: bool,
    pub(super) thinking_as_text: bool,
    pub(super) thinking_format: ThinkingFormat,
    pub(super) strict: bool,
    pub(super) ids: IdRule,
}

impl Dialect {
    /// What the model's `compat` says, else what is known of its vendor, else what OpenAI does.
    pub(super) fn of(spec: &ModelSpec) -> Self {
        let vendor = VENDORS
            .iter()
            .find(|vendor| vendor.provider == spec.provider() || spec.base_url.contains(vendor.address));
        let has = |wanted: Trait| vendor.is_some_and(|vendor| vendor.traits.contains(&wanted));
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
            max_tokens_field: compat.max_tokens_field.clone().unwrap_or_else(|| max_tokens.to_owned()),
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
    use crate::catalog::Compat;

    fn dialect(provider: &str, base_url: &str, compat: Compat) -> Dialect {
        let mut spec = ModelSpec::sample(provider, "m", "openai-completions");
        spec.base_url = base_url.to_owned();
        spec.compat = compat;
        Dialect::of(&spec)
    }

    #[test]
    fn an_unknown_server_is_taken_for_openai() {
        let expect = Dialect {
            store: true,
            developer_role: true,
            reasoning_effort: true,
            usage_in_streaming: true,
            max_tokens_field: "max_completion_tokens".to_owned(),
            tool_result_name: false,
            assistant_after_tool_result: false,
            thinking_as_text: false,
            thinking_format: ThinkingFormat::OpenAi,
            strict: true,
            ids: IdRule::Completions,
        };
        assert_eq!(dialect("local", "http://127.0.0.1:1/v1", Compat::default()), expect);
    }

    #[test]
    fn vendors_are_told_by_id_or_address_and_overruled_by_compat() {
        let none = Compat::default;
        let mistral = dialect("x", "https://api.mistral.ai/v1", none());
        assert_eq!(
            (mistral.store, mistral.max_tokens_field.as_str(), mistral.tool_result_name, mistral.ids),
            (false, "max_tokens", true, IdRule::Mistral)
        );
        let zai = dialect("zai", "http://proxy", none());
        assert_eq!(
            (zai.developer_role, zai.reasoning_effort, zai.thinking_format),
            (false, false, ThinkingFormat::Zai)
        );
        let told =
            Compat { supports_store: Some(true), max_tokens_field: Some("max_tokens".to_owned()), ..none() };
        let xai = dialect("xai", "https://api.x.ai/v1", told);
        assert_eq!(
            (xai.store, xai.developer_role, xai.max_tokens_field.as_str()),
            (true, false, "max_tokens")
        );
        assert_eq!(dialect("openai", "x", none()).ids, IdRule::CompletionsOpenAi);
        let qwen = Compat { thinking_format: Some("qwen".to_owned()), ..none() };
        assert_eq!(dialect("local", "x", qwen).thinking_format, ThinkingFormat::Qwen);
    }
}
