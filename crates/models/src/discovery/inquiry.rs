//! Chooses the servers to ask: pure, before anything is asked.

use secrecy::{ExposeSecret, SecretString};

use super::address::{Whereabouts, root};
use crate::bedrock;
use crate::catalog::own_key_variables;
use crate::credentials::{Connections, Secret, profile_order};
use crate::provider_entry::{Asks, ProviderEntry};
use crate::reference::ProviderId;
use crate::settings::BedrockDiscovery;
use openclaw_config::clock::now_ms;

/// Question to one server.
#[derive(Debug, Clone)]
pub(crate) struct Inquiry {
    /// Provider whose models are requested.
    pub(crate) provider: ProviderId,
    /// Content of the question; answers are cached by it.
    pub(super) source: DiscoverySource,
    /// The built-in address was replaced, whether the server answers or not.
    pub(super) moved: bool,
    /// Key for servers that require one.
    pub(super) key: Option<SecretString>,
}

/// Server and kind of a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum DiscoverySource {
    /// A server with a way of its own to say which models it has.
    Server {
        asks: Asks,
        /// Address without `/v1`.
        root: String,
        /// Certainty that the server is what we take it for.
        known_as: KnownAs,
    },
    Bedrock(BedrockDiscovery),
}

/// Certainty that a server is what we take it for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum KnownAs {
    /// The server's kind is configured.
    Stated,
    /// The server listens where such a server usually does: its answer must show what it is.
    Guessed,
}

impl Inquiry {
    /// Returns true if the question is for a program for local models.
    pub(crate) fn is_local(&self) -> bool {
        matches!(&self.source, DiscoverySource::Server { asks, .. } if asks.is_local())
    }
}

/// Every question that makes sense with what is configured and connected.
pub(crate) fn inquiries(connections: &Connections<'_>) -> Vec<Inquiry> {
    let places = Whereabouts::of(connections.variables);
    let servers = connections.catalog.providers().filter_map(|(id, entry)| {
        let asks = entry.asks?;
        if asks.is_local() {
            local(id, asks, entry, connections, &places)
        } else {
            service(id, asks, entry, connections)
        }
    });
    servers.chain(bedrock(connections)).collect()
}

/// A program for local models: one that somebody configured or connected, else one that may be there.
fn local(
    id: &ProviderId,
    asks: Asks,
    entry: &ProviderEntry,
    connections: &Connections<'_>,
    places: &Whereabouts,
) -> Option<Inquiry> {
    let is_configured = connections.catalog.is_configured(id);
    let is_connected = is_configured || connections.is_connected(id);
    if !is_connected && !places.looked_for {
        return None;
    }
    let stated = places.of_program(asks).filter(|_| !is_configured);
    let known_as = if is_configured || stated.is_some() { KnownAs::Stated } else { KnownAs::Guessed };
    let address = stated.or(entry.base_url.as_deref())?;
    let source = DiscoverySource::Server { asks, root: root(address).to_owned(), known_as };
    Some(Inquiry { provider: id.clone(), source, moved: stated.is_some(), key: key(id, entry, connections) })
}

/// A service on the internet: only one the owner has a credential for. Its list is public, so no key is sent.
fn service(
    id: &ProviderId,
    asks: Asks,
    entry: &ProviderEntry,
    connections: &Connections<'_>,
) -> Option<Inquiry> {
    let root = entry.base_url.as_deref().filter(|_| connections.is_connected(id))?;
    let root = root.trim_end_matches('/').to_owned();
    let source = DiscoverySource::Server { asks, root, known_as: KnownAs::Stated };
    Some(Inquiry { provider: id.clone(), source, moved: false, key: None })
}

fn bedrock(connections: &Connections<'_>) -> Option<Inquiry> {
    let discovery = &connections.settings.bedrock;
    let provider = ProviderId::normalize(bedrock::PROVIDER);
    connections.catalog.provider(&provider)?;
    discovery.should_run(connections.variables).then(|| Inquiry {
        provider,
        source: DiscoverySource::Bedrock(discovery.clone()),
        moved: false,
        key: None,
    })
}

/// A key that is at hand: nothing is fetched or run for a question.
fn key(id: &ProviderId, entry: &ProviderEntry, connections: &Connections<'_>) -> Option<SecretString> {
    let profiles = profile_order(id, connections.store, connections.settings, None, now_ms());
    let stored = profiles.iter().find_map(|profile| match &connections.store.get(profile)?.secret {
        Secret::ApiKey(key) => Some(key.clone()),
        Secret::Token { token, .. } => Some(token.clone()),
        Secret::OAuth { .. } => None,
    });
    let variable =
        || connections.variables.first(own_key_variables(id)).map(|(_, key)| SecretString::from(key));
    let written = || {
        let written = entry.api_key.as_ref()?.expose_secret().trim();
        let name = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(written);
        let is_plain = !written.is_empty() && !written.starts_with('!');
        is_plain.then(|| SecretString::from(connections.variables.get(name).unwrap_or(written)))
    };
    stored.or_else(variable).or_else(written)
}
