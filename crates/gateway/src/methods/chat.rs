//! `chat.send`, `chat.history`, `chat.abort`, `chat.inject` (spec `gateway-protocol.md` §6.4).

mod history;

use std::sync::Arc;

use openclaw_dispatch::api::{Accepted, ChatMessage, RunOutcome, RunRecord};
use openclaw_dispatch::caller::CallerRights;
use openclaw_dispatch::{AbortReason, AbortTarget, Dispatch, InjectMessage, Sent, Stopped};
use openclaw_models::Models;
use openclaw_protocol::access::Access;
use openclaw_protocol::params::chat::{
    ChatAbortParams, ChatAborted, ChatInjectParams, ChatInjected, ChatSendParams, ChatSendResult,
    ChatSendStatus,
};
use openclaw_protocol::{Call, ErrorShape, Payload, RunId, params};
use openclaw_sessions::SessionStore;
use openclaw_sessions::transcript::Transcripts;

use super::agent::images;
use super::keys::{given, require_known_agent, session_key};
use crate::attachments;
use crate::current_settings::CurrentSettings;
use crate::fan_out::EventHub;
use crate::request::{RequestContext, RequestFailure};

pub(super) use history::history;

/// Parts of the gateway that `chat.*` use.
pub(super) struct ChatMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) transcripts: Transcripts,
    pub(super) models: Models,
    pub(super) dispatch: Dispatch,
    pub(super) events: Arc<EventHub>,
}

pub(super) async fn send(
    parts: &ChatMethods,
    ctx: RequestContext,
    params: ChatSendParams,
) -> Result<ChatSendResult, RequestFailure> {
    let key = session_key(&*parts.sessions, &params.session_key.0).await?;
    let attached = params.attachments.as_deref().unwrap_or_default();
    if params.message.trim().is_empty() && !attachments::any(attached) {
        return Err(ErrorShape::invalid("message or attachment required").into());
    }
    let images = images(attached)?;
    let agent = parts.sessions.rules().agent_of(&key);
    require_known_agent(&parts.settings, &parts.sessions, params::chat::ChatSend::NAME, &agent).await?;
    let run_id = RunId::new(&params.idempotency_key.0);
    let message = ChatMessage {
        run_id: run_id.clone(),
        session_key: key,
        text: params.message,
        images,
        thinking: params.thinking,
        timeout_ms: params.timeout_ms,
        sender: sender(&ctx),
        rights: CallerRights::of_client(
            Access::Approvals.is_granted_by(&ctx.connection().scopes),
            Access::Admin.is_granted_by(&ctx.connection().scopes),
        ),
        parent_session_key: None,
    };
    let receipt = match ctx.outcome(parts.dispatch.chat(message).await).await? {
        Sent::Taken(receipt) => receipt,
        Sent::Stopped(stopped) => return Ok(ChatSendResult::Stopped(aborted(&stopped))),
    };
    // The run begins when the receipt is let go.
    ctx.listen_to_tools(&parts.events, &run_id);
    let answer = answer(&run_id, &receipt.accepted);
    ctx.hold(receipt);
    answer
}

/// Display name of the client.
fn sender(ctx: &RequestContext) -> Option<String> {
    given(ctx.connection().client.display_name.as_ref().map(|name| name.0.as_str())).map(str::to_owned)
}

fn answer(run_id: &RunId, accepted: &Accepted) -> Result<ChatSendResult, RequestFailure> {
    let run = |status, summary| ChatSendResult::Run { run_id: run_id.as_str().to_owned(), status, summary };
    match accepted {
        Accepted::New { .. } => Ok(run(ChatSendStatus::Started, None)),
        Accepted::InFlight { .. } => Ok(run(ChatSendStatus::InFlight, None)),
        Accepted::Finished(RunRecord {
            outcome: RunOutcome::Ok { .. } | RunOutcome::Aborted { .. }, ..
        }) => Ok(run(ChatSendStatus::Ok, None)),
        Accepted::Finished(RunRecord { outcome: RunOutcome::Error { message, .. }, .. }) => {
            let payload = Payload::of(&run(ChatSendStatus::Error, Some(message.clone())))?;
            Err(RequestFailure::with_payload(ErrorShape::unavailable(message.clone()), payload))
        }
    }
}

pub(super) async fn abort(
    parts: &ChatMethods,
    ctx: RequestContext,
    params: ChatAbortParams,
) -> Result<ChatAborted, RequestFailure> {
    let key = session_key(&*parts.sessions, &params.session_key.0).await?;
    let dispatch = &parts.dispatch;
    let stopped = match params.run_id {
        Some(id) => {
            let target = AbortTarget::Run(RunId::new(&id.0));
            let abort = dispatch.abort(&key, target, AbortReason::Rpc).await;
            Stopped { runs: ctx.outcome(abort).await?, ..Stopped::default() }
        }
        None => ctx.outcome(dispatch.stop(&key, AbortReason::Rpc).await).await?,
    };
    Ok(aborted(&stopped))
}

fn aborted(stopped: &Stopped) -> ChatAborted {
    let run_ids = stopped.runs.iter().map(|id| id.as_str().to_owned()).collect();
    ChatAborted { ok: true, aborted: stopped.is_any(), run_ids }
}

pub(super) async fn inject(
    parts: &ChatMethods,
    ctx: RequestContext,
    params: ChatInjectParams,
) -> Result<ChatInjected, RequestFailure> {
    let key = session_key(&*parts.sessions, &params.session_key.0).await?;
    let message = InjectMessage {
        session_key: key,
        text: params.message.0,
        label: params.label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()),
    };
    let injected = ctx.outcome(parts.dispatch.inject(message).await).await?;
    Ok(ChatInjected { ok: true, message_id: injected.message_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_repeated_key_is_answered_by_how_its_run_stands() {
        let record = |outcome| {
            Accepted::Finished(RunRecord {
                run_id: RunId::new("r"),
                started_at: None,
                ended_at: 2,
                outcome,
                report: None,
            })
        };
        let rows = [
            (Accepted::New { accepted_at: 1 }, "started"),
            (Accepted::InFlight { accepted_at: 1 }, "in_flight"),
            (record(RunOutcome::Ok { result: Value::Null.into() }), "ok"),
            (record(RunOutcome::Aborted { reason: "rpc".into(), result: None }), "ok"),
        ];
        for (accepted, status) in rows {
            let answer = answer(&RunId::new("r"), &accepted).unwrap();
            assert_eq!(serde_json::to_value(answer).unwrap(), json!({"runId": "r", "status": status}));
        }
        let failed =
            answer(&RunId::new("r"), &record(RunOutcome::Error { message: "no".into(), result: None }));
        let failed = failed.unwrap_err();
        assert_eq!(failed.error, ErrorShape::unavailable("no"));
        assert_eq!(failed.payload.unwrap().as_str(), r#"{"runId":"r","status":"error","summary":"no"}"#);
    }
}
