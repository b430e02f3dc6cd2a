//! Features of OpenClaw that a state directory uses and this version does not have. The user of
//! such a directory is told of each feature: at the start, and by `status`, `doctor` and `health`.
//! A row of [`FEATURES`] goes when its feature comes.

use std::io::Read as _;
use std::path::Path;

use openclaw_config::registry;
use openclaw_config::{Loaded, installed_extensions, json5, nearest, shared_place, unsupported};
use openclaw_protocol::params::health::AbsentFeature;
use serde_json::Value;

use crate::platforms::platforms;

/// Larger files are not looked into, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of names in a message.
const NAMED: usize = 8;

/// Features and keys of a state directory that this version does not support.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Absent {
    /// Features, one entry a cause.
    pub features: Vec<AbsentFeature>,
    /// Keys of the config that are not acted on and belong to none of them.
    pub keys: Vec<String>,
}

struct Feature {
    name: &'static str,
    /// Effect for people, as a whole sentence without its full stop.
    effect: &'static str,
    /// Keys of the config that ask for it; all keys below them are reported by this feature alone.
    keys: &'static [&'static str],
    /// Finds names of further things that will not work, from elsewhere than those keys.
    find: fn(&Loaded) -> Vec<String>,
}

const FEATURES: &[Feature] = &[
    Feature {
        name: "channels",
        effect: "This version does not have these channels: nobody's message comes in there, and nothing is sent",
        keys: &["channels"],
        find: channels,
    },
    Feature {
        name: "cron",
        effect: "This version runs no scheduled jobs; they stay in the file",
        keys: &["cron"],
        find: cron_jobs,
    },
    Feature { name: "plugins", effect: "This version loads no plugins", keys: &["plugins"], find: plugins },
    Feature {
        name: "nodes",
        effect: "This version sends no commands to nodes",
        keys: &["nodeHost", "gateway.nodes"],
        find: nodes,
    },
    Feature {
        name: "webhooks",
        effect: "This version serves no webhooks: /hooks/* is not answered",
        keys: &[
            "hooks.enabled",
            "hooks.token",
            "hooks.path",
            "hooks.mappings",
            "hooks.presets",
            "hooks.gmail",
            "hooks.maxBodyBytes",
            "hooks.transformsDir",
        ],
        find: nothing,
    },
    Feature {
        name: "browser",
        effect: "This version has no browser and no canvas",
        keys: &["browser", "canvasHost", "agents.defaults.sandbox.browser", "agents.list.*.sandbox.browser"],
        find: nothing,
    },
    Feature {
        name: "speech",
        effect: "This version neither speaks nor listens",
        keys: &["messages.tts", "talk", "audio", "tools.media"],
        find: nothing,
    },
    Feature {
        name: "tailscale",
        effect: "This version publishes nothing by Tailscale",
        keys: &["gateway.tailscale"],
        find: nothing,
    },
    Feature {
        name: "discovery",
        effect: "This version announces nothing on the network",
        keys: &["discovery"],
        find: nothing,
    },
    Feature {
        name: "http-apis",
        effect: "This version does not serve the HTTP APIs of OpenAI's form",
        keys: &["gateway.http"],
        find: nothing,
    },
];

/// Looks at the config and at the files of the state. Reads a few small files.
pub fn absent_features(loaded: &Loaded) -> Absent {
    let mut keys: Vec<String> = unsupported(loaded);
    let document = &loaded.snapshot.config;
    let mut features = Vec::new();
    for feature in FEATURES {
        let is_its = |key: &String| feature.keys.iter().any(|prefix| is_below(key, prefix));
        let (its, others): (Vec<String>, Vec<String>) = keys.into_iter().partition(is_its);
        keys = others;
        let names = (feature.find)(loaded);
        let asking: Vec<String> = match feature.name {
            // Both are named by what they are, not by their keys.
            "channels" | "plugins" => Vec::new(),
            _ => its.into_iter().filter(|key| asks_for_something(document, key)).collect(),
        };
        if let Some(message) = sentences(feature.effect, &names, &asking) {
            features.push(AbsentFeature { feature: feature.name.to_owned(), message });
        }
    }
    Absent { features, keys }
}

/// Consequence, and what it concerns; then the keys of the config that ask for it, which are another cause.
fn sentences(effect: &str, names: &[String], keys: &[String]) -> Option<String> {
    match (names.is_empty(), keys.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("{effect}: {}.", listed(names))),
        (true, false) => Some(format!("{effect}. These keys of the config ask for it: {}.", listed(keys))),
        (false, false) => Some(format!(
            "{effect}: {}. These keys of the config ask for it too: {}.",
            listed(names),
            listed(keys)
        )),
    }
}

fn nothing(_: &Loaded) -> Vec<String> {
    Vec::new()
}

/// True for the prefix itself and everything below it; `*` is any part.
fn is_below(key: &str, prefix: &str) -> bool {
    let mut parts = key.split('.');
    prefix.split('.').all(|wanted| parts.next().is_some_and(|part| wanted == "*" || part == wanted))
}

/// False if the key, or its section, says that the feature is off: then it is not missed.
fn asks_for_something(document: &Value, key: &str) -> bool {
    let at = |path: &str| document.pointer(&format!("/{}", path.replace('.', "/")));
    let is_section_off =
        key.rsplit_once('.').and_then(|(section, _)| at(section)).is_some_and(is_switched_off);
    !is_section_off && at(key).is_none_or(wants)
}

fn is_switched_off(section: &Value) -> bool {
    section.get("enabled") == Some(&Value::Bool(false))
        || section.get("mode").is_some_and(|mode| mode == "off")
}

fn wants(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Object(section) => !is_switched_off(value) && section.values().any(wants),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => value != "off",
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Platforms that are set up, switched on, and not there.
fn channels(loaded: &Loaded) -> Vec<String> {
    let platforms = platforms();
    let sections = loaded.snapshot.config.get("channels").and_then(Value::as_object);
    let wanted = sections.into_iter().flatten().filter(|(name, section)| {
        name.as_str() != "defaults"
            && section.get("enabled") != Some(&Value::Bool(false))
            && platforms.channel(name).is_none()
    });
    wanted
        .map(|(name, _)| {
            registry::by_name(name).map_or_else(|| unknown_channel(name), |info| info.label.to_owned())
        })
        .collect()
}

/// Name that no known platform has: a plugin's, or a misspelt one.
fn unknown_channel(name: &str) -> String {
    match nearest(name, registry::core_channels().map(|info| info.id)) {
        Some(meant) => format!("{name} (did you mean {meant}?)"),
        None => name.to_owned(),
    }
}

/// The names of the jobs that are switched on.
fn cron_jobs(loaded: &Loaded) -> Vec<String> {
    let config = &loaded.snapshot.config;
    if config.pointer("/cron/enabled") == Some(&Value::Bool(false)) {
        return Vec::new();
    }
    let written =
        config.pointer("/cron/store").and_then(Value::as_str).map(str::trim).filter(|path| !path.is_empty());
    let path = written.map_or_else(
        || loaded.paths.state_dir().join("cron").join("jobs.json"),
        |path| loaded.environment.expand_path(path),
    );
    let Some(file) = read(&path) else { return Vec::new() };
    let jobs = file.get("jobs").and_then(Value::as_array).into_iter().flatten();
    let wanted = jobs.filter(|job| job.get("enabled") != Some(&Value::Bool(false)));
    wanted
        .map(|job| name_of(job, &["name", "id"]).unwrap_or_else(|| "a job without a name".to_owned()))
        .collect()
}

/// Plugins that are switched on or installed, but for those that bring in a channel: the channels tell of these.
fn plugins(loaded: &Loaded) -> Vec<String> {
    let section = loaded.snapshot.config.get("plugins");
    let is_off =
        |value: Option<&Value>| value.and_then(|value| value.get("enabled")) == Some(&Value::Bool(false));
    if is_off(section) {
        return Vec::new();
    }
    let entries = section.and_then(|plugins| plugins.get("entries")).and_then(Value::as_object);
    let is_off_by_entry = |id: &str| is_off(entries.and_then(|entries| entries.get(id)));
    let written =
        entries.into_iter().flatten().filter(|(_, entry)| entry.get("enabled") == Some(&Value::Bool(true)));
    let mut names: Vec<String> = written.map(|(id, _)| id.clone()).collect();
    names.extend(installed_extensions(&loaded.paths));
    names.sort();
    names.dedup();
    names.retain(|id| registry::by_name(id).is_none() && !is_off_by_entry(id) && !id.starts_with("memory-"));
    names
}

/// Devices that are paired as nodes: those of `nodes/paired.json`, and of the newer `devices/paired.json` those with that role.
fn nodes(loaded: &Loaded) -> Vec<String> {
    let is_node = |device: &&Value| {
        let roles = device.get("roles").and_then(Value::as_array).into_iter().flatten();
        device.get("role").into_iter().chain(roles).any(|role| role == "node")
    };
    let own = read(&loaded.paths.state_dir().join("nodes").join("paired.json"));
    let devices = read(&loaded.paths.devices_dir().join("paired.json"));
    let nodes = entries(own.as_ref()).chain(entries(devices.as_ref()).filter(is_node));
    // One node stands in both, under the same id.
    let mut seen: Vec<(Option<String>, Option<String>)> = Vec::new();
    for node in nodes {
        let (id, name) =
            (name_of(node, &["nodeId", "deviceId"]), name_of(node, &["displayName", "nodeId", "deviceId"]));
        if id.is_none() || seen.iter().all(|(known, _)| *known != id) {
            seen.push((id, name));
        }
    }
    seen.into_iter().filter_map(|(_, name)| name).collect()
}

/// Entries of a file that maps ids to objects.
fn entries(file: Option<&Value>) -> impl Iterator<Item = &Value> {
    file.and_then(Value::as_object).into_iter().flat_map(serde_json::Map::values)
}

fn name_of(value: &Value, keys: &[&str]) -> Option<String> {
    let texts = keys.iter().filter_map(|key| value.get(key)?.as_str()).map(str::trim);
    texts.filter(|text| !text.is_empty()).map(str::to_owned).next()
}

/// A file of the state; `None` where it is not there or can't be read, which the doctor tells of.
fn read(path: &Path) -> Option<Value> {
    let file = shared_place::open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    json5::parse_value(&text).ok()
}

#[cfg(test)]
mod tests {
    use openclaw_config::{Environment, load};
    use serde_json::json;

    use super::*;

    fn of(config: &Value, files: &[(&str, Value)]) -> Absent {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join(".openclaw");
        let write = |name: &str, content: &Value| {
            let path = state.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.to_string()).unwrap();
        };
        write("openclaw.json", config);
        files.iter().for_each(|(name, content)| write(name, content));
        absent_features(&load(&Environment::new([("HOME", home.path().to_str().unwrap())], home.path())))
    }

    fn names(absent: &Absent) -> Vec<&str> {
        absent.features.iter().map(|feature| feature.feature.as_str()).collect()
    }

    #[test]
    fn a_new_directory_misses_nothing() {
        let telegram = json!({"botToken": "1:TEST-token-x"});
        for config in [json!({}), json!({"gateway": {"mode": "local"}, "channels": {"telegram": telegram}})] {
            assert_eq!(of(&config, &[]), Absent::default(), "{config}");
        }
    }

    #[test]
    fn what_a_directory_uses_in_vain_is_told_once_a_cause_and_by_name() {
        let config = json!({
            "channels": {"telegram": {"botToken": "1:TEST-token-x"}, "discord": {"token": "t"}, "whatsapp": {"enabled": false}, "slack": {"botToken": "x", "appToken": "y"}},
            "plugins": {"entries": {
                "discord": {"enabled": true}, "voice-call": {"enabled": true}, "off": {"enabled": false}, "memory-core": {"enabled": true},
            }},
            "hooks": {"enabled": true, "token": "t"},
            "talk": {"apiKey": "k"},
            "browser": {"enabled": false, "headless": true},
            "update": {"channel": "stable"},
            "cron": {"maxConcurrentRuns": 2},
        });
        let jobs = json!({"version": 1, "jobs": [
            {"id": "1", "name": "Morning brief", "enabled": true}, {"id": "2", "name": "Old", "enabled": false}, {"id": "3"},
        ]});
        let paired = json!({"d1": {"deviceId": "d1", "displayName": "iPhone", "roles": ["node"]}, "d2": {"deviceId": "d2", "role": "operator"}});
        let nodes = json!({"d1": {"nodeId": "d1", "displayName": "iPhone", "token": "t"}, "n2": {"nodeId": "n2", "displayName": "Mac", "token": "t"}});
        let found = of(
            &config,
            &[
                ("cron/jobs.json", jobs),
                ("devices/paired.json", paired),
                ("nodes/paired.json", nodes),
                ("extensions/mine/index.json", json!({})),
            ],
        );
        assert_eq!(names(&found), ["channels", "cron", "plugins", "nodes", "webhooks", "speech"]);
        let told = |at: usize| found.features[at].message.as_str();
        assert!(told(0).ends_with(": Discord, Slack."), "{}", told(0));
        let jobs = ": Morning brief, 3. These keys of the config ask for it too: cron.";
        assert!(told(1).ends_with(jobs), "{}", told(1));
        assert!(told(2).ends_with(": mine, voice-call."), "{}", told(2));
        assert!(told(3).ends_with("nodes: iPhone, Mac."), "{}", told(3));
        assert!(told(4).ends_with(": hooks.enabled, hooks.token."), "{}", told(4));
        assert_eq!(found.keys, ["update"]);
    }

    #[test]
    fn misspelt_names_are_no_features() {
        let found = of(&json!({"channels": {"matrix": {}, "telegramm": {"botToken": "x"}}}), &[]);
        let told = &found.features[0].message;
        assert!(told.ends_with(": matrix, telegramm (did you mean telegram?)."), "{told}");
        assert_eq!(of(&json!({"gatway": {}, "gateway": {"prot": 1}}), &[]), Absent::default());
    }

    #[test]
    fn the_readme_names_every_feature_that_is_not_there() {
        let readme = include_str!("../../../README.md");
        let section =
            readme.split("## Not there yet").nth(1).unwrap().split("\n## ").next().unwrap().to_lowercase();
        for feature in FEATURES {
            assert!(section.contains(&feature.name.replace('-', " ")), "{}", feature.name);
        }
    }

    #[test]
    fn what_is_switched_off_is_missed_by_nobody() {
        let jobs = json!({"version": 1, "jobs": [{"id": "1", "name": "Brief"}]});
        let config = json!({
            "cron": {"enabled": false}, "plugins": {"enabled": false, "entries": {"x": {"enabled": true}}},
            "gateway": {"tailscale": {"mode": "off"}}, "discovery": {"mdns": {"mode": "off"}}, "hooks": {"enabled": false, "token": "t"}, "browser": {"enabled": false},
        });
        assert_eq!(names(&of(&config, &[("cron/jobs.json", jobs)])), [""; 0]);
    }
}
