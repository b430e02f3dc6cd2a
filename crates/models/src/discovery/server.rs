//! Asking a server, whatever it is.

use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::inquiry::KnownAs;
use crate::net::{Headers, Http, JSON};

/// Largest list that is read.
const MAX_LIST: usize = 4 * 1024 * 1024;
/// A server to ask.
#[derive(Debug, Clone)]
pub(super) struct Server<'a> {
    pub(super) http: &'a Http,
    /// Address without `/v1`.
    pub(super) root: &'a str,
    pub(super) key: Option<&'a SecretString>,
    pub(super) known_as: KnownAs,
}

impl Server<'_> {
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        self.answer(path, None).await
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, String> {
        self.answer(path, Some(body)).await
    }

    async fn answer<T: DeserializeOwned>(&self, path: &str, body: Option<&Value>) -> Result<T, String> {
        let url = format!("{}{path}", self.root);
        let mut headers = if body.is_some() { Headers::posting(JSON) } else { Headers::accepting(JSON) };
        if let Some(key) = self.key {
            headers.bearer(key.expose_secret()).map_err(|error| error.to_string())?;
        }
        let incoming = match body {
            Some(body) => self.http.post_json(&url, headers, body.to_string().into_bytes()).await,
            None => self.http.get(&url, headers).await,
        };
        let incoming = incoming.map_err(|error| error.to_string())?;
        if !(200..300).contains(&incoming.status) {
            return Err(format!("{path} answers with status {}", incoming.status));
        }
        let bytes = incoming.whole(MAX_LIST).await.map_err(|error| error.to_string())?;
        serde_json::from_slice(&bytes)
            .map_err(|_| format!("{path} answers with something else than expected"))
    }

    /// Returns true if the answer shows that the server is what we take it for, or if the server's
    /// kind is configured.
    pub(super) fn is_believed(&self, shows_it: bool) -> bool {
        shows_it || self.known_as == KnownAs::Stated
    }
}

/// A list of models as OpenAI gives it.
#[derive(Debug, serde::Deserialize)]
pub(super) struct ModelList<M> {
    pub(super) data: Vec<M>,
}

/// Returns true if the id is that of a model that reasons, as far as ids tell (spec `models.md`
/// §2.3).
pub(super) fn reasons(id: &str) -> bool {
    let id = id.to_lowercase();
    id.contains("r1") || id.contains("reasoning")
}

/// Returns the kinds of input that a model takes.
pub(super) fn input(sees: bool) -> Option<Vec<String>> {
    let kinds: &[&str] = if sees { &["text", "image"] } else { &["text"] };
    Some(kinds.iter().map(|kind| (*kind).to_owned()).collect())
}
