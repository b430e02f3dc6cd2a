//! Tells clients that may decide on commands, and people in chats, what waits, and what was decided.

use std::sync::{Arc, Weak};

use openclaw_config::clock::now_ms;
use openclaw_protocol::Payload;
use openclaw_protocol::params::approvals::{
    ExecApprovalRequested, ExecApprovalResolved, ExecApprovalSubject,
};
use openclaw_tools::approvals::{ApprovalEvent, ApprovalRequest};
use serde::Serialize;

use crate::approval_forward::Forwarder;
use crate::events::Event;
use crate::state::GatewayState;

/// Sends events to clients about approvals from now on.
pub(crate) fn listen(state: &Arc<GatewayState>) {
    let gateway: Weak<GatewayState> = Arc::downgrade(state);
    let forwarder = Arc::<Forwarder>::default();
    state.approvals.listen(Box::new(move |event| {
        if let Some(state) = gateway.upgrade() {
            tell(&state, &forwarder, event);
        }
    }));
}

fn tell(state: &Arc<GatewayState>, forwarder: &Arc<Forwarder>, event: ApprovalEvent<'_>) {
    match event {
        ApprovalEvent::Requested(question) => {
            let payload = ExecApprovalRequested {
                id: question.id.clone(),
                request: subject(&question.request),
                created_at_ms: question.created_at,
                expires_at_ms: question.expires_at,
            };
            publish(state, "exec.approval.requested", &payload);
            forwarder.asked(state, question);
        }
        ApprovalEvent::Resolved { question, decision, by } => {
            let payload = ExecApprovalResolved {
                id: question.id.clone(),
                decision: decision.as_str().to_owned(),
                resolved_by: by.map(str::to_owned),
                ts: now_ms(),
            };
            publish(state, "exec.approval.resolved", &payload);
            forwarder.settled(state, question, Some((decision, by)));
        }
        // Clients know until when it waits.
        ApprovalEvent::Expired(question) => forwarder.settled(state, question, None),
    }
}

fn subject(request: &ApprovalRequest) -> ExecApprovalSubject {
    let ApprovalRequest {
        command,
        cwd,
        host,
        security,
        ask,
        agent_id,
        resolved_path,
        session_key,
        is_partial: _,
    } = request.clone();
    ExecApprovalSubject { command, cwd, host, security, ask, agent_id, resolved_path, session_key }
}

fn publish(state: &GatewayState, name: &'static str, payload: &impl Serialize) {
    match Payload::of(payload) {
        Ok(payload) => state.events.publish(Event::named(name, payload)),
        Err(error) => tracing::error!(%error, name, "an event can't be written"),
    }
}
