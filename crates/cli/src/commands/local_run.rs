//! `agent --local`: a run inside this process.
//!
//! A gateway is started for the one run, on a free loopback port with a secret nobody knows, and stopped afterwards. So the
//! run takes the same way as every other, and the lock of the state directory keeps it apart from a gateway that runs.

use std::sync::Arc;

use openclaw_config::gateway_options::GatewayFlags;
use openclaw_config::settings::{AuthKind, BindMode};
use openclaw_dispatch::caller::CallerRights;
use openclaw_dispatch::{AgentMessage, Events, Occasion, RunOutcome, RunRecord, RunResult};
use openclaw_gateway::{
    ExitStatus, GatewayState, InstanceLockError, LogTarget, Ready, RunOptions, RunningGateway, StartError,
    running_gateway,
};
use openclaw_protocol::{AgentId, RunId, SessionId};
use openclaw_sessions::SessionKey;
use openclaw_sessions::store::{Rows, key_of_transcript};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::agent::{AgentRequest, retries};
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::service::process;

/// Reason why a run is made in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalReason {
    /// `--local`.
    Asked,
    /// No gateway listens where it should be.
    NoGateway,
}

/// Runs it and gives `{payloads, meta}`.
///
/// # Errors
/// When a gateway holds the state directory, the gateway does not start, or the run fails.
pub(super) async fn run(
    context: &CliContext,
    request: AgentRequest,
    why: LocalReason,
) -> Result<Value, CommandFailure> {
    let agent = match &request.agent {
        Some(agent) => agent.clone(),
        None => context.config()?.default_agent(),
    };
    // A gateway that listens stays. Another run of this kind says no port and ends soon: its end is
    // waited for below.
    if let Some(running) = running_gateway(&context.loaded).filter(|running| running.port.is_some()) {
        return Err(gateway_runs(running, why));
    }
    openclaw_tls::install_provider();
    let (ready, told) = oneshot::channel();
    let stop = CancellationToken::new();
    let secret = uuid::Uuid::new_v4().simple().to_string();
    let flags = GatewayFlags {
        port: Some(0),
        bind: Some(BindMode::Loopback),
        auth: Some(AuthKind::Token),
        token: Some(secret.into()),
        allow_unconfigured: true,
        ..GatewayFlags::default()
    };
    let options = RunOptions {
        flags,
        log: LogTarget::Existing,
        ready: Some(ready),
        stop: stop.clone(),
        ..RunOptions::new(context.process().clone(), Arc::clone(&context.loaded))
    };
    let gateway = openclaw_gateway::run(options);
    tokio::pin!(gateway);
    let Ready { state, .. } = tokio::select! {
        ended = &mut gateway => return Err(start_failure(context, ended, why)),
        ready = told => ready.map_err(|_| CommandFailure::new("local", "the run ended before it began"))?,
    };
    let result = tokio::select! {
        ended = &mut gateway => return Err(start_failure(context, ended, why)),
        result = answer(&state, agent, request) => result,
    };
    drop(state);
    stop.cancel();
    // The run is over either way; how the gateway ended changes nothing for the caller.
    let _ = gateway.await;
    result
}

/// A gateway has the state directory: two would answer the same messages.
fn gateway_runs(running: RunningGateway, why: LocalReason) -> CommandFailure {
    let text = format!("A gateway{} has this state directory", process(running));
    CommandFailure::new("gateway-running", text).hint(match why {
        LocalReason::Asked => "Leave out --local to have it answer, or stop it.",
        LocalReason::NoGateway => "It has just started: run the command again.",
    })
}

fn start_failure(
    context: &CliContext,
    ended: Result<ExitStatus, StartError>,
    why: LocalReason,
) -> CommandFailure {
    match ended {
        Ok(ExitStatus::Stopped | ExitStatus::OutOfTime | ExitStatus::Restart) => {
            CommandFailure::new("interrupted", "interrupted")
        }
        Err(StartError::InvalidConfig(_)) => context.invalid_config(),
        Err(StartError::Lock(InstanceLockError::Held { pid, .. })) => {
            gateway_runs(RunningGateway { pid, port: None }, why)
        }
        Err(error) => {
            let text = error.to_string();
            let cause = text.strip_prefix("Gateway failed to start: ").unwrap_or(&text);
            CommandFailure::new("local", format!("The run could not start: {cause}"))
                .hint("`openclaw doctor` says what is wrong with the state directory.")
        }
    }
}

async fn answer(
    state: &GatewayState,
    agent: AgentId,
    request: AgentRequest,
) -> Result<Value, CommandFailure> {
    let run_id = RunId::new(uuid::Uuid::new_v4().to_string());
    let key = session_key(state, &agent, request.session_id.as_deref()).await?;
    let message = AgentMessage {
        run_id: run_id.clone(),
        agent_id: agent,
        session_key: key,
        session_id: request.session_id,
        text: request.message,
        images: Vec::new(),
        thinking: request.thinking,
        timeout_seconds: request.timeout_seconds,
        lane: None,
        extra_system_prompt: None,
        occasion: Occasion::Command,
        deliver_to: None,
        rights: CallerRights::of_client(false, true),
        entry_patch: serde_json::Map::new(),
    };
    let mut events = state.dispatch.subscribe();
    let receipt = state
        .dispatch
        .agent(message)
        .await
        .outcome()
        .await
        .map_err(|error| CommandFailure::new("not-accepted", error.to_string()))?;
    drop(receipt);
    match ended(state, &run_id, &mut events).await.map(RunRecord::told) {
        Some(RunOutcome::Ok { result }) => Ok(result.into_json()),
        Some(RunOutcome::Error { message, .. }) => Err(CommandFailure::new("run", message)),
        Some(RunOutcome::Aborted { reason, result }) => {
            let why = result.as_ref().and_then(RunResult::error_message).map(str::to_owned);
            Err(CommandFailure::new(
                "aborted",
                why.unwrap_or_else(|| format!("the run was stopped ({reason})")),
            ))
        }
        None => Err(CommandFailure::new("interrupted", "interrupted; the run goes on when a gateway starts")),
    }
}

/// Waits for the end of the run and returns its record. Prints on stderr what the run waits for meanwhile.
async fn ended(state: &GatewayState, run_id: &RunId, events: &mut Events) -> Option<RunRecord> {
    let ended = state.dispatch.ended(run_id);
    tokio::pin!(ended);
    loop {
        tokio::select! { biased;
            Some(event) = events.recv() => {
                // Events with growing text are skipped: each holds all of the text, so parsing them would cost more than producing them.
                if event.name == "agent" && event.growing.is_none() {
                    retries::tell(run_id.as_str(), serde_json::from_str(event.payload.as_str()));
                }
            }
            record = &mut ended => return record,
        }
    }
}

/// The session whose transcript is meant, one of its own where there is none; else the agent's main session.
async fn session_key(
    state: &GatewayState,
    agent: &AgentId,
    id: Option<&str>,
) -> Result<SessionKey, CommandFailure> {
    let Some(id) = id.map(SessionId::new) else {
        return Ok(state.sessions.rules().main(agent));
    };
    let found = key_of_transcript(&*state.sessions, Rows::Of(agent), &id)
        .await
        .map_err(|error| CommandFailure::new("store", error.to_string()))?;
    match found {
        Some(key) => Ok(key),
        None => {
            SessionKey::of_transcript(agent, &id).map_err(|error| CommandFailure::usage(error.to_string()))
        }
    }
}
