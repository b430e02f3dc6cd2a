//! The next `openclaw.json` from the one that was read. Pure.

use openclaw_config::settings::{Binding, BindingMatch, Identity};
use openclaw_config::{Config, value_path};
use openclaw_protocol::AgentId;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{AgentChange, NewAgent, RosterError};

/// A channel an agent answers, by account or as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBinding {
    /// Channel id.
    pub channel: String,
    /// Account; `*` is any, absent is the default account.
    pub account: Option<String>,
}

/// Result of adding bindings, each as a text such as `telegram accountId=ops`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BindingChanges {
    /// Bindings that were added.
    pub added: Vec<String>,
    /// Bindings that existed already.
    pub skipped: Vec<String>,
    /// Bindings that another agent has; nothing was changed for these.
    pub conflicts: Vec<String>,
}

/// A plan that adds an agent.
pub(super) struct Addition {
    pub(super) document: Value,
    pub(super) bindings: BindingChanges,
}

pub(super) fn add(document: &Value, config: &Config, new: &NewAgent) -> Result<Addition, RosterError> {
    if new.id.as_str() == AgentId::MAIN {
        return Err(RosterError::Reserved(new.id.clone()));
    }
    if config.has_agent(&new.id) {
        return Err(RosterError::Exists(new.id.clone()));
    }
    let mut entry = Map::new();
    entry.insert("id".to_owned(), json!(new.id));
    entry.insert("name".to_owned(), json!(new.name));
    entry.insert("workspace".to_owned(), json!(new.workspace.display().to_string()));
    if let Some(dir) = &new.agent_dir {
        entry.insert("agentDir".to_owned(), json!(dir.display().to_string()));
    }
    if let Some(model) = &new.model {
        entry.insert("model".to_owned(), json!(model));
    }
    let mut next = document.clone();
    let mut list = listed(&next, config);
    list.push(Value::Object(entry));
    put(&mut next, LIST, Value::Array(list));
    let bindings = bind(&mut next, new);
    Ok(Addition { document: next, bindings })
}

pub(super) fn change(
    document: &Value,
    config: &Config,
    id: &AgentId,
    change: &AgentChange,
) -> Result<Value, RosterError> {
    on_entry(document, config, id, |entry| {
        let workspace = change.workspace.as_ref().map(|dir| dir.display().to_string());
        for (key, text) in [("name", change.name.as_ref()), ("workspace", workspace.as_ref())] {
            if let Some(text) = text {
                entry.insert(key.to_owned(), json!(text));
            }
        }
        if let Some(model) = &change.model {
            // A model with fallbacks keeps them.
            match entry.get_mut("model").and_then(Value::as_object_mut) {
                Some(choice) => choice.insert("primary".to_owned(), json!(model)),
                None => entry.insert("model".to_owned(), json!(model)),
            };
        }
    })
}

pub(super) fn set_identity(
    document: &Value,
    config: &Config,
    id: &AgentId,
    identity: &Identity,
) -> Result<(Value, Identity), RosterError> {
    let mut whole = config.agent(id).identity;
    let fields = [
        ("name", &identity.name, &mut whole.name),
        ("theme", &identity.theme, &mut whole.theme),
        ("emoji", &identity.emoji, &mut whole.emoji),
        ("avatar", &identity.avatar, &mut whole.avatar),
    ];
    let mut given = Vec::new();
    for (key, new, slot) in fields {
        if let Some(text) = new {
            given.push((key, text.clone()));
            *slot = Some(text.clone());
        }
    }
    let next = on_entry(document, config, id, |entry| {
        let identity = entry.entry("identity").or_insert_with(|| json!({}));
        for (key, text) in given {
            value_path::set(identity, &[key.to_owned()], json!(text));
        }
    })?;
    Ok((next, whole))
}

/// A plan that removes an agent.
pub(super) struct AgentRemoval {
    pub(super) document: Value,
    pub(super) bindings: usize,
    pub(super) allow: usize,
}

pub(super) fn remove(document: &Value, config: &Config, id: &AgentId) -> Result<AgentRemoval, RosterError> {
    if id.as_str() == AgentId::MAIN {
        return Err(RosterError::Undeletable(id.clone()));
    }
    let mut next = document.clone();
    let mut list = listed(&next, config);
    let before = list.len();
    list.retain(|entry| !is_entry_of(entry, id));
    if list.len() == before {
        return Err(missing(config, id));
    }
    put_or_drop(&mut next, LIST, list);
    let names_it = |value: &Value| value.as_str().is_some_and(|text| AgentId::normalize(text) == *id);
    let binds_it = |binding: &Value| binding.get("agentId").is_some_and(names_it);
    let bindings = drop_from(&mut next, &["bindings"], binds_it);
    let allow = drop_from(&mut next, &["tools", "agentToAgent", "allow"], names_it);
    forget(&mut next, names_it);
    Ok(AgentRemoval { document: next, bindings, allow })
}

/// Other places that would name an agent that does not exist: who may be spawned, who takes part in a broadcast.
fn forget(document: &mut Value, names_it: impl Fn(&Value) -> bool + Copy) {
    let count = document.pointer("/agents/list").and_then(Value::as_array).map_or(0, Vec::len);
    for at in 0..count {
        let at = at.to_string();
        drop_from(document, &["agents", "list", &at, "subagents", "allowAgents"], names_it);
    }
    let peers: Vec<String> = document
        .get("broadcast")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, agents)| agents.is_array())
        .map(|(peer, _)| peer.clone())
        .collect();
    for peer in peers {
        drop_from(document, &["broadcast", &peer], names_it);
    }
}

const LIST: &[&str] = &["agents", "list"];

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|part| (*part).to_owned()).collect()
}

fn put(document: &mut Value, path: &[&str], value: Value) {
    value_path::set(document, &owned(path), value);
}

/// Sets a list, or removes the key when the list is empty.
fn put_or_drop(document: &mut Value, path: &[&str], list: Vec<Value>) {
    if list.is_empty() {
        value_path::unset(document, &owned(path));
    } else {
        put(document, path, Value::Array(list));
    }
}

/// Removes items of a list; how many.
fn drop_from(document: &mut Value, path: &[&str], gone: impl Fn(&Value) -> bool) -> usize {
    let Some(list) = value_path::get(document, &owned(path)).and_then(Value::as_array) else { return 0 };
    let kept: Vec<Value> = list.iter().filter(|item| !gone(item)).cloned().collect();
    let dropped = list.len() - kept.len();
    if dropped > 0 {
        put_or_drop(document, path, kept);
    }
    dropped
}

/// The entries of `agents.list`. The agent that exists without a list is its first entry: it would cease to exist when
/// there is one.
fn listed(document: &Value, config: &Config) -> Vec<Value> {
    let list = document.pointer("/agents/list").and_then(Value::as_array).cloned().unwrap_or_default();
    if list.is_empty() && config.agents.list.is_empty() {
        vec![json!({ "id": config.default_agent() })]
    } else {
        list
    }
}

fn is_entry_of(entry: &Value, id: &AgentId) -> bool {
    entry.get("id").and_then(Value::as_str).is_some_and(|text| AgentId::normalize(text) == *id)
}

fn missing(config: &Config, id: &AgentId) -> RosterError {
    if config.has_agent(id) { RosterError::Included(id.clone()) } else { RosterError::NotFound(id.clone()) }
}

fn on_entry(
    document: &Value,
    config: &Config,
    id: &AgentId,
    edit: impl FnOnce(&mut Map<String, Value>),
) -> Result<Value, RosterError> {
    let mut list = listed(document, config);
    let entry = list.iter_mut().find(|entry| is_entry_of(entry, id)).and_then(Value::as_object_mut);
    edit(entry.ok_or_else(|| missing(config, id))?);
    let mut next = document.clone();
    put(&mut next, LIST, Value::Array(list));
    Ok(next)
}

/// Adds the bindings nobody has yet.
fn bind(document: &mut Value, new: &NewAgent) -> BindingChanges {
    let path = owned(&["bindings"]);
    let mut list = value_path::get(document, &path).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut changes = BindingChanges::default();
    for binding in &new.bindings {
        let matches = binding.matches();
        let holder = list
            .iter()
            .filter_map(|item| serde_json::from_value::<Binding>(item.clone()).ok())
            .find(|other| claims_the_same(&other.matches, &matches))
            .map(|other| AgentId::normalize(&other.agent_id));
        match holder {
            Some(holder) if holder == new.id => changes.skipped.push(matches.to_string()),
            Some(holder) => changes.conflicts.push(format!("{matches} (agent={holder})")),
            None => {
                list.push(binding.document(&new.id));
                changes.added.push(matches.to_string());
            }
        }
    }
    if !changes.added.is_empty() {
        value_path::set(document, &path, Value::Array(list));
    }
    changes
}

fn claims_the_same(one: &BindingMatch, other: &BindingMatch) -> bool {
    let account = |matches: &BindingMatch| {
        let given = matches.account_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
        given.unwrap_or("default").to_owned()
    };
    let is_broad = |m: &BindingMatch| m.peer.is_none() && m.guild_id.is_none() && m.team_id.is_none();
    one.channel.trim().eq_ignore_ascii_case(other.channel.trim())
        && account(one) == account(other)
        && is_broad(one)
        && is_broad(other)
}

impl NewBinding {
    fn matches(&self) -> BindingMatch {
        BindingMatch {
            channel: self.channel.clone(),
            account_id: self.account.clone(),
            peer: None,
            guild_id: None,
            team_id: None,
        }
    }

    fn document(&self, agent: &AgentId) -> Value {
        let mut matches = Map::new();
        matches.insert("channel".to_owned(), json!(self.channel));
        if let Some(account) = &self.account {
            matches.insert("accountId".to_owned(), json!(account));
        }
        json!({ "agentId": agent, "match": matches })
    }
}
