//! Credentials that older versions and other programs keep elsewhere (spec `models.md` §8.1).

use std::path::{Path, PathBuf};

use openclaw_config::shared_place;
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::cooldown::millis;
use super::credential::{Credential, Secret};
use super::store::AuthStore;
use crate::reference::ProviderId;
use crate::variables::Variables;

/// Credentials of one agent before there were profiles: `{provider: credential}`.
const OLD_FILE: &str = "auth.json";
/// Logins before there were agents, below the credentials directory.
const OAUTH_FILE: &str = "oauth.json";
/// A stored login is taken over from another program again when it has less than this left, in milliseconds.
const NEARLY_OVER: i64 = 10 * 60_000;
/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Logins of other programs: profile id, file below the home directory.
const OTHERS: &[(&str, &str)] = &[
    ("qwen-portal:qwen-cli", ".qwen/oauth_creds.json"),
    ("minimax-portal:minimax-cli", ".minimax/oauth_creds.json"),
];

/// Other places in which credentials may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The person's home directory.
    pub home: Option<PathBuf>,
    /// `<state>/credentials`.
    pub credentials_dir: Option<PathBuf>,
}

impl Surroundings {
    /// Reads the environment for the agent of a directory: `OPENCLAW_OAUTH_DIR`, or `credentials`
    /// of the state directory that `<state>/agents/<id>/agent` lies in.
    pub fn of(variables: &Variables, agent_dir: &Path) -> Self {
        let home =
            variables.first(["OPENCLAW_HOME", "HOME", "USERPROFILE"]).map(|(_, dir)| PathBuf::from(dir));
        let state = agent_dir.parent().and_then(Path::parent).and_then(Path::parent);
        let by_place = || state.map(|dir| dir.join("credentials"));
        let expand = |dir: &str| match (dir.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(dir),
        };
        let credentials_dir = variables.get("OPENCLAW_OAUTH_DIR").map(expand).or_else(by_place);
        Self { home, credentials_dir }
    }

    /// Adds the logins that other programs keep fresh, for this process alone. A stored one that lasts is left.
    pub(super) fn show_logins_of_others(&self, store: &mut AuthStore, now: i64) {
        let Some(home) = &self.home else { return };
        for (id, file) in OTHERS {
            if store.get(id).is_some_and(|known| lasts(known, now)) {
                continue;
            }
            let provider = ProviderId::normalize(id.split(':').next().unwrap_or_default());
            if let Some(login) = read_json(&home.join(file)).and_then(|file| foreign_login(provider, &file)) {
                store.show(id, login);
            }
        }
    }
}

fn lasts(credential: &Credential, now: i64) -> bool {
    match &credential.secret {
        Secret::ApiKey(_) => true,
        Secret::Token { expires, .. } | Secret::OAuth { expires, .. } => {
            expires.is_none_or(|at| at > now.saturating_add(NEARLY_OVER))
        }
    }
}

/// `{access_token, refresh_token, expiry_date}`
fn foreign_login(provider: ProviderId, file: &Map<String, Value>) -> Option<Credential> {
    let text = |name: &str| file.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let expires = file.get("expiry_date").and_then(millis).filter(|at| *at > 0)?;
    let (access, refresh) = (text("access_token")?, text("refresh_token")?);
    let secret = Secret::OAuth {
        access: SecretString::from(access),
        refresh: SecretString::from(refresh),
        expires: Some(expires),
    };
    Some(Credential::new(provider, secret))
}

/// Credentials found in other places.
#[derive(Debug, Default)]
pub(super) struct Import {
    pub(super) store: AuthStore,
    /// Files whose content is all in the store, to be retired once it is written.
    pub(super) sources: Vec<PathBuf>,
}

/// Imports credentials that older versions left for an agent that has no store yet. Logins without
/// an agent are the main agent's alone: a refresh token serves one owner.
pub(super) fn import(agent_dir: &Path, around: &Surroundings) -> Import {
    let mut found = Import::default();
    let old = agent_dir.join(OLD_FILE);
    if let Some(file) = read_json(&old) {
        take(&mut found.store, &file, None);
        if found.store.profiles().next().is_some() {
            found.sources.push(old);
        }
    }
    if is_main(agent_dir)
        && let Some(dir) = &around.credentials_dir
        && let Some(file) = read_json(&dir.join(OAUTH_FILE))
    {
        take(&mut found.store, &file, Some("oauth"));
    }
    found
}

/// Adds `{provider: credential}` as `<provider>:default` where that id is free.
fn take(store: &mut AuthStore, file: &Map<String, Value>, kind: Option<&str>) {
    for (provider, entry) in file {
        let id = format!("{provider}:default");
        let Some(mut entry) = entry.as_object().cloned().filter(|_| store.get(&id).is_none()) else {
            continue;
        };
        entry.entry("provider").or_insert_with(|| json!(provider));
        if let Some(kind) = kind {
            entry.entry("type").or_insert_with(|| json!(kind));
        }
        if let Some(credential) = Credential::read(&Value::Object(entry)) {
            store.put(&id, credential);
        }
    }
}

fn is_main(agent_dir: &Path) -> bool {
    agent_dir.parent().and_then(Path::file_name).is_some_and(|name| name == openclaw_protocol::AgentId::MAIN)
}

/// Keeps an imported file under a name nobody reads.
pub(super) fn retire(path: &Path) {
    let mut name = path.as_os_str().to_owned();
    name.push(".imported");
    if let Err(error) = std::fs::rename(path, PathBuf::from(name)) {
        tracing::warn!(file = %path.display(), %error, "cannot rename the imported credentials");
    }
}

/// A JSON object from a file; nothing for anything else.
fn read_json(path: &Path) -> Option<Map<String, Value>> {
    if std::fs::metadata(path).ok()?.len() > MAX_FILE {
        return None;
    }
    let parsed = serde_json::from_slice(&shared_place::read(path).ok()?);
    match parsed {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) | Err(_) => {
            tracing::warn!(file = %path.display(), "passed over a credentials file that is no JSON object");
            None
        }
    }
}

#[cfg(test)]
mod tests;
