//! Mapping from errors of the crates below to wire errors: the one place that decides (design,
//! "Errors").

use openclaw_agent::roster::RosterError;
use openclaw_agent::roster::files::FileError;
use openclaw_agent::skills::UpdateError;
use openclaw_config::Issue;
use openclaw_config::write::WriteError;
use openclaw_dispatch::{AbortError, ChangeError, DispatchError, InjectError};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::config::ConfigIssue;
use openclaw_sessions::KeyError;
use openclaw_sessions::methods::MethodError;
use openclaw_sessions::store::StoreError;
use openclaw_sessions::usage::UsageError;

use serde_json::json;

use crate::attachments::AttachmentError;
use crate::control::config_text::ConfigTextError;
use crate::request::RequestFailure;

/// Delay in milliseconds before a client should retry a request that may work then.
const RETRY_AFTER_MS: u64 = 1_000;

/// Wrong as it stands.
fn invalid(error: &impl ToString) -> RequestFailure {
    ErrorShape::invalid(error.to_string()).into()
}

/// Failure of a request that may be right, but could not be done.
fn unavailable(error: &impl ToString) -> RequestFailure {
    ErrorShape::unavailable(error.to_string()).into()
}

/// Could not be done now; nothing of it was kept.
fn later(error: &impl ToString) -> RequestFailure {
    let mut shape = ErrorShape::unavailable(error.to_string());
    shape.retryable = Some(true);
    shape.retry_after_ms = Some(RETRY_AFTER_MS);
    shape.into()
}

impl From<AttachmentError> for RequestFailure {
    fn from(error: AttachmentError) -> Self {
        invalid(&error)
    }
}

impl From<KeyError> for RequestFailure {
    fn from(error: KeyError) -> Self {
        invalid(&error)
    }
}

impl From<DispatchError> for RequestFailure {
    fn from(error: DispatchError) -> Self {
        match error {
            DispatchError::SendBlocked | DispatchError::KeyReused(_) => invalid(&error),
            DispatchError::StopNotStored(_) => unavailable(&error),
            DispatchError::Storage(_)
            | DispatchError::QueueFull(_)
            | DispatchError::Overloaded
            | DispatchError::ShuttingDown => later(&error),
        }
    }
}

impl From<InjectError> for RequestFailure {
    fn from(error: InjectError) -> Self {
        match error {
            InjectError::UnknownSession => invalid(&error),
            InjectError::Storage(_) => unavailable(&error),
            InjectError::StillActive(_) | InjectError::ShuttingDown => later(&error),
        }
    }
}

impl From<AbortError> for RequestFailure {
    fn from(error: AbortError) -> Self {
        match error {
            AbortError::OtherSession => invalid(&error),
            AbortError::NotStored(_) => unavailable(&error),
        }
    }
}

impl From<ChangeError> for RequestFailure {
    fn from(error: ChangeError) -> Self {
        later(&error)
    }
}

impl From<RosterError> for RequestFailure {
    fn from(error: RosterError) -> Self {
        match error {
            RosterError::Reserved(_)
            | RosterError::Exists(_)
            | RosterError::NotFound(_)
            | RosterError::Undeletable(_)
            | RosterError::Included(_)
            | RosterError::Config(_) => invalid(&error),
            RosterError::Write(error) => error.into(),
            RosterError::Workspace(_) | RosterError::Io { .. } => unavailable(&error),
        }
    }
}

impl From<UpdateError> for RequestFailure {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Key(_) | UpdateError::Config(_) => invalid(&error),
            UpdateError::Write(error) => error.into(),
        }
    }
}

impl From<WriteError> for RequestFailure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Unparsable { .. }
            | WriteError::Invalid { .. }
            | WriteError::Redacted(_)
            | WriteError::Included { .. } => invalid(&error),
            WriteError::Changed => later(&error),
            WriteError::Io { .. } => unavailable(&error),
        }
    }
}

impl From<ConfigTextError> for RequestFailure {
    fn from(error: ConfigTextError) -> Self {
        match error {
            ConfigTextError::Invalid(issues) => {
                let issues: Vec<ConfigIssue> = issues.iter().map(Issue::to_wire).collect();
                ErrorShape::invalid("invalid config").with_details(json!({"issues": issues})).into()
            }
            ConfigTextError::HashRequired
            | ConfigTextError::Changed
            | ConfigTextError::Syntax(_)
            | ConfigTextError::NotAnObject(_)
            | ConfigTextError::FixFirst
            | ConfigTextError::Redacted(_) => invalid(&error),
            ConfigTextError::Write(error) => error.into(),
            ConfigTextError::Interrupted => unavailable(&error),
        }
    }
}

impl From<FileError> for RequestFailure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Unsupported(_)
            | FileError::Outside(_)
            | FileError::NotAFile(_)
            | FileError::TooLarge { .. } => invalid(&error),
            FileError::Io { .. } => unavailable(&error),
        }
    }
}

impl From<StoreError> for RequestFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(_) | StoreError::LabelInUse(_) => invalid(&error),
            StoreError::Io { .. } | StoreError::Closed => unavailable(&format!("Error: {error}")),
        }
    }
}

impl From<UsageError> for RequestFailure {
    fn from(error: UsageError) -> Self {
        match error {
            UsageError::Range(_)
            | UsageError::KeyRequired(_)
            | UsageError::Key(_)
            | UsageError::NoTranscript(_) => invalid(&error),
            UsageError::Read { .. } => unavailable(&error),
            UsageError::Store(error) => error.into(),
            UsageError::Interrupted => later(&error),
        }
    }
}

impl From<MethodError> for RequestFailure {
    fn from(error: MethodError) -> Self {
        match error {
            MethodError::Store(error) => error.into(),
            MethodError::StillActive(_) => later(&error),
            MethodError::Lock(error) => later(&error),
            MethodError::Transcript(error) => unavailable(&error),
            MethodError::Key(_)
            | MethodError::Resolve(_)
            | MethodError::Patch(_)
            | MethodError::MainSession(_) => invalid(&error),
        }
    }
}
