//! `sessions_send` (spec `sessions.md` §8.3): the message is in the inbox of the other session before anything is answered, with the talk
//! that follows from it. While its answer is waited for, this run lends its place in its global lane.

use std::time::Duration;

use openclaw_agent::host::{HostError, SendCall, SendWish};
use openclaw_journal::api::{Accepted, DispatchError, RunOutcome, RunRecord};
use openclaw_journal::exchange::{Exchange, ExchangeStep, Party};
use openclaw_journal::inbox::KnownRun;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::params::sessions::SessionsResolveParams;
use openclaw_protocol::params::{Label, NonEmpty};
use openclaw_protocol::{AgentId, RunId, SessionKey};
use openclaw_sessions::access::Sight;
use openclaw_sessions::methods::{self, MAX_LABEL, MethodError, PatchError, ResolveError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::announce_target::{announce_target, channel_of};
use super::{Purpose, SessionDenied, ToolCaller, Trouble, VisibleSession, unreadable};
use crate::parts::SessionToolParts;

/// Turns where none are configured, and at most.
const MOST_TURNS: u8 = 5;
/// The longest wait, in seconds: that of the longest run.
const LONGEST_WAIT: u64 = 2_147_000;
/// Text about a run that has not ended in time.
const IN_PROGRESS: &str = "agent run still in progress";
/// Text about a run that can't end as long as it is awaited.
const CIRCLE: &str =
    "agent run still in progress: that session waits for this one, so it answers only after this run";
/// Text for a caller that may write to a session and not read there.
const UNHEARD: &str = "Delivered. What that session answers is not told here, since others than the owner asked for this run: do not wait for it.";

/// End of the wait for an answer.
enum AnswerWait {
    Ended(RunRecord),
    TimedOut(&'static str),
}

impl ToolCaller<'_> {
    /// Sends a message to a session, and waits for its answer.
    pub(crate) async fn send(&self, wish: &SendWish, call: SendCall<'_>) -> Result<Value, HostError> {
        let run_id = self.run_id(call);
        let refused = |refusal: SessionDenied| json!({"runId": run_id.as_str(), "status": refusal.status(), "error": refusal.into_text()});
        let found = match self.addressee(wish).await {
            Ok(found) => found,
            Err(Trouble::Refused(refusal)) => return Ok(refused(refusal)),
            Err(Trouble::Host(error)) => return Err(error),
        };
        // A sub-agent that was never started would have no follow-up, and the `unknown` session
        // can't be begun.
        if found.row.is_none() && (found.key.is_subagent() || found.key.is_unknown()) {
            return Ok(refused(SessionDenied::Missing(format!("No session found: {}", found.key))));
        }
        // The answer would make it a session.
        if self.viewer.key.is_unknown() {
            return Ok(refused(SessionDenied::Missing(format!("No session found: {}", self.viewer.key))));
        }
        if let Some(why) = self.lineage.refuses_message() {
            return Ok(refused(SessionDenied::Forbidden(why)));
        }
        let shown = self.shown(&found.key);
        let failed = |error: &str| json!({"runId": run_id.as_str(), "status": "error", "error": error, "sessionKey": shown});
        let agent = self.viewer.owner(&found.key, self.rules());
        if !self.is_agent(&agent).await {
            return Ok(failed(&format!("unknown agent id \"{agent}\"")));
        }
        // The answer is given by a run that knows what was said there.
        let is_heard = self.admit(&shown, &found, Purpose::Read).is_ok();
        let mut exchange = self.exchange(run_id.clone(), agent, &found, wish).await;
        if !is_heard {
            exchange.max_turns = 0;
        }
        let key = found.key;
        let request = RunRequest {
            lineage: self.lineage.of_message(),
            rights: Some(self.rights.caused()),
            ..exchange.begin()
        };
        let accepted = self.parts.accept_own(run_id.clone(), key.clone(), request).await;
        let ended = match accepted {
            Ok(Accepted::Finished(record)) => Some(record),
            Ok(Accepted::New { .. } | Accepted::InFlight { .. }) => None,
            Err(DispatchError::ShuttingDown) => return Err(HostError::Aborted),
            Err(error) => return Ok(failed(&error.to_string())),
        };
        let delivery = json!({"status": "pending", "mode": "announce"});
        if !is_heard {
            return Ok(
                json!({"runId": run_id.as_str(), "status": "accepted", "sessionKey": shown, "delivery": delivery, "note": UNHEARD}),
            );
        }
        if wish.timeout_seconds == 0 {
            let told = json!({"runId": run_id.as_str(), "status": "accepted", "sessionKey": shown, "delivery": delivery});
            return Ok(told);
        }
        let waited = match ended {
            Some(record) => AnswerWait::Ended(record),
            None => self.wait(&run_id, &key, wish.timeout_seconds, call.cancel).await?,
        };
        Ok(match waited {
            AnswerWait::TimedOut(why) => {
                json!({"runId": run_id.as_str(), "status": "timeout", "error": why, "sessionKey": shown})
            }
            AnswerWait::Ended(record) => match &record.outcome {
                RunOutcome::Ok { result } => {
                    let run = run_id.as_str();
                    match result.last_text() {
                        Some(reply) => {
                            json!({"runId": run, "status": "ok", "reply": reply, "sessionKey": shown, "delivery": delivery})
                        }
                        None => {
                            json!({"runId": run, "status": "ok", "sessionKey": shown, "delivery": delivery})
                        }
                    }
                }
                outcome @ RunOutcome::Error { .. } => failed(outcome.failure().unwrap_or("agent error")),
                outcome @ RunOutcome::Aborted { .. } => {
                    failed(outcome.failure().unwrap_or("agent run was stopped"))
                }
            },
        })
    }

    /// Returns the run id, the same for the same call, also when a crash cut it short and it is
    /// made again.
    fn run_id(&self, call: SendCall<'_>) -> RunId {
        let id = self.turn.delivery_id(call.call_id, call.args);
        RunId::new(openclaw_journal::steady_id::uuid_of(&id))
    }

    /// Returns the session that is meant, if it may be written to.
    async fn addressee(&self, wish: &SendWish) -> Result<VisibleSession, Trouble> {
        match (&wish.session, &wish.label) {
            (Some(_), Some(_)) => {
                let text = "Provide either sessionKey or label (not both).";
                Err(SessionDenied::Missing(text.to_owned()).into())
            }
            (None, None) => {
                Err(SessionDenied::Missing("Either sessionKey or label is required".to_owned()).into())
            }
            (Some(session), None) => self.find(session, Purpose::Write).await,
            (None, Some(label)) => self.labelled(label, wish.agent.as_deref()).await,
        }
    }

    async fn labelled(&self, label: &str, agent: Option<&str>) -> Result<VisibleSession, Trouble> {
        let is_confined = self.viewer.sight == Sight::OwnChildren;
        let agent = agent.map(AgentId::normalize);
        if let Some(agent) = agent.as_ref().filter(|agent| **agent != self.viewer.agent) {
            if is_confined {
                let text = "Sandboxed sessions_send label lookup is limited to this agent";
                return Err(SessionDenied::Forbidden(text.to_owned()).into());
            }
            let may = self.talk().between(&self.viewer.agent, agent);
            may.map_err(|denied| SessionDenied::Forbidden(Purpose::Write.refusal(denied).to_owned()))?;
        }
        let found = match agent {
            Some(agent) => self.by_label(label, Some(&agent)).await,
            // A session of the caller's own agent counts first.
            None => match self.by_label(label, Some(&self.viewer.agent)).await {
                Err(MethodError::Resolve(ResolveError::NoLabel(_))) if !is_confined => {
                    self.by_label(label, None).await
                }
                found => found,
            },
        };
        let key = match found {
            Ok(key) => key,
            Err(MethodError::Store(error)) => return Err(unreadable(error).into()),
            Err(_) if is_confined => {
                let text = "Session not visible from this sandboxed agent session.";
                return Err(SessionDenied::Forbidden(text.to_owned()).into());
            }
            Err(error) => return Err(SessionDenied::Missing(error.to_string()).into()),
        };
        let found = self.found(key).await?;
        self.admit(label, &found, Purpose::Write)?;
        Ok(found)
    }

    async fn by_label(&self, label: &str, agent: Option<&AgentId>) -> Result<SessionKey, MethodError> {
        // No session has such a label, and the refusal would repeat all of it.
        if label.chars().count() > MAX_LABEL {
            return Err(PatchError::LongLabel.into());
        }
        let confined_to = (self.viewer.sight == Sight::OwnChildren).then(|| self.viewer.key.to_string());
        let params = SessionsResolveParams {
            label: Some(Label(label.to_owned())),
            agent_id: agent.map(|agent| NonEmpty(agent.to_string())),
            spawned_by: confined_to.map(NonEmpty),
            ..SessionsResolveParams::default()
        };
        let found = methods::resolve(&*self.family().store, &params).await?;
        Ok(self.rules().canonical(&found.key)?)
    }

    /// True if the agent exists: a message does not make one.
    async fn is_agent(&self, agent: &AgentId) -> bool {
        if self.settings.config.has_agent(agent) {
            return true;
        }
        let store = std::sync::Arc::clone(&self.family().store);
        let found = tokio::task::spawn_blocking(move || store.found_agents());
        found.await.is_ok_and(|found| found.contains(agent))
    }

    async fn exchange(&self, id: RunId, agent: AgentId, found: &VisibleSession, wish: &SendWish) -> Exchange {
        let entry = found.row.as_ref().map(|row| row.entry.as_ref());
        let announce_to = announce_target(self.family(), &found.key, entry).await;
        let channel = announce_to.as_ref().map(|address| address.channel.clone());
        let max_turns = self.settings.config.session.agent_to_agent.max_ping_pong_turns;
        Exchange {
            id,
            requester: Party {
                key: self.viewer.key.clone(),
                agent: self.viewer.agent.clone(),
                channel: self.channel.clone(),
            },
            target: Party {
                key: found.key.clone(),
                agent,
                channel: channel.or_else(|| channel_of(&found.key, entry)),
            },
            target_shown: self.shown(&found.key),
            asked: wish.message.clone(),
            max_turns: max_turns.unwrap_or(MOST_TURNS).min(MOST_TURNS),
            announce_to,
            step: ExchangeStep::Primary,
            first: None,
            latest: None,
        }
    }

    /// Waits for the end of a run, so long.
    async fn wait(
        &self,
        run_id: &RunId,
        to: &SessionKey,
        seconds: u64,
        cancel: &CancellationToken,
    ) -> Result<AnswerWait, HostError> {
        let end = async {
            let ended = end_of(self.family(), run_id).await?;
            ended.map(AnswerWait::Ended).ok_or(HostError::Aborted)
        };
        let patience = Duration::from_secs(seconds.min(LONGEST_WAIT));
        let waiting = async {
            tokio::select! { biased;
                () = cancel.cancelled() => Err(HostError::Aborted),
                ended = end => ended,
                () = tokio::time::sleep(patience) => Ok(AnswerWait::TimedOut(IN_PROGRESS)),
            }
        };
        let Some(place) = self.place else { return waiting.await };
        let Some(_wait) = self.parts.waits.begin(&self.viewer.key, to) else {
            return Ok(AnswerWait::TimedOut(CIRCLE));
        };
        place.prepared(&*self.family().journal, &self.turn.run_id).await;
        place.lend(&self.family().lanes, cancel, waiting).await
    }
}

/// Waits for the end of a run. `None`: the gateway goes down, and the run goes on after the
/// next start.
async fn end_of(parts: &SessionToolParts, run_id: &RunId) -> Result<Option<RunRecord>, HostError> {
    if let Some(mut end) = parts.registry.end_of(run_id) {
        return Ok(end.wait_for(Option::is_some).await.ok().and_then(|record| record.clone()));
    }
    match parts.journal.message(run_id).await {
        Ok(Some(KnownRun::Finished(record))) => Ok(Some(record)),
        Ok(Some(KnownRun::Unfinished { .. }) | None) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}
