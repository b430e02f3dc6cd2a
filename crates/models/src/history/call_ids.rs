//! Tool call ids as each provider wants them (spec `models.md` §3.2, `agent-runtime.md` §9.3).

use std::collections::{HashMap, HashSet};

use sha1::{Digest, Sha1};

/// The id of a call that has none, where its rule does not say.
const NO_ID: &str = "call";

/// Form of tool call ids that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdRule {
    /// Letters, digits, `_` and `-`, up to 64.
    Anthropic,
    /// Chat Completions: of `call|item` the call part, cut to 40; otherwise as it is.
    Completions,
    /// Chat Completions at OpenAI itself: cut to 40 in any case.
    CompletionsOpenAi,
    /// Exactly nine alphanumerics, short ones filled up.
    Mistral,
    /// `call|item`: letters, digits, `_` and `-`, up to 64 each, the item beginning with `fc`.
    Responses,
    /// Letters and digits, at most 40 (Google). Ids of the model's own calls are rewritten too.
    Strict,
    /// Exactly nine letters and digits, short ones hashed (Mistral's models). Ids of the model's own calls are rewritten too.
    Strict9,
}

impl IdRule {
    /// Returns true if the ids of the model's own calls are kept.
    pub(super) fn keeps_own(self) -> bool {
        !matches!(self, Self::Strict | Self::Strict9)
    }

    /// True for an id that a model's own call may keep. Its server has made it, and takes it back; but it may have made none, or have
    /// been another one under the same name.
    pub(super) fn takes(self, id: &str) -> bool {
        match self {
            Self::Anthropic => !id.is_empty() && plain(id, 64) == id,
            Self::CompletionsOpenAi => (1..=40).contains(&id.chars().count()),
            Self::Responses => !id.is_empty() && !id.starts_with('|'),
            Self::Completions | Self::Mistral | Self::Strict | Self::Strict9 => !id.is_empty(),
        }
    }

    /// The id under this rule.
    fn apply(self, id: &str) -> String {
        match self {
            Self::Anthropic => plain(id, 64),
            Self::Completions => match id.split_once('|') {
                Some((call, _)) => plain(call, 40),
                None => id.to_owned(),
            },
            Self::CompletionsOpenAi => match id.split_once('|') {
                Some((call, _)) => plain(call, 40),
                None => id.chars().take(40).collect(),
            },
            Self::Mistral => {
                let kept = id.chars().filter(char::is_ascii_alphanumeric);
                kept.chain("ABCDEFGHI".chars()).take(9).collect()
            }
            Self::Responses => match id.split_once('|') {
                Some((call, item)) => {
                    let prefix = if item.starts_with("fc") { "" } else { "fc_" };
                    let item = plain(&format!("{prefix}{item}"), 64);
                    format!("{}|{}", plain(call, 64).trim_end_matches('_'), item.trim_end_matches('_'))
                }
                None => plain(id, 64),
            },
            Self::Strict if id.is_empty() => "defaulttoolid".to_owned(),
            Self::Strict => match alphanumeric(id) {
                plain if plain.is_empty() => "sanitizedtoolid".to_owned(),
                plain => head(&plain, 40).to_owned(),
            },
            Self::Strict9 if id.is_empty() => "defaultid".to_owned(),
            Self::Strict9 => {
                let plain = alphanumeric(id);
                match plain.len() {
                    0 => head(&sha1_hex("sanitized"), 9).to_owned(),
                    1..9 => head(&sha1_hex(&plain), 9).to_owned(),
                    _ => head(&plain, 9).to_owned(),
                }
            }
        }
    }

    /// Ids for one whose own form under this rule is taken, in the order in which they are tried.
    fn others(self, original: &str, taken: &str) -> Box<dyn Iterator<Item = String>> {
        let (original, taken) = (original.to_owned(), taken.to_owned());
        match self {
            Self::Strict => {
                let hashed = format!("{}{}", head(&taken, 32), head(&sha1_hex(&original), 8));
                let numbered = (2_u64..).map({
                    let hashed = hashed.clone();
                    move |n| with_suffix(&hashed, 40, &format!("x{n}"))
                });
                Box::new(std::iter::once(hashed).chain(numbered))
            }
            Self::Strict9 => {
                Box::new((0_u64..).map(move |n| head(&sha1_hex(&format!("{original}:{n}")), 9).to_owned()))
            }
            Self::Anthropic
            | Self::Completions
            | Self::CompletionsOpenAi
            | Self::Mistral
            | Self::Responses => {
                let length = taken.chars().count();
                Box::new((2_u64..).map(move |n| with_suffix(&taken, length, &n.to_string())))
            }
        }
    }
}

fn plain(id: &str, max: usize) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .take(max)
        .collect()
}

fn alphanumeric(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The id with a suffix, not longer than `max` characters.
fn with_suffix(id: &str, max: usize, suffix: &str) -> String {
    id.chars().take(max.saturating_sub(suffix.len())).chain(suffix.chars()).collect()
}

/// The first `len` bytes of ASCII text.
fn head(text: &str, len: usize) -> &str {
    text.get(..len).unwrap_or(text)
}

fn sha1_hex(text: &str) -> String {
    format!("{:x}", Sha1::digest(text))
}

/// Renames the ids of one request: same id in, same id out, and two ids never become one. Ids of the model's own calls
/// stay where the rule allows it; results go by the call before them, as careless servers use an id again.
#[derive(Debug)]
pub(crate) struct IdMap<'a> {
    rule: IdRule,
    /// The ids before these.
    before: Option<&'a IdMap<'a>>,
    renamed: HashMap<String, String>,
    taken: HashSet<String>,
    /// Ids in use; the value is true if the last call of the id is the model's own and keeps it.
    kept: HashMap<String, bool>,
}

impl<'a> IdMap<'a> {
    pub(super) fn new(rule: IdRule) -> Self {
        Self { rule, before: None, renamed: HashMap::new(), taken: HashSet::new(), kept: HashMap::new() }
    }

    /// Creates a map for the ids after those of another part of the conversation.
    pub(crate) fn after(before: &'a IdMap<'a>) -> Self {
        Self { before: Some(before), ..Self::new(before.rule) }
    }

    /// Returns the number of known ids.
    pub(crate) fn len(&self) -> usize {
        self.renamed.len() + self.taken.len() + self.kept.len()
    }

    /// Notes the id of a call that the model itself made, where it is kept.
    pub(super) fn keep(&mut self, id: &str) {
        let call = id.split_once('|').map_or(id, |(call, _)| call);
        self.take(call);
        self.kept.insert(id.to_owned(), true);
    }

    /// Renames the id of a call of another model.
    pub(super) fn call(&mut self, id: &mut String) {
        if self.is_kept(id) {
            self.kept.insert(id.clone(), false);
        }
        // Calls without an id have nothing in common.
        if let Some(done) = self.renamed(id).filter(|_| !id.is_empty()) {
            *id = done.to_owned();
            return;
        }
        let mut wanted = self.rule.apply(id);
        // Of `call|item` it is the call that must be one of its kind.
        let item = wanted.find('|').map(|at| wanted.split_off(at)).unwrap_or_default();
        if wanted.is_empty() {
            wanted.push_str(NO_ID);
        }
        if !self.take(&wanted) {
            let free = self.rule.others(id, &wanted).find(|other| self.take(other));
            wanted = free.unwrap_or(wanted);
        }
        wanted.push_str(&item);
        let original = std::mem::replace(id, wanted);
        self.renamed.insert(original, id.clone());
    }

    /// Returns the new id of a result if its call was renamed.
    pub(super) fn result(&self, id: &str) -> Option<&str> {
        self.renamed(id).filter(|_| !self.is_kept(id))
    }

    fn renamed(&self, id: &str) -> Option<&str> {
        self.parts().find_map(|part| part.renamed.get(id)).map(String::as_str)
    }

    fn is_kept(&self, id: &str) -> bool {
        self.parts().find_map(|part| part.kept.get(id)).copied().unwrap_or(false)
    }

    /// Takes an id; returns true if it was free.
    fn take(&mut self, id: &str) -> bool {
        let is_free = self.parts().all(|part| !part.taken.contains(id));
        if is_free {
            self.taken.insert(id.to_owned());
        }
        is_free
    }

    /// The newest first.
    fn parts(&self) -> impl Iterator<Item = &IdMap<'a>> {
        std::iter::successors(Some(self), |part| part.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(map: &mut IdMap<'_>, id: &str) -> String {
        let mut id = id.to_owned();
        map.call(&mut id);
        id
    }

    fn result(map: &IdMap<'_>, id: &str) -> String {
        map.result(id).unwrap_or(id).to_owned()
    }

    fn ids(rule: IdRule, originals: &[&str]) -> Vec<String> {
        let mut map = IdMap::new(rule);
        originals.iter().map(|id| call(&mut map, id)).collect()
    }

    /// Vectors of `models.md` §3.2.
    #[test]
    fn ids_follow_their_providers_rule() {
        let long = "x".repeat(70);
        let rows = [
            (IdRule::Completions, "call_abc|fc_1+/=", "call_abc".to_owned()),
            (IdRule::Completions, "call.abc|fc", "call_abc".to_owned()),
            (IdRule::Completions, long.as_str(), long.clone()),
            (IdRule::CompletionsOpenAi, long.as_str(), "x".repeat(40)),
            (IdRule::Mistral, "toolu_1", "toolu1ABC".to_owned()),
            (IdRule::Mistral, "call-1234567890", "call12345".to_owned()),
            (IdRule::Anthropic, "call_abc|fc_1+/=", "call_abc_fc_1___".to_owned()),
            (IdRule::Anthropic, long.as_str(), "x".repeat(64)),
            (IdRule::Responses, "call_abc|fc_1+/=", "call_abc|fc_1".to_owned()),
            (IdRule::Responses, "call.a_|item__", "call_a|fc_item".to_owned()),
            (IdRule::Responses, "toolu_1", "toolu_1".to_owned()),
            (IdRule::Responses, long.as_str(), "x".repeat(64)),
        ];
        for (rule, id, expect) in rows {
            assert_eq!(rule.apply(id), expect, "{rule:?} {id}");
        }
    }

    /// Vectors of `agent-runtime.md` §9.3.
    #[test]
    fn ids_are_rewritten_as_the_reference_does() {
        let long_a = format!("call_{}", "a".repeat(60));
        let long_b = format!("call_{}b", "a".repeat(59));
        let cut = format!("call{}", "a".repeat(36));
        let hashed = format!("call{}9ec6fdaa", "a".repeat(28));
        let rows: [(IdRule, &[&str], &[&str]); 9] = [
            (IdRule::Strict, &["call_1"], &["call1"]),
            (IdRule::Strict, &["whatsapp_login_1768799841527_1"], &["whatsapplogin17687998415271"]),
            (
                IdRule::Strict,
                &["call_a|b", "call_a:b", "call_a-b"],
                &["callab", "callab520e20af", "callab6b827b64"],
            ),
            (IdRule::Strict, &[&long_a, &long_b], &[&cut, &hashed]),
            (IdRule::Strict, &["___", ""], &["sanitizedtoolid", "defaulttoolid"]),
            (IdRule::Strict9, &["call_abc|item:123", "call_abc|item:456"], &["callabcit", "25ebc8b9a"]),
            (IdRule::Strict9, &["abc", "__"], &["a9993e364", "7b757a23b"]),
            (IdRule::Strict9, &["toolu_01ABCDEF", "toolu_01ABCDEG"], &["toolu01AB", "98c28f0a4"]),
            (IdRule::Strict9, &["", "x", "x"], &["defaultid", "11f6ad8ec", "11f6ad8ec"]),
        ];
        for (rule, originals, expect) in rows {
            assert_eq!(ids(rule, originals), expect, "{originals:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn different_ids_stay_different_and_fit(originals in proptest::collection::hash_set("[ab_|]{0,4}", 0..40)) {
            let originals: Vec<&str> = originals.iter().map(String::as_str).collect();
            for (rule, max) in [(IdRule::Strict, 40), (IdRule::Strict9, 9)] {
                let out = ids(rule, &originals);
                let unique: HashSet<&String> = out.iter().collect();
                proptest::prop_assert_eq!(unique.len(), originals.len());
                proptest::prop_assert!(out.iter().all(|id| !id.is_empty() && id.len() <= max && id.chars().all(|c| c.is_ascii_alphanumeric())));
            }
        }
    }

    #[test]
    fn two_ids_never_become_one() {
        let mut map = IdMap::new(IdRule::Mistral);
        let first = call(&mut map, "call-12345-a");
        let second = call(&mut map, "call-12345-b");
        assert_eq!(first, "call12345");
        assert_eq!(second, "call12342");
        assert_eq!(call(&mut map, "call-12345-a"), first);
        assert_eq!(result(&map, "call-12345-b"), second);
        assert_eq!(result(&map, "unknown"), "unknown");
        assert_eq!(ids(IdRule::Responses, &["a.b|fc_1", "a_b|fc_2"]), ["a_b|fc_1", "a_2|fc_2"]);
    }

    #[test]
    fn a_result_goes_by_the_call_before_it() {
        let mut map = IdMap::new(IdRule::Anthropic);
        assert_eq!(call(&mut map, "a|b"), "a_b");
        assert_eq!(result(&map, "a|b"), "a_b");
        map.keep("a|b");
        assert_eq!(result(&map, "a|b"), "a|b");
        assert_eq!(call(&mut map, "a|b"), "a_b");
        assert_eq!(result(&map, "a|b"), "a_b");
        map.keep("x");
        assert_eq!(call(&mut map, "x|y"), "x_y");
        let mut map = IdMap::new(IdRule::Completions);
        map.keep("x");
        assert_eq!(call(&mut map, "x|y"), "2");
    }

    #[test]
    fn where_own_ids_are_refused_they_are_rewritten_too() {
        let mut map = IdMap::new(IdRule::Strict);
        let id = call(&mut map, "call_1");
        assert_eq!((id.as_str(), result(&map, "call_1").as_str()), ("call1", "call1"));
    }
}
