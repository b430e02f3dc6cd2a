//! Stores a credential, and names it in the config so that it is asked (spec `models.md` §8.1).

use std::collections::BTreeSet;
use std::path::PathBuf;

use openclaw_config::write::{self, Actor};
use openclaw_config::{ResolvedAgent, nearest, value_path};
use openclaw_models::catalog::Catalog;
use openclaw_models::credentials::{AuthStore, Credential, FILE, OnDamage, Surroundings};
use openclaw_models::{ModelSettings, ProviderId, Variables};
use serde_json::{Value, json};

use crate::commands::config::write_failure;
use crate::commands::models::change::{Choice, Defaults};
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::output;

/// Store for one agent's credentials.
pub(super) struct Keeper<'a> {
    pub(super) context: &'a CliContext,
    pub(super) agent: ResolvedAgent,
    pub(super) variables: Variables,
}

impl Keeper<'_> {
    /// The file.
    pub(super) fn path(&self) -> PathBuf {
        self.agent.agent_dir.join(FILE)
    }

    /// The store as it is.
    pub(super) fn load(&self) -> Result<AuthStore, CommandFailure> {
        AuthStore::load(&self.agent.agent_dir)
            .map_err(|error| CommandFailure::new("auth-store", error.to_string()))
    }

    /// Changes the store; a damaged one is kept aside, and the person is told.
    pub(super) fn update<T>(
        &self,
        on_damage: OnDamage,
        change: impl FnMut(&mut AuthStore) -> T,
    ) -> Result<T, CommandFailure> {
        let dir = &self.agent.agent_dir;
        let updated = AuthStore::update(dir, &Surroundings::of(&self.variables, dir), on_damage, change)
            .map_err(|error| CommandFailure::new("auth-store", error.to_string()))?;
        if let Some(aside) = updated.set_aside {
            let text = format!("The old credentials file was damaged; it is kept as {}", aside.display());
            output::error_line(&self.context.style.warn(&text));
        }
        Ok(updated.value)
    }

    /// Stores a profile and says so, without any of its secret.
    pub(super) fn keep(&self, id: &str, credential: &Credential) -> Result<(), CommandFailure> {
        self.update(OnDamage::SetAside, |store| store.put(id, credential.clone()))?;
        let mode = credential.secret.kind();
        if self.name_in_config(id, credential)? {
            output::line(&format!("Updated {}", self.context.short(self.context.paths().config_path())));
        }
        output::line(&format!("Auth profile: {id} ({}/{mode})", credential.provider));
        self.warn_of_unknown(&credential.provider);
        Ok(())
    }

    /// Warns if no model has the provider of a credential: most likely it was mistyped.
    fn warn_of_unknown(&self, provider: &ProviderId) {
        let settings = ModelSettings::from(self.context.config_or_default().as_ref());
        let catalog = Catalog::new(&settings);
        if catalog.provider(provider).is_some() {
            return;
        }
        let known = catalog.rows(|_| true).into_iter().map(|row| row.provider).collect::<BTreeSet<_>>();
        let meant = nearest(provider.as_str(), known.iter().map(String::as_str));
        let meant = meant.map(|meant| format!(" Did you mean {meant}?")).unwrap_or_default();
        let text = format!(
            "Provider {provider} is not known: no model uses this credential until models.providers.{provider} is in the \
             config.{meant}"
        );
        output::error_line(&self.context.style.warn(&text));
    }

    /// `auth.profiles.<id>`, and first in an order the config has; whether anything changed.
    fn name_in_config(&self, id: &str, credential: &Credential) -> Result<bool, CommandFailure> {
        let loaded = &self.context.loaded;
        let mut next = loaded.snapshot.parsed.clone();
        name_profile(&mut next, id, credential);
        if next == loaded.snapshot.parsed {
            return Ok(false);
        }
        write::write(loaded, &next, Actor::Cli).map_err(write_failure)?;
        Ok(true)
    }

    /// Makes a model the default.
    pub(super) fn set_default(&self, model: &str) -> Result<(), CommandFailure> {
        // The file was just written by this command.
        let context = self.context.reread();
        let mut defaults = Defaults::open(&context)?;
        defaults.put_primary(Choice::Text, model);
        defaults.save_silently()?;
        output::line(&format!("Default model set to {model}"));
        Ok(())
    }
}

fn name_profile(config: &mut Value, id: &str, credential: &Credential) {
    let mut entry = json!({ "provider": credential.provider.as_str(), "mode": credential.secret.kind() });
    if let (Some(email), Some(entry)) = (&credential.about.email, entry.as_object_mut()) {
        entry.insert("email".to_owned(), json!(email));
    }
    value_path::set(config, &["auth", "profiles", id].map(str::to_owned), entry);
    let orders = config.pointer_mut("/auth/order").and_then(Value::as_object_mut).into_iter().flatten();
    for (provider, order) in orders {
        let Some(order) = order.as_array_mut() else { continue };
        if ProviderId::normalize(provider) == credential.provider && !order.iter().any(|known| known == id) {
            order.insert(0, json!(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_models::credentials::{Secret, pasted_secret};

    use super::*;

    #[test]
    fn a_profile_is_named_without_its_secret_and_put_first_where_there_is_an_order() {
        let secret = Secret::Token { token: pasted_secret("sk-secret"), expires: None };
        let credential = Credential::new(ProviderId::normalize("zai"), secret);
        let entry = json!({"provider": "zai", "mode": "token"});
        let rows = [
            (json!(null), json!({"auth": {"profiles": {"zai:new": entry}}})),
            (
                json!({"auth": {"order": {"z.ai": ["zai:old"], "groq": ["g"]}, "later": 1}}),
                json!({"auth": {"order": {"z.ai": ["zai:new", "zai:old"], "groq": ["g"]}, "later": 1,
                    "profiles": {"zai:new": entry}}}),
            ),
        ];
        for (mut config, expect) in rows {
            for _ in 0..2 {
                name_profile(&mut config, "zai:new", &credential);
                assert_eq!(config, expect);
            }
        }
    }
}
