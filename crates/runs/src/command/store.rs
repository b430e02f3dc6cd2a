//! Storing the answers of the gateway itself.

use std::sync::Arc;

use openclaw_commands::Then;
use openclaw_journal::delivery::Author;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::Intent;
use openclaw_runtime::surroundings::Surroundings;

use super::{GatewayAnswer, outcome};
use crate::ending::RunEnds;
use crate::not_begun::NotBegun;
use crate::said::FinalReplies;

/// Parts for storing answers of the gateway itself.
pub(crate) struct AnswerStore {
    ends: Arc<RunEnds>,
    /// Services of the gateway; `None` if there is no gateway.
    surroundings: Option<Arc<dyn Surroundings>>,
}

impl AnswerStore {
    pub(crate) fn new(ends: Arc<RunEnds>, surroundings: Option<Arc<dyn Surroundings>>) -> Self {
        Self { ends, surroundings }
    }

    /// Stores in the inbox that a message is answered, with the answer, before anybody is told: a
    /// later choice is not overruled by doing it again after a crash.
    pub(crate) async fn store(
        &self,
        row: &InboxRow,
        answer: GatewayAnswer,
    ) -> Result<GatewayAnswer, NotBegun> {
        let record = self.ends.record(row, None, outcome(answer.message.as_deref()));
        let is_agents = matches!(row.payload.to_gateway(), Intent::Announcement);
        let author = if is_agents { Author::Other } else { Author::Gateway };
        let said = FinalReplies { buttons: answer.buttons.clone(), author, ..FinalReplies::default() };
        self.ends.answered(row, record, said).await?;
        if let (Some(Then::Restart), Some(around)) = (answer.then, &self.surroundings) {
            around.restart();
        }
        Ok(answer)
    }
}
