//! Mounts that hide the gateway's own files where a container's mounts would show them: something empty is mounted over each.

use std::path::{Path, PathBuf};

use crate::sandbox::settings::DockerSettings;

/// Returns the binds that cover `hidden` wherever the workspace, the agent's workspace or a bind of the configuration shows it. `empty`
/// is an empty directory. Reads the disk.
pub(in crate::sandbox) fn covers(
    settings: &DockerSettings,
    workspace: &Path,
    agent_workspace: Option<&Path>,
    hidden: &[PathBuf],
    empty: &Path,
) -> Vec<String> {
    let own = [(workspace, settings.workdir.as_str())]
        .into_iter()
        .chain(agent_workspace.map(|dir| (dir, "/agent")));
    let binds = settings.binds.iter().filter_map(|bind| {
        let mut parts = bind.split(':');
        Some((Path::new(parts.next()?), parts.next()?))
    });
    let mounts: Vec<(PathBuf, &str)> =
        own.chain(binds).filter_map(|(source, target)| Some((source.canonicalize().ok()?, target))).collect();
    let mut covers = Vec::new();
    for path in hidden.iter().filter_map(|path| path.canonicalize().ok()) {
        for (source, target) in &mounts {
            // A file that is mounted as a whole is shown on purpose.
            let Some(inside) = path.strip_prefix(source).ok().filter(|inside| !inside.as_os_str().is_empty())
            else {
                continue;
            };
            let over = if path.is_dir() { empty } else { Path::new("/dev/null") };
            let cover = format!("{}:{}:ro", over.display(), Path::new(target).join(inside).display());
            if !covers.contains(&cover) {
                covers.push(cover);
            }
        }
    }
    covers
}

#[cfg(test)]
mod tests {
    use std::fs;

    use openclaw_config::settings::Config;
    use openclaw_protocol::AgentId;

    use super::*;
    use crate::sandbox::SandboxSettings;

    #[test]
    fn the_state_and_the_config_are_covered_where_a_mount_shows_them() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for dir in ["conf", ".openclaw/workspace"] {
            fs::create_dir_all(home.join(dir)).unwrap();
        }
        fs::write(home.join("conf/openclaw.json"), "{}").unwrap();
        let hidden = [".openclaw", "conf/openclaw.json", "not-there"].map(|path| home.join(path));
        let mut settings = SandboxSettings::of(&Config::default(), &AgentId::default()).docker;
        let of = |settings: &DockerSettings, workspace: &str| {
            covers(settings, &home.join(workspace), None, &hidden, Path::new("/empty"))
        };
        let both = ["/empty:/workspace/.openclaw:ro", "/dev/null:/workspace/conf/openclaw.json:ro"];
        assert_eq!(of(&settings, ""), both);
        assert_eq!(of(&settings, ".openclaw/workspace"), Vec::<String>::new());
        settings.binds = vec![format!("{}:/c", home.join("conf").display())];
        assert_eq!(of(&settings, ".openclaw/workspace"), ["/dev/null:/c/openclaw.json:ro"]);
    }
}
