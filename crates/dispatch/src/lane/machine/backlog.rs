//! Policy for messages that wait behind a run (spec `queue.md` §4): how many may wait, how long
//! more of them are awaited, and which are run together.

use openclaw_channels::Address;
use openclaw_config::settings::{QueueDrop, QueueMode};
use openclaw_journal::queue::{DropRule, QueueSettings};
use tokio::time::Instant;

use super::{LaneEffect, Machine, QueuedItem};
use crate::lane::turn::LaneMessage;

/// Messages that are run together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch<J> {
    /// Message whose run it is: the last of those that are asked, or of the dropped ones if none is
    /// asked.
    pub(crate) leader: J,
    /// Messages that are asked before it, in order.
    pub(crate) items: Vec<J>,
    /// Messages that were dropped, in order.
    pub(crate) cut: Vec<J>,
    /// Number of dropped messages, including those of which nothing is left.
    pub(crate) dropped: u64,
    /// Message whose place gets the answer if the run only tells of dropped messages: the newest
    /// one.
    pub(crate) answer_as: Option<J>,
}

/// Facts about the messages that wait behind a run.
#[derive(Debug)]
pub(super) struct LaneBacklog<J> {
    /// Messages that were dropped, of which the next run is told, in the order of acceptance.
    pub(super) cut: Vec<J>,
    /// Number of messages dropped since a run was last told.
    dropped: u64,
    /// Time at which the last message came to wait; `None` while none waits.
    heard_at: Option<Instant>,
    /// Message that came to wait last.
    newest: Option<J>,
    /// True if the answers go to different places: each message is run by itself until none waits.
    individually: bool,
}

impl<J> Default for LaneBacklog<J> {
    fn default() -> Self {
        Self { cut: Vec::new(), dropped: 0, heard_at: None, newest: None, individually: false }
    }
}

impl<J: LaneMessage> LaneBacklog<J> {
    /// Takes out dropped ones.
    pub(super) fn take_cut(&mut self, which: impl Fn(&J) -> bool) -> Vec<J> {
        let (out, stay) = std::mem::take(&mut self.cut).into_iter().partition(which);
        self.cut = stay;
        out
    }

    fn add_cut(&mut self, job: J) {
        let at = self.cut.iter().position(|other| other.order() > job.order()).unwrap_or(self.cut.len());
        self.cut.insert(at, job);
    }
}

impl<J: LaneMessage> QueuedItem<J> {
    /// Returns the message, if it is one that waits to be said to the agent.
    fn prompt(&self) -> Option<(&J, QueueSettings)> {
        match self {
            Self::Message(job) => Some((job, job.queue()?)),
            Self::Change { .. } => None,
        }
    }

    fn is_beside(&self) -> bool {
        matches!(self, Self::Message(job) if job.is_aside())
    }
}

impl<J: LaneMessage> Machine<J> {
    /// Queues a message. Returns the effects on messages that have to give way for it; the error is
    /// the effect if it is not taken.
    pub(super) fn admit(&mut self, now: Instant, job: J) -> Result<Vec<LaneEffect<J>>, LaneEffect<J>> {
        if let Some(dropped) = job.cut() {
            self.backlog.dropped = self.backlog.dropped.max(dropped);
            self.backlog.heard_at = Some(now);
            self.backlog.newest = Some(job.clone());
            self.backlog.add_cut(job);
            return Ok(Vec::new());
        }
        let mut made_room = Vec::new();
        let waits = self.active.is_some() || self.has_waiting() || job.has_waited();
        if let Some(settings) = job.queue().filter(|_| waits) {
            if !job.has_waited() {
                if self.is_known(&job) {
                    return Err(LaneEffect::Drop(job, DropRule::Duplicate));
                }
                made_room = self.make_room(settings);
                if made_room.is_empty() && self.prompts().count() >= settings.room() {
                    return Err(LaneEffect::Drop(job, DropRule::New));
                }
            }
            self.backlog.heard_at = Some(now);
            self.backlog.newest = Some(job.clone());
        }
        self.enqueue(QueuedItem::Message(job));
        Ok(made_room)
    }

    fn prompts(&self) -> impl Iterator<Item = &J> {
        self.waiting.iter().filter_map(|waiting| Some(waiting.prompt()?.0))
    }

    /// True if the same message waits already, to be answered in the same place (dedupe).
    fn is_known(&self, job: &J) -> bool {
        let Some(id) = job.message_id() else { return false };
        self.prompts().any(|other| other.message_id() == Some(id) && other.place() == job.place())
    }

    /// Takes the oldest out of a full queue, unless newcomers have to stay out.
    fn make_room(&mut self, settings: QueueSettings) -> Vec<LaneEffect<J>> {
        let count = self.prompts().count();
        let surplus = (count + 1).saturating_sub(settings.room());
        let mut effects = Vec::new();
        if settings.drop == QueueDrop::New {
            return effects;
        }
        for _ in 0..surplus {
            let Some(at) = self.waiting.iter().position(|waiting| waiting.prompt().is_some()) else { break };
            let Some(QueuedItem::Message(mut job)) = self.waiting.remove(at) else { break };
            if let Some(effect) = self.answered_already(&job) {
                effects.push(effect);
                continue;
            }
            if settings.drop == QueueDrop::Old {
                effects.push(LaneEffect::Drop(job, DropRule::Old));
                continue;
            }
            self.backlog.dropped += 1;
            job.set_cut(self.backlog.dropped);
            effects.push(LaneEffect::Cut(job.clone()));
            self.backlog.add_cut(job);
            // No more lines are told of than messages may wait.
            if self.backlog.cut.len() > settings.room() {
                effects.push(LaneEffect::Drop(self.backlog.cut.remove(0), DropRule::Summarized));
            }
        }
        effects
    }

    /// Returns the effect for a message that has to give way although a run has read it, or is
    /// about to: that run answers it, so that only its own run is dropped. Clients do not hear of
    /// it as dropped.
    fn answered_already(&mut self, job: &J) -> Option<LaneEffect<J>> {
        if self.read.contains(job.run_id()) {
            return Some(LaneEffect::Drop(job.clone(), DropRule::Read));
        }
        let run = self.run()?;
        let at = run.copied.iter().position(|copied| copied == job.run_id())?;
        let run_id = run.copied.remove(at);
        run.steered.push(run_id);
        Some(LaneEffect::Leave(job.clone()))
    }

    /// Time until which more messages for the same run are awaited; `None` if there is nothing to
    /// wait for.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.active.is_some() || self.held || self.stopped {
            return None;
        }
        let heard_at = self.backlog.heard_at?;
        // A message that is not for the agent ends the wait: messages behind it are not run with
        // those before.
        if !self.waiting.iter().all(|waiting| waiting.is_beside() || waiting.prompt().is_some()) {
            return None;
        }
        let dropped = || self.backlog.cut.last().and_then(|job| Some((job, job.queue()?)));
        let (_, settings) = self.waiting.iter().rev().find_map(QueuedItem::prompt).or_else(dropped)?;
        Some(heard_at + settings.debounce())
    }

    /// Begins the first waiting item, together with those that belong to it.
    pub(super) fn begin_next(&mut self) -> Option<LaneEffect<J>> {
        let first = match self.waiting.front() {
            None => self.tell_of_cut(),
            Some(first) if first.prompt().is_none() || self.backlog.heard_at.is_none() => self.begin_first(),
            Some(_) => self.begin_prompts(),
        };
        if self.prompts().next().is_none() {
            self.backlog.heard_at = None;
            if self.backlog.cut.is_empty() {
                self.backlog.newest = None;
                self.backlog.individually = false;
            }
        }
        first
    }

    fn begin_first(&mut self) -> Option<LaneEffect<J>> {
        let first = self.waiting.pop_front()?;
        Some(self.begin(first))
    }

    /// Begins the first waiting messages that are for the agent and came behind a run.
    fn begin_prompts(&mut self) -> Option<LaneEffect<J>> {
        let prompts = || self.waiting.iter().map_while(QueuedItem::prompt);
        let (announces, rights) =
            prompts().next().map(|(job, _)| (job.is_announcement(), job.rights())).unwrap_or_default();
        let is_of_them =
            |job: &J| !job.is_alone() && job.is_announcement() == announces && job.may_join(rights);
        let together: Vec<_> = prompts().take_while(|(job, _)| is_of_them(job)).collect();
        let Some((_, newest)) = together.last() else { return self.begin_first() };
        let count = together.len();
        let is_cut_by_others = self.backlog.cut.iter().any(|cut| !cut.may_join(rights));
        if newest.mode != QueueMode::Collect || is_cut_by_others {
            return self.tell_of_cut().or_else(|| self.begin_first());
        }
        let is_mixed = match announces {
            true => is_mixed_telling(together.iter().map(|(job, _)| job.place())),
            false => is_mixed(together.iter().map(|(job, _)| job.place())),
        };
        self.backlog.individually |= is_mixed;
        if self.backlog.individually {
            return self.begin_first();
        }
        let mut items: Vec<J> = self.waiting.drain(..count).filter_map(QueuedItem::into_message).collect();
        let leader = items.pop()?;
        let cut = std::mem::take(&mut self.backlog.cut);
        let dropped = std::mem::take(&mut self.backlog.dropped);
        Some(self.begin_all(Batch { leader, items, cut, dropped, answer_as: None }))
    }

    /// Begins a run that only tells of dropped messages, if there are any: of the first ones with
    /// the same rights.
    fn tell_of_cut(&mut self) -> Option<LaneEffect<J>> {
        let rights = self.backlog.cut.first()?.rights();
        let count = self.backlog.cut.iter().take_while(|job| job.may_join(rights)).count().max(1);
        let others = self.backlog.cut.split_off(count);
        let mut cut = std::mem::replace(&mut self.backlog.cut, others);
        let left = u64::try_from(self.backlog.cut.len()).unwrap_or(u64::MAX);
        let dropped = std::mem::replace(&mut self.backlog.dropped, left).saturating_sub(left);
        let leader = cut.pop()?;
        let newest = self.backlog.newest.clone();
        let answer_as = newest.filter(|newest| newest.may_join(leader.rights()));
        Some(self.begin_all(Batch { leader, items: Vec::new(), cut, dropped, answer_as }))
    }

    fn begin_all(&mut self, batch: Batch<J>) -> LaneEffect<J> {
        self.run_of(&batch.leader);
        if let (Some(run), Some(newest)) = (self.run(), &batch.answer_as) {
            run.place = newest.place().cloned();
        }
        LaneEffect::StartAll(batch)
    }
}

impl<J> QueuedItem<J> {
    fn into_message(self) -> Option<J> {
        match self {
            Self::Message(job) => Some(job),
            Self::Change { .. } => None,
        }
    }
}

/// True if answers to these can't be one (spec `queue.md` §4.2): they go to different places. Clients of the gateway are one place.
fn is_mixed<'a>(mut places: impl Iterator<Item = Option<&'a Address>>) -> bool {
    let first = places.next();
    places.any(|place| Some(place) != first)
}

/// True if answers to these announcements can't be one: no client waits for announcements without
/// an address, so that they may be told with others.
fn is_mixed_telling<'a>(places: impl Iterator<Item = Option<&'a Address>>) -> bool {
    let mut places = places.flatten();
    let first = places.next();
    places.any(|place| Some(place) != first)
}
