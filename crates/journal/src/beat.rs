//! Heartbeats as messages: their settings, and the reading of their answers (spec
//! `agent-runtime.md` §11.3). The gateway decides when an agent beats and to whom the answer goes.

use openclaw_agent::Outcome;
use openclaw_agent::event::RunEnd;
use openclaw_agent::reply::ReplyPayload;
use openclaw_agent::text::heartbeat::{Answering, strip};
use openclaw_protocol::{AgentId, RunId, SessionKey};
use serde::{Deserialize, Serialize};

use crate::api::RunOutcome;

/// A heartbeat. Already decided to be made.
#[derive(Debug, Clone)]
pub struct BeatMessage {
    /// New for each beat.
    pub run_id: RunId,
    /// The agent that beats.
    pub agent_id: AgentId,
    /// The session it looks after.
    pub session_key: SessionKey,
    /// Prompt of the heartbeat.
    pub text: String,
    /// Settings by which the answer is read.
    pub beat: Beat,
}

/// Settings of a heartbeat, decided when it is made. Stored with it: fields may be added, none
/// changes its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Beat {
    /// Reason for the heartbeat, as the event says it.
    pub reason: String,
    /// Purpose of the answer.
    pub purpose: BeatPurpose,
    /// The model for this beat, as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Characters an acknowledgement may have beside the token.
    pub ack_max_chars: usize,
    /// Part of the heartbeat that clients see as a chat.
    pub chat: BeatChat,
}

/// Purpose of the answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BeatPurpose {
    /// The agent looks whether anything needs attention.
    Check,
    /// Tells the result of a command, also if the agent took the answer for an acknowledgement.
    RelayCommand,
    /// Tells of a reminder that is due.
    RelayReminder,
}

/// Part of a heartbeat that clients see as `chat` events; `agent` events are always sent (spec
/// `gateway-protocol.md` §7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BeatChat {
    /// All events, as with any run (`showOk`).
    All,
    /// The answer, if it needs attention.
    Alerts,
    /// No `chat` events.
    Nothing,
}

/// Result of a heartbeat, read from its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum BeatAnswer {
    /// The agent said nothing.
    Empty,
    /// The agent says that all is well.
    Acknowledged,
    /// The agent reports something that needs attention.
    Alert {
        /// Text without the token; may be empty beside media.
        text: String,
        /// Media references.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        media_urls: Vec<String>,
        /// Reasoning messages, as they were shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasoning: Vec<String>,
    },
}

impl BeatAnswer {
    /// Returns the answer of a run for a heartbeat. `None` for a run that did not end well, and for
    /// other runs.
    pub fn of(outcome: &RunOutcome) -> Option<Self> {
        match outcome {
            RunOutcome::Ok { result } => result.heartbeat(),
            RunOutcome::Error { .. } | RunOutcome::Aborted { .. } => None,
        }
    }

    /// Reads the answer of a run that has ended well.
    pub fn read(beat: &Beat, ended: &Outcome) -> Option<Self> {
        (ended.end == RunEnd::Completed).then(|| Self::judge(beat, &ended.payloads))
    }

    /// The last reply counts.
    fn judge(beat: &Beat, payloads: &[ReplyPayload]) -> Self {
        let says = |payload: &&ReplyPayload| !payload.text.trim().is_empty() || !media(payload).is_empty();
        let Some(reply) = payloads.iter().rev().find(says) else { return Self::Empty };
        let stripped = strip(&reply.text, Answering::Heartbeat { ack_max_chars: beat.ack_max_chars });
        let media_urls = media(reply);
        let text = match (stripped.shown, beat.purpose) {
            (Some(text), _) => text,
            (None, BeatPurpose::RelayCommand) if !stripped.rest.is_empty() => stripped.rest,
            (None, _) if media_urls.is_empty() => return Self::Acknowledged,
            (None, _) => String::new(),
        };
        let is_reasoning = |payload: &&ReplyPayload| payload.text.trim_start().starts_with("Reasoning:");
        let others = payloads.iter().filter(|payload| !std::ptr::eq(*payload, reply));
        let reasoning = others.filter(is_reasoning).map(|payload| payload.text.clone()).collect();
        Self::Alert { text, media_urls, reasoning }
    }

    /// True if the turn is not worth keeping.
    pub fn is_forgettable(&self) -> bool {
        match self {
            Self::Empty | Self::Acknowledged => true,
            Self::Alert { .. } => false,
        }
    }

    /// Puts the answer into a run's result.
    pub fn note(&self, outcome: &mut RunOutcome) {
        if let RunOutcome::Ok { result } = outcome {
            result.keep_heartbeat(self);
        }
    }
}

fn media(payload: &ReplyPayload) -> Vec<String> {
    match &payload.media_url {
        Some(url) if payload.media_urls.is_empty() => vec![url.clone()],
        Some(_) | None => payload.media_urls.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn beat(purpose: BeatPurpose) -> Beat {
        let (reason, chat) = ("interval".to_owned(), BeatChat::Alerts);
        Beat { reason, purpose, model: None, ack_max_chars: 300, chat }
    }

    fn said(text: &str) -> ReplyPayload {
        ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() }
    }

    fn alert(text: &str) -> BeatAnswer {
        BeatAnswer::Alert { text: text.to_owned(), media_urls: Vec::new(), reasoning: Vec::new() }
    }

    #[test]
    fn the_last_reply_says_what_the_beat_comes_to() {
        let long = "a".repeat(301);
        let rows: [(&[&str], BeatPurpose, BeatAnswer); 8] = [
            (&[], BeatPurpose::Check, BeatAnswer::Empty),
            (&[" "], BeatPurpose::Check, BeatAnswer::Empty),
            (&["HEARTBEAT_OK"], BeatPurpose::Check, BeatAnswer::Acknowledged),
            (&["working", "HEARTBEAT_OK nothing"], BeatPurpose::Check, BeatAnswer::Acknowledged),
            (&["HEARTBEAT_OK", "the door is open"], BeatPurpose::Check, alert("the door is open")),
            (&[&format!("{long} HEARTBEAT_OK")], BeatPurpose::Check, alert(&long)),
            (&["exit 1 HEARTBEAT_OK"], BeatPurpose::RelayCommand, alert("exit 1")),
            (&["HEARTBEAT_OK"], BeatPurpose::RelayCommand, BeatAnswer::Acknowledged),
        ];
        for (texts, purpose, expect) in rows {
            let payloads: Vec<_> = texts.iter().map(|text| said(text)).collect();
            assert_eq!(BeatAnswer::judge(&beat(purpose), &payloads), expect, "{texts:?}");
        }
    }

    #[test]
    fn media_is_worth_attention_and_reasoning_goes_along() {
        let picture = ReplyPayload { media_url: Some("a.png".to_owned()), ..said("HEARTBEAT_OK") };
        let expect = BeatAnswer::Alert {
            text: String::new(),
            media_urls: vec!["a.png".to_owned()],
            reasoning: vec!["Reasoning:\n_hm_".to_owned()],
        };
        assert_eq!(
            BeatAnswer::judge(&beat(BeatPurpose::Check), &[said("Reasoning:\n_hm_"), picture]),
            expect
        );
    }

    #[test]
    fn the_answer_is_found_in_the_stored_result() {
        let mut outcome = RunOutcome::Ok { result: json!({"payloads": []}).into() };
        assert_eq!(BeatAnswer::of(&outcome), None);
        alert("x").note(&mut outcome);
        assert_eq!(BeatAnswer::of(&outcome), Some(alert("x")));
    }
}
