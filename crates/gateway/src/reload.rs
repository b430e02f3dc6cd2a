//! Edits of the config file while the gateway runs (spec `gateway-protocol.md` §11, KB-21).
//!
//! Keys that are read anew with every message take effect with the next one; keys that are only
//! read at start are named in the log. A file with mistakes changes nothing. The file is looked at
//! when there is [word](openclaw_agent::file_watch) of an edit.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use openclaw_agent::file_watch::FileWatch;
use openclaw_config::settings::ReloadMode;
use openclaw_config::{Environment, Issue, Loaded, Overrides, changed_paths, load, registry, unsupported};
use openclaw_dispatch::Settings;
use openclaw_sessions::SessionStore;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::current_settings::CurrentSettings;

/// The pause from the start to the first look: the file may have been edited since the start read it.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// Keys that nothing depends on while the gateway runs.
const IDLE: &[&str] = &["$schema", "meta", "wizard", "gateway.reload", "gateway.remote"];
/// Keys that are read when they are used, beside those of chat platforms.
const LIVE: &[&str] = &[
    "identity",
    "models",
    "agents",
    "agent",
    "tools",
    "approvals.exec",
    "bindings",
    "audio",
    "auth",
    "routing",
    "messages",
    "session",
    "talk",
    "channels.defaults",
    "plugins.enabled",
    "plugins.allow",
    "plugins.deny",
    "plugins.slots",
    "plugins.entries.memory-core",
    "memory",
    "commands",
    "skills",
    "hooks.internal",
    "ui",
    "cron.maxConcurrentRuns",
    "gateway.controlUi.enabled",
    "gateway.controlUi.basePath",
    "gateway.controlUi.root",
];
/// Keys by which stored sessions are found: what they change is not done to a running store.
const OF_THE_STORE: &[&str] = &["session.scope", "session.mainKey", "session.store", "agents.list"];

/// Action after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReloadPlan {
    /// Nothing that matters has changed.
    Nothing,
    /// The new settings are taken; these paths wait for a restart.
    Take { live: Vec<String>, restart: Vec<String> },
    /// All of it waits for a restart.
    Wait { restart: Vec<String> },
}

fn plan(old: &Settings, new: &Settings) -> ReloadPlan {
    let (before, after) = (old.config.document(), new.config.document());
    // A section that comes or goes is told key by key.
    let changed = changed_paths(&with_sections_of(before, after), &with_sections_of(after, before));
    if changed.is_empty() {
        return ReloadPlan::Nothing;
    }
    let changed: Vec<String> = changed.into_iter().filter(|path| !is_below(path, IDLE)).collect();
    let is_quiet = changed.is_empty();
    // A changed mode counts at once: `gateway.reload` needs no restart.
    match new.config.gateway.reload.mode.unwrap_or_default() {
        _ if is_quiet => ReloadPlan::Take { live: Vec::new(), restart: Vec::new() },
        ReloadMode::Off => ReloadPlan::Nothing,
        ReloadMode::Restart => ReloadPlan::Wait { restart: changed },
        ReloadMode::Hot | ReloadMode::Hybrid => {
            let same_store = old.sessions.key_rules() == new.sessions.key_rules()
                && old.config.session.store == new.config.session.store;
            if !same_store {
                let restart = changed.into_iter().filter(|path| is_below(path, OF_THE_STORE)).collect();
                return ReloadPlan::Wait { restart };
            }
            let (live, restart) = changed.into_iter().partition(|path| is_live(path));
            ReloadPlan::Take { live, restart }
        }
    }
}

/// True if a running gateway takes a change of the file without a restart. False if that can't be
/// told.
pub fn applies_at_once(before: &Loaded, after: &Loaded) -> bool {
    let read = |loaded: &Loaded| Some(Settings::from(Arc::clone(loaded.config().ok()?)));
    let (Some(old), Some(new)) = (read(before), read(after)) else { return false };
    let is_watched = new.config.gateway.reload.mode != Some(ReloadMode::Off);
    match plan(&old, &new) {
        ReloadPlan::Nothing => is_watched,
        ReloadPlan::Take { restart, .. } => restart.is_empty(),
        ReloadPlan::Wait { .. } => false,
    }
}

/// True if the gateway restarts by itself for a change. Keys that nothing acts on do not count, nor
/// does a change of a file that the owner wants to take by hand.
pub(crate) fn restarts_by_itself(before: &Loaded, after: &Loaded) -> bool {
    let read = |loaded: &Loaded| Some(Settings::from(Arc::clone(loaded.config().ok()?)));
    let (Some(old), Some(new)) = (read(before), read(after)) else { return false };
    let idle = unsupported(after);
    let idle: Vec<&str> = idle.iter().map(String::as_str).collect();
    match (new.config.gateway.reload.mode.unwrap_or_default(), plan(&old, &new)) {
        (ReloadMode::Off | ReloadMode::Hot, _) | (_, ReloadPlan::Nothing) => false,
        (_, ReloadPlan::Take { restart, .. } | ReloadPlan::Wait { restart }) => {
            restart.iter().any(|path| !is_below(path, &idle))
        }
    }
}

/// A document with an empty object for every object with keys that only the other one has. An empty
/// object keeps its own path: that a group is listed is a setting.
fn with_sections_of(document: &Value, other: &Value) -> Value {
    let mut whole = document.clone();
    if let (Value::Object(sections), Value::Object(others)) = (&mut whole, other) {
        let has_keys = |theirs: &Value| theirs.as_object().is_some_and(|keys| !keys.is_empty());
        for (name, theirs) in others.iter().filter(|(_, theirs)| has_keys(theirs)) {
            let own = sections.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            *own = with_sections_of(own, theirs);
        }
    }
    whole
}

/// True if a key is read each time it is used. Of the chat platforms' keys these are the limits on
/// the history of direct chats. An empty section above such keys changes nothing.
fn is_live(path: &str) -> bool {
    let is_history_limit = || path.ends_with(".dmHistoryLimit") || path.contains(".dms");
    let touches = |live: &str| is_below(path, &[live]) || is_below(live, &[path]);
    LIVE.iter().any(|live| touches(live))
        || registry::built_channels().any(|platform| {
            touches(&format!("channels.{}", platform.id))
                || touches(&format!("plugins.entries.{}.enabled", platform.id))
        })
        || is_below(path, &["channels"]) && is_history_limit()
}

/// True if a path is one of these or below one.
fn is_below(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// Access for handlers that change the file: to read it, and to have the change taken at once.
#[derive(Debug, Clone)]
pub(crate) struct Reload {
    /// Environment of the process, before any config.
    environment: Environment,
    /// Overrides that lie over the file.
    overrides: Arc<Overrides>,
    ask: mpsc::Sender<ReloadAck>,
}

/// Sender that learns when the files were read.
type ReloadAck = oneshot::Sender<()>;

/// Requests to be told when the files were read; for [`follow`].
pub(crate) type ReloadRequests = mpsc::Receiver<ReloadAck>;

/// Handlers that wait for a reading; more wait their turn.
const ASKS: usize = 16;

impl Reload {
    /// A handle and what [`follow`] listens to.
    pub(crate) fn new(environment: Environment) -> (Self, ReloadRequests) {
        let (ask, asked) = mpsc::channel(ASKS);
        (Self { environment, overrides: Arc::default(), ask }, asked)
    }

    /// The environment the gateway was started in.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Overrides that lie over the file until the process ends.
    pub(crate) fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Reads the files and applies them as far as possible; returns when that is done.
    pub(crate) async fn now(&self) {
        let (done, read) = oneshot::channel();
        // A gateway that stops reads no more.
        if self.ask.send(done).await.is_ok() {
            let _ = read.await;
        }
    }
}

/// Parts of the gateway that a change of the files acts on.
pub(crate) struct ReloadTargets {
    /// The reading of the files that the gateway started with.
    pub(crate) loaded: Arc<Loaded>,
    /// Environment and overrides with which the files are read.
    pub(crate) reload: Reload,
    /// The settings to replace.
    pub(crate) settings: CurrentSettings,
    /// The store that is told which agents there are.
    pub(crate) sessions: Arc<dyn SessionStore>,
}

/// Follows the config files until the gateway stops.
pub(crate) async fn follow(targets: ReloadTargets, asked: ReloadRequests, stopping: CancellationToken) {
    tokio::select! { biased;
        () = stopping.cancelled() => {}
        () = Follower::new(targets, asked).run() => {}
    }
}

struct Follower {
    targets: ReloadTargets,
    asked: ReloadRequests,
    files: Vec<PathBuf>,
    watch: FileWatch,
    /// Stamps of the files when they were last read. Nothing at first: the file may have been
    /// edited since the start read it.
    seen: Option<Vec<ConfigStamp>>,
    /// Lines for the operator that were logged already.
    told: HashSet<String>,
    /// The warnings of the file as it is in force.
    warned: HashSet<String>,
    /// Overrides that lay over the file when it was last read.
    laid_over: Value,
}

impl Follower {
    fn new(targets: ReloadTargets, asked: ReloadRequests) -> Self {
        let files = files_of(&targets.loaded);
        let laid_over = Value::Object(Map::new());
        // The start has told them.
        let warned = targets.loaded.snapshot.warnings.iter().map(Issue::line).collect();
        Self {
            targets,
            asked,
            files,
            watch: FileWatch::new(),
            seen: None,
            told: HashSet::new(),
            warned,
            laid_over,
        }
    }

    async fn run(mut self) {
        loop {
            let asked = self.word().await;
            let mut stamps = stamps_of(&self.files);
            if asked.is_none() {
                if self.seen.as_ref() == Some(&stamps) {
                    continue;
                }
                stamps = self.settled(stamps).await;
            }
            self.seen = Some(stamps);
            self.read().await;
            if let Some(asked) = asked {
                // The asker may have gone away.
                let _ = asked.send(());
            }
        }
    }

    /// Waits until the files are to be looked at; somebody may have asked for it.
    async fn word(&mut self) -> Option<ReloadAck> {
        let Self { asked, files, watch, seen, .. } = self;
        watch.set(files);
        let edited = async {
            match seen {
                None => sleep(FIRST_LOOK).await,
                Some(seen) if *seen == stamps_of(files) => watch.changed().await,
                Some(_) => {}
            }
        };
        tokio::select! { biased;
            Some(asked) = asked.recv() => Some(asked),
            () = edited => None,
        }
    }

    /// Waits until nobody writes any more; returns the stamps then.
    async fn settled(&self, mut stamps: Vec<ConfigStamp>) -> Vec<ConfigStamp> {
        if self.seen.is_none() {
            return stamps;
        }
        loop {
            sleep(self.targets.settings.config().gateway.reload.debounce()).await;
            let again = stamps_of(&self.files);
            if again == stamps {
                return stamps;
            }
            stamps = again;
        }
    }

    async fn read(&mut self) {
        let environment = self.targets.reload.environment().clone();
        let Ok(loaded) = tokio::task::spawn_blocking(move || load(&environment)).await else { return };
        let files = files_of(&loaded);
        if files != self.files {
            self.seen = None;
            self.files = files;
        }
        if !loaded.snapshot.exists {
            if self.targets.loaded.snapshot.exists {
                self.tell("config file is gone; the settings in force stay".to_owned());
            }
            return;
        }
        match self.targets.reload.overrides().over(&loaded) {
            Ok(config) => self.take(&loaded, Settings::from(config)).await,
            Err(error) => tracing::warn!("config reload skipped, the settings in force stay: {error}"),
        }
    }

    async fn take(&mut self, loaded: &Loaded, new: Settings) {
        let (now, laid_over) = (self.targets.settings.get(), self.targets.reload.overrides().shown());
        let is_tried = std::mem::replace(&mut self.laid_over, laid_over.clone()) != laid_over;
        let planned = match plan(&now, &new) {
            // Overrides are tried at once, whatever the file says about reloads.
            ReloadPlan::Nothing if is_tried => ReloadPlan::Take { live: Vec::new(), restart: Vec::new() },
            planned => planned,
        };
        match planned {
            ReloadPlan::Nothing => {}
            ReloadPlan::Wait { restart } => {
                self.tell_restart(loaded, restart);
                tracing::info!("config change waits for a restart as a whole");
            }
            ReloadPlan::Take { live, restart } => {
                self.tell_restart(loaded, restart);
                for unmet in new.unmet.iter() {
                    self.tell(unmet.to_string());
                }
                self.warn(loaded);
                self.targets.sessions.set_agents(new.config.agent_ids());
                self.targets.settings.replace(new.with_hooks().await);
                if !live.is_empty() {
                    tracing::info!("config change applied: {}", live.join(", "));
                }
            }
        }
    }

    fn tell_restart(&mut self, loaded: &Loaded, paths: Vec<String>) {
        let unsupported = unsupported(loaded);
        for path in paths {
            let above: Vec<&str> = unsupported.iter().map(String::as_str).collect();
            let line = if is_below(&path, &above) { "not supported yet" } else { "restart needed" };
            self.tell(format!("{line}: {path}"));
        }
    }

    /// Logs the warnings that a start would give about the file, except those given before.
    fn warn(&mut self, loaded: &Loaded) {
        let now: HashSet<String> = loaded.snapshot.warnings.iter().map(Issue::line).collect();
        for line in loaded.snapshot.warnings.iter().map(Issue::line) {
            if !self.warned.contains(&line) {
                tracing::warn!("{line}");
            }
        }
        // A warning that goes and comes again is new.
        self.warned = now;
    }

    fn tell(&mut self, line: String) {
        if !self.told.contains(&line) {
            tracing::warn!("{line}");
            self.told.insert(line);
        }
    }
}

fn files_of(loaded: &Loaded) -> Vec<PathBuf> {
    let mut files = vec![loaded.paths.config_path().to_path_buf()];
    files.extend(loaded.included_files.iter().cloned());
    files
}

/// Stamp that tells one content of a file from another: `None` where there is no file.
type ConfigStamp = Option<(Option<SystemTime>, u64, u64)>;

fn stamps_of(files: &[PathBuf]) -> Vec<ConfigStamp> {
    let stamp = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        let inode = std::os::unix::fs::MetadataExt::ino(&meta);
        Some((meta.modified().ok(), meta.len(), inode))
    };
    files.iter().map(|file| stamp(file)).collect()
}

#[cfg(test)]
mod tests {
    use openclaw_config::Config;
    use serde_json::json;

    use super::*;

    fn read(document: &Value) -> Settings {
        let environment = Environment::new([("HOME", "/home/user")], "/");
        Settings::from(Config::from_json5(&document.to_string(), &environment).unwrap())
    }

    fn take(live: &[&str], restart: &[&str]) -> ReloadPlan {
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        ReloadPlan::Take { live: owned(live), restart: owned(restart) }
    }

    fn wait(restart: &[&str]) -> ReloadPlan {
        ReloadPlan::Wait { restart: restart.iter().map(|path| (*path).to_owned()).collect() }
    }

    #[test]
    fn an_edit_is_taken_as_far_as_it_can_be() {
        let agents = json!({"list": [{"id": "main"}, {"id": "work"}]});
        let base = json!({"gateway": {"port": 1}, "agents": agents, "logging": {"level": "info"}, "channels": {"slack": {}}});
        let with = |pointer: &str, value: Value| {
            let mut edited = base.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            edited.pointer_mut(parent).unwrap()[key] = value;
            edited
        };
        let rows = [
            (base.clone(), ReloadPlan::Nothing),
            (with("/meta", json!({"lastTouchedVersion": "2026.2.9"})), take(&[], &[])),
            (with("/messages", json!({"queue": {"mode": "steer"}})), take(&["messages.queue.mode"], &[])),
            (with("/cron", json!({"maxConcurrentRuns": 2})), take(&["cron.maxConcurrentRuns"], &[])),
            (with("/approvals", json!({"exec": {"enabled": true}})), take(&["approvals.exec.enabled"], &[])),
            (with("/gateway/port", json!(2)), take(&[], &["gateway.port"])),
            // An empty object is a setting: a group is listed, a model allowed.
            (
                with("/channels/slack", json!({"channels": {"C1": {}, "C2": {}}})),
                take(&[], &["channels.slack.channels.C1", "channels.slack.channels.C2"]),
            ),
            (
                with("/agents/defaults", json!({"models": {"a/b": {}}})),
                take(&["agents.defaults.models.a/b"], &[]),
            ),
            (with("/cron", json!({})), take(&["cron"], &[])),
            (
                with("/channels/slack", json!({"botToken": "t", "dmHistoryLimit": 5})),
                take(&["channels.slack.dmHistoryLimit"], &["channels.slack.botToken"]),
            ),
            (
                with(
                    "/plugins",
                    json!({"entries": {"telegram": {"enabled": false}, "discord": {"enabled": true}}}),
                ),
                take(&["plugins.entries.telegram.enabled"], &["plugins.entries.discord.enabled"]),
            ),
            (
                with("/plugins", json!({"enabled": false, "deny": ["telegram"]})),
                take(&["plugins.enabled", "plugins.deny"], &[]),
            ),
            (with("/gateway/reload", json!({"mode": "off"})), take(&[], &[])),
            (with("/logging/level", json!("debug")), take(&[], &["logging.level"])),
            (
                with("/agents/list", json!([{"id": "main"}, {"id": "work", "name": "W"}])),
                take(&["agents.list"], &[]),
            ),
            (
                with("/agents/list", json!([{"id": "main"}, {"id": "work"}, {"id": "new"}])),
                take(&["agents.list"], &[]),
            ),
            (with("/agents/list", json!([{"id": "main"}])), take(&["agents.list"], &[])),
            (
                with("/bindings", json!([{"agentId": "work", "match": {"channel": "telegram"}}])),
                take(&["bindings"], &[]),
            ),
            (
                with("/agents/list", json!([{"id": "main"}, {"id": "work", "default": true}])),
                wait(&["agents.list"]),
            ),
            (
                with("/session", json!({"mainKey": "home", "store": "/x.json"})),
                wait(&["session.mainKey", "session.store"]),
            ),
        ];
        for (edited, expected) in rows {
            let mut found = plan(&read(&base), &read(&edited));
            if let ReloadPlan::Wait { restart } = &mut found {
                restart.sort();
            }
            assert_eq!(found, expected, "{edited}");
        }
    }

    #[test]
    fn the_mode_of_the_file_decides() {
        let rows = [
            ("off", ReloadPlan::Nothing),
            ("restart", wait(&["messages.queue.mode"])),
            ("hot", take(&["messages.queue.mode"], &[])),
        ];
        for (mode, expected) in rows {
            let base = json!({"gateway": {"reload": {"mode": mode}}});
            let edited =
                json!({"gateway": {"reload": {"mode": mode}}, "messages": {"queue": {"mode": "steer"}}});
            assert_eq!(plan(&read(&base), &read(&edited)), expected, "{mode}");
            // The mode itself needs no restart.
            let hybrid = json!({"gateway": {"reload": {}}, "messages": {"queue": {"mode": "steer"}}});
            assert_eq!(plan(&read(&base), &read(&hybrid)), take(&["messages.queue.mode"], &[]), "{mode}");
        }
    }

    #[test]
    fn a_prefix_ends_where_a_key_ends() {
        assert!(
            is_below("models", LIVE) && is_below("models.providers", LIVE) && is_below("ui[\"a b\"]", LIVE)
        );
        assert!(!is_below("modelsX", LIVE) && !is_below("gateway", LIVE) && !is_below("<root>", LIVE));
    }
}
