//! Notice to a chat whose conversation somebody began anew by a command (spec `sessions.md` §5.5).

use openclaw_delivery::reply::prefix::PrefixContext;
use openclaw_journal::inbox::InboxRow;
use openclaw_models::Models;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::reset::notice;

use super::prepare::Prepared;
use crate::notices::{ChatNotice, Notices};

/// Tells it once, before all that the run says: a run that is begun again after a crash gives its notice the same id.
pub(super) async fn tell(
    notices: &Notices,
    models: &Models,
    settings: &Settings,
    (row, prepared): (&InboxRow, &Prepared),
    context: &PrefixContext,
) {
    let session = &prepared.session;
    let Some(origin) = row.payload.source.origin().filter(|_| session.reset.is_some()) else { return };
    let Some(first) = prepared.models.first() else { return };
    let agent = &session.agent;
    let choices = models.choices(&settings.models, &agent.id, &agent.agent_dir).await;
    let text = notice(&first.reference.to_string(), &choices.default_model().to_string());
    let id = format!("{}:tnew", row.run_id);
    let (run_id, key, buttons) = (&row.run_id, &row.session_key, Vec::new());
    let notice = ChatNotice { id: &id, run_id, key, text, buttons };
    if let Err(error) = notices.send(notice, origin.into(), context).await {
        tracing::error!(delivery = id, %error, "the notice of a new session was not taken");
    }
}
