//! `agent` and `agent.wait` (spec `gateway-protocol.md` §6.3).

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::Platforms;
use openclaw_config::registry;
use openclaw_dispatch::api::{Accepted, AgentMessage, Occasion, RunOutcome, Waited};
use openclaw_dispatch::caller::CallerRights;
use openclaw_dispatch::{Dispatch, RunResult};
use openclaw_protocol::access::Access;
use openclaw_protocol::params::agent::{
    AgentAnswer, AgentParams, AgentStatus, AgentWaitParams, AgentWaitResult, Delivered, WaitStatus,
};
use openclaw_protocol::text_length::utf16_len;
use openclaw_protocol::{AgentId, Call, ErrorShape, Payload, RunId, SessionId, params};
use openclaw_sessions::layout::checked_id;
use openclaw_sessions::store::{Rows, key_of_transcript};
use openclaw_sessions::{SessionEntry, SessionKey, SessionStore};
use serde_json::{Map, Value};

use super::agent_delivery::{self, DeliveryPlan};
use super::keys::{given, require_known_agent, require_same_agent, session_key};
use crate::attachments;
use crate::current_settings::CurrentSettings;
use crate::fan_out::EventHub;
use crate::request::{RequestContext, RequestFailure};

/// `channel` of a client that means the one used last.
const LAST_CHANNEL: &str = "last";

/// Parts of the gateway that `agent` and `agent.wait` use.
pub(super) struct AgentMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) platforms: Arc<Platforms>,
    pub(super) dispatch: Dispatch,
    pub(super) events: Arc<EventHub>,
}

/// Answers twice: the acknowledgement when the message is on disk, the outcome when the run has ended. A repeated key gets
/// both as well (KB-11).
pub(super) async fn run(
    parts: &AgentMethods,
    ctx: RequestContext,
    params: AgentParams,
) -> Result<AgentAnswer, RequestFailure> {
    let (message, plan) = message(parts, &ctx, params).await?;
    let run_id = message.run_id.clone();
    ctx.listen_to_tools(&parts.events, &run_id);
    let receipt = ctx.outcome(parts.dispatch.agent(message).await).await?;
    let record = match receipt.accepted.clone() {
        Accepted::Finished(record) => Some(record),
        Accepted::New { accepted_at } | Accepted::InFlight { accepted_at } => {
            let ack = answer(&run_id, AgentStatus::Accepted { accepted_at });
            ctx.respond_early(&Payload::of(&ack)?);
            drop(receipt);
            parts.dispatch.ended(&run_id).await
        }
    };
    let has_ended = record.is_some();
    let told = answer(&run_id, record.map_or_else(interrupted, |record| ended(record.told())));
    let delivered = match plan {
        DeliveryPlan::Told => Delivered::default(),
        DeliveryPlan::Impossible(why) => Delivered::failed(why),
        DeliveryPlan::Sent(to) if has_ended => agent_delivery::outcome(&parts.dispatch, &run_id, &to).await,
        DeliveryPlan::Sent(_) => Delivered::queued(),
    };
    Ok(AgentAnswer { delivered, ..told })
}

fn answer(run_id: &RunId, status: AgentStatus) -> AgentAnswer {
    AgentAnswer { run_id: run_id.as_str().to_owned(), status, delivered: Delivered::default() }
}

/// The run is on disk and goes on at the next start; who asks again with the key then gets its outcome. A success on the
/// wire, as a failed run is: OpenClaw 2026.2.9's command line would run the turn again by itself.
fn interrupted() -> AgentStatus {
    let summary = "The gateway is stopping. The run goes on at its next start.".to_owned();
    AgentStatus::Error { summary, result: None }
}

/// The final answer of a run that has ended. A failed one is a success on the wire with status `error`: OpenClaw 2026.2.9's
/// command line takes `ok: false` for a dead gateway and runs the turn again by itself. It prints the texts of
/// `result.payloads`, or else the summary.
fn ended(outcome: RunOutcome) -> AgentStatus {
    let failure = outcome.failure().map(str::to_owned);
    match outcome {
        RunOutcome::Ok { result } => {
            AgentStatus::Ok { summary: "completed".to_owned(), result: result.into_json() }
        }
        RunOutcome::Aborted { reason: _, result } => {
            if let Some(summary) = failure {
                return AgentStatus::Error { summary, result: result.map(RunResult::into_json) };
            }
            let result = result.unwrap_or_else(RunResult::of_stopped).into_json();
            AgentStatus::Ok { summary: "aborted".to_owned(), result }
        }
        RunOutcome::Error { message, result } => {
            AgentStatus::Error { summary: message, result: result.map(RunResult::into_json) }
        }
    }
}

/// Checks everything that can be wrong with a request before it is acknowledged (KB-15).
async fn message(
    parts: &AgentMethods,
    ctx: &RequestContext,
    params: AgentParams,
) -> Result<(AgentMessage, DeliveryPlan), RequestFailure> {
    if params.message.0.trim().is_empty() {
        return Err(wrong("message is blank"));
    }
    let images = images(params.attachments.as_deref().unwrap_or_default())?;
    check_channels(&params)?;
    check_lengths(&params)?;
    let target = target(parts, &params).await?;
    let stored = parts.sessions.get(&target.key).await?;
    let entry = stored.as_ref().map(|row| row.entry.as_ref());
    let entry_patch = entry_patch(&params, &target.key, entry);
    let plan = agent_delivery::plan(&parts.settings.config(), &parts.platforms, &params, entry)?;
    let deliver_to = match &plan {
        DeliveryPlan::Sent(address) => Some(address.clone()),
        DeliveryPlan::Told | DeliveryPlan::Impossible(_) => None,
    };
    let message = AgentMessage {
        run_id: RunId::new(&params.idempotency_key.0),
        agent_id: target.agent,
        session_key: target.key,
        session_id: target.session_id.map(|id| id.as_str().to_owned()),
        text: params.message.0,
        images,
        thinking: params.thinking,
        timeout_seconds: params.timeout,
        lane: given(params.lane.as_deref()).map(str::to_owned),
        extra_system_prompt: params.extra_system_prompt,
        occasion: Occasion::Request,
        deliver_to,
        rights: CallerRights::of_client(false, Access::Admin.is_granted_by(&ctx.connection().scopes)),
        entry_patch,
    };
    Ok((message, plan))
}

fn wrong(text: &str) -> RequestFailure {
    ErrorShape::invalid_params(params::agent::Agent::NAME, text).into()
}

/// The images among the attachments, and words in the place of what is left out, which is logged.
pub(super) fn images(items: &[Value]) -> Result<Vec<openclaw_protocol::message::Block>, RequestFailure> {
    let decoded = attachments::decode(items)?;
    for warning in &decoded.warnings {
        tracing::warn!("{warning}");
    }
    Ok(decoded.images)
}

/// Succeeds if every channel named exists.
fn check_channels(params: &AgentParams) -> Result<(), RequestFailure> {
    for name in [params.channel.as_deref(), params.reply_channel.as_deref()].into_iter().filter_map(given) {
        if name.eq_ignore_ascii_case(LAST_CHANNEL) {
            continue;
        }
        if registry::by_name(name).is_none() {
            return Err(wrong(&format!("unknown channel: {name}")));
        }
    }
    Ok(())
}

/// Limit in characters for values that go into the session's row, or name a lane, for good: far
/// beyond what any platform calls its groups.
const MOST_OF_A_NAME: usize = 512;

/// Checks lengths: rows are kept, listed and rewritten, so nobody may fill them.
fn check_lengths(params: &AgentParams) -> Result<(), RequestFailure> {
    let names = [
        ("groupId", &params.group_id),
        ("groupChannel", &params.group_channel),
        ("groupSpace", &params.group_space),
        ("spawnedBy", &params.spawned_by),
        ("lane", &params.lane),
        ("thinking", &params.thinking),
    ];
    for (name, value) in names {
        if value.as_deref().is_some_and(|value| utf16_len(value) > MOST_OF_A_NAME) {
            return Err(wrong(&format!("{name} is longer than {MOST_OF_A_NAME} characters")));
        }
    }
    Ok(())
}

/// Target of a message.
#[derive(Debug, PartialEq)]
struct RunTarget {
    agent: AgentId,
    key: SessionKey,
    session_id: Option<SessionId>,
}

/// The session that the selectors of a request mean: its key, else the row of its transcript, else the main session of the
/// agent named, or of the default one when a recipient is given. A transcript that is in no row never goes to a main session,
/// which keeps its own: given alone it becomes a session of itself, beside another selector it means nothing, as in OpenClaw
/// 2026.2.9.
async fn target(parts: &AgentMethods, params: &AgentParams) -> Result<RunTarget, RequestFailure> {
    let config = parts.settings.config();
    let rules = parts.sessions.rules();
    let named = params.agent_id.as_ref().map(|id| AgentId::normalize(&id.0));
    if let (Some(id), Some(raw)) = (&named, &params.agent_id)
        && !config.has_agent(id)
    {
        return Err(wrong(&format!("unknown agent id \"{}\"", raw.0.trim())));
    }
    let session_id = match given(params.session_id.as_deref()) {
        Some(text) => Some(SessionId::new(checked_id(text).map_err(|error| wrong(&error.to_string()))?)),
        None => None,
    };
    if let Some(text) = given(params.session_key.as_deref()) {
        let key = session_key(&*parts.sessions, text).await?;
        let agent = rules.agent_of(&key);
        if let Some(named) = &named {
            require_same_agent(params::agent::Agent::NAME, named, &agent)?;
        }
        require_known_agent(&parts.settings, &parts.sessions, params::agent::Agent::NAME, &agent).await?;
        return Ok(RunTarget { agent, key, session_id: None });
    }
    let store = &*parts.sessions;
    if let Some(id) = &session_id
        && let Some(key) = key_of_transcript(store, named.as_ref().map_or(Rows::All, Rows::Of), id).await?
    {
        return Ok(RunTarget { agent: rules.agent_of(&key), key, session_id });
    }
    let by_recipient = given(params.to.as_deref()).is_some();
    match (named, session_id) {
        (None, Some(id)) if !by_recipient => {
            let agent = config.default_agent();
            Ok(RunTarget { key: SessionKey::of_transcript(&agent, &id)?, agent, session_id: Some(id) })
        }
        (None, None) if !by_recipient => {
            Err(wrong("no session chosen: give sessionKey, agentId, sessionId or to"))
        }
        (named, _) => {
            let agent = named.unwrap_or_else(|| config.default_agent());
            Ok(RunTarget { key: rules.main(&agent), agent, session_id: None })
        }
    }
}

/// Changes to the session's row from a request. The row's own channel and group count more than the
/// request's.
fn entry_patch(params: &AgentParams, key: &SessionKey, stored: Option<&SessionEntry>) -> Map<String, Value> {
    let channel = given(params.channel.as_deref())
        .filter(|name| !name.eq_ignore_ascii_case(LAST_CHANNEL))
        .and_then(registry::by_name)
        .map(|channel| channel.id)
        .filter(|_| stored.is_none_or(|entry| entry.channel.is_none()));
    let spawned_by = given(params.spawned_by.as_deref()).filter(|_| key.is_subagent());
    let fields = [
        ("label", params.label.as_ref().map(|label| label.0.trim()).filter(|label| !label.is_empty())),
        ("spawnedBy", spawned_by),
        ("channel", channel),
        ("groupId", given(params.group_id.as_deref())),
        ("groupChannel", given(params.group_channel.as_deref())),
        ("space", given(params.group_space.as_deref())),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    set.collect()
}

pub(super) async fn wait(
    parts: &AgentMethods,
    params: AgentWaitParams,
) -> Result<AgentWaitResult, RequestFailure> {
    let run_id = RunId::new(params.run_id.0.trim());
    let timeout = Duration::from_millis(params.timeout_ms.unwrap_or(AgentWaitParams::DEFAULT_TIMEOUT_MS));
    let waited = parts.dispatch.wait(&run_id, timeout).await;
    Ok(wait_result(&run_id, waited))
}

fn wait_result(run_id: &RunId, waited: Waited) -> AgentWaitResult {
    let run_id = run_id.as_str().to_owned();
    let Waited::Ended(record) = waited else {
        return AgentWaitResult {
            run_id,
            status: WaitStatus::Timeout,
            started_at: None,
            ended_at: None,
            error: None,
        };
    };
    // A run that ran out of time has failed; one that someone stopped has not.
    let error = record.outcome.failure().map(str::to_owned);
    let status = if error.is_some() { WaitStatus::Error } else { WaitStatus::Ok };
    AgentWaitResult { run_id, status, started_at: record.started_at, ended_at: Some(record.ended_at), error }
}

#[cfg(test)]
mod tests {
    use openclaw_dispatch::api::RunRecord;

    use serde_json::json;

    use super::*;

    fn params(value: &Value) -> AgentParams {
        let mut fields = json!({"message": "hi", "idempotencyKey": "r"});
        fields.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        params::agent::Agent::read(Some(fields)).unwrap()
    }

    fn record(outcome: RunOutcome) -> RunRecord {
        RunRecord { run_id: RunId::new("r"), started_at: Some(1), ended_at: 2, outcome, report: None }
    }

    #[test]
    fn outcomes_are_answered_as_clients_know_them() {
        let told = |outcome| serde_json::to_string(&answer(&RunId::new("r"), ended(outcome))).unwrap();
        let ok = told(RunOutcome::Ok { result: json!({"payloads": []}).into() });
        let expect =
            json!({"runId": "r", "status": "ok", "summary": "completed", "result": {"payloads": []}});
        assert_eq!(ok, expect.to_string());
        let aborted = told(RunOutcome::Aborted { reason: "rpc".into(), result: None });
        let result = json!({"payloads": [], "meta": {"aborted": true}});
        let expect = json!({"runId": "r", "status": "ok", "summary": "aborted", "result": result});
        assert_eq!(aborted, expect.to_string());
        let failed = told(RunOutcome::Error { message: "boom".into(), result: None });
        let expect = json!({"runId": "r", "status": "error", "summary": "boom"});
        assert_eq!(failed, expect.to_string());
        let late = told(RunOutcome::Aborted {
            reason: "timeout".into(),
            result: Some(json!({"payloads": [], "meta": {"error": {"message": "timed out"}}}).into()),
        });
        let result = json!({"payloads": [], "meta": {"error": {"message": "timed out"}}});
        let expect = json!({"runId": "r", "status": "error", "summary": "timed out", "result": result});
        assert_eq!(late, expect.to_string());
    }

    #[test]
    fn waiting_tells_how_a_run_ended() {
        let run = RunId::new("r");
        let rows = [
            (Waited::TimedOut, json!({"runId": "r", "status": "timeout"})),
            (
                Waited::Ended(record(RunOutcome::Ok { result: Value::Null.into() })),
                json!({"runId": "r", "status": "ok", "startedAt": 1, "endedAt": 2}),
            ),
            (
                Waited::Ended(record(RunOutcome::Aborted { reason: "stop".into(), result: None })),
                json!({"runId": "r", "status": "ok", "startedAt": 1, "endedAt": 2}),
            ),
            (
                Waited::Ended(record(RunOutcome::Aborted {
                    reason: "timeout".into(),
                    result: Some(
                        json!({"meta": {"error": {"kind": "timeout", "message": "too long"}}}).into(),
                    ),
                })),
                json!({"runId": "r", "status": "error", "startedAt": 1, "endedAt": 2, "error": "too long"}),
            ),
            (
                Waited::Ended(record(RunOutcome::Error { message: "x".into(), result: None })),
                json!({"runId": "r", "status": "error", "startedAt": 1, "endedAt": 2, "error": "x"}),
            ),
        ];
        for (waited, expect) in rows {
            assert_eq!(serde_json::to_value(wait_result(&run, waited)).unwrap(), expect);
        }
    }

    #[test]
    fn channels_must_exist() {
        let rows = [
            (json!({"channel": "carrier-pigeon"}), "invalid agent params: unknown channel: carrier-pigeon"),
            (json!({"replyChannel": "fax"}), "invalid agent params: unknown channel: fax"),
            (json!({"channel": "last", "deliver": true}), "ok"),
            (json!({"channel": "webchat", "deliver": true}), "ok"),
            (json!({"channel": "Telegram"}), "ok"),
        ];
        for (value, expect) in rows {
            let text = check_channels(&params(&value)).map_or_else(|f| f.error.message, |()| "ok".to_owned());
            assert_eq!(text, expect, "{value}");
        }
    }

    #[test]
    fn names_that_stay_in_the_row_are_short() {
        for name in ["groupId", "groupChannel", "groupSpace", "spawnedBy", "lane", "thinking"] {
            let text = |length: usize| {
                let checked = check_lengths(&params(&json!({name: "x".repeat(length)})));
                checked.map_or_else(|failure| failure.error.message, |()| "ok".to_owned())
            };
            assert_eq!(text(512), "ok", "{name}");
            assert_eq!(text(513), format!("invalid agent params: {name} is longer than 512 characters"));
        }
    }

    #[test]
    fn the_row_learns_what_the_request_says_of_the_session() {
        let child = SessionKey::parse("agent:main:subagent:x").unwrap();
        let side = SessionKey::parse("agent:main:side").unwrap();
        let all = json!({"label": " side ", "spawnedBy": "agent:main:main", "channel": "gchat", "groupId": "g",
                         "groupChannel": "#c", "groupSpace": " "});
        let of_child = json!({"label": "side", "spawnedBy": "agent:main:main", "channel": "googlechat", "groupId": "g",
                              "groupChannel": "#c"});
        assert_eq!(Value::from(entry_patch(&params(&all), &child, None)), of_child);
        let stored: SessionEntry = serde_json::from_str(r#"{"channel":"slack"}"#).unwrap();
        let of_side = json!({"label": "side", "groupId": "g", "groupChannel": "#c"});
        assert_eq!(Value::from(entry_patch(&params(&all), &side, Some(&stored))), of_side);
        assert_eq!(entry_patch(&params(&json!({"channel": "last"})), &side, None), Map::new());
    }
}
