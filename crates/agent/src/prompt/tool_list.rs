//! The tool list of the prompt: order and one-line summaries (spec `agent-runtime.md` §3.2).

use openclaw_protocol::text_length::utf16_len;

use crate::tool::ToolFacts;
use crate::toolbox::Toolbox;

/// The lines `- name: summary`, in prompt order.
pub(super) fn lines(tools: &Toolbox) -> impl Iterator<Item = String> {
    let mut sorted: Vec<&ToolFacts> = tools.facts().collect();
    sorted.sort_by_key(|facts| (facts.prompt_position, facts.name));
    sorted.into_iter().map(line)
}

/// Size of the list in UTF-16 units, line breaks included.
pub(super) fn chars(tools: &Toolbox) -> usize {
    let lengths = tools.facts().map(|facts| {
        let summary = summary(facts).map_or(0, |summary| ": ".len() + utf16_len(summary));
        "- ".len() + utf16_len(facts.name) + summary + "\n".len()
    });
    lengths.sum::<usize>().saturating_sub("\n".len())
}

fn line(facts: &ToolFacts) -> String {
    match summary(facts) {
        Some(summary) => format!("- {}: {summary}", facts.name),
        None => format!("- {}", facts.name),
    }
}

fn summary(facts: &ToolFacts) -> Option<&'static str> {
    let described = || facts.description.lines().map(str::trim).find(|line| !line.is_empty());
    Some(facts.summary).filter(|summary| !summary.is_empty()).or_else(described)
}
