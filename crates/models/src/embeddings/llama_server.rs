//! Models in GGUF files, run by an installed `llama-server` as a child of this process (decision
//! 39: no llama.cpp in the binary).

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use openclaw_embedding::{BatchLimits, EmbedError, EmbedderIdentity};
use openclaw_protocol::printable::one_line;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::{ClientParts, EmbeddingClient};
use super::endpoint::Endpoint;
use super::limits::{ServerKind, limits_of};
use super::provider::EmbeddingProvider;
use super::select::NoEmbeddings;
use super::settings::LocalEmbeddings;
use crate::catalog::credential_variables;
use crate::net::{Headers, Http};
use crate::variables::Variables;

/// Name of the program.
const PROGRAM: &str = "llama-server";
/// Model of `provider: "local"` where none is named, as in OpenClaw.
const DEFAULT_MODEL: &str = "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf";
/// Directory below the home in which OpenClaw keeps files with `hf:` names.
const CACHE: &str = ".node-llama-cpp/models";
/// Time in which the program must have loaded its model.
const START_DEADLINE: Duration = Duration::from_secs(120);
/// Time between two questions whether it has.
const POLL: Duration = Duration::from_millis(100);
/// Time before a start that failed is tried again.
const RESTART_PAUSE: Duration = Duration::from_secs(30);
/// Time in which the program ends when it is stopped.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// Tokens of the longest text, and of a batch: more than a chunk has.
const TOKENS: &str = "2048";
/// Characters of its last line that are shown.
const SHOWN: usize = 300;
/// Advice for a machine without the program.
const ADVICE: &str = "Install llama.cpp's llama-server and put it on the PATH of the gateway, or set \
     agents.defaults.memorySearch.provider to openai and its remote.baseUrl and model to a running server, or name a model \
     directory (config.json, model.safetensors, \
     tokenizer.json) in agents.defaults.memorySearch.local.modelPath.";

/// A model on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LocalModel {
    Directory(PathBuf),
    Gguf {
        file: PathBuf,
        /// As the configuration names it.
        named: String,
    },
}

impl LocalModel {
    /// True if it is named by its path.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Directory(_) => true,
            Self::Gguf { named, .. } => !named.starts_with("hf:"),
        }
    }
}

/// Finds the model that `memorySearch.local` names.
///
/// # Errors
/// When it is not there; says what to do.
pub(super) fn local_model(
    settings: &LocalEmbeddings,
    variables: &Variables,
) -> Result<LocalModel, NoEmbeddings> {
    let named = settings.model_path().unwrap_or(DEFAULT_MODEL);
    if named.starts_with("http://") || named.starts_with("https://") {
        let reason = format!("{named} is not downloaded; download it and set local.modelPath to the file");
        return Err(unavailable(&reason));
    }
    if let Some(name) = named.strip_prefix("hf:") {
        let file = cached(name, settings, variables).ok_or_else(|| {
            unavailable(&format!(
                "{named} is not on this machine; download it and set local.modelPath to the file"
            ))
        })?;
        return Ok(LocalModel::Gguf { file, named: named.to_owned() });
    }
    let path = PathBuf::from(named);
    if path.is_dir() {
        return Ok(LocalModel::Directory(path));
    }
    if path.is_file() {
        return Ok(LocalModel::Gguf { file: path, named: named.to_owned() });
    }
    Err(unavailable(&format!("No model file found at \"{named}\"")))
}

/// A file that was downloaded under an `hf:` name: OpenClaw puts the owner's name before it.
fn cached(name: &str, settings: &LocalEmbeddings, variables: &Variables) -> Option<PathBuf> {
    let file = name.rsplit('/').next().filter(|file| !file.is_empty())?;
    let configured = settings.cache_dir.as_deref().map(str::trim).filter(|dir| !dir.is_empty());
    let dir = match configured {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(variables.get("HOME")?).join(CACHE),
    };
    let ending = format!("_{file}");
    let is_it = |path: &PathBuf| {
        let known = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        path.is_file() && (known == file || known.ends_with(&ending))
    };
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter().find(is_it)
}

fn unavailable(reason: &str) -> NoEmbeddings {
    NoEmbeddings::new(format!("Local embeddings unavailable.\nReason: {reason}\n{ADVICE}"))
}

/// A `llama-server` that is started when it is first needed. Clones are the same one; the program
/// ends with the last of them.
#[derive(Debug, Clone)]
pub struct LlamaServer {
    shared: Arc<LlamaState>,
}

#[derive(Debug)]
struct LlamaState {
    program: PathBuf,
    model: PathBuf,
    http: Http,
    identity: EmbedderIdentity,
    child: Mutex<ChildState>,
}

#[derive(Debug, Default)]
enum ChildState {
    #[default]
    Stopped,
    RunningServer(Box<RunningServer>),
    Failed {
        at: Instant,
        message: String,
    },
}

#[derive(Debug)]
struct RunningServer {
    child: Child,
    client: EmbeddingClient,
    /// Reads what the program says, so that it is never stopped by a full pipe.
    _reader: JoinSet<()>,
}

/// The last line that the program wrote.
type LastLine = Arc<parking_lot::Mutex<String>>;

impl LlamaServer {
    /// Finds the program on the `PATH`. Starts nothing.
    pub(super) fn of(
        model: PathBuf,
        named: &str,
        http: Http,
        variables: &Variables,
    ) -> Result<Self, NoEmbeddings> {
        let path = variables.get("PATH").unwrap_or_default();
        let mut dirs = std::env::split_paths(path);
        let program = dirs.find_map(|dir| Some(dir.join(PROGRAM)).filter(|program| program.is_file()));
        let program = program.ok_or_else(|| {
            unavailable(&format!("{} needs {PROGRAM}, which is not installed", model.display()))
        })?;
        let identity = EmbedderIdentity::plain(EmbeddingProvider::Local.id(), named);
        let child = Mutex::default();
        Ok(Self { shared: Arc::new(LlamaState { program, model, http, identity, child }) })
    }

    /// Provider and model of the vectors.
    pub fn identity(&self) -> &EmbedderIdentity {
        &self.shared.identity
    }

    /// Bounds of one request, and of its time.
    pub fn limits(&self) -> BatchLimits {
        limits_of(EmbeddingProvider::Local, ServerKind::OnThisMachine)
    }

    /// As [`EmbeddingClient::embed_query`]; starts the program first if it is not running.
    ///
    /// # Errors
    /// As there, and if the program can't be started.
    pub async fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.client().await?.embed_query(text).await
    }

    /// As [`EmbeddingClient::embed_batch`]; starts the program first if it is not running.
    ///
    /// # Errors
    /// As there, and if the program can't be started.
    pub async fn embed_batch<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.client().await?.embed_batch(texts).await
    }

    /// Ends the program, as after some idle minutes. The next text starts it anew.
    pub async fn stop(&self) {
        let mut state = self.shared.child.lock().await;
        if let ChildState::RunningServer(running) = &mut *state {
            let _ = running.child.start_kill();
            if tokio::time::timeout(STOP_DEADLINE, running.child.wait()).await.is_err() {
                tracing::warn!("{PROGRAM} does not end");
            }
        }
        *state = ChildState::Stopped;
    }

    /// The client of a running program. One caller starts it, others wait.
    async fn client(&self) -> Result<EmbeddingClient, EmbedError> {
        let mut state = self.shared.child.lock().await;
        match &mut *state {
            ChildState::RunningServer(running) => match running.child.try_wait() {
                Ok(None) => return Ok(running.client.clone()),
                Ok(Some(status)) => tracing::warn!(%status, "{PROGRAM} has ended; starting it anew"),
                Err(error) => tracing::warn!(%error, "{PROGRAM}"),
            },
            ChildState::Failed { at, message } if at.elapsed() < RESTART_PAUSE => {
                return Err(EmbedError::Unavailable { message: message.clone() });
            }
            ChildState::Failed { .. } | ChildState::Stopped => {}
        }
        *state = ChildState::Stopped;
        match self.shared.start().await {
            Ok(running) => {
                let client = running.client.clone();
                *state = ChildState::RunningServer(Box::new(running));
                Ok(client)
            }
            Err(reason) => {
                let message = unavailable(&reason).to_string();
                *state = ChildState::Failed { at: Instant::now(), message: message.clone() };
                Err(EmbedError::Unavailable { message })
            }
        }
    }
}

impl LlamaState {
    /// Starts the program and waits until its model is loaded.
    async fn start(&self) -> Result<RunningServer, String> {
        let port = free_port().map_err(|error| format!("no port is free: {error}"))?;
        // Other users of this machine can reach the port, but do not know the key.
        let key = SecretString::from(format!("{:032x}", rand::random::<u128>()));
        let mut child = self
            .command(port, &key)
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", self.program.display()))?;
        let (last_line, mut reader) = (LastLine::default(), JoinSet::new());
        if let Some(stderr) = child.stderr.take() {
            reader.spawn(read_lines(stderr, Arc::clone(&last_line)));
        }
        self.wait_until_healthy(&mut child, port, &last_line).await?;
        let endpoint = Endpoint::of_child(port, key);
        let client = EmbeddingClient::new(ClientParts {
            endpoint,
            model: self.identity.model.clone(),
            identity: self.identity.clone(),
            http: self.http.clone(),
            cooldown: Arc::default(),
            keeps_key: false,
        });
        Ok(RunningServer { child, client, _reader: reader })
    }

    fn command(&self, port: u16, key: &SecretString) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--model")
            .arg(&self.model)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--embeddings"])
            .args(["--ctx-size", TOKENS, "--batch-size", TOKENS, "--ubatch-size", TOKENS])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for name in credential_variables() {
            command.env_remove(name);
        }
        // An argument could be read by every user.
        command.env("LLAMA_API_KEY", key.expose_secret());
        command
    }

    async fn wait_until_healthy(
        &self,
        child: &mut Child,
        port: u16,
        last_line: &LastLine,
    ) -> Result<(), String> {
        let until = Instant::now() + START_DEADLINE;
        let url = format!("http://127.0.0.1:{port}/health");
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                let said = last_line.lock().clone();
                return Err(format!("{PROGRAM} ended with {status} ({}): {said}", self.model.display()));
            }
            let answer = self.http.get(&url, Headers::default());
            let answer = tokio::time::timeout(STOP_DEADLINE, answer).await;
            if answer.is_ok_and(|answer| answer.is_ok_and(|incoming| incoming.status == 200)) {
                return Ok(());
            }
            if Instant::now() >= until {
                let seconds = START_DEADLINE.as_secs();
                return Err(format!("{PROGRAM} did not load {} within {seconds}s", self.model.display()));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Keeps the last line that says something; of a long one the beginning is forgotten.
async fn read_lines(mut stderr: ChildStderr, last_line: LastLine) {
    let mut bytes = vec![0_u8; 4096];
    let mut tail = String::new();
    while let Ok(read @ 1..) = stderr.read(&mut bytes).await {
        tail.push_str(&String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()));
        let line = tail.trim_end().rsplit('\n').next().unwrap_or_default();
        *last_line.lock() = one_line(line.trim()).chars().take(SHOWN).collect();
        let kept = tail.chars().rev().take(SHOWN).collect::<Vec<_>>();
        tail = kept.into_iter().rev().collect();
    }
}

/// A port of this machine that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
