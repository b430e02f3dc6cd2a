//! Entry to dispatch: a cheap handle and its methods.

mod stopping;
mod wait;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::skills::{Occasion, SkillCommand, Wanted};
use openclaw_channels::{Address, AnswerMedia, MenuCommand, Target};
use openclaw_delivery::outbox::{Enqueued, Outbox, OutboxError};
use openclaw_journal::api::{
    AbortError, AbortReason, Accepted, ActiveRun, AgentMessage, ChangeError, ChatMessage, DispatchError,
    InjectError, InjectMessage, Injected, StillActive,
};
use openclaw_journal::beat::BeatMessage;
use openclaw_journal::delivery::{Delivery, DeliveryStatus};
use openclaw_journal::inbox::UnfinishedBeat;
use openclaw_journal::journal::Update;
use openclaw_journal::request::{RunRequest, WEBCHAT};
use openclaw_protocol::{RunId, SessionKey};
use openclaw_runtime::events::Events;
use openclaw_runtime::messages::DeliverError;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::intake::Receipt;
use crate::known_chats::KnownChats;
use crate::lane::{ChangeKind, LaneCommand, SessionChange, Supervisor};
use crate::parts::{ArrivalParts, ChildParts, DispatchFamilies, HookParts, RequestParts, SessionToolParts};
use openclaw_commands::stop;
use openclaw_runs::Announcement;
use openclaw_runs::conversation_hooks::GivenBy;
use openclaw_runs::inject::{self, RunBeside};
use openclaw_runtime::messages::mirror::sessions_of;
use openclaw_runtime::messages::{ClientFiles, MessageError, MessageRequest, perform_for_operator};

/// Age from which a file that was taken for a delivery must have a row.
const JUST_TAKEN: Duration = Duration::from_secs(60 * 60);

/// Handle to the dispatcher. Cloning is cheap; all clones are the same dispatcher.
#[derive(Clone)]
pub struct Dispatch {
    families: Arc<DispatchFamilies>,
    lanes: Arc<Supervisor>,
    /// Heartbeats whose answers are still owed; taken by the caller that owes them.
    unfinished_beats: Arc<Mutex<Vec<UnfinishedBeat>>>,
    chats: Arc<KnownChats>,
}

/// Message that was sent to a conversation by hand.
#[derive(Debug, Clone)]
pub struct Mirrored {
    /// The session that it was sent for, if one was named.
    pub session_key: Option<SessionKey>,
    /// Conversation that it was sent to.
    pub address: Address,
    /// Target of the message, as it was read.
    pub target: Target,
    /// The words.
    pub text: String,
    /// The names of its files.
    pub media: Vec<String>,
}

/// Result of a `chat.send`.
#[derive(Debug)]
pub enum Sent {
    /// The message was accepted.
    Taken(Receipt),
    /// The message was `/stop`, and this was stopped.
    Stopped(Stopped),
}

/// Runs and sub-agents that were stopped in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stopped {
    /// Runs of the session, including those that waited.
    pub runs: Vec<RunId>,
    /// Number of its sub-agents.
    pub subagents: usize,
}

impl Stopped {
    /// True if there was anything to stop.
    pub fn is_any(&self) -> bool {
        !self.runs.is_empty() || self.subagents > 0
    }
}

/// A request that has its place in its session: any request placed later comes after it.
#[must_use = "the request goes on without it, but nobody hears how it ended"]
pub struct Placed<T> {
    outcome: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T: Send + 'static> Placed<T> {
    fn new(outcome: impl Future<Output = T> + Send + 'static) -> Self {
        Self { outcome: Box::pin(outcome) }
    }

    fn known(outcome: T) -> Self {
        Self::new(std::future::ready(outcome))
    }

    /// Waits for the result.
    pub async fn outcome(self) -> T {
        self.outcome.await
    }
}

impl Dispatch {
    pub(crate) fn families(&self) -> &Arc<DispatchFamilies> {
        &self.families
    }

    fn requests(&self) -> &RequestParts {
        &self.families.requests
    }

    pub(crate) fn arrivals(&self) -> &ArrivalParts {
        &self.families.arrivals
    }

    pub(crate) fn children(&self) -> &ChildParts {
        &self.families.children
    }

    pub(crate) fn session_tool_parts(&self) -> &SessionToolParts {
        &self.families.session_tools
    }

    pub(crate) fn hook_parts(&self) -> &HookParts {
        &self.families.hooks
    }

    /// Builds a handle to the dispatcher of these parts; `None` once the gateway has ended.
    pub(crate) fn of(families: &Arc<DispatchFamilies>) -> Option<Self> {
        Some(Self::with(Arc::clone(families), families.lanes()?, Vec::new()))
    }

    /// Builds the handle, with heartbeats whose answers are owed.
    pub(crate) fn with(
        families: Arc<DispatchFamilies>,
        lanes: Arc<Supervisor>,
        unfinished_beats: Vec<UnfinishedBeat>,
    ) -> Self {
        let unfinished_beats = Arc::new(Mutex::new(unfinished_beats));
        Self { families, lanes, unfinished_beats, chats: Arc::default() }
    }

    /// The lanes of its sessions.
    pub(crate) fn lanes(&self) -> &Arc<Supervisor> {
        &self.lanes
    }

    /// Facts about chats that were seen since the start.
    pub(crate) fn chats(&self) -> &KnownChats {
        &self.chats
    }

    /// Removes the copies of files that no delivery names any more.
    pub async fn sweep_files(&self) {
        if let Err(error) = self.requests().outbox.sweep_files(JUST_TAKEN).await {
            tracing::warn!(%error, "files that no delivery names are left where they are");
        }
    }

    /// Takes a `chat.send`. Once the outcome is [`Accepted::New`] the message is on disk. A run id that is known from before
    /// gives [`Accepted::InFlight`] or [`Accepted::Finished`] and changes nothing. After an error, see [`DispatchError`], nothing
    /// of the message was kept. `/stop` and the words that mean it are no message: they are done.
    ///
    /// [`Accepted::New`]: openclaw_journal::api::Accepted::New
    /// [`Accepted::InFlight`]: openclaw_journal::api::Accepted::InFlight
    /// [`Accepted::Finished`]: openclaw_journal::api::Accepted::Finished
    pub async fn chat(&self, message: ChatMessage) -> Placed<Result<Sent, DispatchError>> {
        let (run_id, session_key) = (message.run_id.clone(), message.session_key.clone());
        let received = self.requests().hooks.received(&message);
        if stop::is_stop(&message.text) {
            let by = GivenBy { source: WEBCHAT.to_owned(), sender: message.sender, chat: None };
            let hooks = Arc::clone(&self.requests().conversation_hooks);
            if let Some(received) = received {
                received.tell(self.requests().clock.now_ms());
            }
            let stopping = self.stop(&session_key, AbortReason::Stop).await;
            return Placed::new(async move {
                match stopping.outcome().await {
                    Ok(stopped) => {
                        hooks.stopped(&session_key, by);
                        Ok(Sent::Stopped(stopped))
                    }
                    Err(AbortError::NotStored(error)) => Err(error.into()),
                    // Of all runs none is another session's.
                    Err(AbortError::OtherSession) => Ok(Sent::Stopped(Stopped::default())),
                }
            });
        }
        let accepting = self.accept(run_id, session_key, message.into()).await;
        Placed::new(async move {
            let receipt = accepting.outcome().await?;
            // Of a message that is known from before they were told before.
            if let (Some(received), Accepted::New { accepted_at }) = (received, &receipt.accepted) {
                received.tell(*accepted_at);
            }
            Ok(Sent::Taken(receipt))
        })
    }

    /// Takes an `agent` request; otherwise as [`Dispatch::chat`].
    pub async fn agent(&self, message: AgentMessage) -> Placed<Result<Receipt, DispatchError>> {
        let (run_id, session_key) = (message.run_id.clone(), message.session_key.clone());
        self.accept(run_id, session_key, message.into()).await
    }

    /// Takes a heartbeat; otherwise as [`Dispatch::agent`]. It waits for its session's turn like any message, nothing is steered
    /// into it, and an acknowledgement is left behind in the transcript.
    pub async fn beat(&self, message: BeatMessage) -> Placed<Result<Receipt, DispatchError>> {
        let (run_id, session_key) = (message.run_id.clone(), message.session_key.clone());
        self.accept(run_id, session_key, message.into()).await
    }

    /// The heartbeats that an earlier process accepted and did not finish, once: their answers are still owed.
    pub fn take_unfinished_beats(&self) -> Vec<UnfinishedBeat> {
        std::mem::take(&mut *self.unfinished_beats.lock())
    }

    /// Accepts a request. Spawned so that it completes if the caller disconnects: a message in the
    /// inbox has to be worked on.
    pub(crate) async fn accept(
        &self,
        run_id: RunId,
        session_key: SessionKey,
        request: RunRequest,
    ) -> Placed<Result<Receipt, DispatchError>> {
        if self.requests().stops.stopping.is_cancelled() {
            return Placed::known(Err(DispatchError::ShuttingDown));
        }
        let (intake, lanes) = (Arc::clone(&self.families.intake), Arc::clone(&self.lanes));
        let (placed, has_place) = oneshot::channel();
        let accept = intake.accept(lanes, run_id, session_key, request, placed);
        let accepting = self.requests().tasks.accepting.spawn(Box::pin(accept));
        // Dropped when it has its place, or was refused before.
        let _ = has_place.await;
        Placed::new(async move {
            accepting.await.unwrap_or_else(|error| Err(DispatchError::Storage(error.to_string())))
        })
    }

    /// Stops all runs of a session that were placed before, waits until they are closed, and does `work` before any later message
    /// is worked on: `sessions.reset`, `sessions.delete`, `sessions.compact`. An error when a run did not end in `patience`, or the
    /// stop could not be stored: then the runs are stopped, and `work` is not done.
    pub async fn change<T: Send + 'static>(
        &self,
        session_key: &SessionKey,
        patience: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Placed<Result<T, ChangeError>> {
        self.place(session_key, ChangeKind::Conversation, patience, |_| work).await
    }

    /// Does `work` on the settings in the session's row: `sessions.patch`. A run does not keep it
    /// waiting, only earlier work that may change the settings too. Fails if that work did not end
    /// within `patience`; then nothing was done.
    pub async fn change_settings<T: Send + 'static>(
        &self,
        session_key: &SessionKey,
        patience: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Placed<Result<T, ChangeError>> {
        self.place(session_key, ChangeKind::Settings, patience, |_| work).await
    }

    /// Notes that a person chose the model of a session other than by a message: `sessions.patch`.
    pub fn model_chosen(&self, session_key: &SessionKey) {
        self.requests().models.chosen_by_hand(session_key);
    }

    /// Waits until the list on disk has every child. One that is stopped before it begins is over at once: a list that misses it then
    /// would never have it.
    pub(crate) async fn children_are_listed(&self) {
        let RequestParts { stops, child_runs, .. } = self.requests();
        tokio::select! { biased;
            // The rest is written at the end.
            () = stops.stopping.cancelled() => {}
            () = child_runs.all_tried() => {}
        }
    }

    /// Places a change in its session and does its `work` when it is its turn, beside a run if need
    /// be.
    async fn place<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
        &self,
        session_key: &SessionKey,
        kind: ChangeKind,
        patience: Duration,
        work: impl FnOnce(Option<RunBeside>) -> W + Send + 'static,
    ) -> Placed<Result<T, ChangeError>> {
        if kind == ChangeKind::Conversation && session_key.is_subagent() {
            self.children_are_listed().await;
        }
        let (give, mut floor) = oneshot::channel();
        self.lanes.send(session_key, LaneCommand::Change(SessionChange { kind, floor: give })).await;
        let still_active = match kind {
            ChangeKind::Conversation => ChangeError::StillActive(session_key.clone()),
            ChangeKind::Settings | ChangeKind::Words => StillActive(session_key.clone()).into(),
        };
        let panicked = still_active.clone();
        // Spawned so that it completes if the caller disconnects.
        let changing = self.requests().tasks.accepting.spawn(async move {
            let given = match tokio::time::timeout(patience, &mut floor).await {
                Ok(given) => given.ok(),
                Err(_) => {
                    // From here on it is either given already, or never.
                    floor.close();
                    floor.try_recv().ok()
                }
            };
            let Some(floor) = given else { return Err(still_active) };
            let mut floor = floor?;
            let done = work(floor.run.take()).await;
            drop(floor);
            Ok(done)
        });
        // A panic left the session as it was.
        Placed::new(async move { changing.await.unwrap_or(Err(panicked)) })
    }

    /// Returns the runs of a session that have not ended, oldest first.
    pub fn active_runs(&self, session_key: &SessionKey) -> Vec<ActiveRun> {
        self.requests().registry.of_session(session_key)
    }

    /// Appends to a session's transcript in the assistant's name and broadcasts the `chat` final (`chat.inject`). While
    /// a run is under way it is written between two of its entries. A tool call under way is waited for a few seconds, and so is a
    /// message or a change that was placed before and begins the conversation anew.
    /// After an error, see [`InjectError`], nothing was written.
    pub async fn inject(&self, message: InjectMessage) -> Placed<Result<Injected, InjectError>> {
        if self.requests().stops.stopping.is_cancelled() {
            return Placed::known(Err(InjectError::ShuttingDown));
        }
        let (key, asked_at) = (message.session_key.clone(), Instant::now());
        let injections = Arc::clone(&self.requests().injections);
        let work = move |run| async move { injections.work(message, run, asked_at).await };
        let placed = self.place(&key, ChangeKind::Words, inject::PATIENCE, work).await;
        Placed::new(async move { placed.outcome().await.unwrap_or_else(|_| Err(StillActive(key).into())) })
    }

    /// Takes files of this machine into the gateway's own storage, to be sent.
    ///
    /// # Errors
    /// The text names the file that could not be had, and the reason.
    pub async fn load_files(
        &self,
        names: Vec<String>,
        reach: ClientFiles,
    ) -> Result<Vec<AnswerMedia>, String> {
        self.requests().files.load_files(names, reach).await
    }

    /// Returns the commands that a platform may offer in its menu, in order: our own, then those of
    /// the agents' skills.
    pub async fn menu(&self) -> Vec<MenuCommand> {
        let settings = self.requests().settings.now();
        let mut skills: Vec<SkillCommand> = Vec::new();
        for id in settings.config.agent_ids() {
            let agent = settings.config.agent(&id);
            let wanted = Wanted { config: &settings.config, agent: &id, workspace: &agent.workspace };
            let snapshot = self.requests().skills.for_turn(wanted, Occasion::GoesOn(None)).await;
            let own = openclaw_commands::skill::commands(&snapshot).iter();
            let new = own.filter(|one| !skills.iter().any(|known| known.name == one.name)).cloned();
            let new: Vec<SkillCommand> = new.collect();
            skills.extend(new);
        }
        let platforms = self.requests().platforms.usable(&settings.config);
        let facts =
            openclaw_commands::MenuFacts { settings: &settings.config.commands, platforms: &platforms };
        openclaw_commands::menu(facts, &skills)
    }

    /// Queue of deliveries to chat platforms.
    pub fn outbox(&self) -> &Outbox {
        &self.requests().outbox
    }

    /// Hands a session's delivery over, if the session may send now (spec `sessions.md` §6). Answers to commands are not
    /// asked for it: they go to [`Outbox::accept`]. Hooks may change its words or keep it back ([`Enqueued::Withheld`]).
    ///
    /// # Errors
    /// See [`DeliverError`]; nothing was kept.
    pub async fn deliver(&self, delivery: Delivery) -> Result<Enqueued, DeliverError> {
        self.requests().deliveries.deliver(delivery).await
    }

    /// Does an action of the `message` tool for a client of the gateway.
    ///
    /// # Errors
    /// See [`MessageError`].
    pub async fn message_action(&self, request: &MessageRequest) -> Result<Value, MessageError> {
        perform_for_operator(&*self.requests().actions, request).await
    }

    /// Tells the session of a conversation about a message that was sent there by hand: the named
    /// session, or else the one that answers there, if there is one. Nothing depends on it:
    /// failures are logged.
    pub async fn mirror(&self, sent: Mirrored) {
        let Mirrored { session_key, address, target, text, media } = sent;
        let settings = self.requests().settings.now();
        let derived = || sessions_of(&settings.sessions, &address, &target);
        for key in session_key.map_or_else(derived, |key| vec![key]) {
            let Ok(Some(row)) = self.requests().store.get(&key).await else { continue };
            let key = row.key;
            let (injections, asked_at) = (Arc::clone(&self.requests().injections), Instant::now());
            let message = InjectMessage { session_key: key.clone(), text: text.clone(), label: None };
            let media = media.clone();
            let work = move |run| async move { injections.mirror(message, media, run, asked_at).await };
            let placed = self.place(&key, ChangeKind::Words, inject::PATIENCE, work).await;
            match placed.outcome().await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(session = %key, %error, "what was sent there is not in its transcript")
                }
                Err(error) => {
                    tracing::warn!(session = %key, %error, "what was sent there is not in its transcript")
                }
            }
            return;
        }
    }

    /// Tells a conversation the result of a turn that the gateway made by itself, such as a
    /// heartbeat. Calling it again does not send it again.
    ///
    /// # Errors
    /// See [`DeliverError`].
    pub async fn announce(&self, announcement: Announcement) -> Result<(), DeliverError> {
        self.requests().deliveries.announce(announcement).await
    }

    /// Returns the status of each delivery of a run's answer, once all of them are over or
    /// `patience` is.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn deliveries_of(
        &self,
        run_id: &RunId,
        patience: Duration,
    ) -> Result<Vec<DeliveryStatus>, OutboxError> {
        let deadline = Instant::now() + patience;
        let found = self.requests().journal.deliveries_of(run_id).await?;
        let mut ended = Vec::with_capacity(found.len());
        for delivery in found {
            let left = deadline.saturating_duration_since(Instant::now());
            ended.extend(self.outbox().outcome(&delivery.id, left).await?);
        }
        Ok(ended)
    }

    /// Every event from now on.
    pub fn subscribe(&self) -> Events {
        self.requests().hub.subscribe()
    }

    /// Stops beginning runs from now on. Messages are accepted and wait for the next start, runs
    /// under way can be stopped, and answers of the gateway itself are still given.
    pub fn hold_runs(&self) {
        self.requests().stops.holding.cancel();
        self.requests().tasks.working.close();
    }

    /// True if no run is begun any more.
    pub fn holds_runs(&self) -> bool {
        self.requests().stops.holding.is_cancelled()
    }

    /// Number of runs under way.
    pub fn runs_under_way(&self) -> usize {
        self.requests().tasks.working.len()
    }

    /// Waits until no run is under way, after [`Dispatch::hold_runs`].
    pub async fn runs_ended(&self) {
        self.requests().tasks.working.wait().await;
    }

    /// Refuses messages from now on, and leaves waiting ones to the next start.
    pub fn stop_accepting(&self) {
        self.requests().stops.stopping.cancel();
        self.requests().tasks.accepting.close();
        self.requests().tasks.showing.close();
    }

    /// Takes no more messages, lets runs finish up to `deadline`, stops the rest (they are resumed at the next start) and
    /// closes the inbox. Answers with the ids of the runs that did not finish.
    pub async fn shutdown(&self, deadline: Duration) -> Vec<RunId> {
        self.stop_accepting();
        let RequestParts { tasks, stops, outbox, registry, journal, hub, .. } = self.requests();
        let drained = async {
            tasks.accepting.wait().await;
            tasks.showing.wait().await;
            self.lanes.ended().await;
            outbox.ended().await;
        };
        if tokio::time::timeout(deadline, drained).await.is_err() {
            stops.kill.cancel();
            self.lanes.ended().await;
            outbox.ended().await;
        }
        let taken_up = registry.taken_up();
        let left = registry.abandon();
        for run_id in &left {
            tracing::info!(%run_id, "not finished, goes on after the next start");
        }
        self.families.child_tasks.close().await;
        // Commands in the background end with the process, and the next process tells of them.
        self.requests().command_sessions.note_output().await;
        // These runs were stopped, and did not end the process.
        if !taken_up.is_empty()
            && let Err(error) = journal.update(Update::Excuse(taken_up)).await
        {
            tracing::warn!(%error, "this stop counts as a death of the messages under way");
        }
        // Clients hear the end of what has ended before they are let go.
        hub.flush().await;
        journal.close().await;
        hub.close();
        left
    }
}

#[cfg(test)]
mod tests;
