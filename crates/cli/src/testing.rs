//! Helpers for tests of several commands.

use openclaw_config::Environment;

use crate::context::CliContext;

/// A command's context in a home directory of its own with this config and these variables. The directory is gone
/// afterwards.
pub(crate) fn context(config: &str, vars: &[(&str, &str)]) -> CliContext {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".openclaw/openclaw.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, config).unwrap();
    let home = home.path().to_str().unwrap();
    let vars = [("HOME", home), ("TMPDIR", home)].into_iter().chain(vars.iter().copied());
    CliContext::new(&Environment::new(vars, home), true)
}
