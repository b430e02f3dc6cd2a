//! Expiry of credentials.

use openclaw_models::ProviderId;
use openclaw_models::credentials::{AuthStore, Credential, Secret};
use serde::Serialize;

/// A credential that expires within this time is expiring, in milliseconds.
pub(super) const WARN_AFTER_MS: i64 = 86_400_000;

/// Health of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Health {
    Ok,
    Expiring,
    Expired,
    /// The expiry is unknown; of a provider: it has no credential.
    Missing,
    /// The credential does not expire.
    Static,
}

/// `auth.oauth`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OAuth {
    warn_after_ms: i64,
    pub(super) profiles: Vec<ProfileHealth>,
    providers: Vec<ProviderHealth>,
}

/// Health of one profile.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileHealth {
    profile_id: String,
    pub(super) provider: String,
    #[serde(rename = "type")]
    kind: &'static str,
    pub(super) status: Health,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remaining_ms: Option<i64>,
    source: &'static str,
    pub(super) label: String,
}

impl ProfileHealth {
    /// True if it is a kind that can expire.
    pub(super) fn can_expire(&self) -> bool {
        self.kind != "api_key"
    }
}

/// Health of one provider: the worst of its profiles that can expire.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderHealth {
    provider: String,
    status: Health,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<i64>,
    profiles: Vec<ProfileHealth>,
}

impl OAuth {
    /// Looks at all profiles, and at providers without any.
    pub(super) fn of(store: &AuthStore, providers: &[ProviderId], now: i64) -> Self {
        let mut profiles: Vec<ProfileHealth> =
            store.profiles().map(|(id, credential)| profile(id, credential, now)).collect();
        profiles.sort_by(|a, b| (&a.provider, &a.profile_id).cmp(&(&b.provider, &b.profile_id)));
        let providers = providers.iter().map(|id| provider(id, &profiles, now)).collect();
        Self { warn_after_ms: WARN_AFTER_MS, profiles, providers }
    }
}

fn profile(id: &str, credential: &Credential, now: i64) -> ProfileHealth {
    let (expires_at, status) = match &credential.secret {
        Secret::ApiKey(_) | Secret::Token { expires: None, .. } => (None, Health::Static),
        Secret::Token { expires: Some(at), .. } => (Some(*at), health(*at, now)),
        Secret::OAuth { expires, .. } => (*expires, expires.map_or(Health::Missing, |at| health(at, now))),
    };
    let email = credential.about.email.as_ref().filter(|email| !id.contains(email.as_str()));
    ProfileHealth {
        profile_id: id.to_owned(),
        provider: credential.provider.to_string(),
        kind: credential.secret.kind(),
        status,
        expires_at,
        remaining_ms: expires_at.map(|at| at.saturating_sub(now)),
        source: "store",
        label: email.map_or_else(|| id.to_owned(), |email| format!("{id} ({email})")),
    }
}

fn health(expires_at: i64, now: i64) -> Health {
    match expires_at.saturating_sub(now) {
        ..=0 => Health::Expired,
        1..=WARN_AFTER_MS => Health::Expiring,
        _ => Health::Ok,
    }
}

fn provider(id: &ProviderId, profiles: &[ProfileHealth], now: i64) -> ProviderHealth {
    let own: Vec<ProfileHealth> =
        profiles.iter().filter(|profile| profile.provider == id.as_str()).cloned().collect();
    let expirable: Vec<&ProfileHealth> = own.iter().filter(|profile| profile.can_expire()).collect();
    let has = |wanted: Health| expirable.iter().any(|profile| profile.status == wanted);
    let status = match () {
        () if own.is_empty() => Health::Missing,
        () if expirable.is_empty() => Health::Static,
        () if has(Health::Expired) || has(Health::Missing) => Health::Expired,
        () if has(Health::Expiring) => Health::Expiring,
        () => Health::Ok,
    };
    let expires_at = expirable.iter().filter_map(|profile| profile.expires_at).min();
    ProviderHealth {
        provider: id.to_string(),
        status,
        expires_at,
        remaining_ms: expires_at.map(|at| at.saturating_sub(now)),
        profiles: own,
    }
}
