//! Secrets that commands do not inherit and no tool may say: the gateway's own secret, the
//! credentials of model providers and chat platforms, those of devices, and the values of variables
//! whose names tell of a secret.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use openclaw_agent::skills::Overlay;
use openclaw_agent::{MIN_SECRET_CHARS, Redactor};
use openclaw_config::redact::is_secret_name;
use openclaw_config::{Config, gateway_options};
use openclaw_runtime::setup::Settings;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use super::device_secrets::DeviceSecrets;
use crate::not_begun::NotBegun;

/// Number of credentials from runs that are remembered; logins get new ones every hour.
const REMEMBERED: usize = 256;
/// Secrets of configurations that are remembered, those in force besides.
const REMEMBERED_OF_SETTINGS: usize = 4096;

/// Secrets known so far.
pub struct KnownSecrets {
    /// Secrets of the gateway itself, as it was started.
    own: Vec<SecretString>,
    devices: DeviceSecrets,
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    seen: VecDeque<SecretString>,
    /// API keys of skills. Commands inherit them, and no tool may print them, in whatever run.
    of_skills: VecDeque<SecretString>,
    /// Secrets of every configuration since the start: one that is replaced still stands in files,
    /// and may be in use elsewhere.
    own_of_settings: VecDeque<SecretString>,
    tools_of_settings: VecDeque<SecretString>,
    made: Option<ShieldCache>,
}

/// Shield, and the inputs it was made for besides the credentials seen.
struct ShieldCache {
    settings: Arc<Settings>,
    devices: Arc<[SecretString]>,
    shield: Arc<Shield>,
}

/// Secrets and variables that one run is kept from.
pub struct Shield {
    /// Replaces secrets in what is stored and told.
    pub redactor: Redactor,
    /// Variables that commands do not inherit.
    pub withheld: Arc<BTreeSet<String>>,
}

impl KnownSecrets {
    pub(super) fn new(own: Vec<SecretString>, state_dir: &Path, config: &Config) -> Self {
        let known = Self { own, devices: DeviceSecrets::new(state_dir), latest: Mutex::default() };
        known.learn_settings(config);
        known
    }

    /// Returns the current tokens and keys of devices.
    pub fn of_devices(&self) -> Arc<[SecretString]> {
        self.devices.now()
    }

    /// Remembers the API keys of skills.
    pub(super) fn learn_keys(&self, overlay: &Overlay) {
        if overlay.is_empty() {
            return;
        }
        let mut latest = self.latest.lock();
        if remember(&mut latest.of_skills, overlay.keys(), REMEMBERED) {
            latest.made = None;
        }
    }

    /// Remembers the secrets of a configuration.
    pub fn learn_settings(&self, config: &Config) {
        let environment = config.environment();
        let written = config.own_secrets().into_iter();
        let own = written.map(|written| environment.get(written).unwrap_or(written));
        let variables = environment.vars().filter(|variable| is_told(*variable)).map(|(_, value)| value);
        let latest = &mut *self.latest.lock();
        let has_own = remember(&mut latest.own_of_settings, own, REMEMBERED_OF_SETTINGS);
        let for_tools = config.tool_secrets().into_iter().chain(variables);
        if remember(&mut latest.tools_of_settings, for_tools, REMEMBERED_OF_SETTINGS) || has_own {
            latest.made = None;
        }
    }

    /// Returns a text for people, without the secrets that runs so far were kept from.
    pub(super) fn redacted(&self, text: &str) -> String {
        let latest = self.latest.lock();
        latest.made.as_ref().map_or_else(|| text.to_owned(), |made| made.shield.redactor.redact_text(text))
    }

    /// Returns the shield of a run that knows these credentials. Made anew only when something
    /// changed.
    pub fn shield(
        &self,
        settings: &Arc<Settings>,
        credentials: Vec<SecretString>,
        devices: Arc<[SecretString]>,
    ) -> Result<Arc<Shield>, NotBegun> {
        let mut latest = self.latest.lock();
        let is_new = |secret: &SecretString| !latest.seen.iter().any(|known| same(known, secret));
        let new: Vec<SecretString> = credentials.into_iter().filter(is_new).collect();
        if let Some(made) = &latest.made
            && new.is_empty()
            && Arc::ptr_eq(&made.settings, settings)
            && Arc::ptr_eq(&made.devices, &devices)
        {
            return Ok(Arc::clone(&made.shield));
        }
        latest.seen.extend(new);
        let excess = latest.seen.len().saturating_sub(REMEMBERED);
        latest.seen.drain(..excess);
        let credentials =
            self.own.iter().chain(&latest.seen).chain(&latest.own_of_settings).chain(devices.iter());
        let credentials = credentials.map(ExposeSecret::expose_secret);
        let keys = latest.of_skills.iter().chain(&latest.tools_of_settings).map(ExposeSecret::expose_secret);
        let shield = Arc::new(Shield::new(&settings.config, credentials, keys)?);
        latest.made =
            Some(ShieldCache { settings: Arc::clone(settings), devices, shield: Arc::clone(&shield) });
        Ok(shield)
    }

    /// Returns the shield for work that has no credentials of its own.
    pub(crate) fn known(&self, settings: &Arc<Settings>) -> Result<Arc<Shield>, NotBegun> {
        self.shield(settings, Vec::new(), self.of_devices())
    }

    /// Returns a text without the secrets that are known under these settings.
    pub(crate) fn redacted_by(&self, settings: &Arc<Settings>, text: &str) -> Result<String, NotBegun> {
        Ok(self.known(settings)?.redactor.redact_text(text))
    }
}

impl Shield {
    fn new<'a>(
        config: &'a Config,
        credentials: impl Iterator<Item = &'a str>,
        keys: impl Iterator<Item = &'a str>,
    ) -> Result<Self, NotBegun> {
        let environment = config.environment();
        let mut withheld: BTreeSet<&str> = credential_variables().collect();
        let mut values: Vec<&str> = credentials.collect();
        for written in config.own_secrets() {
            // A key of a provider may be written as the name of a variable.
            if environment.get(written).is_some() {
                withheld.insert(written);
            } else if !withheld.contains(written) {
                values.push(written);
            }
        }
        let is_credential = |value: &str| {
            value.chars().count() >= MIN_SECRET_CHARS
                && values.iter().any(|known| known.trim() == value.trim())
        };
        withheld.extend(environment.vars().filter(|(_, value)| is_credential(value)).map(|(name, _)| name));
        values.extend(config.tool_secrets());
        values.extend(keys);
        let told = environment.vars().filter(|variable| withheld.contains(variable.0) || is_told(*variable));
        values.extend(told.map(|(_, value)| value));
        Ok(Self {
            redactor: Redactor::new(values)?,
            withheld: Arc::new(withheld.into_iter().map(str::to_owned).collect()),
        })
    }
}

/// True for a variable whose value no tool may print. The place of a secret may be told.
fn is_told((name, value): (&str, &str)) -> bool {
    is_secret_name(name) && !Path::new(value).exists()
}

/// Adds new secrets to a list; the oldest go if it holds too many. Returns true if something is
/// new.
fn remember<'a>(
    list: &mut VecDeque<SecretString>,
    secrets: impl Iterator<Item = &'a str>,
    most: usize,
) -> bool {
    let mut is_changed = false;
    for secret in secrets {
        if !list.iter().any(|known| known.expose_secret() == secret) {
            list.push_back(SecretString::from(secret));
            is_changed = true;
        }
    }
    let excess = list.len().saturating_sub(most);
    list.drain(..excess);
    is_changed
}

/// Returns the variables that are known to hold credentials of the gateway and of nobody else.
fn credential_variables() -> impl Iterator<Item = &'static str> {
    gateway_options::secret_variables()
        .chain(openclaw_models::catalog::credential_variables())
        .chain(openclaw_config::registry::credential_variables())
}

fn same(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    fn settings(document: &str, variables: &[(&str, &str)]) -> Arc<Settings> {
        let environment = Environment::new(variables.iter().copied(), "/");
        let config = Config::from_json5(document, &environment).unwrap();
        Arc::new(Settings { config, ..Settings::default() })
    }

    fn names(shield: &Shield) -> Vec<&str> {
        let others: BTreeSet<&str> = credential_variables().collect();
        shield.withheld.iter().map(String::as_str).filter(|name| !others.contains(name)).collect()
    }

    #[test]
    fn variables_are_withheld_by_name_and_by_value() {
        let variables = [
            ("BY_REFERENCE", "key-by-reference"),
            ("BY_NAME", "key-by-name"),
            ("OF_A_PROFILE", "key-of-a-profile"),
            ("GITHUB_TOKEN", "ghp_for-tools"),
            ("SHORT", "short"),
            ("OTHER", "other"),
        ];
        let provider = |key: &str| format!("{{baseUrl: 'http://a', models: [], apiKey: '{key}'}}");
        let (a, b, c) = (provider("${BY_REFERENCE}"), provider("BY_NAME"), provider("short"));
        let document = format!("{{models: {{providers: {{a: {a}, b: {b}, c: {c}}}}}}}");
        let devices = Arc::<[SecretString]>::default();
        let settings = settings(&document, &variables);
        let known = KnownSecrets::new(Vec::new(), Path::new("/none"), &settings.config);
        let first = known.shield(&settings, Vec::new(), Arc::clone(&devices)).unwrap();
        assert_eq!(names(&first), ["BY_NAME", "BY_REFERENCE"]);
        for name in
            ["OPENCLAW_GATEWAY_TOKEN", "OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"]
        {
            assert!(first.withheld.contains(name), "{name}");
        }
        let second = known.shield(&settings, vec!["key-of-a-profile".into()], Arc::clone(&devices)).unwrap();
        assert_eq!(names(&second), ["BY_NAME", "BY_REFERENCE", "OF_A_PROFILE"]);
        let third = known.shield(&settings, vec!["key-of-a-profile".into()], Arc::clone(&devices)).unwrap();
        assert!(Arc::ptr_eq(&second, &third), "made once");
        let paired: Arc<[SecretString]> = Arc::from(["token-of-a-device".into()]);
        let fourth = known.shield(&settings, Vec::new(), paired).unwrap();
        assert!(!Arc::ptr_eq(&third, &fourth), "made anew for a device");
    }

    #[test]
    fn what_a_configuration_held_stays_a_secret_when_it_is_replaced() {
        let with = |token: &str, key: &str| {
            let document = format!(
                "{{gateway: {{auth: {{token: '{token}'}}}}, skills: {{entries: {{gh: {{apiKey: '{key}'}}}}}}}}"
            );
            settings(&document, &[("OLD_COPY", "first-token-of-ours")])
        };
        let (first, second) = (
            with("first-token-of-ours", "first-key-of-a-skill"),
            with("second-token-of-ours", "other-key-of-a-skill"),
        );
        let known = KnownSecrets::new(Vec::new(), Path::new("/none"), &first.config);
        known.learn_settings(&second.config);
        let shield = known.shield(&second, Vec::new(), Arc::default()).unwrap();
        let all = "first-token-of-ours first-key-of-a-skill second-token-of-ours other-key-of-a-skill";
        let told = shield.redactor.redact_text(all);
        assert!(!told.contains("-of-"), "{told}");
        assert_eq!(names(&shield), ["OLD_COPY"]);
    }
}
