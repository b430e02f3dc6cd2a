//! Tells clients that may decide on commands what waits, and what was decided.

use std::sync::{Arc, Weak};

use openclaw_config::clock::now_ms;
use openclaw_protocol::Payload;
use openclaw_protocol::params::approvals::{
    ExecApprovalRequested, ExecApprovalResolved, ExecApprovalSubject,
};
use openclaw_tools::approvals::{ApprovalEvent, ApprovalRequest};
use serde::Serialize;

use crate::events::Event;
use crate::state::GatewayState;

/// From now on clients are told.
pub(crate) fn listen(state: &Arc<GatewayState>) {
    let gateway: Weak<GatewayState> = Arc::downgrade(state);
    state.approvals.listen(Box::new(move |event| {
        if let Some(state) = gateway.upgrade() {
            tell(&state, event);
        }
    }));
}

fn tell(state: &GatewayState, event: ApprovalEvent<'_>) {
    match event {
        ApprovalEvent::Requested(question) => publish(
            state,
            "exec.approval.requested",
            &ExecApprovalRequested {
                id: question.id.clone(),
                request: subject(&question.request),
                created_at_ms: question.created_at,
                expires_at_ms: question.expires_at,
            },
        ),
        ApprovalEvent::Resolved { question, decision, by } => publish(
            state,
            "exec.approval.resolved",
            &ExecApprovalResolved {
                id: question.id.clone(),
                decision: decision.as_str().to_owned(),
                resolved_by: by.map(str::to_owned),
                ts: now_ms(),
            },
        ),
        // Clients know until when it waits.
        ApprovalEvent::Expired(_) => {}
    }
}

fn subject(request: &ApprovalRequest) -> ExecApprovalSubject {
    let ApprovalRequest { command, cwd, host, security, ask, agent_id, resolved_path, session_key } =
        request.clone();
    ExecApprovalSubject { command, cwd, host, security, ask, agent_id, resolved_path, session_key }
}

fn publish(state: &GatewayState, name: &'static str, payload: &impl Serialize) {
    match Payload::of(payload) {
        Ok(payload) => state.events.publish(Event::named(name, payload)),
        Err(error) => tracing::error!(%error, name, "an event can't be written"),
    }
}
