//! Text that a device signs (spec `gateway-protocol.md` §3.5). Keys and signatures themselves are
//! the gateway's.

/// The parts of a device's proof.
#[derive(Debug, Clone, Copy)]
pub struct SigningPayload<'a> {
    /// Device id.
    pub device_id: &'a str,
    /// `client.id`
    pub client_id: &'a str,
    /// `client.mode`
    pub client_mode: &'a str,
    /// Effective role.
    pub role: &'a str,
    /// Scopes as sent, before any default.
    pub scopes: &'a [String],
    /// Unix milliseconds.
    pub signed_at_ms: u64,
    /// `auth.token` as sent.
    pub token: Option<&'a str>,
    /// The challenge's nonce; decides the version.
    pub nonce: Option<&'a str>,
}

/// The text that is signed: version 2 with a nonce, version 1 without.
pub fn signing_payload(parts: &SigningPayload<'_>) -> String {
    let version = if parts.nonce.is_some() { "v2" } else { "v1" };
    let signed_at = parts.signed_at_ms.to_string();
    let scopes = parts.scopes.join(",");
    let mut fields = vec![
        version,
        parts.device_id,
        parts.client_id,
        parts.client_mode,
        parts.role,
        &scopes,
        &signed_at,
        parts.token.unwrap_or_default(),
    ];
    fields.extend(parts.nonce);
    fields.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of spec §3.5.
    #[test]
    fn the_signed_text_is_that_of_the_vectors() {
        let id = "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e";
        let text = |client: (&str, &str, &str), scopes: &[&str], token, nonce| {
            let scopes: Vec<String> = scopes.iter().map(|s| (*s).to_owned()).collect();
            signing_payload(&SigningPayload {
                device_id: id,
                client_id: client.0,
                client_mode: client.1,
                role: client.2,
                scopes: &scopes,
                signed_at_ms: 1_770_000_000_000,
                token,
                nonce,
            })
        };
        let cli = ("cli", "cli", "operator");
        assert_eq!(
            text(
                cli,
                &["operator.admin", "operator.approvals", "operator.pairing"],
                Some("tok-123"),
                Some("11111111-2222-4333-8444-555555555555"),
            ),
            format!(
                "v2|{id}|cli|cli|operator|operator.admin,operator.approvals,operator.pairing|1770000000000|tok-123|\
                 11111111-2222-4333-8444-555555555555"
            )
        );
        assert_eq!(
            text(cli, &["operator.admin"], None, None),
            format!("v1|{id}|cli|cli|operator|operator.admin|1770000000000|")
        );
        assert_eq!(
            text(("node-host", "node", "node"), &[], None, Some("n-1")),
            format!("v2|{id}|node-host|node|node||1770000000000||n-1")
        );
    }
}
