use serde_json::{Value, json};

use super::*;
use crate::testing::context;

/// A command's recorded output.
fn recorded(arguments: &[&str]) -> Value {
    let runs: Vec<Value> =
        serde_json::from_str(include_str!("../../../../../tests/golden/cli-skills.json")).unwrap();
    let argv = json!(["openclaw", "skills"].iter().chain(arguments).collect::<Vec<_>>());
    runs.into_iter().find(|run| run["argv"] == argv).unwrap()
}

/// The recorded skills, as far as a list tells.
fn found() -> SkillsStatusResult {
    let list = &recorded(&["list", "--json"])["stdoutJson"];
    let check = &recorded(&["check", "--json"])["stdoutJson"]["missingRequirements"];
    let skill = |row: &Value| {
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let of_check = check.as_array().unwrap().iter().find(|other| other["name"] == row["name"]);
        SkillStatus {
            name: text("name").unwrap(),
            description: text("description").unwrap(),
            source: text("source").unwrap(),
            emoji: text("emoji"),
            homepage: text("homepage"),
            primary_env: text("primaryEnv"),
            bundled: row["bundled"] == true,
            eligible: row["eligible"] == true,
            missing: serde_json::from_value(row["missing"].clone()).unwrap(),
            install: of_check
                .map(|row| serde_json::from_value(row["install"].clone()).unwrap())
                .unwrap_or_default(),
            ..SkillStatus::default()
        }
    };
    SkillsStatusResult {
        workspace_dir: list["workspaceDir"].as_str().unwrap().to_owned(),
        managed_skills_dir: list["managedSkillsDir"].as_str().unwrap().to_owned(),
        skills: list["skills"].as_array().unwrap().iter().map(skill).collect(),
    }
}

#[test]
fn the_list_and_the_check_are_what_the_reference_prints() {
    let found = found();
    let list = SkillList {
        workspace_dir: &found.workspace_dir,
        managed_skills_dir: &found.managed_skills_dir,
        skills: found.skills.iter().map(ListRow::of).collect(),
    };
    // As text, because the order of the keys is part of the shape.
    assert_eq!(json!(list).to_string(), recorded(&["list", "--json"])["stdoutJson"].to_string());
    assert_eq!(
        json!(SkillCheck::of(&found)).to_string(),
        recorded(&["check", "--json"])["stdoutJson"].to_string()
    );
    let eligible: Vec<&SkillStatus> = found.skills.iter().filter(|skill| skill.eligible).collect();
    let lines = text::list(&eligible, false, &context("{}", &[]));
    let expect: Vec<String> =
        serde_json::from_value(recorded(&["list", "--eligible"])["stdout"].clone()).unwrap();
    assert_eq!(lines, expect[..expect.len() - 1], "the last line is the end of the output");
}

#[test]
fn a_skill_is_told_with_what_it_needs() {
    let info = &recorded(&["info", "tmux", "--json"])["stdoutJson"];
    let tmux: SkillStatus = serde_json::from_value(info.clone()).unwrap();
    assert_eq!(json!(tmux).to_string(), info.to_string());
    let needs = |bins: &[&str]| SkillNeeds {
        bins: bins.iter().map(|bin| (*bin).to_owned()).collect(),
        ..SkillNeeds::default()
    };
    let option = SkillInstallOption {
        id: "brew".into(),
        kind: "brew".into(),
        label: "Install tmux (brew)".into(),
        bins: Vec::new(),
    };
    let missing = SkillStatus {
        eligible: false,
        requirements: needs(&["tmux", "sh"]),
        missing: needs(&["tmux"]),
        skill_key: "other".into(),
        primary_env: Some("KEY".into()),
        file_path: "/opt/skills/tmux/SKILL.md".into(),
        install: vec![option],
        ..tmux
    };
    let lines = text::info(&missing, &context("{}", &[])).join("\n");
    expect_test::expect![[r#"
        🧵 tmux ✗ Missing requirements

        Remote-control tmux sessions for interactive CLIs by sending keystrokes and scraping pane output.

        Details:
          Source: openclaw-bundled
          Path: /opt/skills/tmux/SKILL.md
          Primary env: KEY
          Config key: other

        Requirements:
          Binaries: ✗ tmux, ✓ sh

        Install options:
          → Install tmux (brew)

        Tip: use `npx clawhub` to search, install, and sync skills."#]]
    .assert_eq(&lines);
    let found = SkillsStatusResult {
        workspace_dir: String::new(),
        managed_skills_dir: String::new(),
        skills: vec![missing],
    };
    let lines = text::check(&found, &context("{}", &[]));
    assert!(lines.contains(&"  🧵 tmux (bins: tmux)".to_owned()), "{lines:?}");
}
