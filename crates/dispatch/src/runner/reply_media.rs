//! The files of a reply, brought into the gateway's own storage: what the agent does with them afterwards changes no answer that
//! waits to be sent.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use openclaw_agent::ReplyPayload;
use openclaw_channels::AnswerMedia;
use openclaw_sessions::ids;

use super::Runner;
use crate::reply::pipeline::media;

/// Where they are kept, below the state directory.
const FOLDER: &str = "media/outbound";
/// Largest file that is copied, in bytes: more than any platform takes.
const LARGEST: u64 = 100 * 1_000_000;
/// Bytes that tell what a file is.
const HEAD: u64 = 4096;

/// The files of one reply.
#[derive(Debug, Default)]
pub(super) struct LoadedMedia {
    pub(super) media: Vec<AnswerMedia>,
    /// What people are told of those that could not be had, line by line.
    pub(super) notes: Option<String>,
}

impl Runner {
    /// Copies files that somebody with access to this machine names, wherever they are.
    pub(crate) async fn load_files(&self, names: Vec<String>) -> Result<Vec<AnswerMedia>, String> {
        let folder = self.deps.state_dir.join(FOLDER);
        let loading =
            move || names.into_iter().map(|name| copied(&name, Path::new(&name), &folder)).collect();
        tokio::task::spawn_blocking(loading).await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Copies what a payload names. A path is one in the workspace.
    pub(super) async fn load_media(&self, payload: &ReplyPayload, workspace: &Path) -> LoadedMedia {
        let names = media(payload);
        if names.is_empty() {
            return LoadedMedia::default();
        }
        let (folder, workspace) = (self.deps.state_dir.join(FOLDER), workspace.to_path_buf());
        let loading =
            move || names.into_iter().map(|name| load(&name, &workspace, &folder)).collect::<Vec<_>>();
        let loaded = tokio::task::spawn_blocking(loading).await.unwrap_or_default();
        let (mut media, mut notes) = (Vec::new(), Vec::new());
        for one in loaded {
            match one {
                Ok(file) => media.push(file),
                Err(note) => notes.push(note),
            }
        }
        LoadedMedia { media, notes: (!notes.is_empty()).then(|| notes.join("\n")) }
    }
}

/// A file of the workspace, copied; or what is told in its place.
fn load(name: &str, workspace: &Path, folder: &Path) -> Result<AnswerMedia, String> {
    if is_address(name) {
        return Err(name.to_owned());
    }
    let Some(path) = within(workspace, name) else {
        return Err(format!("(file {name} was not sent: it is not in the workspace)"));
    };
    copied(name, &path, folder).map_err(|why| format!("({why})"))
}

fn is_address(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// A file, copied.
fn copied(name: &str, path: &Path, folder: &Path) -> Result<AnswerMedia, String> {
    let failed = |why: &str| format!("file {name} was not sent: {why}");
    if is_address(name) {
        return Err(failed("files are not fetched from the net yet; name one on this machine"));
    }
    let facts = std::fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if !facts.is_file() {
        return Err(failed("it is no file"));
    }
    if facts.len() > LARGEST {
        return Err(failed("it is larger than 100 MB"));
    }
    std::fs::create_dir_all(folder).map_err(|error| failed(&error.to_string()))?;
    let extension = path.extension().and_then(|extension| extension.to_str());
    let copy = folder.join(match extension {
        Some(extension) => format!("{}.{extension}", ids::uuid()),
        None => ids::uuid().to_string(),
    });
    let size = std::fs::copy(path, &copy).map_err(|error| failed(&error.to_string()))?;
    let shown = path.file_name().and_then(|name| name.to_str()).unwrap_or("file").to_owned();
    Ok(AnswerMedia { mime: mime(&copy), path: copy, name: shown, size })
}

/// What the content says it is.
fn mime(path: &Path) -> String {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let found = read.ok().and_then(|_| infer::get(&head));
    found.map_or("application/octet-stream", |kind| kind.mime_type()).to_owned()
}

/// The path of a name in a directory, if it stays there, links followed.
fn within(directory: &Path, name: &str) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    let path = directory.join(name).canonicalize().ok()?;
    path.starts_with(&directory).then_some(path)
}
