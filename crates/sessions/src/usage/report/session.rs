//! Entry of `sessions.usage`: one session.

use std::cmp::Ordering;

use openclaw_protocol::params::usage::{
    DailyLatency, DailyMessageCounts, DailyModelUsage, DailyTokens, Latency, MessageCounts, ModelUsage,
    SessionUsage, SessionUsageSummary, ToolCount, ToolUsage, UsageTotals,
};
use serde_json::Value;

use super::super::digest::{DayDigest, Digest, LatencySamples};
use super::super::files::TranscriptOf;
use super::super::sums::Add;
use super::{UsageRequest, model_totals};
use crate::entry::SessionEntry;

/// The session of a transcript with what it used.
pub(super) fn usage(
    transcript: &TranscriptOf,
    entry: Option<&SessionEntry>,
    digest: &Digest,
    asked: &UsageRequest,
) -> SessionUsage {
    let text = |text: Option<&Box<str>>| text.map(|text| text.to_string());
    let origin = entry.and_then(|entry| entry.origin.as_deref());
    let channel = entry.and_then(|entry| entry.channel.as_ref()).or_else(|| origin?.provider.as_ref());
    let weight = || {
        let report = entry.and_then(|entry| entry.system_prompt_report.as_ref());
        report.and_then(|report| serde_json::to_value(report).ok()).unwrap_or(Value::Null)
    };
    SessionUsage {
        key: transcript.key.clone(),
        label: text(entry.and_then(|entry| entry.label.as_ref())),
        session_id: transcript.session_id.clone(),
        updated_at: transcript.updated_at,
        agent_id: transcript.agent.to_string(),
        channel: text(channel),
        chat_type: entry.and_then(|entry| entry.chat_type).map(|kind| kind.as_str().to_owned()),
        origin: origin.and_then(crate::methods::wire),
        model_override: text(entry.and_then(|entry| entry.model_override.as_ref())),
        provider_override: text(entry.and_then(|entry| entry.provider_override.as_ref())),
        model_provider: text(entry.and_then(|entry| entry.model_provider.as_ref())),
        model: text(entry.and_then(|entry| entry.model.as_ref())),
        usage: summary(transcript, digest, asked),
        context_weight: asked.with_context_weight.then(weight),
    }
}

fn summary(transcript: &TranscriptOf, digest: &Digest, asked: &UsageRequest) -> SessionUsageSummary {
    let days = || digest.within(asked.range);
    let mut totals = UsageTotals::default();
    let mut message_counts = MessageCounts::default();
    let mut daily_breakdown = Vec::new();
    let mut daily_model_usage = Vec::new();
    let mut model_usage = Vec::new();
    for day in days() {
        add_counts(&mut message_counts, &counts(day));
        let mut of_day = UsageTotals::default();
        let mut models = Vec::new();
        for model in &day.models {
            let used = ModelUsage {
                provider: model.provider.as_deref().map(str::to_owned),
                model: model.model.as_deref().map(str::to_owned),
                count: model.count,
                totals: model_totals(model, &asked.prices),
            };
            of_day.add(&used.totals);
            add_model(&mut model_usage, &used);
            models.push(daily_model(day, used));
        }
        if !models.is_empty() {
            models.sort_by(|a, b| b.cost.total_cmp(&a.cost));
            daily_model_usage.append(&mut models);
            let (tokens, cost) = (of_day.total_tokens, of_day.total_cost);
            daily_breakdown.push(DailyTokens { date: day.day.to_string(), tokens, cost });
        }
        totals.add(&of_day);
    }
    model_usage.sort_by(|a, b| dearest(&a.totals, &b.totals));
    let first_activity = days().map(|day| day.first_at).min();
    let last_activity = days().map(|day| day.last_at).max();
    SessionUsageSummary {
        session_id: transcript.session_id.clone(),
        session_file: transcript.path.display().to_string(),
        first_activity,
        last_activity,
        duration_ms: first_activity.zip(last_activity).map(|(first, last)| last - first),
        activity_dates: days().map(|day| day.day.to_string()).collect(),
        daily_breakdown,
        daily_message_counts: days()
            .map(|day| DailyMessageCounts { date: day.day.to_string(), counts: counts(day) })
            .collect(),
        daily_latency: days()
            .filter_map(|day| Some(DailyLatency { date: day.day.to_string(), latency: latency(&day.times)? }))
            .collect(),
        daily_model_usage,
        message_counts,
        tool_usage: Some(tools(days().flat_map(|day| &day.tools))).filter(|tools| tools.total_calls > 0),
        model_usage,
        latency: latency(&LatencySamples::of(days().map(|day| &day.times))),
        totals,
    }
}

fn daily_model(day: &DayDigest, used: ModelUsage) -> DailyModelUsage {
    DailyModelUsage {
        date: day.day.to_string(),
        provider: used.provider,
        model: used.model,
        tokens: used.totals.total_tokens,
        cost: used.totals.total_cost,
        count: used.count,
    }
}

/// The messages of a day.
fn counts(day: &DayDigest) -> MessageCounts {
    MessageCounts {
        total: day.user + day.assistant,
        user: day.user,
        assistant: day.assistant,
        tool_calls: day.tools.iter().map(|(_, count)| count).sum(),
        tool_results: day.tool_results,
        errors: day.errors,
    }
}

pub(super) fn add_counts(sum: &mut MessageCounts, counts: &MessageCounts) {
    sum.total += counts.total;
    sum.user += counts.user;
    sum.assistant += counts.assistant;
    sum.tool_calls += counts.tool_calls;
    sum.tool_results += counts.tool_results;
    sum.errors += counts.errors;
}

/// Adds to the sums of the same provider and model.
pub(super) fn add_model(sums: &mut Vec<ModelUsage>, used: &ModelUsage) {
    match sums.iter_mut().find(|sum| sum.provider == used.provider && sum.model == used.model) {
        Some(sum) => {
            sum.count += used.count;
            sum.totals.add(&used.totals);
        }
        None => sums.push(used.clone()),
    }
}

/// The dearest first, among equals the one that used most.
pub(super) fn dearest(a: &UsageTotals, b: &UsageTotals) -> Ordering {
    b.total_cost.total_cmp(&a.total_cost).then(b.total_tokens.cmp(&a.total_tokens))
}

/// Tools with their calls, called most first.
pub(super) fn tools<'a>(calls: impl Iterator<Item = &'a (Box<str>, u64)>) -> ToolUsage {
    let mut tools: Vec<ToolCount> = Vec::new();
    for (name, count) in calls {
        match tools.iter_mut().find(|tool| *tool.name == **name) {
            Some(tool) => tool.count += count,
            None => tools.push(ToolCount { name: name.to_string(), count: *count }),
        }
    }
    sorted_tools(tools)
}

pub(super) fn sorted_tools(mut tools: Vec<ToolCount>) -> ToolUsage {
    tools.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    ToolUsage {
        total_calls: tools.iter().map(|tool| tool.count).sum(),
        unique_tools: tools.len() as u64,
        tools,
    }
}

/// The figures of answers; nothing when there was none.
fn latency(times: &LatencySamples) -> Option<Latency> {
    (times.count > 0).then(|| Latency {
        count: times.count,
        avg_ms: mean(times.sum_ms, times.count),
        p95_ms: u64::from(times.p95_ms()),
        min_ms: u64::from(times.min_ms),
        max_ms: u64::from(times.max_ms),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a mean for people")]
pub(super) fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count as f64
}
