//! Files that a test puts beside the gateway.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn append(path: &Path, text: &str) {
    let mut whole = std::fs::read_to_string(path).unwrap();
    whole.push_str(text);
    std::fs::write(path, whole).unwrap();
}

pub(crate) fn put(path: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
