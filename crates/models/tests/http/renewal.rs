//! Logins that a server takes no more before their time: renewed once, and the request made once more.

use std::path::PathBuf;

use openclaw_models::{FailureKind, Models};
use openclaw_testkit::login_server::{LoginServer, Scripted};
use openclaw_testkit::model_server::Captured;

use super::*;

/// An agent's directory, a server for logins and a model that takes certain tokens only.
struct Setup {
    root: tempfile::TempDir,
    logins: LoginServer,
    model: ModelServer,
}

fn bearer(request: &Captured) -> String {
    request.header("authorization").and_then(|h| h.strip_prefix("Bearer ")).unwrap_or_default().to_owned()
}

impl Setup {
    async fn taking(tokens: &'static [&'static str]) -> Self {
        let model = ModelServer::answering(|request| match tokens.contains(&bearer(request).as_str()) {
            true => Reply::text("welcome"),
            false => Reply::openai_error(401, "invalid_request_error", &format!("no: {}", bearer(request))),
        });
        Self { root: tempfile::tempdir().unwrap(), logins: LoginServer::start().await, model: model.await }
    }

    fn agent_dir(&self) -> PathBuf {
        self.root.path().join("agents/main/agent")
    }

    /// A login of the Codex backend that lasts for another hour.
    fn stored(&self) {
        std::fs::create_dir_all(self.agent_dir()).unwrap();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let expires = since.as_millis() + 3_600_000;
        let store = json!({"version": 1, "profiles": {"openai-codex:me": {"type": "oauth", "provider": "openai-codex",
            "access": "old-access", "refresh": "r1-secret", "expires": expires as u64, "accountId": "acc"}}});
        std::fs::write(self.agent_dir().join("auth-profiles.json"), store.to_string()).unwrap();
    }

    fn saved(&self) -> Value {
        let text = std::fs::read_to_string(self.agent_dir().join("auth-profiles.json")).unwrap();
        let store: Value = serde_json::from_str(&text).unwrap();
        store.pointer("/profiles/openai-codex:me/refresh").cloned().unwrap_or_default()
    }

    fn models(&self, variables: &[(&str, &str)]) -> Models {
        let url = self.logins.url();
        let all = [&[("OPENCLAW_LOGIN_SERVER", url.as_str())], variables].concat();
        Models::new(all.into_iter().collect(), Http::default())
    }

    async fn candidate(&self, models: &Models, model: &str) -> Candidate {
        let provider = model.split('/').next().unwrap();
        let entry = serde_json::from_value(json!({"baseUrl": self.model.url(), "models": []})).unwrap();
        let settings =
            ModelSettings { providers: vec![(provider.to_owned(), entry)], ..ModelSettings::default() };
        let agent = AgentId::default();
        let dir = self.agent_dir();
        let ask = Ask { model: Some(model), ..Ask::new(&agent, &dir) };
        models.select(&settings, &ask).await.unwrap().candidates.remove(0)
    }
}

async fn says(candidate: &Candidate) -> String {
    message(&call(candidate, vec![user("hi")]).await).text()
}

#[tokio::test]
async fn a_refused_login_is_renewed_once_and_the_request_made_again() {
    let setup = Setup::taking(&["new-access"]).await;
    setup.stored();
    setup.logins.script([Scripted::tokens("new-access", "r2", 3_600)]);
    let models = setup.models(&[]);
    let candidate = setup.candidate(&models, "openai-codex/gpt-5.3-codex").await;
    assert_eq!(says(&candidate).await, "welcome");
    let sent: Vec<_> = setup.model.requests().iter().map(bearer).collect();
    assert_eq!(sent, ["old-access", "new-access"]);
    assert_eq!(setup.model.requests()[1].header("chatgpt-account-id"), Some("acc"));
    assert_eq!((setup.logins.requests().len(), setup.saved()), (1, json!("r2")));
    // The next call of the same run knows the new one.
    assert_eq!(says(&candidate).await, "welcome");
    assert_eq!((setup.model.requests().len(), setup.logins.requests().len()), (3, 1));
}

#[tokio::test]
async fn a_login_that_is_refused_again_is_not_renewed_again() {
    let setup = Setup::taking(&[]).await;
    setup.stored();
    setup.logins.script([Scripted::tokens("new-access", "r2", 3_600)]);
    let candidate = setup.candidate(&setup.models(&[]), "openai-codex/gpt-5.3-codex").await;
    let found = failure(&call(&candidate, vec![user("hi")]).await);
    assert_eq!(
        (found.kind, found.status, found.message.as_str()),
        (FailureKind::Auth, Some(401), "401 no: [redacted]")
    );
    assert_eq!((setup.model.requests().len(), setup.logins.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_says_so() {
    let setup = Setup::taking(&[]).await;
    setup.stored();
    let revoked = r#"{"error":"invalid_grant","error_description":"r1-secret was revoked"}"#;
    setup.logins.script([Scripted::status(400, revoked)]);
    let candidate = setup.candidate(&setup.models(&[]), "openai-codex/gpt-5.3-codex").await;
    let found = failure(&call(&candidate, vec![user("hi")]).await);
    assert_eq!(found.kind, FailureKind::Auth);
    assert_eq!(
        found.message,
        "OAuth token refresh failed for openai-codex: the login is no longer valid (invalid_grant: [redacted] was \
         revoked). Please try again or re-authenticate."
    );
    assert_eq!((setup.model.requests().len(), setup.saved()), (1, json!("r1-secret")));
}

#[tokio::test]
async fn runs_that_are_refused_together_renew_their_login_once() {
    let setup = Setup::taking(&["new-access"]).await;
    setup.stored();
    // A second question would be answered with status 500.
    setup.logins.script([Scripted::tokens("new-access", "r2", 3_600)]);
    let models = setup.models(&[]);
    let mut candidates = Vec::new();
    for _ in 0..8 {
        candidates.push(setup.candidate(&models, "openai-codex/gpt-5.3-codex").await);
    }
    let said = futures_util::future::join_all(candidates.iter().map(says)).await;
    assert_eq!(said, ["welcome"; 8]);
    assert_eq!(setup.logins.requests().len(), 1);
}

#[tokio::test]
async fn a_renewal_that_was_begun_is_ended_though_the_call_is_cancelled() {
    let setup = Setup::taking(&["new-access"]).await;
    setup.stored();
    let models = setup.models(&[]);
    let candidate = setup.candidate(&models, "openai-codex/gpt-5.3-codex").await;
    let cancel = CancellationToken::new();
    let request = candidate.request(String::new(), vec![user("hi").into()], vec![], None);
    let mut stream = candidate.model.stream(request, cancel.clone());
    let gate = Gate::new();
    setup.logins.script([Scripted::tokens("new-access", "r2", 3_600).behind(&gate)]);
    let next = stream.next();
    tokio::pin!(next);
    tokio::select! {
        _ = &mut next => panic!("the login server has not answered yet"),
        () = setup.logins.asked(1) => cancel.cancel(),
    }
    let Some(ModelEvent::Done { message, .. }) = next.await else { panic!() };
    assert_eq!(message.stop_reason, StopReason::Aborted);
    gate.open();
    // Later calls wait for the renewal and find it done.
    let candidate = setup.candidate(&models, "openai-codex/gpt-5.3-codex").await;
    assert_eq!(says(&candidate).await, "welcome");
    assert_eq!((setup.logins.requests().len(), setup.saved()), (1, json!("r2")));
}

#[tokio::test]
async fn copilots_token_is_exchanged_again_when_it_is_refused() {
    let setup = Setup::taking(&["t2"]).await;
    let token =
        |name: &str| Scripted::status(200, &format!(r#"{{"token":"{name}","expires_at":4102444800}}"#));
    setup.logins.script([token("t1"), token("t2")]);
    let models = setup.models(&[("COPILOT_GITHUB_TOKEN", "gho-account")]);
    for (model, path) in [("gpt-5.2", "/responses"), ("claude-sonnet-4.5", "/chat/completions")] {
        let candidate = setup.candidate(&models, &format!("github-copilot/{model}")).await;
        assert_eq!(says(&candidate).await, "welcome", "{model}");
        let last = setup.model.requests().pop().unwrap();
        assert_eq!((last.path.as_str(), bearer(&last).as_str()), (path, "t2"));
        assert_eq!(
            (last.header("x-initiator"), last.header("openai-intent")),
            (Some("user"), Some("conversation-edits"))
        );
        assert_eq!(last.header("editor-version"), Some(concat!("openclaw/", env!("CARGO_PKG_VERSION"))));
    }
    assert_eq!((setup.model.requests().len(), setup.logins.requests().len()), (3, 2));
    assert!(setup.logins.requests().iter().all(|asked| asked.bearer() == Some("gho-account")));
}

#[tokio::test]
async fn gemini_is_called_at_googles_cloud_with_the_login_of_gcloud() {
    let setup = Setup::taking(&["ya29.new"]).await;
    setup.logins.script([Scripted::tokens("ya29.old", "-", 3_600), Scripted::tokens("ya29.new", "-", 3_600)]);
    let file = setup.root.path().join("adc.json");
    let person =
        json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"});
    std::fs::write(&file, person.to_string()).unwrap();
    let file = file.display().to_string();
    let place = [
        ("GOOGLE_APPLICATION_CREDENTIALS", file.as_str()),
        ("GOOGLE_CLOUD_PROJECT", "p1"),
        ("GOOGLE_CLOUD_LOCATION", "europe-west4"),
    ];
    let models = setup.models(&place);
    let candidate = setup.candidate(&models, "google-vertex/gemini-3-pro-preview").await;
    assert_eq!((candidate.auth.mode, candidate.auth.source.as_str()), ("token", "gcloud adc"));
    assert_eq!(says(&candidate).await, "welcome");
    let sent: Vec<_> = setup.model.requests().iter().map(bearer).collect();
    assert_eq!(sent, ["ya29.old", "ya29.new"]);
    let path = "/v1beta1/projects/p1/locations/europe-west4/publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse";
    assert_eq!(setup.model.requests()[0].path, path);
    // The next run finds the token that is good.
    let candidate = setup.candidate(&models, "google-vertex/gemini-3-pro-preview").await;
    assert_eq!(says(&candidate).await, "welcome");
    assert_eq!((setup.model.requests().len(), setup.logins.requests().len()), (3, 2));
}
