//! Bot as an account of the gateway.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{
    Account, AccountIo, ActionError, Activity, Address, Answer, ChannelFuture, Content, DirectoryPeer, Exit,
    FetchError, Fetched, FormattedText, MediaRef, MenuCommand, OutgoingPart, Part, Pressers, Probe, RateTurn,
    Reacting, Receipt, Repeats, RetryPolicy, SendAttempt, SendError, Target, Unusable,
};
use openclaw_config::Config;
use serde_json::Value;

use crate::bot::Bot;
use crate::settings::InlineButtons;
use crate::{actions, directory, draft, fetch, html, menu, parts, probe, receive, send};

/// Returns an account that is ready to be started.
pub(super) fn open(config: &Config, id: &str) -> Result<Arc<dyn Account>, Unusable> {
    Ok(Arc::new(Bot::of(config, id)?))
}

impl Account for Bot {
    fn run(&self, io: AccountIo) -> ChannelFuture<'_, Exit> {
        Box::pin(receive::run(self, io))
    }

    fn repeats(&self) -> Repeats {
        Repeats::Doubled
    }

    fn turn(&self, at: &Address) -> RateTurn {
        self.turn_of(at)
    }

    fn retry(&self) -> RetryPolicy {
        self.settings.retry
    }

    fn request_limit(&self, part: &Part) -> Duration {
        match &part.content {
            // A file that is not there needs no time.
            Content::Media { path, .. } => {
                self.client.upload_limit(std::fs::metadata(path).map_or(0, |file| file.len()))
            }
            Content::Text(_) | Content::Poll { .. } | Content::Sticker { .. } => self.client.call_limit(),
        }
    }

    fn send<'a>(
        &'a self,
        outgoing: OutgoingPart<'a>,
        attempt: SendAttempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>> {
        Box::pin(send::send(self, outgoing, attempt))
    }

    fn parts(&self, answer: &Answer) -> Vec<Part> {
        parts::of(answer, &self.settings)
    }

    fn literal(&self, text: &str) -> FormattedText {
        html::literal(text)
    }

    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        to: &'a Path,
        limit: u64,
    ) -> ChannelFuture<'a, Result<Fetched, FetchError>> {
        Box::pin(fetch::fetch(self, media, to, limit))
    }

    fn show_activity<'a>(
        &'a self,
        at: &'a Address,
        activity: Activity,
    ) -> ChannelFuture<'a, Result<(), SendError>> {
        Box::pin(self.activity(at, activity))
    }

    fn draft<'a>(
        &'a self,
        at: &'a Address,
        id: i64,
        text: &'a str,
    ) -> ChannelFuture<'a, Result<(), SendError>> {
        Box::pin(draft::show(self, at, id, text))
    }

    fn act<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> ChannelFuture<'a, Result<Value, ActionError>> {
        Box::pin(actions::act(self, action, params))
    }

    fn check(&self, action: &str, params: &Value) -> Result<(), ActionError> {
        actions::check(self, action, params)
    }

    fn actions(&self) -> Vec<&'static str> {
        actions::offered(&self.settings)
    }

    fn reacting(&self) -> Option<Reacting> {
        actions::reacting(&self.settings)
    }

    fn permits(&self, action: &str) -> Result<(), ActionError> {
        actions::permit(&self.settings, action)
    }

    fn id_of_name(&self, entry: &str) -> Option<String> {
        self.names.id_of(entry)
    }

    fn names_of(&self, id: &str) -> Vec<String> {
        self.names.of_id(id)
    }

    fn may_mean(&self, target: &str, id: &str) -> bool {
        // A name may be that of any group.
        target.starts_with('@') || self.current(target) == id
    }

    fn has_buttons(&self) -> bool {
        self.settings.inline_buttons() != InlineButtons::Off
    }

    fn permits_buttons(&self, at: &Address) -> Result<(), ActionError> {
        actions::permit_buttons(&self.settings, at)
    }

    fn pressers(&self, at: &Address) -> Result<Pressers, ActionError> {
        actions::pressers(&self.settings, at)
    }

    fn probe(&self, timeout: Duration) -> ChannelFuture<'_, Probe> {
        Box::pin(probe::probe(self, timeout))
    }

    fn look_up<'a>(
        &'a self,
        target: &'a Target,
    ) -> ChannelFuture<'a, Result<Option<DirectoryPeer>, SendError>> {
        Box::pin(directory::look_up(self, target))
    }

    fn has_menu(&self) -> bool {
        self.settings.commands.has_native()
    }

    fn offer_commands<'a>(&'a self, commands: &'a [MenuCommand]) -> ChannelFuture<'a, Result<(), SendError>> {
        Box::pin(menu::offer(self, commands))
    }
}
