//! Defines tools: the facts that policy, prompt, events and requests read, and the call itself.
//!
//! The facts of a tool stand once, with the tool. A [`Catalogue`] holds those of every tool by name, also of tools that
//! this gateway does not have and a config may name all the same.

use std::borrow::Cow;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_models::ToolSchema;
use openclaw_protocol::message::Block;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::host::Host;

/// Future result of a tool call.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// Tool that one run can call.
pub trait Tool: Send + Sync {
    /// Facts about the tool.
    fn facts(&self) -> &ToolFacts;

    /// Description that the model reads with the schema; overridden where it differs from run to
    /// run.
    fn description(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.facts().description)
    }

    /// JSON Schema of its arguments, made once: each run has tools of its own.
    fn schema(&self) -> ToolSchema;

    /// Runs one call with arguments that fit the schema. A cancelled call returns [`ToolError::Aborted`] soon, with nothing
    /// left running unless it was put in the background.
    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_>;
}

/// Facts about a tool that are known before it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolFacts {
    /// The name in requests, policies and events.
    pub name: &'static str,
    /// Other names that policies and events take for it.
    pub aliases: &'static [&'static str],
    /// The policy groups it belongs to, such as `group:fs`.
    pub groups: &'static [&'static str],
    /// Description that the model reads with the schema.
    pub description: &'static str,
    /// Line in the prompt's list of tools; empty shows the first line of the description.
    pub summary: &'static str,
    /// Position in that list. Equal positions are sorted by name.
    pub prompt_position: u8,
    /// The arguments that label a call for people; the first that is given counts.
    pub label_arguments: &'static [&'static str],
    /// The arguments that people are shown as words of their own before that, where they are `true`.
    pub flag_arguments: &'static [&'static str],
    /// Emoji shown to people before a call.
    pub emoji: &'static str,
    /// True if only the owner may use the tool.
    pub owner_only: bool,
    /// True if sub-agents may use the tool.
    pub for_subagents: bool,
    /// The tool without which it is not offered: what one may not begin is not gone on with by the other.
    pub needs: Option<&'static str>,
    /// True if a second call of the same id has no second effect: a call that a crash cut short is
    /// then made again.
    pub repeatable: bool,
    /// Calls of the tool that change something.
    pub effect: Effect,
    /// Places in which the tool may run.
    pub reach: Reach,
}

/// Calls of a tool that change something which stays changed when the gateway dies. The model's
/// message is made durable before such a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The tool has no effect: it only reads.
    Looks,
    /// All of them.
    Acts,
    /// All but those with one of these values of the argument `action`.
    ActsExcept(&'static [&'static str]),
}

/// Places in which a tool may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Anywhere: it keeps to the directory that it is confined to.
    Confinable,
    /// Anywhere unconfined, or in a sandbox: the tool cannot confine itself to a directory.
    Sandboxed,
}

impl ToolFacts {
    /// A tool that everyone may use, in no group and after those that have a position in the prompt.
    pub const fn named(name: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            groups: &[],
            description: "",
            summary: "",
            prompt_position: u8::MAX,
            label_arguments: &[],
            flag_arguments: &[],
            emoji: "🧩",
            owner_only: false,
            for_subagents: true,
            needs: None,
            repeatable: false,
            effect: Effect::Acts,
            reach: Reach::Confinable,
        }
    }

    /// True if a call with these arguments changes something.
    pub(crate) fn acts(&self, args: &Value) -> bool {
        match self.effect {
            Effect::Looks => false,
            Effect::Acts => true,
            Effect::ActsExcept(looks) => {
                let action = args.get("action").and_then(Value::as_str).unwrap_or_default();
                !looks.contains(&action.trim())
            }
        }
    }

    /// Short label of a call for people: a path, a command, with what is switched on before it.
    pub(crate) fn label(&self, args: &Value) -> Option<String> {
        self.label_with(args, str::to_owned)
    }

    /// Returns the label with its words converted by `written`.
    fn label_with(&self, args: &Value, written: fn(&str) -> String) -> Option<String> {
        let flags = self.flag_arguments.iter().filter(|name| args.get(name) == Some(&Value::Bool(true)));
        let given = |name: &&str| Some(args.get(name)?.as_str()?.trim()).filter(|text| !text.is_empty());
        let words = self.label_arguments.iter().find_map(given).map(written);
        let parts: Vec<String> = flags.map(|name| (*name).to_owned()).chain(words).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }
}

/// The facts of every tool that has a meaning by name, in the order in which a model is offered them.
#[derive(Debug, Clone, Default)]
pub struct Catalogue(Vec<ToolFacts>);

impl FromIterator<ToolFacts> for Catalogue {
    fn from_iter<T: IntoIterator<Item = ToolFacts>>(facts: T) -> Self {
        Self(facts.into_iter().collect())
    }
}

impl Catalogue {
    /// A catalogue that knows no tool.
    pub(crate) const fn empty() -> Self {
        Self(Vec::new())
    }

    /// The facts of all of them.
    pub fn facts(&self) -> impl Iterator<Item = &ToolFacts> {
        self.0.iter()
    }

    /// A tool's name as policies and events spell it.
    pub fn canonical_name(&self, name: &str) -> String {
        let name = name.trim().to_lowercase();
        let known = self.0.iter().find(|facts| facts.aliases.contains(&name.as_str()));
        known.map_or(name, |facts| facts.name.to_owned())
    }

    /// A call as people are shown it: `🛠️ Exec: ⟨what⟩` (spec `streaming.md` §7).
    pub fn headline(&self, name: &str, args: &Value) -> String {
        let name = self.canonical_name(name);
        let facts = self.0.iter().find(|facts| facts.name == name).copied();
        let facts = facts.unwrap_or_else(|| ToolFacts::named(""));
        let label = facts.label_with(args, code);
        format!("{} {}", facts.emoji, summary(&name, label.as_deref()))
    }
}

/// A label as code on one line, where it can be written so.
fn code(label: &str) -> String {
    let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
    if label.contains('`') { label } else { format!("`{label}`") }
}

/// Context of a call besides its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// The model's id of the call.
    pub call_id: String,
    /// Base directory of relative paths.
    pub workspace: PathBuf,
    /// Ends the call.
    pub cancel: CancellationToken,
    /// Takes partial results while the tool works; sending never blocks, a full queue drops.
    pub updates: tokio::sync::mpsc::Sender<Value>,
    /// The gateway, for tools that ask something of it.
    pub host: Arc<dyn Host>,
}
/// Result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// Text for the model before the first block. Kept apart so that the text begins as it came:
    /// what a cut left of a secret is looked for there.
    pub notice: Option<String>,
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Structured outcome for clients.
    pub details: Option<Value>,
}

impl ToolOutput {
    /// Creates an output of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { notice: None, content: vec![Block::text(text)], details: None }
    }

    /// Pretty JSON for the model, the same value as details (spec `tools.md` §1).
    pub fn json(value: Value) -> Self {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        Self { notice: None, content: vec![Block::text(text)], details: Some(value) }
    }
}

/// A call in a few words: `Exec: ls`. `name` is the canonical one.
pub(crate) fn summary(name: &str, meta: Option<&str>) -> String {
    let mut words = name.split('_').filter(|word| !word.is_empty()).map(|word| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default()
    });
    let label = words.by_ref().collect::<Vec<_>>().join(" ");
    match meta.map(str::trim).filter(|meta| !meta.is_empty()) {
        Some(meta) => format!("{label}: {meta}"),
        None => label,
    }
}

/// Error of a tool call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ToolError {
    /// No such tool; the model is told and goes on.
    #[error("Tool {0} not found")]
    Unknown(String),
    /// The tool failed; the model is told in these words and the run goes on.
    #[error("{0}")]
    Failed(String),
    /// The tool failed, with a notice for the model before the error. `error` begins as it came, as
    /// in [`ToolOutput::notice`].
    #[error("{notice}\n\n{error}")]
    FailedWithNotice {
        /// Notice before the error.
        notice: String,
        /// Output of the tool and the reason of the failure.
        error: String,
    },
    /// The run is being stopped.
    #[error("Aborted")]
    Aborted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_up_in_a_few_words() {
        assert_eq!(summary("exec", Some("ls")), "Exec: ls");
        assert_eq!(summary("memory_search", None), "Memory Search");
    }
}
