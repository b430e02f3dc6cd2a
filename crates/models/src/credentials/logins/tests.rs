use openclaw_testkit::login_server::{LoginServer, Scripted};

use super::*;
use crate::reference::ProviderId;

const HOUR: i64 = 3_600_000;

/// A state directory with one agent, and a login server.
struct Setup {
    root: tempfile::TempDir,
    server: LoginServer,
    around: Surroundings,
}

impl Setup {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let around = Surroundings { home: None, credentials_dir: Some(root.path().join("credentials")) };
        Self { root, server: LoginServer::start().await, around }
    }

    fn dir(&self, agent: &str) -> PathBuf {
        self.root.path().join("agents").join(agent).join("agent")
    }

    fn logins(&self) -> Logins {
        Logins::new(Http::default(), LoginServers::all_at(&self.server.url()))
    }

    /// Stores logins: id, access, refresh, milliseconds from now to expiry.
    fn store(&self, agent: &str, rows: &[(&str, &str, &str, i64)]) {
        AuthStore::update(&self.dir(agent), &self.around, OnDamage::Refuse, |store| {
            for (id, access, refresh, left) in rows {
                store.put(id, login(access, refresh, *left));
            }
        })
        .unwrap();
    }

    fn stored(&self, agent: &str, id: &str) -> (String, String) {
        shown(AuthStore::load(&self.dir(agent)).unwrap().get(id).unwrap())
    }

    async fn renewed(&self, agent: &str, id: &str) -> Result<String, String> {
        let dir = self.dir(agent);
        let place = LoginPlace { agent_dir: &dir, around: &self.around };
        let found = self.logins().renewed(place, id, Because::Expired).await;
        found.map(|credential| shown(&credential).0).map_err(|error| error.to_string())
    }
}

fn login(access: &str, refresh: &str, left: i64) -> Credential {
    let secret = Secret::OAuth {
        access: SecretString::from(access),
        refresh: SecretString::from(refresh),
        expires: Some(now_ms() + left),
    };
    let mut login = Credential::new(ProviderId::normalize(codex::PROVIDER), secret);
    login.about.account = Some("acc".to_owned());
    login
}

fn shown(credential: &Credential) -> (String, String) {
    let Secret::OAuth { access, refresh, .. } = &credential.secret else { panic!("{credential:?}") };
    (access.expose_secret().to_owned(), refresh.expose_secret().to_owned())
}

fn pair(access: &str, refresh: &str) -> (String, String) {
    (access.to_owned(), refresh.to_owned())
}

const ID: &str = "openai-codex:me@x";

#[tokio::test]
async fn an_expired_login_is_renewed_and_saved_with_what_else_is_known() {
    let setup = Setup::new().await;
    setup.store("main", &[(ID, "old", "r1", -1)]);
    setup.server.script([Scripted::tokens("new", "r2", 3_600)]);
    assert_eq!(setup.renewed("main", ID).await.unwrap(), "new");
    assert_eq!(setup.stored("main", ID), pair("new", "r2"));
    let about = AuthStore::load(&setup.dir("main")).unwrap().get(ID).unwrap().about.clone();
    assert_eq!(about.account.as_deref(), Some("acc"));
    let asked = setup.server.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].path.as_str(), asked[0].field("grant_type"), asked[0].field("refresh_token")),
        ("/oauth/token", "refresh_token", "r1")
    );
    assert_eq!(asked[0].field("client_id"), "app_EMoamEEZ73f0CkXaXp7hrann");
    // The token is fresh now: the server is not asked again.
    assert_eq!(setup.renewed("main", ID).await.unwrap(), "new");
    assert_eq!(setup.server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_wait_cause_one_renewal() {
    let setup = Setup::new().await;
    setup.store("main", &[(ID, "old", "r1", -1)]);
    setup.server.script([Scripted::tokens("new", "r2", 3_600)]);
    // Two sets of logins do not know of each other, as two processes would not.
    let (one, two, dir) = (setup.logins(), setup.logins(), setup.dir("main"));
    let place = LoginPlace { agent_dir: &dir, around: &setup.around };
    let asked = (0..20)
        .map(|n| if n % 2 == 0 { &one } else { &two })
        .map(|logins| logins.renewed(place, ID, Because::Expired));
    for found in futures_util::future::join_all(asked).await {
        assert_eq!(shown(&found.unwrap()), pair("new", "r2"));
    }
    assert_eq!(setup.server.requests().len(), 1);
}

#[tokio::test]
async fn a_login_that_is_nearly_over_is_used_when_it_cannot_be_renewed() {
    let setup = Setup::new().await;
    setup.store("main", &[(ID, "old", "r1", EARLY / 2)]);
    setup.server.script([Scripted::status(500, "{}"), Scripted::tokens("new", "r2", 3_600)]);
    assert_eq!(setup.renewed("main", ID).await.unwrap(), "old");
    assert_eq!(setup.renewed("main", ID).await.unwrap(), "new");
}

#[tokio::test]
async fn failures_are_told_without_secrets_and_change_nothing() {
    let rows = [
        (
            Scripted::status(
                400,
                r#"{"error":"invalid_grant","error_description":"token r1-secret was revoked"}"#,
            ),
            "the login is no longer valid (invalid_grant: token [redacted] was revoked)",
        ),
        (
            Scripted::status(400, r#"{"error":"invalid_grant"}"#),
            "the login is no longer valid (invalid_grant)",
        ),
        (
            Scripted::status(500, r#"{"error":{"message":"out of order"}}"#),
            "the login server answered 500: out of order",
        ),
        (Scripted::status(503, "<html>r1-secret</html>"), "the login server answered 503: a web page"),
        (
            Scripted::status(200, "<html>x</html>"),
            "the login server sent garbage: a web page under status 200",
        ),
        (Scripted::status(200, "[]"), "the login server sent garbage: no JSON under status 200"),
        (Scripted::status(200, "{}"), "the login server sent garbage: an answer without access_token"),
    ];
    for (answer, what) in rows {
        let setup = Setup::new().await;
        setup.store("main", &[(ID, "old", "r1-secret", -1)]);
        setup.server.script([answer]);
        let expect = format!(
            "OAuth token refresh failed for openai-codex: {what}. Please try again or re-authenticate."
        );
        assert_eq!(setup.renewed("main", ID).await.unwrap_err(), expect);
        assert_eq!(setup.stored("main", ID), pair("old", "r1-secret"));
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let setup = Setup::new().await;
    setup.store("main", &[(ID, "old", "r1", -1)]);
    setup.server.script([Scripted::Silence]);
    let dir = setup.dir("main");
    let error = {
        let logins = setup.logins();
        let place = LoginPlace { agent_dir: &dir, around: &setup.around };
        let asked = logins.renewed(place, ID, Because::Expired);
        tokio::pin!(asked);
        // Real until the server has the question, then the clock runs ahead.
        tokio::select! {
            _ = &mut asked => panic!("no answer was given"),
            () = setup.server.asked(1) => {}
        }
        tokio::time::pause();
        asked.await.unwrap_err().to_string()
    };
    assert!(error.contains("did not answer within 15 s"), "{error}");
    StoreLock::acquire(&dir.join(FILE), std::time::Duration::ZERO).expect("the lock is free again");
}

#[tokio::test]
async fn a_refused_token_is_renewed_before_its_time_unless_somebody_did() {
    let setup = Setup::new().await;
    setup.store("main", &[(ID, "old", "r1", HOUR)]);
    setup.server.script([Scripted::tokens("new", "r2", 3_600)]);
    let (logins, dir) = (setup.logins(), setup.dir("main"));
    let place = LoginPlace { agent_dir: &dir, around: &setup.around };
    let refused = SecretString::from("old");
    for _ in 0..2 {
        let found = logins.renewed(place, ID, Because::Refused(&refused)).await.unwrap();
        assert_eq!(shown(&found), pair("new", "r2"));
    }
    assert_eq!(setup.server.requests().len(), 1);
}

#[tokio::test]
async fn another_login_stands_in_for_an_old_default() {
    let setup = Setup::new().await;
    setup.store("main", &[("openai-codex:default", "old", "r1", -1), (ID, "mine", "r9", HOUR)]);
    setup.server.script([Scripted::status(400, r#"{"error":"invalid_grant"}"#)]);
    assert_eq!(setup.renewed("main", "openai-codex:default").await.unwrap(), "mine");
    assert_eq!(setup.stored("main", "openai-codex:default"), pair("old", "r1"));
}

#[tokio::test]
async fn the_main_agents_newer_copy_of_the_same_account_is_taken_over() {
    for (account, expect) in [("acc", true), ("someone else", false)] {
        let setup = Setup::new().await;
        setup.store("work", &[(ID, "old", "r1", -1)]);
        AuthStore::update(&setup.dir("main"), &setup.around, OnDamage::Refuse, |store| {
            let mut theirs = login("newer", "r5", HOUR);
            theirs.about.account = Some(account.to_owned());
            store.put(ID, theirs);
        })
        .unwrap();
        setup.server.script([Scripted::status(400, r#"{"error":"invalid_grant"}"#)]);
        assert_eq!(setup.renewed("work", ID).await.is_ok(), expect, "{account}");
        assert_eq!(setup.stored("work", ID), if expect { pair("newer", "r5") } else { pair("old", "r1") });
    }
}

#[tokio::test]
async fn a_copilot_token_is_exchanged_once_and_kept_until_shortly_before_its_end() {
    let setup = Setup::new().await;
    let (account, other) = (SecretString::from("gho_1"), SecretString::from("gho_2"));
    let token = |token: &str, seconds: i64| {
        Scripted::status(200, &json!({"token": token, "expires_at": now_ms() / 1_000 + seconds}).to_string())
    };
    setup.server.script([token("t1", 1_800), token("t2", 1_800), token("t3", 200), token("t4", 1_800)]);
    let mut found = Vec::new();
    for account in [&account, &account, &other, &account, &account] {
        let token = setup.logins().copilot(&setup.around, account, Because::Expired).await.unwrap();
        found.push(token.expose_secret().to_owned());
    }
    assert_eq!(found, ["t1", "t1", "t2", "t3", "t4"]);
    let asked = &setup.server.requests()[0];
    assert_eq!((asked.path.as_str(), asked.bearer()), ("/copilot_internal/v2/token", Some("gho_1")));
    let path = setup.root.path().join("credentials").join(COPILOT_FILE);
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(kept["token"], "t4");
    // As OpenClaw 2026.2.9 writes it.
    kept.as_object_mut().unwrap().remove("owner");
    std::fs::write(&path, kept.to_string()).unwrap();
    assert_eq!(
        setup.logins().copilot(&setup.around, &other, Because::Expired).await.unwrap().expose_secret(),
        "t4"
    );
}

/// Spec `models.md` §8.4.
#[test]
fn the_kept_copilot_token_is_good_until_five_minutes_before_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(COPILOT_FILE);
    let (owner, end) = (owner_of(&SecretString::from("gho_1")), 1_760_000_000_000);
    let before = now_ms();
    let token = github::CopilotToken { token: SecretString::from("t"), expires_at: end };
    keep_copilot(&path, &owner, &token).unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((&kept["token"], &kept["expiresAt"]), (&json!("t"), &json!(end)));
    assert!((before..=now_ms()).contains(&kept["updatedAt"].as_i64().unwrap()), "{kept}");
    for (left, lasts) in [(300_001, true), (300_000, false), (299_999, false)] {
        assert_eq!(kept_copilot(&path, &owner, end - left).is_some(), lasts, "{left}");
    }
}
