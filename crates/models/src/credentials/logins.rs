//! Logins that are renewed while they are used: once for all who wait, and once for all processes (spec `models.md` §8.4).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Instant;

use openclaw_config::private_file::{self, Durability};
use openclaw_config::shared_place;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use super::cooldown::millis;
use super::credential::{Credential, Secret};
use super::error::CredentialError;
use super::file::{self, FILE, OnDamage};
use super::legacy::Surroundings;
use super::lock::{LONGEST_HOLD, PATIENCE, StoreLock};
use super::store::AuthStore;
use crate::google::adc::{self, Adc, GoogleTokens};
use crate::net::Http;
use crate::oauth::endpoint::{self, EndpointError};
use crate::oauth::{LoginServers, codex, github};
use openclaw_config::clock::now_ms;

/// A login with less than this left is renewed, in milliseconds; one that can't be is used until its end.
const EARLY: i64 = 60_000;
/// A Copilot token with less than this left is exchanged anew, in milliseconds (spec `models.md` §8.4).
const COPILOT_EARLY: i64 = 5 * 60_000;
/// File of the last Copilot token, below the credentials directory.
const COPILOT_FILE: &str = "github-copilot.token.json";

// A lock is held for the load, the renewal and the save.
const _: () = assert!(endpoint::DEADLINE.as_secs() < LONGEST_HOLD.as_secs());

/// Renews logins. Shared by the whole process; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Logins {
    http: Http,
    servers: LoginServers,
    /// Renewals under way by store: concurrent callers wait for the outcome. Entries live while
    /// somebody waits.
    busy: Arc<Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>>,
    /// Renewals under way.
    begun: TaskTracker,
    /// Tokens for Google's clouds.
    google: GoogleTokens,
}

/// Agent of a login, and the place where the login is stored.
#[derive(Debug, Clone, Copy)]
pub struct LoginPlace<'a> {
    /// The agent's directory.
    pub agent_dir: &'a Path,
    /// Other places that may hold credentials.
    pub around: &'a Surroundings,
}

/// Reason why a login is renewed.
#[derive(Debug, Clone, Copy)]
pub enum Because<'a> {
    /// The login has expired or is about to.
    Expired,
    /// The provider refused this access token though its time is not over, as when the clock was wrong.
    Refused(&'a SecretString),
}

impl<'a> Because<'a> {
    /// The token that was refused.
    fn refused(self) -> Option<&'a SecretString> {
        match self {
            Self::Expired => None,
            Self::Refused(token) => Some(token),
        }
    }

    /// Returns true if a token is the one that was refused.
    fn refuses(self, token: &SecretString) -> bool {
        self.refused().is_some_and(|refused| refused.expose_secret() == token.expose_secret())
    }
}

impl Logins {
    /// Asks these servers over this connection pool.
    pub fn new(http: Http, servers: LoginServers) -> Self {
        Self { http, servers, ..Self::default() }
    }

    /// Returns true if a stored login should and can be renewed before it is used.
    pub(crate) fn is_due(credential: &Credential, now: i64) -> bool {
        let Secret::OAuth { access, refresh, expires } = &credential.secret else { return false };
        let is_over = access.expose_secret().trim().is_empty()
            || expires.is_none_or(|at| now >= at.saturating_sub(EARLY));
        is_over && renews(credential, refresh)
    }

    /// The profile with an access token that can be used: as stored, as another process has renewed it meanwhile, or
    /// renewed now and saved.
    ///
    /// # Errors
    /// [`CredentialError::Renewal`], and [`CredentialError::Expired`] for a login this version can't renew.
    pub async fn renewed(
        &self,
        place: LoginPlace<'_>,
        id: &str,
        because: Because<'_>,
    ) -> Result<Credential, CredentialError> {
        let gate = self.gate(&place.agent_dir.join(FILE));
        let (this, request) = (self.clone(), Renewal::new(place, id, because));
        // Once begun it is ended, also when who asked for it is gone: the server may have taken the old login back
        // already, and the new one must be kept. It is over in the time a store may stay locked.
        let renewal = self.begun.spawn(async move {
            let _turn = gate.lock_owned().await;
            this.renew(request).await
        });
        renewal.await.map_err(|_| CredentialError::Interrupted)?
    }

    async fn renew(&self, request: Renewal) -> Result<Credential, CredentialError> {
        match self.renew_locked(&request).await {
            Ok(credential) => Ok(credential),
            Err(error) => match blocking(move || request.rescue()).await.ok().flatten() {
                Some(credential) => Ok(credential),
                None => Err(error),
            },
        }
    }

    fn gate(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.busy.lock();
        busy.retain(|_, gate| gate.strong_count() > 0);
        if let Some(gate) = busy.get(path).and_then(Weak::upgrade) {
            return gate;
        }
        let gate = Arc::default();
        busy.insert(path.to_path_buf(), Arc::downgrade(&gate));
        gate
    }

    async fn renew_locked(&self, request: &Renewal) -> Result<Credential, CredentialError> {
        let asked = request.clone();
        let (lock, stored, held) = match blocking(move || asked.read_locked()).await?? {
            RenewalState::Fresh(credential) => return Ok(credential),
            RenewalState::Due { lock, stored, held } => (lock, stored, held),
        };
        let Secret::OAuth { refresh, .. } = &stored.secret else { return Err(request.expired()) };
        if !renews(&stored, refresh) {
            return Err(request.expired());
        }
        tracing::info!(profile = %request.id, "renewing the login");
        let left = LONGEST_HOLD.saturating_sub(held.elapsed());
        let asked = codex::refresh(&self.http, &self.servers, refresh, now_ms());
        let answer = tokio::time::timeout(left, asked).await.unwrap_or(Err(EndpointError::Slow));
        let login = answer.map_err(|error| CredentialError::renewal(&stored.provider, error))?;
        let mut next = stored.clone();
        next.secret =
            Secret::OAuth { access: login.access, refresh: login.refresh, expires: Some(login.expires) };
        next.about.account = login.account.or(next.about.account);
        next.about.email = next.about.email.or(login.email);
        let (asked, saved) = (request.clone(), next.clone());
        blocking(move || asked.save(&lock, &saved)).await??;
        Ok(next)
    }

    /// The token Copilot takes for an account's token: the kept one while it lasts and is not refused, else a new one.
    ///
    /// # Errors
    /// [`CredentialError::Renewal`]
    pub async fn copilot(
        &self,
        around: &Surroundings,
        account: &SecretString,
        because: Because<'_>,
    ) -> Result<SecretString, CredentialError> {
        let path = around.credentials_dir.as_ref().map(|dir| dir.join(COPILOT_FILE));
        let gate = self.gate(path.as_deref().unwrap_or(Path::new(COPILOT_FILE)));
        let _turn = gate.lock().await;
        let owner = owner_of(account);
        if let Some(path) = path.clone() {
            let owner = owner.clone();
            let kept = blocking(move || kept_copilot(&path, &owner, now_ms())).await?;
            if let Some(kept) = kept.filter(|kept| !because.refuses(kept)) {
                return Ok(kept);
            }
        }
        let answer = github::exchange(&self.http, &self.servers, account).await;
        let token = answer.map_err(|error| CredentialError::renewal(github::PROVIDER, error))?;
        if let Some(path) = path {
            let kept = token.clone();
            let saved = blocking(move || keep_copilot(&path, &owner, &kept)).await?;
            if let Err(error) = saved {
                tracing::warn!(%error, "cannot keep the Copilot token; it will be asked for again");
            }
        }
        Ok(token.token)
    }

    /// A key for Google's clouds, made of the credentials of this environment.
    ///
    /// # Errors
    /// [`CredentialError::Renewal`]
    pub(crate) async fn google(
        &self,
        adc: &Adc,
        because: Because<'_>,
    ) -> Result<SecretString, CredentialError> {
        let token = self.google.token(&self.http, &self.servers, adc, because.refused()).await;
        Ok(adc.key(&token.map_err(|error| CredentialError::renewal(adc::PROVIDER, error))?))
    }
}

/// Returns true if this version can renew a login. Logins of other providers belong to programs
/// that can.
pub(super) fn renews(credential: &Credential, refresh: &SecretString) -> bool {
    credential.provider.as_str() == codex::PROVIDER && !refresh.expose_secret().trim().is_empty()
}

/// Runs what blocks; an error only when the runtime ends.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CredentialError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| CredentialError::Interrupted)
}

/// Renewal as plain values, for a blocking thread.
#[derive(Clone)]
struct Renewal {
    agent_dir: PathBuf,
    around: Surroundings,
    id: String,
    refused: Option<SecretString>,
}

enum RenewalState {
    Fresh(Credential),
    Due { lock: StoreLock, stored: Credential, held: Instant },
}

impl Renewal {
    fn new(place: LoginPlace<'_>, id: &str, because: Because<'_>) -> Self {
        Self {
            agent_dir: place.agent_dir.to_path_buf(),
            around: place.around.clone(),
            id: id.to_owned(),
            refused: because.refused().cloned(),
        }
    }

    /// Takes the lock and looks whether somebody else was faster.
    fn read_locked(&self) -> Result<RenewalState, CredentialError> {
        let lock = file::lock(&self.agent_dir, PATIENCE).map_err(|error| self.store_failed(&error))?;
        let held = Instant::now();
        let stored = self.load()?;
        Ok(if self.is_fresh(&stored, now_ms(), EARLY) {
            RenewalState::Fresh(stored)
        } else {
            RenewalState::Due { lock, stored, held }
        })
    }

    fn load(&self) -> Result<Credential, CredentialError> {
        let store = AuthStore::load_with(&self.agent_dir, &self.around, now_ms())
            .map_err(|error| self.store_failed(&error))?;
        store.get(&self.id).cloned().ok_or_else(|| CredentialError::NoProfile(self.id.clone()))
    }

    fn is_fresh(&self, credential: &Credential, now: i64, early: i64) -> bool {
        let Secret::OAuth { access, expires, .. } = &credential.secret else { return false };
        let refused = self.refused.as_ref().map(|refused| refused.expose_secret());
        refused != Some(access.expose_secret())
            && !access.expose_secret().trim().is_empty()
            && expires.is_some_and(|at| now < at.saturating_sub(early))
    }

    fn save(&self, lock: &StoreLock, next: &Credential) -> Result<(), CredentialError> {
        let put = |store: &mut AuthStore| store.put(&self.id, next.clone());
        let saved = file::update_locked(lock, &self.agent_dir, &self.around, OnDamage::Refuse, put);
        saved.map(drop).map_err(|error| self.store_failed(&error))
    }

    /// Returns a credential that is still usable after a failed renewal: the login itself if it has
    /// not quite expired or another program renewed it, another login of the same provider in place
    /// of an old `:default`, or the main agent's newer copy of this very login.
    fn rescue(&self) -> Option<Credential> {
        let now = now_ms();
        let store = AuthStore::load_with(&self.agent_dir, &self.around, now).ok()?;
        let own = store.get(&self.id)?;
        if self.is_fresh(own, now, 0) {
            return Some(own.clone());
        }
        if self.id.ends_with(":default") {
            let mut siblings = store.profiles().filter(|(id, other)| {
                *id != self.id && other.provider == own.provider && self.is_fresh(other, now, 0)
            });
            if let Some((id, sibling)) = siblings.next() {
                tracing::warn!(profile = %self.id, sibling = id, "the login can't be renewed; another one is used");
                return Some(sibling.clone());
            }
        }
        let copied = self.main_copy(own, now)?;
        tracing::warn!(profile = %self.id, "the login can't be renewed; the main agent's newer one is taken over");
        let put = |store: &mut AuthStore| store.put(&self.id, copied.clone());
        if let Err(error) = AuthStore::update(&self.agent_dir, &self.around, OnDamage::Refuse, put) {
            tracing::warn!(%error, "cannot keep the login that was taken over");
        }
        Some(copied)
    }

    /// Returns the main agent's copy of a login, only if both are of the same account: an earlier
    /// version copied logins to new agents, and renewing one ends the other.
    fn main_copy(&self, own: &Credential, now: i64) -> Option<Credential> {
        let agents = self.agent_dir.parent()?.parent()?;
        let main = agents.join(openclaw_protocol::AgentId::MAIN).join("agent");
        if main == self.agent_dir {
            return None;
        }
        let theirs = AuthStore::load(&main).ok()?.get(&self.id)?.clone();
        let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        let (ours, other) = (&own.about, &theirs.about);
        let is_same = theirs.provider == own.provider
            && (same(&ours.account, &other.account) || same(&ours.email, &other.email));
        (is_same && self.is_fresh(&theirs, now, 0)).then_some(theirs)
    }

    fn expired(&self) -> CredentialError {
        CredentialError::Expired(self.id.clone())
    }

    fn store_failed(&self, error: &file::AuthStoreError) -> CredentialError {
        CredentialError::renewal(self.id.split(':').next().unwrap_or_default(), error)
    }
}

/// Returns a hash that identifies the account of a stored token without revealing it.
fn owner_of(account: &SecretString) -> String {
    format!("{:.16x}", Sha256::digest(account.expose_secret().trim()))
}

fn kept_copilot(path: &Path, owner: &str, now: i64) -> Option<SecretString> {
    let kept: Value = serde_json::from_slice(&shared_place::read(path).ok()?).ok()?;
    // OpenClaw 2026.2.9 does not say whose it is.
    let is_ours = kept.get("owner").is_none_or(|known| known == owner);
    let lasts =
        kept.get("expiresAt").and_then(millis).is_some_and(|at| at.saturating_sub(now) > COPILOT_EARLY);
    let token = kept.get("token").and_then(Value::as_str).filter(|token| !token.trim().is_empty());
    token.filter(|_| is_ours && lasts).map(SecretString::from)
}

fn keep_copilot(path: &Path, owner: &str, token: &github::CopilotToken) -> std::io::Result<()> {
    let document = json!({
        "token": token.token.expose_secret(),
        "expiresAt": token.expires_at,
        "updatedAt": now_ms(),
        "owner": owner,
    });
    private_file::replace(path, format!("{document:#}\n").as_bytes(), Durability::Whole)
}

#[cfg(test)]
mod tests;
