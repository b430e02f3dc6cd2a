//! `agents.defaults` while it is changed.

use openclaw_config::profile::Instance;
use openclaw_config::value_path;
use openclaw_config::write::{self, Actor};
use openclaw_models::catalog::{Catalog, key_variables};
use openclaw_models::credentials::{AuthStore, Connections};
use openclaw_models::reference::{DEFAULT_PROVIDER, ModelNames};
use openclaw_models::settings::ListedModel;
use openclaw_models::{ModelRef, ModelSettings, ProviderId, Variables, offline};
use serde_json::{Map, Value, json};

use crate::commands::config::write_failure;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::output;

/// Choice of models: for text or for images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// `agents.defaults.model`
    Text,
    /// `agents.defaults.imageModel`
    Image,
}

impl Choice {
    fn key(self) -> &'static str {
        match self {
            Self::Text => "model",
            Self::Image => "imageModel",
        }
    }

    /// Label of its primary model.
    pub(crate) fn primary_label(self) -> &'static str {
        match self {
            Self::Text => "Default model",
            Self::Image => "Image model",
        }
    }

    /// Label of its fallbacks.
    pub(crate) fn fallbacks_label(self) -> &'static str {
        match self {
            Self::Text => "Fallbacks",
            Self::Image => "Image fallbacks",
        }
    }
}

/// `agents.defaults` of the file, to be changed and written back; comments and untouched keys stay.
pub(crate) struct Defaults<'a> {
    context: &'a CliContext,
    next: Value,
    names: ModelNames,
    catalog: Catalog,
    /// Remarks to print once it is written.
    remarks: Vec<String>,
}

impl<'a> Defaults<'a> {
    /// Reads the config; it must be valid.
    pub(crate) fn open(context: &'a CliContext) -> Result<Self, CommandFailure> {
        openclaw_gateway::keep_files_private();
        let settings = ModelSettings::from(context.config()?.as_ref());
        Ok(Self {
            context,
            next: context.loaded.snapshot.parsed.clone(),
            names: ModelNames::new(&settings.listed),
            catalog: Catalog::new(&settings),
            remarks: Vec::new(),
        })
    }

    /// The model a person means: an alias, `provider/model`, or the bare id of a model the default provider has.
    pub(crate) fn target(&self, text: &str) -> Result<ModelRef, CommandFailure> {
        const HINT: &str =
            "Write it as <provider>/<model>; `openclaw models list --all` shows the known ones.";
        let reference = self.names.resolve(text, DEFAULT_PROVIDER).ok_or_else(|| {
            CommandFailure::new("invalid-model", format!("Invalid model reference: {text}")).hint(HINT)
        })?;
        let is_named = text.contains('/') || self.alias(text).is_some();
        if !is_named && self.catalog.lookup(&reference).is_err() {
            let hint = self.only_with(&reference.model).map(|only| format!("Did you mean {only}? {HINT}"));
            return Err(CommandFailure::new("unknown-model", format!("Unknown model: {text}"))
                .hint(hint.unwrap_or_else(|| HINT.to_owned())));
        }
        Ok(reference)
    }

    /// Returns the model of an id if exactly one provider lists it.
    fn only_with(&self, id: &str) -> Option<ModelRef> {
        let rows = self.catalog.rows(|_| true);
        let mut found = rows.iter().filter(|row| row.id == id);
        let only = found.next()?;
        found.next().is_none().then(|| ModelRef::new(&only.provider, &only.id))
    }

    /// Model that an alias stands for; case does not matter.
    pub(crate) fn alias(&self, name: &str) -> Option<&ModelRef> {
        let wanted = name.trim().to_lowercase();
        self.names.aliases().find(|(alias, _)| alias.to_lowercase() == wanted).map(|(_, target)| target)
    }

    /// All aliases, in the order of the file.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &ModelRef)> {
        self.names.aliases()
    }

    /// Notes what may be wrong with a choice that is allowed all the same; said once it is written.
    pub(crate) fn remark(&mut self, choice: Choice, target: &ModelRef) {
        let remark = match (self.catalog.lookup(target), choice) {
            (Err(error), _) => format!("{error}. It is kept; runs with it fail."),
            (Ok(_), _) if !self.can_call(&target.provider) => self.no_credential(&target.provider),
            (Ok(spec), _) => match (self.catalog.not_listed(target), choice) {
                (Some(unknown), _) => unknown.to_string(),
                (None, Choice::Image) if !spec.images => {
                    format!("{target} takes no images, as far as is known.")
                }
                (None, Choice::Text | Choice::Image) => return,
            },
        };
        self.remarks.push(remark);
    }

    /// True if the default agent has a credential of a provider, or needs none.
    fn can_call(&self, provider: &ProviderId) -> bool {
        let config = self.context.config_or_default();
        let store = AuthStore::load(&config.agent(&config.default_agent()).agent_dir).unwrap_or_default();
        let (settings, variables) =
            (ModelSettings::from(config.as_ref()), Variables::from(self.context.env()));
        let connections =
            Connections { store: &store, settings: &settings, catalog: &self.catalog, variables: &variables };
        provider.as_str() == offline::PROVIDER || connections.can_call(provider)
    }

    fn no_credential(&self, provider: &ProviderId) -> String {
        let instance = Instance::of(self.context.env());
        let env_file = instance.env_file();
        let paste = format!("openclaw models auth paste-token --provider {provider}");
        let paste = self.context.hint_command(&paste);
        let mut names = key_variables(provider);
        let name = names.find(|name| name.ends_with("_API_KEY")).or_else(|| key_variables(provider).next());
        let ways = match name {
            Some(name) => {
                format!(
                    "put {name}=… into {env_file} and restart the gateway if it runs, or, without a restart, run: {paste}"
                )
            }
            None => format!("run: {paste}"),
        };
        format!("There is no credential for {provider}: runs fail until there is one. To add it, {ways}")
    }

    /// True if switching is restricted to listed models.
    fn lists_models(&self) -> bool {
        self.names.listed().next().is_some()
    }

    /// Adds a model to `agents.defaults.models` where there is such a list, so that it may be switched to. An empty list
    /// allows every model and stays empty.
    pub(crate) fn allow(&mut self, target: &ModelRef) {
        if self.lists_models() && !self.names.lists(target) {
            self.edit_listed(target, |_| ());
        }
    }

    /// Sets or removes the alias of a model, which becomes a listed one. An empty alias also keeps the built-in one away.
    pub(crate) fn put_alias(&mut self, target: &ModelRef, alias: &str) {
        if !self.lists_models() {
            let first = "agents.defaults.models lists its first model now: sessions can only be switched to listed models \
                         from here on. Add others with `openclaw models aliases add`, or remove agents.defaults.models to \
                         allow all.";
            self.remarks.push(first.to_owned());
        }
        self.edit_listed(target, |entry| {
            entry.insert("alias".to_owned(), json!(alias));
        });
    }

    /// Removes the alias of a model. If it has a built-in one, an empty alias is left, so that it
    /// does not come back.
    pub(crate) fn remove_alias(&mut self, target: &ModelRef, alias: &str) {
        let listed = ListedModel { key: self.listed_key(target), ..Default::default() };
        let comes_back =
            ModelNames::new(&[listed]).aliases().any(|(name, _)| name.eq_ignore_ascii_case(alias));
        self.edit_listed(target, |entry| {
            entry.shift_remove("alias");
            if comes_back {
                entry.insert("alias".to_owned(), json!(""));
            }
        });
    }

    /// The fallbacks as they are written.
    pub(crate) fn fallbacks(&self, choice: Choice) -> Vec<String> {
        let path = ["agents", "defaults", choice.key(), "fallbacks"].map(str::to_owned);
        let written = value_path::get(&self.next, &path)
            .or_else(|| value_path::get(&self.context.loaded.snapshot.config, &path));
        let items = written.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// True if a written name means this model.
    pub(crate) fn means(&self, text: &str, target: &ModelRef) -> bool {
        self.names.resolve(text, DEFAULT_PROVIDER).as_ref() == Some(target)
    }

    /// Replaces the fallbacks.
    pub(crate) fn put_fallbacks(&mut self, choice: Choice, fallbacks: &[String]) {
        self.put(choice, "fallbacks", json!(fallbacks));
    }

    /// Replaces the primary model.
    pub(crate) fn put_primary(&mut self, choice: Choice, model: &str) {
        self.put(choice, "primary", json!(model));
    }

    /// Writes what was changed and says where; nothing when there was nothing to change.
    pub(crate) fn save(self) -> Result<(), CommandFailure> {
        let context = self.context;
        if self.save_silently()? {
            output::line(&format!("Updated {}", context.short(context.paths().config_path())));
        }
        Ok(())
    }

    /// Writes what was changed; whether there was anything to change.
    pub(crate) fn save_silently(self) -> Result<bool, CommandFailure> {
        let loaded = &self.context.loaded;
        let is_changed = self.next != loaded.snapshot.parsed;
        if is_changed {
            write::write(loaded, &self.next, Actor::Cli).map_err(write_failure)?;
        }
        self.remarks.iter().for_each(|remark| output::error_line(&self.context.style.warn(remark)));
        Ok(is_changed)
    }

    /// Sets a part of a choice; one written as a plain name becomes its long form.
    fn put(&mut self, choice: Choice, part: &str, value: Value) {
        let path = ["agents", "defaults", choice.key()].map(str::to_owned);
        if let Some(primary) = value_path::get(&self.next, &path).and_then(Value::as_str) {
            let long = json!({ "primary": primary });
            value_path::set(&mut self.next, &path, long);
        }
        let path = ["agents", "defaults", choice.key(), part].map(str::to_owned);
        value_path::set(&mut self.next, &path, value);
    }

    /// The key under which a model is listed, or would be.
    fn listed_key(&self, target: &ModelRef) -> String {
        let path = ["agents", "defaults", "models"].map(str::to_owned);
        let listed = value_path::get(&self.context.loaded.snapshot.config, &path).and_then(Value::as_object);
        let means_it = |key: &&String| ModelRef::parse(key, DEFAULT_PROVIDER).as_ref() == Some(target);
        listed.and_then(|listed| listed.keys().find(means_it)).cloned().unwrap_or_else(|| target.to_string())
    }

    /// Changes the entry of a model, which becomes a listed one.
    fn edit_listed(&mut self, target: &ModelRef, change: impl FnOnce(&mut Map<String, Value>)) {
        let key = self.listed_key(target);
        let path = ["agents", "defaults", "models", &key].map(str::to_owned);
        let written = value_path::get(&self.next, &path).and_then(Value::as_object);
        let mut entry = written.cloned().unwrap_or_default();
        change(&mut entry);
        value_path::set(&mut self.next, &path, Value::Object(entry));
    }
}
