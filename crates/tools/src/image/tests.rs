use std::io::Cursor;
use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, RgbImage};
use openclaw_agent::host::{Host, HostFuture, ImageAttempt, ImagesHost, SessionsHost};
use openclaw_config::settings::WebTools;
use parking_lot::Mutex;

use super::*;
use crate::path::Confinement;
use crate::path::Resolver;
use crate::testing;
use crate::web::site::Site;

/// Recorded question to an image model: question, kind and width of the image, model.
type Asked = (String, String, u32, Option<String>);

/// An image model that sees a cat in everything.
#[derive(Default)]
struct Eyes(Mutex<Vec<Asked>>);

impl Host for Eyes {
    fn sessions(&self) -> Option<&dyn SessionsHost> {
        None
    }

    fn images(&self) -> Option<&dyn ImagesHost> {
        Some(self)
    }
}

impl ImagesHost for Eyes {
    fn look<'a>(&'a self, question: ImageQuestion<'a>) -> HostFuture<'a, ImageAnswer> {
        let bytes = STANDARD.decode(&question.image.data).unwrap();
        let width = image::load_from_memory(&bytes).unwrap().width();
        let model = question.model.map(str::to_owned);
        self.0.lock().push((question.prompt.to_owned(), question.image.mime_type, width, model));
        let failed =
            ImageAttempt { provider: "a".to_owned(), model: "b".to_owned(), error: "busy".to_owned() };
        let answer =
            ImageAnswer { text: "A cat.".to_owned(), model: "c/d".to_owned(), attempts: vec![failed] };
        Box::pin(async move { Ok(answer) })
    }
}

struct Bench {
    dir: tempfile::TempDir,
    eyes: Arc<Eyes>,
    setup: Setup,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setup = testing::setup(testing::web(&WebTools::default()));
        Self { dir, eyes: Arc::default(), setup }
    }

    /// Creates a bench whose file tools are confined to its directory.
    fn held() -> Self {
        let mut bench = Self::new();
        bench.setup.confinement = Confinement::Within(bench.dir.path().to_owned());
        bench
    }

    fn with(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    async fn call(&self, args: Value) -> Result<ToolOutput, String> {
        let host = Arc::<Eyes>::clone(&self.eyes);
        let context = ToolContext { host, ..testing::context(self.dir.path().to_owned()) };
        look(&self.setup, Args(args), context).await.map_err(|error| error.to_string())
    }

    /// The details of a call that is answered.
    async fn details(&self, args: Value) -> Value {
        let output = self.call(args).await.unwrap();
        assert_eq!(output.content, ToolOutput::text("A cat.").content);
        output.details.unwrap()
    }
}

fn picture(width: u32, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    RgbImage::new(width, 4).write_to(&mut out, format).unwrap();
    out.into_inner()
}

fn png(width: u32) -> Vec<u8> {
    picture(width, ImageFormat::Png)
}

#[tokio::test]
async fn an_image_is_found_and_asked_about() {
    let bench = Bench::new();
    let path = bench.with("a b.png", &png(5));
    bench.with("@c.png", &png(7));
    let url = format!("file://{}", path.display()).replace(' ', "%20");
    let data = format!("data:image/png;base64,{}", STANDARD.encode(png(6)));
    let attempts = json!([{"provider": "a", "model": "b", "error": "busy"}]);
    let absolute = path.display().to_string();
    let rows = [
        ("a b.png", "a b.png", 5),
        ("@a b.png", "a b.png", 5),
        ("@c.png", "@c.png", 7),
        (&absolute, &absolute, 5),
        (&url, &absolute, 5),
        (&data, "data:image/png;base64", 6),
    ];
    for (written, shown, width) in rows {
        let details = bench.details(json!({"image": written, "prompt": " What? ", "model": "opus"})).await;
        assert_eq!(details, json!({"model": "c/d", "image": shown, "attempts": attempts}), "{written}");
        let asked = bench.eyes.0.lock().pop().unwrap();
        assert_eq!(asked, ("What?".to_owned(), "image/png".to_owned(), width, Some("opus".to_owned())));
    }
    bench.details(json!({"image": "a b.png"})).await;
    assert_eq!(bench.eyes.0.lock()[0].0, "Describe the image.");
}

#[tokio::test]
async fn what_can_not_be_looked_at_is_refused_clearly() {
    let bench = Bench::new();
    bench.with("a.pdf", b"%PDF-1.7 words");
    bench.with("a.txt", b"words");
    bench.with("empty.png", b"");
    bench.with("broken.png", b"\x89PNG\r\n\x1a\n and then nothing of the kind");
    let kind = |kind: &str| {
        format!("Unsupported media type: {kind}. PNG, JPEG, GIF and WebP images can be looked at.")
    };
    let rows = [
        (json!({}), "image required".to_owned()),
        (json!({"image": " "}), "image required".to_owned()),
        (json!({"image": "none.png"}), "File not found: none.png".to_owned()),
        (json!({"image": "a.pdf"}), kind("document (PDF)")),
        (json!({"image": "a.txt"}), kind("unknown")),
        (json!({"image": "empty.png"}), kind("empty file")),
        (json!({"image": "data:text/plain;base64,AA=="}), "Unsupported data URL type: text/plain".to_owned()),
        (json!({"image": "http://127.0.0.1:1/a.png"}), "Blocked: private/internal IP address".to_owned()),
        (json!({"image": "http://localhost/a.png"}), "Blocked hostname: localhost".to_owned()),
    ];
    for (args, expect) in rows {
        assert_eq!(bench.call(args.clone()).await.unwrap_err(), expect, "{args}");
    }
    assert!(bench.call(json!({"image": "broken.png"})).await.is_err());
    let output = bench.call(json!({"image": "ftp://e.org/a.png"})).await.unwrap();
    let text = "Unsupported image reference: ftp://e.org/a.png. Use a file path, a file:// URL, a data: URL, or an http(s) URL.";
    let details = json!({"error": "unsupported_image_reference", "image": "ftp://e.org/a.png"});
    assert_eq!(output, ToolOutput { details: Some(details), ..ToolOutput::text(text) });
    assert!(bench.eyes.0.lock().is_empty());
}

#[tokio::test]
async fn a_large_image_is_made_smaller() {
    let bench = Bench::new();
    bench.with("wide.png", &png(3000));
    let mut noisy = RgbImage::new(400, 400);
    let mut seed = 1_u32;
    for pixel in noisy.pixels_mut() {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        pixel.0 = [(seed >> 24) as u8, (seed >> 16) as u8, (seed >> 8) as u8];
    }
    let mut out = Cursor::new(Vec::new());
    noisy.write_to(&mut out, ImageFormat::Png).unwrap();
    bench.with("noisy.png", out.get_ref());
    for (args, mime, width) in [
        (json!({"image": "wide.png"}), "image/jpeg", 2000),
        (json!({"image": "noisy.png"}), "image/png", 400),
        (json!({"image": "noisy.png", "maxBytesMb": 0.2}), "image/jpeg", 400),
        (json!({"image": "noisy.png", "maxBytesMb": -1}), "image/png", 400),
    ] {
        bench.details(args.clone()).await;
        let (_, kind, wide, _) = bench.eyes.0.lock().pop().unwrap();
        assert_eq!((kind.as_str(), wide), (mime, width), "{args}");
    }
    let error = bench.call(json!({"image": "noisy.png", "maxBytesMb": 0.0001})).await.unwrap_err();
    assert!(error.starts_with("Image could not be reduced below "), "{error}");
}

#[tokio::test]
async fn a_sandbox_has_its_own_files_alone() {
    let bench = Bench::held();
    bench.with("a.png", &png(5));
    bench.with("media/inbound/sent.png", &png(7));
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.png");
    std::fs::write(&secret, png(9)).unwrap();
    std::os::unix::fs::symlink(&secret, bench.dir.path().join("link.png")).unwrap();

    assert_eq!(bench.details(json!({"image": "a.png"})).await["image"], "a.png");
    for named in ["/home/u/.openclaw/media/inbound/sent.png", "sent.png", "file:///tmp/sent.png"] {
        let details = bench.details(json!({"image": named})).await;
        assert_eq!(details["image"], "media/inbound/sent.png");
        assert_eq!(details["rewrittenFrom"], named.trim_start_matches("file://"));
    }
    let before = bench.eyes.0.lock().len();
    let web = bench.call(json!({"image": "https://e.org/a.png"})).await.unwrap_err();
    assert_eq!(web, "Sandboxed image tool does not allow remote URLs.");
    let escape = bench.call(json!({"image": secret})).await.unwrap_err();
    assert!(escape.starts_with("Path escapes sandbox root ("), "{escape}");
    let link = bench.call(json!({"image": "link.png"})).await.unwrap_err();
    assert!(link.starts_with("Symlink not allowed in sandbox path"), "{link}");
    assert_eq!(bench.eyes.0.lock().len(), before);
}

fn site(path: &str) -> Response {
    match path {
        "/a.png" => png(8).into_response(),
        "/page" => "<html>".into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test]
async fn an_image_of_the_web_is_fetched() {
    let site = Site::serve(site).await;
    let mut bench = Bench::new();
    bench.setup.web.allowed_hosts = Arc::from([format!("127.0.0.1:{}", site.port)]);
    let details = bench.details(json!({"image": format!("@{}", site.at("/a.png"))})).await;
    assert_eq!(details["image"], site.at("/a.png"));
    assert_eq!(bench.eyes.0.lock()[0].2, 8);
    let page = bench.call(json!({"image": site.at("/page")})).await.unwrap_err();
    assert!(page.starts_with("Unsupported media type: unknown."), "{page}");
    let missing = bench.call(json!({"image": site.at("/none.png")})).await.unwrap_err();
    assert_eq!(missing, "The image could not be fetched: the server answered 404");
}

#[test]
fn the_home_is_where_a_tilde_points() {
    let resolver = Resolver::new("/home/o".into(), "/ws".into(), Confinement::Host);
    let Some(Reference::Path(path)) = Reference::read("@~/a.png") else { panic!("no path") };
    assert_eq!(resolver.absolute(&path), PathBuf::from("/home/o/a.png"));
}
