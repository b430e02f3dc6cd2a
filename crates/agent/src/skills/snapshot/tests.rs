use openclaw_config::Environment;
use serde_json::{Value, json};

use super::*;
use crate::skills::skill::ForModel;
use crate::skills::testing::skill;

struct Nothing;

impl RequirementEnv for Nothing {
    fn has_bin(&self, _name: &str) -> bool {
        false
    }
    fn has_env(&self, _name: &str) -> bool {
        false
    }
    fn has_config(&self, _path: &str) -> bool {
        false
    }
}

fn snapshot(config: &str, agent: &str, skills: Vec<Skill>) -> Snapshot {
    let config = Config::from_json5(config, &Environment::new([("HOME", "/h")], "/")).unwrap();
    let mut library = Library::default();
    library.skills = skills;
    Snapshot::with(&library, &config, &AgentId::normalize(agent), &Nothing).at_version(7)
}

#[test]
fn an_agent_has_the_skills_that_it_is_given() {
    let all = || vec![skill("a"), skill("b"), Skill { for_model: ForModel::Hidden, ..skill("c") }];
    let config =
        "{agents: {list: [{id: 'all'}, {id: 'none', skills: []}, {id: 'some', skills: ['c', 'b', 'x']}]}}";
    for (agent, usable, listed) in
        [("all", "a b c", "a b"), ("none", "", ""), ("some", "b c", "b"), ("unknown", "a b c", "a b")]
    {
        let made = snapshot(config, agent, all());
        let names: Vec<&str> = made.skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names.join(" "), usable, "{agent}");
        let names: Vec<&str> = made.report.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.join(" "), listed, "{agent}");
        assert_eq!(made.prompt.is_empty(), listed.is_empty(), "{agent}");
        assert!(made.mark.is_some(), "{agent}");
        assert_eq!(made.mark == *NO_SKILLS, usable.is_empty(), "{agent}");
    }
}

#[test]
fn a_row_keeps_names_and_a_hash() {
    let keyed = Skill { primary_env: Some("KEY".to_owned()), ..skill("keyed") };
    let made = snapshot("{}", "main", vec![keyed, skill("plain")]);
    let mark: Value = serde_json::from_str(made.mark.as_ref().unwrap().as_str()).unwrap();
    let hash = mark["promptHash"].as_str().unwrap();
    assert_eq!(hash.len(), 2 * HASH_BYTES);
    let skills = json!([{"name": "keyed", "primaryEnv": "KEY"}, {"name": "plain"}]);
    assert_eq!(mark, json!({"promptHash": hash, "skills": skills, "version": 7}));
    let other = snapshot("{}", "main", vec![skill("plain")]);
    assert!(!other.mark.unwrap().as_str().contains(hash));
}
