//! Chat platforms: `channels.*`, `send`, `poll`, `trace` (spec `gateway-protocol.md` §6.9, `channels.md` §15).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

super::calls! {
    /// Status of the accounts of all platforms.
    ChannelsStatus: "channels.status" as Strict, ChannelsStatusParams => ChannelsStatusResult;
    /// Forgets an account's credentials.
    ChannelsLogout: "channels.logout" as Strict, ChannelsLogoutParams => ChannelsLogoutResult;
    /// Starts an account, or starts it anew (ours).
    ChannelsStart: "channels.start" as Strict, ChannelAccountParams => ChannelAccountResult;
    /// Stops an account until it is started again (ours).
    ChannelsStop: "channels.stop" as Strict, ChannelAccountParams => ChannelAccountResult;
    /// Sends a message to a platform.
    Send: "send" as Strict, SendParams => SendResult;
    /// Asks a question with answers to choose from.
    Poll: "poll" as Strict, PollParams => SendResult;
    /// Does any other action of the `message` tool (of a later OpenClaw).
    MessageAction: "message.action" as Strict, MessageActionParams => Value;
    /// Messages that could not be sent and were given up (ours).
    MessageFailed: "message.failed" as Strict, MessageFailedParams => MessageFailedResult;
    /// Sends again what was given up (ours).
    MessageRetry: "message.retry" as Strict, MessageIdsParams => MessageRetryResult;
    /// Forgets what was given up (ours).
    MessageDiscard: "message.discard" as Strict, MessageIdsParams => MessageDiscardResult;
    /// History of a platform's message: what was done with it (ours).
    Trace: "trace" as Strict, TraceParams => TraceResult;
}

/// Params of `channels.status`.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChannelsStatusParams {
    /// Whether platforms are asked.
    pub probe: Option<bool>,
    /// How long they may take, in milliseconds; at least 1,000, by default 10,000.
    pub timeout_ms: Option<u64>,
}

/// Result of `channels.status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelsStatusResult {
    /// Unix milliseconds.
    pub ts: i64,
    /// Ids, in order.
    pub channel_order: Vec<String>,
    /// Names by id.
    pub channel_labels: BTreeMap<String, String>,
    /// Longer names by id.
    pub channel_detail_labels: BTreeMap<String, String>,
    /// Symbols by id.
    pub channel_system_images: BTreeMap<String, String>,
    /// The same once more, one an entry.
    pub channel_meta: Vec<ChannelMeta>,
    /// How the default account of each stands.
    pub channels: Map<String, Value>,
    /// How all accounts stand.
    pub channel_accounts: BTreeMap<String, Vec<Map<String, Value>>>,
    /// The account that sends where none is named.
    pub channel_default_account_id: BTreeMap<String, String>,
}

/// What a platform is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelMeta {
    /// Id.
    pub id: String,
    /// Name.
    pub label: String,
    /// Longer name.
    pub detail_label: String,
    /// Symbol.
    pub system_image: String,
}

/// Params of `channels.logout`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChannelsLogoutParams {
    /// Platform.
    pub channel: String,
    /// Account; the default one where absent.
    pub account_id: Option<String>,
}

/// Result of `channels.logout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelsLogoutResult {
    /// Platform.
    pub channel: String,
    /// Account.
    pub account_id: String,
    /// Whether there was anything to forget.
    pub cleared: bool,
    /// Whether it has no credentials any more.
    pub logged_out: bool,
    /// Whether a variable of the environment still has a token.
    pub env_token: bool,
}

/// Params of `channels.start` and `channels.stop`.
pub type ChannelAccountParams = ChannelsLogoutParams;

/// Result of `channels.start` and `channels.stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelAccountResult {
    /// Platform.
    pub channel: String,
    /// Account.
    pub account_id: String,
    /// Whether it works now.
    pub running: bool,
}

/// Params of `send`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendParams {
    /// Where to.
    #[schemars(length(min = 1))]
    pub to: String,
    /// Markdown.
    pub message: String,
    /// A file: an address, or a path.
    pub media_url: Option<String>,
    /// Several.
    pub media_urls: Option<Vec<String>>,
    /// Whether a video plays as a GIF does.
    pub gif_playback: Option<bool>,
    /// Platform.
    pub channel: Option<String>,
    /// Account; the default one where absent.
    pub account_id: Option<String>,
    /// The session it belongs to: its transcript tells of it.
    pub session_key: Option<String>,
    /// The message it answers (ours).
    pub reply_to: Option<String>,
    /// Thread (ours).
    pub thread_id: Option<String>,
    /// Whether the reader's device stays silent (ours).
    pub silent: Option<bool>,
    /// Rows of buttons below it (ours).
    pub buttons: Option<Vec<Vec<ButtonParams>>>,
    /// Makes a repetition the same request.
    #[schemars(length(min = 1))]
    pub idempotency_key: String,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ButtonParams {
    /// What stands on it.
    #[schemars(length(min = 1))]
    pub text: String,
    /// What comes back when it is pressed, 64 bytes at most.
    #[schemars(length(min = 1))]
    pub callback_data: String,
}

/// Params of `message.action`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageActionParams {
    /// Its name, such as `react`.
    #[schemars(length(min = 1))]
    pub action: String,
    /// Its arguments, by the names of the `message` tool.
    pub params: Map<String, Value>,
    /// Platform.
    pub channel: Option<String>,
    /// Account; the default one where absent.
    pub account_id: Option<String>,
    /// The session it is done for.
    pub session_key: Option<String>,
    /// Whether nothing is done.
    pub dry_run: Option<bool>,
    /// Makes a repetition the same request.
    #[schemars(length(min = 1))]
    pub idempotency_key: String,
}

/// Params of `poll`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PollParams {
    /// Where to.
    #[schemars(length(min = 1))]
    pub to: String,
    /// The question.
    #[schemars(length(min = 1))]
    pub question: String,
    /// The answers.
    #[schemars(length(min = 2, max = 12))]
    pub options: Vec<String>,
    /// How many may be chosen.
    #[schemars(range(min = 1, max = 12))]
    pub max_selections: Option<u64>,
    /// How long it is open.
    #[schemars(range(min = 1))]
    pub duration_hours: Option<u32>,
    /// Platform.
    pub channel: Option<String>,
    /// Account; the default one where absent.
    pub account_id: Option<String>,
    /// Makes a repetition the same request.
    #[schemars(length(min = 1))]
    pub idempotency_key: String,
}

/// Result of `send` and `poll`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendResult {
    /// The idempotency key.
    pub run_id: String,
    /// The platform's id of the message; of several the last.
    pub message_id: String,
    /// Platform.
    pub channel: String,
    /// Conversation.
    pub chat_id: Option<String>,
}

/// Params of `message.failed`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageFailedParams {
    /// Those of one platform.
    pub channel: Option<String>,
    /// Those of accounts of this name.
    pub account_id: Option<String>,
    /// How many at most; by default 100.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
}

/// Result of `message.failed`: what was given up, and what waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageFailedResult {
    /// The newest first.
    pub failed: Vec<FailedMessage>,
    /// How many there are.
    pub total: u64,
    /// What waits, or is being sent right now, in the order of acceptance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<FailedMessage>,
    /// How many of these there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting_total: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A message, or a part of one, that was given up, or waits.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedMessage {
    /// Its id, as `trace`, `message.retry` and `message.discard` take it.
    pub id: String,
    /// Platform.
    pub channel: String,
    /// Account.
    pub account_id: String,
    /// The conversation it was for.
    pub to: String,
    /// Thread in it.
    pub thread_id: Option<String>,
    /// The session it belongs to.
    pub session_key: Option<String>,
    /// What it consists of: `text`, `media`, `sticker` or `poll`; absent where it can't be read any more.
    pub kind: Option<String>,
    /// How its words begin.
    pub text: Option<String>,
    /// The name of its file.
    pub file: Option<String>,
    /// Tries that counted.
    pub attempts: u32,
    /// Why it was given up, or why its last try failed; empty where none has.
    pub error: String,
    /// Whether it may have arrived: sent again, its reader may see it twice.
    pub uncertain: bool,
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// Unix milliseconds at which it was given up.
    pub failed_at: Option<i64>,
    /// Of one that waits: `pending`, `sending` or `uncertain`.
    pub state: Option<String>,
    /// Of one that waits: Unix milliseconds of the next try at the earliest.
    pub next_at: Option<i64>,
    /// Of one that waits: the one of its conversation that is sent before it.
    pub waits_behind: Option<String>,
    /// Of one that waits: its account, where that does not work, and why.
    pub waits_for_account: Option<String>,
}

/// Params of `message.retry` and `message.discard`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageIdsParams {
    /// Which.
    pub ids: Option<Vec<String>>,
    /// All, instead; with `channel` and `accountId` all of these.
    pub all: Option<bool>,
    /// Those of one platform.
    pub channel: Option<String>,
    /// Those of accounts of this name.
    pub account_id: Option<String>,
}

/// Result of `message.retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageRetryResult {
    /// Those that will be sent again. The parts of one message that were given up together are sent together.
    pub retried: Vec<String>,
    /// Those that waited, and are tried now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hastened: Vec<String>,
    /// Why those of both wait whose account does not work.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, String>,
    /// Those that nobody can send, because their account is not configured any more, with the account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// The rest, and how they stand: `sending`, `sent`, `discarded` or `unknown`.
    pub others: BTreeMap<String, String>,
}

/// Result of `message.discard`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageDiscardResult {
    /// Those that will not be sent.
    pub discarded: Vec<String>,
    /// The rest, and how they stand: `sending`, `sent`, `discarded` or `unknown`.
    pub others: BTreeMap<String, String>,
}

/// Params of `trace`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceParams {
    /// A platform's id of a message or an event, or a run's; the newest message where absent.
    pub id: Option<String>,
}

/// Result of `trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceResult {
    /// What came of each event of that id, the newest first.
    pub events: Vec<TraceEvent>,
    /// The runs that are named by that id, or behind the delivery it names: those of clients have no events.
    pub runs: Vec<TraceRun>,
    /// The deliveries that are named by that id and answer nothing, such as what `openclaw message send` sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<TraceDelivery>,
    /// How many events there are of each fate.
    pub tally: BTreeMap<String, u64>,
}

/// An event of a platform, and what became of it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceEvent {
    /// Its number: numbers grow in the order of arrival.
    pub number: i64,
    /// Platform.
    pub channel: String,
    /// Account.
    pub account_id: String,
    /// The platform's id of the event.
    pub event_id: String,
    /// The platform's id of the message.
    pub message_id: Option<String>,
    /// Conversation.
    pub target: String,
    /// Unix milliseconds.
    pub received_at: i64,
    /// Unix milliseconds at which the platform says it happened.
    pub said_at: Option<i64>,
    /// Whether nobody was there when it happened: it was received while offline.
    #[serde(rename = "late")]
    pub is_late: Option<bool>,
    /// How often it was brought once more, and passed over.
    pub repeats: u32,
    /// `waiting`, `run`, `noted`, `handled` or `dropped`.
    pub fate: String,
    /// By which rule, or how.
    pub reason: Option<String>,
    /// Unix milliseconds.
    pub decided_at: Option<i64>,
    /// Of one that was noted: the run with whose message it was told.
    pub told_in: Option<String>,
    /// The session it was led to.
    pub session_key: Option<String>,
    /// By what kind of binding: `binding.peer`, …, or `default`.
    pub matched_by: Option<String>,
    /// The run that it is part of.
    pub run: Option<TraceRun>,
    /// What the gateway said to it by itself.
    pub answers: Vec<TraceDelivery>,
}

/// A run, and what was sent of its answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceRun {
    /// The run.
    pub run_id: String,
    /// What brought it, such as `chat` or `agent`.
    pub kind: Option<String>,
    /// The session.
    pub session_key: Option<String>,
    /// The conversation it began in.
    pub session_id: Option<String>,
    /// Unix milliseconds.
    pub accepted_at: Option<i64>,
    /// How it is treated while another run of its session is under way.
    pub queue_mode: Option<String>,
    /// The run that took the message into itself: it was steered into that, or collected.
    pub taken_by: Option<String>,
    /// `true` where a full queue dropped it, and the run that took it tells the agent no more than its first words. Ours.
    #[serde(rename = "dropped")]
    pub is_dropped: Option<bool>,
    /// The messages that this run took into itself, by their runs.
    pub took: Vec<String>,
    /// How often it began: more than once where the gateway ended in between.
    pub attempts: Option<u32>,
    /// `accepted`, `ok`, `error`, `aborted`, or `forgotten`.
    pub state: String,
    /// By what somebody asked to stop it.
    pub stopped_by: Option<String>,
    /// Provider that answered.
    pub provider: Option<String>,
    /// Model that answered.
    pub model: Option<String>,
    /// Whether the gateway answered it by itself, as a command; no model was asked. Ours.
    #[serde(rename = "command")]
    pub is_command: Option<bool>,
    /// Whether the run before has read it too, as far as the transcript tells it: queue mode `steer-backlog`. Ours.
    #[serde(rename = "readBefore")]
    pub was_read_before: Option<bool>,
    /// That run, as far as it is remembered; its deliveries stand behind the run's own. Ours.
    pub read_by: Option<String>,
    /// How often the model answered, as far as the transcript tells it.
    pub model_calls: Option<u32>,
    /// The tool calls, in order, as far as the transcript tells them.
    pub tools: Vec<TraceTool>,
    /// The model's last answer had no words: `empty`, or `silent` where it chose to say nothing. Ours.
    pub silence: Option<String>,
    /// Why it failed, or who stopped it.
    pub error: Option<String>,
    /// Unix milliseconds.
    pub started_at: Option<i64>,
    /// Unix milliseconds.
    pub ended_at: Option<i64>,
    /// The events that are part of it.
    pub events: Vec<String>,
    /// What was sent, in order.
    pub deliveries: Vec<TraceDelivery>,
}

/// A tool call of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceTool {
    /// The model's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Whether it failed; absent where it has no result.
    pub failed: Option<bool>,
    /// `true` where the gateway ended during the call: it may have happened.
    pub is_interrupted: Option<bool>,
}

/// A delivery of an answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceDelivery {
    /// Its id.
    pub id: String,
    /// Platform.
    pub channel: Option<String>,
    /// Account.
    pub account_id: Option<String>,
    /// The conversation it goes to.
    pub target: Option<String>,
    /// Thread in it.
    pub thread_id: Option<String>,
    /// `pending`, `sending`, `uncertain`, `sent` or `failed`.
    pub state: String,
    /// Tries that count.
    pub attempts: u32,
    /// Whether the reader may see it twice.
    pub uncertain: bool,
    /// The platform's ids of what was made of it.
    pub message_ids: Vec<String>,
    /// Why it is not sent yet, or will not be.
    pub error: Option<String>,
    /// The delivery of its conversation that is sent before it, while both wait. Ours.
    pub waits_for: Option<String>,
    /// Its account, where that does not work, and why, while it waits. Ours.
    pub waits_for_account: Option<String>,
    /// Whether a person threw it away. Ours.
    #[serde(rename = "discarded")]
    pub is_discarded: Option<bool>,
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// Unix milliseconds of the next try at the earliest, while it is open.
    pub next_at: Option<i64>,
    /// Unix milliseconds at which it was sent or given up.
    pub ended_at: Option<i64>,
}
