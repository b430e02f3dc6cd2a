//! Notice to a chat whose conversation somebody began anew by a command (spec `sessions.md` §5.5).

use openclaw_agent::ReplyPayload;
use openclaw_delivery::reply::threading::Quoted;
use openclaw_journal::delivery::Author;
use openclaw_journal::inbox::InboxRow;
use openclaw_sessions::reset::notice;

use super::prepare::Prepared;
use super::replies::AnswerSettings;
use crate::runner::Runner;

impl Runner {
    /// Tells it once, before all that the run says: a run that is begun again after a crash gives its notice the same id.
    pub(super) async fn tell_new_session(&self, row: &InboxRow, prepared: &Prepared) {
        let session = &prepared.session;
        let Some(origin) = row.payload.source.origin().filter(|_| session.reset.is_some()) else { return };
        let Some(first) = prepared.models.first() else { return };
        let agent = &session.agent;
        let choices = self.models.all.choices(&self.settings().models, &agent.id, &agent.agent_dir).await;
        let text = notice(&first.reference.to_string(), &choices.default_model().to_string());
        let context = self.prefix_of(row, prepared);
        let mut reply =
            AnswerSettings::new(self, row, origin.into(), &context, Quoted::default()).by(Author::Gateway);
        let id = format!("{}:tnew", row.run_id);
        let payload = ReplyPayload { text, ..ReplyPayload::default() };
        if let Err(error) = reply.send_alone(&id, payload, Vec::new()).await {
            tracing::error!(delivery = id, %error, "the notice of a new session was not taken");
        }
    }
}
