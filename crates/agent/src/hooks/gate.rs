//! Decides which hooks may be used here (spec `agent-runtime.md` §8.1): the same gates as for
//! skills, without their list of bundled ones.

use openclaw_config::Config;

use super::discover::{Home, Hook};
use super::handler::{Handler, HandlerProblem, Runtimes};
use crate::requirements::{BinPath, RequirementEnv, Requirements, is_truthy_at};

/// Paths of the configuration that count as set where they are not.
const TRUE_WHEN_UNSET: &[&str] = &["browser.enabled", "browser.evaluateEnabled", "workspace.dir"];

/// State of a hook on this host.
#[derive(Debug)]
pub struct Standing {
    /// True if the owner switched the hook off.
    pub disabled: bool,
    /// Requirements that are not met.
    pub missing: Requirements,
    /// Handler of the hook's events.
    pub handler: Result<Handler, HandlerProblem>,
}

impl Standing {
    /// Returns true if the hook is used when hooks are on.
    pub fn is_ready(&self) -> bool {
        !self.disabled && self.missing.is_empty() && self.handler.is_ok()
    }
}

/// Looks at hooks with the eyes of one configuration.
#[derive(Debug)]
pub struct Gate<'a> {
    config: &'a Config,
    bins: BinPath,
    /// Runtimes for scripts.
    pub runtimes: Runtimes,
}

impl<'a> Gate<'a> {
    /// The gate of a configuration and its environment.
    pub fn new(config: &'a Config) -> Self {
        let bins = BinPath::of(config);
        Self { config, runtimes: Runtimes::new(bins.clone()), bins }
    }

    /// Requires that no sandbox may write what the configuration is read from: it names programs that are run.
    ///
    /// # Errors
    /// Returns an error that names the file.
    pub(super) fn require_private_settings(&self) -> Result<(), String> {
        let files = self.config.source_files();
        let refused = files
            .iter()
            .filter(|file| file.exists())
            .find_map(|file| self.bins.sandboxes().refuse(file).err());
        refused.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// Directories in which programs are looked up.
    pub fn bins(&self) -> &BinPath {
        &self.bins
    }

    /// Determines the state of a hook. Blocking.
    pub fn standing(&self, hook: &Hook) -> Standing {
        let about = &hook.about;
        let here = Here { gate: self, key: &about.key };
        Standing {
            disabled: self.entry(&about.key).is_some_and(|entry| entry.enabled == Some(false)),
            missing: about.requirements.missing(about.strictness, &here),
            handler: match &hook.home {
                Home::BuiltIn(hook) => Ok(Handler::BuiltIn(*hook)),
                Home::Directory(_) if about.subscriptions.is_empty() => {
                    Err(HandlerProblem::NoKnownEvent(about.events.join(", ")))
                }
                Home::Directory(dir) => self.runtimes.handler_of(dir, &about.export),
            },
        }
    }

    /// Returns true if a path of the configuration counts as set.
    pub fn has_config(&self, path: &str) -> bool {
        is_truthy_at(self.config.document(), path, TRUE_WHEN_UNSET)
    }

    fn entry(&self, key: &str) -> Option<&openclaw_config::settings::HookEntry> {
        self.config.hooks.internal.entries.get(key)
    }
}

struct Here<'a> {
    gate: &'a Gate<'a>,
    key: &'a str,
}

impl RequirementEnv for Here<'_> {
    fn has_bin(&self, name: &str) -> bool {
        self.gate.bins.find(name).is_some()
    }

    fn has_env(&self, name: &str) -> bool {
        let is_given = self.gate.entry(self.key).is_some_and(|entry| entry.env.contains_key(name));
        is_given || self.gate.config.environment().get(name).is_some_and(|value| !value.is_empty())
    }

    fn has_config(&self, path: &str) -> bool {
        self.gate.has_config(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use openclaw_config::Environment;
    use serde_json::{Value, json};

    use super::super::bundled::Bundled;
    use super::super::discover::HookOrigin;
    use super::super::hook_file::HookFile;
    use super::*;

    #[test]
    fn a_hook_is_used_when_it_is_not_switched_off_and_has_what_it_needs() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("fakebin");
        std::fs::write(&bin, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&bin, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = dir.path().display().to_string();
        let on = |entry: Value| json!({"hooks": {"internal": {"entries": {"k": entry}}}});
        let none = || json!({});
        let rows: &[(Value, Value, bool)] = &[
            (json!({}), none(), true),
            // Switched off, by its key alone, whatever it says itself.
            (json!({}), on(json!({"enabled": false})), false),
            (json!({"always": true}), on(json!({"enabled": false})), false),
            (json!({}), on(json!({"enabled": true})), true),
            (json!({}), json!({"hooks": {"internal": {"entries": {"demo": {"enabled": false}}}}}), true),
            // The platform comes before `always`, everything else after it.
            (json!({"os": ["win32"], "always": true}), none(), false),
            (json!({"os": ["win32", "linux", "darwin"]}), none(), true),
            (
                json!({"always": true, "requires": {"bins": ["gone"], "env": ["X"], "config": ["c"]}}),
                none(),
                true,
            ),
            (json!({"requires": {"bins": ["fakebin"]}}), none(), true),
            (json!({"requires": {"bins": ["fakebin", "gone"]}}), none(), false),
            (json!({"requires": {"anyBins": ["gone", "fakebin"]}}), none(), true),
            (json!({"requires": {"anyBins": ["gone"]}}), none(), false),
            (json!({"requires": {"env": ["SET"]}}), none(), true),
            (json!({"requires": {"env": ["BLANK"]}}), none(), false),
            (json!({"requires": {"env": ["X"]}}), none(), false),
            (json!({"requires": {"env": ["X"]}}), on(json!({"env": {"X": "v"}})), true),
            // Values that count as true when they are not set.
            (
                json!({"requires": {"config": ["workspace.dir", "browser.enabled", "browser.evaluateEnabled"]}}),
                none(),
                true,
            ),
            (
                json!({"requires": {"config": ["browser.enabled"]}}),
                json!({"browser": {"enabled": false}}),
                false,
            ),
            (json!({"requires": {"config": ["messages.responsePrefix"]}}), none(), false),
            (
                json!({"requires": {"config": ["messages.responsePrefix"]}}),
                json!({"messages": {"responsePrefix": "x"}}),
                true,
            ),
        ];
        for (needs, config, expect) in rows {
            let vars = [("PATH", path.as_str()), ("HOME", "/nonexistent"), ("SET", "1"), ("BLANK", "")];
            let environment = Environment::new(vars, "/");
            let config = Config::from_json5(&config.to_string(), &environment).unwrap();
            let mut metadata = json!({"events": ["command"], "hookKey": "k"});
            metadata.as_object_mut().unwrap().extend(needs.as_object().unwrap().clone());
            let text = format!("---\nname: demo\nmetadata: {}\n---\n", json!({"openclaw": metadata}));
            let hook = Hook {
                about: HookFile::parse(&text, "demo").unwrap(),
                source: HookOrigin::Managed,
                home: Home::BuiltIn(Bundled::BootMd),
            };
            let standing = Gate::new(&config).standing(&hook);
            assert_eq!(standing.is_ready(), *expect, "{needs} {:?}", standing.missing);
        }
    }

    #[test]
    fn a_hook_that_only_names_unknown_events_is_not_ready() {
        let dir = tempfile::tempdir().unwrap();
        let handler = dir.path().join("handler.sh");
        std::fs::write(&handler, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&handler, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = Config::from_json5("{}", &Environment::new([("HOME", "/nonexistent")], "/")).unwrap();
        let gate = Gate::new(&config);
        for (events, is_ready) in [(r#"["tool:done"]"#, false), (r#"["tool:done", "command:new"]"#, true)] {
            let text =
                format!("---\nname: demo\nmetadata: {{\"openclaw\": {{\"events\": {events}}}}}\n---\n");
            let about = HookFile::parse(&text, "demo").unwrap();
            let hook =
                Hook { about, source: HookOrigin::Managed, home: Home::Directory(dir.path().to_owned()) };
            let standing = gate.standing(&hook);
            assert_eq!(standing.is_ready(), is_ready, "{:?}", standing.handler);
        }
    }

    #[test]
    fn programs_that_can_not_be_called_are_problems() {
        let rows = json!([
            {"event": "command:new", "command": ["sh", "-c", "true"]},
            {"event": "command:new", "command": []},
            {"event": "command:new", "command": ["no-such-program-here"]},
            {"event": "tool:done", "command": ["sh"]},
            {"event": "before_tool_call", "command": ["/gone/guard", "--strict"]},
        ]);
        let document = json!({"hooks": {"internal": {
            "commands": rows, "handlers": [{"event": "command:new", "module": "/gone.js"}],
        }}});
        let path = std::env::var("PATH").unwrap();
        let environment = Environment::new([("HOME", "/nonexistent"), ("PATH", path.as_str())], "/");
        let config = Config::from_json5(&document.to_string(), &environment).unwrap();
        let found = super::super::problems_of_settings(&Gate::new(&config), &config);
        let paths: Vec<String> = found.iter().map(|problem| problem.path.display().to_string()).collect();
        assert_eq!(
            paths,
            ["handlers.0", "commands.1", "commands.2", "commands.3", "commands.4"]
                .map(|name| format!("hooks.internal.{name}")),
            "{found:?}"
        );
        assert!(
            found[1].text.contains("empty") && found[2].text.contains("no-such-program-here"),
            "{found:?}"
        );
        assert_eq!(
            (found[0].text.as_str(), found[4].text.as_str()),
            (
                "there is no file /gone.js; put it there, or correct its path",
                "there is no file /gone/guard; put it there, or correct its path. Until then no tool call is refused by it."
            )
        );
        assert!(super::super::not_loaded(&config).is_empty(), "hooks are off");
    }
}
