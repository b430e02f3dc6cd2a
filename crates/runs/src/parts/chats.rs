//! Parts for answers and notices in chats.

use std::sync::Arc;

use super::base::Base;
use super::sessions::SessionParts;
use crate::acknowledge::Acknowledgements;
use crate::deliver::{Deliveries, Routes};
use crate::ending::RunEnds;
use crate::hooks::Hooks;
use crate::message_host::ActionHost;
use crate::notices::Notices;
use crate::prefixes::Prefixes;
use crate::replies::{ChatAnswers, Replies};
use crate::reply_media::ReplyFiles;
use crate::talk_step::Talks;
use crate::waiting::WaitingSigns;

/// Parts for answers and notices in chats.
pub(super) struct ChatParts {
    pub(super) hooks: Arc<Hooks>,
    pub(super) answers: Arc<ChatAnswers>,
    pub(super) prefixes: Arc<Prefixes>,
    pub(super) notices: Arc<Notices>,
    pub(super) routes: Arc<Routes>,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) actions: Arc<ActionHost>,
    pub(super) acks: Arc<Acknowledgements>,
    pub(super) signs: Arc<WaitingSigns>,
    pub(super) ends: Arc<RunEnds>,
}

impl ChatParts {
    pub(super) fn new(base: &Base, sessions: &SessionParts) -> Self {
        let Base { settings, platforms, outbox, clock, .. } = base;
        let SessionParts { rows, messages, send_rules, .. } = sessions;
        let hooks = Arc::new(Hooks::new(
            settings.clone(),
            base.secrets.clone(),
            base.command_variables.clone(),
            base.command_lock.clone(),
            clock.clone(),
        ));
        let answers = Arc::new(ChatAnswers::new(
            settings.clone(),
            platforms.clone(),
            sessions.rights.clone(),
            hooks.clone(),
            ReplyFiles::new(settings.clone(), base.state_dir.clone()),
            outbox.clone(),
            clock.clone(),
        ));
        let prefixes = Arc::new(Prefixes::new(settings.clone(), rows.clone(), base.models.clone()));
        let notices = Arc::new(Notices::new(answers.clone(), prefixes.clone()));
        let routes = Arc::new(Routes::new(settings.clone(), rows.clone(), platforms.clone()));
        let deliveries = Arc::new(Deliveries::new(
            answers.clone(),
            prefixes.clone(),
            send_rules.clone(),
            hooks.clone(),
            outbox.clone(),
        ));
        let actions = Arc::new(ActionHost::new(
            settings.clone(),
            base.state_dir.clone(),
            platforms.clone(),
            outbox.clone(),
            routes.clone(),
            deliveries.clone(),
        ));
        let acks = Arc::new(Acknowledgements::new(
            settings.clone(),
            platforms.clone(),
            messages.clone(),
            base.tasks.accepting.clone(),
            base.stops.stopping.clone(),
        ));
        let signs = WaitingSigns::new(messages.clone(), settings.clone(), platforms.clone());
        let ends = RunEnds::new(
            base.journal.clone(),
            clock.clone(),
            Replies::new(answers.clone(), prefixes.clone(), messages.clone(), base.secrets.clone()),
            Talks::new(messages.clone(), send_rules.clone(), base.host.clone()),
            acks.clone(),
        );
        let (signs, ends) = (Arc::new(signs), Arc::new(ends));
        Self { hooks, answers, prefixes, notices, routes, deliveries, actions, acks, signs, ends }
    }
}
