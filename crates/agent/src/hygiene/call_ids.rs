//! Tool call ids for providers that refuse ours (spec `agent-runtime.md` §9.3). One map a request, so that calls and
//! results agree.

use std::collections::{HashMap, HashSet};

use openclaw_protocol::message::{Block, Message};
use sha1::{Digest, Sha1};

/// The form ids are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Letters and digits, at most 40 (Google).
    Strict,
    /// Exactly nine letters and digits (Mistral).
    Strict9,
}

/// Rewrites the ids of all calls and results.
pub fn rewrite(messages: &mut [Message], form: Form) {
    let mut map = IdMap { form, known: HashMap::new(), used: HashSet::new() };
    for message in messages {
        match message {
            Message::Assistant(assistant) => {
                for block in &mut assistant.content {
                    if let Block::ToolCall(call) = block {
                        call.id = map.id(&call.id);
                    }
                }
            }
            Message::ToolResult(result) => result.tool_call_id = map.id(&result.tool_call_id),
            Message::User(_) => {}
        }
    }
}

struct IdMap {
    form: Form,
    known: HashMap<String, String>,
    used: HashSet<String>,
}

impl IdMap {
    fn id(&mut self, original: &str) -> String {
        if let Some(known) = self.known.get(original) {
            return known.clone();
        }
        let base = match self.form {
            Form::Strict => strict(original),
            Form::Strict9 => strict9(original),
        };
        let id = if self.used.contains(&base) { self.other(original, &base) } else { base };
        self.used.insert(id.clone());
        self.known.insert(original.to_owned(), id.clone());
        id
    }

    /// An id for one whose plain form is taken.
    fn other(&self, original: &str, base: &str) -> String {
        let free = |id: &String| !self.used.contains(id);
        match self.form {
            Form::Strict => {
                let hashed = format!("{}{}", head(base, 32), head(&sha1_hex(original), 8));
                let numbered = (2_u64..).map(|n| {
                    let suffix = format!("x{n}");
                    format!("{}{suffix}", head(&hashed, 40 - suffix.len()))
                });
                std::iter::once(hashed.clone()).chain(numbered).find(free).unwrap_or(hashed)
            }
            Form::Strict9 => {
                let mut hashes = (0_u64..).map(|i| head(&sha1_hex(&format!("{original}:{i}")), 9).to_owned());
                hashes.find(free).unwrap_or_default()
            }
        }
    }
}

fn strict(id: &str) -> String {
    if id.is_empty() {
        return "defaulttoolid".to_owned();
    }
    let plain = alphanumeric(id);
    if plain.is_empty() { "sanitizedtoolid".to_owned() } else { head(&plain, 40).to_owned() }
}

fn strict9(id: &str) -> String {
    if id.is_empty() {
        return "defaultid".to_owned();
    }
    let plain = alphanumeric(id);
    match plain.len() {
        0 => head(&sha1_hex("sanitized"), 9).to_owned(),
        1..9 => head(&sha1_hex(&plain), 9).to_owned(),
        _ => head(&plain, 9).to_owned(),
    }
}

fn alphanumeric(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The first `len` bytes of ASCII text.
fn head(text: &str, len: usize) -> &str {
    text.get(..len).unwrap_or(text)
}

fn sha1_hex(text: &str) -> String {
    Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(form: Form, originals: &[&str]) -> Vec<String> {
        let mut map = IdMap { form, known: HashMap::new(), used: HashSet::new() };
        originals.iter().map(|id| map.id(id)).collect()
    }

    /// Vectors of spec `agent-runtime.md` §9.3.
    #[test]
    fn ids_are_rewritten_as_the_reference_does() {
        let long_a = format!("call_{}", "a".repeat(60));
        let long_b = format!("call_{}b", "a".repeat(59));
        let cut = format!("call{}", "a".repeat(36));
        let hashed = format!("call{}9ec6fdaa", "a".repeat(28));
        let rows: [(Form, &[&str], &[&str]); 9] = [
            (Form::Strict, &["call_1"], &["call1"]),
            (Form::Strict, &["whatsapp_login_1768799841527_1"], &["whatsapplogin17687998415271"]),
            (
                Form::Strict,
                &["call_a|b", "call_a:b", "call_a-b"],
                &["callab", "callab520e20af", "callab6b827b64"],
            ),
            (Form::Strict, &[&long_a, &long_b], &[&cut, &hashed]),
            (Form::Strict, &["___", ""], &["sanitizedtoolid", "defaulttoolid"]),
            (Form::Strict9, &["call_abc|item:123", "call_abc|item:456"], &["callabcit", "25ebc8b9a"]),
            (Form::Strict9, &["abc", "__"], &["a9993e364", "7b757a23b"]),
            (Form::Strict9, &["toolu_01ABCDEF", "toolu_01ABCDEG"], &["toolu01AB", "98c28f0a4"]),
            (Form::Strict9, &["", "x", "x"], &["defaultid", "11f6ad8ec", "11f6ad8ec"]),
        ];
        for (form, originals, expect) in rows {
            assert_eq!(ids(form, originals), expect, "{originals:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn different_ids_stay_different_and_fit(originals in proptest::collection::hash_set("[ab_|]{0,4}", 0..40)) {
            let originals: Vec<&str> = originals.iter().map(String::as_str).collect();
            for (form, max) in [(Form::Strict, 40), (Form::Strict9, 9)] {
                let out = ids(form, &originals);
                let unique: HashSet<&String> = out.iter().collect();
                proptest::prop_assert_eq!(unique.len(), originals.len());
                proptest::prop_assert!(out.iter().all(|id| !id.is_empty() && id.len() <= max && id.chars().all(|c| c.is_ascii_alphanumeric())));
            }
        }
    }
}
