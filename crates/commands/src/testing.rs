//! Setup shared by tests of commands.

use openclaw_config::Environment;
use tempfile::TempDir;

/// A config file in a home of its own.
pub(crate) fn config_file(text: &str) -> (TempDir, Environment) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("openclaw.json"), text).unwrap();
    let path = home.path().display().to_string();
    let environment =
        Environment::new([("HOME", path.as_str()), ("OPENCLAW_STATE_DIR", path.as_str())], home.path());
    (home, environment)
}
