//! What the agent needs to know about a session from its key: nothing but its kind.

/// Whether the key belongs to a sub-agent session (`agent:<id>:subagent:…`).
pub fn is_subagent(key: &str) -> bool {
    rest(key).split(':').any(|part| part.eq_ignore_ascii_case("subagent"))
}

/// Whether the session is private between the agent and its owner: the agent's main session or a direct chat. Groups,
/// channels, threads, hooks, cron runs, nodes and sub-agents are not (spec `agent-runtime.md` §4.1).
pub fn is_private(key: &str, main_key: &str) -> bool {
    let rest = rest(key);
    if rest.eq_ignore_ascii_case(main_key) || key.eq_ignore_ascii_case(main_key) {
        return true;
    }
    let mut parts = rest.split(':').map(str::to_ascii_lowercase);
    let direct = |part: &str| part == "dm" || part == "direct";
    let shared = |part: &str| {
        matches!(part, "group" | "channel" | "thread" | "topic" | "subagent" | "cron" | "hook" | "node")
    };
    let Some(first) = parts.next() else { return false };
    if shared(&first) || first.starts_with("node-") {
        return false;
    }
    // The kind stands before the peer's id, which may itself contain any word.
    let mut seen_direct = direct(&first);
    for part in parts {
        if !seen_direct && shared(&part) {
            return false;
        }
        if seen_direct && matches!(part.as_str(), "thread" | "topic") {
            return false;
        }
        seen_direct = seen_direct || direct(&part);
    }
    seen_direct
}

/// The key without `agent:<id>:`.
fn rest(key: &str) -> &str {
    let Some(tail) = key.strip_prefix("agent:") else { return key };
    tail.split_once(':').map_or(tail, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_main_session_and_direct_chats_are_private() {
        let rows = [
            ("agent:main:main", true),
            ("main", true),
            ("agent:work:main", true),
            ("agent:main:dm:123", true),
            ("agent:main:telegram:dm:123", true),
            ("agent:main:telegram:direct:123", true),
            ("agent:main:telegram:acc:dm:group", true),
            ("agent:main:telegram:dm:123:thread:9", false),
            ("agent:main:telegram:group:1", false),
            ("agent:main:slack:channel:c1", false),
            ("agent:main:side", false),
            ("agent:main:subagent:x", false),
            ("agent:main:cron:job", false),
            ("agent:main:cron:dm:1", false),
            ("hook:gmail:m1", false),
            ("node-abc", false),
        ];
        for (key, expect) in rows {
            assert_eq!(is_private(key, "main"), expect, "{key}");
        }
    }

    #[test]
    fn sub_agent_keys_are_recognised() {
        assert!(is_subagent("agent:main:subagent:1-2"));
        assert!(!is_subagent("agent:subagent:main"));
        assert!(!is_subagent("agent:main:main"));
    }
}
