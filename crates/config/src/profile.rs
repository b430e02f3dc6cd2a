//! `--profile <name>` and `--dev` (spec `config.md` §1.3): separate instances on one host.

use crate::{Environment, Paths};

/// Longest profile name.
const MAX_NAME_LENGTH: usize = 64;
/// Profile of `--dev`.
const DEV_PROFILE: &str = "dev";
/// Port of `--dev`.
const DEV_PORT: &str = "19001";

/// Profile flags before the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileFlags {
    /// `--profile`.
    pub name: Option<String>,
    /// `--dev`.
    pub dev: bool,
}

/// Flags that can't be followed. The process exits with code 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Both at once.
    #[error("[openclaw] Cannot combine --dev with --profile")]
    Combined,
    /// The name is missing.
    #[error("[openclaw] --profile requires a value")]
    NoValue,
    /// A name that can't be part of a path.
    #[error("[openclaw] Invalid --profile (use letters, numbers, \"_\", \"-\" only)")]
    Invalid,
}

/// Takes the profile flags that stand before the command word out of the arguments (program name excluded).
///
/// # Errors
/// [`ProfileError`] when they contradict each other or name nothing usable.
pub fn take_profile_flags(args: &[String]) -> Result<(ProfileFlags, Vec<String>), ProfileError> {
    let mut flags = ProfileFlags::default();
    let mut rest = Vec::with_capacity(args.len());
    let mut remaining = args.iter();
    while let Some(arg) = remaining.next() {
        if arg == "--dev" {
            flags.dev = true;
        } else if arg == "--profile" || arg.starts_with("--profile=") {
            let value = match arg.strip_prefix("--profile=") {
                Some(value) => Some(value.to_owned()),
                None => remaining.next().cloned(),
            };
            let value = value.filter(|value| !value.trim().is_empty() && !value.starts_with("--"));
            let name = value.ok_or(ProfileError::NoValue)?;
            if !is_valid_name(&name) {
                return Err(if flags.dev { ProfileError::Combined } else { ProfileError::Invalid });
            }
            flags.name = Some(name);
        } else {
            rest.push(arg.clone());
            if !arg.starts_with('-') {
                break;
            }
        }
    }
    rest.extend(remaining.cloned());
    if flags.dev && flags.name.is_some() {
        return Err(ProfileError::Combined);
    }
    Ok((flags, rest))
}

/// True if a name may be a profile's.
pub fn is_valid_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Sets what a profile implies, where nothing else is set.
pub fn apply_profile(flags: &ProfileFlags, env: &mut Environment) {
    let name = match (&flags.name, flags.dev) {
        (Some(name), _) => name.clone(),
        (None, true) => DEV_PROFILE.to_owned(),
        (None, false) => return,
    };
    env.set("OPENCLAW_PROFILE", name.clone());
    if !name.eq_ignore_ascii_case("default") {
        let state_dir = env.home().join(format!(".openclaw-{name}"));
        env.fill("OPENCLAW_STATE_DIR", &state_dir.to_string_lossy());
        let config =
            env.get_nonblank("OPENCLAW_STATE_DIR").map(|dir| env.expand_path(dir).join("openclaw.json"));
        if let Some(config) = config {
            env.fill("OPENCLAW_CONFIG_PATH", &config.to_string_lossy());
        }
    }
    if flags.dev {
        env.fill("OPENCLAW_GATEWAY_PORT", DEV_PORT);
    }
}

/// The `.env` of an instance that nothing was said about, as texts name it.
const ENV_FILE: &str = "~/.openclaw/.env";

/// Words with which advice addresses an instance: the profile flag of its commands, and the `.env`
/// that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    flag: Option<String>,
    env_file: String,
}

impl Default for Instance {
    /// The instance without a profile, in the usual directory.
    fn default() -> Self {
        Self { flag: None, env_file: ENV_FILE.to_owned() }
    }
}

impl Instance {
    /// Returns the words of the instance that runs in an environment.
    pub fn of(env: &Environment) -> Self {
        let env_file = env.with_tilde(&Paths::resolve(env).state_dir().join(".env"));
        Self { flag: flag_of(env), env_file }
    }

    /// Returns the file that holds the variables of this instance, with `~` for the home directory.
    pub fn env_file(&self) -> &str {
        &self.env_file
    }

    /// Returns a command as it has to be typed for this instance: `openclaw doctor` becomes
    /// `openclaw --profile work doctor`.
    pub fn command(&self, command: &str) -> String {
        with_flag(self.flag.as_deref(), command)
    }

    /// Returns a text with its commands, which stand in backticks or quotation marks, as they have
    /// to be typed, and with the `.env` that is read.
    pub fn in_text(&self, text: &str) -> String {
        commands_in(self.flag.as_deref(), &text.replace(ENV_FILE, &self.env_file))
    }
}

/// Returns the flag that commands need to mean the profile of an environment; `None` for the
/// default one.
fn flag_of(env: &Environment) -> Option<String> {
    let profile = env.get_nonblank("OPENCLAW_PROFILE")?;
    if profile.eq_ignore_ascii_case("default") || !is_valid_name(profile) {
        return None;
    }
    // `--profile dev` is the same directory, but not the same port.
    let is_dev = profile == DEV_PROFILE && env.get("OPENCLAW_GATEWAY_PORT") == Some(DEV_PORT);
    Some(if is_dev { "--dev".to_owned() } else { format!("--profile {profile}") })
}

fn with_flag(flag: Option<&str>, command: &str) -> String {
    let has_flag = command
        .split_whitespace()
        .any(|word| word == "--dev" || word == "--profile" || word.starts_with("--profile="));
    match (flag, command.strip_prefix("openclaw")) {
        (Some(flag), Some(rest)) if !has_flag && (rest.is_empty() || rest.starts_with(' ')) => {
            format!("openclaw {flag}{rest}")
        }
        _ => command.to_owned(),
    }
}

fn commands_in(flag: Option<&str>, text: &str) -> String {
    ['`', '"'].iter().fold(text.to_owned(), |text, quote| {
        let parts = text.split(*quote).enumerate().map(|(at, part)| match part.starts_with("openclaw ") {
            true if at > 0 => with_flag(flag, part),
            true | false => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join(&quote.to_string())
    })
}

/// A command as it should be printed to a user of this profile; see [`Instance::command`].
pub fn command_hint(command: &str, env: &Environment) -> String {
    with_flag(flag_of(env).as_deref(), command)
}

/// A text as it should be printed to a user of this profile; see [`Instance::in_text`].
pub fn hints_in(text: &str, env: &Environment) -> String {
    Instance::of(env).in_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Taken = Result<(Option<&'static str>, bool, &'static str), ProfileError>;

    #[test]
    fn profile_flags_count_only_before_the_command() {
        let rows: &[(&str, Taken)] = &[
            ("gateway --dev", Ok((None, false, "gateway --dev"))),
            ("--dev gateway", Ok((None, true, "gateway"))),
            ("--profile work status", Ok((Some("work"), false, "status"))),
            ("--profile=work status", Ok((Some("work"), false, "status"))),
            ("--no-color --profile work status --x", Ok((Some("work"), false, "--no-color status --x"))),
            ("--profile", Err(ProfileError::NoValue)),
            ("--profile bad/name status", Err(ProfileError::Invalid)),
            ("--dev --profile work", Err(ProfileError::Combined)),
            ("--profile work --dev", Err(ProfileError::Combined)),
        ];
        for (line, expect) in rows {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let taken = take_profile_flags(&args);
            let expect = expect.map(|(name, dev, rest)| {
                (
                    ProfileFlags { name: name.map(str::to_owned), dev },
                    rest.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
                )
            });
            assert_eq!(taken, expect, "{line}");
        }
    }

    #[test]
    fn a_profile_sets_only_what_is_unset() {
        let mut env = Environment::new([("HOME", "/h")], "/w");
        apply_profile(&ProfileFlags { name: None, dev: true }, &mut env);
        let expect = [
            ("HOME", "/h"),
            ("OPENCLAW_CONFIG_PATH", "/h/.openclaw-dev/openclaw.json"),
            ("OPENCLAW_GATEWAY_PORT", "19001"),
            ("OPENCLAW_PROFILE", "dev"),
            ("OPENCLAW_STATE_DIR", "/h/.openclaw-dev"),
        ];
        assert_eq!(env.vars().collect::<Vec<_>>(), expect);

        let preset = [("HOME", "/h"), ("OPENCLAW_STATE_DIR", "/custom"), ("OPENCLAW_GATEWAY_PORT", "19099")];
        let mut env = Environment::new(preset, "/w");
        apply_profile(&ProfileFlags { name: None, dev: true }, &mut env);
        assert_eq!(env.get("OPENCLAW_STATE_DIR"), Some("/custom"));
        assert_eq!(env.get("OPENCLAW_CONFIG_PATH"), Some("/custom/openclaw.json"));
        assert_eq!(env.get("OPENCLAW_GATEWAY_PORT"), Some("19099"));
    }

    #[test]
    fn hints_name_the_profile_in_force() {
        let rows = [
            ("work", "openclaw doctor --fix", "openclaw --profile work doctor --fix"),
            ("Default", "openclaw doctor", "openclaw doctor"),
            ("b d", "openclaw doctor", "openclaw doctor"),
            ("work", "openclaw --dev doctor", "openclaw --dev doctor"),
        ];
        for (profile, command, expect) in rows {
            let env = Environment::new([("OPENCLAW_PROFILE", profile)], "/w");
            assert_eq!(command_hint(command, &env), expect);
        }
        let dev = |port| {
            let mut env = Environment::new(port, "/w");
            apply_profile(&ProfileFlags { name: None, dev: true }, &mut env);
            hints_in("Missing. Run `openclaw setup` (or openclaw help)", &env)
        };
        let vars: [(&str, &str); 0] = [];
        let own_port = [("OPENCLAW_GATEWAY_PORT", "7"), ("HOME", "/h")];
        assert_eq!(dev(vars.to_vec()), "Missing. Run `openclaw --dev setup` (or openclaw help)");
        assert_eq!(dev(own_port.to_vec()), "Missing. Run `openclaw --profile dev setup` (or openclaw help)");
    }

    #[test]
    fn a_text_names_the_commands_and_the_variables_of_its_instance() {
        let text = "Set X in ~/.openclaw/.env, or run `openclaw setup`. Use \"openclaw agents list\" of \"openclaw\".";
        let rows = [
            (None, "~/.openclaw/.env", ""),
            (Some(("OPENCLAW_STATE_DIR", "/x")), "/x/.env", ""),
            (Some(("OPENCLAW_PROFILE", "job")), "~/.openclaw/.env", " --profile job"),
        ];
        for (variable, env_file, flag) in rows {
            let variables = [("HOME", "/nowhere")].into_iter().chain(variable);
            let instance = Instance::of(&Environment::new(variables, "/w"));
            let told = instance.in_text(text);
            assert_eq!(
                told,
                format!(
                    "Set X in {env_file}, or run `openclaw{flag} setup`. Use \"openclaw{flag} agents list\" of \"openclaw\"."
                )
            );
            assert_eq!(instance.in_text(&told), told, "once is enough");
        }
    }

    #[test]
    fn a_named_instance_has_variables_of_its_own() {
        let mut env = Environment::new([("HOME", "/nowhere")], "/w");
        apply_profile(&ProfileFlags { name: Some("job".to_owned()), dev: false }, &mut env);
        assert_eq!(Instance::of(&env).env_file(), "~/.openclaw-job/.env");
    }
}
