//! Single heartbeat: from the question if it is worth making to the handling of its answer.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use openclaw_agent::{ReplyPayload, workspace_file};
use openclaw_channels::Address;
use openclaw_config::normalize_account_id;
use openclaw_config::settings::{BeatVisibility, Heartbeat};
use openclaw_dispatch::{
    Announcement, Beat, BeatAnswer, BeatChat, BeatMessage, DispatchError, RunOutcome, Settings,
    UnfinishedBeat,
};
use openclaw_protocol::params::heartbeat::{HeartbeatEvent, HeartbeatStatus};
use openclaw_protocol::{AgentId, Payload, RunId};
use openclaw_sessions::store::{Edit, spelled};
use openclaw_sessions::{SessionEntry, SessionKey};
use uuid::Uuid;

use super::reason::HeartbeatReason;
use super::schedule::BeatOutcome;
use super::target::{self, HeartbeatTarget};
use super::verdict::{self, Circumstances, HeartbeatVerdict, Sending};
use super::{BeatParts, active_hours, checklist};
use crate::clock::now_ms;
use crate::events::GatewayEvent;

/// The checklist of a workspace.
const FILE: &str = "HEARTBEAT.md";
/// A checklist is read so far to see whether it has anything on it.
const MOST_OF_FILE: u64 = 1024 * 1024;

/// Beat of one agent, with the settings it is made under.
struct Making<'a> {
    parts: &'a BeatParts,
    settings: Arc<Settings>,
    heartbeat: Heartbeat,
    agent: &'a AgentId,
    key: SessionKey,
    reason: String,
    began_at: i64,
}

/// Makes a beat if it is worth one.
pub(super) async fn make(parts: &BeatParts, agent: &AgentId, reason: &HeartbeatReason) -> BeatOutcome {
    let settings = parts.settings.get();
    // What waits to be told is told in the next turn.
    if settings.config.heartbeat(agent).every_ms.is_none() {
        return BeatOutcome::Disabled;
    }
    let heartbeat = settings.config.heartbeat_of(agent);
    let key = spelled(&*parts.sessions, session(parts, agent, heartbeat.session.as_deref())).await;
    let making =
        Making { parts, settings, heartbeat, agent, key, reason: reason.to_string(), began_at: now_ms() };
    match making.obstacle(reason).await {
        Some(Obstacle::InFlight) => BeatOutcome::InFlight,
        Some(Obstacle::Skipped(why)) => {
            making.skipped(why).await;
            BeatOutcome::Counts
        }
        None => {
            making.run(reason).await;
            BeatOutcome::Counts
        }
    }
}

/// Waits for the end of a beat that an earlier process began, and finishes it.
pub(super) async fn take_up(parts: &BeatParts, unfinished: &UnfinishedBeat) {
    let settings = parts.settings.get();
    let UnfinishedBeat { run_id, agent_id: agent, session_key, accepted_at, beat } = unfinished;
    let making = Making {
        parts,
        heartbeat: settings.config.heartbeat_of(agent),
        settings,
        agent,
        key: session_key.clone(),
        reason: beat.reason.clone(),
        began_at: *accepted_at,
    };
    making.conclude(run_id).await;
}

/// Reason why a beat is not made now.
enum Obstacle {
    /// The session is at work.
    InFlight,
    /// The beat is not worth making; the text is the reason in its event.
    Skipped(&'static str),
}

/// The session a beat looks after: the configured one of the same agent, else the agent's main session.
fn session(parts: &BeatParts, agent: &AgentId, asked: Option<&str>) -> SessionKey {
    let rules = parts.sessions.rules();
    let main = rules.main(agent);
    let asked =
        asked.map(str::trim).filter(|text| !text.is_empty()).map(|text| rules.canonical_for(text, agent));
    match asked {
        Some(Ok(key)) if key.agent().is_some_and(|owner| owner == *agent) => key,
        Some(_) | None => main,
    }
}

impl Making<'_> {
    /// Checks for obstacles in the order of spec §11.2.
    async fn obstacle(&self, reason: &HeartbeatReason) -> Option<Obstacle> {
        let now = Timestamp::from_millisecond(self.began_at).unwrap_or_default();
        let zone = self.settings.config.agents.defaults.user_timezone.as_deref();
        if !reason.is_pressing() && !active_hours::are_now(self.heartbeat.active_hours.as_ref(), now, zone) {
            return Some(Obstacle::Skipped("quiet-hours"));
        }
        if !self.parts.dispatch.active_runs(&self.key).is_empty() {
            return Some(Obstacle::InFlight);
        }
        let is_wanted = reason.is_pressing() || self.parts.system_events.want_beat(&self.key);
        if !is_wanted && self.has_nothing_to_do().await {
            return Some(Obstacle::Skipped("empty-heartbeat-file"));
        }
        None
    }

    /// True if there is a checklist with nothing on it. A checklist that can't be read is left to
    /// the agent.
    async fn has_nothing_to_do(&self) -> bool {
        let workspace = self.settings.config.agent(self.agent).workspace;
        let read = tokio::task::spawn_blocking(move || read_checklist(&workspace));
        read.await.ok().flatten().is_some_and(|text| checklist::is_empty(&text))
    }

    async fn run(&self, reason: &HeartbeatReason) {
        let entry = self.entry().await;
        let target = self.target(entry.as_deref());
        let shown = self.shown(&target);
        if shown.is_nothing() {
            return self.skipped("alerts-disabled").await;
        }
        let waiting = self.parts.system_events.peek(&self.key);
        let (text, purpose) = reason.question(&waiting, self.heartbeat.prompt_text());
        let run_id = RunId::new(Uuid::new_v4().to_string());
        let beat = Beat {
            reason: self.reason.clone(),
            purpose,
            model: self
                .heartbeat
                .model
                .as_deref()
                .map(str::trim)
                .filter(|m| !m.is_empty())
                .map(str::to_owned),
            ack_max_chars: self.heartbeat.ack_limit(),
            chat: chat(shown),
        };
        let message = BeatMessage {
            run_id: run_id.clone(),
            agent_id: self.agent.clone(),
            session_key: self.key.clone(),
            text: text.to_owned(),
            beat,
        };
        match self.parts.dispatch.beat(message).await.outcome().await {
            // No caller waits for an acknowledgement.
            Ok(receipt) => drop(receipt),
            Err(DispatchError::ShuttingDown) => return,
            Err(DispatchError::SendBlocked) => return self.skipped("send-policy").await,
            Err(error) => return self.failed(&error.to_string()).await,
        }
        self.conclude(&run_id).await;
    }

    /// Acts on the end of the beat's run.
    async fn conclude(&self, run_id: &RunId) {
        // Without a record the gateway stops: the next start takes it up again.
        let Some(record) = self.parts.dispatch.ended(run_id).await else { return };
        let Some(answer) = BeatAnswer::of(&record.outcome) else {
            return self.failed(record.outcome.failure().unwrap_or("the run was stopped")).await;
        };
        let entry = self.entry().await;
        let target = self.target(entry.as_deref());
        let last_sent = entry.as_deref().and_then(|entry| {
            Some((entry.last_heartbeat_text.as_deref()?, entry.last_heartbeat_sent_at.unwrap_or_default()))
        });
        let given = Circumstances { last_sent, ..self.circumstances(&target) };
        let HeartbeatVerdict { event, send } = verdict::of(&answer, &given);
        if let (Some(sending), HeartbeatTarget::Chat(address)) = (&send, &target) {
            // Stored before it is noted: a crash in between sends nothing twice, since the run has the same id.
            let announcement = announcement(run_id, &self.key, address, sending, record.outcome.clone());
            if let Err(error) = self.parts.dispatch.announce(announcement).await {
                return self.failed(&error.to_string()).await;
            }
            if sending.is_alert
                && let Some(text) = sending.texts.last()
            {
                self.remember(text.clone(), event.ts).await;
            }
        }
        self.tell(event);
    }

    /// Address for the answer, by the platform's own id.
    fn target(&self, entry: Option<&SessionEntry>) -> HeartbeatTarget {
        let target = target::resolve(&self.heartbeat, &self.settings.config.channels, entry);
        let HeartbeatTarget::Chat(address) = &target else { return target };
        let Some(channel) = self.parts.platforms.channel(&address.channel) else { return target };
        match channel.target(&address.target) {
            Ok(read) => HeartbeatTarget::Chat(Address {
                account: normalize_account_id(&address.account),
                target: read.id,
                thread: address.thread.clone().or(read.thread),
                channel: address.channel.clone(),
            }),
            Err(_) => HeartbeatTarget::Nobody("invalid-target"),
        }
    }

    /// Reason why nothing can be sent to an address now. A channel that is only not connected takes
    /// it from the outbox when it is.
    fn not_ready(&self, address: &Address) -> Option<&'static str> {
        let platforms = &self.parts.platforms;
        if platforms.channel(&address.channel).is_none() {
            return Some("channel-not-available");
        }
        let account = platforms.account(&self.settings.config, &address.channel, &address.account);
        account.is_none().then_some("channel-not-configured")
    }

    fn shown(&self, target: &HeartbeatTarget) -> BeatVisibility {
        self.settings.config.channels.beat_visibility(target.channel(), target.account())
    }

    fn circumstances<'a>(&'a self, target: &'a HeartbeatTarget) -> Circumstances<'a> {
        Circumstances {
            now: now_ms(),
            began_at: self.began_at,
            reason: &self.reason,
            agent: self.agent.as_str(),
            shown: self.shown(target),
            target,
            not_ready: match target {
                HeartbeatTarget::Chat(address) => self.not_ready(address),
                HeartbeatTarget::Nobody(_) => None,
            },
            last_sent: None,
            with_reasoning: self.heartbeat.include_reasoning.unwrap_or(false),
        }
    }

    async fn skipped(&self, why: &str) {
        tracing::debug!(agent = %self.agent, reason = %self.reason, why, "heartbeat skipped");
        let target = self.target(self.entry().await.as_deref());
        self.tell(verdict::without_answer(HeartbeatStatus::Skipped, why, &self.circumstances(&target)));
    }

    async fn failed(&self, why: &str) {
        tracing::warn!(agent = %self.agent, reason = %self.reason, why, "heartbeat failed");
        let target = self.target(self.entry().await.as_deref());
        self.tell(verdict::without_answer(HeartbeatStatus::Failed, why, &self.circumstances(&target)));
    }

    fn tell(&self, event: HeartbeatEvent) {
        tracing::info!(agent = %self.agent, status = event.status.as_str(), reason = %self.reason, "heartbeat");
        if let Ok(payload) = Payload::of(&event) {
            self.parts.events.publish(GatewayEvent::named("heartbeat", payload));
        }
        self.parts.heartbeats.note(event);
    }

    /// The session's row. A row that can't be read counts as missing: its other uses show the
    /// fault.
    async fn entry(&self) -> Option<Arc<SessionEntry>> {
        match self.parts.sessions.get(&self.key).await {
            Ok(row) => row.map(|row| row.entry),
            Err(error) => {
                tracing::warn!(session = %self.key, %error, "the row of a heartbeat's session can't be read");
                None
            }
        }
    }

    /// Notes an alert that is sent: that is a use of the session.
    async fn remember(&self, text: String, at: i64) {
        let change = Box::new(move |Edit { entry, now, .. }: Edit<'_>| {
            entry.last_heartbeat_text = Some(text.into());
            entry.last_heartbeat_sent_at = Some(at);
            entry.touch(now);
            Ok(())
        });
        if let Err(error) = self.parts.sessions.update(&self.key, change).await {
            tracing::warn!(session = %self.key, %error, "an alert may be sent again: it could not be noted");
        }
    }
}

/// Messages of a beat that clients see in the chat.
fn chat(shown: BeatVisibility) -> BeatChat {
    match (shown.show_ok, shown.show_alerts) {
        (true, _) => BeatChat::All,
        (false, true) => BeatChat::Alerts,
        (false, false) => BeatChat::Nothing,
    }
}

/// Message parts to send: the media goes with the last text.
fn announcement(
    run_id: &RunId,
    key: &SessionKey,
    address: &Address,
    sending: &Sending,
    outcome: RunOutcome,
) -> Announcement {
    let last = sending.texts.len().saturating_sub(1);
    let payload = |(at, text): (usize, &String)| ReplyPayload {
        text: text.clone(),
        media_urls: if at == last { sending.media_urls.clone() } else { Vec::new() },
        ..ReplyPayload::default()
    };
    Announcement {
        run_id: run_id.clone(),
        session_key: key.clone(),
        address: address.clone(),
        payloads: sending.texts.iter().enumerate().map(payload).collect(),
        is_acknowledgement: !sending.is_alert,
        outcome,
    }
}

fn read_checklist(workspace: &Path) -> Option<String> {
    let head = workspace_file::read(workspace, FILE, MOST_OF_FILE).ok().flatten()?;
    Some(String::from_utf8_lossy(&head.bytes).into_owned())
}
