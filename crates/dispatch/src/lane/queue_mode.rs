//! How a message that arrives during a run is treated (spec `queue.md` §2).

/// A queue mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum QueueMode {
    /// Wait, and be merged with others that wait where their route is the same. WebChat messages have no deliverable
    /// route and are never merged (spec `queue.md` §4.2), so that for them this is [`QueueMode::Followup`].
    #[default]
    Collect,
    /// Wait for a run of its own.
    Followup,
    /// Go into the run under way. A message the run did not take becomes a follow-up.
    Steer,
    /// In the reference: go into the run and be asked again after it. Asking twice is what we never do; the message is
    /// steered, and kept for a run of its own if the run did not take it.
    SteerBacklog,
    /// Stop what is under way and take its place.
    Interrupt,
}

impl QueueMode {
    /// Reads a stored or configured mode, synonyms included; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim().to_lowercase().as_str() {
            "collect" | "coalesce" => Some(Self::Collect),
            "followup" | "followups" | "follow-up" | "follow-ups" => Some(Self::Followup),
            "steer" | "steering" | "queue" | "queued" => Some(Self::Steer),
            "steer-backlog" | "steer+backlog" | "steer_backlog" => Some(Self::SteerBacklog),
            "interrupt" | "interrupts" | "abort" => Some(Self::Interrupt),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synonym_of_the_reference_is_read() {
        let cases = [
            ("collect", Some(QueueMode::Collect)),
            ("coalesce", Some(QueueMode::Collect)),
            (" FollowUps ", Some(QueueMode::Followup)),
            ("follow-ups", Some(QueueMode::Followup)),
            ("queue", Some(QueueMode::Steer)),
            ("queued", Some(QueueMode::Steer)),
            ("steering", Some(QueueMode::Steer)),
            ("steer+backlog", Some(QueueMode::SteerBacklog)),
            ("steer_backlog", Some(QueueMode::SteerBacklog)),
            ("interrupts", Some(QueueMode::Interrupt)),
            ("abort", Some(QueueMode::Interrupt)),
            ("bogus", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(QueueMode::parse(text), expected, "{text}");
        }
    }
}
