//! Reading, checking and writing `openclaw.json`.
//!
//! [`fn@load`] takes an [`Environment`] (nothing else in the product reads variables, the home or the working directory) and
//! yields [`Loaded`]: the resolved [`Paths`], a [`ConfigSnapshot`] of the file, and the typed [`Config`] if the file may be used.
//! [`write`](mod@write) changes the file, touching only what changed. This crate does not know what a key is used for; that
//! knowledge sits where the key is used.
//!
//! The way of a file: [`json5`] text, `includes`, `substitute`, `legacy` keys, `check`, `defaults`, [`settings`].

mod accounts;
mod approvals_file;
mod byte_size;
mod check;
pub mod clock;
mod defaults;
mod diff;
mod document_rule;
mod dotenv;
mod duration;
mod edit;
mod environment;
mod excerpt;
mod executable;
mod exposed_state;
mod extensions;
pub mod gateway_options;
mod includes;
pub mod json5;
mod left_workspace;
mod legacy;
mod load;
mod mention_pattern;
mod merge_patch;
mod nearest;
mod overrides;
mod paths;
mod plugin_switches;
pub mod private_file;
pub mod profile;
pub mod protections;
pub mod redact;
pub mod registry;
mod reply_to_mode;
mod schema_document;
mod secrets;
pub mod settings;
pub mod shared_place;
mod shell_env;
mod snapshot;
pub mod stamp;
mod substitute;
mod support;
pub mod type_keys;
mod unknown_keys;
pub mod value_path;
pub mod variable_rules;
pub mod write;

pub use accounts::{account_keys, account_section, normalize_account_id};
pub use approvals_file::unheeded_approvals;
pub use byte_size::{ByteSizeError, parse_byte_size};
pub use defaults::MODEL_ALIASES;
pub use diff::changed_paths;
pub use duration::{DurationError, DurationUnit, parse_duration};
pub use edit::{edit_text, new_text};
pub use environment::{Environment, without_dots};
pub use exposed_state::{ExposedState, exposed_state};
pub use extensions::installed_extensions;
pub use left_workspace::{LeftWorkspace, left_workspaces};
pub use load::{InvalidConfig, Loaded, hash_of, load, parse_and_check};
pub use mention_pattern::mention_pattern;
pub use merge_patch::merge_patch;
pub use nearest::nearest;
pub use overrides::Overrides;
pub use paths::{APPROVALS_FILE, Paths, approvals_files};
pub use plugin_switches::{PluginSwitch, plugin_switches, turn_on_command};
pub use protections::{Unmet, unmet_protections};
pub use schema_document::{config_schema, unlisted_keys};
pub use settings::{Config, ResolvedAgent, Secret};
pub use shell_env::imports_shell_env;
pub use snapshot::{ConfigIssueKind, ConfigSnapshot, Issue};
pub use support::{NOT_ACTED_ON, READ_WITHOUT_TYPE, SupportedKeys, unsupported};
pub use unknown_keys::unknown_keys;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod vectors;
