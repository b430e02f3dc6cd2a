//! `usage.status`: quotas, as providers tell. `usage.cost` and `sessions.usage*`: tokens and money, as the transcripts tell (spec `gateway-protocol.md` §6.1, §6.2,
//! `operations.md` §13). Costs are US dollars, dates `YYYY-MM-DD` in UTC, times Unix milliseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::{apply, skip_serializing_none};

use super::NonEmpty;
use crate::message::js_number;

super::calls! {
    /// Used share of the quotas, as the providers report it.
    UsageStatus: "usage.status" as Loose, super::Ignored => UsageStatusResult;
    /// Tokens and cost by day, all sessions together.
    UsageCost: "usage.cost" as Loose, UsageCostParams => UsageCostResult;
    /// Tokens and cost by session, with sums by model, agent, channel and day.
    SessionsUsage: "sessions.usage" as Strict, SessionsUsageParams => SessionsUsageResult;
    /// Tokens and cost of one session over time.
    SessionsUsageTimeseries: "sessions.usage.timeseries" as Loose, SessionsUsageTimeseriesParams => SessionsUsageTimeseriesResult;
    /// Messages of one session, with the cost of each answer.
    SessionsUsageLogs: "sessions.usage.logs" as Loose, SessionsUsageLogsParams => SessionsUsageLogsResult;
}

/// Result of `usage.status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageStatusResult {
    /// When the providers were asked.
    pub updated_at: i64,
    /// Those that were asked.
    pub providers: Vec<ProviderUsage>,
}

/// What one provider says of its quota.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderUsage {
    /// Provider id.
    pub provider: String,
    /// Its name for people.
    pub display_name: String,
    /// Its windows; empty when it says none, or when there is an error.
    pub windows: Vec<UsageWindow>,
    /// What the account pays for.
    pub plan: Option<String>,
    /// Why nothing is known.
    pub error: Option<String>,
}

/// A span of time for which a provider counts.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageWindow {
    /// Its name, such as `5h` or `Week`.
    pub label: String,
    /// How much is used, 0 to 100.
    #[serde(serialize_with = "js_number")]
    pub used_percent: f64,
    /// When it begins anew.
    pub reset_at: Option<i64>,
}

/// A day, `YYYY-MM-DD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Date(#[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))] pub String);

/// Params of `usage.cost`.
#[apply(crate = "serde_with_macros", Option => #[serde(default, deserialize_with = "super::lenient")])]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageCostParams {
    /// First day.
    pub start_date: Option<String>,
    /// Last day; today unless told.
    pub end_date: Option<String>,
    /// How many days when `startDate` is not given; 30 unless told. A number or its text.
    pub days: Option<Days>,
}

/// A number of days as clients write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Days {
    /// A number.
    Number(f64),
    /// The text of one.
    Text(String),
}

/// Result of `usage.cost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageCostResult {
    /// When it was counted.
    pub updated_at: i64,
    /// Number of days asked for.
    pub days: u64,
    /// Days with usage, oldest first.
    pub daily: Vec<DailyCost>,
    /// All days together.
    pub totals: UsageTotals,
}

/// One day of `usage.cost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DailyCost {
    /// The day.
    pub date: String,
    /// Its sums.
    #[serde(flatten)]
    pub totals: UsageTotals,
}

/// Sums of tokens and of what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Completion tokens.
    pub output: u64,
    /// Prompt tokens read from a provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to a provider's cache.
    pub cache_write: u64,
    /// As the answers say.
    pub total_tokens: u64,
    /// All costs.
    #[serde(serialize_with = "js_number")]
    pub total_cost: f64,
    /// Cost of `input`.
    #[serde(serialize_with = "js_number")]
    pub input_cost: f64,
    /// Cost of `output`.
    #[serde(serialize_with = "js_number")]
    pub output_cost: f64,
    /// Cost of `cacheRead`.
    #[serde(serialize_with = "js_number")]
    pub cache_read_cost: f64,
    /// Cost of `cacheWrite`.
    #[serde(serialize_with = "js_number")]
    pub cache_write_cost: f64,
    /// Answers whose cost nobody knows: they say none, and the catalog has no price for their model.
    pub missing_cost_entries: u64,
}

/// Params of `sessions.usage`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionsUsageParams {
    /// Only this session.
    pub key: Option<NonEmpty>,
    /// First day; 30 days up to the last one unless told.
    pub start_date: Option<Date>,
    /// Last day; today unless told.
    pub end_date: Option<Date>,
    /// Sessions at most, those used last; 50 unless told.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Whether sessions say what their prompt is made of.
    pub include_context_weight: Option<bool>,
}

impl SessionsUsageParams {
    /// Sessions answered when the client does not say.
    pub const DEFAULT_LIMIT: u64 = 50;
}

/// Result of `sessions.usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsUsageResult {
    /// When it was counted.
    pub updated_at: i64,
    /// First day.
    pub start_date: String,
    /// Last day.
    pub end_date: String,
    /// Used last first.
    pub sessions: Vec<SessionUsage>,
    /// All of them together.
    pub totals: UsageTotals,
    /// The same, divided.
    pub aggregates: UsageAggregates,
}

/// One session of `sessions.usage`; keys are absent when unset.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    /// Canonical key; `agent:<id>:<file name>` of a transcript no session stands for any more.
    pub key: String,
    /// Its label.
    pub label: Option<String>,
    /// Its transcript's id.
    pub session_id: String,
    /// Last activity.
    pub updated_at: i64,
    /// Whose it is.
    pub agent_id: String,
    /// Channel it belongs to.
    pub channel: Option<String>,
    /// `direct`, `group` or `channel`.
    pub chat_type: Option<String>,
    /// Where it came from.
    pub origin: Option<Map<String, Value>>,
    /// Override.
    pub model_override: Option<String>,
    /// Override.
    pub provider_override: Option<String>,
    /// Provider used last.
    pub model_provider: Option<String>,
    /// Model used last.
    pub model: Option<String>,
    /// What it used.
    pub usage: SessionUsageSummary,
    /// What its prompt is made of; `null` when nobody noted it, absent when nobody asked.
    #[serde(default, deserialize_with = "present")]
    pub context_weight: Option<Value>,
}

/// Tells a `null` from an absent field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What one session used in the days asked for.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsageSummary {
    /// Its transcript's id.
    pub session_id: String,
    /// Its transcript.
    pub session_file: String,
    /// First message.
    pub first_activity: Option<i64>,
    /// Last message.
    pub last_activity: Option<i64>,
    /// Milliseconds between the two.
    pub duration_ms: Option<i64>,
    /// Days with messages.
    pub activity_dates: Vec<String>,
    /// Tokens and cost of the days with usage.
    pub daily_breakdown: Vec<DailyTokens>,
    /// Messages by day.
    pub daily_message_counts: Vec<DailyMessageCounts>,
    /// How long answers took, by day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daily_latency: Vec<DailyLatency>,
    /// Tokens and cost by day and model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daily_model_usage: Vec<DailyModelUsage>,
    /// Messages.
    pub message_counts: MessageCounts,
    /// Tools called.
    pub tool_usage: Option<ToolUsage>,
    /// By model, the dearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_usage: Vec<ModelUsage>,
    /// How long answers took.
    pub latency: Option<Latency>,
    /// Its sums.
    #[serde(flatten)]
    pub totals: UsageTotals,
}

/// Tokens and cost of a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DailyTokens {
    /// The day.
    pub date: String,
    /// Tokens.
    pub tokens: u64,
    /// Cost.
    #[serde(serialize_with = "js_number")]
    pub cost: f64,
}

/// Numbers of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageCounts {
    /// Of users and of the agent.
    pub total: u64,
    /// Of users.
    pub user: u64,
    /// Of the agent.
    pub assistant: u64,
    /// Tools the agent called.
    pub tool_calls: u64,
    /// What tools answered.
    pub tool_results: u64,
    /// Failed answers and tools.
    pub errors: u64,
}

/// Numbers of messages of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DailyMessageCounts {
    /// The day.
    pub date: String,
    /// Its numbers.
    #[serde(flatten)]
    pub counts: MessageCounts,
}

/// How long answers took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// How many answers.
    pub count: u64,
    /// Mean.
    #[serde(serialize_with = "js_number")]
    pub avg_ms: f64,
    /// 19 of 20 were not slower.
    pub p95_ms: u64,
    /// Fastest.
    pub min_ms: u64,
    /// Slowest.
    pub max_ms: u64,
}

/// How long the answers of a day took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DailyLatency {
    /// The day.
    pub date: String,
    /// Its figures.
    #[serde(flatten)]
    pub latency: Latency,
}

/// Tokens and cost of a model on a day.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DailyModelUsage {
    /// The day.
    pub date: String,
    /// Provider id.
    pub provider: Option<String>,
    /// Model id.
    pub model: Option<String>,
    /// Tokens.
    pub tokens: u64,
    /// Cost.
    #[serde(serialize_with = "js_number")]
    pub cost: f64,
    /// Answers.
    pub count: u64,
}

/// Sums of a model or of a provider.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsage {
    /// Provider id.
    pub provider: Option<String>,
    /// Model id.
    pub model: Option<String>,
    /// Answers.
    pub count: u64,
    /// Its sums.
    pub totals: UsageTotals,
}

/// Tools called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUsage {
    /// Calls.
    pub total_calls: u64,
    /// Tools.
    pub unique_tools: u64,
    /// Called most first.
    pub tools: Vec<ToolCount>,
}

/// How often a tool was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCount {
    /// Its name.
    pub name: String,
    /// Calls.
    pub count: u64,
}

/// The sums of `sessions.usage`, divided.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageAggregates {
    /// Messages.
    pub messages: MessageCounts,
    /// Tools.
    pub tools: ToolUsage,
    /// By model, the dearest first.
    pub by_model: Vec<ModelUsage>,
    /// By provider, the dearest first.
    pub by_provider: Vec<ModelUsage>,
    /// By agent, the dearest first.
    pub by_agent: Vec<AgentUsage>,
    /// By channel, the dearest first.
    pub by_channel: Vec<ChannelUsage>,
    /// How long answers took; `p95Ms` is the highest one of a session.
    pub latency: Option<Latency>,
    /// The same by day.
    pub daily_latency: Vec<DailyLatency>,
    /// By day and model.
    pub model_daily: Vec<DailyModelUsage>,
    /// By day.
    pub daily: Vec<DailyUsage>,
}

/// Sums of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUsage {
    /// The agent.
    pub agent_id: String,
    /// Its sums.
    pub totals: UsageTotals,
}

/// Sums of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelUsage {
    /// The channel.
    pub channel: String,
    /// Its sums.
    pub totals: UsageTotals,
}

/// All sessions on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DailyUsage {
    /// The day.
    pub date: String,
    /// Tokens.
    pub tokens: u64,
    /// Cost.
    #[serde(serialize_with = "js_number")]
    pub cost: f64,
    /// Messages of users and of agents.
    pub messages: u64,
    /// Tools called.
    pub tool_calls: u64,
    /// Failed answers and tools.
    pub errors: u64,
}

/// Params of `sessions.usage.timeseries`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionsUsageTimeseriesParams {
    /// Which session; required.
    #[serde(default, deserialize_with = "super::lenient")]
    pub key: Option<String>,
}

/// Result of `sessions.usage.timeseries`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsUsageTimeseriesResult {
    /// The transcript's id.
    pub session_id: String,
    /// Oldest first; when there were more answers than [`Self::MAX_POINTS`] a point stands for several that follow each
    /// other.
    pub points: Vec<UsagePoint>,
}

impl SessionsUsageTimeseriesResult {
    /// Points at most.
    pub const MAX_POINTS: usize = 200;
}

/// One answer, or several in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsagePoint {
    /// When.
    pub timestamp: i64,
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Completion tokens.
    pub output: u64,
    /// Prompt tokens read from a provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to a provider's cache.
    pub cache_write: u64,
    /// As the answer says.
    pub total_tokens: u64,
    /// What it cost; 0 when nobody knows.
    #[serde(serialize_with = "js_number")]
    pub cost: f64,
    /// `totalTokens` up to here.
    pub cumulative_tokens: u64,
    /// `cost` up to here.
    #[serde(serialize_with = "js_number")]
    pub cumulative_cost: f64,
}

/// Params of `sessions.usage.logs`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionsUsageLogsParams {
    /// Which session; required.
    #[serde(default, deserialize_with = "super::lenient")]
    pub key: Option<String>,
    /// Messages at most, the last ones; 200 unless told, 1000 at most.
    #[serde(default, deserialize_with = "super::lenient")]
    pub limit: Option<f64>,
}

/// Result of `sessions.usage.logs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsUsageLogsResult {
    /// Oldest first.
    pub logs: Vec<UsageLog>,
}

impl SessionsUsageLogsResult {
    /// Messages when the client does not say.
    pub const DEFAULT_LIMIT: usize = 200;
    /// Messages at most.
    pub const MAX_LIMIT: usize = 1000;
}

/// One message of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageLog {
    /// When.
    pub timestamp: i64,
    /// Who said it.
    pub role: UsageLogRole,
    /// What, cut.
    pub content: String,
    /// Tokens of an answer.
    pub tokens: Option<u64>,
    /// Cost of an answer, where known.
    #[serde(serialize_with = "optional_number")]
    pub cost: Option<f64>,
}

fn optional_number<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => js_number(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Who said something in `sessions.usage.logs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UsageLogRole {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    ToolResult,
}
