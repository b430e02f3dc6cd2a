//! The tool list of the prompt: order and one-line summaries (spec `agent-runtime.md` §3.2).

use openclaw_protocol::text_length::utf16_len;

use crate::tool::ToolFacts;
use crate::toolbox::Toolbox;

/// The lines `- name: summary`, in prompt order.
pub(super) fn lines(tools: &Toolbox) -> Vec<String> {
    let mut sorted: Vec<&ToolFacts> = tools.facts().collect();
    sorted.sort_by_key(|facts| (facts.prompt_position, facts.name));
    sorted.into_iter().map(line).collect()
}

/// Size of the list in UTF-16 units, line breaks included.
pub(super) fn chars(tools: &Toolbox) -> usize {
    let lines = lines(tools);
    lines.iter().map(|line| utf16_len(line)).sum::<usize>() + lines.len().saturating_sub(1)
}

fn line(facts: &ToolFacts) -> String {
    let described = || facts.description.lines().map(str::trim).find(|line| !line.is_empty());
    let summary = Some(facts.summary).filter(|summary| !summary.is_empty()).or_else(described);
    match summary {
        Some(summary) => format!("- {}: {summary}", facts.name),
        None => format!("- {}", facts.name),
    }
}
