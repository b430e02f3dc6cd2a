//! Which gateway, and with which secret (spec `cli.md` §3.6 and §11.2). One order everywhere: flag, environment, config.

use std::net::IpAddr;

use openclaw_config::gateway_options::gateway_port;
use openclaw_config::protections::Refuses;
use openclaw_config::settings::{BindMode, GatewayMode};
use openclaw_config::{Config, Environment, Unmet, unmet_protections};
use secrecy::{ExposeSecret as _, SecretString};

use crate::args::given_text;
use crate::context::Context;
use crate::failure::Failure;

/// [`Target::source`] of an address that was given as a flag.
const FROM_FLAG: &str = "cli --url";

/// What the command line says about the gateway.
#[derive(Debug, Clone, Default)]
pub(crate) struct TargetFlags {
    /// `--url`.
    pub(crate) url: Option<String>,
    /// `--token`.
    pub(crate) token: Option<String>,
    /// `--password`.
    pub(crate) password: Option<String>,
}

/// A gateway to talk to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// `ws://` or `wss://`.
    pub(crate) url: String,
    /// Where the URL comes from, for people.
    pub(crate) source: String,
    /// Bind mode of a local gateway.
    pub(crate) bind: Option<BindMode>,
    /// Why it can't be talked to as it is configured.
    pub(crate) note: Option<Note>,
    /// Shared token.
    pub(crate) token: Option<SecretString>,
    /// Shared password.
    pub(crate) password: Option<SecretString>,
    /// Whether the secret was given as a flag: then nothing else is tried.
    pub(crate) explicit: bool,
}

/// What is wrong with the configuration of a remote gateway.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    /// It has no address.
    MissingUrl,
    /// Its address is none.
    BadUrl(String),
    /// A protection of the connection is asked for and missing.
    Unprotected(Box<Unmet>),
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MissingUrl => f.write_str("gateway.mode=remote but gateway.remote.url is missing"),
            Self::BadUrl(problem) => write!(f, "gateway.remote.url is no address of a gateway: {problem}"),
            Self::Unprotected(unmet) => f.write_str(&unmet.detail()),
        }
    }
}

impl Target {
    /// Resolves flags, environment and config.
    ///
    /// # Errors
    /// When a URL comes without a secret, or remote mode has no URL.
    pub(crate) fn resolve(context: &Context, flags: &TargetFlags) -> Result<Self, Failure> {
        let config = context.config_or_default();
        let target = Self::of(&config, context.env(), flags)?;
        match target.misconfigured(context) {
            Some(failure) => Err(failure),
            None => Ok(target),
        }
    }

    /// Why it can't be talked to as it is configured, and what to do.
    pub(crate) fn misconfigured(&self, context: &Context) -> Option<Failure> {
        let note = self.note.as_ref()?;
        let set_url = || {
            let command = context.hint_command("openclaw config set gateway.remote.url wss://host:port");
            format!("Set it: {command}")
        };
        let (kind, hint) = match note {
            Note::MissingUrl => ("remote-url-missing", set_url()),
            Note::BadUrl(_) => ("remote-url-bad", set_url()),
            Note::Unprotected(unmet) => ("protection-missing", unmet.remedy().to_owned()),
        };
        let message = format!("gateway remote mode misconfigured: {note}\n{}", self.describe(context));
        Some(Failure::new(kind, message).hint(hint))
    }

    /// Whether the config says where it is, as opposed to a flag.
    pub(crate) fn is_configured(&self) -> bool {
        self.source != FROM_FLAG
    }

    /// The setting that says where it is.
    pub(crate) fn setting(&self) -> &'static str {
        match self.bind {
            _ if !self.is_configured() => "--url",
            None => "gateway.remote.url",
            Some(_) => "gateway.bind and gateway.customBindHost",
        }
    }

    /// The same as values only; remote mode without a URL falls back to the local address, with a note.
    pub(crate) fn of(config: &Config, env: &Environment, flags: &TargetFlags) -> Result<Self, Failure> {
        let token_flag = given_text(&flags.token).map(SecretString::from);
        let password_flag = given_text(&flags.password).map(SecretString::from);
        let explicit = token_flag.is_some() || password_flag.is_some();
        if let Some(url) = given_text(&flags.url) {
            if !explicit {
                return Err(Failure::new(
                    "credentials",
                    "gateway url override requires explicit credentials",
                )
                .hint("Fix: pass --token or --password (or gatewayToken in tools)."));
            }
            if let Some(problem) = super::url_problem(&url) {
                return Err(Failure::usage(format!("--url {url} is no address of a gateway: {problem}")));
            }
            let source = FROM_FLAG.to_owned();
            return Ok(Self {
                url,
                source,
                bind: None,
                note: None,
                token: token_flag,
                password: password_flag,
                explicit,
            });
        }
        let is_remote = config.gateway.mode == Some(GatewayMode::Remote);
        let remote = &config.gateway.remote;
        let local = local_address(config, env)?;
        let (url, source, note) = match (is_remote, given_text(&remote.url)) {
            (true, Some(url)) => {
                let unmet = unmet_protections(config);
                let unmet = unmet.into_iter().find(|unmet| unmet.refuses == Refuses::Connections);
                let unprotected = || unmet.map(|unmet| Note::Unprotected(Box::new(unmet)));
                let note = super::url_problem(&url).map(Note::BadUrl).or_else(unprotected);
                (url, "config gateway.remote.url".to_owned(), note)
            }
            (true, None) => (
                local.url.clone(),
                "missing gateway.remote.url (fallback local)".to_owned(),
                Some(Note::MissingUrl),
            ),
            (false, _) => (local.url.clone(), local.source.clone(), None),
        };
        let var =
            |names: &[&str]| env.first_nonblank(names).map(|value| SecretString::from(value.to_owned()));
        let env_token = var(&["OPENCLAW_GATEWAY_TOKEN", "CLAWDBOT_GATEWAY_TOKEN"]);
        let env_password = var(&["OPENCLAW_GATEWAY_PASSWORD", "CLAWDBOT_GATEWAY_PASSWORD"]);
        let auth = &config.gateway.auth;
        let (token, password) = if is_remote {
            // A token in the environment belongs to the gateway of this host.
            (
                token_flag.or_else(|| remote.token.clone()),
                password_flag.or(env_password).or_else(|| remote.password.clone()),
            )
        } else {
            (
                token_flag.or(env_token).or_else(|| auth.token.clone()),
                password_flag.or(env_password).or_else(|| auth.password.clone()),
            )
        };
        let is_set = |secret: &SecretString| !secret.expose_secret().trim().is_empty();
        Ok(Self {
            url,
            source,
            bind: (!is_remote).then_some(local.bind),
            note,
            token: token.filter(is_set),
            password: password.filter(is_set),
            explicit,
        })
    }

    /// The port of a gateway on this host.
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.bind?;
        self.url.rsplit(':').next()?.parse().ok()
    }

    /// The lines that say which gateway was meant.
    pub(crate) fn describe(&self, context: &Context) -> String {
        let mut lines = vec![
            format!("Gateway target: {}", self.url),
            format!("Source: {}", self.source),
            format!("Config: {}", context.short(context.paths().config_path())),
        ];
        lines.extend(self.bind.map(|bind| format!("Bind: {}", bind.as_str())));
        lines.extend(self.note.as_ref().map(|note| format!("Note: {note}")));
        lines.join("\n")
    }
}

struct LocalAddress {
    url: String,
    source: String,
    bind: BindMode,
}

fn local_address(config: &Config, env: &Environment) -> Result<LocalAddress, Failure> {
    let port = gateway_port(config, env).map_err(|error| Failure::new("port", error.to_string()))?;
    let bind = config.gateway.bind.unwrap_or_default();
    let scheme = if config.gateway.tls.enabled { "wss" } else { "ws" };
    let own = match bind {
        BindMode::Tailnet => own_address(is_tailnet).map(|ip| (ip, "tailnet")),
        BindMode::Lan => own_address(is_lan).map(|ip| (ip, "lan")),
        BindMode::Auto | BindMode::Loopback | BindMode::Custom => None,
    };
    let custom =
        config.gateway.custom_bind_host.as_deref().and_then(|host| host.trim().parse::<IpAddr>().ok());
    let (host, source) = match (own, custom, bind) {
        (Some((ip, kind)), _, _) => (ip.to_string(), format!("local {kind} {ip}")),
        (None, Some(ip), BindMode::Custom) if !ip.is_unspecified() => {
            (url_host(ip), format!("local custom {ip}"))
        }
        (None, _, _) => ("127.0.0.1".to_owned(), "local loopback".to_owned()),
    };
    Ok(LocalAddress { url: format!("{scheme}://{host}:{port}"), source, bind })
}

fn url_host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn is_tailnet(ip: std::net::Ipv4Addr) -> bool {
    let [first, second, _, _] = ip.octets();
    first == 100 && (64..128).contains(&second)
}

fn is_lan(ip: std::net::Ipv4Addr) -> bool {
    ip.is_private()
}

#[cfg(unix)]
fn own_address(wanted: fn(std::net::Ipv4Addr) -> bool) -> Option<std::net::Ipv4Addr> {
    nix::ifaddrs::getifaddrs()
        .ok()?
        .filter_map(|interface| interface.address?.as_sockaddr_in().map(|address| address.ip()))
        .find(|ip| wanted(*ip))
}

#[cfg(not(unix))]
fn own_address(_wanted: fn(std::net::Ipv4Addr) -> bool) -> Option<std::net::Ipv4Addr> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(config: &str, vars: &[(&str, &str)], flags: &TargetFlags) -> Result<[String; 4], String> {
        let env = Environment::new(vars.iter().copied(), "/w");
        let config = Config::from_json5(config, &env).unwrap();
        let text =
            |secret: &Option<SecretString>| secret.as_ref().map_or("-", |s| s.expose_secret()).to_owned();
        Target::of(&config, &env, flags)
            .map(|target| {
                [target.url.clone(), target.source.clone(), text(&target.token), text(&target.password)]
            })
            .map_err(|failure| failure.message)
    }

    /// Vectors of `cli.md` §11.2.
    #[test]
    fn the_target_follows_flag_then_environment_then_config() {
        let flags = |url: &str, token: &str| TargetFlags {
            url: (!url.is_empty()).then(|| url.to_owned()),
            token: (!token.is_empty()).then(|| token.to_owned()),
            password: None,
        };
        let remote =
            "{gateway:{mode:'remote',remote:{url:'wss://r',password:'remote-secret'},auth:{password:'x'}}}";
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], TargetFlags, Result<[&'a str; 4], &'a str>);
        let rows: Vec<Row<'_>> = vec![
            (
                "{gateway:{bind:'auto',port:18800,auth:{token:'c'}}}",
                &[],
                flags("", ""),
                Ok(["ws://127.0.0.1:18800", "local loopback", "c", "-"]),
            ),
            (
                "{gateway:{auth:{password:'from-config'}}}",
                &[("OPENCLAW_GATEWAY_PASSWORD", "from-env")],
                flags("", ""),
                Ok(["ws://127.0.0.1:18789", "local loopback", "-", "from-env"]),
            ),
            (
                "{gateway:{auth:{token:'c'}}}",
                &[("OPENCLAW_GATEWAY_TOKEN", "e"), ("OPENCLAW_GATEWAY_PORT", "5")],
                flags("", "f"),
                Ok(["ws://127.0.0.1:5", "local loopback", "f", "-"]),
            ),
            (
                "{}",
                &[],
                flags("wss://example.com/ws", "t"),
                Ok(["wss://example.com/ws", "cli --url", "t", "-"]),
            ),
            (
                "{}",
                &[],
                flags("wss://example.com/ws", ""),
                Err("gateway url override requires explicit credentials"),
            ),
            (remote, &[], flags("", ""), Ok(["wss://r", "config gateway.remote.url", "-", "remote-secret"])),
            (
                "{gateway:{mode:'remote',remote:{url:'wss://r',token:'rt'}}}",
                &[("OPENCLAW_GATEWAY_TOKEN", "e")],
                flags("", ""),
                Ok(["wss://r", "config gateway.remote.url", "rt", "-"]),
            ),
            (
                "{gateway:{mode:'remote'}}",
                &[],
                flags("", ""),
                Ok(["ws://127.0.0.1:18789", "missing gateway.remote.url (fallback local)", "-", "-"]),
            ),
            (
                "{}",
                &[("OPENCLAW_GATEWAY_PORT", "123abc")],
                flags("", ""),
                Err("OPENCLAW_GATEWAY_PORT is not a valid port: \"123abc\" (use 1 to 65535)"),
            ),
        ];
        for (config, vars, flags, expect) in rows {
            let expect = expect.map(|parts| parts.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(target(config, vars, &flags), expect, "{config} {vars:?}");
        }
    }
}
