//! A server for logins: answers what the test says at `/oauth/token`, `/login/device/code`, `/login/oauth/access_token`,
//! `/copilot_internal/v2/token`, and whatever else is asked, over real HTTP on 127.0.0.1.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

use crate::model_server::Gate;

/// Scripted answer.
#[derive(Debug, Clone)]
pub enum Scripted {
    /// A status with a body.
    Answer {
        /// HTTP status.
        status: u16,
        /// JSON, or anything else.
        body: String,
        /// Gate to wait for before it is sent.
        gate: Option<Gate>,
    },
    /// No answer at all, for as long as the connection lasts.
    Silence,
}

impl Scripted {
    /// A status with a body.
    pub fn status(status: u16, body: &str) -> Self {
        Self::Answer { status, body: body.to_owned(), gate: None }
    }

    /// The same answer, once a gate is open.
    #[must_use]
    pub fn behind(self, wait: &Gate) -> Self {
        match self {
            Self::Answer { status, body, .. } => Self::Answer { status, body, gate: Some(wait.clone()) },
            Self::Silence => self,
        }
    }

    /// Tokens of an OAuth server, with their lifetime in seconds.
    pub fn tokens(access: &str, refresh: &str, lifetime: i64) -> Self {
        let body =
            serde_json::json!({"access_token": access, "refresh_token": refresh, "expires_in": lifetime});
        Self::status(200, &body.to_string())
    }
}

/// A question the server was asked.
#[derive(Debug, Clone)]
pub struct LoginQuestion {
    /// Path without query.
    pub path: String,
    form: Vec<(String, String)>,
    authorization: Option<String>,
}

impl LoginQuestion {
    /// A field of the form; empty when it is not there.
    pub fn field(&self, name: &str) -> &str {
        self.form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The bearer token.
    pub fn bearer(&self) -> Option<&str> {
        self.authorization.as_deref()?.strip_prefix("Bearer ")
    }
}

struct LoginServerState {
    script: Mutex<VecDeque<Scripted>>,
    seen: watch::Sender<Vec<LoginQuestion>>,
}

/// A running server. It ends when dropped. Requests that its script does not answer get status 500.
pub struct LoginServer {
    url: String,
    shared: Arc<LoginServerState>,
    task: tokio::task::JoinHandle<()>,
}

impl LoginServer {
    /// Starts one.
    ///
    /// # Panics
    /// When no port can be had: the test can't run.
    #[expect(clippy::expect_used, reason = "testkit: without a port there is no test")]
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared =
            Arc::new(LoginServerState { script: Mutex::default(), seen: watch::Sender::new(Vec::new()) });
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&shared));
        // Owned by the server: aborted when it is dropped.
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { url: format!("http://{address}"), shared, task }
    }

    /// Base URL.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Adds answers, one a question.
    pub fn script(&self, answers: impl IntoIterator<Item = Scripted>) {
        self.shared.script.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
    }

    /// Requests so far.
    pub fn requests(&self) -> Vec<LoginQuestion> {
        self.shared.seen.borrow().clone()
    }

    /// Waits until this many questions were asked.
    pub async fn asked(&self, count: usize) {
        let mut seen = self.shared.seen.subscribe();
        // The sender lives as long as the server.
        let _ = seen.wait_for(|seen| seen.len() >= count).await;
    }
}

impl Drop for LoginServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(shared): State<Arc<LoginServerState>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let question = LoginQuestion {
        path: uri.path().to_owned(),
        form: url::form_urlencoded::parse(&body).into_owned().collect(),
        authorization: authorization.map(str::to_owned),
    };
    let next = shared.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    shared.seen.send_modify(|seen| seen.push(question));
    match next {
        Some(Scripted::Answer { status, body, gate }) => {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, body).into_response()
        }
        Some(Scripted::Silence) => std::future::pending().await,
        None => (StatusCode::INTERNAL_SERVER_ERROR, "{\"error\":\"the script is over\"}").into_response(),
    }
}
