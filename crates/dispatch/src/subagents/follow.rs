//! Follow-up of one sub-agent until nothing is owed for it any more: waits for its end, announces
//! it, and clears it away. Every step may be done again, because announcements are recognised by
//! their run id, in the inbox and in the transcript.

use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::host::Cleanup;
use openclaw_agent::text::silent::is_silent;
use openclaw_channels::Address;
use openclaw_config::settings::AnnounceMode;
use openclaw_journal::api::{DispatchError, RunOutcome, RunRecord};
use openclaw_journal::child_run::{Announced, ChildOutcome, ChildRun, ChildStatus, provenance};
use openclaw_journal::inbox::KnownRun;
use openclaw_journal::request::RunRequest;
use openclaw_journal::source::{AnnouncementSource, Announces, RequestSource};
use openclaw_models::ModelRef;
use openclaw_models::catalog::Catalog;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::SessionEntry;

use super::address::announced_in;
use super::context;
use super::result::{ChildReply, is_stopped, outcome, said_by};
use super::sweep;
use super::telling::{ChildAnnouncement, Stats, posted, trigger};
use crate::handle::Dispatch;
use crate::parts::{ChildParts, DispatchFamilies};

/// First pause before something is tried again, and the longest one.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Seconds in which a child words its announcement.
const STEP_SECONDS: u64 = 120;
/// The global lane of that: children that wait for theirs do not keep it waiting.
const STEP_LANE: &str = "nested";
/// Tokens that a price is for.
const PER: f64 = 1_000_000.0;

/// Looks after one.
pub(super) async fn child(families: Arc<DispatchFamilies>, run_id: String) {
    let parts = &families.children;
    let Some(dispatch) = Dispatch::of(&families) else { return };
    let Some(run) = parts.child_runs.get(&run_id) else { return };
    if !run.is_over() {
        let Some(end) = end_of(&dispatch, &run.id()).await else { return };
        let (run, ended) = note_end(parts, run.clone(), end.as_ref());
        let Some(announced) = announce(&dispatch, &run, &ended, end.as_ref()).await else { return };
        tracing::info!(run_id, session = %run.child_session_key, told = ?announced, "a sub-agent has ended");
        let now = parts.clock.now_ms();
        let noted = parts.child_runs.change(&run_id, |run| {
            run.cleanup_handled = Some(true);
            run.cleanup_completed_at = Some(now);
            run.announced = Some(announced);
        });
        parts.child_runs.tried(noted).await;
    }
    if run.cleanup == Cleanup::Delete {
        sweep::clear_away(&dispatch, &run).await;
    }
}

/// Waits for the end of a run; `Some(None)` for a run that nobody knows any more. `None` when the
/// gateway goes down.
async fn end_of(dispatch: &Dispatch, run_id: &RunId) -> Option<Option<RunRecord>> {
    let parts = dispatch.children();
    loop {
        if let Some(mut end) = parts.registry.end_of(run_id) {
            // Abandoned at a shutdown.
            return end.wait_for(Option::is_some).await.ok().map(|record| record.clone());
        }
        match parts.journal.message(run_id).await {
            Ok(Some(KnownRun::Finished(record))) => return Some(Some(record)),
            Ok(None) => return Some(None),
            // The message is on its way to its lane, or the disk does not answer.
            Ok(Some(KnownRun::Unfinished { .. })) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Makes the list say how a run ended.
fn note_end(parts: &ChildParts, run: ChildRun, record: Option<&RunRecord>) -> (ChildRun, ChildOutcome) {
    if let (true, None, Some(outcome)) = (run.has_ended(), record, run.outcome.clone()) {
        return (run, outcome);
    }
    let ended = outcome(record, run.has_ended());
    let started_at = record.and_then(|record| record.started_at).or(run.started_at);
    let ended_at = record.map(|record| record.ended_at).or(run.ended_at);
    let ended_at = ended_at.unwrap_or_else(|| parts.clock.now_ms());
    let run = ChildRun { started_at, ended_at: Some(ended_at), outcome: Some(ended.clone()), ..run };
    parts.child_runs.change(&run.run_id, |listed| {
        listed.started_at = run.started_at;
        listed.ended_at = run.ended_at;
        listed.outcome.clone_from(&run.outcome);
    });
    (run, ended)
}

/// Announces the end of a child, once. `None` when the gateway goes down before the announcement is
/// known to be made.
async fn announce(
    dispatch: &Dispatch,
    run: &ChildRun,
    ended: &ChildOutcome,
    record: Option<&RunRecord>,
) -> Option<Announced> {
    let parts = dispatch.children();
    if is_stopped(record) {
        return Some(Announced::skipped(Some("stopped")));
    }
    let said = said_by(parts, &run.child_session_key, record).await;
    if ended.status == ChildStatus::Ok && said == ChildReply::Silence {
        return Some(Announced::skipped(None));
    }
    let mode = parts.settings.now().config.agents.defaults.subagents.announce_mode.unwrap_or_default();
    let told = match mode {
        AnnounceMode::Step if ended.status == ChildStatus::Ok => match step(dispatch, run).await? {
            ChildWords::Silent => return Some(Announced::skipped(None)),
            ChildWords::Words(words) => ChildAnnouncement::of(ended, &words, None),
            ChildWords::Failed(why) => ChildAnnouncement::of(
                ended,
                said.words(),
                Some(&format!("the sub-agent could not word its result: {why}")),
            ),
            ChildWords::None => ChildAnnouncement::of(ended, said.words(), None),
        },
        AnnounceMode::Step | AnnounceMode::Raw | AnnounceMode::Summary => {
            ChildAnnouncement::of(ended, said.words(), None)
        }
    };
    // With the tokens of the step.
    let stats = stats(parts, run, record).await.line();
    let (text, form) = match mode {
        AnnounceMode::Summary => (trigger(run, ended, &told, &stats), Announces::Summary),
        AnnounceMode::Step | AnnounceMode::Raw => (posted(&told, &stats), Announces::Words),
    };
    let key = &run.requester_session_key;
    let to = announced_in(parts, run.requester_origin.as_ref(), key).await;
    if let Some(refused) = refused(parts, key, to.as_ref()).await {
        return Some(Announced::failed(refused));
    }
    let unreached = to.as_ref().and_then(|to| unreached(parts, to));
    let request = RunRequest {
        source: RequestSource::Announcement(Box::new(AnnouncementSource {
            form,
            provenance: Some(provenance(&run.child_session_key)),
            deliver_to: to,
        })),
        text,
        lineage: run.lineage.of_announcement(),
        rights: run.rights.clone(),
        ..RunRequest::default()
    };
    let run_id = RunId::new(format!("{}:announce", run.run_id));
    match ask(dispatch, run_id, key, request).await {
        OwnMessageEnd::Ended(RunOutcome::Ok { .. }) => match unreached {
            None => Some(Announced::sent()),
            Some(why) => Some(Announced::failed(why)),
        },
        OwnMessageEnd::Ended(RunOutcome::Error { message, .. }) => Some(Announced::failed(message)),
        OwnMessageEnd::Ended(RunOutcome::Aborted { reason, .. }) => {
            Some(Announced::failed(format!("stopped ({reason})")))
        }
        OwnMessageEnd::Refused(why) => Some(Announced::failed(why)),
        OwnMessageEnd::Unknown => {
            Some(Announced::failed("the gateway does not know any more whether it was told"))
        }
        OwnMessageEnd::GoingDown => None,
    }
}

/// Returns the reason if nothing may be told to a session.
async fn refused(parts: &ChildParts, key: &SessionKey, to: Option<&Address>) -> Option<String> {
    let rules = parts.rows.key_rules();
    // A main session is there for who writes next, also where its row is not.
    if parts.store.get(key).await.is_ok_and(|row| row.is_none()) && !rules.is_main(key) {
        return Some(format!("session {key} is gone"));
    }
    let to = to?;
    let may = parts.send_rules.may_deliver(key, &to.channel).await;
    (!may.unwrap_or(true)).then(|| DispatchError::SendBlocked.to_string())
}

/// Returns the reason if the chat of a session does not hear what its transcript has.
fn unreached(parts: &ChildParts, to: &Address) -> Option<String> {
    let Address { channel, account, .. } = to;
    let config = &parts.settings.now().config;
    let is_there = parts.platforms.account(config, channel, account).is_some();
    (!is_there).then(|| {
        format!(
            "the session has it, its chat does not: {channel} account \"{account}\" is not configured (it is sent once it is)"
        )
    })
}

/// Words of a child about its work.
enum ChildWords {
    Words(String),
    Silent,
    Failed(String),
    /// The child can't be asked: its session is gone.
    None,
}

/// Lets a child word its announcement. `None` when the gateway goes down.
async fn step(dispatch: &Dispatch, run: &ChildRun) -> Option<ChildWords> {
    let parts = dispatch.children();
    let key = &run.child_session_key;
    if parts.store.get(key).await.is_ok_and(|row| row.is_none()) {
        return Some(ChildWords::None);
    }
    let request = RunRequest {
        source: RequestSource::SubagentMessage(provenance(&run.requester_session_key)),
        agent_id: Some(parts.rows.key_rules().agent_of(key)),
        text: context::STEP.to_owned(),
        timeout_seconds: Some(STEP_SECONDS),
        lane: Some(STEP_LANE.to_owned()),
        extra_system_prompt: Some(context::of_step(run)),
        lineage: run.lineage,
        rights: run.rights.clone(),
        ..RunRequest::default()
    };
    let run_id = RunId::new(format!("{}:step", run.run_id));
    let outcome = match ask(dispatch, run_id, key, request).await {
        OwnMessageEnd::GoingDown => return None,
        OwnMessageEnd::Refused(why) => return Some(ChildWords::Failed(why)),
        OwnMessageEnd::Unknown => return Some(ChildWords::None),
        OwnMessageEnd::Ended(outcome) => outcome,
    };
    Some(match outcome {
        RunOutcome::Ok { result } => match result.last_text() {
            Some(words) if is_silent(words) => ChildWords::Silent,
            Some(words) => ChildWords::Words(words.to_owned()),
            None => ChildWords::Silent,
        },
        RunOutcome::Error { message, .. } => ChildWords::Failed(message),
        RunOutcome::Aborted { reason, .. } => ChildWords::Failed(format!("stopped ({reason})")),
    })
}

/// Result of a message of the gateway's own.
enum OwnMessageEnd {
    Ended(RunOutcome),
    Refused(String),
    /// The message was accepted before, and is forgotten.
    Unknown,
    GoingDown,
}

/// Accepts a message, unless it was accepted before, and waits for the end of its run.
async fn ask(dispatch: &Dispatch, run_id: RunId, key: &SessionKey, request: RunRequest) -> OwnMessageEnd {
    let mut pause = PAUSE;
    loop {
        let accepting = dispatch.accept(run_id.clone(), key.clone(), request.clone()).await;
        match accepting.outcome().await {
            // Accepted before, it may have other numbers below it.
            Ok(_) | Err(DispatchError::KeyReused(_)) => break,
            Err(DispatchError::ShuttingDown) => return OwnMessageEnd::GoingDown,
            Err(error @ DispatchError::SendBlocked) => return OwnMessageEnd::Refused(error.to_string()),
            Err(
                error @ (DispatchError::Storage(_)
                | DispatchError::QueueFull(_)
                | DispatchError::Overloaded
                | DispatchError::StopNotStored(_)),
            ) => {
                tracing::warn!(%run_id, session = %key, %error, "what is told of a sub-agent waits");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    match end_of(dispatch, &run_id).await {
        Some(Some(record)) => OwnMessageEnd::Ended(record.outcome),
        Some(None) => OwnMessageEnd::Unknown,
        None => OwnMessageEnd::GoingDown,
    }
}

/// Gathers figures about a child's work.
async fn stats(parts: &ChildParts, run: &ChildRun, record: Option<&RunRecord>) -> Stats {
    let key = &run.child_session_key;
    let entry = parts.rows.entry_or_none(key).await;
    let entry = entry.as_deref();
    let agent = parts.rows.key_rules().agent_of(key);
    let transcript = entry.and_then(|entry| parts.transcripts.find(&agent, entry));
    let by_wall = || run.started_at.zip(run.ended_at).map(|(from, to)| to.saturating_sub(from));
    let runtime_ms = record.and_then(|record| record.outcome.result()?.duration_ms()).or_else(by_wall);
    Stats {
        runtime_ms,
        total: entry.and_then(|entry| entry.total_tokens),
        input: entry.and_then(|entry| entry.input_tokens),
        output: entry.and_then(|entry| entry.output_tokens),
        cost: entry.and_then(|entry| cost(parts, entry)),
        session_key: key.to_string(),
        session_id: entry.and_then(|entry| entry.session_id.as_ref()).map(ToString::to_string),
        transcript: transcript.map(|found| found.to_string()),
    }
}

fn cost(parts: &ChildParts, entry: &SessionEntry) -> Option<f64> {
    let model = ModelRef::new(entry.model_provider.as_deref()?, entry.model.as_deref()?);
    let settings = parts.settings.now();
    let price = Catalog::new(&settings.models).price(&model)?;
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let of = |tokens: Option<u64>, price: f64| tokens.unwrap_or(0) as f64 * price / PER;
    let cost = of(entry.input_tokens, price.input) + of(entry.output_tokens, price.output);
    (cost > 0.0).then_some(cost)
}
