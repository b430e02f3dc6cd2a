//! Messages that were sent while the gateway was offline (spec `channels.md` §3.9, §19.3): words
//! are answered and marked, commands are not obeyed, and messages that are too old are told with
//! the next message.

use super::Fate;
use super::gate::Admitted;
use super::handover;
use crate::handle::Dispatch;
use openclaw_commands::{KnownNames, Late, Spoken, first_word};

/// Age in milliseconds at which an arriving message counts as sent while the gateway was offline:
/// platforms bring at once what they can. The tolerance covers differences between their clock and
/// ours.
const LATE_MS: i64 = 5 * 60 * 1000;
/// Age in milliseconds at which an arriving message is not answered any more: the age fence.
const STALE_MS: i64 = 24 * 60 * 60 * 1000;
/// Shortest time in milliseconds between two notices that a message is too old to be answered.
const TOLD_MS: i64 = 60 * 60 * 1000;
/// Reason for dropping a group's message that is too old, if no context is kept for the group.
const STALE: &str = "stale";
/// Name under which a command that comes too late is recorded as handled.
const LATE_COMMAND: &str = "late-command";

/// Lateness with which an event reached the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lateness {
    /// Heard at once.
    OnTime,
    /// Sent while the gateway was offline.
    Late,
    /// Heard so late that an answer would surprise.
    Stale,
}

impl Lateness {
    /// Computes the lateness from the time of sending and the time of arrival, in Unix
    /// milliseconds. Time that a message waits here afterwards does not count, and neither does the
    /// state of its account meanwhile: that is unknown for a machine that slept, or for a platform
    /// that pushes.
    pub(super) fn of(said_at: i64, received_at: i64) -> Self {
        match received_at.saturating_sub(said_at) {
            age if age > STALE_MS => Self::Stale,
            age if age > LATE_MS => Self::Late,
            _ => Self::OnTime,
        }
    }
}

/// Returns the fate of a late message that is not to be answered as if it were new; `None` if it is
/// answered, without the commands in it.
pub(super) async fn settle(dispatch: &Dispatch, admitted: &mut Admitted) -> Option<Fate> {
    if admitted.lateness == Lateness::OnTime {
        return None;
    }
    let now = dispatch.arrivals().clock.now_ms();
    let found = commands_in(dispatch, admitted).await;
    if let Some(late) = found.as_ref().filter(|late| is_nothing_else(admitted, late)) {
        let text = not_carried_out(&late.commands, now.saturating_sub(admitted.event.at), Rest::Nothing);
        handover::tell(dispatch, admitted, &text).await;
        return Some(Fate::handled(LATE_COMMAND));
    }
    if admitted.lateness == Lateness::Stale {
        return Some(too_old(dispatch, admitted, now).await);
    }
    if let Some(late) = found {
        if !late.commands.is_empty() {
            let text = not_carried_out(&late.commands, now.saturating_sub(admitted.event.at), Rest::Answered);
            handover::tell(dispatch, admitted, &text).await;
        }
        admitted.reword(late.words);
    }
    admitted.obeys_nothing();
    None
}

/// Returns the commands in a late message, and the rest of its text; `None` if it has no commands
/// that anybody would obey.
async fn commands_in(dispatch: &Dispatch, admitted: &Admitted) -> Option<Late> {
    if !admitted.rights.may_command {
        return None;
    }
    if admitted.press().is_some() {
        return Some(Late { commands: vec![first_word(&admitted.command.text)], words: String::new() });
    }
    let spoken = admitted.spoken(dispatch.arrivals().settings.now().config.commands.text)?;
    // A file is answered without the command below it.
    let spoken = Spoken { attached: false, ..spoken };
    let (key, agent) = (&admitted.route.session_key, &admitted.route.agent_id);
    let read = |names: KnownNames<'_>| openclaw_commands::without_commands(spoken, names);
    let late = dispatch.arrivals().decider.read_words(key, agent, spoken.text, read).await;
    (late.words != spoken.text).then_some(late)
}

fn is_nothing_else(admitted: &Admitted, late: &Late) -> bool {
    let has_more =
        admitted.message().is_some_and(|message| !message.media.is_empty() || message.location.is_some());
    !late.commands.is_empty() && late.words.trim().is_empty() && !has_more
}

/// Notes a message that is too old, so that it is told with the next one.
async fn too_old(dispatch: &Dispatch, admitted: &Admitted, now: i64) -> Fate {
    if admitted.group.is_some() {
        return if admitted.history == 0 { Fate::dropped(STALE) } else { Fate::Noted };
    }
    let address = admitted.event.address.clone();
    dispatch.chats().old_words.noted(&address);
    let thread = address.thread.as_deref().unwrap_or_default();
    // Said once for all that comes together, also across a restart.
    let id = format!("offline:{}:{}:{thread}:{}", address.account, address.target, now / TOLD_MS);
    let text = "⚠️ I was offline for more than a day. What you wrote before is not answered any more; I read it with your next message.";
    let key = admitted.route.session_key.clone();
    handover::send(dispatch, id, address, Some(key), openclaw_channels::Part::text(text)).await;
    Fate::Noted
}

/// Content of a message besides its commands.
#[derive(Clone, Copy)]
enum Rest {
    Nothing,
    Answered,
}

/// Text told to the sender of late commands.
fn not_carried_out(commands: &[String], age: i64, rest: Rest) -> String {
    let was = if commands.len() == 1 { "was" } else { "were" };
    let (list, ago) = (commands.join(", "), span(age));
    let them = if commands.len() == 1 { "it" } else { "them" };
    let rest = match rest {
        Rest::Nothing => "",
        Rest::Answered => " I answer the rest.",
    };
    format!(
        "⚙️ {list} {was} sent {ago} ago, while I was offline, and {was} not carried out.{rest} Send {them} again if you still want {them}."
    )
}

/// Duration in words, for people.
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
            let said = 1_000_000_000;
            assert_eq!(Lateness::of(said, said + age), expect, "{age}");
        }
        assert_eq!(Lateness::of(i64::MIN, i64::MAX), Lateness::Stale);
        let spans = [1, 119, 120, 2879, 2880].map(|minutes| span(minutes * MINUTE));
        assert_eq!(spans, ["1 minute", "119 minutes", "2 hours", "47 hours", "2 days"]);
    }

    #[test]
    fn what_was_not_carried_out_is_told() {
        let told = |commands: &[&str], rest| {
            let commands: Vec<String> = commands.iter().map(|one| (*one).to_owned()).collect();
            not_carried_out(&commands, 3_600_000, rest)
        };
        assert_eq!(
            told(&["/new"], Rest::Nothing),
            "⚙️ /new was sent 60 minutes ago, while I was offline, and was not carried out. Send it again if you still want it."
        );
        assert_eq!(
            told(&["/think", "/status"], Rest::Answered),
            "⚙️ /think, /status were sent 60 minutes ago, while I was offline, and were not carried out. I answer the rest. Send them again if \
             you still want them."
        );
    }
}
