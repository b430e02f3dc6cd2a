//! `sessions.patch`

use std::fmt;
use std::sync::Arc;

use openclaw_protocol::params::Change;
use openclaw_protocol::params::sessions::{
    ResolvedModel, ResponseUsage as WireUsage, SessionsPatchParams, SessionsPatchResult,
};

use super::{MethodError, ModelName, wire};
use crate::entry::{ElevatedLevel, ReasoningLevel, ResponseUsage, SessionEntry, VerboseLevel};
use crate::key::{KeyRules, SessionKey};
use crate::store::{SessionStore, update_with};

/// Finds a model by what a person calls it, or says why not (`invalid model: …`, `model not allowed: …`).
pub type ResolveModel = Arc<dyn Fn(&str) -> Result<ModelName, String> + Send + Sync>;

/// Facts about models that a patch depends on.
#[derive(Clone)]
pub struct PatchRules {
    /// Model of sessions without an override.
    pub default_model: ModelName,
    /// Finds a model.
    pub resolve_model: ResolveModel,
    /// True if a model has thinking level `xhigh`; arguments: provider and model.
    pub has_xhigh: fn(&str, &str) -> bool,
    /// The models that have it, for the error.
    pub xhigh_models: String,
}

impl fmt::Debug for PatchRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatchRules").field("default_model", &self.default_model).finish_non_exhaustive()
    }
}

/// A field of a patch that can't be what the client wants. Clients show these texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The value is not one of the choices.
    #[error("invalid {field} (use {choices})")]
    Choice {
        /// The field.
        field: &'static str,
        /// The values, as shown.
        choices: String,
    },
    /// A text that must not be blank.
    #[error("invalid {0}: empty")]
    Empty(&'static str),
    /// A label of more than 64 characters.
    #[error("invalid label: too long (max {MAX_LABEL})")]
    LongLabel,
    /// The model can't be used.
    #[error("{0}")]
    Model(String),
    /// The model has no such level.
    #[error("thinkingLevel \"xhigh\" is only supported for {0}")]
    XHigh(String),
    /// Only sub-agents have a parent.
    #[error("spawnedBy is only supported for subagent:* sessions")]
    NotSpawned,
    /// Write-once.
    #[error("spawnedBy cannot be changed once set")]
    SpawnedByChanged,
    /// Write-once.
    #[error("spawnedBy cannot be cleared once set")]
    SpawnedByCleared,
}

/// Longest label in characters.
pub const MAX_LABEL: usize = 64;

/// Answers `sessions.patch`. The row is made when it is missing.
pub async fn patch(
    store: &dyn SessionStore,
    params: &SessionsPatchParams,
    rules: &PatchRules,
) -> Result<SessionsPatchResult, MethodError> {
    let keys = store.rules().clone();
    let key = keys.canonical(&params.key.0)?;
    let path = store.location_of(&keys.agent_of(&key));
    let (work, own_rules, own_key) = (params.clone(), rules.clone(), key.clone());
    let (row, ()) = update_with(store, &key, move |edit| {
        apply_patch(edit.entry, &own_key, &work, &own_rules, &keys)?;
        edit.entry.touch(edit.now);
        Ok::<_, PatchError>(())
    })
    .await?;
    let model = ModelName::of_entry(&row.entry, &rules.default_model);
    Ok(SessionsPatchResult {
        ok: true,
        path,
        key: row.key.to_string(),
        entry: wire(&row.entry).unwrap_or_default(),
        resolved: ResolvedModel { model_provider: model.provider, model: model.model },
    })
}

/// Changes a row as a patch says. After an error the row may be half changed and must not be stored.
pub fn apply_patch(
    entry: &mut SessionEntry,
    key: &SessionKey,
    params: &SessionsPatchParams,
    rules: &PatchRules,
    keys: &KeyRules,
) -> Result<(), PatchError> {
    spawned_by(entry, key, &text(&params.spawned_by), keys)?;
    change(&mut entry.label, text(&params.label), |label| Ok(Some(checked_label(label)?.into())))?;
    let model_before = ModelName::of_entry(entry, &rules.default_model);
    change(&mut entry.thinking_level, text(&params.thinking_level), |level| {
        Ok(thinking_level(level, &model_before, rules)?.map(Box::from))
    })?;
    levels(entry, params)?;
    exec(entry, params)?;
    model(entry, &text(&params.model), rules)?;
    allow_xhigh(entry, params, rules)?;
    change(&mut entry.send_policy, params.send_policy.clone(), |policy| Ok(Some(policy)))?;
    change(&mut entry.group_activation, params.group_activation.clone(), |activation| Ok(Some(activation)))
}

/// Keeps, clears or sets a field; `read` says what a value is stored as.
fn change<T, F>(
    field: &mut Option<F>,
    change: Change<T>,
    read: impl FnOnce(T) -> Result<Option<F>, PatchError>,
) -> Result<(), PatchError> {
    match change {
        Change::Keep => {}
        Change::Clear => *field = None,
        Change::Set(value) => *field = read(value)?,
    }
    Ok(())
}

/// Fields of a patch that hold a text.
trait PatchText {
    fn text(&self) -> &str;
}

impl PatchText for openclaw_protocol::params::NonEmpty {
    fn text(&self) -> &str {
        &self.0
    }
}

impl PatchText for openclaw_protocol::params::Label {
    fn text(&self) -> &str {
        &self.0
    }
}

fn text<T: PatchText>(change: &Change<T>) -> Change<&str> {
    match change {
        Change::Keep => Change::Keep,
        Change::Clear => Change::Clear,
        Change::Set(value) => Change::Set(value.text().trim()),
    }
}

fn spawned_by(
    entry: &mut SessionEntry,
    key: &SessionKey,
    change: &Change<&str>,
    keys: &KeyRules,
) -> Result<(), PatchError> {
    match change {
        Change::Keep => Ok(()),
        Change::Clear if entry.spawned_by.is_some() => Err(PatchError::SpawnedByCleared),
        Change::Clear => Ok(()),
        Change::Set("") => Err(PatchError::Empty("spawnedBy")),
        Change::Set(_) if !key.is_subagent() => Err(PatchError::NotSpawned),
        Change::Set(parent) => match entry.spawned_by.as_deref() {
            None => {
                let parent =
                    keys.canonical(parent).map_or_else(|_| (*parent).to_owned(), |key| key.to_string());
                entry.spawned_by = Some(parent.into());
                Ok(())
            }
            Some(_) if super::list::is_child(entry, parent, keys) => Ok(()),
            Some(_) => Err(PatchError::SpawnedByChanged),
        },
    }
}

fn checked_label(label: &str) -> Result<&str, PatchError> {
    match label.chars().count() {
        0 => Err(PatchError::Empty("label")),
        n if n > MAX_LABEL => Err(PatchError::LongLabel),
        _ => Ok(label),
    }
}

type Synonyms<T> = &'static [(T, &'static [&'static str])];

/// Spec `gateway-protocol.md` §6.2; nothing is `off`.
const THINKING: Synonyms<Option<&str>> = &[
    (None, &["off"]),
    (Some("minimal"), &["min", "minimal", "think"]),
    (Some("low"), &["on", "enable", "enabled", "low", "thinkhard", "think-hard", "think_hard"]),
    (Some("medium"), &["mid", "med", "medium", "thinkharder", "think-harder", "harder"]),
    (Some("high"), &["high", "ultra", "ultrathink", "thinkhardest", "highest", "max"]),
    (Some("xhigh"), &["xhigh", "x-high", "x_high", "extra high", "extra-high", "extrahigh"]),
];
const VERBOSE: Synonyms<VerboseLevel> = &[
    (VerboseLevel::Off, &["off", "false", "no", "0"]),
    (VerboseLevel::On, &["on", "minimal", "true", "yes", "1"]),
    (VerboseLevel::Full, &["full", "all", "everything"]),
];
const REASONING: Synonyms<Option<ReasoningLevel>> = &[
    (None, &["off", "false", "no", "0"]),
    (Some(ReasoningLevel::On), &["on", "true", "yes", "1"]),
    (Some(ReasoningLevel::Stream), &["stream"]),
];
const ELEVATED: Synonyms<ElevatedLevel> = &[
    (ElevatedLevel::Off, &["off", "false", "no", "0"]),
    (ElevatedLevel::On, &["on", "true", "yes", "1"]),
    (ElevatedLevel::Ask, &["ask"]),
    (ElevatedLevel::Full, &["full"]),
];

fn find<T: Copy>(table: Synonyms<T>, text: &str) -> Option<T> {
    let wanted = text.to_lowercase();
    table.iter().find(|(_, names)| names.contains(&wanted.as_str())).map(|(value, _)| *value)
}

/// The value to store for a text, or the error that lists `choices`.
fn choose<T: Copy>(
    table: Synonyms<T>,
    text: &str,
    field: &'static str,
    choices: &str,
) -> Result<T, PatchError> {
    find(table, text).ok_or_else(|| PatchError::Choice { field, choices: choices.to_owned() })
}

fn thinking_level(
    level: &str,
    model: &ModelName,
    rules: &PatchRules,
) -> Result<Option<&'static str>, PatchError> {
    let more = if (rules.has_xhigh)(&model.provider, &model.model) { "|xhigh" } else { "" };
    choose(THINKING, level, "thinkingLevel", &format!("off|minimal|low|medium|high{more}"))
}

fn levels(entry: &mut SessionEntry, params: &SessionsPatchParams) -> Result<(), PatchError> {
    change(&mut entry.verbose_level, text(&params.verbose_level), |level| {
        choose(VERBOSE, level, "verboseLevel", r#""on"|"off""#).map(Some)
    })?;
    change(&mut entry.reasoning_level, text(&params.reasoning_level), |level| {
        choose(REASONING, level, "reasoningLevel", r#""on"|"off"|"stream""#)
    })?;
    change(&mut entry.response_usage, params.response_usage.clone(), |usage| {
        Ok(match usage {
            WireUsage::Off => None,
            WireUsage::On | WireUsage::Tokens => Some(ResponseUsage::Tokens),
            WireUsage::Full => Some(ResponseUsage::Full),
        })
    })?;
    change(&mut entry.elevated_level, text(&params.elevated_level), |level| {
        choose(ELEVATED, level, "elevatedLevel", r#""on"|"off"|"ask"|"full""#).map(Some)
    })
}

const EXEC_HOST: &[&str] = &["sandbox", "gateway", "node"];
const EXEC_SECURITY: &[&str] = &["deny", "allowlist", "full"];
const EXEC_ASK: &[&str] = &["off", "on-miss", "always"];

fn exec(entry: &mut SessionEntry, params: &SessionsPatchParams) -> Result<(), PatchError> {
    change(&mut entry.exec_host, text(&params.exec_host), |text| one_of(text, "execHost", EXEC_HOST))?;
    change(&mut entry.exec_security, text(&params.exec_security), |text| {
        one_of(text, "execSecurity", EXEC_SECURITY)
    })?;
    change(&mut entry.exec_ask, text(&params.exec_ask), |text| one_of(text, "execAsk", EXEC_ASK))?;
    change(&mut entry.exec_node, text(&params.exec_node), |node| match node {
        "" => Err(PatchError::Empty("execNode")),
        node => Ok(Some(node.into())),
    })
}

fn one_of(text: &str, name: &'static str, values: &[&str]) -> Result<Option<Box<str>>, PatchError> {
    let wanted = text.to_lowercase();
    if !values.contains(&wanted.as_str()) {
        let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        return Err(PatchError::Choice { field: name, choices: quoted.join("|") });
    }
    Ok(Some(wanted.into()))
}

/// Another model needs another auth profile: a change of the override clears that one.
fn model(entry: &mut SessionEntry, change: &Change<&str>, rules: &PatchRules) -> Result<(), PatchError> {
    let wanted = match change {
        Change::Keep => return Ok(()),
        Change::Clear => None,
        Change::Set("") => return Err(PatchError::Empty("model")),
        Change::Set(text) => Some((rules.resolve_model)(text).map_err(PatchError::Model)?),
    };
    let wanted = wanted.filter(|model| *model != rules.default_model);
    let wanted = wanted.as_ref().map(|model| (model.provider.as_str(), model.model.as_str()));
    let before = (entry.provider_override.as_deref(), entry.model_override.as_deref());
    if before != (wanted.map(|(provider, _)| provider), wanted.map(|(_, model)| model)) {
        entry.switch_model(wanted, None);
    }
    Ok(())
}

/// `xhigh` asked for a model without it is an error; kept from another model it becomes `high`.
fn allow_xhigh(
    entry: &mut SessionEntry,
    params: &SessionsPatchParams,
    rules: &PatchRules,
) -> Result<(), PatchError> {
    let model = ModelName::of_entry(entry, &rules.default_model);
    if entry.thinking_level.as_deref() != Some("xhigh") || (rules.has_xhigh)(&model.provider, &model.model) {
        return Ok(());
    }
    match (&params.thinking_level, &params.model) {
        (Change::Set(_), _) => Err(PatchError::XHigh(rules.xhigh_models.clone())),
        (_, Change::Keep) => Ok(()),
        (_, Change::Clear | Change::Set(_)) => {
            entry.thinking_level = Some("high".into());
            Ok(())
        }
    }
}
