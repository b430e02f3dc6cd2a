//! The files of `gateway.controlUi.root`: a page that somebody else built, such as OpenClaw's own, in place of ours.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use axum::body::Body;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Response, StatusCode};
use openclaw_agent::place::Place;
use openclaw_config::Config;
use tokio_util::io::ReaderStream;

use super::http::typed;

/// The page.
pub(super) const INDEX: &str = "index.html";
/// A page is read whole, because something is put into it; a larger file is not a page.
const LARGEST_PAGE: u64 = 1024 * 1024;

/// Media types by the end of a name; of other files nothing is said.
const MEDIA_TYPES: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json; charset=utf-8"),
    ("map", "application/json; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("wasm", "application/wasm"),
];

/// The directory, where one is configured.
pub(crate) fn root(config: &Config) -> Option<PathBuf> {
    let configured = config.gateway.control_ui.root.as_deref().map(str::trim).filter(|root| !root.is_empty());
    configured.map(|root| config.environment().expand_path(root))
}

/// The directory, if it is configured and has no page.
pub(crate) fn without_page(config: &Config) -> Option<PathBuf> {
    root(config).filter(|root| !root.join(INDEX).is_file())
}

/// A file as it is, as it is read.
pub(super) async fn file(root: PathBuf, path: &str) -> Option<Response<Body>> {
    if path.is_empty() || path == INDEX {
        return None;
    }
    let (media_type, path) = (media_type(path), path.to_owned());
    let opened = tokio::task::spawn_blocking(move || {
        let file = open(&root, &path)?;
        let bytes = file.metadata().ok()?.len();
        Some((file, bytes))
    });
    let (file, bytes) = opened.await.ok().flatten()?;
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file)));
    let mut response = typed(StatusCode::OK, media_type, body);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    Some(response)
}

/// The text of the page.
pub(super) async fn page(root: PathBuf) -> Option<String> {
    let read = move || {
        let head = Place::within(&root, Path::new(INDEX), INDEX).ok()?.read_head(LARGEST_PAGE).ok()?;
        String::from_utf8(head.bytes).ok()
    };
    tokio::task::spawn_blocking(read).await.ok().flatten()
}

fn open(root: &Path, path: &str) -> Option<File> {
    let inside = Path::new(path);
    let is_plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| Place::within(root, inside, path).ok()?.open().ok()).flatten()
}

fn media_type(path: &str) -> &'static str {
    let end = Path::new(path).extension().and_then(|end| end.to_str()).unwrap_or_default();
    let found = MEDIA_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(end));
    found.map_or("application/octet-stream", |(_, media_type)| media_type)
}
