//! The questions of `openclaw agents add` without flags.

use std::io::{BufRead, Write};

use openclaw_agent::roster::{IdentityLines, NewAgent};
use openclaw_config::Config;
use openclaw_protocol::AgentId;

use super::add::{AgentSetup, bindings, new_id};
use super::credentials::Offer;
use crate::args::{given, given_text};
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Asks until there is an agent to add.
///
/// # Errors
/// When the person gives up; nothing is changed then.
pub(super) fn ask<R: BufRead, W: Write>(
    questions: &mut Questions<R, W>,
    name: Option<&str>,
    config: &Config,
    context: &CliContext,
) -> Result<AgentSetup, CommandFailure> {
    let (name, id) = ask_name(questions, name, config)?;
    if id.as_str() != name {
        questions.say(&format!("Its id is \"{id}\"."))?;
    }
    let suggested = context.paths().workspace(&id, false);
    let workspace = questions.ask("Workspace", &context.short(&suggested))?;
    let shared = config.agents.defaults.model.as_ref().and_then(|model| model.primary.as_deref());
    let model = questions.ask(&format!("Model (empty: {})", shared.unwrap_or("the default")), "")?;
    let agent_dir = context.paths().agent_dir(&id);
    let credentials = match Offer::of(config, &agent_dir) {
        Some(offer) => {
            let question = format!("Copy the credentials of \"{}\"? Without, it has none", offer.owner);
            questions.confirm(&question)?.then_some(offer)
        }
        None => None,
    };
    let bindings = loop {
        let text =
            questions.ask("Channels it answers, such as telegram or telegram:ops (empty: none)", "")?;
        match bindings(text.split([',', ' ']).map(str::trim).filter(|text| !text.is_empty()), config) {
            Ok(bindings) => break bindings,
            Err(failure) => questions.say(&failure.message)?,
        }
    };
    let agent = NewAgent {
        workspace: context.env().expand_path(&workspace),
        model: given_text(&Some(model)),
        agent_dir: Some(agent_dir),
        identity: IdentityLines::default(),
        id,
        name,
        bindings,
    };
    Ok(AgentSetup { agent, credentials })
}

fn ask_name<R: BufRead, W: Write>(
    questions: &mut Questions<R, W>,
    name: Option<&str>,
    config: &Config,
) -> Result<(String, AgentId), CommandFailure> {
    let mut offered = given(name).map(str::to_owned);
    loop {
        let name = match offered.take() {
            Some(name) => name,
            None => questions.ask("Name of the agent", "")?,
        };
        if name.is_empty() {
            continue;
        }
        match new_id(&name, config) {
            Ok(id) => return Ok((name, id)),
            Err(failure) => questions.say(&failure.message)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_agent::roster::NewBinding;
    use openclaw_config::Environment;

    use super::*;

    /// Plays the person; gives what is wanted and what was on the screen.
    fn play(
        home: &std::path::Path,
        name: Option<&str>,
        answers: &str,
    ) -> (Result<AgentSetup, CommandFailure>, String) {
        let env = Environment::new([("HOME", home.to_str().unwrap())], home);
        let context = CliContext::new(&env, true);
        let config = context.config().unwrap().clone();
        let mut questions = Questions { answers: answers.as_bytes(), screen: Vec::new() };
        let wanted = ask(&mut questions, name, &config, &context);
        (wanted, String::from_utf8(questions.screen).unwrap())
    }

    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join(".openclaw");
        std::fs::create_dir_all(state.join("agents/main/agent")).unwrap();
        std::fs::write(state.join("openclaw.json"), "{ agents: { list: [{ id: 'main' }, { id: 'work' }] } }")
            .unwrap();
        std::fs::write(state.join("agents/main/agent/auth-profiles.json"), "{\"version\":1}").unwrap();
        home
    }

    #[test]
    fn empty_answers_take_what_is_suggested() {
        let home = home();
        let (wanted, screen) = play(home.path(), Some("Night Owl"), "\n\n\n\n");
        let state = home.path().join(".openclaw");
        let agent = NewAgent {
            id: AgentId::normalize("night-owl"),
            name: "Night Owl".to_owned(),
            workspace: state.join("workspace-night-owl"),
            agent_dir: Some(state.join("agents/night-owl/agent")),
            model: None,
            bindings: Vec::new(),
            identity: IdentityLines::default(),
        };
        let expect = AgentSetup { agent, credentials: None };
        assert_eq!(wanted.unwrap(), expect);
        expect_test::expect![[r#"
            Its id is "night-owl".
            Workspace [~/.openclaw/workspace-night-owl]: Model (empty: the default): Copy the credentials of "main"? Without, it has none [y/N]: Channels it answers, such as telegram or telegram:ops (empty: none): "#]]
        .assert_eq(&screen);
    }

    #[test]
    fn wrong_answers_are_asked_again_and_credentials_copied_on_a_yes() {
        let home = home();
        let answers = "main\nwork\nops\n~/w\nanthropic/x\nperhaps\nY\nfax\ntelegram:ops, slack\n";
        let (wanted, screen) = play(home.path(), None, answers);
        let wanted = wanted.unwrap();
        assert_eq!((wanted.agent.id.as_str(), wanted.agent.model.as_deref()), ("ops", Some("anthropic/x")));
        assert_eq!(wanted.agent.workspace, home.path().join("w"));
        let bind = |channel: &str, account: Option<&str>| NewBinding {
            channel: channel.to_owned(),
            account: account.map(str::to_owned),
        };
        assert_eq!(wanted.agent.bindings, [bind("telegram", Some("ops")), bind("slack", None)]);
        for words in [
            "\"main\" is reserved",
            "Agent \"work\" already exists",
            "Answer y or n",
            "Unknown channel \"fax\"",
        ] {
            assert!(screen.contains(words), "{words}: {screen}");
        }
        let offer = wanted.credentials.unwrap();
        offer.copy().unwrap();
        let copy = home.path().join(".openclaw/agents/ops/agent/auth-profiles.json");
        assert_eq!(std::fs::read_to_string(copy).unwrap(), "{\"version\":1}");
    }

    #[test]
    fn whoever_gives_up_changes_nothing() {
        let home = home();
        let (wanted, _) = play(home.path(), Some("ops"), "~/w\n");
        assert_eq!(wanted.unwrap_err().code, "cancelled");
    }
}
