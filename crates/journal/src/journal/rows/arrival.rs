//! Row of a platform's event, and the rules by which it changes.

use openclaw_channels::{Address, Inbound};
use openclaw_protocol::RunId;

use super::NewContent;
use crate::arrival::{ArrivalRecord, Fate, NewArrival, Routed, StoredArrival};
use crate::journal::EventCount;
use crate::queue::DropRule;

/// Name in counts of events without a fate.
pub const WAITING: &str = "waiting";

/// Row of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrivalRow {
    /// Number of the row.
    pub number: i64,
    /// Channel id.
    pub channel: String,
    /// Account on the channel.
    pub account: String,
    /// The platform's id of the event.
    pub native_id: String,
    /// The platform's id of the message it is about.
    pub message_id: Option<String>,
    /// Conversation.
    pub target: String,
    /// Unix milliseconds.
    pub received_at: i64,
    /// Unix milliseconds at which the platform says it happened; `None` in rows of older versions.
    pub said_at: Option<i64>,
    /// Dedupe key, unique.
    pub identity: String,
    /// The part that changes.
    pub progress: ArrivalProgress,
    /// The event, or the reason why it can't be read, such as that it is forgotten; `None` if it was
    /// not asked for.
    pub event: Option<Result<Inbound, String>>,
}

/// The part of an event's row that changes, beside its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrivalProgress {
    /// Fate; `None` while nothing is decided.
    pub fate: Option<Fate>,
    /// Run that it is part of, also if its message was dropped later, or that was told it as context.
    pub run_id: Option<RunId>,
    /// Unix milliseconds at which the fate was decided.
    pub decided_at: Option<i64>,
    /// Session that it was routed to, and why.
    pub route: Option<Routed>,
    /// Number of times it was delivered again.
    pub again: u32,
}

/// Result of a rule: the content that the event has from now on; `None` if the event is past the
/// change, and was not changed.
type ArrivalStep = Option<NewContent<'static, Inbound>>;

/// Rules by which an event changes.
impl ArrivalProgress {
    /// Returns that of a new event.
    pub fn of(new: &NewArrival) -> Self {
        let mut progress = Self::default();
        if let Some(fate) = &new.fate {
            progress.decide(fate, new.received_at);
        }
        progress
    }

    /// Decides the fate. An earlier decision stays. An event that waits as context is still to be
    /// read; of others the contents are forgotten.
    pub fn decide(&mut self, fate: &Fate, now: i64) -> ArrivalStep {
        if self.fate.is_some() {
            return None;
        }
        self.fate = Some(fate.clone());
        self.decided_at = Some(now);
        match fate {
            Fate::Run(run_id) => self.run_id = Some(run_id.clone()),
            Fate::Noted => return Some(NewContent::Kept),
            Fate::Handled(_) | Fate::Dropped(_) => {}
        }
        Some(NewContent::Forgotten)
    }

    /// Makes it part of the message of a run, which was routed like this.
    pub fn join(&mut self, run_id: &RunId, route: Option<&Routed>, now: i64) -> ArrivalStep {
        let decided = self.decide(&Fate::Run(run_id.clone()), now);
        let Some(route) = route else { return decided };
        self.route = Some(route.clone());
        decided.or(Some(NewContent::Kept))
    }

    /// Notes the run that is told it as context.
    pub fn tell(&mut self, run_id: &RunId) -> ArrivalStep {
        if !self.waits_as_context() {
            return None;
        }
        self.run_id = Some(run_id.clone());
        Some(NewContent::Forgotten)
    }

    /// Notes that a rule has dropped the message that it became part of.
    pub fn drop_run(&mut self, rule: DropRule, now: i64) -> ArrivalStep {
        if !matches!(self.fate, Some(Fate::Run(_))) {
            return None;
        }
        self.fate = Some(Fate::dropped(rule.as_str()));
        self.decided_at = Some(now);
        Some(NewContent::Kept)
    }

    /// Notes that it was delivered once more.
    pub fn repeat(&mut self) -> ArrivalStep {
        self.again = self.again.saturating_add(1);
        Some(NewContent::Kept)
    }

    /// True if it waits as context, and is in no message yet.
    fn waits_as_context(&self) -> bool {
        self.fate == Some(Fate::Noted) && self.run_id.is_none()
    }

    /// True if it waits for a decision, or as context.
    fn waits(&self) -> bool {
        self.fate.is_none() || self.waits_as_context()
    }
}

impl ArrivalRow {
    /// Returns the row of a new event.
    pub fn of(number: i64, new: &NewArrival) -> Self {
        let Inbound { address, native_id, at, .. } = &new.event;
        Self {
            number,
            channel: address.channel.clone(),
            account: address.account.clone(),
            native_id: native_id.clone(),
            message_id: new.message_id().map(str::to_owned),
            target: address.target.clone(),
            received_at: new.received_at,
            said_at: Some(*at),
            identity: new.event.dedupe_key(),
            progress: ArrivalProgress::of(new),
            event: Some(Ok(new.event.clone())),
        }
    }

    /// Returns the event with its number.
    pub fn into_stored(self) -> StoredArrival {
        let event = self.event.unwrap_or_else(|| Err("it was not read".to_owned()));
        StoredArrival { number: self.number, event, received_at: self.received_at }
    }

    /// Returns the record for people.
    pub fn into_record(self) -> ArrivalRecord {
        let ArrivalProgress { fate, run_id, decided_at, route, again } = self.progress;
        ArrivalRecord {
            number: self.number,
            channel: self.channel,
            account: self.account,
            native_id: self.native_id,
            message_id: self.message_id,
            target: self.target,
            received_at: self.received_at,
            told_in: run_id.filter(|_| fate == Some(Fate::Noted)),
            fate,
            decided_at,
            route,
            again,
            said_at: self.said_at,
            identity: self.identity,
        }
    }

    /// Returns the count of this event alone.
    pub fn counted(&self) -> EventCount {
        let (fate, reason, _) = self.progress.fate.as_ref().map_or((WAITING, None, None), Fate::columns);
        EventCount {
            fate: fate.to_owned(),
            reason: reason.map(str::to_owned),
            count: 1,
            repeats: u64::from(self.progress.again),
        }
    }

    fn is_in(&self, address: &Address) -> bool {
        (&self.channel, &self.account, &self.target) == (&address.channel, &address.account, &address.target)
    }
}

/// Identity by which an event is known when it is delivered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalIdentity<'a> {
    /// Dedupe key of the event.
    pub identity: String,
    /// The dedupe keys that older versions used. The first of them stored neither the bot nor the
    /// time: of their rows one counts that has such a key and is about the same message, so that
    /// an update does not answer again what they answered.
    pub former: [String; 2],
    /// Conversation.
    pub target: &'a str,
    /// The platform's id of the message it is about.
    pub message_id: Option<&'a str>,
}

impl<'a> ArrivalIdentity<'a> {
    /// Returns that of an event.
    pub fn of(new: &'a NewArrival) -> Self {
        Self {
            identity: new.event.dedupe_key(),
            former: new.event.former_dedupe_keys(),
            target: &new.event.address.target,
            message_id: new.message_id(),
        }
    }

    /// True if a row is of this event.
    pub fn is_of(&self, row: &ArrivalRow) -> bool {
        let is_about = row.target == self.target && row.message_id.as_deref() == self.message_id;
        row.identity == self.identity || (self.former.contains(&row.identity) && is_about)
    }
}

/// Selection of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalQuery<'a> {
    /// The event of a number.
    Number(i64),
    /// Events that are this one, delivered before.
    Same(&'a ArrivalIdentity<'a>),
    /// Events without a fate that have a number above this one.
    Waiting {
        /// The number.
        after: i64,
    },
    /// Events of a conversation, and of a thread of it, that wait as context, are in no message yet
    /// and have a number below this one; the newest first. Read with their content.
    Noted {
        /// The conversation.
        conversation: &'a Address,
        /// The number.
        before: i64,
    },
    /// Events of a conversation that wait for a decision or as context, and are about a message.
    About {
        /// The conversation, in whatever thread.
        conversation: &'a Address,
        /// The platform's id of the message.
        message_id: &'a str,
    },
    /// All, the newest first.
    Newest,
    /// Events that a message or event id of a platform names, or a run; the newest first.
    Named(&'a str),
}

impl ArrivalQuery<'_> {
    /// True if a row is selected.
    pub fn matches(&self, row: &ArrivalRow) -> bool {
        match self {
            Self::Number(number) => row.number == *number,
            Self::Same(identity) => identity.is_of(row),
            Self::Waiting { after } => row.progress.fate.is_none() && row.number > *after,
            Self::Noted { conversation, before } => {
                let is_in_thread = |event: &Inbound| event.address.thread == conversation.thread;
                row.progress.waits_as_context()
                    && row.number < *before
                    && row.is_in(conversation)
                    && matches!(&row.event, Some(Ok(event)) if is_in_thread(event))
            }
            Self::About { conversation, message_id } => {
                row.progress.waits()
                    && row.is_in(conversation)
                    && row.message_id.as_deref() == Some(*message_id)
            }
            Self::Newest => true,
            Self::Named(id) => {
                let ids = [Some(row.native_id.as_str()), row.message_id.as_deref()];
                ids.contains(&Some(*id))
                    || row.progress.run_id.as_ref().is_some_and(|run| run.as_str() == *id)
            }
        }
    }

    /// True if the newest row comes first.
    pub fn is_newest_first(&self) -> bool {
        match self {
            Self::Noted { .. } | Self::Newest | Self::Named(_) => true,
            Self::Number(_) | Self::Same(_) | Self::Waiting { .. } | Self::About { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_channels::InboundMessage;

    use super::*;
    use crate::testing::group_event;

    fn kept(step: ArrivalStep) -> Option<bool> {
        step.map(|content| matches!(content, NewContent::Kept))
    }

    #[test]
    fn an_event_has_one_fate_and_only_context_is_read_later() {
        let run = RunId::new("run");
        let fates = [
            (Fate::Run(run), false),
            (Fate::Noted, true),
            (Fate::handled("stop"), false),
            (Fate::dropped("dm-policy"), false),
        ];
        for (fate, is_kept) in fates {
            let mut event = ArrivalProgress::default();
            assert_eq!(kept(event.decide(&fate, 5)), Some(is_kept), "{fate:?}");
            let decided = event.clone();
            assert_eq!(kept(event.decide(&Fate::Noted, 6)), None);
            assert_eq!((event.fate.as_ref(), event.decided_at), (Some(&fate), Some(5)));
            assert_eq!(event, decided);
        }
    }

    #[test]
    fn context_is_told_once_and_the_run_of_a_dropped_message_stays_known() {
        let (run, other) = (RunId::new("run"), RunId::new("other"));
        let mut event = ArrivalProgress::default();
        assert_eq!(kept(event.tell(&run)), None, "nothing is decided about it");
        event.decide(&Fate::Noted, 1);
        assert_eq!((kept(event.tell(&run)), kept(event.tell(&other))), (Some(false), None));
        assert_eq!(event.run_id, Some(run.clone()));
        assert_eq!(kept(event.drop_run(DropRule::Old, 9)), None, "it is no word of the message");
        let mut event = ArrivalProgress::default();
        let route = Routed { session_key: "agent:main:main".to_owned(), matched_by: "default".to_owned() };
        assert_eq!(kept(event.join(&run, Some(&route), 2)), Some(false));
        assert_eq!(kept(event.drop_run(DropRule::Old, 9)), Some(true));
        let expected = ArrivalProgress {
            fate: Some(Fate::dropped(DropRule::Old.as_str())),
            run_id: Some(run),
            decided_at: Some(9),
            route: Some(route),
            again: 0,
        };
        assert_eq!(event, expected);
    }

    #[test]
    fn an_event_of_an_older_version_is_known_by_what_it_is_about() {
        let new = |unique: Option<&str>, target: &str| {
            let mut event = group_event("a", target, InboundMessage::default());
            event.unique_id = unique.map(str::to_owned);
            NewArrival { event, received_at: 1, fate: None }
        };
        let (former, stored) =
            (ArrivalRow::of(1, &new(None, "-1")), ArrivalRow::of(2, &new(Some("1:a:x"), "-1")));
        let rows = [
            (&former, new(Some("1:a:x"), "-1"), true),
            (&former, new(Some("1:a:x"), "-2"), false),
            (&stored, new(Some("1:a:x"), "-2"), true),
            (&stored, new(Some("1:a:y"), "-1"), false),
            (&stored, new(None, "-1"), false),
        ];
        for (row, new, is_same) in rows {
            assert_eq!(ArrivalIdentity::of(&new).is_of(row), is_same, "{new:?}");
        }
        // A unique id of another version is as good, for the same message.
        for (target, is_same) in [("-1", true), ("-2", false)] {
            let mut new = new(Some("1:message"), target);
            new.event.former_unique_id = Some("1:a:x".to_owned());
            assert_eq!(ArrivalIdentity::of(&new).is_of(&stored), is_same, "{target}");
        }
    }
}
