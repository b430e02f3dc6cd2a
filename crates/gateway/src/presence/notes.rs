//! Notes for the agent about a `system-event`.

use openclaw_protocol::params::system::PresenceEntry;

use super::registry::PresenceChange;

/// The line to queue for the main session, if the report is worth one: a plain note always is, a beacon only when
/// something a person would care about has changed. `is_same_device` tells whether the last line queued was about the
/// same device, so that its name need not be said again.
pub fn note_of(text: &str, report: &PresenceChange, is_same_device: bool) -> Option<String> {
    if !text.starts_with("Node:") {
        return Some(text.to_owned());
    }
    let empty = PresenceEntry::default();
    let before = report.before.as_ref().unwrap_or(&empty);
    let after = &report.after;
    let host_or_ip = before.host != after.host || before.ip != after.ip;
    let version = changed(&before.version, &after.version);
    let mode = changed(&before.mode, &after.mode);
    let reason = changed(&before.reason, &after.reason).filter(|reason| !is_routine(reason));
    if !host_or_ip && version.is_none() && mode.is_none() && reason.is_none() {
        return None;
    }
    let name = (host_or_ip || !is_same_device).then(|| {
        let host = after.host.as_deref().unwrap_or("Unknown");
        after.ip.as_ref().map_or_else(|| format!("Node: {host}"), |ip| format!("Node: {host} ({ip})"))
    });
    let parts = [
        name,
        version.map(|version| format!("app {version}")),
        mode.map(|mode| format!("mode {mode}")),
        reason.map(|reason| format!("reason {reason}")),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

fn changed<'a>(before: &Option<String>, after: &'a Option<String>) -> Option<&'a str> {
    after.as_deref().filter(|_| before != after)
}

fn is_routine(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    reason.starts_with("periodic") || reason == "heartbeat"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presence::PresenceRegistry;
    use openclaw_protocol::params::system::SystemEventParams;

    /// Story told line by line, with the queued notes after each line.
    #[test]
    fn beacons_are_told_only_when_something_changes() {
        let beacon = |ip: &str, version: &str, seconds: u32, reason: &str| {
            format!(
                "Node: Mac ({ip}) · app {version} · last input {seconds}s ago · mode ui · reason {reason}"
            )
        };
        let rows = [
            (
                beacon("192.0.2.7", "1.2.3", 12, "launch"),
                Some("Node: Mac (192.0.2.7) · app 1.2.3 · mode ui · reason launch"),
            ),
            (beacon("192.0.2.7", "1.2.3", 3, "periodic"), None),
            (beacon("192.0.2.7", "1.2.4", 3, "heartbeat"), Some("app 1.2.4")),
            (beacon("192.0.2.8", "1.2.4", 3, "connect"), Some("Node: Mac (192.0.2.8) · reason connect")),
            ("plain operator note".to_owned(), Some("plain operator note")),
        ];
        let mut registry = PresenceRegistry::new(PresenceEntry::default());
        for (text, expect) in rows {
            let report = registry.report(&SystemEventParams::default(), &text, 0);
            assert_eq!(note_of(&text, &report, true).as_deref(), expect, "{text}");
        }
        let text = beacon("192.0.2.8", "1.2.5", 3, "connect");
        let report = registry.report(&SystemEventParams::default(), &text, 0);
        assert_eq!(note_of(&text, &report, false).as_deref(), Some("Node: Mac (192.0.2.8) · app 1.2.5"));
    }
}
