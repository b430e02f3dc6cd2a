//! The points at which hooks are asked or told, besides events (spec `agent-runtime.md` §8.4).

/// A hook point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookPoint {
    /// A run is about to begin: context may be put before its prompt, its system prompt replaced.
    BeforeAgentStart,
    /// A run has ended.
    AgentEnd,
    /// A conversation is about to be summarised.
    BeforeCompaction,
    /// A compaction has finished.
    AfterCompaction,
    /// A message has come.
    MessageReceived,
    /// A message is about to be sent: it may be changed or kept back.
    MessageSending,
    /// A message was sent, or sending failed.
    MessageSent,
    /// A tool is about to be called: its arguments may be changed, the call refused.
    BeforeToolCall,
    /// A tool was called.
    AfterToolCall,
    /// A tool's result is about to be written into the transcript: it may be changed.
    ToolResultPersist,
    /// A conversation begins.
    SessionStart,
    /// A conversation has ended.
    SessionEnd,
    /// The gateway takes messages.
    GatewayStart,
    /// The gateway stops.
    GatewayStop,
}

/// Every point with its name.
pub const POINTS: [(HookPoint, &str); 14] = [
    (HookPoint::BeforeAgentStart, "before_agent_start"),
    (HookPoint::AgentEnd, "agent_end"),
    (HookPoint::BeforeCompaction, "before_compaction"),
    (HookPoint::AfterCompaction, "after_compaction"),
    (HookPoint::MessageReceived, "message_received"),
    (HookPoint::MessageSending, "message_sending"),
    (HookPoint::MessageSent, "message_sent"),
    (HookPoint::BeforeToolCall, "before_tool_call"),
    (HookPoint::AfterToolCall, "after_tool_call"),
    (HookPoint::ToolResultPersist, "tool_result_persist"),
    (HookPoint::SessionStart, "session_start"),
    (HookPoint::SessionEnd, "session_end"),
    (HookPoint::GatewayStart, "gateway_start"),
    (HookPoint::GatewayStop, "gateway_stop"),
];

impl HookPoint {
    /// The point of a name.
    pub fn parse(name: &str) -> Option<Self> {
        POINTS.iter().find(|(_, known)| *known == name).map(|(point, _)| *point)
    }

    /// Name of the hook point as handlers know it.
    pub fn as_str(self) -> &'static str {
        POINTS.iter().find(|(point, _)| *point == self).map_or("", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_one_name() {
        for (at, (point, name)) in POINTS.into_iter().enumerate() {
            assert_eq!((HookPoint::parse(name), point.as_str(), point as usize), (Some(point), name, at));
        }
        assert_eq!(HookPoint::parse("before_lunch"), None);
    }
}
