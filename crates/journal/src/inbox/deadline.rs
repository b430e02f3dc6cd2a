//! Deadline of a `chat.send` (spec `gateway-protocol.md` §6.4).

/// Time added to what the client or the configuration grants, in milliseconds.
const GRACE_MS: u64 = 60_000;
/// Earliest deadline, in milliseconds.
const SOONEST_MS: u64 = 2 * 60_000;
/// Latest deadline, in milliseconds.
const LATEST_MS: u64 = 24 * 60 * 60_000;

/// Milliseconds from acceptance until the run is stopped with reason `timeout`. `asked_ms` is the client's, where 0 means
/// the configured one; `configured_ms` absent means that runs have no limit.
pub(super) fn chat_deadline_ms(asked_ms: Option<u64>, configured_ms: Option<u64>) -> u64 {
    let granted = asked_ms.filter(|ms| *ms > 0).or(configured_ms).unwrap_or(LATEST_MS);
    granted.saturating_add(GRACE_MS).clamp(SOONEST_MS, LATEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_grace_and_bounds() {
        const DAY: u64 = 86_400_000;
        let cases = [
            (None, Some(600_000), 660_000),
            (Some(0), Some(600_000), 660_000),
            (Some(300_000), Some(600_000), 360_000),
            (Some(1), Some(600_000), 120_000),
            (Some(u64::MAX), Some(600_000), DAY),
            (None, None, DAY),
        ];
        for (asked, configured, expected) in cases {
            assert_eq!(chat_deadline_ms(asked, configured), expected, "{asked:?} {configured:?}");
        }
    }
}
