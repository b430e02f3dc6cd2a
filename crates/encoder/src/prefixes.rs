//! Words that some models want in front of a text.

use std::collections::BTreeMap;

/// Use of a text: some models embed questions and documents differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// A question that is compared with passages.
    Query,
    /// A piece of a document.
    Passage,
}

/// Prefixes of a model's texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prefixes {
    query: String,
    passage: String,
}

impl Prefixes {
    /// Returns the prefixes of a model: those of its own settings, else those for which models of
    /// its name were trained.
    pub(crate) fn of(prompts: &BTreeMap<String, String>, names: &[&str]) -> Self {
        let prompt = |keys: &[&str]| keys.iter().find_map(|key| prompts.get(*key)).cloned();
        let query = prompt(&["query"]);
        let passage = prompt(&["passage", "document"]);
        if query.is_some() || passage.is_some() {
            return Self { query: query.unwrap_or_default(), passage: passage.unwrap_or_default() };
        }
        if names.iter().any(|name| is_e5(name)) {
            return Self { query: "query: ".to_owned(), passage: "passage: ".to_owned() };
        }
        Self::default()
    }

    pub(crate) fn of_kind(&self, kind: TextKind) -> &str {
        match kind {
            TextKind::Query => &self.query,
            TextKind::Passage => &self.passage,
        }
    }
}

/// Returns true for names such as `multilingual-e5-small` and `intfloat/e5-base-v2`.
fn is_e5(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| word == "e5")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_its_own_prompts_or_those_of_its_family() {
        let rows = [
            (vec![], "all-MiniLM-L6-v2", ["", ""]),
            (vec![], "multilingual-e5-small", ["query: ", "passage: "]),
            (vec![], "intfloat/e5-base-v2", ["query: ", "passage: "]),
            (vec![("query", "ask: ")], "e5-small", ["ask: ", ""]),
            (vec![("query", "q: "), ("document", "d: ")], "me5x", ["q: ", "d: "]),
        ];
        for (prompts, name, expect) in rows {
            let prompts =
                prompts.into_iter().map(|(key, words)| (key.to_owned(), words.to_owned())).collect();
            let found = Prefixes::of(&prompts, &[name]);
            assert_eq!(
                [TextKind::Query, TextKind::Passage].map(|kind| found.of_kind(kind)),
                expect,
                "{name}"
            );
        }
    }
}
