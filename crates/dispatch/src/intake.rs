//! Intake of messages: from a client, by way of the inbox, to the lane; or from the inbox at start.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use openclaw_journal::api::{Accepted, DispatchError, RunRecord};
use openclaw_journal::backlog::{Backlog, InHand, Share};
use openclaw_journal::clock::Clock;
use openclaw_journal::inbox::{
    Attempts, Gathering, InboxRow, Insert, KnownRun, MessageWait, Queued, RequestColumns, Unfinished,
    UnfinishedBeat, UnfinishedPart, regrouped, unfinished_beats,
};
use openclaw_journal::job::Job;
use openclaw_journal::journal::{CommitDurability, Journal, JournalError, JournalFuture};
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::queue::DropRule;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_runtime::registry::Registry;
use openclaw_sessions::SessionStore;
use openclaw_sessions::entry::new_session_id;
use openclaw_sessions::ids;
use openclaw_sessions::store::spelled;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lane::shortcuts::Shortcuts;
use crate::lane::{Arrival, LaneCommand, Supervisor};
use openclaw_runs::decide::Decider;
use openclaw_runs::rows::SessionRows;
use openclaw_runs::{Suspects, is_last_try};

/// Number of messages of one session that may wait. Far beyond what a person sends; only a script
/// in a loop reaches it.
const MAX_WAITING: usize = 1_000;
/// Bytes from which a payload is serialised on a blocking thread.
const BIG: usize = 128 * 1024;
/// Time for which a start waits for last tries. Only messages that are in trouble anyway take that
/// long.
const QUIET: Duration = Duration::from_secs(5);

/// Proof that a message was taken.
///
/// Keep it until the acknowledgement is queued to the client: the run begins only after the receipt was dropped, so that
/// a client sees the acknowledgement before the events of its run.
#[must_use = "dropping the receipt lets the run begin: queue the acknowledgement first"]
#[derive(Debug)]
pub struct Receipt {
    /// Result of handing the message in.
    pub accepted: Accepted,
    _gate: Option<DropGuard>,
}

/// A message that has its place in its session and in the inbox, and is being stored.
#[must_use = "it is stored, and nobody learns of it before the next start"]
pub(crate) struct Placing {
    insert: JournalFuture<'static, Insert>,
    slip: InboxRow<()>,
    lane: oneshot::Sender<Job>,
    queued: Queued,
    in_hand: InHand,
}

/// A message in the inbox that its lane waits for.
#[must_use = "the lane waits for it; dropped, the next start takes it up"]
pub(crate) struct Arriving {
    accepted: Accepted,
    /// Lane of a new message, and the message.
    lane: Option<(oneshot::Sender<Job>, InboxRow<Queued>)>,
}

/// Parts for accepting messages.
pub(crate) struct Intake {
    decider: Arc<Decider>,
    registry: Arc<Registry>,
    backlog: Backlog,
    journal: Arc<dyn Journal>,
    clock: Clock,
    shortcuts: Arc<Shortcuts>,
}

impl Intake {
    pub(crate) fn new(
        decider: Arc<Decider>,
        registry: Arc<Registry>,
        backlog: Backlog,
        journal: Arc<dyn Journal>,
        clock: Clock,
        shortcuts: Arc<Shortcuts>,
    ) -> Self {
        Self { decider, registry, backlog, journal, clock, shortcuts }
    }

    /// Places a message in its session, makes it durable, and hands it to its lane. `placed` is dropped
    /// once the place is taken: any message placed later comes after it, in the lane and in the inbox.
    pub(crate) async fn accept(
        self: Arc<Self>,
        lanes: Arc<Supervisor>,
        run_id: RunId,
        session_key: SessionKey,
        request: RunRequest,
        placed: oneshot::Sender<()>,
    ) -> Result<Receipt, DispatchError> {
        let placing = self.place(&lanes, run_id, session_key, request, CommitDurability::Synced).await?;
        drop(placed);
        let arriving = self.stored(placing).await?;
        Ok(self.hand_over(arriving, &lanes))
    }

    /// Places a message in its session and in the inbox, as safe as is asked. Its lane must not have it
    /// before it is synced: otherwise output of a run would be there already when the message is stored
    /// again.
    pub(crate) async fn place(
        &self,
        lanes: &Arc<Supervisor>,
        run_id: RunId,
        session_key: SessionKey,
        request: RunRequest,
        durability: CommitDurability,
    ) -> Result<Placing, DispatchError> {
        let is_new = self.registry.end_of(&run_id).is_none();
        if is_new && self.registry.count(&session_key) >= MAX_WAITING {
            return Err(DispatchError::QueueFull(session_key));
        }
        let (session_key, mut request, may_send) = self.decider.decide(session_key, request).await?;
        // Messages noted meanwhile are told to the agent with the next message that is for the agent.
        if request.to_gateway().is_for_gateway_alone() || request.behind_reset() == Some("") {
            request.arrivals.context.clear();
        }
        // Messages to the gateway itself go to nobody else, such as `/model` where nothing may be sent.
        if is_new && !may_send && !request.to_gateway().is_for_gateway_alone() {
            return Err(DispatchError::SendBlocked);
        }
        let (share, in_hand) = self.backlog.reserve(request.weight()).ok_or(DispatchError::Overloaded)?;
        let (stored, queued) = serialise(&session_key, request, share).await?;
        let seat = lanes.seat(&session_key).await.ok_or(DispatchError::ShuttingDown)?;
        let reservation = self.journal.reserve().await.map_err(refused)?;
        // The next start works in the order of the inbox: it has to be that of the lanes.
        let _one_at_a_time = lanes.placing.lock();
        let slip = new_slip(run_id, session_key, self.clock.now_ms());
        let (lane, insert) = (seat.take(), reservation(slip.clone().with(stored), durability));
        Ok(Placing { insert, slip, lane, queued, in_hand })
    }

    /// Waits until it is as safe as was asked.
    pub(crate) async fn stored(&self, placing: Placing) -> Result<Arriving, DispatchError> {
        let Placing { insert, slip, lane, queued, in_hand } = placing;
        let insert = insert.await.map_err(refused)?;
        drop(in_hand);
        let accepted = match insert {
            Insert::New => {
                // A message of the same key that a full queue has just dropped.
                self.registry.ended(&slip.run_id).await;
                Accepted::New { accepted_at: slip.accepted_at }
            }
            Insert::Known(KnownRun::Unfinished { accepted_at }) => {
                match self.registry.record_of(&slip.run_id) {
                    Some(record) => Accepted::Finished(record),
                    None => Accepted::InFlight { accepted_at },
                }
            }
            Insert::Known(KnownRun::Finished(record)) => Accepted::Finished(record),
            Insert::Conflict => return Err(DispatchError::KeyReused(slip.run_id)),
        };
        let is_new = matches!(accepted, Accepted::New { .. });
        Ok(Arriving { accepted, lane: is_new.then(|| (lane, slip.with(queued))) })
    }

    /// Lets its lane have it.
    pub(crate) fn hand_over(&self, arriving: Arriving, lanes: &Arc<Supervisor>) -> Receipt {
        let Arriving { accepted, lane } = arriving;
        let Some((lane, row)) = lane else { return Receipt { accepted, _gate: None } };
        self.registry.enter(&row.run_id, &row.session_key, row.accepted_at);
        let gate = CancellationToken::new();
        let row = Arc::new(row);
        let mut guard = gate.clone().drop_guard();
        if row.payload.facts.wants.shortcuts {
            guard = self.shortcuts.begin(lanes, &row, guard);
        }
        let receipt = Receipt { accepted, _gate: Some(guard) };
        // A lane that has ended meanwhile leaves it to the next start.
        let _ = lane.send(Job::new(row, gate));
        receipt
    }
}

/// Parts for taking up messages that an earlier process left.
pub(crate) struct Recovery {
    pub(crate) rows: Arc<SessionRows>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) decider: Arc<Decider>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) backlog: Backlog,
    pub(crate) clock: Clock,
    /// Messages that may end the process.
    pub(crate) suspects: Arc<Suspects>,
    pub(crate) shortcuts: Arc<Shortcuts>,
}

impl Recovery {
    /// Hands the rows that the last process did not finish to their lanes. A message that is given up
    /// if the process dies of it once more comes before all others, and before any client is let in, so
    /// that nothing else can be the reason for the death. Returns the heartbeats among them.
    pub(crate) async fn recover(
        &self,
        lanes: &Arc<Supervisor>,
        mut found: Vec<Unfinished>,
    ) -> Vec<UnfinishedBeat> {
        if !found.is_empty() {
            tracing::info!(messages = found.len(), "taking up messages the last process did not finish");
        }
        for Unfinished { row, waited, .. } in &mut found {
            // The config may name the main session otherwise by now.
            if let Ok(key) = self.rows.key_rules().canonical(row.session_key.as_str()) {
                row.session_key = spelled(&*self.store, key).await;
            }
            self.registry.enter(&row.run_id, &row.session_key, row.accepted_at);
            if let Some(record) = &row.answered {
                self.registry.conclude(record.clone());
            }
            if waited.cut.is_some() {
                // What is left is to tell the agent.
                let (run_id, outcome) = (row.run_id.clone(), DropRule::Summarized.outcome());
                let ended_at = self.clock.now_ms();
                let record = RunRecord { run_id, started_at: None, ended_at, outcome, report: None };
                self.registry.conclude(record);
            }
        }
        let beats = unfinished_beats(&found);
        let mut sessions = HashSet::new();
        let (last_tries, others): (Vec<_>, Vec<_>) = regrouped(found).into_iter().partition(|found| {
            // An earlier message of its session comes first.
            sessions.insert(found.row.session_key.clone()) && is_last_try(found.attempts)
        });
        let quiet_until = Instant::now() + QUIET;
        for last_try in last_tries {
            let tried = self.suspects.tried(&last_try.row.run_id);
            self.take_up(lanes, last_try).await;
            // A try that takes longer goes on beside the others.
            let _ = tokio::time::timeout_at(quiet_until, tried.cancelled()).await;
        }
        // Each session resumes what has begun before anything of it that waited.
        let (begun, waiting): (Vec<_>, Vec<_>) = others.into_iter().partition(Unfinished::has_begun);
        for message in begun.into_iter().chain(waiting) {
            self.take_up(lanes, message).await;
        }
        beats
    }

    async fn take_up(&self, lanes: &Arc<Supervisor>, found: Unfinished) {
        let (leads, has_begun) = (found.leads(), found.has_begun());
        let Unfinished { row, attempts, waited, others } = found;
        let MessageWait { cut, answer_to, collected_by, is_taken: _ } = waited;
        let gathering =
            if leads { Some(Arc::new(self.gathering(others, cut, answer_to).await)) } else { None };
        // Of one that was dropped clients have heard.
        let end_announced = cut.is_some() && row.abort.is_some();
        // A stopped message is closed like any other.
        let cut = cut.filter(|_| collected_by.is_none() && row.abort.is_none());
        let row = InboxRow { gathering, ..self.waiting(row, attempts).await };
        let gate = CancellationToken::new();
        let key = row.session_key.clone();
        let row = Arc::new(row);
        let job = Job { cut, end_announced, has_begun, ..Job::new(Arc::clone(&row), gate.clone()) };
        let job = job.with_stream_of_summary();
        lanes.send(&key, LaneCommand::Message { job, arrival: Arrival::Recovered }).await;
        let gathered = row.gathering.iter().flat_map(|gathering| &gathering.items);
        for other in gathered.filter(|other| other.payload.facts.wants.shortcuts) {
            drop(self.shortcuts.begin(lanes, other, CancellationToken::new().drop_guard()));
        }
        match row.payload.facts.wants.shortcuts {
            true => drop(self.shortcuts.begin(lanes, &row, gate.drop_guard())),
            false => gate.cancel(),
        }
    }

    /// Restores the gathering of messages that an earlier process has decided to run together.
    async fn gathering(
        &self,
        others: Vec<Unfinished>,
        leading_cut: Option<u64>,
        answer_to: Option<Box<MessageOrigin>>,
    ) -> Gathering {
        let dropped =
            others.iter().filter_map(|other| other.waited.cut).chain(leading_cut).max().unwrap_or(0);
        let (mut items, mut cut) = (Vec::new(), Vec::new());
        for Unfinished { row, attempts, waited, .. } in others {
            let row = Arc::new(self.waiting(row, attempts).await);
            if waited.cut.is_some() { cut.push(row) } else { items.push(row) }
        }
        Gathering { items, cut, dropped, leads_cut: leading_cut.is_some(), answer_to, is_stored: true }
    }

    /// Returns the waiting form of a message.
    async fn waiting(&self, row: InboxRow<UnfinishedPart>, attempts: Attempts) -> InboxRow<Queued> {
        let slip = row.without_payload();
        let queued = match row.payload {
            UnfinishedPart::Whole(request) => {
                let request = self.decider.decided(&slip.session_key, *request).await;
                let share = self.backlog.count(request.weight());
                Queued::of(request, attempts, share)
            }
            UnfinishedPart::OnDisk(facts) => {
                let share = self.backlog.count(facts.bytes);
                Queued::on_disk(facts, attempts, share)
            }
        };
        slip.with(queued)
    }
}

/// Serialises a request, on a blocking thread if that takes long.
async fn serialise(
    session_key: &SessionKey,
    request: RunRequest,
    share: Share,
) -> Result<(RequestColumns, Queued), DispatchError> {
    let serialised = if request.weight() < BIG {
        RequestColumns::of(session_key.as_str(), request, share)
    } else {
        let session_key = session_key.clone();
        let work = move || RequestColumns::of(session_key.as_str(), request, share);
        // The pool refuses only when the process ends.
        tokio::task::spawn_blocking(work).await.map_err(|_| DispatchError::ShuttingDown)?
    };
    serialised.map_err(|error| refused(error.into()))
}

fn refused(error: JournalError) -> DispatchError {
    match error {
        JournalError::Closed => DispatchError::ShuttingDown,
        other => DispatchError::Storage(other.to_string()),
    }
}

fn new_slip(run_id: RunId, session_key: SessionKey, accepted_at: i64) -> InboxRow<()> {
    InboxRow {
        run_id,
        session_key,
        payload: (),
        accepted_at,
        entry_id: ids::hex(),
        fresh_id: new_session_id(),
        session_id: None,
        abort: None,
        answered: None,
        recovered: false,
        gathering: None,
    }
}
