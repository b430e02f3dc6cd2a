//! `openclaw config get|set|unset` (spec `cli.md` §4.1).

use openclaw_config::gateway_options::{
    GatewayFlags, PortSource, gateway_options, gateway_port, gateway_port_source,
};
use openclaw_config::profile::hints_in;
use openclaw_config::settings::BindMode;
use openclaw_config::write::{self, Actor, WriteError, Written};
use openclaw_config::{Issue, Loaded, json5, private_file, redact, value_path};
use openclaw_gateway::{RunningGateway, applies_at_once, running_gateway};
use openclaw_models::ModelSettings;
use openclaw_models::catalog::Catalog;
use openclaw_models::reference::{ModelNames, default_model};
use serde_json::Value;

use crate::args::{ConfigArgs, ConfigCommand};
use crate::context::{CliContext, Mistakes};
use crate::failure::{CommandFailure, CommandResult};
use crate::{output, service};

pub(super) fn run(args: ConfigArgs, context: &CliContext) -> CommandResult {
    match args.command {
        Some(ConfigCommand::Get { path, json, show_secrets }) => get(context, &path, json, show_secrets),
        Some(ConfigCommand::Set { path, value, json }) => set(context, &path, &value, json),
        Some(ConfigCommand::Unset { path }) => unset(context, &path),
        None => {
            Err(CommandFailure::usage("openclaw config: the wizard is not implemented yet in this version")
                .hint("Use: openclaw config get|set|unset <path>"))
        }
    }
}

/// The file must be read and parsed; it need not be valid, so that these commands can repair it.
fn require_parsable(context: &CliContext) -> Result<(), CommandFailure> {
    let is_known = context.is_config_readable() && context.loaded.snapshot.is_parsable();
    if is_known { Ok(()) } else { Err(context.invalid_config()) }
}

fn segments(path: &str) -> Result<Vec<String>, CommandFailure> {
    if path.trim().is_empty() {
        return Err(CommandFailure::usage("Error: Path is empty."));
    }
    value_path::parse_path(path).map_err(|error| CommandFailure::usage(format!("Error: {error}")))
}

fn get(context: &CliContext, path: &str, json: bool, show_secrets: bool) -> CommandResult {
    let segments = segments(path)?;
    require_parsable(context)?;
    let snapshot = &context.loaded.snapshot;
    let found =
        value_path::get(&snapshot.config, &segments).or_else(|| value_path::get(&snapshot.parsed, &segments));
    let Some(value) = found else {
        let failure = not_found(context, path, &segments);
        return Err(match in_force(context, path) {
            Some(told) if failure.hint.is_none() => failure.hint(told),
            Some(_) | None => failure,
        });
    };
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

fn not_found(context: &CliContext, path: &str, segments: &[String]) -> CommandFailure {
    let failure = CommandFailure::new("path-not-found", format!("Config path not found: {path}"));
    with_meant_key(failure, context, segments)
}

/// Sentence about the value that holds although the config does not have the key; for keys that
/// people ask for after a setup, which does not write them.
fn in_force(context: &CliContext, path: &str) -> Option<String> {
    let config = context.config().ok()?;
    let (value, source) = match path {
        "gateway.port" => {
            let port = gateway_port(config, context.env()).ok()?.to_string();
            match gateway_port_source(config, context.env()) {
                PortSource::Variable(name) => (port, format!("from {name}")),
                PortSource::Config | PortSource::Default => (port, "the default".to_owned()),
            }
        }
        "gateway.bind" => (BindMode::default().as_str().to_owned(), "the default".to_owned()),
        "agents.defaults.workspace" => {
            let workspace = context.paths().workspace(&config.default_agent(), true);
            (context.short(&workspace), "the default".to_owned())
        }
        _ => return None,
    };
    Some(format!("The config does not have it; in force is {value} ({source})."))
}

/// The same with the path that was meant, where a dot in it belongs to a key.
fn with_meant_key(failure: CommandFailure, context: &CliContext, segments: &[String]) -> CommandFailure {
    match value_path::key_with_dots(&context.loaded.snapshot.config, segments) {
        Some(meant) => {
            failure.hint(format!("A dot parts keys. Did you mean: {}", value_path::path_text(&meant)))
        }
        None => failure,
    }
}

/// A value as it is typed: JSON5, else the text itself. A value that begins as JSON5 and is none is
/// a mistake, not a text.
fn typed(path: &str, text: &str, is_json: bool) -> Result<Value, CommandFailure> {
    let error = match json5::parse_value(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let looks_like_json5 = text.trim_start().starts_with(['{', '[', '"', '\'']);
    if !is_json && !looks_like_json5 {
        return Ok(Value::from(text));
    }
    let failure = CommandFailure::usage(format!("Error: Failed to parse JSON5 value: SyntaxError: {error}"));
    if is_json {
        return Err(failure);
    }
    let as_text = Value::from(text).to_string().replace('\'', r"'\''");
    Err(failure.hint(format!("If it is meant as text: openclaw config set {} '{as_text}'", shell_word(path))))
}

/// The word as a shell takes it.
fn shell_word(text: &str) -> String {
    let is_plain = text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-/:@".contains(&c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn set(context: &CliContext, path: &str, text: &str, json: bool) -> CommandResult {
    let segments = segments(path)?;
    require_parsable(context)?;
    let value = typed(path, text, json)?;
    let meant = |failure| with_meant_key(failure, context, &segments);
    let written = write::set_value(&context.loaded, &segments, value, Actor::Cli);
    let written = written.map_err(write_failure).map_err(meant)?;
    output::line(&format!("Updated {path}. {}", effect_of(context, &segments, &written)));
    let after = openclaw_config::load(context.process());
    for remark in remarks(&context.loaded, &after) {
        output::error_line(&context.style.warn(&hints_in(&remark, context.env())));
    }
    Ok(0)
}

fn unset(context: &CliContext, path: &str) -> CommandResult {
    let segments = segments(path)?;
    require_parsable(context)?;
    match write::unset_value(&context.loaded, &segments, Actor::Cli).map_err(write_failure)? {
        Some(written) => {
            output::line(&format!("Removed {path}. {}", effect_of(context, &segments, &written)));
            Ok(0)
        }
        None => Err(not_found(context, path, &segments)),
    }
}

/// Warnings about settings that no longer work with a change that was just written, although it is
/// allowed.
fn remarks(before: &Loaded, after: &Loaded) -> Vec<String> {
    let (before, now) = (faults(before), faults(after));
    now.into_iter().filter(|fault| !before.contains(fault)).collect()
}

/// Reasons why no gateway would start with the settings of a valid config, and faults of its model.
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

/// Sentences about what a change that was just written does; in a file with other mistakes, these.
fn effect_of(context: &CliContext, segments: &[String], written: &Written) -> String {
    if written.left.is_empty() {
        return effect(context, segments);
    }
    let Mistakes { issues, moved } = Mistakes::of(&written.left);
    let lines: String = issues.iter().map(|issue| format!("\n  - {}", issue.line())).collect();
    let moved = moved.map(|told| format!("\n{told}")).unwrap_or_default();
    format!("The config cannot be used before the rest is mended too:{lines}{moved}")
}

/// Moment at which a change that was just written takes effect, for people.
fn effect(context: &CliContext, segments: &[String]) -> String {
    let path = segments.join(".");
    let after = openclaw_config::load(context.process());
    let is_within = |path: &str, above: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let unsupported = openclaw_config::unsupported(&after);
    if let Some(key) = unsupported.iter().find(|key| is_within(&path, key)) {
        return format!("This version does not act on {key} yet.");
    }
    let taken = match running_gateway(&after) {
        None => "A gateway takes it when it starts.".to_owned(),
        Some(running) if path == "gateway.port" => port_effect(context, running, &after),
        Some(_) if applies_at_once(&context.loaded, &after) => {
            "The running gateway applies it within a second.".to_owned()
        }
        Some(_) => RESTART.to_owned(),
    };
    match unsupported.iter().find(|key| is_within(key, &path)) {
        Some(key) => format!("{taken} This version does not act on {key} yet."),
        None => taken,
    }
}

const RESTART: &str = "Restart the gateway to apply.";

/// Effect of another port on a gateway that listens already: none until it is restarted.
fn port_effect(context: &CliContext, running: RunningGateway, after: &Loaded) -> String {
    let Some(port) = running.port else { return RESTART.to_owned() };
    if is_port_of(running, after) {
        return "The running gateway listens there already.".to_owned();
    }
    let restart = service::restart_advice(context, running);
    format!(
        "The running gateway still listens on port {port}; to have it there, {restart}. Until then commands reach it with \
         OPENCLAW_GATEWAY_PORT={port}."
    )
}

fn is_port_of(running: RunningGateway, after: &Loaded) -> bool {
    let port = running.port.map(u64::from);
    let written = after.snapshot.config.pointer("/gateway/port").and_then(Value::as_u64);
    port.is_some() && port == written
}

/// Failure for a refused write, in words for the person at the keyboard.
#[expect(clippy::needless_pass_by_value, reason = "used as a function for map_err")]
pub(super) fn write_failure(error: WriteError) -> CommandFailure {
    let text = format!("Error: {error}");
    match &error {
        WriteError::Invalid { issues } => {
            let failure = CommandFailure::new("config-invalid", text);
            match Issue::foremost(issues).and_then(Issue::advice) {
                Some(advice) => failure.hint(sentence(&advice)),
                None => failure,
            }
        }
        WriteError::Changed => CommandFailure::new(
            "config-changed",
            "Error: the config file was changed by somebody else meanwhile",
        )
        .hint("Run the command again."),
        WriteError::Unparsable { .. } | WriteError::Redacted(_) | WriteError::Included { .. } => {
            CommandFailure::new("config-write", text)
        }
        WriteError::Io { source, .. } if private_file::is_full(source) => {
            CommandFailure::new("config-write", text)
                .hint("Free space on that disk, then run the command again.")
        }
        WriteError::Io { path, .. } => CommandFailure::new("config-write", text)
            .hint(format!("This user must be able to write to {path} and to make files beside it.")),
    }
}

/// Advice as a sentence of its own.
fn sentence(advice: &str) -> String {
    let mut letters = advice.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_begins_as_json5_and_is_none_is_refused_and_a_plain_word_is_a_text() {
        let rows = [
            ("Clawd", json!("Clawd")),
            ("19001", json!(19001)),
            ("openai/gpt-5.2", json!("openai/gpt-5.2")),
            ("a {b} c", json!("a {b} c")),
            ("{a: [1,]}", json!({"a": [1]})),
            ("'x'", json!("x")),
            ("", json!("")),
        ];
        for (text, expect) in rows {
            assert_eq!(typed("a.b", text, false).unwrap(), expect, "{text}");
        }
        for text in ["{a: 1", "[1, 2", " {", "\"x", "'x' y", "[{model}]"] {
            let failure = typed("a.b", text, false).unwrap_err();
            assert!(
                failure.message.contains("Failed to parse JSON5 value: SyntaxError: "),
                "{text}: {failure:?}"
            );
        }
        let hint = typed("m[a.b]", "['x", false).unwrap_err().hint.unwrap();
        assert_eq!(hint, r#"If it is meant as text: openclaw config set 'm[a.b]' '"['\''x"'"#);
        assert!(typed("a", "word", true).is_err());
    }
}
