//! The files of paired and asking devices.

use openclaw_gateway::pairing::DeviceStore;
use openclaw_sessions::checkup::{Finding, Repair, Severity};

use crate::context::CliContext;

/// Findings about the pairing files.
pub(super) fn findings(context: &CliContext) -> Vec<Finding> {
    let damaged = match store(context).damage() {
        Ok(damaged) => damaged,
        Err(error) => {
            let message = format!("Paired devices could not be looked at: {error}.");
            let severity = Severity::Warning;
            return vec![Finding { id: "devices.unknown", severity, message, repairs: Vec::new() }];
        }
    };
    let finding = |damage: openclaw_gateway::pairing::Damage| Finding {
        id: "devices.damaged",
        severity: Severity::Error,
        message: format!(
            "The pairing file {} is damaged ({}). What can be read of it can be kept; devices that are missing then have to be \
             paired again.",
            damage.path.display(),
            damage.flaw,
        ),
        repairs: vec![repair_of(context)],
    };
    damaged.into_iter().map(finding).collect()
}

/// Stands for [`repair`], which keeps its copies beside the files.
pub(super) fn repair_of(context: &CliContext) -> Repair {
    let dir = context.paths().devices_dir();
    Repair::SetAside(["pending.json", "paired.json"].map(|name| dir.join(name)).into())
}

/// Keeps what can be read. Says where the damaged files are now.
pub(super) fn repair(context: &CliContext) -> Result<Vec<String>, String> {
    let copies = store(context).repair().map_err(|error| error.to_string())?;
    let told = |copy: &std::path::PathBuf| format!("The damaged pairing file is kept as {}.", copy.display());
    Ok(copies.iter().map(told).collect())
}

fn store(context: &CliContext) -> DeviceStore {
    DeviceStore::new(context.paths().devices_dir())
}
