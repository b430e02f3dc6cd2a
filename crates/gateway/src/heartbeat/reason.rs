//! Reasons for heartbeats.

use std::fmt;

use openclaw_dispatch::BeatPurpose;

/// Reason for a heartbeat; its text is the `reason` of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeartbeatReason {
    /// The interval has passed.
    Interval,
    /// Asked for by a person or a program.
    Wake,
    /// A command in the background has ended.
    ExecEvent,
    /// A scheduled job of this id is due.
    #[cfg_attr(not(test), expect(dead_code, reason = "there is no scheduler of jobs yet"))]
    Cron(String),
}

impl fmt::Display for HeartbeatReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval => f.write_str("interval"),
            Self::Wake => f.write_str("wake"),
            Self::ExecEvent => f.write_str("exec-event"),
            Self::Cron(job) => write!(f, "cron:{job}"),
        }
    }
}

/// Prompt to pass on the output of a command that has ended.
const RELAY_COMMAND: &str = "A command you started in the background has ended; what it printed is in the system messages \
                             above. Tell the user what came of it: its output where it succeeded, what went wrong where it failed.";
/// Prompt to pass on a reminder.
const RELAY_REMINDER: &str = "A scheduled reminder is due; its text is in the system messages above. Tell it to the user in a \
                              helpful and friendly way.";

/// True if a line reports the end of a command (spec `tools.md` §3.2, §3.3).
fn tells_of_command(line: &str) -> bool {
    ["Exec finished (", "Exec completed (", "Exec failed ("].iter().any(|start| line.contains(start))
}

impl HeartbeatReason {
    /// True if the beat is made whatever the hour and the checklist say: somebody waits for its
    /// content.
    pub(super) fn is_pressing(&self) -> bool {
        match self {
            Self::ExecEvent | Self::Cron(_) => true,
            Self::Interval | Self::Wake => false,
        }
    }

    /// Prompt for the agent and purpose of the beat, given the lines that wait to be told to it.
    pub(super) fn question<'a>(&self, waiting: &[String], prompt: &'a str) -> (&'a str, BeatPurpose) {
        match self {
            Self::ExecEvent if waiting.iter().any(|line| tells_of_command(line)) => {
                (RELAY_COMMAND, BeatPurpose::RelayCommand)
            }
            Self::Cron(_) if !waiting.is_empty() => (RELAY_REMINDER, BeatPurpose::RelayReminder),
            Self::ExecEvent | Self::Cron(_) | Self::Interval | Self::Wake => (prompt, BeatPurpose::Check),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_depends_on_what_waits() {
        let finished = vec!["Exec finished (node=n id=1, code 0)".to_owned()];
        let other = vec!["take the bins out".to_owned()];
        let rows = [
            (HeartbeatReason::Interval, &finished, "p", BeatPurpose::Check),
            (HeartbeatReason::Wake, &other, "p", BeatPurpose::Check),
            (HeartbeatReason::ExecEvent, &finished, RELAY_COMMAND, BeatPurpose::RelayCommand),
            (HeartbeatReason::ExecEvent, &other, "p", BeatPurpose::Check),
            (HeartbeatReason::Cron("j".to_owned()), &other, RELAY_REMINDER, BeatPurpose::RelayReminder),
            (HeartbeatReason::Cron("j".to_owned()), &Vec::new(), "p", BeatPurpose::Check),
        ];
        for (reason, waiting, text, purpose) in rows {
            assert_eq!(reason.question(waiting, "p"), (text, purpose), "{reason}");
        }
        assert_eq!(HeartbeatReason::Cron("j".to_owned()).to_string(), "cron:j");
    }
}
