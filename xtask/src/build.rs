//! The product's binary for a task.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::generate::root;

/// Builds `openclaw` as it is shipped and returns the path of the program.
pub(crate) fn release() -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--package", "openclaw", "--bin", "openclaw", "--release"])
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("release/openclaw"))
}
