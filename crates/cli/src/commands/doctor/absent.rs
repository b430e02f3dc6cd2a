//! Findings for features that the state directory uses and this version does not have.

use openclaw_gateway::{Absent, absent_features};
use openclaw_sessions::checkup::{Finding, Severity};

use crate::context::CliContext;

pub(super) fn findings(context: &CliContext) -> Vec<Finding> {
    let Absent { features, keys } = absent_features(&context.loaded);
    let finding =
        |message| Finding { id: "absent.feature", severity: Severity::Info, message, repairs: Vec::new() };
    let others = (!keys.is_empty())
        .then(|| format!("This version does not act on these keys of the config yet: {}.", keys.join(", ")));
    features.into_iter().map(|feature| feature.message).chain(others).map(finding).collect()
}
