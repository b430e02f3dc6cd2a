//! Form of a gateway address.

use tokio_tungstenite::tungstenite::http::Uri;

/// URL schemes of an address.
const SCHEMES: [&str; 2] = ["ws", "wss"];

/// Reason why a text is no address of a gateway; `None` if it is one.
pub(crate) fn problem(url: &str) -> Option<String> {
    let uri: Uri = match url.parse() {
        Ok(uri) => uri,
        Err(error) => return Some(format!("{error}; {}", form(url))),
    };
    let is_fine = uri.scheme_str().is_some_and(|scheme| SCHEMES.contains(&scheme)) && uri.host().is_some();
    (!is_fine).then(|| form(url))
}

/// Corrected form of the address.
fn form(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some(("https" | "wss", rest)) => ("wss", rest),
        Some((_, rest)) => ("ws", rest),
        None => ("ws", url),
    };
    let is_host = !rest.is_empty() && format!("{scheme}://{rest}").parse::<Uri>().is_ok();
    let example = if is_host { format!("{scheme}://{rest}") } else { "wss://gateway.example.com".to_owned() };
    format!("an address begins with ws:// or wss://, for example {example}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_ws_or_wss_and_others_are_shown_the_form() {
        for url in ["ws://127.0.0.1:18789", "wss://example.com/ws", "ws://[::1]:1", "wss://host?x=1"] {
            assert_eq!(problem(url), None, "{url}");
        }
        let rows = [
            ("http://x", "for example ws://x"),
            ("https://x:1/ws", "for example wss://x:1/ws"),
            ("foo", "for example ws://foo"),
            ("host:18789", "for example ws://host:18789"),
            ("ws://", "for example wss://gateway.example.com"),
            ("two words", "for example wss://gateway.example.com"),
        ];
        for (url, expect) in rows {
            let why = problem(url).unwrap_or_default();
            assert!(why.ends_with(expect), "{url}: {why}");
        }
    }
}
