//! The table of the keys of Telegram's section that are acted on, made from the types that read them. `cargo xtask generate` writes
//! it.

use expect_test::expect_file;
use openclaw_channel_telegram::AccountSettings;
use openclaw_channels::access::settings::{AccessSettings, GroupRules};
use openclaw_config::registry::TELEGRAM;
use openclaw_config::settings::ChannelReplies;
use openclaw_config::type_keys::{keys_of, lines};

const SECTION: &str = "channels.telegram";

#[test]
fn the_table_of_keys_is_up_to_date() {
    let own = keys_of::<AccountSettings>(SECTION).into_iter();
    let shared = keys_of::<AccessSettings>(SECTION).into_iter().chain(keys_of::<ChannelReplies>(SECTION));
    // Serde does not tell the keys of a type that is flattened.
    let of_groups = keys_of::<GroupRules>("channels.telegram.groups.*");
    // Read from the section itself: an account has no credentials but its own.
    let credentials = TELEGRAM.credential_keys.iter().map(|key| format!("{SECTION}.{key}"));
    // Read for every platform, before its settings are.
    let switch = [format!("{SECTION}.enabled")];
    let keys = own.chain(shared).chain(of_groups).chain(credentials).chain(switch);
    expect_file!["../../config/data/acted_on/telegram.txt"].assert_eq(&lines(keys));
}
