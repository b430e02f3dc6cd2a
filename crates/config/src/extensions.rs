//! Plugins that are installed in the state directory.

use crate::Paths;

/// Endings of a plugin that is one file.
const ENDINGS: &[&str] = &["ts", "mts", "cts", "js", "mjs", "cjs"];

/// Names of the plugins in `extensions`, sorted: folders, and files of code. One look at that directory alone.
pub fn installed_extensions(paths: &Paths) -> Vec<String> {
    let entries = std::fs::read_dir(paths.state_dir().join("extensions")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let name = if path.is_dir() {
                path.file_name()?
            } else {
                path.extension().filter(|end| ENDINGS.iter().any(|known| end == known))?;
                path.file_stem()?
            };
            Some(name.to_string_lossy().into_owned())
        })
        .filter(|name| !name.starts_with('.') && name != "node_modules")
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    #[test]
    fn folders_and_files_of_code_are_plugins() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".openclaw/extensions");
        let paths = Paths::resolve(&Environment::new([("HOME", home.path().to_str().unwrap())], home.path()));
        assert_eq!(installed_extensions(&paths), [""; 0]);
        for folder in ["mine", ".cache", "node_modules"] {
            std::fs::create_dir_all(dir.join(folder)).unwrap();
        }
        for file in ["alone.ts", "README.md", ".DS_Store"] {
            std::fs::write(dir.join(file), "").unwrap();
        }
        assert_eq!(installed_extensions(&paths), ["alone", "mine"]);
    }
}
