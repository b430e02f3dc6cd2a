//! The product's binary for a task.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::generate::root;

/// Build profile.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Profile {
    /// Fast to build.
    Dev,
    /// Build as shipped.
    Release,
}

/// Builds `openclaw` and says where it is.
pub(crate) fn binary(profile: Profile) -> Result<PathBuf> {
    let (flag, folder): (&[&str], _) = match profile {
        Profile::Dev => (&[], "debug"),
        Profile::Release => (&["--release"], "release"),
    };
    let status = Command::new("cargo")
        .args(["build", "--package", "openclaw", "--bin", "openclaw"])
        .args(flag)
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(folder).join("openclaw"))
}
