//! `agents.defaults.models` as a restriction (spec `models.md` §1.2).

use super::SelectError;
use crate::catalog::Catalog;
use crate::offline;
use crate::reference::{DEFAULT_PROVIDER, ModelNames, ModelRef};

/// The models a session may be switched to; the agent's own model is always allowed besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowlist {
    /// Absent: everything.
    models: Option<Vec<ModelRef>>,
}

impl Allowlist {
    /// The listed models that exist. Without a list, or where nothing of it exists, everything is allowed.
    pub(crate) fn new(catalog: &Catalog, names: &ModelNames) -> Self {
        let exists =
            |model: &&ModelRef| catalog.lookup(model).is_ok() || catalog.is_configured(&model.provider);
        let mut models: Vec<ModelRef> = Vec::new();
        for model in names.listed().filter(exists) {
            if !models.contains(model) {
                models.push(model.clone());
            }
        }
        Self { models: (!models.is_empty()).then_some(models) }
    }

    /// The allowed models in the file's order; `None` where everything is allowed.
    pub(crate) fn models(&self) -> Option<&[ModelRef]> {
        self.models.as_deref()
    }

    /// Returns true if a model is allowed.
    pub(crate) fn allows(&self, model: &ModelRef) -> bool {
        self.models.as_ref().is_none_or(|models| models.contains(model))
    }

    /// Returns the model to which a session is switched by an alias or a reference.
    pub(crate) fn switch(
        &self,
        names: &ModelNames,
        default: &ModelRef,
        text: &str,
    ) -> Result<ModelRef, SelectError> {
        if text.trim().is_empty() {
            return Err(SelectError::Invalid("empty".to_owned()));
        }
        let invalid = || SelectError::Invalid(text.trim().to_owned());
        let model = names.resolve(text, DEFAULT_PROVIDER).ok_or_else(invalid)?;
        if model == *default || offline::is_guide(&model) || self.allows(&model) {
            Ok(model)
        } else {
            Err(SelectError::NotAllowed(model))
        }
    }
}
