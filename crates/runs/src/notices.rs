//! Messages of the gateway itself in chats, beside all answers.

use std::sync::Arc;

use openclaw_agent::ReplyPayload;
use openclaw_channels::Button;
use openclaw_delivery::outbox::OutboxError;
use openclaw_delivery::reply::prefix::PrefixContext;
use openclaw_delivery::reply::threading::Quoted;
use openclaw_journal::delivery::Author;
use openclaw_protocol::RunId;
use openclaw_sessions::SessionKey;

use crate::prefixes::Prefixes;
use crate::replies::{AnswerSettings, ChatAnswers};
use crate::said::{Aside, Destination};

/// Parts for making and sending notices.
pub struct Notices {
    answers: Arc<ChatAnswers>,
    prefixes: Arc<Prefixes>,
}

/// A notice for the chat of a session.
pub(crate) struct ChatNotice<'a> {
    /// Name of the notice; one of the same name is sent once.
    pub(crate) id: &'a str,
    /// The run that it belongs to.
    pub(crate) run_id: &'a RunId,
    /// Session of the chat.
    pub(crate) key: &'a SessionKey,
    /// Words of the notice.
    pub(crate) text: String,
    /// Rows of buttons below it.
    pub(crate) buttons: Vec<Vec<Button>>,
}

impl Notices {
    pub(crate) fn new(answers: Arc<ChatAnswers>, prefixes: Arc<Prefixes>) -> Self {
        Self { answers, prefixes }
    }

    /// Says something of the gateway's own in a chat, beside all answers. Said once under its id.
    pub async fn say_aside(&self, key: &SessionKey, to: Destination, id: &str, said: Aside) {
        let context = self.prefixes.prefix_of_session(key, &to).await;
        let Aside { text, buttons } = said;
        let notice = ChatNotice { id, run_id: &RunId::new(id), key, text, buttons };
        if let Err(error) = self.send(notice, to, &context).await {
            tracing::error!(delivery = id, %error, "what the gateway says by itself was not taken");
        }
    }

    /// Hands a notice to the outbox.
    ///
    /// # Errors
    ///
    /// The outbox did not take it.
    pub(crate) async fn send(
        &self,
        notice: ChatNotice<'_>,
        to: Destination,
        context: &PrefixContext,
    ) -> Result<(), OutboxError> {
        let ChatNotice { id, run_id, key, text, buttons } = notice;
        let mut reply =
            AnswerSettings::of(&self.answers, run_id, (key, None), to, context, Quoted::default())
                .by(Author::Gateway);
        reply.send_alone(id, ReplyPayload { text, ..ReplyPayload::default() }, buttons).await
    }
}
