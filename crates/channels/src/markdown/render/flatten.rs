//! Links for platforms that have none.

use std::borrow::Cow;

use super::super::styled::{Style, Styled};

/// Every link as `label (address)`, or as its address alone where that is what it is called.
pub(super) fn flattened(styled: &Styled) -> Styled {
    let mut places: Vec<(usize, Cow<'_, str>)> = Vec::new();
    for span in &styled.spans {
        let Style::Link(address) = &span.style else { continue };
        let label = styled.text.get(span.range.clone()).unwrap_or_default();
        if !is_called_so(label, address) {
            places.push((span.range.end, Cow::Owned(format!(" ({address})"))));
        }
    }
    places.sort_by_key(|(at, _)| *at);
    let without = styled.with_inserted(&places);
    without.restyled(|style| (!matches!(style, Style::Link(_))).then(|| style.clone()))
}

/// Returns true if the label of a link is its address, apart from a scheme or slash that people
/// leave out.
pub(super) fn is_called_so(label: &str, address: &str) -> bool {
    let bare = |text: &str| {
        let text = text.trim().trim_end_matches('/');
        let schemes = ["mailto:", "tel:", "https://", "http://"];
        let without = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
        without.unwrap_or(text).to_owned()
    };
    label.trim() == address.trim() || address.is_empty() || bare(label) == bare(address)
}
