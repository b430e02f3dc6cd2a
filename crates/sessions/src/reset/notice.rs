//! Notice to people after they started a conversation anew (spec `sessions.md` §5.5).

/// The notice for the chat a reset came from, sent before the answer. Chats that can't be delivered to (the web chat) get
/// none: there the new conversation is seen at once.
pub fn notice(model: &str, default_model: &str) -> String {
    let default = if model == default_model { String::new() } else { format!(" (default: {default_model})") };
    format!("✅ New session started · model: {model}{default}")
}
