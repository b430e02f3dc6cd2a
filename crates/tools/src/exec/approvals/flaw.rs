//! Flaws of an approvals file, described for people.

use openclaw_config::nearest;
use serde_json::Value;
use serde_json::error::Category;

use super::file::ApprovalsFile;

/// Settings of an agent, and of all agents in `defaults`.
const SETTINGS: [&str; 4] = ["security", "ask", "askFallback", "autoAllowSkills"];
/// The list of an agent.
const ALLOWLIST: &str = "allowlist";
/// Top-level fields of the file.
const SECTIONS: [&str; 4] = ["version", "socket", "defaults", "agents"];

/// Reason why a text or a document is not an approvals file.
#[derive(Debug, thiserror::Error)]
pub enum FileFlaw {
    /// The file is empty, as a torn write leaves it.
    #[error("it is empty")]
    Empty,
    /// The file has the wrong structure.
    #[error("{}", in_words(.0))]
    Form(#[from] serde_json::Error),
    /// The file has a field that looks like a misspelt setting. Ignoring it would leave out a rule
    /// that somebody meant to give.
    #[error("\"{at}\" is no setting; {advice}")]
    Misspelt {
        /// Position of the field.
        at: String,
        /// Suggestion of what may have been meant.
        advice: String,
    },
}

/// The words of the parser, for people.
fn in_words(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => format!("it ends in the middle, in line {}", error.line()),
        Category::Syntax | Category::Io => format!("it is not JSON: {error}"),
        Category::Data => {
            const WORDS: [(&str, &str); 8] = [
                ("invalid type: ", "found "),
                ("invalid value: ", "found "),
                ("variant identifier", "a word"),
                ("string or map", "a word"),
                ("sequence", "a list"),
                ("a map", "an object"),
                ("map", "an object"),
                ("unknown variant", "unknown setting"),
            ];
            WORDS.iter().fold(error.to_string(), |text, (from, to)| text.replace(from, to))
        }
    }
}

/// Looks for fields that are meant as a setting and would be no rule.
///
/// # Errors
/// The first one.
pub(super) fn check(file: &ApprovalsFile) -> Result<(), FileFlaw> {
    let misspelt = |at: String, advice: String| Err(FileFlaw::Misspelt { at, advice });
    for name in file.other.keys() {
        if let Some(meant) = nearest(name, SETTINGS.into_iter().chain([ALLOWLIST])) {
            return misspelt(
                name.clone(),
                format!(
                    "{meant} stands in \"agents\", below an agent or \"*\", or (but for an allowlist) in \"defaults\""
                ),
            );
        }
        if let Some(meant) = nearest(name, SECTIONS) {
            return misspelt(name.clone(), format!("did you mean {meant}?"));
        }
    }
    let of_agents = file.agents.iter().map(|(agent, rules)| (format!("agents.{agent}"), &rules.policy));
    for (at, policy) in [("defaults".to_owned(), &file.defaults)].into_iter().chain(of_agents) {
        for name in policy.other.keys() {
            let meant = nearest(name, SETTINGS.into_iter().chain([ALLOWLIST]));
            match meant {
                Some(ALLOWLIST) if at == "defaults" => {
                    let advice = "an allowlist stands in \"agents\", below an agent or \"*\"".to_owned();
                    return misspelt(format!("{at}.{name}"), advice);
                }
                Some(meant) => return misspelt(format!("{at}.{name}"), format!("did you mean {meant}?")),
                None => {}
            }
        }
    }
    Ok(())
}

impl ApprovalsFile {
    /// Reads a document.
    ///
    /// # Errors
    /// Describes the flaw.
    pub fn of_value(document: Value) -> Result<Self, FileFlaw> {
        let file: Self = serde_json::from_value(document)?;
        check(&file)?;
        Ok(file)
    }

    /// Returns the positions of fields that are unknown to this version. They are kept: another
    /// version may know them.
    pub fn unknown_fields(&self) -> Vec<String> {
        let mut found: Vec<String> = self.other.keys().cloned().collect();
        found.extend(self.socket.other.keys().map(|name| format!("socket.{name}")));
        found.extend(self.defaults.other.keys().map(|name| format!("defaults.{name}")));
        for (agent, rules) in &self.agents {
            found.extend(rules.policy.other.keys().map(|name| format!("agents.{agent}.{name}")));
            for (at, entry) in rules.allowlist.iter().enumerate() {
                found.extend(entry.other.keys().map(|name| format!("agents.{agent}.allowlist.{at}.{name}")));
            }
        }
        found
    }

    /// Returns true if the file has any rule about commands.
    pub fn has_rules(&self) -> bool {
        let Self { version: _, socket: _, defaults, agents, other: _ } = self;
        *defaults != Default::default() || agents.values().any(|agent| *agent != Default::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_misspelt_setting_is_an_error_and_other_fields_are_listed() {
        for (document, says) in [
            (
                json!({"defaults": {"securty": "deny"}}),
                "\"defaults.securty\" is no setting; did you mean security?",
            ),
            (
                json!({"agents": {"main": {"Ask": "always"}}}),
                "\"agents.main.Ask\" is no setting; did you mean ask?",
            ),
            (
                json!({"agents": {"*": {"alowlist": []}}}),
                "\"agents.*.alowlist\" is no setting; did you mean allowlist?",
            ),
            (json!({"security": "deny"}), "\"security\" is no setting; security stands in \"agents\", "),
            (json!({"Default": {}}), "\"Default\" is no setting; did you mean defaults?"),
            (
                json!({"defaults": {"allowlist": ["/a"]}}),
                "\"defaults.allowlist\" is no setting; an allowlist stands in",
            ),
        ] {
            let mut whole = document.clone();
            whole["version"] = json!(1);
            let error = ApprovalsFile::of_value(whole.clone()).unwrap_err().to_string();
            assert!(error.starts_with(says), "{document}: {error}");
            let error = ApprovalsFile::parse(&whole.to_string(), &mut String::new).unwrap_err().to_string();
            assert!(error.starts_with(says), "{document}: {error}");
        }
        let other = json!({
            "version": 1, "new": 1, "socket": {"new": 1}, "defaults": {"new": 1},
            "agents": {"main": {"new": 1, "allowlist": [{"pattern": "/a", "new": 1}]}},
        });
        let file = ApprovalsFile::of_value(other).unwrap();
        let expect = ["new", "socket.new", "defaults.new", "agents.main.new", "agents.main.allowlist.0.new"];
        assert_eq!(file.unknown_fields(), expect);
        assert!(file.has_rules());
        for none in
            [json!({"version": 1}), json!({"version": 1, "socket": {"path": "/s"}, "agents": {"main": {}}})]
        {
            let file = ApprovalsFile::of_value(none).unwrap();
            assert!(!file.has_rules() && file.unknown_fields().is_empty());
        }
    }

    #[test]
    fn people_are_told_without_the_words_of_the_parser() {
        for (text, says) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("{\"version\": 1", "it ends in the middle, in line 1"),
            ("{ oops", "it is not JSON: "),
            ("[]", "found a list, expected an object with \"version\": 1"),
            ("{\"version\": 1, \"agents\": []}", "found a list, expected an object"),
        ] {
            let error = ApprovalsFile::parse(text, &mut String::new).unwrap_err().to_string();
            assert!(error.starts_with(says), "{text:?}: {error}");
        }
        for wrong in [
            json!({"version": 1, "defaults": []}),
            json!({"version": 1, "defaults": {"ask": true}}),
            json!({"version": 1, "agents": {"a": 1}}),
            json!({"version": 1, "agents": {"a": {"security": "some"}}}),
            json!({"version": "1"}),
        ] {
            let error = ApprovalsFile::of_value(wrong.clone()).unwrap_err().to_string();
            let jargon = ["struct", "sequence", "map", "invalid type", "variant"];
            assert!(!jargon.iter().any(|word| error.contains(word)), "{wrong}: {error}");
        }
    }
}
