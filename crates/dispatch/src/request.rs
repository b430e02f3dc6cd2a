//! A message that was accepted, with everything that is decided about it: the inbox stores it, and no later stage decides any of
//! it again. Settings that change in between do not change a message that was accepted.

use std::time::Duration;

use openclaw_agent::skills::SkillCommand;
use openclaw_channels::Address;
use openclaw_config::settings::QueueMode;
use openclaw_models::reference::ModelNames;
use openclaw_protocol::message::{Block, Provenance};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::reset;
use openclaw_sessions::reset::authority::Authority;
use openclaw_sessions::reset::trigger::strip_structural_prefixes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{AgentMessage, ChatMessage, Occasion};
use crate::arrivals::Arrivals;
use crate::beat::{Beat, BeatMessage};
use crate::commands::{self, Intent, Names, Spoken, TextCommands};
use crate::lineage::Lineage;
use crate::origin::Origin;
use crate::queue::QueueSettings;
use crate::session_tools::exchange::Exchange;
use crate::setup::Settings;
use crate::subagents::ChildRun;

/// The channel of messages over the gateway's own protocol.
pub(crate) const WEBCHAT: &str = "webchat";
/// Longest wall time of a run, in seconds: what timers of OpenClaw 2026.2.9 can hold, which is 24.8 days.
const LONGEST_RUN: u64 = 2_147_000;
/// The global lane of whatever names none.
pub(crate) const MAIN_LANE: &str = "main";

/// The method that brought a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    /// `chat.send`: a person at a client.
    #[default]
    Chat,
    /// `agent`: a program.
    Agent,
}

impl Kind {
    /// The `kind` column of the inbox.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Agent => "agent",
        }
    }
}

/// What was asked, as it came, and what was decided about it. Stored as JSON in a column of the inbox: fields may be added, none
/// changes its meaning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<Block>,
    /// Thinking level for this message alone, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<String>,
    /// A chat's deadline, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    /// What the person's client calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender: Option<String>,
    /// Whether that client may decide on commands that wait for approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) may_approve: bool,
    /// Whether that client may change the gateway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) may_administer: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_session_key: Option<SessionKey>,
    /// The agent that answers, where the session's key does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<AgentId>,
    /// The transcript to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    /// A run's time limit, as it was sent; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
    /// The global lane, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra_system_prompt: Option<String>,
    pub(crate) occasion: Occasion,
    /// Of a heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beat: Option<Beat>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) entry_patch: Map<String, Value>,
    /// Whether the gateway itself asks for memory to be saved. Never stored.
    #[serde(skip)]
    pub(crate) is_memory_flush: bool,
    /// What the agent reads where it is run together with others that waited. Never stored: it is made of their requests.
    #[serde(skip)]
    pub(crate) gathered: Option<String>,
    /// The pictures that those name by their paths. Never stored either.
    #[serde(skip)]
    pub(crate) gathered_pictures: Vec<String>,
    /// The events of chat platforms it is made of. Not stored here: what became of them is.
    #[serde(skip)]
    pub(crate) arrivals: Arrivals,
    /// Where it was said, if on a chat platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Box<Origin>>,
    /// Where its answer is sent, if a program asked for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deliver_to: Option<Address>,
    /// Who says it, if that is no person: another session, or the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Provenance>,
    /// What it follows from that no person said.
    #[serde(skip_serializing_if = "Lineage::is_new")]
    pub(crate) lineage: Lineage,
    /// The talk between two sessions that it is a step of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exchange: Option<Box<Exchange>>,
    /// Of the run of a sub-agent: who started it. Its task is the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spawned: Option<Box<ChildRun>>,
    /// Of what a session is told of a sub-agent that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) announces: Option<Announces>,
    /// Absent in what an older version accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<Decisions>,
}

/// How a session is told of a sub-agent that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Announces {
    /// The text is posted as it is.
    Words,
    /// The agent tells it in words of its own.
    Summary,
}

/// What is decided when a message is accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decisions {
    /// What follows a reset trigger, where the message begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reset: Option<String>,
    /// What the message is to the gateway.
    #[serde(default, skip_serializing_if = "Intent::is_prompt")]
    pub(crate) intent: Intent,
    /// How it waits during another run of its session.
    #[serde(default, alias = "queueMode")]
    pub(crate) queue: QueueSettings,
    /// Wall time of its run in seconds; absent is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_limit: Option<u64>,
}

impl Request {
    /// The same, decided.
    pub(crate) fn decide(
        self,
        own: Option<&SessionEntry>,
        settings: &Settings,
        skills: &[SkillCommand],
    ) -> Self {
        let reset = self.reset(settings);
        let intent = self.intent(reset.as_deref(), settings, skills);
        let queue = self.queue(reset.is_some(), &intent, own, settings);
        let decided = Decisions { reset, intent, queue, time_limit: self.time_limit(settings) };
        Self { decided: Some(decided), ..self }
    }

    /// What follows `/new` or `/reset`. An `agent` request has none.
    fn reset(&self, settings: &Settings) -> Option<String> {
        if self.kind == Kind::Agent || self.is_forwarded() {
            return None;
        }
        let triggers = settings.sessions.section.triggers();
        // A trigger need not be written as a command.
        let text = self.unnamed().unwrap_or(&self.text);
        let stripped = strip_structural_prefixes(text);
        let found = reset::find_trigger(&triggers, text, &stripped, self.authority());
        found.map(|found| found.rest)
    }

    /// Whether the commands of skills have to be known to decide about it. What follows `/new` may call one too.
    pub(crate) fn may_call_skill(&self, settings: &Settings) -> bool {
        let behind_reset = self.reset(settings);
        let text = behind_reset.as_deref().unwrap_or_else(|| self.command_text());
        self.is_chat() && !self.is_forwarded() && commands::skill::may_be_one(text)
    }

    fn intent(&self, behind_reset: Option<&str>, settings: &Settings, skills: &[SkillCommand]) -> Intent {
        if self.announces == Some(Announces::Words) {
            return Intent::Announcement;
        }
        if self.kind == Kind::Agent || self.is_forwarded() || !self.text.contains(['/', '!']) {
            return Intent::Prompt;
        }
        let spoken = Spoken {
            text: behind_reset.unwrap_or_else(|| self.command_text()),
            attached: !self.images.is_empty(),
            by: self.authority(),
            is_addressed: self.origin.as_ref().is_none_or(|origin| origin.is_direct() || origin.is_named),
            commands: TextCommands::on(self.channel(), settings.config.commands.text),
        };
        let models = ModelNames::new(&settings.models.listed);
        let triggers = settings.sessions.section.triggers();
        commands::read(spoken, Names { models: &models, triggers: &triggers, skills })
    }

    fn queue(
        &self,
        resets: bool,
        intent: &Intent,
        own: Option<&SessionEntry>,
        settings: &Settings,
    ) -> QueueSettings {
        if self.kind == Kind::Agent && !self.is_announcement() {
            return QueueSettings::with(QueueMode::Followup);
        }
        let wish = intent.hints().and_then(|hints| hints.queue).unwrap_or_default();
        let wished = QueueSettings::of(wish, own, &settings.config.messages.queue, self.channel());
        let mode = match wished.mode {
            // Whoever starts anew does not wait for what they leave behind (spec `queue.md` §3).
            _ if resets => QueueMode::Interrupt,
            // Nobody waits for it so much that something else has to end.
            QueueMode::Interrupt if self.is_announcement() => QueueMode::Followup,
            // It is told once.
            QueueMode::SteerBacklog if self.is_announcement() => QueueMode::Steer,
            // Another model needs a run of its own.
            QueueMode::Steer | QueueMode::SteerBacklog if intent.is_for_one_run() => QueueMode::Followup,
            mode => mode,
        };
        QueueSettings { mode, ..wished }
    }

    /// What the request says wins, and 0 is none (spec `agent-runtime.md` §2.5).
    fn time_limit(&self, settings: &Settings) -> Option<u64> {
        let configured = settings.config.agents.defaults.run_timeout().as_secs();
        match self.timeout_seconds {
            Some(0) => None,
            Some(seconds) => Some(seconds.min(LONGEST_RUN)),
            None => Some(configured.min(LONGEST_RUN)),
        }
    }

    /// Whether its sender may give commands: whoever reaches the gateway's own protocol may.
    pub(crate) fn authority(&self) -> Authority {
        self.origin.as_ref().map_or(Authority::Granted, |origin| origin.authority())
    }

    /// Whether the owner says it. What the gateway asks by itself, such as a heartbeat, has nobody's rights: anybody may have been the cause.
    pub(crate) fn is_owners(&self) -> bool {
        self.origin.as_ref().map_or(self.may_administer, |origin| origin.is_owner)
    }

    /// Whether a person says it, at a client or on a chat platform.
    pub(crate) fn is_persons(&self) -> bool {
        self.origin.is_some() || self.is_chat()
    }

    /// Whether its sender may say how commands are guarded. On chat platforms whoever may give commands may.
    pub(crate) fn may_set_guards(&self) -> bool {
        self.origin.is_some() || self.may_approve || self.may_administer
    }

    /// The conversation that its answer goes to, if that is one of a chat platform.
    pub(crate) fn conversation(&self) -> Option<&Address> {
        self.origin.as_ref().map(|origin| &origin.address).or(self.deliver_to.as_ref())
    }

    /// The channel it was said on, or that an announcement goes to.
    pub(crate) fn channel(&self) -> &str {
        let announced = self.deliver_to.as_ref().filter(|_| self.is_announcement());
        let address = self.origin.as_ref().map(|origin| &origin.address).or(announced);
        address.map_or(WEBCHAT, |address| &address.channel)
    }

    /// Who said it, as its surface knows them: the platform's id, or the name a client has.
    pub(crate) fn sender_id(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| origin.sender.id.as_str()).or(self.sender.as_deref())
    }

    /// Whether it tells an agent of a sub-agent that has ended: such messages wait like those of people.
    pub(crate) fn is_announcement(&self) -> bool {
        self.announces == Some(Announces::Summary)
    }

    /// The text as commands are read from it: without mentions where it is a command, else as it came.
    pub(crate) fn command_text(&self) -> &str {
        self.unnamed().filter(|text| text.starts_with(['/', '!'])).unwrap_or(&self.text)
    }

    /// The text without the names of who is spoken to.
    fn unnamed(&self) -> Option<&str> {
        let origin = self.origin.as_ref()?;
        Some(origin.command_text.trim()).filter(|text| !text.is_empty())
    }

    /// Whether its words are somebody else's, passed on.
    fn is_forwarded(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.is_forwarded)
    }

    /// Whether a person says it: a `chat.send`, or a message of a chat platform.
    pub(crate) fn is_chat(&self) -> bool {
        self.kind == Kind::Chat
    }

    /// What follows a reset trigger, where the message begins with one.
    pub(crate) fn behind_reset(&self) -> Option<&str> {
        self.decided.as_ref()?.reset.as_deref()
    }

    /// What the message is to the gateway.
    pub(crate) fn to_gateway(&self) -> &Intent {
        self.decided.as_ref().map_or(&Intent::Prompt, |decided| &decided.intent)
    }

    /// Whether it asks for a compaction.
    pub(crate) fn compacts(&self) -> bool {
        matches!(self.to_gateway(), Intent::Command { name, .. } if name == commands::compact::NAME)
    }

    /// What of the text is meant for the agent.
    pub(crate) fn words(&self) -> &str {
        self.gathered.as_deref().or_else(|| self.to_gateway().words()).unwrap_or(&self.text)
    }

    /// The paths of pictures in what was typed. What others write around it names none: what is answered, passed on or was said in
    /// the group meanwhile, files that came with it (which are shown already), and what the gateway or another session says.
    pub(crate) fn named_pictures(&self) -> Vec<String> {
        let is_typed = self.provenance.is_none() && self.beat.is_none() && !self.is_memory_flush;
        match self.gathered {
            Some(_) => self.gathered_pictures.clone(),
            None if is_typed && self.announces.is_none() => openclaw_tools::named_pictures(self.words()),
            None => Vec::new(),
        }
    }

    /// Wall time of the run; `None` is unlimited.
    pub(crate) fn run_time(&self) -> Option<Duration> {
        self.decided.as_ref()?.time_limit.map(Duration::from_secs)
    }

    /// Whether it shares nothing with the messages before it.
    pub(crate) fn is_isolated(&self) -> bool {
        self.occasion == Occasion::Isolated
    }

    /// Whether somebody says it, rather than the gateway by itself: that the session is used.
    pub(crate) fn is_interaction(&self) -> bool {
        match self.occasion {
            Occasion::Request | Occasion::Command => true,
            Occasion::Heartbeat | Occasion::Isolated => false,
        }
    }

    /// About how many bytes it has.
    pub(crate) fn weight(&self) -> usize {
        let words = [&self.thinking, &self.sender, &self.session_id, &self.lane, &self.extra_system_prompt];
        let words = words.into_iter().flatten().map(String::len);
        let patch = self.entry_patch.values().filter_map(Value::as_str).map(str::len);
        let framed = self.origin.iter().map(|origin| origin.weight());
        let talked = self.exchange.iter().map(|exchange| exchange.weight());
        self.text.len()
            + words
                .chain(framed)
                .chain(talked)
                .chain(patch)
                .chain(self.images.iter().map(image_bytes))
                .sum::<usize>()
    }
}

fn image_bytes(block: &Block) -> usize {
    match block {
        Block::Image(image) => image.data.len(),
        // Attachments are images.
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    }
}

impl From<ChatMessage> for Request {
    fn from(message: ChatMessage) -> Self {
        Self {
            kind: Kind::Chat,
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_ms: message.timeout_ms,
            sender: message.sender,
            may_approve: message.may_approve,
            may_administer: message.may_administer,
            parent_session_key: message.parent_session_key,
            ..Self::default()
        }
    }
}

impl From<AgentMessage> for Request {
    fn from(message: AgentMessage) -> Self {
        Self {
            kind: Kind::Agent,
            agent_id: Some(message.agent_id),
            session_id: message.session_id,
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_seconds: message.timeout_seconds,
            lane: message.lane,
            extra_system_prompt: message.extra_system_prompt,
            occasion: message.occasion,
            deliver_to: message.deliver_to,
            may_administer: message.may_administer,
            entry_patch: message.entry_patch,
            ..Self::default()
        }
    }
}

impl From<BeatMessage> for Request {
    fn from(message: BeatMessage) -> Self {
        Self {
            kind: Kind::Agent,
            agent_id: Some(message.agent_id),
            text: message.text,
            occasion: Occasion::Heartbeat,
            beat: Some(message.beat),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::Config;
    use serde_json::json;

    use super::*;

    /// Spec `agent-runtime.md` §2.5.
    #[test]
    fn a_run_has_the_time_it_asks_for_or_else_the_configured_one() {
        let rows = [
            (None, json!({}), Some(600)),
            (None, json!({"timeoutSeconds": 5}), Some(5)),
            (None, json!({"timeoutSeconds": 0}), Some(1)),
            (None, json!({"timeoutSeconds": 9_000_000}), Some(2_147_000)),
            (Some(0), json!({"timeoutSeconds": 5}), None),
            (Some(7), json!({"timeoutSeconds": 5}), Some(7)),
            (Some(u64::MAX), json!({}), Some(2_147_000)),
        ];
        for (asked, defaults, expected) in rows {
            let document = json!({"agents": {"defaults": defaults}});
            let config: Config = serde_json::from_value(document.clone()).unwrap();
            let settings = Settings { config: config.into(), ..Settings::default() };
            let request = Request { timeout_seconds: asked, ..Request::default() };
            let decided = request.decide(None, &settings, &[]);
            assert_eq!(decided.run_time().map(|time| time.as_secs()), expected, "{asked:?} {document}");
        }
    }
}
