//! `models auth add|paste-token|setup-token`.

use openclaw_config::clock::now_ms;
use openclaw_models::ProviderId;
use openclaw_models::credentials::{Credential, Secret, pasted_secret};
use secrecy::ExposeSecret as _;

use super::keep::Keeper;
use super::terminal::Terminal;
use crate::args::given;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Beginning of a token of `claude setup-token`.
const SETUP_PREFIX: &str = "sk-ant-oat01-";
/// Units of a duration in milliseconds; without a unit it is in minutes.
const UNITS: &[(&str, f64)] =
    &[("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 3.6e6), ("d", 8.64e7), ("w", 6.048e8), ("", 6e4)];

pub(super) fn paste(
    keeper: &Keeper<'_>,
    terminal: &Terminal,
    provider: Option<&str>,
    profile: Option<&str>,
    expires_in: Option<&str>,
) -> CommandResult {
    let Some(provider) = given(provider) else {
        return Err(CommandFailure::usage("Missing --provider.")
            .hint("`openclaw models auth paste-token --provider <name>`"));
    };
    let provider = ProviderId::normalize(provider);
    let expires = expires_in.map(|text| duration(text).map(|ms| now_ms().saturating_add(ms))).transpose()?;
    let id = given(profile).map_or_else(|| format!("{provider}:manual"), str::to_owned);
    let token = terminal.secret(&format!("Paste the token for {provider}"))?;
    let secret = Secret::Token { token: pasted_secret(&token), expires };
    keeper.keep(&id, &Credential::new(provider, secret))?;
    Ok(0)
}

pub(super) fn setup(keeper: &Keeper<'_>, terminal: &Terminal, provider: &str, yes: bool) -> CommandResult {
    let provider = ProviderId::normalize(provider);
    if provider.as_str() != "anthropic" {
        return Err(CommandFailure::usage("Only --provider anthropic is supported for setup-token.").hint(
            format!("For a token of {provider}: `openclaw models auth paste-token --provider {provider}`"),
        ));
    }
    if terminal.is_interactive && !yes {
        output::error_line("Run `claude setup-token` on any machine; it prints the token to paste here.");
    }
    let token = pasted_secret(&terminal.secret("Paste the Anthropic setup-token")?);
    if !token.expose_secret().starts_with(SETUP_PREFIX) {
        return Err(CommandFailure::new("bad-token", format!("This is no setup-token: one begins with {SETUP_PREFIX}"))
            .hint("For an API key use ANTHROPIC_API_KEY; for another token: `openclaw models auth paste-token --provider anthropic`"));
    }
    keeper.keep("anthropic:manual", &Credential::new(provider, Secret::Token { token, expires: None }))?;
    Ok(0)
}

pub(super) fn add(keeper: &Keeper<'_>, terminal: &Terminal) -> CommandResult {
    if !terminal.is_interactive {
        return Err(CommandFailure::usage(
            "openclaw models auth add asks questions, and there is no terminal to ask on.",
        )
        .hint("`openclaw models auth paste-token --provider <name>` reads the token from standard input."));
    }
    let provider = terminal.line("Provider (such as anthropic or openrouter)")?;
    let Some(provider) = given(Some(&provider)) else {
        return Err(CommandFailure::usage("No provider was given."));
    };
    let provider = ProviderId::normalize(provider);
    let default = format!("{provider}:manual");
    let id = terminal.line(&format!("Profile id [{default}]"))?;
    let id = given(Some(&id)).unwrap_or(&default).to_owned();
    let kind = terminal.line("API key or token? [key/token]")?;
    let secret = pasted_secret(&terminal.secret("Paste it")?);
    let secret = match kind.to_lowercase().as_str() {
        "t" | "token" => {
            let expires = terminal.line("Expires in (such as 365d; empty for never)")?;
            let lasts = given(Some(&expires)).map(duration).transpose()?;
            Secret::Token { token: secret, expires: lasts.map(|ms| now_ms().saturating_add(ms)) }
        }
        "" | "k" | "key" => Secret::ApiKey(secret),
        other => {
            return Err(CommandFailure::usage(format!(
                "\"{other}\" is neither key nor token; nothing was changed."
            )));
        }
    };
    keeper.keep(&id, &Credential::new(provider, secret))?;
    Ok(0)
}

/// `365d`, `12h`, `30` (minutes) in milliseconds.
fn duration(text: &str) -> Result<i64, CommandFailure> {
    let text = text.trim().to_lowercase();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (count, unit) = text.split_at(at);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| factor);
    let ms = count.parse::<f64>().ok().zip(factor).map(|(count, factor)| count * factor);
    #[expect(clippy::cast_possible_truncation, reason = "as saturates")]
    let whole = ms.filter(|ms| ms.is_finite() && *ms >= 1.0).map(|ms| ms as i64);
    whole.ok_or_else(|| {
        CommandFailure::usage(format!("\"{text}\" is no duration.")).hint("Write it as in 365d, 12h or 30m.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let rows = [
            ("365d", Some(31_536_000_000)),
            (" 12H ", Some(43_200_000)),
            ("1.5h", Some(5_400_000)),
            ("30", Some(1_800_000)),
            ("250ms", Some(250)),
            ("0d", None),
            ("-1d", None),
            ("d", None),
            ("1y", None),
            ("1.2.3d", None),
            ("", None),
        ];
        for (text, expect) in rows {
            assert_eq!(duration(text).ok(), expect, "{text}");
        }
    }
}
