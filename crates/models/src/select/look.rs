//! Snapshot of everything a selection depends on: the agent's files, and what is known of the
//! servers.

use std::path::Path;
use std::time::Instant;

use super::Models;
use crate::catalog::{Catalog, Layers, ModelRow, ServerReport};
use crate::credentials::{AuthStore, Connections, Surroundings};
use crate::discovery::{Inquiry, PATIENCE, inquiries as inquiries_of};
use crate::models_file::{FileView, Writing};
use crate::reference::ProviderId;
use crate::settings::ModelSettings;

/// The models as one agent sees them now.
pub(super) struct ModelsView<'a> {
    models: &'a Models,
    settings: &'a ModelSettings,
    agent_dir: &'a Path,
    pub(super) catalog: Catalog,
    pub(super) store: AuthStore,
    /// Problem with the credentials, which then count as empty.
    pub(super) damage: Option<String>,
    file: FileView,
    inquiries: Vec<Inquiry>,
    found: Vec<ServerReport>,
}

impl<'a> ModelsView<'a> {
    /// Reads the agent's files. Asks no server.
    pub(super) async fn at(models: &'a Models, settings: &'a ModelSettings, agent_dir: &'a Path) -> Self {
        let (store, damage, file) = load(models, agent_dir);
        let layers = Layers { settings, file: &file.providers, found: &[] };
        let catalog = Catalog::assemble(&layers);
        let (inquiries, found) = (Vec::new(), Vec::new());
        let mut look = Self { models, settings, agent_dir, catalog, store, damage, file, inquiries, found };
        look.inquiries = inquiries_of(&look.connections());
        look.take_answers();
        look
    }

    /// Returns the connections that can be called.
    pub(super) fn connections(&self) -> Connections<'_> {
        Connections {
            store: &self.store,
            settings: self.settings,
            catalog: &self.catalog,
            variables: &self.models.variables,
        }
    }

    /// The rows of `models.list`.
    pub(super) fn rows(&self) -> Vec<ModelRow> {
        let connections = self.connections();
        self.catalog.rows(|provider| connections.has_own_credential(provider))
    }

    /// Returns the reason why `models.json` is ignored, if it is.
    pub(super) fn file_warning(&self) -> Option<&String> {
        self.file.warning.as_ref()
    }

    /// Asks all servers that a list of models may name.
    pub(super) async fn ask_all(&mut self) {
        self.models.discovery.ask(&self.inquiries, PATIENCE).await;
        self.take_answers();
    }

    /// Asks the servers of these providers, and the local ones when nothing is connected. Only local ones are waited for:
    /// any id of the others can be called without their list. Says whether anything was asked.
    pub(super) async fn ask_for(&mut self, providers: &[&ProviderId], nothing_is_connected: bool) -> bool {
        let named = |inquiry: &&Inquiry| providers.contains(&&inquiry.provider);
        let (local, others): (Vec<&Inquiry>, Vec<&Inquiry>) =
            self.inquiries.iter().partition(|inquiry| inquiry.is_local());
        let others: Vec<&Inquiry> = others.into_iter().filter(named).collect();
        let local: Vec<&Inquiry> =
            local.into_iter().filter(|inquiry| nothing_is_connected || named(inquiry)).collect();
        if local.is_empty() && others.is_empty() {
            return false;
        }
        self.models.discovery.ask(others, std::time::Duration::ZERO).await;
        self.models.discovery.ask(local, PATIENCE).await;
        self.take_answers();
        true
    }

    /// Brings `models.json` up to date behind the run's back, if it is time to look.
    pub(super) fn write_file(&self) {
        if !self.models.files.is_due(self.agent_dir, Instant::now()) {
            return;
        }
        let Some(writing) = Writing::of(&self.connections(), &self.found) else { return };
        let agent_dir = self.agent_dir.to_path_buf();
        self.models.writes.spawn(async move {
            match tokio::task::spawn_blocking(move || writing.apply(&agent_dir)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "models.json"),
                Err(error) => tracing::warn!(%error, "models.json could not be written"),
            }
        });
    }

    fn take_answers(&mut self) {
        self.found = self.models.discovery.known(&self.inquiries);
        if !self.found.is_empty() {
            let file = &self.file.providers;
            self.catalog = Catalog::assemble(&Layers { settings: self.settings, file, found: &self.found });
        }
    }
}

/// The files of an agent's directory; a damaged store counts as empty. Mostly a look at a few directory entries: small files,
/// read again only when they changed. Going to another thread for them would take longer.
fn load(models: &Models, agent_dir: &Path) -> (AuthStore, Option<String>, FileView) {
    let around = Surroundings::of(&models.variables, agent_dir);
    let file = models.files.view(agent_dir);
    match AuthStore::load_with(agent_dir, &around, models.clock.now_ms()) {
        Ok(mut store) => {
            models.ledger.apply(agent_dir, &mut store);
            (store, None, file)
        }
        Err(error) => (AuthStore::default(), Some(error.to_string()), file),
    }
}
