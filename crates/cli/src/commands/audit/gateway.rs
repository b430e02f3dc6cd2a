//! Audit of the gateway: the addresses it can be reached at, and its secret.

use std::net::IpAddr;

use openclaw_config::Config;
use openclaw_config::gateway_options::{GatewayFlags, GatewayOptions, StartRefusal, gateway_options};
use openclaw_config::settings::{AuthKind, BindMode};
use openclaw_gateway::own_addresses;
use secrecy::ExposeSecret as _;

use super::{AuditFinding, Severity};
use crate::context::CliContext;

/// Tokens shorter than this are called short.
const GOOD_TOKEN_LENGTH: usize = 24;

pub(super) fn findings(context: &CliContext, config: &Config) -> Vec<AuditFinding> {
    let flags = GatewayFlags { allow_unconfigured: true, ..GatewayFlags::default() };
    let bind = config.gateway.bind.unwrap_or_default();
    let options = gateway_options(config, context.env(), &flags);
    let mut found = Vec::new();
    match &options {
        Ok(options) => found.extend(short_token(options).into_iter().chain(public_bind(options))),
        Err(refusal) => found.push(no_auth(context, bind, refusal)),
    }
    let control_ui = &config.gateway.control_ui;
    if bind == BindMode::Loopback && control_ui.is_enabled() && config.gateway.trusted_proxies.is_empty() {
        found.push(
            AuditFinding::new(
                "gateway.trusted_proxies_missing",
                Severity::Warn,
                "Reverse proxy headers are not trusted",
                "gateway.bind is loopback and gateway.trustedProxies is empty: behind a proxy all clients share its address, \
                 and one count of wrong secrets.",
            )
            .remedy("List the proxy's address in gateway.trustedProxies, or reach the web chat from this machine alone."),
        );
    }
    if control_ui.dangerously_disable_device_auth {
        found.push(
            AuditFinding::new(
                "gateway.control_ui.device_auth_disabled",
                Severity::Critical,
                "Control UI device auth is disabled",
                "gateway.controlUi.dangerouslyDisableDeviceAuth=true lets browsers connect without a device identity.",
            )
            .remedy("Set it to false."),
        );
    }
    if control_ui.allow_insecure_auth {
        found.push(
            AuditFinding::new(
                "gateway.control_ui.insecure_auth",
                Severity::Critical,
                "Control UI accepts insecure auth",
                "gateway.controlUi.allowInsecureAuth=true lets browsers on plain HTTP connect with the token alone.",
            )
            .remedy("Set it to false and use HTTPS or localhost."),
        );
    }
    found
}

fn short_token(options: &GatewayOptions) -> Option<AuditFinding> {
    let token = options.auth.token.as_ref().filter(|_| options.auth.mode == AuthKind::Token)?;
    let length = token.expose_secret().chars().count();
    (length < GOOD_TOKEN_LENGTH).then(|| {
        AuditFinding::new(
            "gateway.token_too_short",
            Severity::Warn,
            "Gateway token looks short",
            format!("gateway auth token is {length} chars; prefer a long random token."),
        )
    })
}

/// Reports a public address: this version has no TLS, so the secret and every message cross the network readable.
fn public_bind(options: &GatewayOptions) -> Option<AuditFinding> {
    let listened: Vec<IpAddr> = match options.bind {
        BindMode::Lan => own_addresses().into_iter().filter(IpAddr::is_ipv4).collect(),
        BindMode::Custom => options.custom_bind_host.into_iter().collect(),
        BindMode::Loopback | BindMode::Tailnet | BindMode::Auto => Vec::new(),
    };
    let public: Vec<String> = listened.iter().filter(|ip| is_public(**ip)).map(ToString::to_string).collect();
    (!public.is_empty()).then(|| {
        AuditFinding::new(
            "gateway.public_bind",
            Severity::Critical,
            "Gateway listens on a public address without TLS",
            format!(
                "gateway.bind={} listens on {}: its secret and all messages can be read on the way.",
                options.bind.as_str(),
                public.join(", ")
            ),
        )
        .remedy("Set gateway.bind to loopback, and put a TLS proxy or a tunnel in front.")
    })
}

/// True if the internet routes the address.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            let is_shared = first == 100 && second & 0xc0 == 64;
            let is_documentation = ip.is_documentation() || (first == 198 && second & 0xfe == 18);
            !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified())
                && !(is_shared || is_documentation || ip.is_broadcast() || ip.is_multicast())
        }
        // Global unicast is 2000::/3; documentation has a part of it.
        IpAddr::V6(ip) => {
            let [first, second, ..] = ip.segments();
            first & 0xe000 == 0x2000 && !(first == 0x2001 && second == 0xdb8)
        }
    }
}

fn no_auth(context: &CliContext, bind: BindMode, refusal: &StartRefusal) -> AuditFinding {
    let (id, title) = if bind == BindMode::Loopback {
        ("gateway.loopback_no_auth", "Gateway auth missing on loopback")
    } else {
        ("gateway.bind_no_auth", "Gateway binds beyond loopback without auth")
    };
    let detail = format!("gateway.bind={} and no usable secret is configured.", bind.as_str());
    AuditFinding::new(id, Severity::Critical, title, detail).remedy(match refusal {
        StartRefusal::NoPassword => "Set gateway.auth.password.".to_owned(),
        _ => format!("Set gateway.auth.token, or run {}.", context.hint_command("openclaw setup")),
    })
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn public_addresses_are_told_from_those_of_a_home_network() {
        let rows = [
            ("8.8.8.8", true),
            ("192.168.1.2", false),
            ("10.1.2.3", false),
            ("172.20.0.1", false),
            ("100.64.0.9", false),
            ("100.128.0.9", true),
            ("169.254.1.1", false),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("192.0.2.2", false),
            ("198.18.0.1", false),
            ("2a00:1450::1", true),
            ("2001:db8::1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::1", false),
        ];
        for (ip, expect) in rows {
            assert_eq!(is_public(ip.parse().unwrap()), expect, "{ip}");
        }
    }
}
