//! Fetches a file from the web for a skill, and unpacks it where it is an archive.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_models::Http;
use openclaw_models::net::public::is_public;
use openclaw_models::net::{Headers, Incoming, NetError};
use tempfile::NamedTempFile;
use url::{Host, Url};

use crate::place::{Executable, Place, PlaceError};
use crate::unpack::{Archive, UnpackError, unpack};

/// Bytes of a file; models for speech have some hundred million.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// Addresses that are asked in turn.
const MAX_REDIRECTS: usize = 5;

/// Download: source and destination.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    pub(super) url: String,
    /// The directory; is made.
    pub(super) target: PathBuf,
    /// Archive format, if the file is to be unpacked.
    pub(super) archive: Option<Archive>,
    /// Directories that are cut off the front of paths in the archive.
    pub(super) strip: usize,
}

/// Rules for allowed addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressRules {
    pub(super) https_only: bool,
    /// True if addresses of this machine or its network are refused: the skill's file could make
    /// the gateway ask there.
    pub(super) public_only: bool,
}

pub(super) const STRICT: AddressRules = AddressRules { https_only: true, public_only: true };

/// Error of a download; for people.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("\"{0}\" is not an https address")]
    Address(String),
    #[error("{0} is an address of this machine or its network; only public ones are asked")]
    NotPublic(String),
    #[error("download failed: {0}")]
    Net(#[from] NetError),
    #[error("download failed: {url} answered {status}")]
    Status { url: String, status: u16 },
    #[error("download failed: more than {MAX_REDIRECTS} redirects")]
    Redirects,
    #[error("download failed: the file is larger than {} MiB", MAX_BYTES / 1024 / 1024)]
    TooLarge,
    #[error("download failed: it took more than {} s", .0.as_secs())]
    Late(Duration),
    #[error("download stopped: the gateway goes down")]
    Stopped,
    #[error("the download could not be stored: {0}")]
    Io(#[from] io::Error),
    #[error("the download could not be stored: {0}")]
    Place(#[from] PlaceError),
    #[error("the archive could not be unpacked: {0}")]
    Unpack(#[from] UnpackError),
}

/// Fetches, and unpacks where that is asked for. Says what was done.
pub(super) async fn fetch(order: &Fetch, http: &Http, rules: AddressRules) -> Result<String, FetchError> {
    let (incoming, url) = ask(order, http, rules).await?;
    let target = order.target.clone();
    let file = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&target)?;
        NamedTempFile::with_prefix_in(".download-", &target)
    });
    let (file, bytes) = store(incoming, file.await.map_err(io::Error::other)??).await?;
    let (target, archive, strip) = (order.target.clone(), order.archive, order.strip);
    let name = file_name(&url);
    let done = tokio::task::spawn_blocking(move || match archive {
        Some(archive) => {
            let count = unpack(file.reopen()?, archive, &target, strip)?;
            Ok(format!("Unpacked {count} files into {}", target.display()))
        }
        None => {
            keep(&file, &target, &name)?;
            Ok(format!("Downloaded {bytes} bytes to {}", target.join(&name).display()))
        }
    });
    done.await.map_err(io::Error::other)?
}

/// Asks for the file, following redirects as far as the rules go.
async fn ask(order: &Fetch, http: &Http, rules: AddressRules) -> Result<(Incoming, Url), FetchError> {
    let mut url = Url::parse(&order.url).map_err(|_| FetchError::Address(order.url.clone()))?;
    for _ in 0..=MAX_REDIRECTS {
        check(&url, rules).await?;
        let incoming = http.get(url.as_str(), Headers::default()).await?;
        match incoming.status {
            200 => return Ok((incoming, url)),
            301 | 302 | 303 | 307 | 308 => {
                let next = incoming.header("location").and_then(|next| url.join(next).ok());
                url = next.ok_or_else(|| FetchError::Status { url: shown(&url), status: incoming.status })?;
            }
            status => return Err(FetchError::Status { url: shown(&url), status }),
        }
    }
    Err(FetchError::Redirects)
}

/// Returns the address without parts that may be a credential.
fn shown(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

async fn check(url: &Url, rules: AddressRules) -> Result<(), FetchError> {
    if rules.https_only && url.scheme() != "https" || !matches!(url.scheme(), "https" | "http") {
        return Err(FetchError::Address(shown(url)));
    }
    if !rules.public_only {
        return Ok(());
    }
    let addresses: Vec<IpAddr> = match url.host() {
        None => return Err(FetchError::Address(shown(url))),
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        // A name that is not known here is asked by the client, or by its proxy, which tells what is wrong.
        Some(Host::Domain(name)) => {
            let found = tokio::net::lookup_host((name, url.port_or_known_default().unwrap_or(443))).await;
            found.map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
        }
    };
    match addresses.into_iter().find(|address| !is_public(*address)) {
        Some(_) => Err(FetchError::NotPublic(url.host_str().unwrap_or_default().to_owned())),
        None => Ok(()),
    }
}

async fn store(mut incoming: Incoming, mut file: NamedTempFile) -> Result<(NamedTempFile, u64), FetchError> {
    let announced = incoming.header("content-length").and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BYTES) {
        return Err(FetchError::TooLarge);
    }
    let mut bytes = 0;
    while let Some(chunk) = incoming.chunk().await? {
        bytes += chunk.len() as u64;
        if bytes > MAX_BYTES {
            return Err(FetchError::TooLarge);
        }
        let written = tokio::task::spawn_blocking(move || file.write_all(&chunk).map(|()| file));
        file = written.await.map_err(io::Error::other)??;
    }
    Ok((file, bytes))
}

/// Moves the download to its name.
fn keep(file: &NamedTempFile, target: &Path, name: &str) -> Result<(), FetchError> {
    let place = Place::create_beneath(target, Path::new(name), name)?;
    let mut kept = place.create(Executable::No)?;
    io::copy(&mut file.reopen()?, &mut kept)?;
    Ok(kept.sync_data()?)
}

/// The last part of the address; never a hidden file.
fn file_name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let plain: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' }).collect();
    let plain = plain.trim_start_matches('.');
    if plain.is_empty() { "download".to_owned() } else { plain.chars().take(200).collect() }
}

#[cfg(test)]
mod tests;
