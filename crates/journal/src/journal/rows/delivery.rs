//! Row of a delivery, and the rules by which it changes.

use openclaw_channels::{Address, Part, Receipt};
use openclaw_protocol::{RunId, SessionKey};

use super::{DeliveryTotal, NewContent};
use crate::delivery::{
    Author, Delivery, DeliveryFailure, DeliveryState, DeliveryStatus, DeliveryVerdict, Hold, LaneKey,
    ListedDelivery, OpenDelivery, SentMessage,
};
use crate::inbox::Digest;
use crate::journal::NewDelivery;

/// Row of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRow {
    /// Number of the row.
    pub number: i64,
    /// Id, unique.
    pub id: String,
    /// Conversation that it goes to.
    pub address: Address,
    /// Session that it belongs to; `None` also if that can't be read.
    pub session_key: Option<SessionKey>,
    /// Author of the message.
    pub author: Author,
    /// Digest of the client's request.
    pub asked: Option<Digest>,
    /// Unix milliseconds.
    pub accepted_at: i64,
    /// The part that changes.
    pub progress: DeliveryProgress,
    /// Content, or the reason why it can't be read, such as that it is forgotten; `None` if it was
    /// not asked for.
    pub part: Option<Result<Part, String>>,
}

/// The part of a delivery's row that changes, beside its content.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryProgress {
    /// Current state.
    pub state: DeliveryState,
    /// Tries that count.
    pub attempts: u32,
    /// Earliest time of the next try; of one that was given up, the end of the wait that its platform
    /// asked for. Unix milliseconds.
    pub next_at: i64,
    /// Time after which it is not worth sending, in Unix milliseconds.
    pub expires_at: Option<i64>,
    /// Receipt of the platform.
    pub receipt: Option<Receipt>,
    /// Reason why it is not sent, for people.
    pub error: Option<String>,
    /// Time at which it was sent or given up, in Unix milliseconds.
    pub ended_at: Option<i64>,
    /// True if its reader may see it twice.
    pub may_repeat: bool,
    /// Reason for giving it up.
    pub given_up: Option<DeliveryFailure>,
    /// Content that was left out and why, for people.
    pub left_out: Option<String>,
}

impl DeliveryProgress {
    /// Returns that of a new delivery.
    pub fn of(new: &NewDelivery) -> Self {
        Self {
            state: DeliveryState::Pending,
            attempts: 0,
            next_at: new.not_before,
            expires_at: new.delivery.expires_at,
            receipt: None,
            error: None,
            ended_at: None,
            may_repeat: false,
            given_up: None,
            left_out: None,
        }
    }
}

/// Result of a rule: the content that the delivery has from now on; `None` if the delivery is past
/// the change, and was not changed.
type DeliveryStep<'a> = Option<NewContent<'a, Part>>;

/// Rules by which a delivery changes.
impl DeliveryProgress {
    /// Notes that the platform is about to be asked, for the `attempts`th time.
    pub fn sending(&mut self, attempts: u32) -> DeliveryStep<'static> {
        let may_have_arrived = self.state == DeliveryState::Uncertain && attempts > 1;
        self.advance(DeliveryState::Sending)?;
        self.may_repeat |= may_have_arrived;
        self.attempts = attempts;
        Some(NewContent::Kept)
    }

    /// Notes the end of a try. One that was thrown away while it was asked what became of it stays
    /// so.
    pub fn tried<'a>(&mut self, verdict: &'a DeliveryVerdict, now: i64) -> DeliveryStep<'a> {
        match verdict {
            DeliveryVerdict::Sent(receipt) => {
                self.advance(DeliveryState::Sent)?;
                (self.receipt, self.error, self.ended_at) = (Some(receipt.clone()), None, Some(now));
                Some(NewContent::Forgotten)
            }
            DeliveryVerdict::Retry(retry) => {
                self.if_open()?.advance(retry.state)?;
                (self.attempts, self.next_at) = (retry.attempts, retry.at(now));
                self.error = Some(retry.reason.clone());
                Some(NewContent::Kept)
            }
            DeliveryVerdict::WithoutFile { part, left_out } => {
                self.if_open()?.advance(DeliveryState::Pending)?;
                (self.attempts, self.next_at, self.error) = (0, now, None);
                self.left_out = Some(left_out.clone());
                Some(NewContent::Replaced(part))
            }
            DeliveryVerdict::Failed { reason, why, hold } => {
                self.advance(DeliveryState::Failed)?;
                (self.error, self.ended_at, self.given_up) = (Some(reason.clone()), Some(now), Some(*why));
                // If the platform asked for nothing, the time of the next try is not behind the end.
                let hold = hold.map_or(0, |hold| i64::try_from(hold.as_millis()).unwrap_or(i64::MAX));
                self.next_at = now.saturating_add(hold);
                Some(NewContent::Kept)
            }
        }
    }

    /// Lets one that was given up be tried again.
    pub fn revive(&mut self, now: i64) -> DeliveryStep<'static> {
        let is_failed = self.state == DeliveryState::Failed;
        let why = is_failed.then(|| self.given_up.unwrap_or(DeliveryFailure::Refused))?;
        self.advance(why.revived()?)?;
        (self.attempts, self.error, self.given_up) = (0, None, None);
        (self.next_at, self.expires_at, self.ended_at) = (now, None, None);
        Some(NewContent::Kept)
    }

    /// Throws away one that was given up or waits.
    pub fn discard(&mut self, now: i64) -> DeliveryStep<'static> {
        if !self.state.may_be_discarded(self.given_up) {
            return None;
        }
        self.given_up = Some(DeliveryFailure::Discarded);
        if self.state != DeliveryState::Failed {
            self.error = self.state.discarded_as(self.error.as_deref());
            self.advance(DeliveryState::Failed)?;
            // Deliveries behind it do not wait for the time that it waited for.
            (self.ended_at, self.next_at) = (Some(now), now);
        }
        Some(NewContent::Forgotten)
    }

    /// Lets one that waits be tried now.
    pub fn hasten(&mut self, now: i64) -> DeliveryStep<'static> {
        let waits = matches!(self.state, DeliveryState::Pending | DeliveryState::Uncertain);
        self.next_at = if waits { self.next_at.min(now) } else { self.next_at };
        waits.then_some(NewContent::Kept)
    }

    /// Notes that its process is gone. Nobody knows what became of one that it was sending.
    pub fn restart(&mut self) -> DeliveryStep<'static> {
        let was_sending = self.state == DeliveryState::Sending;
        (was_sending.then(|| self.advance(DeliveryState::Uncertain))?).map(|()| NewContent::Kept)
    }

    fn if_open(&mut self) -> Option<&mut Self> {
        self.state.is_open().then_some(self)
    }

    /// Goes to a state, if that may follow.
    fn advance(&mut self, to: DeliveryState) -> Option<()> {
        self.state.next_states().contains(&to).then(|| self.state = to)
    }
}

/// Facts that follow from a row.
impl DeliveryRow {
    /// Returns the row of a new delivery.
    pub fn of(number: i64, new: &NewDelivery) -> Self {
        let NewDelivery { delivery, accepted_at, .. } = new;
        let Delivery { id, address, session_key, author, part, asked, .. } = delivery.clone();
        let progress = DeliveryProgress::of(new);
        let (accepted_at, part) = (*accepted_at, Some(Ok(part)));
        Self { number, id, address, session_key, author, asked, accepted_at, progress, part }
    }

    /// Returns the status for people and clients.
    pub fn into_status(self) -> DeliveryStatus {
        let DeliveryProgress { state, attempts, next_at, .. } = self.progress;
        DeliveryStatus {
            id: self.id,
            state,
            attempts,
            receipt: self.progress.receipt,
            error: self.progress.error,
            session_key: self.session_key,
            accepted_at: self.accepted_at,
            may_repeat: self.progress.may_repeat,
            next_at: state.is_open().then_some(next_at),
            ended_at: self.progress.ended_at,
            asked: self.asked,
            address: self.address,
            author: self.author,
            given_up: self.progress.given_up,
            left_out: self.progress.left_out,
        }
    }

    /// Returns the status with the content.
    pub fn into_listed(mut self) -> ListedDelivery {
        let part = self.part.take().and_then(Result::ok);
        ListedDelivery { status: self.into_status(), part }
    }

    /// Returns the facts that the order of sending needs.
    pub fn into_open(self) -> OpenDelivery {
        OpenDelivery {
            number: self.number,
            is_paced: self.is_paced(),
            next_at: self.progress.next_at,
            lane: LaneKey {
                channel: self.address.channel,
                account: self.address.account,
                target: self.address.target,
            },
            thread: self.address.thread,
        }
    }

    /// Returns the message as its platform has it. Its conversation may have another id by now.
    pub fn into_sent(self) -> SentMessage {
        let moved = self.progress.receipt.and_then(|receipt| receipt.target);
        let target = moved.unwrap_or(self.address.target);
        SentMessage { address: Address { target, ..self.address }, author: self.author }
    }

    /// Returns the delivery itself, or its id and the reason why its content can't be read.
    pub fn into_delivery(self) -> Result<Delivery, (String, String)> {
        let Self { id, address, session_key, author, asked, part, progress, .. } = self;
        match part.unwrap_or_else(|| Err("it was not read".to_owned())) {
            Ok(part) => {
                let expires_at = progress.expires_at;
                Ok(Delivery { id, address, session_key, author, part, expires_at, asked })
            }
            Err(why) => Err((id, why)),
        }
    }

    /// True if it was never tried because it waits for an intended pause.
    pub fn is_paced(&self) -> bool {
        let DeliveryProgress { state, attempts, next_at, error, .. } = &self.progress;
        state.is_paced(*attempts, error.as_deref(), *next_at, self.accepted_at)
    }

    /// True if it was given up, and not thrown away.
    pub fn is_listed_as_failed(&self) -> bool {
        let DeliveryProgress { state, given_up, .. } = &self.progress;
        state.is_listed_as_failed(*given_up)
    }

    /// Returns the count of this delivery alone.
    pub fn counted(&self) -> DeliveryTotal {
        let DeliveryProgress { state, given_up, ended_at, .. } = self.progress;
        DeliveryTotal { state, given_up, count: 1, last_ended_at: ended_at }
    }

    /// Returns the wait that its platform asked for when it put this one off.
    pub fn hold(&self) -> Option<Hold> {
        let hold = Hold { asked_at: self.progress.ended_at?, until: self.progress.next_at };
        (self.progress.state == DeliveryState::Failed && hold.until > hold.asked_at).then_some(hold)
    }

    /// True if it was given up, and takes the other one, behind it in the same message, with it.
    pub fn cuts_off(&self, other: &Self) -> bool {
        self.number < other.number
            && self.progress.state == DeliveryState::Failed
            && self.progress.given_up.is_some_and(DeliveryFailure::takes_the_rest)
            && Delivery::message_of(&self.id) == Delivery::message_of(&other.id)
            && is_beside(&self.address, &other.address)
    }
}

/// True if both are addresses in one conversation, whose deliveries wait for each other.
fn is_beside(one: &Address, other: &Address) -> bool {
    (&one.channel, &one.account, &one.target) == (&other.channel, &other.account, &other.target)
}

/// Selection of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryQuery<'a> {
    /// The delivery of an id.
    Id(&'a str),
    /// The delivery of a number.
    Number(i64),
    /// Deliveries of a run's answer: their ids are the run's with something behind a colon.
    OfRun(&'a RunId),
    /// The delivery of an id, or those that a platform has under this id of a message.
    Named(&'a str),
    /// Deliveries that a channel has under this id of a message.
    Sent {
        /// The channel.
        channel: &'a str,
        /// The platform's id.
        message_id: &'a str,
    },
    /// Open deliveries that have a number above this one.
    Open {
        /// The number.
        after: i64,
    },
    /// Open deliveries of an account.
    OpenOf {
        /// The channel.
        channel: &'a str,
        /// The account.
        account: &'a str,
    },
    /// Open deliveries of a conversation.
    OpenIn(&'a Address),
    /// Deliveries that were given up and not thrown away, the newest first.
    GivenUp,
    /// Parts of a message that were given up. The id of the message is what theirs begin with.
    GivenUpOf(&'a str),
    /// Deliveries of a conversation for which its platform asked to wait, the newest first.
    HeldIn(&'a Address),
}

impl DeliveryQuery<'_> {
    /// True if a row is selected.
    pub fn matches(&self, row: &DeliveryRow) -> bool {
        let DeliveryProgress { state, receipt, .. } = &row.progress;
        let has_id = |id: &str| receipt.iter().flat_map(|receipt| &receipt.message_ids).any(|own| own == id);
        let begins_with =
            |message: &str| row.id.strip_prefix(message).is_some_and(|part| part.starts_with(':'));
        match self {
            Self::Id(id) => row.id == *id,
            Self::Number(number) => row.number == *number,
            Self::OfRun(run_id) => begins_with(run_id.as_str()),
            Self::Named(id) => row.id == *id || has_id(id),
            Self::Sent { channel, message_id } => {
                *state == DeliveryState::Sent && row.address.channel == *channel && has_id(message_id)
            }
            Self::Open { after } => state.is_open() && row.number > *after,
            Self::OpenOf { channel, account } => {
                state.is_open() && row.address.channel == *channel && row.address.account == *account
            }
            Self::OpenIn(address) => state.is_open() && is_beside(&row.address, address),
            Self::GivenUp => row.is_listed_as_failed(),
            Self::GivenUpOf(message) => *state == DeliveryState::Failed && begins_with(message),
            Self::HeldIn(address) => row.hold().is_some() && is_beside(&row.address, address),
        }
    }

    /// True if the newest row comes first.
    pub fn is_newest_first(&self) -> bool {
        match self {
            Self::GivenUp | Self::HeldIn(_) => true,
            Self::Id(_)
            | Self::Number(_)
            | Self::OfRun(_)
            | Self::Named(_)
            | Self::Sent { .. }
            | Self::Open { .. }
            | Self::OpenOf { .. }
            | Self::OpenIn(_)
            | Self::GivenUpOf(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
