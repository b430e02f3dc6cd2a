//! Commands that stand among words for the agent, answered at once (spec `messages.md` §4): before
//! their message's own run, and beside any other run. On a chat platform the answer is a delivery
//! of its own, whose id keeps it from being sent twice; at a client it is an event, and an entry of
//! the transcript under an id of its own.

use std::sync::Arc;

use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_protocol::message::Message;
use openclaw_runtime::events::{Hub, injected as injected_event};
use openclaw_sessions::transcript::EntryId;
use openclaw_sessions::transcript::inject::injected;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use openclaw_runs::inject::Injections;
use openclaw_runs::notices::Notices;
use openclaw_runs::shortcut::ShortcutAnswers;
use openclaw_runs::stored_messages::StoredMessages;
use openclaw_runs::{Aside, NotBegun};

use super::{ChangeKind, LaneCommand, SessionChange, Supervisor};
use openclaw_commands::CommandResponse;

/// Parts for answering commands that stand among words.
pub(crate) struct Shortcuts {
    messages: Arc<StoredMessages>,
    answers: Arc<ShortcutAnswers>,
    notices: Arc<Notices>,
    injections: Arc<Injections>,
    hub: Arc<Hub>,
    /// Messages between the client and their lane.
    accepting: TaskTracker,
    /// Cancelled when runs stop where they are.
    kill: CancellationToken,
}

impl Shortcuts {
    pub(crate) fn new(
        messages: Arc<StoredMessages>,
        answers: Arc<ShortcutAnswers>,
        notices: Arc<Notices>,
        injections: Arc<Injections>,
        hub: Arc<Hub>,
        accepting: TaskTracker,
        kill: CancellationToken,
    ) -> Self {
        Self { messages, answers, notices, injections, hub, accepting, kill }
    }

    /// Begins to answer the shortcuts of a message once the returned value is dropped, which means that
    /// the message is acknowledged. `gate` opens when they are answered, so that the message's run may
    /// begin.
    pub(crate) fn begin(
        self: &Arc<Self>,
        lanes: &Arc<Supervisor>,
        row: &Arc<InboxRow<Queued>>,
        gate: DropGuard,
    ) -> DropGuard {
        let acknowledged = CancellationToken::new();
        let is_acknowledged = acknowledged.clone().drop_guard();
        let (own, lanes, row) = (Arc::clone(self), Arc::clone(lanes), Arc::clone(row));
        self.accepting.spawn(async move {
            // Opens however this ends.
            let _gate = gate;
            let answering = async {
                acknowledged.cancelled().await;
                own.answer(&lanes, &row).await;
            };
            tokio::select! { biased;
                () = own.kill.cancelled() => {}
                () = answering => {}
            }
        });
        is_acknowledged
    }

    async fn answer(self: &Arc<Self>, lanes: &Arc<Supervisor>, row: &InboxRow<Queued>) {
        let row = match self.messages.load(row).await {
            Ok(row) => row,
            Err(error) => {
                tracing::warn!(run_id = %row.run_id, %error, "a command among words was not answered");
                return;
            }
        };
        let Some(hints) = row.payload.to_gateway().hints() else { return };
        for (at, name) in hints.shortcuts.iter().enumerate() {
            match self.answers.shortcut(&row, name).await {
                Ok(response) => match row.payload.source.origin() {
                    Some(origin) => {
                        let (id, CommandResponse { text, buttons, .. }) =
                            (format!("{}:i{}", row.run_id, at + 1), response);
                        self.notices
                            .say_aside(&row.session_key, origin.into(), &id, Aside { text, buttons })
                            .await;
                    }
                    None => self.tell_aside(lanes, &row, at + 1, &response.text).await,
                },
                Err(NotBegun { message, .. }) => {
                    tracing::warn!(run_id = %row.run_id, name, %message, "a command among words was not answered");
                }
            }
        }
    }

    /// Tells clients of an answer at once; it is written when the run under way, or the message's
    /// own, leaves room for it.
    async fn tell_aside(
        self: &Arc<Self>,
        lanes: &Arc<Supervisor>,
        row: &InboxRow,
        number: usize,
        text: &str,
    ) {
        let said = injected(text, None, row.accepted_at);
        let id = entry_id(row, number);
        let event = injected_event(&row.session_key, id.as_str(), &said);
        self.hub.publish(event).await;
        let (own, lanes, row) = (Arc::clone(self), Arc::clone(lanes), row.clone());
        self.accepting.spawn(async move {
            tokio::select! { biased;
                () = own.kill.cancelled() => {}
                () = own.keep_aside(&lanes, &row, &said, id) => {}
            }
        });
    }

    async fn keep_aside(&self, lanes: &Arc<Supervisor>, row: &InboxRow, said: &Message, id: EntryId) {
        let (give, floor) = oneshot::channel();
        lanes
            .send(
                &row.session_key,
                LaneCommand::Change(SessionChange { kind: ChangeKind::Words, floor: give }),
            )
            .await;
        let Ok(Ok(mut floor)) = floor.await else { return };
        if let Err(error) = self.injections.put_aside(row, said, id, floor.run.take()).await {
            tracing::warn!(run_id = %row.run_id, %error, "the answer to a command among words is not in the history");
        }
    }
}

/// Returns the entry id, the same for the same message and number.
fn entry_id(row: &InboxRow, number: usize) -> EntryId {
    let digest = Sha256::digest(format!("{}:{number}", row.fresh_id));
    let first = digest.iter().take(4).fold(0_u32, |id, byte| (id << 8) | u32::from(*byte));
    EntryId::new(format!("{first:08x}"))
}
