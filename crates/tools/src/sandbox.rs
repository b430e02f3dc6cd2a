//! Sandboxes: where the commands and files of a run are held (spec `tools.md` §10).
//!
//! `settings`, `name` and `policy` are values made from the config. [`Sandboxes`] makes a sandbox ready for a run: its directory
//! (`seed`), its first command, and what runs its commands. An [`ActiveSandbox`] says how a command is started in it. `local` is the
//! sandbox of the kernel, which needs no daemon; `container` is one of Docker or Podman.
//!
//! File tools do not run inside. They are held to the directory by [`openclaw_agent::place`].

mod active;
mod check;
mod container;
#[cfg(target_os = "linux")]
mod local;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/no_local.rs"]
mod local;
mod name;
mod policy;
mod pruning;
mod registry;
mod sandboxes;
mod seed;
mod settings;
mod setup;

pub use active::ActiveSandbox;
pub(crate) use active::Inside;
pub use local::{ENTER, Level, enter};
pub use name::{scope_key, workspace_of};
pub use policy::{SandboxPolicy, Source, is_denied_by_default};
pub use registry::{Entry, Registry};
pub use sandboxes::{SandboxError, Sandboxes, Wanted, program_of};
pub use seed::SeededSkill;
pub use settings::{DockerSettings, PruneSettings, SandboxSettings};
