//! Skills, and a model that is told of them.

use std::path::Path;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};

/// Puts a skill into a directory of skills.
pub(crate) fn write(dir: &Path, name: &str, settings: &str) {
    let dir = dir.join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!("---\nname: {name}\ndescription: About {name}\n{settings}\n---\n\nBody of {name}.\n");
    std::fs::write(dir.join("SKILL.md"), text).unwrap();
}

/// The directory of the default agent's own skills.
pub(crate) fn own(gateway: &GatewayUnderTest) -> std::path::PathBuf {
    gateway.state_dir().join("workspace/skills")
}

pub(crate) async fn model() -> ModelServer {
    ModelServer::answering(|_| Reply::text("well")).await
}
