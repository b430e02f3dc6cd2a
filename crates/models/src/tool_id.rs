//! Tool call ids as each provider wants them (spec `models.md` §3.2).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What a provider accepts as the id of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdRule {
    /// Letters, digits, `_` and `-`, up to 64.
    Anthropic,
    /// Chat Completions: of `call|item` the call part, cut to 40; otherwise as it is.
    Completions,
    /// Chat Completions at OpenAI itself: cut to 40 in any case.
    CompletionsOpenAi,
    /// Exactly nine alphanumerics.
    Mistral,
    /// `call|item`: letters, digits, `_` and `-`, up to 64 each, the item beginning with `fc`.
    Responses,
}

impl IdRule {
    /// The id under this rule.
    pub(crate) fn apply(self, id: &str) -> String {
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
        }
    }
}

fn plain(id: &str, max: usize) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .take(max)
        .collect()
}

/// Renames the ids of one request: same id in, same id out, and two ids never become one. Ids of the model's own calls
/// stay; results go by the call before them, as careless servers use an id again.
#[derive(Debug)]
pub(crate) struct IdMap<'a> {
    rule: IdRule,
    renamed: HashMap<&'a str, String>,
    taken: HashSet<Cow<'a, str>>,
    /// Ids whose last call is the model's own.
    own: HashSet<&'a str>,
}

impl<'a> IdMap<'a> {
    pub(crate) fn new(rule: IdRule) -> Self {
        Self { rule, renamed: HashMap::new(), taken: HashSet::new(), own: HashSet::new() }
    }

    /// Keeps the id of a call that the model itself made.
    pub(crate) fn own_call(&mut self, id: &'a str) {
        let call = id.split_once('|').map_or(id, |(call, _)| call);
        self.taken.insert(Cow::Borrowed(call));
        self.own.insert(id);
    }

    /// Renames the id of a call.
    pub(crate) fn call(&mut self, id: &'a str) -> String {
        self.own.remove(id);
        if let Some(done) = self.renamed.get(id) {
            return done.clone();
        }
        let wanted = self.rule.apply(id);
        // Of `call|item` it is the call that must be one of its kind.
        let (call, item) = wanted.find('|').map_or((wanted.as_str(), ""), |at| wanted.split_at(at));
        let mut unique = call.to_owned();
        let mut n = 2;
        while !self.taken.insert(Cow::Owned(unique.clone())) {
            let suffix = n.to_string();
            let keep = call.chars().count().saturating_sub(suffix.len());
            unique = call.chars().take(keep).chain(suffix.chars()).collect();
            n += 1;
        }
        unique.push_str(item);
        self.renamed.insert(id, unique.clone());
        unique
    }

    /// The id a result must carry to match its call, where that is another one than it has.
    pub(crate) fn result(&self, id: &str) -> Option<&str> {
        let renamed = self.renamed.get(id).filter(|renamed| *renamed != id && !self.own.contains(id));
        renamed.map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn two_ids_never_become_one() {
        let mut map = IdMap::new(IdRule::Mistral);
        let first = map.call("call-12345-a");
        let second = map.call("call-12345-b");
        assert_eq!(first, "call12345");
        assert_eq!(second, "call12342");
        assert_eq!(map.call("call-12345-a"), first);
        assert_eq!(map.result("call-12345-b"), Some(second.as_str()));
        assert_eq!(map.result("unknown"), None);
        let mut map = IdMap::new(IdRule::Responses);
        let (first, second) = (map.call("a.b|fc_1"), map.call("a_b|fc_2"));
        assert_eq!((first.as_str(), second.as_str()), ("a_b|fc_1", "a_2|fc_2"));
    }

    #[test]
    fn a_result_goes_by_the_call_before_it() {
        let mut map = IdMap::new(IdRule::Anthropic);
        assert_eq!(map.call("a|b"), "a_b");
        assert_eq!(map.result("a|b"), Some("a_b"));
        map.own_call("a|b");
        assert_eq!(map.result("a|b"), None);
        assert_eq!(map.call("a|b"), "a_b");
        assert_eq!(map.result("a|b"), Some("a_b"));
        map.own_call("x");
        assert_eq!(map.call("x|y"), "x_y");
        let mut map = IdMap::new(IdRule::Completions);
        map.own_call("x");
        assert_eq!(map.call("x|y"), "2");
    }
}
