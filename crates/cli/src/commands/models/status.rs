//! `openclaw models status`.

use openclaw_models::ProviderId;
use serde_json::{Map, Value, json};

use super::View;
use crate::context::{Context, now_ms};
use crate::failure::{ERROR, Outcome, USAGE};
use crate::output;

/// A credential that expires within this time is expiring, in milliseconds.
const WARN_AFTER_MS: i64 = 86_400_000;

pub(super) fn run(view: &View, context: &Context, json: bool, plain: bool, check: bool) -> Outcome {
    let status = document(view, context);
    if json {
        output::json(&status);
    } else if plain {
        output::line(&view.primary.to_string());
    } else {
        text(&status).iter().for_each(|line| output::line(line));
    }
    Ok(if check { check_code(&status) } else { 0 })
}

/// 1 when a credential is missing or expired, 2 when one expires soon (spec `cli.md` §1.1).
fn check_code(status: &Value) -> u8 {
    let is_missing = status
        .pointer("/auth/missingProvidersInUse")
        .and_then(Value::as_array)
        .is_some_and(|providers| !providers.is_empty());
    let has = |wanted: &str| {
        let profiles = status.pointer("/auth/oauth/profiles").and_then(Value::as_array);
        profiles
            .into_iter()
            .flatten()
            .any(|profile| profile.get("status").and_then(Value::as_str) == Some(wanted))
    };
    match () {
        () if is_missing || has("expired") => ERROR,
        () if has("expiring") => USAGE,
        () => 0,
    }
}

fn document(view: &View, context: &Context) -> Value {
    let names = |list: &[openclaw_models::ModelRef]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let aliases: Map<String, Value> =
        view.names.aliases().map(|(alias, target)| (alias.to_owned(), json!(target.to_string()))).collect();
    let allowed: Vec<String> = view.names.listed().map(ToString::to_string).collect();
    let image = names(&view.image);
    json!({
        "configPath": context.paths().config_path().display().to_string(),
        "agentDir": view.agent.agent_dir.display().to_string(),
        "defaultModel": view.written.clone().unwrap_or_else(|| view.primary.to_string()),
        "resolvedDefault": view.primary.to_string(),
        "fallbacks": names(&view.fallbacks),
        "imageModel": image.first(),
        "imageFallbacks": image.get(1..).unwrap_or_default(),
        "aliases": aliases,
        "allowed": allowed,
        "auth": auth(view),
    })
}

fn auth(view: &View) -> Value {
    let credentials = &view.credentials;
    let providers = credentials.providers();
    let mut in_use: Vec<ProviderId> = Vec::new();
    for reference in std::iter::once(&view.primary).chain(&view.fallbacks).chain(&view.image) {
        if !in_use.contains(&reference.provider) {
            in_use.push(reference.provider.clone());
        }
    }
    let missing: Vec<&str> =
        in_use.iter().filter(|provider| !view.is_usable(provider)).map(ProviderId::as_str).collect();
    let mut shown = providers.clone();
    shown.extend(in_use.iter().filter(|provider| !providers.contains(provider)).cloned());
    let profiles: Vec<Value> = credentials
        .expiring()
        .map(|(id, provider, kind, expires)| profile(id, provider, kind, expires))
        .collect();
    let of = |provider: &ProviderId| -> Vec<Value> {
        let is_own =
            |profile: &&Value| profile.get("provider").and_then(Value::as_str) == Some(provider.as_str());
        profiles.iter().filter(is_own).cloned().collect()
    };
    let with_oauth: Vec<String> = providers
        .iter()
        .filter_map(|provider| Some((provider, of(provider).len())).filter(|(_, count)| *count > 0))
        .map(|(provider, count)| format!("{provider} ({count})"))
        .collect();
    let by_provider: Vec<Value> = shown
        .iter()
        .map(|provider| {
            let own = of(provider);
            let status =
                own.first().and_then(|profile| profile.get("status").cloned()).unwrap_or(json!("missing"));
            json!({ "provider": provider.as_str(), "status": status, "profiles": own })
        })
        .collect();
    json!({
        "storePath": view.agent.agent_dir.join("auth-profiles.json").display().to_string(),
        "shellEnvFallback": { "enabled": false, "appliedKeys": [] },
        "providersWithOAuth": with_oauth,
        "missingProvidersInUse": missing,
        "providers": providers.iter().map(|provider| credentials.describe(provider)).collect::<Vec<_>>(),
        "unusableProfiles": credentials.unusable(),
        "oauth": { "warnAfterMs": WARN_AFTER_MS, "profiles": profiles, "providers": by_provider },
    })
}

fn profile(id: &str, provider: &ProviderId, kind: &str, expires: Option<i64>) -> Value {
    let remaining = expires.filter(|expires| *expires > 0).map(|expires| expires - now_ms());
    let status = match remaining {
        None => "static",
        Some(left) if left <= 0 => "expired",
        Some(left) if left <= WARN_AFTER_MS => "expiring",
        Some(_) => "ok",
    };
    json!({
        "profileId": id,
        "provider": provider.as_str(),
        "type": kind,
        "status": status,
        "expiresAt": expires,
        "remainingMs": remaining,
        "source": "store",
        "label": id,
    })
}

fn text(status: &Value) -> Vec<String> {
    let field = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
    let list = |pointer: &str| -> Vec<String> {
        let items = status.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        items.map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
    };
    let joined = |items: &[String]| if items.is_empty() { "-".to_owned() } else { items.join(", ") };
    let (fallbacks, image_fallbacks, allowed) =
        (list("/fallbacks"), list("/imageFallbacks"), list("/allowed"));
    let aliases: Vec<String> = status
        .get("aliases")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(alias, target)| format!("{alias} -> {}", target.as_str().unwrap_or_default()))
        .collect();
    let counted = |name: &str, items: &[String], width: usize| {
        format!("{:width$}: {}", format!("{name} ({})", items.len()), joined(items))
    };
    let oauth = list("/auth/providersWithOAuth");
    let models = if allowed.is_empty() { "all".to_owned() } else { allowed.join(", ") };
    let mut lines = vec![
        format!("Config        : {}", field("/configPath")),
        format!("Agent dir     : {}", field("/agentDir")),
        format!("Default       : {}", field("/resolvedDefault")),
        counted("Fallbacks", &fallbacks, 14),
        format!("Image model   : {}", field("/imageModel")),
        counted("Image fallbacks", &image_fallbacks, 0),
        counted("Aliases", &aliases, 14),
        format!("Configured models ({}): {models}", allowed.len()),
        String::new(),
        "Auth overview".to_owned(),
        format!("Auth store    : {}", field("/auth/storePath")),
        "Shell env     : off".to_owned(),
        counted("Providers w/ OAuth/tokens", &oauth, 0),
    ];
    let providers = status.pointer("/auth/providers").and_then(Value::as_array).into_iter().flatten();
    lines.extend(providers.map(provider_line));
    let missing = list("/auth/missingProvidersInUse");
    if !missing.is_empty() {
        lines.extend([String::new(), "Missing auth".to_owned()]);
        let advice = "Set an API key env var, or models.providers.<id>.apiKey in the config.";
        lines.extend(missing.iter().map(|provider| format!("- {provider} {advice}")));
    }
    lines.extend([String::new(), "OAuth/token status".to_owned()]);
    let profiles: Vec<String> = status
        .pointer("/auth/oauth/profiles")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|profile| {
            let part = |name: &str| profile.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("- {} {}", part("profileId"), part("status"))
        })
        .collect();
    lines.extend(if profiles.is_empty() { vec!["- none".to_owned()] } else { profiles });
    lines
}

fn provider_line(provider: &Value) -> String {
    let part = |pointer: &str| provider.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut parts = vec![format!("effective={}:{}", part("/effective/kind"), part("/effective/detail"))];
    let count = provider.pointer("/profiles/count").and_then(Value::as_u64).unwrap_or_default();
    if count > 0 {
        parts.push(format!("profiles={count}"));
    }
    for (key, name) in [("env", "env"), ("modelsJson", "models.json")] {
        if provider.get(key).is_some() {
            let value = part(&format!("/{key}/value"));
            parts.push(format!("{name}={value} | source={}", part(&format!("/{key}/source"))));
        }
    }
    format!("- {} {}", part("/provider"), parts.join(" | "))
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    fn status(config: &str, vars: &[(&str, &str)]) -> Value {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join(".openclaw");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("openclaw.json"), config).unwrap();
        let mut env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        vars.iter().for_each(|(name, value)| env.set(*name, *value));
        let context = Context::new(&env, true);
        let mut status = document(&View::new(&context, None).unwrap(), &context);
        for key in ["configPath", "agentDir"] {
            status[key] = json!("…");
        }
        status["auth"]["storePath"] = json!("…");
        status
    }

    const MOCK: &str =
        "{ agents: { defaults: { model: { primary: 'mock/mock-1', fallbacks: ['openai/gpt-5.2'] },
            models: { 'mock/mock-1': { alias: 'mk' } } } },
        models: { providers: { mock: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'sk-mock-0123456789abcdef',
            models: [{ id: 'mock-1', name: 'Mock One', contextWindow: 32000 }] } } } }";

    /// As recorded in `cli-models.json`, except that less of a key is shown.
    #[test]
    fn the_document_is_that_of_the_reference() {
        let expect = json!({
            "configPath": "…", "agentDir": "…",
            "defaultModel": "mock/mock-1", "resolvedDefault": "mock/mock-1", "fallbacks": ["openai/gpt-5.2"],
            "imageModel": null, "imageFallbacks": [], "aliases": {"mk": "mock/mock-1"}, "allowed": ["mock/mock-1"],
            "auth": {
                "storePath": "…",
                "shellEnvFallback": {"enabled": false, "appliedKeys": []},
                "providersWithOAuth": [],
                "missingProvidersInUse": ["openai"],
                "providers": [{
                    "provider": "mock", "effective": {"kind": "models.json", "detail": "sk-moc...abcdef"},
                    "profiles": {"count": 0, "oauth": 0, "token": 0, "apiKey": 0, "labels": []},
                    "modelsJson": {"value": "sk-moc...abcdef", "source": "models.json: models.providers.mock.apiKey"},
                }],
                "unusableProfiles": [],
                "oauth": {
                    "warnAfterMs": 86_400_000, "profiles": [],
                    "providers": [
                        {"provider": "mock", "status": "missing", "profiles": []},
                        {"provider": "openai", "status": "missing", "profiles": []},
                    ],
                },
            },
        });
        let status = status(MOCK, &[]);
        assert_eq!(status.to_string(), expect.to_string());
        assert_eq!(check_code(&status), 1);
    }

    #[test]
    fn without_any_credential_the_offline_guide_answers() {
        let status = status("{}", &[]);
        assert_eq!(status["resolvedDefault"], "offline/guide");
        assert_eq!(check_code(&status), 0);
    }

    #[test]
    fn a_key_in_the_environment_counts() {
        let status = status(MOCK, &[("OPENAI_API_KEY", "sk-0123456789")]);
        assert_eq!(status["auth"]["missingProvidersInUse"], json!([]));
        assert!(!status.to_string().contains("sk-012345"));
    }
}
