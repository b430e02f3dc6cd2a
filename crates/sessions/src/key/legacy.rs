//! Rows written by old versions under other keys (spec `sessions.md` §1.6).

use openclaw_protocol::AgentId;
use openclaw_protocol::session_key::trimmed;

use super::{KeyError, KeyRules, KeyShape, SessionKey};

/// The canonical key of a stored row of `agent`'s store, whatever version wrote it.
pub fn canonicalize(raw: &str, agent: &AgentId, rules: &KeyRules) -> Result<SessionKey, KeyError> {
    let text = trimmed(raw)?;
    if KeyShape::of(text) != KeyShape::LegacyOrAlias {
        return rules.canonical_for(text, agent);
    }
    let lower = text.to_lowercase();
    let named = match lower.strip_prefix("group:") {
        Some("") => return Err(KeyError::Malformed(text.to_owned())),
        Some(id) if id.ends_with("@g.us") => format!("whatsapp:group:{id}"),
        Some(id) => format!("unknown:group:{id}"),
        None => whatsapp_group(&lower).unwrap_or(lower),
    };
    rules.canonical_for(&named, agent)
}

/// `<id>@g.us` and `whatsapp:<id>@g.us` name a WhatsApp group.
fn whatsapp_group(lower: &str) -> Option<String> {
    if !lower.ends_with("@g.us") {
        return None;
    }
    let bare = lower.strip_prefix("whatsapp:").unwrap_or(lower);
    let bare = bare.strip_prefix("group:").unwrap_or(bare);
    (!bare.contains(':')).then(|| format!("whatsapp:group:{bare}"))
}
