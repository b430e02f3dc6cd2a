//! One run of several messages that waited (spec `queue.md` §4.2). The set of messages is decided
//! durably before anything of the run is written; all end with the one that leads
//! (`docs/durability.md`).

use std::time::Duration;

use openclaw_journal::inbox::{Gathering, InboxRow, Queued};
use openclaw_journal::journal::{Journal, JournalError, Update};
use openclaw_journal::queue::prompt::{self, WaitingKind};
use openclaw_journal::request::Gathered;
use openclaw_journal::source::RequestSource;

use super::wording;
use crate::control::RunControl;
use crate::ending::RunEnding;
use crate::stored_messages::StoredMessages;
use crate::unanswered::Unanswered;

/// Pause before the disk is asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// Makes the inbox say which messages are run together, unless it does. Waits for a disk that refuses.
pub(super) async fn decide(
    journal: &dyn Journal,
    unanswered: &Unanswered,
    row: &InboxRow<Queued>,
    control: &RunControl,
) -> Result<(), RunEnding> {
    let Some(gathering) = row.gathering.as_ref().filter(|it| !it.is_stored && it.is_more_than_one()) else {
        return Ok(());
    };
    loop {
        let leader = row.run_id.clone();
        let gather = Update::Gather { leader, others: row.others(), answer_to: gathering.answer_to.clone() };
        match journal.update(gather).await {
            Ok(_) => return Ok(()),
            Err(JournalError::Closed) => return Err(RunEnding::Interrupted),
            Err(error) => {
                tracing::warn!(run_id = %row.run_id, %error, "messages that waited can't be run together yet");
            }
        }
        tokio::select! { biased;
            () = unanswered.kill().cancelled() => return Err(RunEnding::Interrupted),
            () = control.cancel.cancelled() => return Err(unanswered.stopped_early(row, control).await),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

impl StoredMessages {
    /// Returns the leading message, with the messages that are run together with it.
    pub(super) async fn gathered(
        &self,
        mut row: InboxRow,
        gathering: &Gathering,
    ) -> Result<InboxRow, JournalError> {
        let zone = self.zone();
        let (mut prompts, mut images, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        let mut named = Vec::new();
        let mut rights = row.payload.rights.take().unwrap_or_default();
        for item in &gathering.items {
            let mut item = self.load_alone(item).await?;
            rights = rights.least(&item.payload.rights.take().unwrap_or_default());
            prompts.push(wording::queued(&item, zone.clone()));
            named.append(&mut item.payload.named_pictures());
            images.append(&mut item.payload.images);
            // Messages without an address go along.
            if let (RequestSource::Announcement(leading), RequestSource::Announcement(other)) =
                (&mut row.payload.source, item.payload.source)
            {
                leading.deliver_to = leading.deliver_to.take().or(other.deliver_to);
            }
        }
        for cut in &gathering.cut {
            let cut = self.load_alone(cut).await?.payload;
            rights = rights.least(&cut.rights.unwrap_or_default());
            lines.push(prompt::line(&cut.text));
        }
        let leading = match gathering.leads_cut {
            true => {
                lines.push(prompt::line(&row.payload.text));
                row.payload.images.clear();
                None
            }
            false => {
                named.append(&mut row.payload.named_pictures());
                Some(wording::queued(&row, zone))
            }
        };
        let overflow = (gathering.dropped > 0).then(|| {
            prompt::overflow(WaitingKind::of(row.payload.is_announcement()), gathering.dropped, &lines)
        });
        let text = match (leading, overflow) {
            (None, overflow) => overflow,
            (Some(leading), overflow) => {
                prompts.push(leading);
                let what = WaitingKind::of(row.payload.is_announcement());
                Some(prompt::collected(what, overflow.as_deref(), &prompts))
            }
        };
        images.append(&mut row.payload.images);
        row.payload.images = images;
        row.payload.gathered = text.map(|text| Gathered { text, pictures: named });
        // All have the same rights, unless an older version put them together.
        row.payload.rights = Some(rights);
        if let Some(origin) = &gathering.answer_to {
            row.payload.source.said_at(origin.clone());
        }
        Ok(row)
    }
}
