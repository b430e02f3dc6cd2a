//! Target of a call: the gateway, and the secret for it (spec `cli.md` §3.6 and §11.2). The order
//! is the same everywhere: flag, environment, config.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use openclaw_config::gateway_options::{Secrets, gateway_port};
use openclaw_config::protections::Refuses;
use openclaw_config::settings::{BindMode, GatewayMode};
use openclaw_config::{Config, Environment, Unmet, unmet_protections};
use secrecy::SecretString;

use crate::args::given_text;
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// [`GatewayTarget::source`] of an address that was given as a flag.
const FROM_FLAG: &str = "cli --url";

/// Flags of the command line that choose the gateway.
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
pub(crate) struct GatewayTarget {
    /// `ws://` or `wss://`.
    pub(crate) url: String,
    /// Source of the URL, for people.
    pub(crate) source: String,
    /// Bind mode of a local gateway.
    pub(crate) bind: Option<BindMode>,
    /// Reason why it can't be talked to as it is configured.
    pub(crate) note: Option<Note>,
    /// Secrets that let us in.
    pub(crate) secrets: Secrets,
    /// True if the secret was given as a flag: then nothing else is tried.
    pub(crate) explicit: bool,
}

/// Fault in the configuration of a remote gateway.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    /// The gateway has no address.
    MissingUrl,
    /// The address is not valid; the text says why.
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

impl GatewayTarget {
    /// Resolves flags, environment and config.
    ///
    /// # Errors
    /// When a URL comes without a secret, or remote mode has no URL.
    pub(crate) fn resolve(context: &CliContext, flags: &TargetFlags) -> Result<Self, CommandFailure> {
        let config = context.config_or_default();
        let target = Self::of(&config, context.env(), flags)?;
        match target.misconfigured(context) {
            Some(failure) => Err(failure),
            None => Ok(target),
        }
    }

    /// Failure for a target that can't be talked to as it is configured, with a remedy.
    pub(crate) fn misconfigured(&self, context: &CliContext) -> Option<CommandFailure> {
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
        Some(CommandFailure::new(kind, message).hint(hint))
    }

    /// True if the address comes from the config, as opposed to a flag.
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
    pub(crate) fn of(
        config: &Config,
        env: &Environment,
        flags: &TargetFlags,
    ) -> Result<Self, CommandFailure> {
        let flagged = Secrets {
            token: given_text(&flags.token).map(SecretString::from),
            password: given_text(&flags.password).map(SecretString::from),
        };
        let explicit = flagged.token.is_some() || flagged.password.is_some();
        if let Some(url) = given_text(&flags.url) {
            if !explicit {
                return Err(CommandFailure::new(
                    "credentials",
                    "gateway url override requires explicit credentials",
                )
                .hint("Fix: pass --token or --password (or gatewayToken in tools)."));
            }
            if let Some(problem) = super::url_problem(&url) {
                return Err(CommandFailure::usage(format!(
                    "--url {url} is no address of a gateway: {problem}"
                )));
            }
            let source = FROM_FLAG.to_owned();
            return Ok(Self { url, source, bind: None, note: None, secrets: flagged, explicit });
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
            (true, None) => {
                (local.url, "missing gateway.remote.url (fallback local)".to_owned(), Some(Note::MissingUrl))
            }
            (false, _) => (local.url, local.source, None),
        };
        let secrets = if is_remote { flagged.or_remote(config, env) } else { flagged.or_local(config, env) };
        Ok(Self { url, source, bind: (!is_remote).then_some(local.bind), note, secrets, explicit })
    }

    /// The port of a gateway on this host.
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.bind?;
        self.url.rsplit(':').next()?.parse().ok()
    }

    /// The lines that say which gateway was meant.
    pub(crate) fn describe(&self, context: &CliContext) -> String {
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

fn local_address(config: &Config, env: &Environment) -> Result<LocalAddress, CommandFailure> {
    let port = gateway_port(config, env).map_err(|error| CommandFailure::new("port", error.to_string()))?;
    let bind = config.gateway.bind.unwrap_or_default();
    let scheme = if config.gateway.tls.enabled { "wss" } else { "ws" };
    let own = match bind {
        BindMode::Tailnet => own_address(is_tailnet).map(|ip| (ip.into(), "tailnet")),
        BindMode::Lan => own_address(|ip| ip.is_private()).map(|ip| (ip.into(), "lan")),
        BindMode::Custom => {
            let written = config.gateway.custom_bind_host.as_deref();
            let ip = written.and_then(|host| host.trim().parse::<IpAddr>().ok());
            ip.filter(|ip| !ip.is_unspecified()).map(|ip| (ip, "custom"))
        }
        BindMode::Auto | BindMode::Loopback => None,
    };
    let source = own.map_or("local loopback".to_owned(), |(ip, kind)| format!("local {kind} {ip}"));
    let ip = own.map_or(Ipv4Addr::LOCALHOST.into(), |(ip, _)| ip);
    Ok(LocalAddress { url: format!("{scheme}://{}", SocketAddr::new(ip, port)), source, bind })
}

fn is_tailnet(ip: Ipv4Addr) -> bool {
    let [first, second, _, _] = ip.octets();
    first == 100 && (64..128).contains(&second)
}

#[cfg(unix)]
fn own_address(wanted: fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
    nix::ifaddrs::getifaddrs()
        .ok()?
        .filter_map(|interface| interface.address?.as_sockaddr_in().map(|address| address.ip()))
        .find(|ip| wanted(*ip))
}

#[cfg(not(unix))]
fn own_address(_wanted: fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
    None
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn target(config: &str, vars: &[(&str, &str)], flags: &TargetFlags) -> Result<[String; 4], String> {
        let env = Environment::new(vars.iter().copied(), "/w");
        let config = Config::from_json5(config, &env).unwrap();
        let text =
            |secret: &Option<SecretString>| secret.as_ref().map_or("-", |s| s.expose_secret()).to_owned();
        GatewayTarget::of(&config, &env, flags)
            .map(|target| {
                [
                    target.url.clone(),
                    target.source.clone(),
                    text(&target.secrets.token),
                    text(&target.secrets.password),
                ]
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
