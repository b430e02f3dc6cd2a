//! The model a person means: the one resolver behind `/model`, `/new <model>`, `sessions.patch` and whatever else takes a
//! model's name (spec `models.md` §1.2, §1.3). Pure once it is made.
//!
//! [`Choices::strict`] takes what is written, [`Choices::find`] also what is nearly written,
//! [`Choices::opening`] the first words of a message. [`Allowlist`] says which models may be
//! chosen; `score` says how similar a text is to a model.

mod fuzzy;
mod opening;
mod profile;
mod score;

use std::fmt;
use std::path::Path;

use openclaw_protocol::AgentId;

pub use opening::Opening;
pub use profile::ProfileError;

use crate::catalog::Catalog;
use crate::credentials::{AgentFlag, how_to_add};
use crate::offline;
use crate::reference::{DEFAULT_PROVIDER, ModelNames, ModelRef, ProviderId, usual_model};
use crate::select::{Allowlist, Models, SelectError, stand_ins};
use crate::settings::ModelSettings;

/// The word that stands for the agent's own model.
pub const DEFAULT_WORD: &str = "default";

/// Models to which an agent's sessions may be switched.
#[derive(Debug, Clone)]
pub struct Choices {
    catalog: Catalog,
    names: ModelNames,
    allowlist: Allowlist,
    /// The models that are known by id: what fuzzy matching goes over.
    known: Vec<ModelRef>,
    default: ModelRef,
    /// Providers that want a credential and have none.
    without_credential: Vec<ProviderId>,
    /// Models that runs try instead if the chosen model can't be called.
    stand_ins: Vec<ModelRef>,
    /// Flag of the agent, for advice.
    agent: AgentFlag,
}

/// A model that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Chosen model.
    pub model: ModelRef,
    /// True if the agent runs with this model anyway: a session then needs no override.
    pub is_default: bool,
    /// The name the owner gave it, where it was found by that or by a guess.
    pub alias: Option<String>,
}

impl fmt::Display for Chosen {
    /// Formats the model for people: `opus (anthropic/claude-opus-4-6)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.alias {
            Some(alias) => write!(f, "{alias} ({})", self.model),
            None => write!(f, "{}", self.model),
        }
    }
}

/// Reason why a text names no model; people are told these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// The text has no known form and is not similar to any model.
    #[error(
        "Unrecognized model \"{0}\". Use /models to list providers, or /models <provider> to list models."
    )]
    Unrecognized(String),
    /// The text names a model that is not allowed and is not similar to any allowed model.
    #[error(
        "Model \"{0}\" is not allowed. Use /models to list providers, or /models <provider> to list models."
    )]
    NotAllowed(String),
}

impl Models {
    /// Returns the models to which an agent's sessions may currently be switched. Reads the agent's
    /// credentials, which decide what it runs with where nobody chose a model.
    pub async fn choices(&self, settings: &ModelSettings, agent: &AgentId, agent_dir: &Path) -> Choices {
        let known = self.known(settings, agent, agent_dir).await;
        let listed = known.rows.iter().map(|row| ModelRef::new(&row.provider, &row.id)).collect();
        let primary = known.primary;
        let choices = Choices::over(known.catalog, settings, listed, primary.reference.clone());
        let Choices { names, allowlist, .. } = &choices;
        let stand_ins = stand_ins(settings, names, allowlist, &primary, agent, &mut Vec::new());
        let (without_credential, agent) = (known.without_credential, AgentFlag::of(settings, agent));
        Choices { without_credential, stand_ins, agent, ..choices }
    }
}

impl Choices {
    /// Builds the choices from the configuration and the built-in catalog. `rows` are the models
    /// that are shown to people; `default` is what the agent runs with.
    pub fn new(settings: &ModelSettings, rows: Vec<ModelRef>, default: ModelRef) -> Self {
        Self::over(Catalog::new(settings), settings, rows, default)
    }

    /// Builds the choices over another catalog.
    fn over(catalog: Catalog, settings: &ModelSettings, rows: Vec<ModelRef>, default: ModelRef) -> Self {
        let names = ModelNames::new(&settings.listed);
        let allowlist = Allowlist::new(&catalog, &names);
        let mut known = allowlist.models().map_or(rows, <[ModelRef]>::to_vec);
        if !known.contains(&default) {
            known.push(default.clone());
        }
        Self {
            catalog,
            names,
            allowlist,
            known,
            default,
            without_credential: Vec::new(),
            stand_ins: Vec::new(),
            agent: AgentFlag::default(),
        }
    }

    /// Model that the agent runs with while its session names none.
    pub fn default_model(&self) -> &ModelRef {
        &self.default
    }

    /// The models to choose from, the owner's order first.
    pub fn known(&self) -> &[ModelRef] {
        &self.known
    }

    /// Returns true if the owner restricted the choice to a list. Otherwise every known model may
    /// be chosen.
    pub fn is_limited(&self) -> bool {
        self.allowlist.models().is_some()
    }

    /// Returns a warning for a person who chooses this model: what runs do without a credential, and
    /// how to add one; else that neither the owner nor its provider lists it.
    pub fn warning(&self, model: &ModelRef) -> Option<String> {
        let can_be_called =
            |one: &&ModelRef| *one != model && !self.without_credential.contains(&one.provider);
        let lacks = match self.stand_ins.iter().find(can_be_called) {
            Some(next) => {
                self.lacks(&model.provider, &format!(": runs fall back to {next} until there is one."))
            }
            None => self.lacks(&model.provider, ": runs fail until there is one."),
        };
        let is_owners = || self.names.listed().any(|listed| listed == model);
        let not_listed = || self.catalog.not_listed(model).filter(|_| !is_owners());
        lacks.or_else(|| not_listed().map(|unknown| unknown.to_string()))
    }

    /// Returns a message if a model can't be called because a credential is missing, with advice.
    pub fn lacks_credential(&self, model: &ModelRef) -> Option<String> {
        self.lacks(&model.provider, ".")
    }

    fn lacks(&self, provider: &ProviderId, what_follows: &str) -> Option<String> {
        let is_lacking = self.without_credential.contains(provider);
        is_lacking.then(|| {
            let fix = how_to_add(provider, &self.agent);
            format!("There is no credential for {provider}{what_follows} {fix}")
        })
    }

    /// The names the owner gave to a model.
    pub fn aliases_of<'a>(&'a self, model: &'a ModelRef) -> impl Iterator<Item = &'a str> {
        self.names.aliases().filter(move |(_, named)| *named == model).map(|(alias, _)| alias)
    }

    /// The model of this very alias or reference: for programs. Without an allowlist anything of the form is taken.
    ///
    /// # Errors
    /// [`SelectError::Invalid`] and [`SelectError::NotAllowed`], whose texts clients match.
    pub fn strict(&self, text: &str) -> Result<ModelRef, SelectError> {
        self.allowlist.switch(&self.names, &self.default, text)
    }

    /// Reads a text like [`strict`](Self::strict) for a model with which a run is to begin: a model
    /// that the catalog can't find is an error (decision 2).
    ///
    /// # Errors
    /// Errors of [`strict`](Self::strict), and [`SelectError::Lookup`].
    pub fn callable(&self, text: &str) -> Result<ModelRef, SelectError> {
        let model = self.strict(text)?;
        self.catalog.lookup(&model)?;
        Ok(model)
    }

    /// The model a person means: the one they name, else the nearest that is allowed.
    ///
    /// # Errors
    /// See [`ChooseError`].
    pub fn find(&self, text: &str) -> Result<Chosen, ChooseError> {
        let text = text.trim();
        if text.eq_ignore_ascii_case(DEFAULT_WORD) {
            return Ok(self.chosen(&self.default, None));
        }
        if let Some(found) = self.exact(text) {
            return Ok(found);
        }
        let guessed = |provider: Option<&str>, text: &str| {
            let model = self.fuzzy(provider, text)?;
            Some(self.chosen(model, self.aliases_of(model).next()))
        };
        let Some(named) = ModelRef::parse(text, DEFAULT_PROVIDER) else {
            return guessed(None, text).ok_or_else(|| ChooseError::Unrecognized(text.to_owned()));
        };
        let slashed = text.split_once('/');
        if let Some((_, id)) = slashed.filter(|_| self.is_open(&named)) {
            let part = self.fuzzy(Some(named.provider.as_str()), id).filter(|model| self.contains(model, id));
            let found = part.map(|model| self.chosen(model, self.aliases_of(model).next()));
            return Ok(found.unwrap_or_else(|| self.chosen(&named, None)));
        }
        slashed
            .and_then(|(provider, id)| guessed(Some(provider), id))
            .or_else(|| guessed(None, text))
            .or_else(|| {
                let callable = slashed.is_some() && self.is_callable(&named);
                callable.then(|| self.chosen(&named, None))
            })
            .ok_or_else(|| {
                // Of a name alone nobody said which provider is meant.
                let shown = if slashed.is_some() { named.to_string() } else { text.to_owned() };
                ChooseError::NotAllowed(shown)
            })
    }

    /// The model of an alias, or of a reference to a model that is known by id.
    fn exact(&self, text: &str) -> Option<Chosen> {
        if let Some((alias, model)) = self.names.by_alias(text)
            && self.is_known(model)
        {
            return Some(self.chosen(model, Some(alias)));
        }
        let usual = usual_model(text).filter(|_| self.allowlist.models().is_none());
        if let Some(model) = usual.filter(|model| self.is_known(model)) {
            return Some(self.chosen(&model, None));
        }
        let named = ModelRef::parse(text, DEFAULT_PROVIDER)?;
        let is_edition = || text.contains('/') && self.is_edition(&named);
        (self.is_known(&named) || is_edition()).then(|| self.chosen(&named, None))
    }

    fn chosen(&self, model: &ModelRef, alias: Option<&str>) -> Chosen {
        Chosen { is_default: *model == self.default, model: model.clone(), alias: alias.map(str::to_owned) }
    }

    fn is_known(&self, model: &ModelRef) -> bool {
        self.known.contains(model) || offline::is_guide(model)
    }

    /// Returns true if a model is allowed and the catalog says how to call it.
    fn is_callable(&self, model: &ModelRef) -> bool {
        self.allowlist.allows(model) && self.catalog.lookup(model).is_ok()
    }

    /// Returns true if a model is a dated edition of a built-in model, or is made up for a test.
    fn is_edition(&self, model: &ModelRef) -> bool {
        !self.catalog.is_configured(&model.provider) && !self.is_open(model) && self.is_callable(model)
    }

    /// Returns true if the provider has more models than are known, so that any id may be valid.
    fn is_open(&self, model: &ModelRef) -> bool {
        let open = self.catalog.provider(&model.provider).is_some_and(|entry| entry.open);
        open && self.allowlist.models().is_none() && self.is_callable(model)
    }

    fn is_provider(&self, text: &str) -> bool {
        !text.is_empty() && self.known.iter().any(|model| model.provider == ProviderId::normalize(text))
    }
}

#[cfg(test)]
mod tests;
