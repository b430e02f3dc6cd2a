//! Google's application default credentials: the file `gcloud` and Google's libraries use, and the tokens made of it (spec
//! `models.md` §2.3).
//!
//! Credentials that other machines vouch for (`external_account`, the metadata of Google's own
//! machines) are not supported. A file of such a kind is named in an error.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::net::Http;
use crate::oauth::LoginServers;
use crate::oauth::endpoint::{EndpointError, post_form};
use crate::variables::Variables;
use openclaw_config::clock::now_ms;

/// Provider id.
pub(crate) const PROVIDER: &str = "google-vertex";
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
const PROJECTS: [&str; 2] = ["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"];
const LOCATION: &str = "GOOGLE_CLOUD_LOCATION";
/// Below the configuration directory of `gcloud`.
const DEFAULT_NAME: &str = "application_default_credentials.json";
/// Scope of a requested token.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Grant type with which an assertion is exchanged (RFC 7523).
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Life of an assertion, and of a token whose server does not say: one hour, in seconds.
const LIFETIME: i64 = 3_600;
/// A token with less than this left is asked for anew, in milliseconds.
const EARLY: i64 = 60_000;
/// Largest file that is read, in bytes.
const MAX_FILE: usize = 1024 * 1024;
/// Largest number of cached tokens: one for each credential in use.
const MAX_KEPT: usize = 16;

/// Credentials, and the project and place they are used in.
#[derive(Debug, Clone)]
pub(crate) struct Adc {
    who: Who,
    project: String,
    location: String,
    /// Project that is billed, if it is not `project`.
    quota_project: Option<String>,
}

#[derive(Debug, Clone)]
enum Who {
    /// A person who logged in with `gcloud auth application-default login`.
    Person { client_id: String, client_secret: SecretString, refresh: SecretString },
    /// A service account with its private key.
    Robot { email: String, key_id: Option<String>, key: SecretString, token_url: String },
}

/// Reason why the file can't be used. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdcError {
    /// The variable names a file that can't be read.
    #[error("cannot read {0}, which GOOGLE_APPLICATION_CREDENTIALS names")]
    Unreadable(String),
    /// The file holds something else.
    #[error("{0} holds no Google credentials: {1}")]
    Damaged(String, &'static str),
    /// The file holds credentials of another kind.
    #[error(
        "{path} holds Google credentials of type \"{kind}\", which is not supported; use a service account's key or \
         `gcloud auth application-default login`"
    )]
    Kind {
        /// The file.
        path: String,
        /// Kind that the file names.
        kind: String,
    },
    /// No project is configured.
    #[error("Vertex AI requires a project ID. Set GOOGLE_CLOUD_PROJECT")]
    NoProject,
    /// No location is configured.
    #[error("Vertex AI requires a location. Set GOOGLE_CLOUD_LOCATION, for example to \"global\"")]
    NoLocation,
}

#[derive(Deserialize)]
struct AdcFile {
    #[serde(rename = "type", default)]
    kind: String,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
    project_id: Option<String>,
    quota_project_id: Option<String>,
}

impl Adc {
    /// The credentials of this environment; nothing where there is no file.
    ///
    /// # Errors
    /// See [`AdcError`].
    pub(crate) async fn find(variables: &Variables) -> Result<Option<Self>, AdcError> {
        let named = variables.get(FILE).map(PathBuf::from);
        let Some(path) = named.clone().or_else(|| default_path(variables)) else { return Ok(None) };
        let shown = path.display().to_string();
        let bytes = match tokio::fs::read(&path).await {
            Ok(bytes) if bytes.len() <= MAX_FILE => bytes,
            Ok(_) => return Err(AdcError::Damaged(shown, "it is too large")),
            Err(_) if named.is_some() => return Err(AdcError::Unreadable(shown)),
            Err(_) => return Ok(None),
        };
        let file: AdcFile =
            serde_json::from_slice(&bytes).map_err(|_| AdcError::Damaged(shown.clone(), "it is no JSON"))?;
        let of_file = file.project_id.clone().or_else(|| file.quota_project_id.clone());
        let quota_project = file.quota_project_id.clone();
        let who = Who::of(file, &shown)?;
        let project = variables.first(PROJECTS).map(|(_, id)| id.to_owned()).or(of_file);
        Ok(Some(Self {
            who,
            project: project.ok_or(AdcError::NoProject)?,
            location: variables.get(LOCATION).map(str::to_owned).ok_or(AdcError::NoLocation)?,
            quota_project,
        }))
    }

    /// Returns true if the file exists; it is not read.
    pub(crate) fn is_there(variables: &Variables) -> bool {
        variables
            .get(FILE)
            .map(PathBuf::from)
            .or_else(|| default_path(variables))
            .is_some_and(|path| path.is_file())
    }

    /// A key as [`crate::provider_key::ProviderKey`] reads it.
    pub(crate) fn key(&self, token: &SecretString) -> SecretString {
        let mut parts = Map::new();
        parts.insert("token".to_owned(), json!(token.expose_secret()));
        parts.insert("projectId".to_owned(), json!(self.project));
        parts.insert("location".to_owned(), json!(self.location));
        if let Some(project) = &self.quota_project {
            parts.insert("quotaProjectId".to_owned(), json!(project));
        }
        SecretString::from(Value::Object(parts).to_string())
    }
}

fn default_path(variables: &Variables) -> Option<PathBuf> {
    let dir = match (variables.get("CLOUDSDK_CONFIG"), variables.get("APPDATA")) {
        (Some(dir), _) => PathBuf::from(dir),
        (None, Some(dir)) if cfg!(windows) => Path::new(dir).join("gcloud"),
        (None, _) => Path::new(variables.get("HOME")?).join(".config/gcloud"),
    };
    Some(dir.join(DEFAULT_NAME))
}

impl Who {
    fn of(file: AdcFile, path: &str) -> Result<Self, AdcError> {
        let lacking = |what: &'static str| AdcError::Damaged(path.to_owned(), what);
        match file.kind.as_str() {
            "authorized_user" => Ok(Self::Person {
                client_id: file.client_id.ok_or_else(|| lacking("client_id is missing"))?,
                client_secret: file.client_secret.ok_or_else(|| lacking("client_secret is missing"))?.into(),
                refresh: file.refresh_token.ok_or_else(|| lacking("refresh_token is missing"))?.into(),
            }),
            "service_account" => Ok(Self::Robot {
                email: file.client_email.ok_or_else(|| lacking("client_email is missing"))?,
                key_id: file.private_key_id,
                key: file.private_key.ok_or_else(|| lacking("private_key is missing"))?.into(),
                token_url: file.token_uri.ok_or_else(|| lacking("token_uri is missing"))?,
            }),
            "" => Err(lacking("type is missing")),
            kind => Err(AdcError::Kind { path: path.to_owned(), kind: kind.to_owned() }),
        }
    }

    /// Returns the key of the credentials in the token cache.
    fn name(&self) -> String {
        match self {
            Self::Person { client_id, refresh, .. } => format!("{client_id} {}", refresh.expose_secret()),
            Self::Robot { email, key_id, .. } => format!("{email} {}", key_id.as_deref().unwrap_or_default()),
        }
    }

    async fn ask(&self, http: &Http, servers: &LoginServers) -> Result<Map<String, Value>, EndpointError> {
        match self {
            Self::Person { client_id, client_secret, refresh } => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose_secret()),
                    ("refresh_token", refresh.expose_secret()),
                ];
                post_form(http, &format!("{}/token", servers.google), &fields).await
            }
            Self::Robot { email, key_id, key, token_url } => {
                let (email, key_id, key, audience) =
                    (email.clone(), key_id.clone(), key.clone(), token_url.clone());
                // A signature takes about a millisecond.
                let signed = tokio::task::spawn_blocking(move || {
                    assertion(&email, key_id.as_deref(), &key, &audience, now_ms() / 1_000)
                });
                let signed = signed.await.ok().flatten().ok_or_else(|| {
                    EndpointError::Garbage("a service account's private_key that is no RSA key".to_owned())
                })?;
                post_form(http, token_url, &[("grant_type", GRANT), ("assertion", &signed)]).await
            }
        }
    }
}

/// A JSON Web Token that says who asks, signed with the account's key. `now` is in Unix seconds.
fn assertion(
    email: &str,
    key_id: Option<&str>,
    key: &SecretString,
    audience: &str,
    now: i64,
) -> Option<String> {
    let body: String = key.expose_secret().lines().filter(|line| !line.starts_with("-----")).collect();
    let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(body.trim()).ok()?).ok()?;
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let (Some(fields), Some(id)) = (header.as_object_mut(), key_id) {
        fields.insert("kid".to_owned(), json!(id));
    }
    let claims = json!({"iss": email, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + LIFETIME});
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The tokens of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct GoogleTokens {
    /// Token cache; locked while a token is fetched, because all others would ask for the same one.
    kept: Arc<tokio::sync::Mutex<HashMap<String, CachedToken>>>,
}

#[derive(Debug)]
struct CachedToken {
    token: SecretString,
    /// Unix milliseconds.
    until: i64,
}

impl GoogleTokens {
    /// A token for these credentials: the kept one while it lasts and is not the refused one, else a new one.
    pub(crate) async fn token(
        &self,
        http: &Http,
        servers: &LoginServers,
        adc: &Adc,
        refused: Option<&SecretString>,
    ) -> Result<SecretString, EndpointError> {
        let name = adc.who.name();
        let mut kept = self.kept.lock().await;
        let is_refused =
            |token: &SecretString| refused.is_some_and(|r| r.expose_secret() == token.expose_secret());
        if let Some(found) = kept.get(&name)
            && now_ms() < found.until - EARLY
            && !is_refused(&found.token)
        {
            return Ok(found.token.clone());
        }
        let answer = adc.who.ask(http, servers).await?;
        let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
        let token =
            token.ok_or_else(|| EndpointError::Garbage("an answer without access_token".to_owned()))?;
        let token = SecretString::from(token);
        let lifetime = answer.get("expires_in").and_then(Value::as_i64).unwrap_or(LIFETIME);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let until = now_ms().saturating_add(lifetime.saturating_mul(1_000));
        kept.insert(name, CachedToken { token: token.clone(), until });
        Ok(token)
    }
}

#[cfg(test)]
mod tests;
