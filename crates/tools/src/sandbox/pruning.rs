//! Removes sandboxes that nobody used for a while, and those that are old (spec `tools.md` §10). Their files stay.

use std::sync::Arc;

use openclaw_config::clock::now_ms;
use openclaw_config::settings::Config;
use openclaw_protocol::AgentId;

use super::registry::{Entry, Registry, is_due};
use super::sandboxes::Sandboxes;
use super::settings::{PruneSettings, SandboxSettings};

/// Sandboxes are looked through no more often.
const PRUNE_EVERY_MS: i64 = 5 * 60 * 1000;

impl Sandboxes {
    /// Removes what is idle or old, unless it was looked for a moment ago. Sandboxes that a run
    /// uses stay, and so do those that can't be removed now.
    pub async fn prune(&self, config: &Config) {
        let now = now_ms();
        {
            let mut pruned_at = self.pruned_at.lock();
            if now.saturating_sub(*pruned_at) < PRUNE_EVERY_MS {
                return;
            }
            *pruned_at = now;
        }
        let registries = [Registry::containers(&self.state_dir), Registry::local(&self.state_dir)];
        for entry in registries.iter().flat_map(Registry::entries) {
            if is_due(&entry, settings_for(config, &entry), now) {
                self.prune_one(config, &entry).await;
            }
        }
    }

    async fn prune_one(&self, config: &Config, entry: &Entry) {
        let name = &entry.container_name;
        let making = self.making(name);
        // The holder of this lock prepares the sandbox for a run.
        let Ok(_nobody_else) = making.try_lock() else { return };
        if self.is_used(name) {
            return;
        }
        match self.removed(config, entry).await {
            Ok(()) => {
                tracing::info!(sandbox = %name, "removed a sandbox that is idle or old; its files stay")
            }
            Err(error) => tracing::warn!(sandbox = %name, %error, "an idle sandbox is not removed"),
        }
    }

    /// Returns true if a run is using the sandbox.
    pub(super) fn is_used(&self, name: &str) -> bool {
        self.used.lock().get(name).is_some_and(|uses| uses.strong_count() > 0)
    }

    /// Marks the sandbox as used by a run, as long as the run holds the result.
    pub(super) fn use_of(&self, name: &str) -> Arc<()> {
        let mut used = self.used.lock();
        used.retain(|_, uses| uses.strong_count() > 0);
        let known = used.get(name).and_then(std::sync::Weak::upgrade);
        let uses = known.unwrap_or_default();
        used.insert(name.to_owned(), Arc::downgrade(&uses));
        uses
    }
}

/// Returns the settings of the agent that owns the sandbox.
fn settings_for(config: &Config, entry: &Entry) -> PruneSettings {
    let mut parts = entry.session_key.split(':');
    let agent = match (parts.next(), parts.next()) {
        (Some("agent"), Some(agent)) => AgentId::normalize(agent),
        _ => config.default_agent(),
    };
    SandboxSettings::of(config, &agent).prune
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::json;

    use super::super::registry::tests::entry;
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn config() -> std::sync::Arc<Config> {
        let prune = |hours: u64| json!({"prune": {"idleHours": hours, "maxAgeDays": 0}});
        let list = json!([{"id": "main", "default": true}, {"id": "keeps", "sandbox": prune(0)}]);
        let document = json!({"agents": {"defaults": {"sandbox": prune(2)}, "list": list}}).to_string();
        Config::from_json5(&document, &Environment::new([("PATH", "/nowhere")], "/")).unwrap()
    }

    fn names(dir: &std::path::Path) -> Vec<String> {
        Registry::local(dir).entries().into_iter().map(|entry| entry.container_name).collect()
    }

    #[tokio::test]
    async fn what_is_idle_goes_by_its_own_agents_settings_unless_a_run_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (registry, now) = (Registry::local(dir.path()), now_ms());
        let note = |name: &str, key: &str, used: i64| {
            let noted = Entry { session_key: key.into(), ..entry(name, now - 9 * HOUR, used) };
            registry.note(noted).unwrap();
        };
        note("idle", "agent:main", now - 3 * HOUR);
        note("shared", "shared", now - 3 * HOUR);
        note("fresh", "agent:main:x", now - HOUR);
        note("kept", "agent:keeps:main", now - 8 * HOUR);
        note("used", "agent:main:y", now - 3 * HOUR);
        note("made", "agent:main:z", now - 3 * HOUR);
        let sandboxes = Sandboxes::new("/no/program", dir.path());
        let using = sandboxes.use_of("used");
        let making = sandboxes.making("made");
        let busy = making.lock().await;
        sandboxes.prune(&config()).await;
        assert_eq!(names(dir.path()), ["fresh", "kept", "used", "made"]);
        drop((using, busy));
        sandboxes.prune(&config()).await;
        assert_eq!(names(dir.path()), ["fresh", "kept", "used", "made"], "not again so soon");
        *sandboxes.pruned_at.lock() = 0;
        sandboxes.prune(&config()).await;
        assert_eq!(names(dir.path()), ["fresh", "kept"]);
    }
}
