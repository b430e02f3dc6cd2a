//! Files that are sent: copied into the gateway's own storage first, so that later changes to the
//! originals change no message that waits. Which files may be taken depends on the caller.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_agent::place::off_limits::{OffLimits, Purpose};
use openclaw_agent::place::{Place, PlaceError};
use openclaw_channels::AnswerMedia;
use openclaw_config::{Config, without_dots};
use openclaw_delivery::outbox::files::FOLDER;
use openclaw_models::net::public;
use openclaw_sessions::ids;

/// Largest file that is taken, in bytes: more than any platform takes.
const LARGEST: u64 = 100 * 1_000_000;
/// Bytes from which a file's type is told.
const HEAD: u64 = 4096;

/// Files of this machine that a client may have sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFiles {
    /// Any that the gateway can read: it may administer the gateway, which has access to this machine.
    Any,
    /// Files that the default agent may send: its workspace, the gateway's media, temporary files.
    OfAgent,
}

/// Files of this machine that may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Any file: the caller has access to this machine.
    Anywhere,
    /// Files below one of these directories, links followed. Relative names start at `base`.
    Below {
        /// Directory that relative names start at. Files below it may be taken even if it lies within the gateway's state.
        base: PathBuf,
        /// The directories.
        roots: Vec<PathBuf>,
    },
}

impl Reach {
    /// Returns a reach of nothing outside a directory.
    pub fn within(dir: &Path) -> Self {
        Self::Below { base: dir.to_owned(), roots: vec![dir.to_owned()] }
    }

    /// Returns the reach of a client.
    pub fn of_client(files: ClientFiles, state_dir: &Path, config: &Config) -> Self {
        match files {
            ClientFiles::Any => Self::Anywhere,
            ClientFiles::OfAgent => {
                let agent = config.agent(&config.default_agent());
                Self::of_agent(&agent.workspace, state_dir, config.environment().temp_dir())
            }
        }
    }

    /// Returns the reach of a workspace's agent: its workspace, the gateway's own media, temporary
    /// files. The state of the gateway is none of these, wherever it lies.
    pub fn of_agent(workspace: &Path, state_dir: &Path, temp_dir: &Path) -> Self {
        let roots = vec![workspace.to_owned(), state_dir.join("media"), temp_dir.to_owned()];
        Self::Below { base: workspace.to_owned(), roots }
    }
}

/// Takes files for one message.
#[derive(Debug, Clone)]
pub struct OutgoingFiles {
    folder: PathBuf,
    home: PathBuf,
    reach: Reach,
    off_limits: OffLimits,
    allowed_hosts: Vec<String>,
    /// Largest file that is taken, in bytes.
    largest: u64,
}

impl OutgoingFiles {
    /// Returns the files that a caller with this reach may send.
    pub fn new(state_dir: &Path, config: &Arc<Config>, reach: Reach) -> Self {
        Self {
            folder: state_dir.join(FOLDER),
            home: config.environment().home(),
            reach,
            off_limits: OffLimits::of(config),
            allowed_hosts: config.messages.media_allow_hosts.clone(),
            largest: LARGEST,
        }
    }

    /// Limits the size of an answer's files to so many megabytes (`agents.defaults.mediaMaxMb`).
    pub fn at_most(self, megabytes: Option<f64>) -> Self {
        let bytes = megabytes.filter(|most| *most > 0.0).map(|most| (most * 1024.0 * 1024.0) as u64);
        Self { largest: bytes.unwrap_or(LARGEST).min(LARGEST), ..self }
    }

    /// Error text for a file above the limit.
    fn too_large(&self) -> String {
        match self.largest {
            LARGEST => "it is larger than 100 MB".to_owned(),
            most => {
                format!("it is larger than {:.1} MB (agents.defaults.mediaMaxMb)", most as f64 / 1_048_576.0)
            }
        }
    }

    /// Takes a file by its name: an address of the web, or a path.
    ///
    /// # Errors
    /// Why it could not be had, for people and models.
    pub async fn take(&self, name: &str) -> Result<AnswerMedia, String> {
        let name = name.trim();
        if is_data(name) {
            return Err(DATA.to_owned());
        }
        if is_address(name) {
            return self.fetch(name).await;
        }
        let (files, name) = (self.clone(), name.to_owned());
        let taking = tokio::task::spawn_blocking(move || files.copy(&name));
        taking.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Checks that a file of this machine could be taken now; web addresses are not looked up.
    ///
    /// # Errors
    /// The reason why not, as [`OutgoingFiles::take`] says it.
    pub async fn check(&self, name: &str) -> Result<(), String> {
        let name = name.trim();
        if is_data(name) {
            return Err(DATA.to_owned());
        }
        if is_address(name) {
            return Ok(());
        }
        let (files, name) = (self.clone(), name.to_owned());
        let looking = tokio::task::spawn_blocking(move || files.open_to_take(&name).map(drop));
        looking.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Takes data that is given as base64, also as a `data:` URL.
    ///
    /// # Errors
    /// Why it can't be, for models.
    pub async fn take_buffer(
        &self,
        buffer: &str,
        name: Option<&str>,
        mime: Option<&str>,
    ) -> Result<AnswerMedia, String> {
        let (stated, encoded) =
            match buffer.trim().strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
                Some((head, encoded)) => (head.split(';').next().map(str::to_owned), encoded),
                None => (None, buffer.trim()),
            };
        let encoded: String = encoded.chars().filter(|c| !c.is_whitespace()).collect();
        if encoded.len() as u64 / 4 * 3 > LARGEST {
            return Err("buffer was not sent: it is larger than 100 MB".to_owned());
        }
        let bytes = STANDARD.decode(encoded).map_err(|_| "buffer is not base64".to_owned())?;
        let stated = mime.map(str::to_owned).or(stated).filter(|mime| !mime.is_empty());
        let (folder, name) = (self.folder.clone(), name.map(str::to_owned));
        let keeping = tokio::task::spawn_blocking(move || {
            let mut kept = CopyInProgress::begin(&folder)?;
            kept.file.write_all(&bytes)?;
            kept.finish(name.as_deref(), stated.as_deref())
        });
        let kept = keeping.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        kept.map_err(|error| format!("buffer was not sent: {error}"))
    }

    fn copy(&self, name: &str) -> Result<AnswerMedia, String> {
        let (mut file, path) = self.open_to_take(name)?;
        let copied = CopyInProgress::begin(&self.folder).and_then(|mut kept| {
            io::copy(&mut file, &mut kept.file)?;
            kept.finish(path.file_name().and_then(|name| name.to_str()), None)
        });
        copied.map_err(|error| format!("file {name} was not sent: {error}"))
    }

    /// Opens a file that is not too large; returns it with its path.
    fn open_to_take(&self, name: &str) -> Result<(File, PathBuf), String> {
        let failed = |why: &str| format!("file {name} was not sent: {why}");
        let (file, path) = self.open(name).map_err(|refused| match refused {
            FileRefusal::Outside => failed(OUTSIDE),
            FileRefusal::Unreadable(why) => failed(&why),
        })?;
        let length = file.metadata().map_err(|error| failed(&error.to_string()))?.len();
        match length {
            0 => Err(failed(EMPTY)),
            length if length > self.largest => Err(failed(&self.too_large())),
            _ => Ok((file, path)),
        }
    }

    /// Opens the file of a name. The file that was checked is the one that is opened.
    fn open(&self, name: &str) -> Result<(File, PathBuf), FileRefusal> {
        let path = self.absolute(name);
        let Reach::Below { base, roots } = &self.reach else {
            return Ok((Place::anywhere(&path)?.open()?, path));
        };
        let real = path.canonicalize().map_err(|error| match error.kind() {
            // Only for allowed directories is it told whether such a file exists.
            _ if !roots.iter().any(|root| path.starts_with(root)) => FileRefusal::Outside,
            _ => FileRefusal::Unreadable(error.to_string()),
        })?;
        for root in roots {
            let Ok(dir) = root.canonicalize() else { continue };
            let Ok(inside) = real.strip_prefix(&dir) else { continue };
            let place = Place::beneath(&dir, inside, name)?;
            self.off_limits.check(&place, base, Purpose::Read)?;
            return Ok((place.open()?, real.clone()));
        }
        Err(FileRefusal::Outside)
    }

    fn absolute(&self, name: &str) -> PathBuf {
        let name = name.strip_prefix("file://").unwrap_or(name);
        let expanded = match name.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => PathBuf::from(name),
        };
        match &self.reach {
            Reach::Below { base, .. } => without_dots(&base.join(expanded)),
            Reach::Anywhere => without_dots(&expanded),
        }
    }

    async fn fetch(&self, address: &str) -> Result<AnswerMedia, String> {
        // Parts of an address that may be a credential are not shown.
        let shown = address.split(['?', '#']).next().unwrap_or_default();
        let failed = |why: String| format!("file {shown} was not sent: {why}");
        let document = public::get(address, self.largest, &self.allowed_hosts).await;
        let mut document = document.map_err(|error| failed(error.to_string()))?;
        let begun = CopyInProgress::begin(&self.folder).map_err(|error| failed(error.to_string()))?;
        let CopyInProgress { file, path } = begun;
        let mut writer = tokio::fs::File::from_std(file);
        loop {
            match document.chunk().await {
                Ok(Some(bytes)) => {
                    let written = tokio::io::AsyncWriteExt::write_all(&mut writer, &bytes).await;
                    written.map_err(|error| failed(error.to_string()))?;
                }
                Ok(None) => break,
                Err(error) => {
                    // Half a file must not be found.
                    let _ = tokio::fs::remove_file(&path).await;
                    return Err(failed(error.to_string()));
                }
            }
        }
        let flushed = tokio::io::AsyncWriteExt::flush(&mut writer).await;
        flushed.map_err(|error| failed(error.to_string()))?;
        let file = writer.into_std().await;
        let last =
            document.url.path_segments().and_then(|mut segments| segments.next_back().map(str::to_owned));
        let name = document.name.clone().or(last).filter(|name| !name.is_empty());
        let kept = CopyInProgress { file, path };
        let stated = document.content_type.clone();
        // Finishing waits for the disk.
        let finishing = tokio::task::spawn_blocking(move || kept.finish(name.as_deref(), stated.as_deref()));
        let kept = finishing.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        kept.map_err(|error| failed(error.to_string()))
    }
}

/// Reason for not opening a file.
enum FileRefusal {
    Outside,
    Unreadable(String),
}

impl From<PlaceError> for FileRefusal {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Escapes { .. }
            | PlaceError::SymbolicLink(_)
            | PlaceError::OffLimits(_)
            | PlaceError::Hook(_) => Self::Outside,
            PlaceError::NotAFile(_) => Self::Unreadable("it is no file".to_owned()),
            PlaceError::Io(error) => Self::Unreadable(error.to_string()),
        }
    }
}

/// A file of our own that is being written.
struct CopyInProgress {
    file: File,
    path: PathBuf,
}

impl CopyInProgress {
    fn begin(folder: &Path) -> io::Result<Self> {
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            // The directory itself has to be there after a power cut, and it lies two below the state.
            for parent in folder.ancestors().skip(1).take(2) {
                sync_directory(parent)?;
            }
        }
        let path = folder.join(ids::uuid().to_string());
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { file, path })
    }

    /// Finishes the copy, under the extension of its name or of its type, because some platforms
    /// look at that. Synced, as the row that will name it is.
    fn finish(self, name: Option<&str>, stated: Option<&str>) -> io::Result<AnswerMedia> {
        let Self { file, path } = self;
        let size = file.metadata()?.len();
        if size > 0 {
            file.sync_all()?;
        }
        drop(file);
        if size == 0 {
            let _ = fs::remove_file(&path);
            return Err(io::Error::other(EMPTY));
        }
        let mut head = Vec::new();
        File::open(&path)?.take(HEAD).read_to_end(&mut head)?;
        let found = infer::get(&head);
        let stated = stated.map(|stated| stated.split(';').next().unwrap_or_default().trim().to_owned());
        let mime = found.map(|kind| kind.mime_type().to_owned()).or(stated);
        let mime =
            mime.filter(|mime| !mime.is_empty()).unwrap_or_else(|| "application/octet-stream".to_owned());
        let name = name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        let own_end = name.as_deref().map(Path::new).and_then(|name| name.extension()?.to_str());
        let end = own_end.or_else(|| found.map(|kind| kind.extension()));
        let end = end.filter(|end| end.len() <= 16 && end.chars().all(|c| c.is_ascii_alphanumeric()));
        let end = end.map(str::to_owned);
        let kept = match &end {
            Some(end) => path.with_extension(end),
            None => path.clone(),
        };
        if kept != path {
            fs::rename(&path, &kept)?;
        }
        if let Some(folder) = kept.parent() {
            sync_directory(folder)?;
        }
        let name = name.unwrap_or_else(|| match end {
            Some(end) => format!("file.{end}"),
            None => "file".to_owned(),
        });
        Ok(AnswerMedia { path: kept, mime, name, size })
    }
}

/// Syncs a directory, so that its entries survive a power cut.
fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Error text for an empty file: no platform takes one.
const EMPTY: &str = "it is empty";
/// Error text for a file outside the allowed directories, in OpenClaw's words, with advice.
const OUTSIDE: &str =
    "Local media path is not under an allowed directory. Copy the file into the workspace and send that";

/// Error text for `data:` URLs.
const DATA: &str = "data: URLs are not supported for media. Use buffer instead.";

fn is_data(name: &str) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

fn is_address(name: &str) -> bool {
    let starts =
        |scheme: &str| name.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    starts("http://") || starts("https://")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use openclaw_config::Environment;

    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
        files: OutgoingFiles,
    }

    impl Bench {
        /// A state directory in the directory for temporary files, with a workspace in it.
        fn new(reach: impl FnOnce(&Path) -> Reach) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let make = |path: &str, content: &str| {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            };
            make("state/workspace/a.txt", "in the workspace");
            make("state/media/inbound/b.txt", "in the media");
            make("state/credentials/token.json", "secret");
            make("state/openclaw.json", "{}");
            make("c.txt", "temporary");
            make("state/workspace/empty.txt", "");
            symlink(dir.path().join("state/credentials/token.json"), dir.path().join("state/workspace/link"))
                .unwrap();
            symlink(dir.path().join("c.txt"), dir.path().join("state/workspace/good")).unwrap();
            let state = dir.path().join("state").display().to_string();
            let env = Environment::new(
                [("HOME", "/nonexistent"), ("OPENCLAW_STATE_DIR", state.as_str())],
                dir.path(),
            );
            let config = Config::from_json5("{}", &env).unwrap();
            let files = OutgoingFiles::new(&dir.path().join("state"), &config, reach(dir.path()));
            Self { dir, files }
        }

        async fn says(&self, name: &str) -> String {
            let name = name.replace("DIR", &self.dir.path().display().to_string());
            match self.files.take(&name).await {
                Ok(media) => fs::read_to_string(media.path).unwrap(),
                Err(why) => why.replace(&self.dir.path().display().to_string(), "DIR"),
            }
        }
    }

    fn of_agent(dir: &Path) -> Reach {
        Reach::of_agent(&dir.join("state/workspace"), &dir.join("state"), dir)
    }

    #[tokio::test]
    async fn an_agent_sends_what_is_its_own() {
        let bench = Bench::new(of_agent);
        let outside = |name: &str| format!("file {name} was not sent: {OUTSIDE}");
        let rows = [
            ("a.txt", "in the workspace".to_owned()),
            ("./a.txt", "in the workspace".to_owned()),
            ("file://DIR/state/workspace/a.txt", "in the workspace".to_owned()),
            ("DIR/state/media/inbound/b.txt", "in the media".to_owned()),
            ("DIR/c.txt", "temporary".to_owned()),
            ("good", "temporary".to_owned()),
            ("../credentials/token.json", outside("../credentials/token.json")),
            ("DIR/state/openclaw.json", outside("DIR/state/openclaw.json")),
            ("DIR/state/credentials/token.json", outside("DIR/state/credentials/token.json")),
            ("link", outside("link")),
            ("/etc/passwd", outside("/etc/passwd")),
            ("/no/such/file", outside("/no/such/file")),
            ("~/x", outside("~/x")),
            ("empty.txt", "file empty.txt was not sent: it is empty".to_owned()),
            ("none.txt", "file none.txt was not sent: No such file or directory (os error 2)".to_owned()),
            (".", "file . was not sent: it is no file".to_owned()),
            (
                "data:image/png;base64,AA",
                "data: URLs are not supported for media. Use buffer instead.".to_owned(),
            ),
            (
                "http://127.0.0.1/a?key=1",
                "file http://127.0.0.1/a was not sent: Blocked: private/internal IP address".to_owned(),
            ),
        ];
        for (name, expect) in rows {
            let said = bench.says(name).await;
            if name == "." {
                assert!(said.starts_with("file . was not sent") || said.contains("not under"), "{said}");
                continue;
            }
            assert_eq!(said, expect, "{name}");
        }
    }

    #[tokio::test]
    async fn a_confined_agent_sends_nothing_else() {
        let bench = Bench::new(|dir| Reach::within(&dir.join("state/workspace")));
        assert_eq!(bench.says("a.txt").await, "in the workspace");
        for name in ["good", "DIR/c.txt", "DIR/state/media/inbound/b.txt"] {
            assert!(bench.says(name).await.contains("Local media path is not under"), "{name}");
        }
        let anywhere = Bench::new(|_| Reach::Anywhere);
        assert_eq!(anywhere.says("DIR/state/credentials/token.json").await, "secret");
    }

    #[tokio::test]
    async fn a_buffer_is_a_file() {
        let bench = Bench::new(of_agent);
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
        let taken = bench.files.take_buffer(png, None, None).await.unwrap();
        assert_eq!((taken.mime.as_str(), taken.name.as_str()), ("image/png", "file.png"));
        assert!(taken.path.extension().is_some_and(|end| end == "png"));
        let url = "data:text/csv;base64,YSxiCg==";
        let taken = bench.files.take_buffer(url, Some("t.csv"), None).await.unwrap();
        assert_eq!((taken.mime.as_str(), taken.name.as_str(), taken.size), ("text/csv", "t.csv", 4));
        let empty = bench.files.take_buffer("data:text/csv;base64,", None, None).await;
        assert_eq!(empty, Err("buffer was not sent: it is empty".to_owned()));
        let wrong = bench.files.take_buffer("%%%", None, None).await;
        assert_eq!(wrong, Err("buffer is not base64".to_owned()));
    }
}
