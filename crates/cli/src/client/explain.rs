//! Explanations for a gateway that did not do what was asked: what happened, at which gateway, and
//! what to do.

use openclaw_config::gateway_options::{PASSWORD_VARS, PortSource, TOKEN_VARS, gateway_port_source};
use openclaw_config::{nearest, private_file};
use openclaw_gateway::running_gateway;
use openclaw_protocol::method;

use super::connect::ConnectError;
use super::elsewhere::elsewhere;
use super::target::GatewayTarget;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::{listeners, service};

/// The text for people.
pub(crate) fn explain(context: &CliContext, target: &GatewayTarget, error: &ConnectError) -> CommandFailure {
    if let Some(failure) = elsewhere(context, target, error) {
        return failure;
    }
    let block = target.describe(context);
    let told = |code: &'static str, text: &str| CommandFailure::new(code, format!("{text}\n{block}"));
    match error {
        ConnectError::Unreachable { .. } => told(
            "unreachable",
            // The second line is what scripts look for.
            &format!("{error}\ngateway closed (1006 abnormal closure (no close frame)): no close reason"),
        )
        .hint(when_unreachable(context, target)),
        ConnectError::UnknownHost { .. } => told("unreachable", &error.to_string())
            .hint(format!("Check the name in {}, and that this machine can resolve it.", target.setting())),
        ConnectError::Closed { .. } => {
            told("closed", &error.to_string()).hint(format!("Look at `{}`.", context.hint_command("openclaw logs")))
        }
        ConnectError::Refused { message, .. } if message.contains("pairing required") => {
            told("pairing-required", message)
                .hint(WHEN_NOT_PAIRED)
        }
        ConnectError::Refused { message, .. } => {
            let refusal = RefusedSecret::of(message);
            // The gateway's advice is meant for a remote one, whatever this command is connected
            // to.
            let text = if refusal.is_some() { without_advice(message) } else { message };
            told("refused", text).hint(when_refused(context, target, refusal))
        }
        ConnectError::Unprotected { detail, remedy } => told("protection-missing", detail).hint(*remedy),
        ConnectError::Answer { code: _, message, details } => {
            CommandFailure { details: details.clone().map(Box::new), ..CommandFailure::new("request", message.clone()) }
        }
        ConnectError::UnknownMethod { method, .. } if method::find(method).is_none() => {
            let failure = told("request", &error.to_string());
            match nearest(method, method::METHODS.iter().map(|known| known.name)) {
                Some(meant) => failure.hint(format!("Did you mean {meant}?")),
                None => failure.hint("There is no such method, in this version and in OpenClaw 2026.2.9."),
            }
        }
        ConnectError::UnknownMethod { version, .. } => {
            let version = version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
            told("request", &error.to_string()).hint(format!(
                "That gateway is OpenClaw{version}, which does not have it: it belongs to the gateway of this program, `{}`.",
                context.hint_command("openclaw gateway")
            ))
        }
        ConnectError::Identity { source } if private_file::is_full(source) => {
            told("client", &error.to_string()).hint("Free space on that disk, then run the command again.")
        }
        ConnectError::Identity { .. } => told("client", &error.to_string()).hint(format!(
            "The key and the tokens of this device are in {}: this user must be able to read and write there.",
            context.paths().device_identity().with_file_name("").display()
        )),
        ConnectError::Protocol { .. } => {
            let failure = told("client", &error.to_string());
            match another_program(context, target) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        ConnectError::Url { .. } => told("client", &error.to_string()),
    }
}

/// Hint for a device that the gateway does not know. Devices on the gateway's own host are paired automatically.
const WHEN_NOT_PAIRED: &str = "This version has no command yet to approve devices of other machines. Run this command on the gateway's host, \
                               or through a tunnel to it, where devices are paired by themselves: ssh -N -L \
                               18789:127.0.0.1:18789 user@host";

/// Returns the hint for a gateway that does not answer.
fn when_unreachable(context: &CliContext, target: &GatewayTarget) -> String {
    if let Some(why) =
        broken_config(context, target, "this is only the default address, and no gateway starts here")
    {
        return why;
    }
    match target.bind {
        Some(_) => another_program(context, target)
            .unwrap_or_else(|| format!("Start a gateway with `{}`.", service::start_command(context))),
        None => format!(
            "Check that a gateway runs there, and that this machine can reach it ({}; firewall, VPN or SSH tunnel).",
            target.setting()
        ),
    }
}

/// Returns the hint for a port of this host that another program holds; `None` if the gateway of this state directory
/// has it, or nobody.
pub(crate) fn another_program(context: &CliContext, target: &GatewayTarget) -> Option<String> {
    let port = target.local_port()?;
    if running_gateway(&context.loaded).is_some_and(|running| running.port.is_none_or(|own| own == port)) {
        return None;
    }
    let holder = listeners::holder(port)?;
    let free = listeners::free_port(port).map_or_else(|| "<port>".to_owned(), |port| port.to_string());
    let choose = choose_port(context, &free);
    Some(format!(
        "Port {port} is held by {holder}, which is not the gateway of this state directory. Choose another port for it: \
         {choose}; then start it: {}",
        service::start_command(context)
    ))
}

/// Way to have this instance's gateway on another port: a variable that is set goes before the config.
pub(crate) fn choose_port(context: &CliContext, port: &str) -> String {
    match gateway_port_source(&context.config_or_default(), context.env()) {
        PortSource::Variable(name) => format!("set {name}={port}"),
        PortSource::Config | PortSource::Default => {
            context.hint_command(&format!("openclaw config set gateway.port {port}"))
        }
    }
}

/// Explains that the config chose this gateway and can't be used: the consequence, and what to do.
fn broken_config(context: &CliContext, target: &GatewayTarget, consequence: &str) -> Option<String> {
    let is_meant = target.is_configured() && context.config().is_err();
    let doctor = context.hint_command("openclaw doctor");
    is_meant
        .then(|| format!("{}, so {consequence}. `{doctor}` says what to mend.", context.unusable_config()))
}

/// The secrets of a gateway with the variables that may hold them here.
const SECRETS: [(&str, &[&str]); 2] = [("token", TOKEN_VARS), ("password", PASSWORD_VARS)];

/// A secret that a gateway did not like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RefusedSecret {
    /// `token` or `password`.
    word: &'static str,
    variables: &'static [&'static str],
    fault: SecretFault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretFault {
    /// No secret was given.
    Missing,
    /// The secret given is wrong.
    Mismatch,
}

impl RefusedSecret {
    /// Reads the gateway's words, which are the same in all versions.
    fn of(message: &str) -> Option<Self> {
        let rest = message.strip_prefix("unauthorized: gateway ")?;
        let (word, rest) = rest.split_once(' ')?;
        let (word, variables) = *SECRETS.iter().find(|(known, _)| *known == word)?;
        let fault = match rest.split(' ').next()? {
            "missing" => SecretFault::Missing,
            "mismatch" => SecretFault::Mismatch,
            _ => return None,
        };
        Some(Self { word, variables, fault })
    }
}

fn without_advice(message: &str) -> &str {
    message.split_once(" (").map_or(message, |(text, _)| text)
}

/// Remedy when the gateway did not let this command in.
fn when_refused(context: &CliContext, target: &GatewayTarget, refusal: Option<RefusedSecret>) -> String {
    if let Some(why) = broken_config(context, target, "this command does not know the gateway's secret") {
        return why;
    }
    let Some(RefusedSecret { word, variables, fault }) = refusal else {
        return format!("Look at `{}` on the gateway's host.", context.hint_command("openclaw logs"));
    };
    let is_remote = target.bind.is_none();
    // Source of this command's secret, in the order in which the target was resolved.
    let from_variables = !is_remote || word == "password";
    let variable = variables.iter().find(|name| context.env().get_nonblank(name).is_some());
    let keep = |key: &str| context.hint_command(&format!("openclaw config set {key} <{word}>"));
    let flag = format!("--{word}");
    match (fault, variable.filter(|_| from_variables)) {
        (SecretFault::Mismatch, _) if target.explicit && target.is_configured() => {
            let key = if is_remote { "gateway.remote" } else { "gateway.auth" };
            format!(
                "{flag} is not the gateway's {word}. Leave it out to use {key}.{word}, or pass the right one."
            )
        }
        (_, _) if target.explicit => format!("Pass the gateway's {word} with {flag}."),
        (SecretFault::Mismatch, Some(name)) => {
            format!("The variable {name} holds another {word} than the gateway's. Correct or unset it.")
        }
        (_, _) if is_remote => format!(
            "Set gateway.remote.{word} to the gateway.auth.{word} of that gateway: {}",
            keep(&format!("gateway.remote.{word}"))
        ),
        (SecretFault::Mismatch, None) => format!(
            "gateway.auth.{word} in {} is not what the running gateway was started with: restart the gateway.",
            context.short(context.paths().config_path())
        ),
        (SecretFault::Missing, _) => format!(
            "The gateway wants a {word}. Set the one it was started with: {}",
            keep(&format!("gateway.auth.{word}"))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::TargetFlags;
    use crate::testing;

    fn hint(
        config: &str,
        vars: &[(&str, &str)],
        token: Option<&str>,
        error: &ConnectError,
    ) -> CommandFailure {
        let context = testing::context(config, vars);
        let flags = TargetFlags { token: token.map(str::to_owned), ..TargetFlags::default() };
        let target = GatewayTarget::resolve(&context, &flags).unwrap();
        explain(&context, &target, error)
    }

    #[test]
    fn a_method_that_is_not_there_says_whose_gateway_it_is() {
        for (version, name) in [(None, "OpenClaw,"), (Some("2026.2.9"), "OpenClaw (2026.2.9),")] {
            let version = version.map(str::to_owned);
            let error = ConnectError::UnknownMethod { method: "message.action".to_owned(), version };
            let failure = hint("{}", &[], None, &error);
            assert!(failure.message.starts_with("unknown method: message.action"), "{failure:?}");
            assert!(failure.hint.as_deref().unwrap_or_default().contains(name), "{failure:?}");
        }
    }

    #[test]
    fn a_refused_secret_is_named_by_where_it_comes_from() {
        let refused = |what: &str| ConnectError::Refused {
            code: "UNAUTHORIZED".to_owned(),
            message: format!(
                "unauthorized: gateway {what} (set gateway.remote.token to match gateway.auth.token)"
            ),
        };
        let local = "{gateway: {mode: 'local', auth: {token: 't'}}}";
        let remote = "{gateway: {mode: 'remote', remote: {url: 'wss://r', token: 't'}}}";
        let variable = [("OPENCLAW_GATEWAY_TOKEN", "v")];
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>, &'a str, &'a str);
        let rows: [Row<'_>; 6] = [
            (local, &[], Some("f"), "token mismatch", "--token is not the gateway's token. Leave it out"),
            (
                local,
                &variable,
                None,
                "token mismatch",
                "The variable OPENCLAW_GATEWAY_TOKEN holds another token",
            ),
            (
                local,
                &[],
                None,
                "token mismatch",
                "gateway.auth.token in ~/.openclaw/openclaw.json is not what",
            ),
            (remote, &variable, None, "token mismatch", "openclaw config set gateway.remote.token <token>"),
            (remote, &[], None, "password missing", "openclaw config set gateway.remote.password <password>"),
            ("{ oops", &[], None, "token missing", "The config ~/.openclaw/openclaw.json cannot be used"),
        ];
        for (config, vars, token, what, expect) in rows {
            let failure = hint(config, vars, token, &refused(what));
            assert!(failure.hint.as_deref().unwrap_or_default().contains(expect), "{what}: {failure:?}");
            assert!(!failure.message.contains("gateway.remote.token"), "{failure:?}");
        }
    }

    #[test]
    fn nobody_is_told_to_start_a_gateway_that_cannot_start_or_is_elsewhere() {
        let nobody = ConnectError::Unreachable { reason: "connect failed".to_owned() };
        let rows = [
            ("{gateway: {mode: 'local'}}", "Start a gateway with `openclaw gateway`."),
            ("{gateway: {mode: 'remote', remote: {url: 'wss://r'}}}", "(gateway.remote.url; firewall"),
            ("{gateway: {port: 'x'}}", "cannot be used (gateway.port: "),
        ];
        for (config, expect) in rows {
            let failure = hint(config, &[], None, &nobody);
            assert!(failure.message.contains("connect failed\ngateway closed (1006 "), "{failure:?}");
            let hint = failure.hint.unwrap();
            assert!(hint.contains(expect), "{config}: {hint}");
            assert_eq!(hint.contains("Start a gateway"), expect.contains("Start a gateway"), "{hint}");
        }
    }
}
