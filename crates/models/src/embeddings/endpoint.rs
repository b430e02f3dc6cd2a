//! Address, key and headers of requests (spec `memory.md` §12.1).

use openclaw_embedding::EmbedderIdentity;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::limits::ServerKind;
use super::provider::{EmbeddingProvider, RemoteFacts};
use super::settings::EmbeddingSettings;
use crate::net::{Headers, JSON, NetError, is_local_url};
use crate::provider_entry::ProviderEntry;
use crate::provider_key::ProviderKey;

/// Name of the header that says what a request holds, as OpenClaw writes it.
const CONTENT_TYPE: &str = "Content-Type";
/// Header with Gemini's key.
const GEMINI_KEY: &str = "x-goog-api-key";

/// An address with what is sent along.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) provider: EmbeddingProvider,
    /// Address without a slash at its end.
    pub(super) root: String,
    pub(super) key: Option<ProviderKey>,
    headers: Vec<(String, SecretString)>,
    pub(super) kind: ServerKind,
}

/// The address of a provider's requests, before its key is looked up.
#[derive(Debug)]
pub(super) struct EndpointAddress<'a> {
    provider: EmbeddingProvider,
    settings: &'a EmbeddingSettings,
    configured: Option<&'a ProviderEntry>,
    /// As it is written.
    written: String,
    /// True if the address is the provider's, or that of its section in `models.providers`.
    is_own: bool,
}

impl<'a> EndpointAddress<'a> {
    /// Finds the address: `remote.baseUrl`, else that of `models.providers`, else the provider's.
    pub(super) fn of(
        provider: EmbeddingProvider,
        facts: &'static RemoteFacts,
        settings: &'a EmbeddingSettings,
        configured: Option<&'a ProviderEntry>,
    ) -> Self {
        let of_provider = configured.and_then(|entry| entry.base_url.as_deref()).map(str::trim);
        let of_provider = of_provider.filter(|url| !url.is_empty());
        let written = settings.remote.base_url().or(of_provider).unwrap_or(facts.base_url).to_owned();
        let own = [Some(facts.base_url), of_provider].into_iter().flatten().filter_map(origin);
        let is_own = own.into_iter().any(|own| origin(&written).as_ref() == Some(&own));
        Self { provider, settings, configured, written, is_own }
    }

    /// Returns true if the provider's stored key and headers may be sent there, and not to somebody else.
    pub(super) fn takes_stored_key(&self) -> bool {
        self.is_own
    }

    fn kind(&self) -> ServerKind {
        match (is_local_url(&self.written), self.is_own) {
            (true, _) => ServerKind::OnThisMachine,
            (false, true) => ServerKind::Own,
            (false, false) => ServerKind::Foreign,
        }
    }

    /// Returns true if the address is that of another provider.
    pub(super) fn is_of_another_provider(&self) -> bool {
        let others = EmbeddingProvider::REMOTE.into_iter().filter(|other| *other != self.provider);
        let mut addresses = others.filter_map(EmbeddingProvider::facts).map(|facts| facts.base_url);
        addresses.any(|other| origin(other) == origin(&self.written))
    }

    /// Puts the endpoint together, and the identity of its vectors.
    pub(super) fn with_key(self, key: Option<SecretString>, model: &str) -> (Endpoint, EmbedderIdentity) {
        let mut headers = vec![(CONTENT_TYPE.to_owned(), SecretString::from(JSON))];
        let kind = self.kind();
        let stored = self.configured.filter(|_| self.is_own).map(|entry| &entry.headers);
        for (name, value) in stored.into_iter().flatten().chain(&self.settings.remote.headers) {
            headers.retain(|(known, _)| known != name);
            headers.push((name.clone(), value.clone()));
        }
        let plain: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect();
        let root = root(self.provider, &self.written);
        let addresses = match self.provider {
            // The reference hashes Gemini's address without the slash, OpenAI's as it is written.
            EmbeddingProvider::Gemini => vec![root.clone(), self.written.clone()],
            EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local => {
                vec![self.written.clone(), root.clone(), format!("{root}/")]
            }
        };
        let identity = EmbedderIdentity::remote(self.provider.id(), model, &addresses, &plain);
        let key = key.map(ProviderKey::from);
        (Endpoint { provider: self.provider, root, key, headers, kind }, identity)
    }
}

impl Endpoint {
    /// The endpoint of a server that this process runs itself.
    pub(super) fn of_child(port: u16, key: SecretString) -> Self {
        Self {
            provider: EmbeddingProvider::Local,
            root: format!("http://127.0.0.1:{port}/v1"),
            key: Some(ProviderKey::from(key)),
            headers: Vec::new(),
            kind: ServerKind::OnThisMachine,
        }
    }

    /// The headers of a request that posts JSON.
    pub(super) fn headers(&self) -> Result<Headers, NetError> {
        self.authorized(Headers::posting(JSON))
    }

    /// Adds key and headers; what the owner writes wins.
    pub(super) fn authorized(&self, mut headers: Headers) -> Result<Headers, NetError> {
        if let Some(key) = &self.key {
            match self.provider {
                EmbeddingProvider::Gemini => headers.set(GEMINI_KEY, key.expose())?,
                EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local => {
                    headers.bearer(key.expose())?;
                }
            }
        }
        for (name, value) in &self.headers {
            if name != CONTENT_TYPE {
                headers.set(name, value.expose_secret())?;
            }
        }
        Ok(headers)
    }

    /// Takes everything secret out of a text.
    pub(super) fn redact(&self, text: &str) -> String {
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        let values = self.headers.iter().filter(|(name, _)| name != CONTENT_TYPE);
        values.fold(text, |text, (_, value)| crate::net::redact(&text, Some(value.expose_secret())))
    }
}

/// An address as requests begin with it.
fn root(provider: EmbeddingProvider, written: &str) -> String {
    let root = written.trim().trim_end_matches('/');
    let root = match (provider, root.split_once("/openai")) {
        // The address of Gemini's stand-in for OpenAI's API.
        (EmbeddingProvider::Gemini, Some((before, _))) => before,
        _ => root,
    };
    root.trim_end_matches('/').to_owned()
}

/// Scheme, host and port.
fn origin(address: &str) -> Option<(String, String, Option<u16>)> {
    let url = Url::parse(address.trim()).ok()?;
    Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::embeddings::RemoteEmbeddings;

    fn settings(base_url: &str, headers: &[(&str, &str)]) -> EmbeddingSettings {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), SecretString::from(*value)));
        let remote = RemoteEmbeddings {
            base_url: Some(base_url.to_owned()),
            headers: headers.collect::<BTreeMap<_, _>>(),
            ..RemoteEmbeddings::default()
        };
        EmbeddingSettings { remote, ..EmbeddingSettings::default() }
    }

    fn provider_entry(base_url: &str) -> ProviderEntry {
        let headers = [("X-Org".to_owned(), SecretString::from("stored-org"))].into();
        ProviderEntry { base_url: Some(base_url.to_owned()), headers, ..ProviderEntry::default() }
    }

    /// Root, whether the stored key is sent, kind.
    fn found(provider: EmbeddingProvider, remote: &str, configured: &str) -> (String, bool, ServerKind) {
        let (settings, entry) = (settings(remote, &[]), provider_entry(configured));
        let entry = Some(&entry).filter(|_| !configured.is_empty());
        let address = EndpointAddress::of(provider, provider.facts().unwrap(), &settings, entry);
        let (takes, kind) = (address.takes_stored_key(), address.kind());
        (address.with_key(None, "m").0.root, takes, kind)
    }

    #[test]
    fn stored_keys_go_to_their_own_provider_alone() {
        use EmbeddingProvider::{Gemini, OpenAi, Voyage};
        use ServerKind::{Foreign, OnThisMachine, Own};
        let openai = "https://api.openai.com/v1";
        let rows = [
            ((OpenAi, "", ""), (openai, true, Own)),
            ((OpenAi, " https://api.openai.com/v1/ ", ""), (openai, true, Own)),
            ((OpenAi, "", "https://proxy.example/v1"), ("https://proxy.example/v1", true, Own)),
            (
                (OpenAi, "https://proxy.example/other", "https://proxy.example/v1"),
                ("https://proxy.example/other", true, Own),
            ),
            ((OpenAi, "https://evil.example/v1", ""), ("https://evil.example/v1", false, Foreign)),
            ((OpenAi, "http://api.openai.com/v1", ""), ("http://api.openai.com/v1", false, Foreign)),
            (
                (OpenAi, "https://api.openai.com.evil.example/v1", ""),
                ("https://api.openai.com.evil.example/v1", false, Foreign),
            ),
            ((OpenAi, "http://127.0.0.1:11434/v1", ""), ("http://127.0.0.1:11434/v1", false, OnThisMachine)),
            (
                (Gemini, "https://generativelanguage.googleapis.com/v1beta/openai/", ""),
                ("https://generativelanguage.googleapis.com/v1beta", true, Own),
            ),
            ((Voyage, "", ""), ("https://api.voyageai.com/v1", true, Own)),
        ];
        for ((provider, remote, configured), (root, takes, kind)) in rows {
            assert_eq!(found(provider, remote, configured), (root.to_owned(), takes, kind), "{remote}");
        }
    }

    #[test]
    fn headers_of_the_owner_win_and_stored_ones_stay_at_home() {
        let pairs = |remote: &str, headers: &[(&str, &str)]| {
            let (settings, entry) = (settings(remote, headers), provider_entry("https://own.example/v1"));
            let facts = EmbeddingProvider::OpenAi.facts().unwrap();
            let address = EndpointAddress::of(EmbeddingProvider::OpenAi, facts, &settings, Some(&entry));
            let (endpoint, _) = address.with_key(Some(SecretString::from("sk-123456")), "m");
            let mut pairs = endpoint.headers().unwrap().pairs();
            pairs.sort();
            assert_eq!(
                endpoint.redact("sk-123456 stored-org"),
                "[redacted] stored-org"
                    .replace("stored-org", if remote.contains("own") { "[redacted]" } else { "stored-org" })
            );
            pairs.into_iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
        };
        let json = ["accept: application/json", "content-type: application/json"];
        let with = |rest: &[&str]| {
            let mut all: Vec<String> = json.iter().chain(rest).map(|line| (*line).to_owned()).collect();
            all.sort();
            all
        };
        assert_eq!(
            pairs("https://own.example/v1", &[]),
            with(&["authorization: Bearer sk-123456", "x-org: stored-org"])
        );
        assert_eq!(
            pairs("https://other.example/v1", &[("Authorization", "Basic abc")]),
            with(&["authorization: Basic abc"])
        );
    }
}
