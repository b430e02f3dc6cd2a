//! The web UI: built assets from `ui/dist`, part of the binary (spec `gateway-protocol.md` §10.5, `operations.md` §9.1).

use std::path::PathBuf;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use openclaw_config::Config;
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

use super::http::{text_response, typed};
use super::own_page;
use crate::web_chat::base_path;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
struct Assets;

const MISSING_OWN: &str = "There is no index.html in the directory that gateway.controlUi.root names.";
const MISSING: &str = "Control UI assets not found. Build them with `cargo xtask generate`.";

/// Target of a path of the UI.
#[derive(Debug, PartialEq, Eq)]
enum UiRoute<'a> {
    /// A file, or the page when there is none of this name.
    FileOrPage(&'a str),
    /// A file; a missing one is not found, since a page in its place only confuses browsers.
    Asset(&'a str),
    /// The avatar of an agent.
    Avatar(&'a str),
    /// Redirects to the base path with a slash.
    Redirect,
    /// No page has this path.
    NotFound,
}

/// Answers a request to the UI.
pub(crate) async fn respond(method: &Method, uri: &Uri, config: &Config) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return text_response(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    }
    if !config.gateway.control_ui.is_enabled() {
        return text_response(StatusCode::NOT_FOUND, "Not Found");
    }
    let base = base_path(config.gateway.control_ui.base_path.as_deref());
    let root = own_page::root(config);
    let file = async |path: &str| match root.clone() {
        Some(root) => own_page::file(root, path).await,
        None => file(path),
    };
    let response = match target(&base, uri.path()) {
        UiRoute::FileOrPage(path) => match file(path).await {
            Some(file) => file,
            None => page(config, &base, root).await,
        },
        UiRoute::Asset(path) => file(path).await.unwrap_or_else(not_found),
        UiRoute::Avatar(_)
            if uri.query().is_some_and(|query| query.split('&').any(|item| item == "meta=1")) =>
        {
            typed(StatusCode::OK, "application/json; charset=utf-8", r#"{"avatarUrl":null}"#.into())
        }
        UiRoute::Avatar(_) | UiRoute::NotFound => not_found(),
        UiRoute::Redirect => redirect(&base, uri.query()),
    };
    hardened(response)
}

fn target<'a>(base: &str, path: &'a str) -> UiRoute<'a> {
    if base.is_empty() && (path == "/ui" || path.starts_with("/ui/")) {
        return UiRoute::NotFound;
    }
    let Some(rest) = path.strip_prefix(base) else { return UiRoute::NotFound };
    match rest {
        "" => return UiRoute::Redirect,
        rest if !rest.starts_with('/') => return UiRoute::NotFound,
        _ => {}
    }
    if let Some(agent) = rest.strip_prefix("/avatar/") {
        return if is_agent_id(agent) { UiRoute::Avatar(agent) } else { UiRoute::NotFound };
    }
    // A nested route of the page asks for assets relative to itself.
    match rest.rfind("/assets/") {
        Some(at) => rest.get(at + 1..).map_or(UiRoute::NotFound, UiRoute::Asset),
        None => UiRoute::FileOrPage(rest.trim_start_matches('/')),
    }
}

fn is_agent_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&id.len()) && id.chars().all(plain) && !id.starts_with(['-', '_'])
}

/// An embedded file as it is. The assets are looked up by name, so no path leads out of them.
fn file(path: &str) -> Option<Response<Body>> {
    if path.is_empty() || path == "index.html" {
        return None;
    }
    let file = Assets::get(path)?;
    let media_type = match file.metadata.mimetype() {
        "text/javascript" => "text/javascript; charset=utf-8".to_owned(),
        text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        other => other.to_owned(),
    };
    let body = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Body::from(bytes),
        std::borrow::Cow::Owned(bytes) => Body::from(bytes),
    };
    Some(typed(StatusCode::OK, &media_type, body))
}

/// The page, with what it has to know before it runs.
async fn page(config: &Config, base: &str, root: Option<PathBuf>) -> Response<Body> {
    let script = settings_script(config, base);
    let Some(root) = root else { return built_in_page(&script) };
    let page = own_page::page(root).await.map(|html| with_script(&html, &script));
    page.unwrap_or_else(|| text_response(StatusCode::SERVICE_UNAVAILABLE, MISSING_OWN))
}

fn with_script(html: &str, script: &str) -> Response<Body> {
    let html = html.replacen("</head>", &format!("<script>{script}</script></head>"), 1);
    typed(StatusCode::OK, "text/html; charset=utf-8", html.into())
}

/// Built-in page, of which the scripts it runs are known.
fn built_in_page(script: &str) -> Response<Body> {
    let Some(index) = Assets::get("index.html") else {
        return text_response(StatusCode::SERVICE_UNAVAILABLE, MISSING);
    };
    let mut response = with_script(&String::from_utf8_lossy(&index.data), script);
    if let Ok(policy) = HeaderValue::from_str(&content_policy(script)) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn settings_script(config: &Config, base: &str) -> String {
    let assistant = &config.ui.assistant;
    let name = assistant.name.as_deref().unwrap_or("Assistant");
    let avatar = assistant.avatar.as_deref().unwrap_or("A");
    // `<` is escaped so that no name ends the script.
    let text = |value: &str| serde_json::Value::from(value).to_string().replace('<', "\\u003c");
    format!(
        "window.__OPENCLAW_CONTROL_UI_BASE_PATH__={};window.__OPENCLAW_ASSISTANT_NAME__={};\
         window.__OPENCLAW_ASSISTANT_AVATAR__={};",
        text(base),
        text(name),
        text(avatar),
    )
}

/// Only our own scripts and the one inlined above run; nobody frames the page.
fn content_policy(script: &str) -> String {
    let hash = STANDARD.encode(Sha256::digest(script));
    format!(
        "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
         script-src 'self' 'sha256-{hash}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}

fn not_found() -> Response<Body> {
    text_response(StatusCode::NOT_FOUND, "Not Found")
}

fn redirect(base: &str, query: Option<&str>) -> Response<Body> {
    let to = query.map_or_else(|| format!("{base}/"), |query| format!("{base}/?{query}"));
    let mut response = text_response(StatusCode::FOUND, "");
    if let Ok(to) = HeaderValue::from_str(&to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

/// Headers that every answer of the UI has.
fn hardened(mut response: Response<Body>) -> Response<Body> {
    const HEADERS: &[(HeaderName, &str)] = &[
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("frame-ancestors 'none'"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `operations.md` §15.4 and `gw-http-control-ui`.
    #[test]
    fn paths_lead_to_files_the_page_or_nowhere() {
        let rows = [
            ("", "/", UiRoute::FileOrPage("")),
            ("", "/chat", UiRoute::FileOrPage("chat")),
            ("", "/favicon.svg", UiRoute::FileOrPage("favicon.svg")),
            ("", "/../../etc/passwd", UiRoute::FileOrPage("../../etc/passwd")),
            ("", "/ui", UiRoute::NotFound),
            ("", "/ui/x", UiRoute::NotFound),
            ("", "/assets/missing.js", UiRoute::Asset("assets/missing.js")),
            ("", "/avatar/main", UiRoute::Avatar("main")),
            ("", "/avatar/bad%20id", UiRoute::NotFound),
            ("", "/avatar/a/b", UiRoute::NotFound),
            ("/ui", "/ui", UiRoute::Redirect),
            ("/ui", "/ui/sessions", UiRoute::FileOrPage("sessions")),
            ("/ui", "/ui/x/assets/index.js", UiRoute::Asset("assets/index.js")),
            ("/ui", "/other", UiRoute::NotFound),
            ("/ui", "/uix", UiRoute::NotFound),
        ];
        for (base, path, expect) in rows {
            assert_eq!(target(base, path), expect, "{base} {path}");
        }
    }

    #[test]
    fn the_page_tells_its_base_path_and_allows_just_its_own_script() {
        let script = settings_script(&Config::default(), "/ui");
        assert_eq!(built_in_page(&script).status(), StatusCode::OK);
        assert!(script.starts_with(r#"window.__OPENCLAW_CONTROL_UI_BASE_PATH__="/ui";"#));
        assert!(content_policy(&script).contains("frame-ancestors 'none'"));
    }

    #[test]
    fn no_configured_name_ends_the_script() {
        let mut config = Config::default();
        config.ui.assistant.name = Some("</script><script>alert(1)".to_owned());
        assert!(!settings_script(&config, "").contains("</script>"));
    }
}
