//! Footer below an answer that says what it used, if the session asks for it (`/usage`, spec
//! `messages.md` §10.5).

use openclaw_agent::reply::RunUsage;
use openclaw_agent::text::silent::is_silent;
use openclaw_agent::{Outcome, ReplyPayload};
use openclaw_delivery::usage_footer::{append, footer};
use openclaw_models::catalog::Catalog;
use openclaw_models::usage::settle;
use openclaw_protocol::message::Usage;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::entry::ResponseUsage;

use super::prepare::Prepared;
use crate::rows::SessionRows;

/// Adds the footer to the last text that is left to be said; if blocks have said all of it, the
/// footer becomes a text of its own.
pub(super) async fn add_footer(
    rows: &SessionRows,
    settings: &Settings,
    prepared: &Prepared,
    ended: &Outcome,
    payloads: &mut Vec<ReplyPayload>,
) {
    let has_answer = |payload: &ReplyPayload| !payload.is_error && is_text(payload);
    if !ended.payloads.iter().any(has_answer) {
        return;
    }
    let key = &prepared.session.key;
    // The footer may have been switched on while the run was under way.
    let mode = rows.entry_or_none(key).await.and_then(|entry| entry.response_usage);
    let Some(mode) = mode.filter(|mode| *mode != ResponseUsage::Off) else { return };
    let (Some(used), Some(model)) = (ended.meta.agent_meta.usage, prepared.models.get(ended.candidate))
    else {
        return;
    };
    let RunUsage { input, output, cache_read, cache_write, .. } = used;
    let mut usage = Usage { input, output, cache_read, cache_write, ..Usage::default() };
    let price = Catalog::new(&settings.models).price(&model.reference);
    settle(&mut usage, &price.unwrap_or_default());
    if let Some(line) = footer(mode, &usage, model.auth.mode, key) {
        append(payloads, &line);
    }
}

/// True if a payload says something to a person.
fn is_text(payload: &ReplyPayload) -> bool {
    !payload.text.trim().is_empty() && !is_silent(&payload.text)
}
