//! A site on this machine, for tests.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use parking_lot::Mutex;

/// What a path is answered.
pub(crate) type SiteHandler = fn(&str) -> Response;

/// A site on this machine, and what it was asked.
pub(crate) struct Site {
    pub(crate) port: u16,
    /// Path, headers and body of each request.
    pub(crate) asked: Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>,
    _server: tokio::task::JoinHandle<()>,
}

impl Site {
    pub(crate) async fn serve(answer: SiteHandler) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let handler = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            noted.lock().push((uri.to_string(), headers, body));
            let response = answer(&uri.to_string());
            async move { response }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let app = Router::new().fallback(handler);
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { port, asked, _server: server }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().iter().map(|(path, ..)| path.clone()).collect()
    }
}
