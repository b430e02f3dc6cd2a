//! `openclaw dashboard`: the address of the web chat, signed in (spec `cli.md` §6.5).

mod helpers;

use std::time::Duration;

use openclaw_config::Config;
use openclaw_config::settings::{AuthKind, BindMode};
use openclaw_gateway::{running_gateway, signed_in, web_chat_url};
use openclaw_protocol::Call as _;
use openclaw_protocol::params::health::Health;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use self::helpers::{Helpers, Opened};
use crate::args::DashboardArgs;
use crate::client::{self, AwaitedResponse, GatewayTarget, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::service::process;
use crate::{output, service};

/// Longest wait for a gateway to say whether it takes the token.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn run(args: &DashboardArgs, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    let target = GatewayTarget::resolve(context, &TargetFlags::default())?;
    if target.bind.is_some() && !config.gateway.control_ui.is_enabled() {
        return Err(CommandFailure::new(
            "web-chat-off",
            "gateway.controlUi.enabled is false: there is no web chat.",
        )
        .hint(format!(
            "Run: {}",
            context.hint_command("openclaw config set gateway.controlUi.enabled true")
        )));
    }
    // The address has the token in it: nobody but the gateway may be shown it.
    if running_gateway(&context.loaded).is_none()
        && let Some(why) = client::another_program(context, &target)
    {
        return Err(
            CommandFailure::new("port", "The web chat can't be opened: no gateway has its port.").hint(why)
        );
    }
    let mut page = Page::of(context, config, &target);
    page.notes.extend(refused_token(context, config, &target));
    output::line(&format!("Dashboard URL: {}", page.address));
    let helpers = Helpers::of(context.env());
    let (copied, opened) = client::block_on(async {
        let copied = helpers.copy(&page.address).await;
        let opened = if args.no_open { Opened::NotAsked } else { helpers.open(&page.address).await };
        Ok((copied, opened))
    })?;
    output::line(if copied { "Copied to clipboard." } else { "Copy to clipboard unavailable." });
    match opened {
        Opened::Yes => output::line("Opened in the browser."),
        _ if !helpers.has_screen() => page.through_ssh(context).iter().for_each(|line| output::line(line)),
        Opened::NotAsked => output::line("Not opened (--no-open): use the address above."),
        Opened::No => output::line("No browser could be opened: use the address above."),
    }
    page.notes.iter().for_each(|note| output::error_line(&context.style.warn(note)));
    Ok(0)
}

/// Sentence about a running gateway of this host that does not take the token which the web chat is opened with. Commands do not notice: they
/// have a token of their own once they are paired.
pub(super) fn refused_token(context: &CliContext, config: &Config, target: &GatewayTarget) -> Option<String> {
    let running = running_gateway(&context.loaded).filter(|_| target.local_port().is_some())?;
    let token = Some(page_token(config, target)?.expose_secret().to_owned());
    let flags = TargetFlags { token, ..TargetFlags::default() };
    let asked = client::call(context, &flags, Health::NAME, json!({}), AwaitedResponse::First, PATIENCE);
    let failure = client::block_on(asked).err()?;
    (failure.code == "refused" && failure.message.contains("token mismatch")).then(|| {
        format!(
            "The running gateway{} does not take the token that is configured here, so the web chat can't sign in with it: it was \
             started with another one. To have it take this one, {}",
            process(running),
            service::restart_advice(context, running)
        )
    })
}

/// The token that the page signs in with, if it does not ask for a password.
fn page_token<'a>(config: &Config, target: &'a GatewayTarget) -> Option<&'a SecretString> {
    let takes_password =
        target.local_port().is_some() && config.gateway.auth.mode == Some(AuthKind::Password);
    target.secrets.token.as_ref().filter(|_| !takes_password)
}

/// The address of the web chat without a secret, for reports.
pub(super) fn plain_url(context: &CliContext, config: &Config, target: &GatewayTarget) -> String {
    let running = running_gateway(&context.loaded).and_then(|running| running.port);
    web_chat_url(config, &origin(target, target.local_port().map(|port| running.unwrap_or(port))))
}

/// Address of the web chat.
struct Page {
    /// URL without the secret.
    path: String,
    /// The port of a gateway on this host.
    local_port: Option<u16>,
    /// URL with the token, where there is one.
    address: String,
    /// The part behind the `#` with it.
    fragment: String,
    /// Further notes, for people.
    notes: Vec<String>,
}

impl Page {
    fn of(context: &CliContext, config: &Config, target: &GatewayTarget) -> Self {
        let running = running_gateway(&context.loaded);
        let local_port =
            target.local_port().map(|port| running.and_then(|running| running.port).unwrap_or(port));
        let url = web_chat_url(config, &origin(target, local_port));
        let token = page_token(config, target);
        let address = token.map_or_else(|| url.clone(), |token| signed_in(&url, token));
        let mut notes = Vec::new();
        match (token, &target.secrets.password) {
            (Some(_), _) => {}
            (None, Some(_)) => notes.push("The page asks for the gateway's password.".to_owned()),
            (None, None) if local_port.is_none() => notes.push(format!(
                "No token of that gateway is configured here. Set gateway.remote.token to its gateway.auth.token: {}",
                context.hint_command("openclaw config set gateway.remote.token <token>")
            )),
            (None, None) => notes.push(format!(
                "No token or password is configured. Make one: {}",
                context.hint_command("openclaw doctor --generate-gateway-token")
            )),
        }
        if local_port.is_some() && running.is_none() {
            let start = service::start_command(context);
            notes.push(format!("No gateway runs here yet, so the page does not open. Start one: {start}"));
        }
        let (path, fragment) =
            (web_chat_url(config, ""), address.get(url.len()..).unwrap_or_default().to_owned());
        Self { path, local_port, address, fragment, notes }
    }

    /// Instructions for opening it from a machine with a screen.
    fn through_ssh(&self, context: &CliContext) -> Vec<String> {
        let Some(port) = self.local_port else { return vec!["Open it in a browser.".to_owned()] };
        let user = context.env().first_nonblank(&["USER", "LOGNAME"]).unwrap_or("user");
        // Client address and port, then ours.
        let connection = context.env().get_nonblank("SSH_CONNECTION").unwrap_or_default();
        let host = connection.split_whitespace().nth(2).unwrap_or("<host>");
        let there = format!("http://localhost:{port}{}", self.path);
        let mut lines = vec![
            "No GUI detected. Open from your computer:".to_owned(),
            format!("ssh -N -L {port}:127.0.0.1:{port} {user}@{host}"),
            "Then open:".to_owned(),
            there.clone(),
        ];
        if !self.fragment.is_empty() {
            lines.push(format!("{there}{}", self.fragment));
        }
        lines.extend([
            "Docs:".to_owned(),
            "https://docs.openclaw.ai/gateway/remote".to_owned(),
            "https://docs.openclaw.ai/web/control-ui".to_owned(),
        ]);
        lines
    }
}

/// `http://127.0.0.1:18789`. Browsers give a page on a plain address of the network no device key, so one that listens on
/// all addresses is asked on loopback.
fn origin(target: &GatewayTarget, local_port: Option<u16>) -> String {
    let (scheme, rest) = target.url.split_once("://").unwrap_or(("ws", &target.url));
    let scheme = if scheme == "wss" || scheme == "https" { "https" } else { "http" };
    let authority = rest.split('/').next().unwrap_or_default();
    match (local_port, target.bind) {
        (Some(port), Some(BindMode::Lan)) => format!("{scheme}://127.0.0.1:{port}"),
        (Some(port), _) => {
            let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
            format!("{scheme}://{host}:{port}")
        }
        (None, _) => format!("{scheme}://{authority}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn page(config: &str, vars: &[(&str, &str)]) -> (Page, CliContext) {
        let context = testing::context(config, vars);
        let target = GatewayTarget::resolve(&context, &TargetFlags::default()).unwrap();
        (Page::of(&context, &context.config_or_default(), &target), context)
    }

    #[test]
    fn the_address_follows_the_config() {
        let rows = [
            ("{gateway: {auth: {token: 't'}}}", "http://127.0.0.1:18789/#token=t"),
            (
                "{gateway: {port: 7, bind: 'lan', controlUi: {basePath: 'ui'}, auth: {token: 't'}}}",
                "http://127.0.0.1:7/ui/#token=t",
            ),
            ("{gateway: {auth: {mode: 'password', password: 'p', token: 't'}}}", "http://127.0.0.1:18789/"),
            (
                "{gateway: {mode: 'remote', remote: {url: 'wss://host:1/ws', token: 'r'}}}",
                "https://host:1/#token=r",
            ),
        ];
        for (config, expect) in rows {
            assert_eq!(page(config, &[]).0.address, expect, "{config}");
        }
    }

    /// The recorded run of `cli-system.json`.
    #[test]
    fn without_a_screen_the_way_there_is_told() {
        let config = "{gateway: {port: 23789, auth: {token: 'test-token-123'}}}";
        let (page, context) =
            page(config, &[("SSH_CONNECTION", "192.0.2.1 5 192.0.2.2 22"), ("USER", "ann")]);
        let lines = page.through_ssh(&context);
        let expect = [
            "No GUI detected. Open from your computer:",
            "ssh -N -L 23789:127.0.0.1:23789 ann@192.0.2.2",
            "Then open:",
            "http://localhost:23789/",
            "http://localhost:23789/#token=test-token-123",
            "Docs:",
            "https://docs.openclaw.ai/gateway/remote",
            "https://docs.openclaw.ai/web/control-ui",
        ];
        assert_eq!(lines, expect);
    }
}
