//! What was said while nobody was there to hear it (spec `channels.md` §3.9, §19.3): words are answered and marked, commands are not obeyed,
//! and what is too old is told with the next message.

use std::collections::HashMap;

use openclaw_channels::Address;
use parking_lot::Mutex;

use super::Fate;
use super::gate::Admitted;
use super::handover;
use crate::handle::Dispatch;

/// What was said longer ago than this, in milliseconds, was said while nobody was there: platforms bring at once what they can, and their
/// clock is not ours.
pub(crate) const LATE_MS: i64 = 5 * 60 * 1000;
/// What was said longer ago than this is not answered any more: the age fence.
const STALE_MS: i64 = 24 * 60 * 60 * 1000;
/// How often people are told that what they said is too old to be answered.
const TOLD_MS: i64 = 60 * 60 * 1000;
/// Why a message in a group is dropped that is too old, where nothing is kept as context.
const STALE: &str = "stale";
/// How a command is handled that comes too late.
const LATE_COMMAND: &str = "late-command";

/// Direct chats of which is remembered whether something old waits in them.
const MOST_CHATS: usize = 10_000;

/// In which direct chats something waits that was too old to be answered: in hardly any. The journal is asked once for each.
#[derive(Debug, Default)]
pub(crate) struct OldWords(Mutex<HashMap<Address, bool>>);

impl OldWords {
    /// Whether the journal is to be asked.
    pub(super) fn may_wait(&self, chat: &Address) -> bool {
        self.0.lock().get(chat).copied().unwrap_or(true)
    }

    /// Something was noted there. It is stored soon: from now on the journal is asked each time.
    fn noted(&self, chat: &Address) {
        self.put(chat, true);
    }

    /// The journal has nothing.
    pub(super) fn none(&self, chat: &Address) {
        if !self.0.lock().contains_key(chat) {
            self.put(chat, false);
        }
    }

    fn put(&self, chat: &Address, waits: bool) {
        let mut chats = self.0.lock();
        // What is forgotten is asked for again.
        if chats.len() >= MOST_CHATS {
            chats.clear();
        }
        chats.insert(chat.clone(), waits);
    }
}

/// How late something is decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lateness {
    /// At once.
    OnTime,
    /// Nobody was there when it was said.
    Late,
    /// So late that its answer would surprise.
    Stale,
}

impl Lateness {
    /// Of what was said at a time and is decided about at another, by an account that hears since a third; Unix milliseconds. What was
    /// said since then was heard at once, however far the clock of the platform is from ours.
    pub(super) fn of(said_at: i64, now: i64, hears_since: Option<i64>) -> Self {
        if hears_since.is_some_and(|since| said_at >= since) {
            return Self::OnTime;
        }
        match now.saturating_sub(said_at) {
            age if age > STALE_MS => Self::Stale,
            age if age > LATE_MS => Self::Late,
            _ => Self::OnTime,
        }
    }
}

/// What becomes of something late that is not to be answered as if it were new; `None` where it is answered.
pub(super) async fn settle(dispatch: &Dispatch, admitted: &Admitted) -> Option<Fate> {
    let now = dispatch.shared().clock.now_ms();
    let age = now.saturating_sub(admitted.event.at);
    let is_stale = match admitted.lateness {
        Lateness::OnTime => return None,
        Lateness::Late => false,
        Lateness::Stale => true,
    };
    if admitted.is_command() {
        let command = admitted.command_text.split_whitespace().next().unwrap_or_default();
        let text = format!(
            "⚙️ {command} was sent {} ago, while I was offline, and was not carried out. Send it again if you still want it.",
            span(age)
        );
        handover::tell(dispatch, admitted, &text).await;
        return Some(Fate::handled(LATE_COMMAND));
    }
    if !is_stale {
        return None;
    }
    if admitted.group.is_some() {
        return Some(if admitted.history == 0 { Fate::dropped(STALE) } else { Fate::Noted });
    }
    let address = admitted.event.address.clone();
    dispatch.shared().old_words.noted(&address);
    let thread = address.thread.as_deref().unwrap_or_default();
    // Said once for all that comes together, also across a restart.
    let id = format!("offline:{}:{}:{thread}:{}", address.account, address.target, now / TOLD_MS);
    let text = "⚠️ I was offline for more than a day. What you wrote before is not answered any more; I read it with your next message.";
    let key = admitted.route.session_key.clone();
    handover::send(dispatch, id, address, Some(key), openclaw_channels::Part::text(text)).await;
    Some(Fate::Noted)
}

/// How long, for people.
fn span(ms: i64) -> String {
    let minutes = ms / 60_000;
    let count = |number: i64, unit: &str| {
        if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
    };
    match minutes {
        0..=119 => count(minutes, "minute"),
        120..=2879 => count(minutes / 60, "hour"),
        _ => count(minutes / 1440, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_asked_until_it_has_nothing_and_again_once_something_is_noted() {
        let at = |target: &str| Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: None,
        };
        let (chat, other) = (at("1"), at("2"));
        let words = OldWords::default();
        assert!(words.may_wait(&chat));
        words.none(&chat);
        assert!(!words.may_wait(&chat) && words.may_wait(&other));
        words.noted(&chat);
        words.none(&chat);
        assert!(words.may_wait(&chat), "it may not have been stored yet");
    }

    #[test]
    fn what_waited_is_late_and_after_a_day_too_old() {
        const MINUTE: i64 = 60_000;
        let rows = [
            (0, Lateness::OnTime),
            (-90 * MINUTE, Lateness::OnTime),
            (5 * MINUTE, Lateness::OnTime),
            (5 * MINUTE + 1, Lateness::Late),
            (1440 * MINUTE, Lateness::Late),
            (1440 * MINUTE + 1, Lateness::Stale),
        ];
        for (age, expect) in rows {
            let (said, now) = (1_000_000_000, 1_000_000_000 + age);
            assert_eq!(Lateness::of(said, now, None), expect, "{age}");
            assert_eq!(Lateness::of(said, now, Some(said + 1)), expect, "{age}");
            assert_eq!(Lateness::of(said, now, Some(said)), Lateness::OnTime, "it was heard: {age}");
        }
        assert_eq!(Lateness::of(i64::MIN, i64::MAX, None), Lateness::Stale);
        let spans = [1, 119, 120, 2879, 2880].map(|minutes| span(minutes * MINUTE));
        assert_eq!(spans, ["1 minute", "119 minutes", "2 hours", "47 hours", "2 days"]);
    }
}
