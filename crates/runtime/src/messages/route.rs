//! Route of a run's answer that is to be delivered (spec `channels.md` §5.6): to the named place,
//! else along the route of its session. Pure.

use openclaw_config::registry;
use openclaw_sessions::entry::DeliveryContext;

/// Route that is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteWish<'a> {
    /// A channel, or `last`.
    pub channel: Option<&'a str>,
    /// Target, which overrides that of the route.
    pub to: Option<&'a str>,
    /// Channel where neither names one that can be delivered to.
    pub fallback: Option<&'a str>,
    /// True if the route's target also counts for another channel than its own.
    pub allow_mismatched_to: bool,
}

/// Destination, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routed {
    /// Channel id.
    pub channel: Option<String>,
    /// Target, as it was written.
    pub to: Option<String>,
    /// Account.
    pub account: Option<String>,
    /// Thread.
    pub thread: Option<String>,
    /// True if the target was named.
    pub is_explicit: bool,
}

/// Decides on the route.
pub fn route(last: Option<&DeliveryContext>, wish: RouteWish<'_>) -> Routed {
    let last = last.and_then(DeliveryContext::normalized).unwrap_or_default();
    let last_channel = last.channel.as_deref();
    let asked = given(wish.channel).filter(|name| !name.eq_ignore_ascii_case("last"));
    let named = match asked {
        Some(name) => registry::by_name(name).map_or(Some(name), |info| Some(info.id)),
        None => last_channel,
    };
    let is_deliverable = |name: &&str| registry::by_name(name).is_none_or(|info| info.deliverable);
    let channel = named.filter(is_deliverable).or(given(wish.fallback)).map(str::to_owned);
    let is_same = channel.is_some() && channel.as_deref() == last_channel;
    let text = |value: &Option<Box<str>>| value.as_deref().map(str::to_owned);
    let explicit = given(wish.to).map(str::to_owned);
    let is_explicit = explicit.is_some();
    let followed = || text(&last.to).filter(|_| is_same || wish.allow_mismatched_to);
    Routed {
        to: explicit.or_else(followed),
        account: text(&last.account_id).filter(|_| is_same),
        thread: last.thread_id.as_ref().map(ToString::to_string).filter(|_| is_same && !is_explicit),
        channel,
        is_explicit,
    }
}

fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(channel: &str, to: &str, account: Option<&str>) -> DeliveryContext {
        DeliveryContext {
            channel: Some(channel.into()),
            to: Some(to.into()),
            account_id: account.map(Box::from),
            ..DeliveryContext::default()
        }
    }

    /// The table of the specification.
    #[test]
    fn an_answer_follows_the_last_route_unless_told_otherwise() {
        let padded = entry(" whatsapp ", " +1555 ", Some(" acct-1 "));
        let plain = entry("whatsapp", "+1555", None);
        let rows = [
            (
                &padded,
                RouteWish { channel: Some("last"), ..RouteWish::default() },
                (Some("whatsapp"), Some("+1555"), Some("acct-1")),
            ),
            (
                &plain,
                RouteWish { channel: Some("telegram"), ..RouteWish::default() },
                (Some("telegram"), None, None),
            ),
            (
                &plain,
                RouteWish { channel: Some("telegram"), allow_mismatched_to: true, ..RouteWish::default() },
                (Some("telegram"), Some("+1555"), None),
            ),
            (
                &plain,
                RouteWish { channel: Some("webchat"), fallback: Some("slack"), ..RouteWish::default() },
                (Some("slack"), None, None),
            ),
            (
                &padded,
                RouteWish { to: Some(" +2 "), ..RouteWish::default() },
                (Some("whatsapp"), Some("+2"), Some("acct-1")),
            ),
        ];
        for (last, wish, (channel, to, account)) in rows {
            let found = route(Some(last), wish);
            let shown = (found.channel.as_deref(), found.to.as_deref(), found.account.as_deref());
            assert_eq!(shown, (channel, to, account), "{wish:?}");
            assert_eq!(found.is_explicit, wish.to.is_some(), "implicit unless named");
        }
        assert_eq!(route(None, RouteWish::default()), Routed::default());
    }
}
