//! `openclaw config get|set|unset` (spec `cli.md` §4.1).

use openclaw_config::gateway_options::{GatewayFlags, gateway_options};
use openclaw_config::profile::hints_in;
use openclaw_config::write::{self, Actor, WriteError};
use openclaw_config::{Issue, Loaded, json5, redact, value_path};
use openclaw_gateway::{Running, applies_at_once, running_gateway};
use openclaw_models::ModelSettings;
use openclaw_models::catalog::Catalog;
use openclaw_models::reference::{ModelNames, default_model};
use serde_json::Value;

use crate::args::{ConfigArgs, ConfigCommand};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

pub(super) fn run(args: ConfigArgs, context: &Context) -> Outcome {
    match args.command {
        Some(ConfigCommand::Get { path, json, show_secrets }) => get(context, &path, json, show_secrets),
        Some(ConfigCommand::Set { path, value, json }) => set(context, &path, &value, json),
        Some(ConfigCommand::Unset { path }) => unset(context, &path),
        None => Err(Failure::usage("openclaw config: the wizard is not implemented yet in this version")
            .hint("Use: openclaw config get|set|unset <path>")),
    }
}

/// The file must be read and parsed; it need not be valid, so that these commands can repair it.
fn require_parsable(context: &Context) -> Result<(), Failure> {
    let is_known = context.is_config_readable() && context.loaded.snapshot.is_parsable();
    if is_known { Ok(()) } else { Err(context.invalid_config()) }
}

fn segments(path: &str) -> Result<Vec<String>, Failure> {
    if path.trim().is_empty() {
        return Err(Failure::usage("Error: Path is empty."));
    }
    value_path::parse_path(path).map_err(|error| Failure::usage(format!("Error: {error}")))
}

fn get(context: &Context, path: &str, json: bool, show_secrets: bool) -> Outcome {
    let segments = segments(path)?;
    require_parsable(context)?;
    let snapshot = &context.loaded.snapshot;
    let found =
        value_path::get(&snapshot.config, &segments).or_else(|| value_path::get(&snapshot.parsed, &segments));
    let Some(value) = found else { return Err(not_found(path)) };
    let mut value = value.clone();
    // A value that was asked for by its own path is shown; secrets inside an object only on demand.
    if !show_secrets && (value.is_object() || value.is_array()) {
        redact::redact_at(&segments, &mut value);
    }
    match &value {
        Value::String(text) if !json => output::line(text),
        other => output::json(other),
    }
    Ok(0)
}

fn not_found(path: &str) -> Failure {
    Failure::new("path-not-found", format!("Config path not found: {path}"))
}

fn set(context: &Context, path: &str, text: &str, json: bool) -> Outcome {
    let segments = segments(path)?;
    require_parsable(context)?;
    let value = match json5::parse_value(text) {
        Ok(value) => value,
        Err(error) if json => {
            return Err(Failure::usage(format!("Error: Failed to parse JSON5 value: SyntaxError: {error}")));
        }
        Err(_) => Value::String(text.to_owned()),
    };
    write::set_value(&context.loaded, &segments, value, Actor::Cli).map_err(write_failure)?;
    output::line(&format!("Updated {path}. {}", effect(context, &segments)));
    let after = openclaw_config::load(context.process());
    for remark in remarks(&context.loaded, &after) {
        output::error_line(&context.style.warn(&hints_in(&remark, context.env())));
    }
    Ok(0)
}

fn unset(context: &Context, path: &str) -> Outcome {
    let segments = segments(path)?;
    require_parsable(context)?;
    match write::unset_value(&context.loaded, &segments, Actor::Cli).map_err(write_failure)? {
        Some(_) => {
            output::line(&format!("Removed {path}. {}", effect(context, &segments)));
            Ok(0)
        }
        None => Err(not_found(path)),
    }
}

/// What does not work any more with a change that was just written, although it is allowed.
fn remarks(before: &Loaded, after: &Loaded) -> Vec<String> {
    let (before, now) = (faults(before), faults(after));
    now.into_iter().filter(|fault| !before.contains(fault)).collect()
}

/// Why no gateway would start with the settings of a valid config, and what is wrong with its model.
fn faults(loaded: &Loaded) -> Vec<String> {
    let Ok(config) = loaded.config_for_reading() else { return Vec::new() };
    let flags = GatewayFlags { allow_unconfigured: true, ..GatewayFlags::default() };
    let refusal = gateway_options(config, &loaded.environment, &flags).err();
    let settings = ModelSettings::from(config.as_ref());
    let model = default_model(None, &settings.default_model, &ModelNames::new(&settings.listed));
    let unknown = || Some(Catalog::new(&settings).lookup(&model.reference).err()?.to_string());
    let model = model.warning.clone().or_else(|| unknown().filter(|_| model.configured));
    refusal.map(|refusal| refusal.to_string()).into_iter().chain(model).collect()
}

/// When a change that was just written does something.
fn effect(context: &Context, segments: &[String]) -> String {
    let path = segments.join(".");
    let after = openclaw_config::load(context.process());
    let is_within = |path: &str, above: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let unsupported = openclaw_config::unsupported(&after);
    if let Some(key) = unsupported.iter().find(|key| is_within(&path, key)) {
        return format!("This version does not act on {key} yet.");
    }
    let running = running_gateway(&after);
    let taken = if running.is_none() {
        "A gateway takes it when it starts."
    } else if path == "gateway.port" && is_port_of(running, &after) {
        "The running gateway listens there already."
    } else if applies_at_once(&context.loaded, &after) {
        "The running gateway applies it within a second."
    } else {
        "Restart the gateway to apply."
    };
    match unsupported.iter().find(|key| is_within(key, &path)) {
        Some(key) => format!("{taken} This version does not act on {key} yet."),
        None => taken.to_owned(),
    }
}

fn is_port_of(running: Option<Running>, after: &Loaded) -> bool {
    let port = running.and_then(|running| running.port).map(u64::from);
    let written = after.snapshot.config.pointer("/gateway/port").and_then(Value::as_u64);
    port.is_some() && port == written
}

/// What a refused write means for the person at the keyboard.
#[expect(clippy::needless_pass_by_value, reason = "used as a function for map_err")]
pub(super) fn write_failure(error: WriteError) -> Failure {
    let text = format!("Error: {error}");
    match &error {
        WriteError::Invalid { issues } => {
            let failure = Failure::new("config-invalid", text);
            match issues.first().and_then(Issue::advice) {
                Some(advice) => failure.hint(sentence(&advice)),
                None => failure,
            }
        }
        WriteError::Changed => {
            Failure::new("config-changed", "Error: the config file was changed by somebody else meanwhile")
                .hint("Run the command again.")
        }
        WriteError::Unparsable { .. } | WriteError::Redacted(_) | WriteError::Included { .. } => {
            Failure::new("config-write", text)
        }
        WriteError::Io { path, .. } => Failure::new("config-write", text)
            .hint(format!("This user must be able to write to {path} and to make files beside it.")),
    }
}

/// Advice as a sentence of its own.
fn sentence(advice: &str) -> String {
    let mut letters = advice.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
