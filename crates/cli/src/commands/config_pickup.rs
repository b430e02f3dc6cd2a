//! A message that is sent right after a change of the config is answered with the new one.

use std::time::{Duration, SystemTime};

use openclaw_config::settings::ReloadMode;
use openclaw_gateway::running_gateway;

use crate::context::CliContext;

/// Within this time a running gateway looks at the file and reads it, besides `gateway.reload.debounceMs`.
const LOOK: Duration = Duration::from_millis(700);
/// Longest wait, whatever is configured.
const MOST: Duration = Duration::from_secs(3);

/// Waits until the gateway of this host has taken what was written into the config a moment ago.
pub(super) async fn settle(context: &CliContext) {
    if running_gateway(&context.loaded).is_some()
        && let Some(rest) = rest(context, SystemTime::now())
    {
        tokio::time::sleep(rest).await;
    }
}

/// Time since the last edit; `None` where the gateway does not look at the files.
pub(super) fn age(context: &CliContext, now: SystemTime) -> Option<Duration> {
    if context.config_or_default().gateway.reload.mode == Some(ReloadMode::Off) {
        return None;
    }
    let files = std::iter::once(context.paths().config_path())
        .chain(context.loaded.included_files.iter().map(std::path::PathBuf::as_path));
    let edited = files.filter_map(|file| std::fs::metadata(file).ok()?.modified().ok()).max()?;
    // A file of the future was not edited a moment ago.
    now.duration_since(edited).ok()
}

/// Time until the gateway has picked up the last edit; `None` when it is long ago.
fn rest(context: &CliContext, now: SystemTime) -> Option<Duration> {
    let age = age(context, now)?;
    let reload = &context.config_or_default().gateway.reload;
    let rest = LOOK.saturating_add(reload.debounce()).min(MOST).saturating_sub(age);
    (!rest.is_zero()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn only_a_fresh_edit_is_waited_for() {
        let rows = [
            ("{}", 0, Some(1_000)),
            ("{}", 400, Some(600)),
            ("{}", 1_000, None),
            ("{gateway: {reload: {debounceMs: 500}}}", 400, Some(800)),
            ("{gateway: {reload: {debounceMs: 60000}}}", 0, Some(3_000)),
            ("{gateway: {reload: {mode: 'off'}}}", 0, None),
        ];
        for (config, age, expect) in rows {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join(".openclaw/openclaw.json");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, config).unwrap();
            let edited = std::fs::metadata(&path).unwrap().modified().unwrap();
            let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
            let found = rest(&CliContext::new(&env, true), edited + Duration::from_millis(age));
            assert_eq!(found, expect.map(Duration::from_millis), "{config} {age}");
        }
    }
}
