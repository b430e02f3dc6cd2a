//! Approvals file that is meant, and the way it is read and written there.

use std::path::PathBuf;
use std::time::Duration;

use openclaw_protocol::Call;
use openclaw_protocol::params::approvals::{ExecApprovalsFile, ExecApprovalsGet, ExecApprovalsSet};
use openclaw_tools::exec_approvals::file::ApprovalsFile;
use openclaw_tools::exec_approvals::store::{ApprovalsError, ApprovalsStore, Loaded};
use serde_json::{Value, json};

use crate::args::ApprovalsAtArgs;
use crate::client::{self, AwaitedResponse, DEFAULT_TIMEOUT, TargetFlags};
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Number of attempts at a change while others change the file at the same time.
const TRIES: usize = 20;
/// Text of a gateway's error when another writer was first ([`ApprovalsError::Changed`]).
const CHANGED: &str = "exec approvals changed since last load";

/// The file of this host, or of a gateway.
pub(super) struct ApprovalsPlace<'a> {
    context: &'a CliContext,
    kind: ApprovalsHost,
}

enum ApprovalsHost {
    Local(ApprovalsStore),
    Gateway(RemoteApprovals),
}

struct RemoteApprovals {
    flags: TargetFlags,
    timeout: Duration,
}

impl<'a> ApprovalsPlace<'a> {
    /// Place chosen by the flags.
    ///
    /// # Errors
    /// For a node: there are none yet. For an address without `--gateway`: this host's file is not what was meant.
    pub(super) fn of(context: &'a CliContext, at: &ApprovalsAtArgs) -> Result<Self, CommandFailure> {
        if let Some(node) = &at.node {
            return Err(CommandFailure::new(
                "no-nodes",
                format!("The approvals of node \"{node}\" can't be reached: this version has no nodes yet."),
            )
            .hint("Leave --node out for the file of this host, or use --gateway for that of the gateway."));
        }
        let target = &at.ask.target;
        let kind = if at.gateway {
            let timeout = client::timeout_of(target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
            ApprovalsHost::Gateway(RemoteApprovals { flags: TargetFlags::from(target), timeout })
        } else if target.url.is_some() {
            return Err(CommandFailure::usage("--url needs --gateway")
                .hint("Without --gateway, the file of this host is read and written."));
        } else {
            ApprovalsHost::Local(ApprovalsStore::new(context.paths().state_dir(), &context.env().home()))
        };
        Ok(Self { context, kind })
    }

    pub(super) fn context(&self) -> &'a CliContext {
        self.context
    }

    /// Label for people.
    pub(super) fn label(&self) -> &'static str {
        match self.kind {
            ApprovalsHost::Local(_) => "local",
            ApprovalsHost::Gateway(_) => "gateway",
        }
    }

    pub(super) fn load(&self) -> Result<Loaded, CommandFailure> {
        match &self.kind {
            ApprovalsHost::Local(store) => store.load().map_err(|error| explain(&error)),
            ApprovalsHost::Gateway(gateway) => gateway.call::<ExecApprovalsGet>(self.context, json!({})),
        }
    }

    /// Puts another file in place of the one that is there now.
    pub(super) fn replace(&self, file: ApprovalsFile) -> Result<Loaded, CommandFailure> {
        let seen = self.load()?;
        self.replace_seen(file, &seen)
    }

    /// Changes the file; `None` where `change` says that there was nothing to do.
    pub(super) fn change(
        &self,
        change: impl Fn(&mut ApprovalsFile) -> bool,
    ) -> Result<Option<Loaded>, CommandFailure> {
        // A gateway has the file replaced as a whole. Where somebody else was first, what is there now is changed.
        for _ in 1..TRIES {
            match self.change_once(&change) {
                Err(failure) if failure.message.contains(CHANGED) => {}
                done => return done,
            }
        }
        self.change_once(&change)
    }

    fn change_once(
        &self,
        change: &impl Fn(&mut ApprovalsFile) -> bool,
    ) -> Result<Option<Loaded>, CommandFailure> {
        let seen = self.load()?;
        let mut file = seen.file.clone();
        if !change(&mut file) {
            return Ok(None);
        }
        match &self.kind {
            // Made under the file's lock: a gateway notes uses of entries meanwhile.
            ApprovalsHost::Local(store) => {
                let changed = store.update(|file| {
                    change(file);
                });
                changed.map(Some).map_err(|error| explain(&error))
            }
            ApprovalsHost::Gateway(_) => self.replace_seen(file, &seen).map(Some),
        }
    }

    fn replace_seen(&self, file: ApprovalsFile, seen: &Loaded) -> Result<Loaded, CommandFailure> {
        match &self.kind {
            ApprovalsHost::Local(store) => {
                store.replace(file, Some(&seen.hash)).map_err(|error| explain(&error))
            }
            ApprovalsHost::Gateway(gateway) => {
                let params = json!({ "file": file, "baseHash": seen.hash });
                gateway.call::<ExecApprovalsSet>(self.context, params)
            }
        }
    }
}

impl RemoteApprovals {
    fn call<C: Call<Output = ExecApprovalsFile>>(
        &self,
        context: &CliContext,
        params: Value,
    ) -> Result<Loaded, CommandFailure> {
        let call = client::call(context, &self.flags, C::NAME, params, AwaitedResponse::First, self.timeout);
        let answer = client::read::<C>(client::block_on(call)?, "approvals file")?;
        let file = serde_json::from_value(answer.file).map_err(|error| {
            CommandFailure::new(
                "protocol",
                format!("the gateway's approvals file can't be read here: {error}"),
            )
        })?;
        Ok(Loaded { path: PathBuf::from(answer.path), exists: answer.exists, hash: answer.hash, file })
    }
}

fn explain(error: &ApprovalsError) -> CommandFailure {
    let failure = |code| CommandFailure::new(code, error.to_string());
    match error {
        ApprovalsError::Invalid { path, .. } => failure("approvals-invalid").hint(format!(
            "Nothing was changed, and every command that needs the file is denied until it is mended. Correct the \
             text in {path}, or move the file away and start anew; its rules are lost to commands then."
        )),
        ApprovalsError::Io { .. } => failure("approvals-unusable"),
        ApprovalsError::HashRequired | ApprovalsError::Changed => failure("approvals-changed")
            .hint("Something else changed the file at the same moment. Run the command again."),
    }
}
