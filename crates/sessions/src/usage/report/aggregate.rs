//! The sums of `sessions.usage` over all sessions it answers.

use std::collections::{BTreeMap, HashMap};

use openclaw_protocol::params::usage::{
    AgentUsage, ChannelUsage, DailyLatency, DailyModelUsage, DailyUsage, Latency, MessageCounts, ModelUsage,
    SessionUsage, ToolCount, UsageAggregates, UsageTotals,
};

use super::super::digest::{Digest, LatencySamples};
use super::super::sums::Add;
use super::UsageRequest;
use super::session::{add_counts, add_model, dearest, mean, sorted_tools};

/// Sums in progress.
#[derive(Default)]
pub(super) struct Aggregates {
    totals: UsageTotals,
    messages: MessageCounts,
    tools: HashMap<String, u64>,
    by_model: Vec<ModelUsage>,
    by_provider: Vec<ModelUsage>,
    by_agent: BTreeMap<String, UsageTotals>,
    by_channel: BTreeMap<String, UsageTotals>,
    pace: LatencyTotals,
    /// Usage by date.
    daily: BTreeMap<String, OfDay>,
}

#[derive(Default)]
struct OfDay {
    tokens: u64,
    cost: f64,
    counts: MessageCounts,
    pace: LatencyTotals,
    models: Vec<DailyModelUsage>,
}

/// Durations of answers.
#[derive(Default)]
struct LatencyTotals {
    count: u64,
    sum_ms: u64,
    min_ms: u64,
    max_ms: u64,
    /// The highest of the sessions': an upper bound of that of all answers, as OpenClaw 2026.2.9 has it.
    p95_ms: u64,
}

impl Aggregates {
    pub(super) fn add(&mut self, session: &SessionUsage, digest: &Digest, asked: &UsageRequest) {
        let usage = &session.usage;
        self.totals.add(&usage.totals);
        add_counts(&mut self.messages, &usage.message_counts);
        for tool in usage.tool_usage.iter().flat_map(|tools| &tools.tools) {
            *self.tools.entry(tool.name.clone()).or_default() += tool.count;
        }
        for model in &usage.model_usage {
            add_model(&mut self.by_model, model);
            add_model(&mut self.by_provider, &ModelUsage { model: None, ..model.clone() });
        }
        self.by_agent.entry(session.agent_id.clone()).or_default().add(&usage.totals);
        if let Some(channel) = &session.channel {
            self.by_channel.entry(channel.clone()).or_default().add(&usage.totals);
        }
        let p95 = |latency: Option<&Latency>| latency.map_or(0, |latency| latency.p95_ms);
        let times = LatencySamples::of(digest.within(asked.range).map(|day| &day.times));
        self.pace.add(&times, p95(usage.latency.as_ref()));
        for (day, counts) in digest.within(asked.range).zip(&usage.daily_message_counts) {
            let of_day = self.daily.entry(counts.date.clone()).or_default();
            add_counts(&mut of_day.counts, &counts.counts);
            let known = usage.daily_latency.iter().find(|daily| daily.date == counts.date);
            of_day.pace.add(&day.times, p95(known.map(|daily| &daily.latency)));
        }
        for used in &usage.daily_breakdown {
            let of_day = self.daily.entry(used.date.clone()).or_default();
            of_day.tokens = of_day.tokens.saturating_add(used.tokens);
            of_day.cost += used.cost;
        }
        for used in &usage.daily_model_usage {
            self.daily.entry(used.date.clone()).or_default().add_model(used);
        }
    }

    pub(super) fn into_wire(self) -> (UsageTotals, UsageAggregates) {
        let tools = self.tools.into_iter().map(|(name, count)| ToolCount { name, count }).collect();
        let mut by_agent: Vec<AgentUsage> =
            self.by_agent.into_iter().map(|(agent_id, totals)| AgentUsage { agent_id, totals }).collect();
        let mut by_channel: Vec<ChannelUsage> =
            self.by_channel.into_iter().map(|(channel, totals)| ChannelUsage { channel, totals }).collect();
        let (mut by_model, mut by_provider) = (self.by_model, self.by_provider);
        by_model.sort_by(|a, b| dearest(&a.totals, &b.totals));
        by_provider.sort_by(|a, b| dearest(&a.totals, &b.totals));
        by_agent.sort_by(|a, b| dearest(&a.totals, &b.totals));
        by_channel.sort_by(|a, b| dearest(&a.totals, &b.totals));
        let (mut daily, mut daily_latency, mut model_daily) = (Vec::new(), Vec::new(), Vec::new());
        for (date, mut of_day) in self.daily {
            of_day.models.sort_by(|a, b| b.cost.total_cmp(&a.cost));
            model_daily.append(&mut of_day.models);
            let latency = of_day.pace.latency();
            daily_latency.extend(latency.map(|latency| DailyLatency { date: date.clone(), latency }));
            daily.push(DailyUsage {
                date,
                tokens: of_day.tokens,
                cost: of_day.cost,
                messages: of_day.counts.total,
                tool_calls: of_day.counts.tool_calls,
                errors: of_day.counts.errors,
            });
        }
        let aggregates = UsageAggregates {
            messages: self.messages,
            tools: sorted_tools(tools),
            by_model,
            by_provider,
            by_agent,
            by_channel,
            latency: self.pace.latency(),
            daily_latency,
            model_daily,
            daily,
        };
        (self.totals, aggregates)
    }
}

impl OfDay {
    fn add_model(&mut self, used: &DailyModelUsage) {
        let same =
            |known: &&mut DailyModelUsage| known.provider == used.provider && known.model == used.model;
        match self.models.iter_mut().find(same) {
            Some(known) => {
                known.tokens = known.tokens.saturating_add(used.tokens);
                known.cost += used.cost;
                known.count += used.count;
            }
            None => self.models.push(used.clone()),
        }
    }
}

impl LatencyTotals {
    fn add(&mut self, times: &LatencySamples, p95_ms: u64) {
        if times.count == 0 {
            return;
        }
        let min_ms = u64::from(times.min_ms);
        self.min_ms = if self.count == 0 { min_ms } else { self.min_ms.min(min_ms) };
        self.max_ms = self.max_ms.max(u64::from(times.max_ms));
        self.count += times.count;
        self.sum_ms = self.sum_ms.saturating_add(times.sum_ms);
        self.p95_ms = self.p95_ms.max(p95_ms);
    }

    fn latency(&self) -> Option<Latency> {
        (self.count > 0).then(|| Latency {
            count: self.count,
            avg_ms: mean(self.sum_ms, self.count),
            p95_ms: self.p95_ms,
            min_ms: self.min_ms,
            max_ms: self.max_ms,
        })
    }
}
