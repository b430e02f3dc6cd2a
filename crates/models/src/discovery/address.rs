//! Addresses of the programs for local models if the configuration names none.

use std::collections::BTreeMap;

use url::Url;

use crate::provider_entry::Asks;
use crate::variables::Variables;

/// Variable of our own: `off`, or the addresses of programs, as in
/// `lmstudio=http://127.0.0.1:4321,vllm=http://127.0.0.1:9000`.
const OURS: &str = "OPENCLAW_LOCAL_MODELS";
/// Ollama's own variable.
const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// Ollama's own port.
const OLLAMA_PORT: u16 = 11_434;
/// Words that turn the search off.
const OFF: [&str; 4] = ["off", "0", "false", "no"];

/// Settings of local programs from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whereabouts {
    /// True if programs that nobody configured are looked for.
    pub(super) looked_for: bool,
    /// Addresses without `/v1`, by program.
    by_program: BTreeMap<Asks, String>,
}

impl Whereabouts {
    pub(super) fn of(variables: &Variables) -> Self {
        let ours = variables.get(OURS).unwrap_or_default();
        let mut by_program = BTreeMap::new();
        if let Some(address) = variables.get(OLLAMA_HOST).and_then(ollama_address) {
            by_program.insert(Asks::Ollama, address);
        }
        for (name, address) in ours.split(',').filter_map(|part| part.split_once('=')) {
            if let (Some(program), Some(address)) = (program(name.trim()), http_address(address.trim())) {
                by_program.insert(program, address);
            }
        }
        Self { looked_for: !OFF.contains(&ours.to_lowercase().as_str()), by_program }
    }

    pub(super) fn of_program(&self, program: Asks) -> Option<&str> {
        self.by_program.get(&program).map(String::as_str)
    }
}

fn program(name: &str) -> Option<Asks> {
    let known = serde_json::from_value(serde_json::Value::from(name.to_lowercase())).ok();
    known.filter(|asks: &Asks| asks.is_local())
}

fn http_address(text: &str) -> Option<String> {
    let url =
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())?;
    Some(root(url.as_str()).to_owned())
}

/// An address without a trailing slash and without `/v1`.
pub(super) fn root(address: &str) -> &str {
    let address = address.trim().trim_end_matches('/');
    address.strip_suffix("/v1").unwrap_or(address).trim_end_matches('/')
}

/// The address of `OLLAMA_HOST`, which its server reads too: what it listens on may be no address to call.
fn ollama_address(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['"', '\'']);
    if text.contains("://") {
        return http_address(text);
    }
    let mut url = Url::parse(&format!(
        "http://{}",
        text.strip_prefix(':').map_or(text.to_owned(), |port| format!("0.0.0.0:{port}"))
    ))
    .ok()?;
    if url.port().is_none() && !text.ends_with(":80") {
        url.set_port(Some(OLLAMA_PORT)).ok()?;
    }
    if matches!(url.host_str(), Some("0.0.0.0" | "[::]") | None) {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    Some(root(url.as_str()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Whereabouts {
        Whereabouts::of(&pairs.iter().copied().collect())
    }

    #[test]
    fn ollama_host_is_read_as_ollama_reads_it() {
        let rows = [
            ("127.0.0.1", Some("http://127.0.0.1:11434")),
            ("box.lan", Some("http://box.lan:11434")),
            ("box.lan:80", Some("http://box.lan")),
            ("box.lan:9999/", Some("http://box.lan:9999")),
            ("0.0.0.0", Some("http://127.0.0.1:11434")),
            ("0.0.0.0:5000", Some("http://127.0.0.1:5000")),
            (":5000", Some("http://127.0.0.1:5000")),
            ("[::]:5000", Some("http://127.0.0.1:5000")),
            ("[::1]:5000", Some("http://[::1]:5000")),
            ("http://box.lan", Some("http://box.lan")),
            ("https://box.lan/ollama/", Some("https://box.lan/ollama")),
            ("\"http://box.lan:1/v1\"", Some("http://box.lan:1")),
            ("ftp://box", None),
            ("a b", None),
        ];
        for (host, expect) in rows {
            assert_eq!(of(&[("OLLAMA_HOST", host)]).of_program(Asks::Ollama), expect, "{host}");
        }
    }

    #[test]
    fn our_own_variable_says_where_or_not_at_all() {
        let rows = [("", true), ("off", false), ("OFF", false), ("0", false), ("on", true), ("x=y", true)];
        for (value, expect) in rows {
            assert_eq!(of(&[("OPENCLAW_LOCAL_MODELS", value)]).looked_for, expect, "{value}");
        }
        let several = of(&[
            ("OLLAMA_HOST", "h"),
            (
                "OPENCLAW_LOCAL_MODELS",
                "LMStudio=http://a:1/v1/, vllm = https://b , venice=http://c,llamacpp=x,=,ollama=http://d:2",
            ),
        ]);
        let found = [Asks::Ollama, Asks::LmStudio, Asks::LlamaCpp, Asks::Vllm].map(|p| several.of_program(p));
        assert_eq!(found, [Some("http://d:2"), Some("http://a:1"), None, Some("https://b")]);
        assert_eq!(several.of_program(Asks::Venice), None, "it is nobody's own machine");
    }
}
