use secrecy::ExposeSecret;

use super::super::file::{FILE, OnDamage};
use super::*;

const NOW: i64 = 1_760_000_000_000;

struct State {
    root: tempfile::TempDir,
}

impl State {
    fn new() -> Self {
        let state = Self { root: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(state.agent_dir("main")).unwrap();
        std::fs::create_dir_all(state.agent_dir("work")).unwrap();
        state
    }

    fn agent_dir(&self, agent: &str) -> PathBuf {
        self.root.path().join("state/agents").join(agent).join("agent")
    }

    fn write(&self, path: &str, content: &Value) -> PathBuf {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content.to_string()).unwrap();
        path
    }

    fn around(&self, agent: &str) -> Surroundings {
        let home = self.root.path().to_str().unwrap().to_owned();
        Surroundings::of(&[("HOME", home)].into_iter().collect(), &self.agent_dir(agent))
    }

    /// `id=secret` of every profile.
    fn shown(&self, agent: &str) -> Vec<String> {
        let store = AuthStore::load_with(&self.agent_dir(agent), &self.around(agent), NOW).unwrap();
        store
            .profiles()
            .map(|(id, credential)| match &credential.secret {
                Secret::ApiKey(key) => format!("{id}={}", key.expose_secret()),
                Secret::Token { token, .. } => format!("{id}={}", token.expose_secret()),
                Secret::OAuth { access, .. } => format!("{id}={}", access.expose_secret()),
            })
            .collect()
    }

    fn touch(&self, agent: &str) {
        AuthStore::update(&self.agent_dir(agent), &self.around(agent), OnDamage::Refuse, |_| ()).unwrap();
    }
}

#[test]
fn an_agents_old_file_is_read_at_once_and_retired_by_the_first_change() {
    let state = State::new();
    let old = state.write(
        "state/agents/work/agent/auth.json",
        &json!({"groq": {"type": "api_key", "key": "g"}, "x": 1, "anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1}}),
    );
    let expect = ["groq:default=g", "anthropic:default=a"];
    assert_eq!(state.shown("work"), expect);
    assert!(old.exists() && !state.agent_dir("work").join(FILE).exists(), "reading changes no file");
    state.touch("work");
    assert_eq!(state.shown("work"), expect);
    assert!(!old.exists());
    assert!(state.agent_dir("work").join("auth.json.imported").exists());
}

#[test]
fn logins_without_an_agent_are_the_main_agents_while_it_has_no_store() {
    let state = State::new();
    let file = state.write(
        "state/credentials/oauth.json",
        &json!({"anthropic": {"access": "a", "refresh": "r", "expires": 1}}),
    );
    assert_eq!(state.shown("main"), ["anthropic:default=a"]);
    assert_eq!(state.shown("work"), [""; 0]);
    state.touch("main");
    assert!(file.exists(), "an older version may still need it");
    state.write("state/agents/main/agent/auth-profiles.json", &json!({"profiles": {}}));
    assert_eq!(state.shown("main"), [""; 0]);
}

#[test]
fn logins_of_other_programs_are_shown_while_ours_do_not_last() {
    let state = State::new();
    let theirs =
        |token: &str, at: i64| json!({"access_token": token, "refresh_token": "r", "expiry_date": at});
    state.write(".qwen/oauth_creds.json", &theirs("q", NOW + 1));
    state.write(".minimax/oauth_creds.json", &theirs("m", NOW + 1));
    assert_eq!(state.shown("main"), ["qwen-portal:qwen-cli=q", "minimax-portal:minimax-cli=m"]);
    state.touch("main");
    assert!(!state.agent_dir("main").join(FILE).exists(), "they stay the other program's");
    let ours = |at: i64| {
        json!({"profiles": {"qwen-portal:qwen-cli":
            {"type": "oauth", "provider": "qwen-portal", "access": "ours", "refresh": "r", "expires": at}}})
    };
    for (at, expect) in [(NOW + NEARLY_OVER + 1, "ours"), (NOW + NEARLY_OVER, "q"), (NOW - 1, "q")] {
        state.write("state/agents/main/agent/auth-profiles.json", &ours(at));
        assert_eq!(state.shown("main")[0], format!("qwen-portal:qwen-cli={expect}"), "{at}");
    }
    for odd in [
        json!([]),
        json!({"access_token": "x"}),
        json!({"access_token": "", "refresh_token": "r", "expiry_date": 1}),
    ] {
        state.write(".qwen/oauth_creds.json", &odd);
        assert_eq!(state.shown("main")[0], "qwen-portal:qwen-cli=ours", "{odd}");
    }
}

#[test]
fn the_credentials_directory_may_be_named() {
    let variables: Variables = [("HOME", "/h"), ("OPENCLAW_OAUTH_DIR", "~/logins")].into_iter().collect();
    let found = Surroundings::of(&variables, Path::new("/s/agents/main/agent"));
    let expect = |home, dir: &str| Surroundings { home, credentials_dir: Some(PathBuf::from(dir)) };
    assert_eq!(found, expect(Some(PathBuf::from("/h")), "/h/logins"));
    let found = Surroundings::of(&Variables::default(), Path::new("/s/agents/main/agent"));
    assert_eq!(found, expect(None, "/s/credentials"));
}
