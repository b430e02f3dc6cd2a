//! Web chat: its URL, and the address that opens it signed in (spec `operations.md` §9).

use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use openclaw_config::Config;
use openclaw_config::gateway_options::ResolvedAuth;
use openclaw_config::settings::{AuthKind, ConsoleStyle};
use secrecy::{ExposeSecret as _, SecretString};
use url::form_urlencoded::Serializer;

/// The address of the web chat at an origin such as `http://127.0.0.1:18789`.
pub fn web_chat_url(config: &Config, origin: &str) -> String {
    format!("{origin}{}/", base_path(config.gateway.control_ui.base_path.as_deref()))
}

/// The same with the token, as the page takes it: browsers keep a fragment to themselves.
pub fn signed_in(url: &str, token: &SecretString) -> String {
    let fragment = Serializer::new(String::new()).append_pair("token", token.expose_secret().trim()).finish();
    format!("{url}#{fragment}")
}

/// `/ui` for `ui`, `/ui/` and `/ui`; empty for the root.
pub(crate) fn base_path(configured: Option<&str>) -> String {
    let name = configured.unwrap_or_default().trim().trim_matches('/');
    if name.is_empty() { String::new() } else { format!("/{name}") }
}

/// Tells a person at the terminal how to open the web chat. Not by way of the log: the address holds the token.
pub(crate) fn tell(config: &Config, auth: &ResolvedAuth, addresses: &[SocketAddr]) {
    let is_for_people = config.logging.console_style != Some(ConsoleStyle::Json);
    let Some(address) = addresses.first().filter(|_| is_for_people && std::io::stdout().is_terminal()) else {
        return;
    };
    if config.gateway.control_ui.is_enabled() {
        // A terminal that has gone is nobody's error.
        let _ = std::io::stdout().lock().write_all(invitation(config, auth, *address).as_bytes());
    }
}

fn invitation(config: &Config, auth: &ResolvedAuth, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let url = web_chat_url(config, &format!("http://{address}"));
    match (auth.mode, &auth.token) {
        (AuthKind::Token, Some(token)) => format!(
            "\nWeb chat: {}\nWhoever has this address is let in. It is not in the log.\n\n",
            signed_in(&url, token)
        ),
        (AuthKind::Token | AuthKind::Password, _) => format!("\nWeb chat: {url}\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn base_paths_have_a_leading_slash_only() {
        let rows = [
            (None, ""),
            (Some(""), ""),
            (Some(" "), ""),
            (Some("/"), ""),
            (Some("ui"), "/ui"),
            (Some("/ui/"), "/ui"),
            (Some("a/b"), "/a/b"),
        ];
        for (configured, expect) in rows {
            assert_eq!(base_path(configured), expect, "{configured:?}");
        }
    }

    #[test]
    fn the_invitation_holds_the_token_where_there_is_one() {
        let env = Environment::new([("HOME", "/h")], "/");
        let config = Config::from_json5("{gateway: {controlUi: {basePath: 'ui'}}}", &env).unwrap();
        let auth = |mode| ResolvedAuth {
            mode,
            token: Some("a b&c".to_owned().into()),
            password: Some("p".to_owned().into()),
            allow_tailscale: false,
        };
        let rows = [
            (AuthKind::Token, "0.0.0.0:7", "\nWeb chat: http://127.0.0.1:7/ui/#token=a+b%26c\n"),
            (AuthKind::Token, "[::1]:7", "\nWeb chat: http://[::1]:7/ui/#token=a+b%26c\n"),
            (AuthKind::Password, "127.0.0.1:7", "\nWeb chat: http://127.0.0.1:7/ui/\n"),
        ];
        for (mode, address, expect) in rows {
            let text = invitation(&config, &auth(mode), address.parse().unwrap());
            assert!(text.starts_with(expect), "{text}");
        }
    }
}
