//! Gateway options: port, addresses and secret of a gateway, and URL and secret of a client (spec
//! `gateway-protocol.md` §1.1 and §1.2, `config.md` §1.4 and §2.4).
//!
//! Precedence is the same everywhere: flag, then environment, then config.

use secrecy::{ExposeSecret, SecretString};

use crate::settings::{AuthKind, BindMode, GatewayMode, TailscaleMode};
use crate::{Config, Environment};

/// Port without any setting.
pub const DEFAULT_PORT: u16 = 18789;

const PORT_VARS: &[&str] = &["OPENCLAW_GATEWAY_PORT", "CLAWDBOT_GATEWAY_PORT"];
/// The variables that may hold the gateway's own token.
pub const TOKEN_VARS: &[&str] = &["OPENCLAW_GATEWAY_TOKEN", "CLAWDBOT_GATEWAY_TOKEN"];
/// The same for its password.
pub const PASSWORD_VARS: &[&str] = &["OPENCLAW_GATEWAY_PASSWORD", "CLAWDBOT_GATEWAY_PASSWORD"];

/// The variables that may hold the gateway's own secret.
pub fn secret_variables() -> impl Iterator<Item = &'static str> {
    TOKEN_VARS.iter().chain(PASSWORD_VARS).copied()
}

/// Flags on the command line of `openclaw gateway`. Each given flag replaces its own setting only.
#[derive(Debug, Clone, Default)]
pub struct GatewayFlags {
    /// `--port`.
    pub port: Option<u16>,
    /// `--bind`.
    pub bind: Option<BindMode>,
    /// `--auth`.
    pub auth: Option<AuthKind>,
    /// `--token`.
    pub token: Option<SecretString>,
    /// `--password`.
    pub password: Option<SecretString>,
    /// `--tailscale`.
    pub tailscale: Option<TailscaleMode>,
    /// `--allow-unconfigured`.
    pub allow_unconfigured: bool,
}

/// Secrets that let a client in.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// The shared token.
    pub token: Option<SecretString>,
    /// The shared password.
    pub password: Option<SecretString>,
}

impl Secrets {
    /// Secrets for the gateway of this host: `self`, which flags give, then the environment, then
    /// the config.
    #[must_use]
    pub fn or_local(self, config: &Config, env: &Environment) -> Self {
        let auth = &config.gateway.auth;
        let token = self.token.or_else(|| secret_var(env, TOKEN_VARS));
        let password = self.password.or_else(|| secret_var(env, PASSWORD_VARS));
        Self {
            token: token.or_else(|| auth.token.clone()).filter(is_set),
            password: password.or_else(|| auth.password.clone()).filter(is_set),
        }
    }

    /// Secrets for the gateway of `gateway.remote`. A token in the environment belongs to the
    /// gateway of this host.
    #[must_use]
    pub fn or_remote(self, config: &Config, env: &Environment) -> Self {
        let remote = &config.gateway.remote;
        let password = self.password.or_else(|| secret_var(env, PASSWORD_VARS));
        Self {
            token: self.token.or_else(|| remote.token.clone()).filter(is_set),
            password: password.or_else(|| remote.password.clone()).filter(is_set),
        }
    }
}

/// Options for listening and authentication.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// TCP port; 0 lets the system choose.
    pub port: u16,
    /// Addresses to bind.
    pub bind: BindMode,
    /// Address for [`BindMode::Custom`].
    pub custom_bind_host: Option<std::net::IpAddr>,
    /// Rules for letting clients in.
    pub auth: ResolvedAuth,
    /// Tailscale exposure.
    pub tailscale: TailscaleMode,
    /// Warnings for the operator: for example that environment and config name different tokens.
    pub warnings: Vec<String>,
}

/// Rules for letting clients in.
#[derive(Debug, Clone)]
pub struct ResolvedAuth {
    /// Kind of secret that counts: token or password.
    pub mode: AuthKind,
    /// The token, if any.
    pub token: Option<SecretString>,
    /// The password, if any.
    pub password: Option<SecretString>,
    /// True if a Tailscale identity header authenticates.
    pub allow_tailscale: bool,
}

/// Reason why a gateway does not start. The operator has to change a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartRefusal {
    /// `gateway.mode` is not `local`.
    #[error(
        "Gateway start blocked: set gateway.mode=local (current: {current}) or pass --allow-unconfigured.\nRun `openclaw setup` or `openclaw config set gateway.mode local`."
    )]
    NotConfigured {
        /// The configured mode, or `unset`.
        current: String,
    },
    /// A port that is no port.
    #[error("{source_name} is not a valid port: \"{value}\" (use 1 to 65535)")]
    BadPort {
        /// Variable, flag or key.
        source_name: String,
        /// Value of the setting.
        value: String,
    },
    /// Token auth without a token.
    #[error(
        "Gateway auth is set to token, but no token is configured.\nSet gateway.auth.token (or OPENCLAW_GATEWAY_TOKEN), or pass --token. `openclaw setup` makes one."
    )]
    NoToken,
    /// Password auth without a password.
    #[error(
        "Gateway auth is set to password, but no password is configured.\nSet gateway.auth.password (or OPENCLAW_GATEWAY_PASSWORD), or pass --password."
    )]
    NoPassword,
    /// The gateway could be reached from outside without authentication.
    #[error(
        "Refusing to bind gateway to {bind} without auth.\nSet gateway.auth.token (or OPENCLAW_GATEWAY_TOKEN), or pass --token."
    )]
    OpenBind {
        /// The bind mode.
        bind: &'static str,
    },
    /// Exposed to the internet with a token only.
    #[error("tailscale funnel requires gateway auth mode=password")]
    FunnelNeedsPassword,
    /// Tailscale proxies to loopback.
    #[error("tailscale serve/funnel requires gateway bind=loopback (127.0.0.1)")]
    TailscaleNeedsLoopback,
    /// `bind: "custom"` without a usable address.
    #[error(
        "gateway.bind is custom, but gateway.customBindHost is not an IP address; set it, for example to 192.168.1.10"
    )]
    NoCustomHost,
}

/// The port: flag, environment, config, default.
///
/// # Errors
/// [`StartRefusal::BadPort`] for a value that is set and is no port; the reference reads `123abc` as 123.
pub fn gateway_port(config: &Config, env: &Environment) -> Result<u16, StartRefusal> {
    for name in PORT_VARS {
        if let Some(text) = env.get_nonblank(name) {
            return text.parse().ok().filter(|port| *port > 0).ok_or_else(|| StartRefusal::BadPort {
                source_name: (*name).to_owned(),
                value: text.to_owned(),
            });
        }
    }
    match config.gateway.port {
        None => Ok(DEFAULT_PORT),
        Some(port) => u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| {
            StartRefusal::BadPort { source_name: "gateway.port".to_owned(), value: port.to_string() }
        }),
    }
}

/// Source of the port that [`gateway_port`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortSource {
    /// A variable of this name.
    Variable(&'static str),
    /// `gateway.port`.
    Config,
    /// Default port: nothing names one.
    Default,
}

/// Source of the port that [`gateway_port`] returns.
pub fn gateway_port_source(config: &Config, env: &Environment) -> PortSource {
    match PORT_VARS.iter().copied().find(|name| env.get_nonblank(name).is_some()) {
        Some(name) => PortSource::Variable(name),
        None if config.gateway.port.is_some() => PortSource::Config,
        None => PortSource::Default,
    }
}

/// Options for listening, from flags, environment and config.
///
/// # Errors
/// The first [`StartRefusal`] that applies.
pub fn gateway_options(
    config: &Config,
    env: &Environment,
    flags: &GatewayFlags,
) -> Result<GatewayOptions, StartRefusal> {
    if config.gateway.mode != Some(GatewayMode::Local) && !flags.allow_unconfigured {
        let current = match config.gateway.mode {
            Some(GatewayMode::Remote) => "remote",
            Some(GatewayMode::Local) | None => "unset",
        };
        return Err(StartRefusal::NotConfigured { current: current.to_owned() });
    }
    let port = match flags.port {
        Some(port) => port,
        None => gateway_port(config, env)?,
    };
    let bind = flags.bind.or(config.gateway.bind).unwrap_or_default();
    let tailscale = flags.tailscale.unwrap_or(config.gateway.tailscale.mode);
    let auth = resolve_auth(config, env, flags, tailscale);
    let custom_bind_host = match (bind, config.gateway.custom_bind_host.as_deref()) {
        (BindMode::Custom, Some(host)) => Some(host.trim().parse().map_err(|_| StartRefusal::NoCustomHost)?),
        (BindMode::Custom, None) => return Err(StartRefusal::NoCustomHost),
        (BindMode::Auto | BindMode::Lan | BindMode::Loopback | BindMode::Tailnet, _) => None,
    };
    check_auth(bind, tailscale, &auth)?;
    Ok(GatewayOptions { port, bind, custom_bind_host, tailscale, warnings: disagreements(config, env), auth })
}

fn resolve_auth(
    config: &Config,
    env: &Environment,
    flags: &GatewayFlags,
    tailscale: TailscaleMode,
) -> ResolvedAuth {
    let configured = &config.gateway.auth;
    let flagged = Secrets { token: flags.token.clone(), password: flags.password.clone() };
    let Secrets { token, password } = flagged.or_local(config, env);
    let implied = if password.is_some() { AuthKind::Password } else { AuthKind::Token };
    let flagged = flags.auth.or_else(|| match (flags.token.is_some(), flags.password.is_some()) {
        (true, false) => Some(AuthKind::Token),
        (false, true) => Some(AuthKind::Password),
        (true, true) | (false, false) => None,
    });
    let mode = flagged.or(configured.mode).unwrap_or(implied);
    let served = tailscale == TailscaleMode::Serve && mode != AuthKind::Password;
    ResolvedAuth { mode, token, password, allow_tailscale: configured.allow_tailscale.unwrap_or(served) }
}

fn check_auth(bind: BindMode, tailscale: TailscaleMode, auth: &ResolvedAuth) -> Result<(), StartRefusal> {
    let outside = bind != BindMode::Loopback;
    match tailscale {
        TailscaleMode::Funnel if auth.mode != AuthKind::Password => {
            return Err(StartRefusal::FunnelNeedsPassword);
        }
        TailscaleMode::Serve | TailscaleMode::Funnel if outside => {
            return Err(StartRefusal::TailscaleNeedsLoopback);
        }
        TailscaleMode::Off | TailscaleMode::Serve | TailscaleMode::Funnel => {}
    }
    match auth.mode {
        AuthKind::Token if auth.token.is_none() && !auth.allow_tailscale => {
            return Err(StartRefusal::NoToken);
        }
        AuthKind::Password if auth.password.is_none() => return Err(StartRefusal::NoPassword),
        AuthKind::Token | AuthKind::Password => {}
    }
    let has_secret = match auth.mode {
        AuthKind::Token => auth.token.is_some(),
        AuthKind::Password => auth.password.is_some(),
    };
    if outside && !has_secret { Err(StartRefusal::OpenBind { bind: bind.as_str() }) } else { Ok(()) }
}

fn disagreements(config: &Config, env: &Environment) -> Vec<String> {
    let configured = &config.gateway.auth;
    let rows = [
        ("gateway.auth.token", TOKEN_VARS, &configured.token),
        ("gateway.auth.password", PASSWORD_VARS, &configured.password),
    ];
    rows.into_iter()
        .filter_map(|(key, names, value)| {
            let value = value.as_ref()?.expose_secret();
            let name = names.iter().find(|name| env.get_nonblank(name).is_some())?;
            (env.get_nonblank(name) != Some(value.trim())).then(|| {
                format!("{name} and {key} differ; the environment wins. Remove one of them so that all clients agree.")
            })
        })
        .collect()
}

fn secret_var(env: &Environment, names: &[&str]) -> Option<SecretString> {
    env.first_nonblank(names).map(|value| SecretString::from(value.to_owned()))
}

fn is_set(secret: &SecretString) -> bool {
    !secret.expose_secret().trim().is_empty()
}
