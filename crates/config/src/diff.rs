//! Changed paths of a document (spec `config.md` §9.2).

use serde_json::Value;

use crate::value_path::join;

/// The paths at which two documents differ; lists are compared by value. A replaced root is `<root>`.
pub fn changed_paths(previous: &Value, next: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    walk(previous, next, "", &mut paths);
    paths
}

fn walk(previous: &Value, next: &Value, path: &str, paths: &mut Vec<String>) {
    match (previous, next) {
        (Value::Object(previous), Value::Object(next)) => {
            for (key, value) in previous {
                match next.get(key) {
                    Some(other) => walk(value, other, &join(path, key), paths),
                    None => paths.push(join(path, key)),
                }
            }
            paths.extend(next.keys().filter(|key| !previous.contains_key(*key)).map(|key| join(path, key)));
        }
        (previous, next) if previous == next => {}
        _ => paths.push(if path.is_empty() { "<root>".to_owned() } else { path.to_owned() }),
    }
}
