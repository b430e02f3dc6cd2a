//! Address of the Bot API.

use openclaw_config::Environment;
use url::{Host, Url};

const OFFICIAL: &str = "https://api.telegram.org";
/// Names an address for all accounts that have none of their own.
pub(super) const VARIABLE: &str = "OPENCLAW_TELEGRAM_API_ROOT";

/// The address of a Bot API, without a slash at its end. Tokens are part of every path below it, so it is encrypted, or on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiRoot {
    url: String,
    is_local: bool,
}

impl ApiRoot {
    /// Finds the configured address (`apiRoot`, else the variable), or Telegram's own.
    ///
    /// # Errors
    /// Describes the problem for people.
    pub(super) fn find(configured: Option<&str>, env: &Environment) -> Result<Self, String> {
        let named = configured
            .map(|text| ("channels.telegram.apiRoot", text))
            .filter(|(_, text)| !text.trim().is_empty())
            .or_else(|| env.get_nonblank(VARIABLE).map(|text| (VARIABLE, text)));
        match named {
            Some((name, text)) => Self::parse(text).ok_or_else(|| {
                format!("{name} must be an https address; http is for this machine only, such as http://127.0.0.1:8081")
            }),
            None => Ok(Self { url: OFFICIAL.to_owned(), is_local: false }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text.trim()).ok()?;
        let is_local = is_loopback(&url);
        let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        let may_be = match url.scheme() {
            "https" => url.has_host(),
            "http" => is_local,
            _ => false,
        };
        (may_be && is_plain && url.fragment().is_none())
            .then(|| Self { url: url.as_str().trim_end_matches('/').to_owned(), is_local })
    }

    /// Returns the address as text.
    pub(super) fn as_str(&self) -> &str {
        &self.url
    }

    /// Returns true if the address is on this machine, where no proxy could reach it.
    pub(super) fn is_local(&self) -> bool {
        self.is_local
    }

    pub(super) fn method(&self, token: &str, method: &str) -> String {
        format!("{}/bot{token}/{method}", self.url)
    }

    /// The address of a file; `None` for a path that could lead elsewhere.
    pub(super) fn file(&self, token: &str, path: &str) -> Option<String> {
        let is_plain = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        path.split('/').all(is_plain).then(|| format!("{}/file/bot{token}/{path}", self.url))
    }
}

/// Returns true if a host is this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_encrypted_or_on_this_machine() {
        let rows = [
            ("https://api.example.org/", Some("https://api.example.org")),
            ("https://example.org/telegram/", Some("https://example.org/telegram")),
            ("http://127.0.0.1:8081", Some("http://127.0.0.1:8081")),
            ("http://[::1]:1/", Some("http://[::1]:1")),
            ("http://localhost:1", Some("http://localhost:1")),
            ("http://api.example.org", None),
            ("http://127.0.0.1.example.org", None),
            ("https://user@example.org", None),
            ("https://example.org/?a=1", None),
            ("ftp://127.0.0.1", None),
            ("nonsense", None),
        ];
        for (text, expect) in rows {
            assert_eq!(ApiRoot::parse(text).map(|root| root.url).as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn the_configuration_goes_before_the_variable() {
        let env = Environment::new([(VARIABLE, "http://127.0.0.1:2")], "/");
        let find = |text: Option<&str>, env: &Environment| ApiRoot::find(text, env).map(|root| root.url);
        assert_eq!(find(Some("https://a.example"), &env), Ok("https://a.example".to_owned()));
        assert_eq!(find(None, &env), Ok("http://127.0.0.1:2".to_owned()));
        assert_eq!(find(None, &Environment::default()), Ok(OFFICIAL.to_owned()));
        assert!(
            find(Some("http://a.example"), &env).unwrap_err().starts_with("channels.telegram.apiRoot must")
        );
    }

    #[test]
    fn a_path_of_a_file_leads_nowhere_else() {
        let root = ApiRoot::parse("https://a.example").unwrap();
        let rows = [
            ("photos/file_1.jpg", Some("https://a.example/file/botT/photos/file_1.jpg")),
            ("../botT/getMe", None),
            ("/etc/passwd", None),
            ("a//b", None),
            ("a?b", None),
            ("a%2e%2e/b", None),
            ("", None),
        ];
        for (path, expect) in rows {
            assert_eq!(root.file("T", path).as_deref(), expect, "{path}");
        }
    }
}
