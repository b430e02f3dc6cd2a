//! The variables that commands of a run have because of its skills (spec `agent-runtime.md` §6.6). They are laid over what the
//! commands inherit; nothing of the process changes.

use openclaw_config::settings::Skills;
use openclaw_config::variable_rules::runs_code;
use secrecy::{ExposeSecret as _, SecretString};

use super::skill::Skill;
use super::standing::entry_of;

/// Variables with their values. The first of a name counts.
#[derive(Debug, Clone, Default)]
pub struct Overlay(Vec<Variable>);

#[derive(Debug, Clone)]
struct Variable {
    name: String,
    value: SecretString,
    is_key: bool,
}

impl Overlay {
    /// Collects the configured settings of these skills.
    pub(super) fn of<'s>(skills: impl Iterator<Item = &'s Skill>, config: &Skills) -> Self {
        let mut variables: Vec<Variable> = Vec::new();
        let mut add = |skill: &Skill, name: &str, value: &SecretString| {
            if value.expose_secret().is_empty() || variables.iter().any(|known| known.name == name) {
                return;
            }
            if !may_set(name) {
                tracing::warn!(skill = %skill.name, "skills: the variable {name} is not set for commands, it would change what they run");
                return;
            }
            let is_key = skill.primary_env.as_deref() == Some(name);
            variables.push(Variable { name: name.to_owned(), value: value.clone(), is_key });
        };
        for skill in skills {
            let Some(entry) = entry_of(skill, config) else { continue };
            entry.env.iter().for_each(|(name, value)| add(skill, name.trim(), value));
            if let (Some(name), Some(key)) = (&skill.primary_env, &entry.api_key) {
                add(skill, name, key);
            }
        }
        Self(variables)
    }

    /// Adds what is not there, or blank, to the variables that a command inherits.
    pub fn lay_over(&self, inherited: &mut Vec<(String, String)>) {
        for variable in &self.0 {
            let value = variable.value.expose_secret();
            match inherited.iter_mut().find(|(name, _)| *name == variable.name) {
                Some((_, there)) if there.is_empty() => value.clone_into(there),
                Some(_) => {}
                None => inherited.push((variable.name.clone(), value.to_owned())),
            }
        }
    }

    /// Returns true if the overlay is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values that are API keys: no tool may print them.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|variable| variable.is_key).map(|variable| variable.value.expose_secret())
    }
}

/// The name may come from a skill's file, which is a stranger's.
fn may_set(name: &str) -> bool {
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    is_name && !name.eq_ignore_ascii_case("PATH") && !runs_code(name)
}

impl PartialEq for Overlay {
    fn eq(&self, other: &Self) -> bool {
        let pairs = |overlay: &Self| -> Vec<(String, String, bool)> {
            let pair = |variable: &Variable| {
                (variable.name.clone(), variable.value.expose_secret().to_owned(), variable.is_key)
            };
            overlay.0.iter().map(pair).collect()
        };
        pairs(self) == pairs(other)
    }
}

impl Eq for Overlay {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::skill;
    use super::*;

    fn overlay(entries: &serde_json::Value, skills: &[Skill]) -> Overlay {
        let config: Skills = serde_json::from_value(json!({"entries": entries})).unwrap();
        Overlay::of(skills.iter(), &config)
    }

    /// Vectors of the spec: the process's value, the configuration, the value during the run.
    #[test]
    fn what_is_set_stays_and_what_is_configured_fills_the_rest() {
        let with_key = Skill { primary_env: Some("ENV_KEY".to_owned()), ..skill("demo") };
        let rows = [
            (None, json!({"demo": {"apiKey": "k"}}), Some("k")),
            (Some("a"), json!({"demo": {"apiKey": "k"}}), Some("a")),
            (Some(""), json!({"demo": {"apiKey": "k"}}), Some("k")),
            (None, json!({"demo": {"apiKey": "k", "env": {"ENV_KEY": "e"}}}), Some("e")),
            (None, json!({"demo": {"apiKey": "", "env": {"ENV_KEY": ""}}}), None),
            (None, json!({"other": {"apiKey": "k"}}), None),
            (None, json!({}), None),
        ];
        for (process, entries, expect) in rows {
            let mut inherited: Vec<(String, String)> =
                process.iter().map(|value| ("ENV_KEY".to_owned(), (*value).to_owned())).collect();
            overlay(&entries, std::slice::from_ref(&with_key)).lay_over(&mut inherited);
            let found = inherited.iter().find(|(name, _)| name == "ENV_KEY").map(|(_, value)| value.as_str());
            assert_eq!(found, expect, "{entries}");
        }
    }

    #[test]
    fn the_key_of_a_skill_comes_before_its_name_and_the_first_skill_before_the_next() {
        let keyed = Skill { key: "the-key".to_owned(), primary_env: Some("A".to_owned()), ..skill("named") };
        let next = Skill { primary_env: Some("A".to_owned()), ..skill("next") };
        let entries = json!({"named": {"apiKey": "by name"}, "the-key": {"apiKey": "by key"}, "next": {"apiKey": "of the next"}});
        let mut inherited = Vec::new();
        overlay(&entries, &[keyed.clone(), next]).lay_over(&mut inherited);
        assert_eq!(inherited, [("A".to_owned(), "by key".to_owned())]);
        let by_name = overlay(&json!({"named": {"apiKey": "by name"}}), &[keyed]);
        assert_eq!(by_name.keys().collect::<Vec<_>>(), ["by name"]);
    }

    #[test]
    fn a_skill_cannot_choose_what_commands_run() {
        let evil = |name: &str| Skill { primary_env: Some(name.to_owned()), ..skill("evil") };
        for name in ["PATH", "path", "LD_PRELOAD", "BASH_ENV", "A=B", ""] {
            let made = overlay(&json!({"evil": {"apiKey": "k"}}), &[evil(name)]);
            assert!(made.is_empty(), "{name}");
        }
        let shown = format!("{:?}", overlay(&json!({"evil": {"apiKey": "the-secret"}}), &[evil("A")]));
        assert!(!shown.contains("the-secret"), "{shown}");
    }
}
