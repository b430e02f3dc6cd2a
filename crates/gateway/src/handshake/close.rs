//! WebSocket close codes and reasons (spec `gateway-protocol.md` §3.10).

/// A close frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The WebSocket close code.
    pub code: u16,
    /// Reason, at most 120 bytes.
    pub reason: String,
}

/// Stands for a close frame that says nothing.
pub(crate) const NO_STATUS: u16 = 1005;

/// Reasons are cut to this many bytes of UTF-8, whole characters only (§16.11).
const MAX_REASON_BYTES: usize = 120;

impl Closing {
    /// 1001: the gateway stops (KB-39).
    pub fn stopping() -> Self {
        Self::new(1001, "gateway stopping")
    }

    /// 1012: the gateway stops and starts again at once. OpenClaw's pages show no error then.
    pub fn restarting() -> Self {
        Self::new(1012, "service restart")
    }

    /// 1002: no common protocol version.
    pub fn protocol_mismatch() -> Self {
        Self::new(1002, "protocol mismatch")
    }

    /// 1008: the client broke a rule.
    pub fn policy(reason: &str) -> Self {
        Self::new(1008, reason)
    }

    /// 1009: the frame was too big.
    pub fn too_big() -> Self {
        Self::new(1009, "")
    }

    /// Reply to a client that closes the connection itself: the same code and reason.
    pub(crate) fn answer(code: Option<u16>, reason: &str) -> Self {
        Self::new(code.unwrap_or(NO_STATUS), reason)
    }

    fn new(code: u16, reason: &str) -> Self {
        Self { code, reason: truncate(reason).to_owned() }
    }
}

fn truncate(reason: &str) -> &str {
    reason.get(..reason.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_cut_to_120_bytes_at_a_character() {
        let recorded = "invalid connect params: at root: unexpected property 'bogus'; at /client/id: must be equal to \
                        constant; at /client/id: must match a schema in anyOf";
        let cut = "invalid connect params: at root: unexpected property 'bogus'; at /client/id: must be equal to \
                   constant; at /client/id: m";
        let accents = "é".repeat(61);
        let odd = format!("x{accents}");
        let rows =
            [("", ""), (recorded, cut), (accents.as_str(), &accents[..120]), (odd.as_str(), &odd[..119])];
        for (reason, expect) in rows {
            assert_eq!(Closing::policy(reason).reason, expect);
        }
    }
}
