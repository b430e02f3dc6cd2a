//! Usage footer: the line below an answer that says what it used (`/usage`, spec `messages.md`
//! §10). Pure.
//!
//! Only answers to a chat platform have it. WebChat gets none, as with OpenClaw 2026.2.9: there the
//! answer is what the model streamed.

use openclaw_agent::ReplyPayload;
use openclaw_agent::text::silent::is_silent;
use openclaw_models::usage::{dollars, short_count};
use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Usage;
use openclaw_sessions::entry::ResponseUsage;

/// Returns the footer of an answer: `Usage: 1.2k in / 300 out · est $0.02`, with ` · session <key>`
/// in the full form. `None` if it is off or the provider told no tokens.
///
/// `auth_mode` is the authentication of the call
/// ([`openclaw_models::credentials::AuthLabel::mode`]): the price of a login's tokens is nobody's
/// bill, so only calls with an API key show it, if a price is known.
pub fn footer(
    mode: ResponseUsage,
    usage: &Usage,
    auth_mode: &str,
    session_key: &SessionKey,
) -> Option<String> {
    let session = match mode {
        ResponseUsage::Off => return None,
        ResponseUsage::Tokens => String::new(),
        ResponseUsage::Full => format!(" · session {session_key}"),
    };
    if usage.total_tokens == 0 {
        return None;
    }
    let is_paid = matches!(auth_mode, "api-key" | "mixed") && usage.cost.total > 0.0;
    let cost = if is_paid { format!(" · est {}", dollars(usage.cost.total)) } else { String::new() };
    let (input, output) = (short_count(usage.input), short_count(usage.output));
    Some(format!("Usage: {input} in / {output} out{cost}{session}"))
}

/// Adds a footer to the last payload that has a text, on a line of its own; without one it becomes a text of its own.
pub fn append(payloads: &mut Vec<ReplyPayload>, footer: &str) {
    match payloads.iter_mut().rev().find(|payload| !payload.text.is_empty() && !is_silent(&payload.text)) {
        Some(ReplyPayload { text, .. }) => {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(footer);
        }
        None => payloads.push(ReplyPayload { text: footer.to_owned(), ..ReplyPayload::default() }),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::Cost;

    use openclaw_protocol::AgentId;

    use super::*;

    #[test]
    fn a_footer_says_what_was_asked_for() {
        use ResponseUsage::{Full, Off, Tokens};
        let usage = |input: u64, output: u64, total: f64| Usage {
            input,
            output,
            total_tokens: input + output,
            cost: Cost { total, ..Cost::default() },
            ..Usage::default()
        };
        let rows = [
            (Off, usage(1200, 300, 0.02), "api-key", None),
            (Tokens, usage(1200, 300, 0.02), "api-key", Some("Usage: 1.2k in / 300 out · est $0.02")),
            (Tokens, usage(1200, 300, 0.02), "oauth", Some("Usage: 1.2k in / 300 out")),
            (Tokens, usage(1200, 300, 0.02), "token", Some("Usage: 1.2k in / 300 out")),
            (Tokens, usage(1200, 300, 0.02), "mixed", Some("Usage: 1.2k in / 300 out · est $0.02")),
            (Tokens, usage(32_000, 0, 0.0), "api-key", Some("Usage: 32k in / 0 out")),
            (Tokens, usage(0, 0, 0.0), "api-key", None),
            (
                Full,
                usage(12_345, 300, 0.0042),
                "api-key",
                Some("Usage: 12k in / 300 out · est $0.0042 · session agent:main:main"),
            ),
            (Full, usage(1, 2, 0.0), "oauth", Some("Usage: 1 in / 2 out · session agent:main:main")),
        ];
        for (mode, usage, auth, expect) in rows {
            assert_eq!(
                footer(mode, &usage, auth, &SessionKey::main(&AgentId::default(), "main")).as_deref(),
                expect,
                "{mode:?} {auth} {usage:?}"
            );
        }
    }

    #[test]
    fn it_stands_below_the_last_text() {
        let rows: [(&[&str], &[&str]); 5] = [
            (&["a", "b"], &["a", "b\nF"]),
            (&["a", ""], &["a\nF", ""]),
            (&["a\n"], &["a\nF"]),
            (&[""], &["", "F"]),
            (&[], &["F"]),
        ];
        for (before, after) in rows {
            let payload = |text: &&str| ReplyPayload { text: (*text).to_owned(), ..ReplyPayload::default() };
            let mut payloads: Vec<ReplyPayload> = before.iter().map(payload).collect();
            append(&mut payloads, "F");
            let texts: Vec<&str> = payloads.iter().map(|payload| payload.text.as_str()).collect();
            assert_eq!(texts, after, "{before:?}");
        }
    }
}
