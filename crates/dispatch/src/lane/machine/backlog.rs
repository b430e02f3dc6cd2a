//! What becomes of messages that wait behind a run (spec `queue.md` §4): how many may, how long it is waited for more of them, and
//! which are run together.

use openclaw_channels::Address;
use openclaw_config::settings::{QueueDrop, QueueMode};
use tokio::time::Instant;

use super::{Effect, Machine, Waiting};
use crate::lane::turn::Turn;
use crate::queue::{DropRule, QueueSettings};

/// Messages that are run together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch<J> {
    /// The one whose run it is: the last of those that are asked, or of those that were dropped where none is.
    pub(crate) leader: J,
    /// Those that are asked before it, in order.
    pub(crate) items: Vec<J>,
    /// Those that were dropped, in order.
    pub(crate) cut: Vec<J>,
    /// How many were dropped, with those of which nothing is left.
    pub(crate) dropped: u64,
    /// Where the answer goes, where only dropped ones are told of: to where the newest message was said.
    pub(crate) answer_as: Option<J>,
}

/// What is known of the messages that wait behind a run.
#[derive(Debug)]
pub(super) struct Backlog<J> {
    /// Messages that were dropped, of which the next run is told, in the order of acceptance.
    pub(super) cut: Vec<J>,
    /// How many were dropped since a run was last told.
    dropped: u64,
    /// When the last message came to wait; nothing while none does.
    heard_at: Option<Instant>,
    /// The last one that came to wait.
    newest: Option<J>,
    /// Their answers go to different places: each is run by itself until none waits.
    individually: bool,
}

impl<J> Default for Backlog<J> {
    fn default() -> Self {
        Self { cut: Vec::new(), dropped: 0, heard_at: None, newest: None, individually: false }
    }
}

impl<J: Turn> Backlog<J> {
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

impl<J: Turn> Waiting<J> {
    /// The message, where it is something that waits to be said to the agent.
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

impl<J: Turn> Machine<J> {
    /// Takes a message among those that wait. Says what has to give way for it, or that it is not taken.
    pub(super) fn admit(&mut self, now: Instant, job: J) -> Result<Vec<Effect<J>>, Effect<J>> {
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
                    return Err(Effect::Drop(job, DropRule::Duplicate));
                }
                made_room = self.make_room(settings);
                if made_room.is_empty() && self.prompts().count() >= settings.room() {
                    return Err(Effect::Drop(job, DropRule::New));
                }
            }
            self.backlog.heard_at = Some(now);
            self.backlog.newest = Some(job.clone());
        }
        self.enqueue(Waiting::Message(job));
        Ok(made_room)
    }

    fn prompts(&self) -> impl Iterator<Item = &J> {
        self.waiting.iter().filter_map(|waiting| Some(waiting.prompt()?.0))
    }

    /// Whether the same message waits already, to be answered in the same place.
    fn is_known(&self, job: &J) -> bool {
        let Some(id) = job.message_id() else { return false };
        self.prompts().any(|other| other.message_id() == Some(id) && other.place() == job.place())
    }

    /// Takes the oldest out of a full queue, unless newcomers have to stay out.
    fn make_room(&mut self, settings: QueueSettings) -> Vec<Effect<J>> {
        let count = self.prompts().count();
        let surplus = (count + 1).saturating_sub(settings.room());
        let mut effects = Vec::new();
        if settings.drop == QueueDrop::New {
            return effects;
        }
        for _ in 0..surplus {
            let Some(at) = self.waiting.iter().position(|waiting| waiting.prompt().is_some()) else { break };
            let Some(Waiting::Message(mut job)) = self.waiting.remove(at) else { break };
            if let Some(effect) = self.answered_already(&job) {
                effects.push(effect);
                continue;
            }
            if settings.drop == QueueDrop::Old {
                effects.push(Effect::Drop(job, DropRule::Old));
                continue;
            }
            self.backlog.dropped += 1;
            job.set_cut(self.backlog.dropped);
            effects.push(Effect::Cut(job.clone()));
            self.backlog.add_cut(job);
            // No more lines are told of than messages may wait.
            if self.backlog.cut.len() > settings.room() {
                effects.push(Effect::Drop(self.backlog.cut.remove(0), DropRule::Summarized));
            }
        }
        effects
    }

    /// What becomes of one that has to give way and that a run has read, or is about to: that run answers it, so that only what it was to have of
    /// its own goes. Nobody is told of it as dropped.
    fn answered_already(&mut self, job: &J) -> Option<Effect<J>> {
        if self.read.contains(job.run_id()) {
            return Some(Effect::Drop(job.clone(), DropRule::Read));
        }
        let run = self.run()?;
        let at = run.copied.iter().position(|copied| copied == job.run_id())?;
        let run_id = run.copied.remove(at);
        run.steered.push(run_id);
        Some(Effect::Leave(job.clone()))
    }

    /// Until when it is waited for more of what would be run together; nothing where there is nothing to wait for.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.active.is_some() || self.held || self.stopped {
            return None;
        }
        let heard_at = self.backlog.heard_at?;
        // What is not said to the agent ends it: nothing behind that is run with what is before.
        if !self.waiting.iter().all(|waiting| waiting.is_beside() || waiting.prompt().is_some()) {
            return None;
        }
        let dropped = || self.backlog.cut.last().and_then(|job| Some((job, job.queue()?)));
        let (last, settings) = self.waiting.iter().rev().find_map(Waiting::prompt).or_else(dropped)?;
        let is_waited_for = last.place().is_some() || last.is_announcement();
        is_waited_for.then(|| heard_at + settings.debounce())
    }

    /// Begins what comes first, together with what belongs to it.
    pub(super) fn begin_next(&mut self) -> Option<Effect<J>> {
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

    fn begin_first(&mut self) -> Option<Effect<J>> {
        let first = self.waiting.pop_front()?;
        Some(self.begin(first))
    }

    /// The first of what waits is said to the agent, and came behind a run.
    fn begin_prompts(&mut self) -> Option<Effect<J>> {
        let prompts = || self.waiting.iter().map_while(Waiting::prompt);
        let announces = prompts().next().is_some_and(|(job, _)| job.is_announcement());
        let is_of_them = |job: &J| !job.is_alone() && job.is_announcement() == announces;
        let together: Vec<_> = prompts().take_while(|(job, _)| is_of_them(job)).collect();
        let Some((_, newest)) = together.last() else { return self.begin_first() };
        let count = together.len();
        if newest.mode != QueueMode::Collect {
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
        let mut items: Vec<J> = self.waiting.drain(..count).filter_map(Waiting::into_message).collect();
        let leader = items.pop()?;
        Some(self.begin_all(leader, items, None))
    }

    /// Nothing is asked but what is told of dropped messages, where there are any.
    fn tell_of_cut(&mut self) -> Option<Effect<J>> {
        let leader = self.backlog.cut.pop()?;
        let newest = self.backlog.newest.clone();
        Some(self.begin_all(leader, Vec::new(), newest))
    }

    fn begin_all(&mut self, leader: J, items: Vec<J>, answer_as: Option<J>) -> Effect<J> {
        self.run_of(&leader);
        if let (Some(run), Some(newest)) = (self.run(), &answer_as) {
            run.place = newest.place().cloned();
        }
        let cut = std::mem::take(&mut self.backlog.cut);
        let dropped = std::mem::take(&mut self.backlog.dropped);
        Effect::StartAll(Batch { leader, items, cut, dropped, answer_as })
    }
}

impl<J> Waiting<J> {
    fn into_message(self) -> Option<J> {
        match self {
            Self::Message(job) => Some(job),
            Self::Change { .. } => None,
        }
    }
}

/// Whether answers to these can't be one (spec `queue.md` §4.2): they go to different places, or to clients, who hear of each by its run.
fn is_mixed<'a>(mut places: impl Iterator<Item = Option<&'a Address>>) -> bool {
    let first = places.next().flatten();
    first.is_none() || places.any(|place| place != first)
}

/// The same of announcements: no client waits for those that go nowhere, and they may be told with others.
fn is_mixed_telling<'a>(places: impl Iterator<Item = Option<&'a Address>>) -> bool {
    let mut places = places.flatten();
    let first = places.next();
    places.any(|place| Some(place) != first)
}
