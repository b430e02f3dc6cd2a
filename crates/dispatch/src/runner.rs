//! One run, from an accepted message to a stored result. The order of the steps is the promise of `docs/durability.md`.
//!
//! [`attempt`] counts how often a message is tried, [`given_up`] ends one that was tried too often; [`command`] answers what is meant for the gateway; [`session`] finds the conversation, [`protections`] tells whether it may be gone on with here, [`asked_model`] the model it asks for,
//! [`contact`] notes where it is held, [`wording`] the model's view of the message, [`prepare`] models and prompt, [`tools`] the tools; [`branch`] is the transcript as the agent sees it, [`kept`] keeps it open for the next, [`inject`] writes into it meanwhile; [`locked`] waits for another process that has the transcript, [`disk`] for space; [`unanswered`] keeps what was stopped before it began; [`profile_pin`] is its credential profile; [`secrets`] is what tools may not say, [`device_secrets`] the part of it that devices bring; [`result`] is what is remembered.

pub(crate) mod asked_model;
mod attempt;
mod branch;
pub(crate) mod command;
mod contact;
mod device_secrets;
mod disk;
mod fork;
mod given_up;
mod history_limit;
pub(crate) mod inject;
mod kept;
pub(crate) mod locked;
mod prepare;
mod profile_pin;
mod protections;
mod result;
mod secrets;
mod session;
mod tools;
mod unanswered;
pub(crate) mod wording;

use attempt::GivenUp;
pub(crate) use attempt::{Attempt, Suspects, is_last_try};

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use openclaw_agent::event::RunEvent;
use openclaw_agent::host::Host as ToolHost;
use openclaw_agent::prompt::{HostFacts, RepoRoots};
use openclaw_agent::user_time::user_zone;
use openclaw_agent::{Outcome, RunModel, RunParams};
use openclaw_models::Models;
use openclaw_protocol::message::{Message, UserMessage};
use openclaw_sessions::entry::{SendPolicy, VerboseLevel};
use openclaw_sessions::send_policy::{self, SendSubject};
use openclaw_sessions::store::{Edit, Refused};
use openclaw_sessions::transcript::{Injector, Transcripts};
use openclaw_sessions::{KeyRules, SessionEntry, SessionKey, SessionStore, StoreError};
use openclaw_tools::CommandLock;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::api::{AbortReason, DispatchError, RunOutcome, RunRecord};
use crate::clock::Clock;
use crate::events::Verbose;
use crate::handle::{Deps, Settings};
use crate::host::GatewayHost;
use crate::inbox::{Parked, Row};
use crate::journal::JournalError;
use crate::lane::{Job, Place, SteeringQueue};
use crate::request::Request;
use crate::shared::Shared;
use crate::system_events::SystemEvents;
use command::Route;
use kept::KeptTranscripts;
use locked::LockWait;
use prepare::{Preparation, Prepared};
use result::Figures;
use secrets::KnownSecrets;
use wording::Circumstances;

/// What runs are made of.
pub(crate) struct Runner {
    state_dir: PathBuf,
    settings: watch::Receiver<Arc<Settings>>,
    store: Arc<dyn SessionStore>,
    transcripts: Arc<dyn Transcripts>,
    tool_host: Arc<dyn ToolHost>,
    pub(crate) models: Models,
    host: HostFacts,
    system_events: Arc<SystemEvents>,
    command_variables: Vec<(String, String)>,
    command_lock: Option<CommandLock>,
    secrets: KnownSecrets,
    kept: KeptTranscripts,
    repo_roots: RepoRoots,
    clock: Clock,
}

/// How a lane steers one run.
pub(crate) struct RunControl {
    /// Stops the run.
    pub(crate) cancel: CancellationToken,
    /// Who stopped it.
    pub(crate) reason: Arc<OnceLock<AbortReason>>,
    /// What the user says meanwhile.
    pub(crate) steering: Arc<SteeringQueue>,
    /// Takes the run's events.
    pub(crate) events: mpsc::Sender<RunEvent>,
    /// Lets the lane write into the run's transcript, from when the run has it open until it stores its result.
    pub(crate) transcript: watch::Sender<Option<Injector>>,
    /// How far this attempt is.
    pub(crate) attempt: Arc<Attempt>,
    /// How long other processes keep it waiting.
    pub(crate) lock_wait: Arc<LockWait>,
}

/// How work on a message ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With a result, which is stored.
    Done(RunRecord),
    /// By the gateway itself, with these words; `None` if the sender may not give commands.
    Answered(RunRecord, Option<Box<Message>>),
    /// For a shutdown; the message is taken up again by the next start.
    Interrupted,
}

/// Why a run could not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotBegun {
    /// For people.
    pub(crate) message: String,
    /// Whether there is no space on disk: then the message waits for some.
    pub(crate) disk_full: bool,
}

impl NotBegun {
    pub(crate) fn because(message: impl Into<String>) -> Self {
        Self { message: message.into(), disk_full: false }
    }
}

impl<E: std::error::Error + 'static> From<E> for NotBegun {
    fn from(error: E) -> Self {
        Self { message: format!("Error: {error}"), disk_full: disk::is_full(&error) }
    }
}

/// Works on one message.
pub(crate) async fn work(shared: &Shared, job: &Job, control: RunControl) -> Ending {
    let waiting = &job.row;
    // A stop and what the gateway does by itself need no place in a lane. (Nor has a command that is none any more because the
    // settings have changed since.)
    let place = if waiting.abort.is_some() || waiting.payload.facts.wants.command {
        None
    } else {
        match enter(shared, job, &control).await {
            Ok(place) => Some(place),
            Err(ending) => return ending,
        }
    };
    if let Some(given_up) = GivenUp::after(waiting.payload.attempts) {
        return given_up::close(shared, waiting, given_up).await;
    }
    // Nothing was done for it so far: who only waits does not die of it.
    shared.registry.take_up(&waiting.run_id);
    control.attempt.begin(shared, waiting, &control.cancel).await;
    match waiting.abort {
        Some(reason) => unanswered::close(shared, waiting, reason).await,
        // Boxed, so that who waits for a place takes little memory.
        None => Box::pin(answered_or_run(shared, job, &control, place)).await,
    }
}

/// Waits for a place in the message's global lane; fails with how the message ends when it is stopped meanwhile.
async fn enter(shared: &Shared, job: &Job, control: &RunControl) -> Result<Place, Ending> {
    tokio::select! { biased;
        () = control.cancel.cancelled() => Err(stopped_early(shared, &job.row, control).await),
        place = async { job.gate.cancelled().await; shared.global.enter(job.row.payload.facts.lane()).await } => Ok(place),
    }
}

/// Does what a message asks for, which may be for the gateway alone. While another process holds the transcript, the
/// message gives its place back.
async fn answered_or_run(
    shared: &Shared,
    job: &Job,
    control: &RunControl,
    mut place: Option<Place>,
) -> Ending {
    let row = match shared.load(&job.row).await {
        Ok(row) => row,
        Err(error) => return unreadable(shared, &job.row, error).await,
    };
    let hint = match shared.runner.route(&row).await {
        Ok(Route::Agent(hint)) => hint,
        Ok(Route::Command) => return command::work(shared, job, &row, control, None).await,
        Ok(Route::Refused(why)) => return command::work(shared, job, &row, control, Some(why)).await,
        Err(NotBegun { message, .. }) => return failed(shared, &row, message).await,
    };
    loop {
        shared.registry.running(&row.run_id);
        let preparing = Box::pin(shared.runner.prepare(shared, &row, control, hint.clone()));
        match control.attempt.while_preparing(shared, &job.row, preparing).await {
            Ok(Preparation::Ready(prepared)) => {
                let ending = drive(shared, &row, *prepared, control).await;
                drop(place);
                return ending;
            }
            Ok(Preparation::Stopped) => return stopped_early(shared, &job.row, control).await,
            Ok(Preparation::Locked(held)) => {
                drop(place.take());
                control.attempt.prepared(shared, &job.row).await;
                if let Err(ending) = locked::until_free(shared, &job.row, control, &held).await {
                    return ending;
                }
                place = match enter(shared, job, control).await {
                    Ok(place) => Some(place),
                    Err(ending) => return ending,
                };
            }
            Err(_) if shared.kill.is_cancelled() => return Ending::Interrupted,
            Err(NotBegun { message, disk_full: true }) => {
                drop(place.take());
                control.attempt.prepared(shared, &job.row).await;
                if let Err(ending) = disk::until_space(shared, &job.row, control, &message).await {
                    return ending;
                }
                place = match enter(shared, job, control).await {
                    Ok(place) => Some(place),
                    Err(ending) => return ending,
                };
            }
            Err(NotBegun { message, disk_full: false }) => {
                tracing::warn!(run_id = %row.run_id, session = %row.session_key, %message, "run could not begin");
                return failed(shared, &row, message).await;
            }
        }
    }
}

/// Stopped while it waited for its turn.
async fn stopped_early(shared: &Shared, row: &Row<Parked>, control: &RunControl) -> Ending {
    if shared.kill.is_cancelled() {
        return Ending::Interrupted;
    }
    let reason = control.reason.get().copied().unwrap_or(AbortReason::Stop);
    unanswered::close(shared, row, reason).await
}

/// What was asked can't be read from disk any more.
async fn unreadable(shared: &Shared, row: &Row<Parked>, error: JournalError) -> Ending {
    if error == JournalError::Closed || shared.kill.is_cancelled() {
        return Ending::Interrupted;
    }
    tracing::error!(run_id = %row.run_id, session = %row.session_key, %error, "a message could not be read");
    failed(shared, row, format!("Error: the message could not be read from gateway.sqlite: {error}")).await
}

/// Ended before anything was done; the text is for people.
async fn failed<P>(shared: &Shared, row: &Row<P>, message: String) -> Ending {
    done(shared, row, None, RunOutcome::Error { message, result: None }).await
}

/// Runs the agent, then stores: transcript and session row, then the inbox, and only then clients hear of the end.
async fn drive(shared: &Shared, row: &Row, mut prepared: Prepared, control: &RunControl) -> Ending {
    let mut ended = run_agent(&shared.runner, &mut prepared, control).await;
    control.transcript.send_replace(None);
    prepared.branch.end_injections();
    if shared.kill.is_cancelled() {
        return Ending::Interrupted;
    }
    let reason = control.reason.get().copied();
    if let Some(why) = result::time_is_up(&mut ended, reason) {
        prepared.close_timed_out(ended.candidate, why).await;
    }
    let outcome = result::outcome(&ended, reason);
    let started_at = ended.started_at;
    let figures = prepared.figures(ended, row, &outcome, reason);
    let (stored, synced) =
        tokio::join!(shared.runner.store_figures(&prepared.session.key, figures), prepared.branch.sync());
    if let Err(error) = stored {
        tracing::error!(session = %row.session_key, %error, "session row was not updated after a run");
    }
    if let Err(error) = synced {
        // Its row stays in the inbox: should the transcript be lost with the disk's cache, the next start asks again.
        tracing::error!(run_id = %row.run_id, %error, "transcript could not be synced");
        return Ending::Done(record(shared, row, Some(started_at), outcome));
    }
    shared.runner.kept.put(prepared.branch.into_transcript());
    for taken in control.steering.taken() {
        finish(shared, record(shared, &taken.row, Some(started_at), outcome.clone())).await;
    }
    done(shared, row, Some(started_at), outcome).await
}

async fn run_agent(runner: &Runner, prepared: &mut Prepared, control: &RunControl) -> Outcome {
    let models: Vec<RunModel<'_>> = prepared.models.iter().map(RunModel::from).collect();
    openclaw_agent::run(RunParams {
        session_id: prepared.session.id.clone(),
        models: &models,
        passed_over: &prepared.passed_over,
        system_prompt: &prepared.system_prompt,
        report: Some(prepared.report.clone()),
        tools: &prepared.tools,
        host: Arc::clone(&runner.tool_host),
        redactor: &prepared.shield.redactor,
        transcript: &mut prepared.branch,
        steering: control.steering.as_ref(),
        reasoning: prepared.reasoning,
        limits: prepared.limits,
        history_limit: prepared.history_limit,
        cancel: control.cancel.clone(),
        workspace: prepared.session.agent.workspace.clone(),
        events: control.events.clone(),
    })
    .await
}

fn record<P>(shared: &Shared, row: &Row<P>, started_at: Option<i64>, outcome: RunOutcome) -> RunRecord {
    RunRecord { run_id: row.run_id.clone(), started_at, ended_at: shared.clock.now_ms(), outcome }
}

async fn done<P>(shared: &Shared, row: &Row<P>, started_at: Option<i64>, outcome: RunOutcome) -> Ending {
    let record = record(shared, row, started_at, outcome);
    finish(shared, record.clone()).await;
    Ending::Done(record)
}

async fn finish(shared: &Shared, record: RunRecord) {
    let run_id = record.run_id.clone();
    if let Err(error) = shared.inbox.finish(record).await {
        // The writer tries again; after a crash the answer is found in the transcript.
        tracing::warn!(%run_id, %error, "a run is not stored as finished yet");
    }
}

impl Runner {
    pub(crate) fn new(deps: Deps, clock: Clock) -> Self {
        let Deps {
            state_dir,
            settings,
            store,
            transcripts,
            models,
            host,
            system_events,
            command_variables,
            command_lock,
            secrets,
        } = deps;
        Self {
            secrets: KnownSecrets::new(secrets, &state_dir),
            state_dir,
            settings,
            tool_host: Arc::new(GatewayHost::new(Arc::clone(&store), Arc::clone(&transcripts))),
            store,
            transcripts,
            models,
            host,
            system_events,
            command_variables,
            command_lock,
            kept: KeptTranscripts::default(),
            repo_roots: RepoRoots::default(),
            clock,
        }
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// How keys are read.
    pub(crate) fn key_rules(&self) -> &KeyRules {
        self.store.rules()
    }

    /// Whether the session may send to a channel.
    pub(crate) async fn may_deliver(&self, key: &SessionKey, channel: &str) -> Result<bool, DispatchError> {
        let entry = self.entry(key).await.map_err(|error| DispatchError::Storage(error.to_string()))?;
        Ok(self.is_allowed(key, entry.as_deref(), Some(channel)))
    }

    fn is_allowed(&self, key: &SessionKey, entry: Option<&SessionEntry>, channel: Option<&str>) -> bool {
        let settings = self.settings();
        let subject = SendSubject { key, entry, channel, chat_type: None };
        send_policy::resolve(settings.sessions.section.send_policy.as_ref(), &subject) == SendPolicy::Allow
    }

    /// Decides what there is to decide about a message, and whether its session may send now. Reads the session's row, once.
    pub(crate) async fn decide(
        &self,
        key: &SessionKey,
        request: Request,
    ) -> Result<(Request, bool), DispatchError> {
        let entry = self.entry(key).await.map_err(|error| DispatchError::Storage(error.to_string()))?;
        let settings = self.settings();
        let may_send = self.is_allowed(key, entry.as_deref(), None);
        Ok((request.decide(entry.as_deref(), &settings), may_send))
    }

    /// A message found on disk, decided about: by the version that accepted it, or now.
    pub(crate) async fn decided(&self, session_key: &SessionKey, request: Request) -> Request {
        if request.decided.is_some() {
            return request;
        }
        let entry = self.entry_or_none(session_key).await;
        request.decide(entry.as_deref(), &self.settings())
    }

    /// How much of the run's tool events clients see.
    pub(crate) async fn verbose(&self, row: &Row<Parked>) -> Verbose {
        let own = self.entry_or_none(&row.session_key).await.and_then(|entry| entry.verbose_level);
        match own {
            Some(VerboseLevel::On) => Verbose::On,
            Some(VerboseLevel::Full) => Verbose::Full,
            Some(VerboseLevel::Off) => Verbose::Off,
            None => {
                let settings = self.settings();
                settings
                    .config
                    .agents
                    .defaults
                    .verbose_default
                    .as_deref()
                    .map(Verbose::parse)
                    .unwrap_or_default()
            }
        }
    }

    /// A message as a run under way sees it.
    pub(crate) fn steered_message(&self, row: &Row) -> UserMessage {
        let zone = user_zone(self.settings().config.agents.defaults.user_timezone.as_deref());
        wording::message(row, &Circumstances::plain(zone))
    }

    async fn entry(&self, session_key: &SessionKey) -> Result<Option<Arc<SessionEntry>>, StoreError> {
        Ok(self.store.get(session_key).await?.map(|row| row.entry))
    }

    /// For what has a default: a store that can't be read shows when the run begins.
    async fn entry_or_none(&self, session_key: &SessionKey) -> Option<Arc<SessionEntry>> {
        self.entry(session_key).await.ok().flatten()
    }

    async fn store_figures(&self, key: &SessionKey, figures: Figures) -> Result<(), StoreError> {
        let change = Box::new(move |edit: Edit<'_>| {
            if edit.is_new || edit.entry.session_id.as_ref() != Some(&figures.session_id) {
                return Err(Refused("the session was deleted or reset while its run ended".to_owned()));
            }
            figures.apply(edit.entry, edit.now);
            Ok(())
        });
        match self.store.update(key, change).await {
            Ok(_) => Ok(()),
            Err(StoreError::Refused(reason)) => {
                tracing::debug!(session = %key, %reason, "figures of a run have no row to go to");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
