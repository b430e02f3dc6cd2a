//! Tells clients that may decide on commands, and people in chats, what waits, and what was decided.

use std::sync::Arc;

use openclaw_config::clock::now_ms;
use openclaw_protocol::Payload;
use openclaw_protocol::params::approvals::{
    ExecApprovalRequested, ExecApprovalResolved, ExecApprovalSubject,
};
use openclaw_tools::approvals::{ApprovalEvent, ApprovalRequest, Approvals};
use serde::Serialize;

use crate::approval_forward::Forwarder;
use crate::events::GatewayEvent;
use crate::fan_out::EventHub;

/// Sends events to clients about approvals from now on, and has people in chats told by `forwarder`,
/// for as long as there is one.
pub(crate) fn listen(approvals: &Approvals, events: Arc<EventHub>, forwarder: &Arc<Forwarder>) {
    // The forwarder delivers by way of dispatch, which has the approvals.
    let forwarder = Arc::downgrade(forwarder);
    approvals.listen(Box::new(move |event| {
        if let Some(forwarder) = forwarder.upgrade() {
            tell(&events, &forwarder, event);
        }
    }));
}

fn tell(events: &EventHub, forwarder: &Arc<Forwarder>, event: ApprovalEvent<'_>) {
    match event {
        ApprovalEvent::Requested(question) => {
            let payload = ExecApprovalRequested {
                id: question.id.clone(),
                request: subject(&question.request),
                created_at_ms: question.created_at,
                expires_at_ms: question.expires_at,
            };
            publish(events, "exec.approval.requested", &payload);
            forwarder.asked(question);
        }
        ApprovalEvent::Resolved { question, decision, by } => {
            let payload = ExecApprovalResolved {
                id: question.id.clone(),
                decision: decision.as_str().to_owned(),
                resolved_by: by.map(str::to_owned),
                ts: now_ms(),
            };
            publish(events, "exec.approval.resolved", &payload);
            forwarder.settled(question, Some((decision, by)));
        }
        // Clients know until when it waits.
        ApprovalEvent::Expired(question) => forwarder.settled(question, None),
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

fn publish(events: &EventHub, name: &'static str, payload: &impl Serialize) {
    match Payload::of(payload) {
        Ok(payload) => events.publish(GatewayEvent::named(name, payload)),
        Err(error) => tracing::error!(%error, name, "an event can't be written"),
    }
}
