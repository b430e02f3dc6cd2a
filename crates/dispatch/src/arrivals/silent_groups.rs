//! Groups that write and in which nobody is heard, because the configuration does not name them: told once in the log, and by
//! `channels.status` until the next start, or until the configuration is another and lets them in.

use openclaw_channels::Sender;
use openclaw_channels::access::Speaker;

use super::door;
use crate::handle::Dispatch;
use crate::known_chats::{GroupSighting, SilentGroup};

impl Dispatch {
    /// Returns the groups of an account that have written since the start, and in which nobody is
    /// heard by the current configuration.
    pub fn silent_groups(&self, channel: &str, account: &str) -> Vec<SilentGroup> {
        let now = self.arrivals().settings.now();
        let Some(platform) = self.arrivals().platforms.channel(channel) else { return Vec::new() };
        let Ok(settings) = door::access(self, &now.config, channel, account) else { return Vec::new() };
        let nobody = Sender::default();
        self.chats().silent_groups.of(channel, account, |seen| {
            let GroupSighting { at, conversation, .. } = seen;
            let channel = platform.as_ref();
            let (config, settings, sender) = (&now.config, &settings, &nobody);
            let (owners, paired) = (&[], &[]);
            Speaker { channel, config, settings, owners, paired, address: at, conversation, sender }.silence()
        })
    }
}
