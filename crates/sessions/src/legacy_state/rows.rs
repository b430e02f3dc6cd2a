//! Clean-up of a store's rows: keys of old versions become canonical, only one of two rows with the
//! same key stays, and unusable rows are dropped (spec `sessions.md` §1.6). Rows in, rows out;
//! nothing is written here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use openclaw_protocol::AgentId;

use crate::SessionEntry;
use crate::key::group::surface;
use crate::key::{KeyForm, KeyRules, KeyShape, SessionKey, legacy};
use crate::store::on_disk::StoredRow;

/// Owner of the rows, and the rules for reading their keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreOwner<'a> {
    /// The agent that rows without an agent part belong to.
    pub(crate) agent: &'a AgentId,
    pub(crate) rules: &'a KeyRules,
    /// True if the agent shares its store with the others.
    pub(crate) is_shared: bool,
}

/// Change that the clean-up made. Keys are spelled as the file had them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CleanupChange {
    /// A row has its canonical key now.
    Moved { from: String, to: String },
    /// Another row of the same key was newer.
    Superseded { key: String, by: String },
    /// A row has no session id.
    NoSessionId { key: String },
    /// A row says nothing usable about its last activity: it counts as active now.
    NoUpdatedAt { key: String },
    /// There was no main session: this row is it now.
    BecameMain { from: String, to: String },
    /// Another row with the same label was active later.
    LabelTaken { key: String, label: String },
}

/// Rows in order, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tidied {
    pub(crate) rows: Vec<StoredRow>,
    pub(crate) changes: Vec<CleanupChange>,
}

impl StoreOwner<'_> {
    /// The key a row should have: nothing when its key can't be read or belongs into another store.
    fn key_of(&self, stored: &str) -> Option<SessionKey> {
        let key = legacy::canonicalize(stored, self.agent, self.rules).ok()?;
        (self.is_shared || self.rules.agent_of(&key) == *self.agent).then_some(key)
    }

    /// The same of a row, which may name the channel of a group that its key does not.
    fn key_of_row(&self, (stored, entry): &StoredRow) -> Option<SessionKey> {
        let key = self.key_of(stored)?;
        let named = unnamed_group(key.rest()).and_then(|id| {
            let channel = group_channel(id, entry)?;
            SessionKey::parse(&format!("agent:{}:{channel}:group:{id}", self.rules.agent_of(&key))).ok()
        });
        Some(named.unwrap_or(key))
    }

    /// True for a group under a key without its channel, although its row names that: as `group:<id>` was moved before. `rows` are all of
    /// the store: where the group has begun anew under the right key, this one stays where it is.
    pub(crate) fn is_misnamed(&self, row: &StoredRow, rows: &[StoredRow]) -> bool {
        let is_free = |key: &SessionKey| {
            let mut there = rows.iter().filter(|(stored, _)| stored == key.as_str());
            there.all(|(_, entry)| entry.session_id == row.1.session_id)
        };
        is_unnamed_group(&row.0)
            && self.key_of_row(row).is_some_and(|key| key.as_str() != row.0 && is_free(&key))
    }

    /// True if a stored key is spelled as an old version did. `dm` and `direct` are both of today
    /// (decision 1).
    pub(crate) fn is_old(&self, stored: &str) -> bool {
        // Nearly every key of a big store is told at once.
        self.rules.plainly(&Arc::from(stored)).is_none()
            && self.key_of(stored).is_some_and(|key| !self.is_spelling_of(stored, &key))
    }

    /// True if a row may stay under its present spelling.
    fn is_spelling_of(&self, stored: &str, key: &SessionKey) -> bool {
        stored == key.as_str() || self.rules.is_former_main(stored) || key.is_direct_spelling(stored)
    }
}

/// Starts of the part behind the agent, in keys of groups whose channel is not known.
const UNNAMED_GROUP: [&str; 2] = ["unknown:group:", "group:"];
/// Channels that have no groups.
const WITHOUT_GROUPS: [&str; 3] = ["unknown", "webchat", "internal"];
/// Suffix of WhatsApp's group ids.
const WHATSAPP_GROUP: &str = "@g.us";

/// Id of a group, if its key names no channel. `rest` is the part behind the agent.
fn unnamed_group(rest: &str) -> Option<&str> {
    UNNAMED_GROUP.iter().find_map(|start| rest.strip_prefix(start)).filter(|id| !id.is_empty())
}

/// True if a stored key belongs to a group whose channel is not known.
pub(crate) fn is_unnamed_group(stored: &str) -> bool {
    let rest = stored.strip_prefix("agent:").and_then(|rest| rest.split_once(':'));
    rest.is_some_and(|(_, rest)| unnamed_group(rest).is_some())
}

/// The channel of a group, by its id or as its row names it. The place where its answers go counts
/// most, then the source of the conversation: everything else may be of a client that only looked in.
fn group_channel<'a>(id: &str, entry: &'a SessionEntry) -> Option<&'a str> {
    if id.ends_with(WHATSAPP_GROUP) {
        return Some("whatsapp");
    }
    let delivery = entry.delivery_context.as_deref();
    let origin = entry.origin.as_deref();
    let named = [
        delivery.and_then(|context| context.channel.as_deref()),
        entry.last_channel.as_deref(),
        origin.and_then(|origin| origin.provider.as_deref()),
        origin.and_then(|origin| origin.surface.as_deref()),
        entry.channel.as_deref(),
    ];
    let addresses = [
        delivery.and_then(|context| context.to.as_deref()),
        entry.last_to.as_deref(),
        origin.and_then(|origin| origin.from.as_deref()),
        origin.and_then(|origin| origin.to.as_deref()),
    ];
    let is_channel = |name: &&str| {
        !name.is_empty()
            && !name.contains(':')
            && !WITHOUT_GROUPS.iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    let platform = |address: &'a str| surface(address.split_once(':')?.0);
    let by_address = || addresses.into_iter().flatten().filter_map(platform).find(is_channel);
    let by_name = named.into_iter().flatten().map(str::trim).find(is_channel);
    by_name.map(|name| surface(name).unwrap_or(name)).or_else(by_address)
}

/// Puts rows in order. The same key may stand there more than once, as when two stores become one. `now` in Unix
/// milliseconds.
pub(crate) fn tidy(rows: Vec<StoredRow>, owner: StoreOwner<'_>, now: i64) -> Tidied {
    let mut changes = Vec::new();
    let usable: Vec<StoredRow> = rows
        .into_iter()
        .filter(|(key, entry)| {
            let has_id = entry.session_id.as_ref().is_some_and(|id| !id.as_str().is_empty());
            if !has_id {
                changes.push(CleanupChange::NoSessionId { key: key.clone() });
            }
            has_id
        })
        .collect();
    let mut groups: IndexMap<String, KeyRows> = IndexMap::new();
    let stored: HashMap<String, Arc<SessionEntry>> = usable.iter().cloned().collect();
    for row in usable {
        let key = owner.key_of_row(&row);
        let is_taken = |key: &SessionKey| {
            let there = stored.get(key.as_str()).filter(|_| row.0 != key.as_str());
            there.is_some_and(|there| there.session_id != row.1.session_id)
        };
        // A group whose channel is not known, or was not when it got its key, is another conversation than the one that stands there.
        let is_strange = |key: &SessionKey| is_unnamed_group(&row.0) || is_unnamed_group(key.as_str());
        let key = key.filter(|key| !(is_strange(key) && is_taken(key)));
        // So is a main session beside one of the configured name, which nobody sees.
        let is_apart =
            |key: &SessionKey| owner.rules.is_former_main(&row.0) && stored.contains_key(key.as_str());
        let name = match &key {
            Some(key) if !is_apart(key) => key.as_str().to_owned(),
            Some(_) | None => row.0.clone(),
        };
        groups.entry(name).or_insert_with(|| KeyRows { key, rows: Vec::new() }).rows.push(row);
    }
    let mut kept: Vec<SurvivingRow> =
        groups.into_values().filter_map(|group| group.settle(owner, &mut changes)).collect();
    elect_main(&mut kept, owner, &mut changes);
    for row in &mut kept {
        if row.from != row.row.0 && !row.became_main {
            changes.push(CleanupChange::Moved { from: row.from.clone(), to: row.row.0.clone() });
        }
        if row.row.1.updated_at.is_none() {
            changes.push(CleanupChange::NoUpdatedAt { key: row.from.clone() });
            let entry = Arc::make_mut(&mut row.row.1);
            entry.extra.shift_remove("updatedAt");
            entry.updated_at = Some(now);
        }
    }
    let mut rows: Vec<StoredRow> = kept.into_iter().map(|kept| kept.row).collect();
    part_labels(&mut rows, &mut changes);
    Tidied { rows, changes }
}

/// Rows of one key.
struct KeyRows {
    /// Key of the rows; `None` where it can't be read: then they stay as they are.
    key: Option<SessionKey>,
    rows: Vec<StoredRow>,
}

/// The row that stays.
struct SurvivingRow {
    from: String,
    row: StoredRow,
    key: Option<SessionKey>,
    became_main: bool,
}

impl KeyRows {
    /// The row that was active last; of several such one that is spelled canonically, then the first.
    fn settle(self, owner: StoreOwner<'_>, changes: &mut Vec<CleanupChange>) -> Option<SurvivingRow> {
        let Self { key, mut rows } = self;
        let is_canonical = |stored: &str| key.as_ref().is_some_and(|key| owner.is_spelling_of(stored, key));
        let rank = |row: &StoredRow| (row.1.updated_at_ms(), is_canonical(&row.0));
        let (mut at, mut best) = (0, rank(rows.first()?));
        for (index, row) in rows.iter().enumerate().skip(1) {
            if rank(row) > best {
                (at, best) = (index, rank(row));
            }
        }
        // A bucket that is spelled `direct` in the file stays so, whatever old spelling its newest row has.
        let spelled = rows.iter().map(|(stored, _)| stored).find(|stored| is_canonical(stored)).cloned();
        let (from, entry) = rows.remove(at);
        for (loser, _) in rows {
            changes.push(CleanupChange::Superseded { key: loser, by: from.clone() });
        }
        let to = match &key {
            None => from.clone(),
            Some(_) if is_canonical(&from) => from.clone(),
            Some(key) => spelled.unwrap_or_else(|| key.as_str().to_owned()),
        };
        Some(SurvivingRow { from, row: (to, entry), key, became_main: false })
    }
}

/// The newest row that an old version kept for a direct chat becomes the main session where there is none.
fn elect_main(kept: &mut [SurvivingRow], owner: StoreOwner<'_>, changes: &mut Vec<CleanupChange>) {
    let main = owner.rules.main(owner.agent);
    let is_here = owner.is_shared || owner.rules.agent_of(&main) == *owner.agent;
    if !is_here || kept.iter().any(|row| row.key.as_ref() == Some(&main)) {
        return;
    }
    let old_direct = kept.iter_mut().filter(|row| {
        KeyShape::of(&row.from) == KeyShape::LegacyOrAlias
            && row.key.as_ref().is_some_and(|key| key.agent().is_some() && is_person(key))
    });
    if let Some(newest) = old_direct.max_by_key(|row| row.row.1.updated_at_ms()) {
        main.as_str().clone_into(&mut newest.row.0);
        newest.became_main = true;
        changes.push(CleanupChange::BecameMain { from: newest.from.clone(), to: main.to_string() });
    }
}

/// True if a bare key of an old version can be that of a direct chat.
fn is_person(key: &SessionKey) -> bool {
    matches!(key.form(), KeyForm::Named(_) | KeyForm::Direct { .. }) && !key.is_group() && !key.is_thread()
}

/// Removes labels that several rows have: the row that was active last keeps its label.
fn part_labels(rows: &mut [StoredRow], changes: &mut Vec<CleanupChange>) {
    let mut holders: HashMap<String, (i64, usize)> = HashMap::new();
    let mut losers = HashSet::new();
    for (at, (_, entry)) in rows.iter().enumerate() {
        let Some(label) = entry.label.as_deref() else { continue };
        let claim = (entry.updated_at_ms(), at);
        match holders.get(label) {
            Some(holder) if holder.0 >= claim.0 => {
                losers.insert(at);
            }
            Some(holder) => {
                losers.insert(holder.1);
                holders.insert(label.to_owned(), claim);
            }
            None => {
                holders.insert(label.to_owned(), claim);
            }
        }
    }
    for (at, (key, entry)) in rows.iter_mut().enumerate() {
        if losers.contains(&at)
            && let Some(label) = Arc::make_mut(entry).label.take()
        {
            changes.push(CleanupChange::LabelTaken { key: key.clone(), label: label.into() });
        }
    }
}
