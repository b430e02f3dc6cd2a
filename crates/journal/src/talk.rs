//! Talk between two sessions (spec `sessions.md` §8.3): one has sent a message to the other, and
//! after its answer they reply to each other in turn until one has enough; then the second one may
//! say something to its channel. Each step is a run of its own, whose request carries the talk so
//! far, so that it survives the process as the request does. Pure.

use openclaw_agent::text::silent::{REPLY_SKIP_TOKEN, is_silent};
use openclaw_protocol::message::{Provenance, ProvenanceKind};
use openclaw_protocol::{RunId, SessionKey};

use crate::exchange::{Exchange, ExchangeStep, Party};
use crate::request::RunRequest;
use crate::source::{RequestSource, TalkSource};

/// Global lane of messages between sessions.
pub const LANE: &str = "nested";
/// The tool that begins a talk.
pub const TOOL: &str = "sessions_send";
/// Reply of an agent that is not announced.
const ANNOUNCE_SKIP: &str = "ANNOUNCE_SKIP";
/// Prompt of the last step.
const ANNOUNCE: &str = "Agent-to-agent announce step.";
/// Duration in milliseconds above which a turn is the last (spec §8.3).
const SLOW_MS: i64 = 60_000;

/// End of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEnd<'a> {
    /// Ended with this reply.
    Replied {
        /// Text of the reply.
        text: &'a str,
        /// Duration of its run.
        took_ms: i64,
    },
    /// Ended without a reply, or failed.
    Silent,
    /// The run was stopped.
    Stopped,
}

impl Exchange {
    /// The first step.
    pub fn begin(self) -> RunRequest {
        let context = self.message_context();
        let from = self.requester.clone();
        let text = self.asked.clone();
        self.request(ExchangeStep::Primary, &from, text, context)
    }

    /// Returns the step that follows, with the id of its run and its session; `None` if the talk is
    /// over.
    pub fn next(mut self, end: StepEnd<'_>) -> Option<(RunId, SessionKey, RunRequest)> {
        let reply = match end {
            StepEnd::Stopped => return None,
            StepEnd::Replied { text, took_ms } => {
                Some((text.trim(), took_ms)).filter(|(text, _)| !text.is_empty() && !is_silent(text))
            }
            StepEnd::Silent => None,
        };
        let step = match (self.step, reply) {
            (ExchangeStep::Announce, _) | (ExchangeStep::Primary, None) => return None,
            (ExchangeStep::Primary, Some((text, _))) => {
                self.first = Some(text.to_owned());
                self.latest = self.first.clone();
                let talks = self.requester.key != self.target.key && self.max_turns > 0;
                if talks { ExchangeStep::Turn(1) } else { ExchangeStep::Announce }
            }
            (ExchangeStep::Turn(_), None) => ExchangeStep::Announce,
            (ExchangeStep::Turn(n), Some((text, took_ms))) => {
                self.latest = Some(text.to_owned());
                if n < self.max_turns && took_ms <= SLOW_MS {
                    ExchangeStep::Turn(n + 1)
                } else {
                    ExchangeStep::Announce
                }
            }
        };
        Some(self.step_to(step))
    }

    fn step_to(self, step: ExchangeStep) -> (RunId, SessionKey, RunRequest) {
        let (to, from) = match step {
            ExchangeStep::Turn(n) if n % 2 == 1 => (self.requester.clone(), self.target.clone()),
            ExchangeStep::Primary | ExchangeStep::Turn(_) | ExchangeStep::Announce => {
                (self.target.clone(), self.requester.clone())
            }
        };
        let (name, text, context) = match step {
            ExchangeStep::Turn(n) => {
                (format!("turn-{n}"), self.latest.clone().unwrap_or_default(), self.reply_context(n))
            }
            ExchangeStep::Primary | ExchangeStep::Announce => {
                ("announce".to_owned(), ANNOUNCE.to_owned(), self.announce_context())
            }
        };
        let run_id = RunId::new(format!("{}:{name}", self.id));
        (run_id, to.key, self.request(step, &from, text, context))
    }

    fn request(self, step: ExchangeStep, from: &Party, text: String, context: String) -> RunRequest {
        let to = match step {
            ExchangeStep::Turn(n) if n % 2 == 1 => &self.requester,
            ExchangeStep::Primary | ExchangeStep::Turn(_) | ExchangeStep::Announce => &self.target,
        };
        RunRequest {
            text,
            agent_id: Some(to.agent.clone()),
            lane: Some(LANE.to_owned()),
            extra_system_prompt: Some(context),
            source: RequestSource::Talk(Box::new(TalkSource {
                deliver_to: self.announce_to.clone().filter(|_| step == ExchangeStep::Announce),
                provenance: Some(Provenance {
                    kind: ProvenanceKind::InterSession,
                    source_session_key: Some(from.key.shown().to_owned()),
                    source_channel: from.channel.clone(),
                    source_tool: Some(TOOL.to_owned()),
                }),
                exchange: Self { step, ..self },
            })),
            ..RunRequest::default()
        }
    }

    fn requester_lines(&self) -> Vec<String> {
        let mut lines = vec![format!("Agent 1 (requester) session: {}.", self.requester.key.shown())];
        if let Some(channel) = &self.requester.channel {
            lines.push(format!("Agent 1 (requester) channel: {channel}."));
        }
        lines.push(format!("Agent 2 (target) session: {}.", self.target_shown));
        lines
    }

    fn both_lines(&self) -> Vec<String> {
        let mut lines = self.requester_lines();
        let channel = self.target.channel.as_deref().unwrap_or("unknown");
        lines.push(format!("Agent 2 (target) channel: {channel}."));
        lines
    }

    fn message_context(&self) -> String {
        let mut lines = vec!["Agent-to-agent message context:".to_owned()];
        lines.extend(self.requester_lines());
        lines.join("\n")
    }

    fn reply_context(&self, turn: u8) -> String {
        let current = if turn % 2 == 1 { "Agent 1 (requester)" } else { "Agent 2 (target)" };
        let mut lines = vec![
            "Agent-to-agent reply step:".to_owned(),
            format!("Current agent: {current}."),
            format!("Turn {turn} of {}.", self.max_turns),
        ];
        lines.extend(self.both_lines());
        lines.push(format!("If you want to stop the ping-pong, reply exactly \"{REPLY_SKIP_TOKEN}\"."));
        lines.join("\n")
    }

    fn announce_context(&self) -> String {
        let said = |name: &str, text: &Option<String>| match text {
            Some(text) => format!("{name}: {text}"),
            None => format!("{name}: (not available)."),
        };
        let mut lines = vec!["Agent-to-agent announce step:".to_owned()];
        lines.extend(self.both_lines());
        lines.extend([
            format!("Original request: {}", self.asked),
            said("Round 1 reply", &self.first),
            said("Latest reply", &self.latest),
            format!("If you want to remain silent, reply exactly \"{ANNOUNCE_SKIP}\"."),
            "Any other reply will be posted to the target channel.".to_owned(),
            "After this reply, the agent-to-agent conversation is over.".to_owned(),
        ]);
        lines.join("\n")
    }
}

/// True if a last word is not to be announced.
pub fn is_unannounced(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text == ANNOUNCE_SKIP
}

#[cfg(test)]
mod tests {
    use openclaw_channels::Address;
    use openclaw_protocol::AgentId;

    use super::*;

    fn party(name: &str, channel: Option<&str>) -> Party {
        Party {
            key: SessionKey::parse(&format!("agent:{name}:main")).unwrap(),
            agent: AgentId::normalize(name),
            channel: channel.map(str::to_owned),
        }
    }

    fn talk(max_turns: u8) -> Exchange {
        Exchange {
            id: RunId::new("r"),
            requester: party("main", Some("webchat")),
            target: party("work", Some("telegram")),
            target_shown: "agent:work:main".to_owned(),
            asked: "How is it going?".to_owned(),
            max_turns,
            announce_to: Some(Address {
                channel: "telegram".to_owned(),
                account: "default".to_owned(),
                target: "5".to_owned(),
                thread: None,
            }),
            step: ExchangeStep::Primary,
            first: None,
            latest: None,
        }
    }

    fn said(text: &str) -> StepEnd<'_> {
        StepEnd::Replied { text, took_ms: 5 }
    }

    /// Returns the runs of a talk, given the end of each.
    fn runs(max_turns: u8, ends: &[StepEnd<'_>]) -> Vec<String> {
        let mut request = talk(max_turns).begin();
        let mut told = vec![format!("r {} {}", "agent:work:main", request.text)];
        for end in ends {
            let Some((id, key, next)) = request.source.exchange().and_then(|talk| talk.clone().next(*end))
            else {
                told.push("over".to_owned());
                break;
            };
            told.push(format!("{id} {key} {}", next.text));
            request = next;
        }
        told
    }

    #[test]
    fn five_turns_are_seven_runs() {
        let ends = ["a", "b", "c", "d", "e", "f", "g"].map(said);
        let expect = [
            "r agent:work:main How is it going?",
            "r:turn-1 agent:main:main a",
            "r:turn-2 agent:work:main b",
            "r:turn-3 agent:main:main c",
            "r:turn-4 agent:work:main d",
            "r:turn-5 agent:main:main e",
            "r:announce agent:work:main Agent-to-agent announce step.",
            "over",
        ];
        assert_eq!(runs(5, &ends), expect);
    }

    #[test]
    fn a_talk_ends_when_somebody_has_enough() {
        let announce = "r:announce agent:work:main Agent-to-agent announce step.".to_owned();
        let turn = |n: u8, key: &str, text: &str| format!("r:turn-{n} agent:{key}:main {text}");
        let skip = ["REPLY_SKIP", " REPLY_SKIP\n", "\tREPLY_SKIP", "\"REPLY_SKIP\"", "`REPLY_SKIP`."];
        for text in skip {
            assert_eq!(runs(5, &[said("a"), said(text)])[1..], [turn(1, "main", "a"), announce.clone()]);
        }
        for text in ["I say REPLY_SKIP.", "reply_skip", "REPLY_SKIP REPLY_SKIP"] {
            let expect = [turn(1, "main", "a"), turn(2, "work", text)];
            assert_eq!(runs(5, &[said("a"), said(text)])[1..], expect, "{text}");
        }
        let ends: [(StepEnd<'_>, &str); 4] = [
            (StepEnd::Silent, &announce),
            (said("  "), &announce),
            (StepEnd::Stopped, "over"),
            (StepEnd::Replied { text: "b", took_ms: 60_001 }, &announce),
        ];
        for (end, expect) in ends {
            assert_eq!(runs(5, &[said("a"), end])[2], expect, "{end:?}");
        }
        for end in [StepEnd::Silent, said(" "), StepEnd::Stopped] {
            assert_eq!(runs(5, &[end])[1], "over", "without an answer nothing follows: {end:?}");
        }
        assert_eq!(runs(0, &[said("a")])[1], announce);
        assert_eq!(runs(1, &[said("a"), said("b")])[2], announce);
    }

    #[test]
    fn a_session_does_not_talk_to_itself() {
        let alone = Exchange { target: party("main", None), ..talk(5) };
        let (id, key, _) = alone.begin().source.exchange().unwrap().clone().next(said("a")).unwrap();
        assert_eq!((id.as_str(), key.as_str()), ("r:announce", "agent:main:main"));
    }

    #[test]
    fn each_step_tells_what_it_is() {
        let first = talk(2).begin();
        assert_eq!(
            first.extra_system_prompt.as_deref().unwrap(),
            "Agent-to-agent message context:\n\
             Agent 1 (requester) session: agent:main:main.\n\
             Agent 1 (requester) channel: webchat.\n\
             Agent 2 (target) session: agent:work:main."
        );
        assert_eq!((first.lane.as_deref(), first.source.deliver_to()), (Some("nested"), None));
        let from =
            |request: &RunRequest| request.source.provenance().cloned().unwrap().source_session_key.unwrap();
        assert_eq!(from(&first), "agent:main:main");

        let (_, _, turn) = first.source.exchange().unwrap().clone().next(said("fine")).unwrap();
        assert_eq!(
            turn.extra_system_prompt.as_deref().unwrap(),
            "Agent-to-agent reply step:\n\
             Current agent: Agent 1 (requester).\n\
             Turn 1 of 2.\n\
             Agent 1 (requester) session: agent:main:main.\n\
             Agent 1 (requester) channel: webchat.\n\
             Agent 2 (target) session: agent:work:main.\n\
             Agent 2 (target) channel: telegram.\n\
             If you want to stop the ping-pong, reply exactly \"REPLY_SKIP\"."
        );
        assert_eq!(from(&turn), "agent:work:main");
        assert_eq!(turn.agent_id, Some(AgentId::normalize("main")));

        let (_, _, announce) = turn.source.exchange().unwrap().clone().next(said("REPLY_SKIP")).unwrap();
        assert_eq!(
            announce.extra_system_prompt.as_deref().unwrap(),
            "Agent-to-agent announce step:\n\
             Agent 1 (requester) session: agent:main:main.\n\
             Agent 1 (requester) channel: webchat.\n\
             Agent 2 (target) session: agent:work:main.\n\
             Agent 2 (target) channel: telegram.\n\
             Original request: How is it going?\n\
             Round 1 reply: fine\n\
             Latest reply: fine\n\
             If you want to remain silent, reply exactly \"ANNOUNCE_SKIP\".\n\
             Any other reply will be posted to the target channel.\n\
             After this reply, the agent-to-agent conversation is over."
        );
        assert_eq!(announce.source.deliver_to().unwrap().target, "5");
    }

    #[test]
    fn only_the_word_alone_is_silence() {
        for text in ["ANNOUNCE_SKIP", "\n ANNOUNCE_SKIP ", "", "  "] {
            assert!(is_unannounced(text), "{text:?}");
        }
        for text in ["\"ANNOUNCE_SKIP\"", "ANNOUNCE_SKIP!", "I say ANNOUNCE_SKIP", "done"] {
            assert!(!is_unannounced(text), "{text:?}");
        }
    }
}
