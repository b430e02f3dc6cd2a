//! Pictures that a message names by their paths: the model that is asked sees them (spec `tools.md` §6, "Prompt images").
//!
//! Found as the `image` tool finds them, and held to what the tools of the run are held to. The
//! caller decides if the run may read files at all.

mod references;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::picture::MAX_BYTES;
use openclaw_agent::place::off_limits::OffLimits;
use openclaw_config::Config;
use openclaw_protocol::message::Block;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::image::load::{in_inbound, open, shown};
use crate::path::Confinement;
use crate::path::Resolver;
use crate::picture::Encoded;
use crate::sandbox::ActiveSandbox;
pub use references::named_pictures;

/// Pictures of one message, those that came with it included.
const MOST: usize = 8;
/// Bytes of all that are loaded for one message, before base64.
const MOST_BYTES: usize = 2 * MAX_BYTES;
/// A file system that does not answer holds a message up no longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Places in which the pictures of a run may be.
#[derive(Debug)]
pub struct PromptPictures {
    resolver: Resolver,
    is_held: bool,
}

impl PromptPictures {
    /// Uses the reach of the run's file tools: the sandbox, or any file without one.
    pub fn new(config: &Arc<Config>, workspace: PathBuf, sandbox: Option<&ActiveSandbox>) -> Self {
        let home = config.environment().home();
        let confinement = match sandbox {
            Some(sandbox) => Confinement::Within(sandbox.workspace().to_owned()),
            None => Confinement::Host,
        };
        let is_held = sandbox.is_some();
        let resolver = Resolver::of_run(home, workspace, confinement, sandbox);
        Self { resolver: resolver.keeping_off(OffLimits::of(config)), is_held }
    }

    /// The pictures at these paths, in order. Files that are not pictures, do not exist or may not
    /// be read are left out, and so are those in `present`. Loading stops once the run is
    /// cancelled.
    pub async fn load(&self, paths: &[String], present: &[Block], cancel: &CancellationToken) -> Vec<Block> {
        let mut loaded = Vec::new();
        let loading = async {
            let mut left = MOST_BYTES;
            for path in paths.iter().take(references::MOST_NAMED) {
                if present.len() + loaded.len() >= MOST {
                    break;
                }
                let Some(picture) = self.picture(path, cancel).await else { continue };
                let Some(rest) = left.checked_sub(picture.len()) else { continue };
                let block = Block::Image(picture.into_block());
                if !present.iter().chain(&loaded).any(|other| is_same(other, &block)) {
                    left = rest;
                    loaded.push(block);
                }
            }
        };
        tokio::select! { biased;
            () = cancel.cancelled() => {}
            done = tokio::time::timeout(PATIENCE, loading) => if done.is_err() {
                tracing::warn!("pictures that a message names could not be read in time");
            }
        }
        loaded
    }

    async fn picture(&self, path: &str, cancel: &CancellationToken) -> Option<Encoded> {
        let (resolver, named) = (self.resolver.clone(), path.to_owned());
        let inbound = self.is_held.then(|| in_inbound(path));
        let opened = blocking(move || open(&resolver, &named, inbound)).await;
        let picture = match opened {
            Ok((file, _)) => shown(file, MAX_BYTES, cancel).await,
            Err(error) => Err(error),
        };
        picture.inspect_err(|error| tracing::debug!(path, %error, "what a message names is not shown")).ok()
    }
}

fn is_same(one: &Block, other: &Block) -> bool {
    matches!((one, other), (Block::Image(one), Block::Image(other)) if one.data == other.data)
}

#[cfg(test)]
mod tests;
