//! Questions to a [`Journal`], and its changes by their kinds.

use std::collections::HashMap;

use openclaw_channels::Address;
use openclaw_protocol::RunId;
use tokio::sync::oneshot;

use super::rows::JournalRows;
use super::{
    AccountCounts, Journal, JournalChange, JournalError, NewDelivery, StoredDelivery, Update, rules,
};
use crate::arrival::{ArrivalInsert, ArrivalRecord, NewArrival, StoredArrival};
use crate::delivery::{DeliveryInsert, DeliveryStatus, ListedDelivery, OpenDelivery, SentMessage};
use crate::inbox::{AskedRecords, KnownRun, MessageRecord};
use crate::request::RunRequest;

/// Changes. Each is as safe as its [`JournalChange::durability`] says when its future ends.
impl dyn Journal + '_ {
    /// Stores a delivery.
    pub async fn deliver(&self, delivery: NewDelivery) -> Result<DeliveryInsert, JournalError> {
        self.change(JournalChange::Deliver(Box::new(delivery))).await?.delivered()
    }

    /// Stores events of chat platforms, all or none, in this order. `None`: too many wait.
    pub async fn arrive(&self, events: Vec<NewArrival>) -> Result<Option<Vec<ArrivalInsert>>, JournalError> {
        self.change(JournalChange::Arrive(events)).await?.arrived()
    }

    /// Makes an update. `false`: its subject is not there or is past it, and nothing was changed.
    pub async fn update(&self, update: Update) -> Result<bool, JournalError> {
        self.change(JournalChange::Update(update)).await?.updated()
    }
}

/// Questions about messages.
impl dyn Journal + '_ {
    /// Looks up a run id; `None` if it is unknown.
    pub async fn message(&self, run_id: &RunId) -> Result<Option<KnownRun>, JournalError> {
        let run_id = run_id.clone();
        self.ask(move |rows| rules::known(rows, &run_id)).await
    }

    /// Returns records of messages, in the order of acceptance, at most `most`.
    pub async fn message_records(
        &self,
        asked: AskedRecords,
        most: u32,
    ) -> Result<Vec<MessageRecord>, JournalError> {
        self.ask(move |rows| rules::message_records(rows, &asked, most)).await
    }

    /// Returns the request of a message that is not finished.
    pub async fn payload(&self, run_id: &RunId) -> Result<RunRequest, JournalError> {
        let run_id = run_id.clone();
        self.ask(move |rows| rules::payload(rows, &run_id)).await
    }

    /// Returns the messages accepted since, by both ids that the transcript entry of each may have.
    pub async fn entries_since(&self, accepted_at: i64) -> Result<HashMap<String, RunId>, JournalError> {
        self.ask(move |rows| rules::entries_since(rows, accepted_at)).await
    }
}

/// Questions about deliveries.
impl dyn Journal + '_ {
    /// Returns the status of a delivery; `None` for an unknown one.
    pub async fn delivery(&self, id: &str) -> Result<Option<DeliveryStatus>, JournalError> {
        let id = id.to_owned();
        self.ask(move |rows| rules::status(rows, &id)).await
    }

    /// Returns the status of each delivery of a run's answer, in order.
    pub async fn deliveries_of(&self, run_id: &RunId) -> Result<Vec<DeliveryStatus>, JournalError> {
        let run_id = run_id.clone();
        self.ask(move |rows| rules::of_run(rows, &run_id)).await
    }

    /// Returns the delivery of this id, or those that the platform has under this id of a message.
    pub async fn deliveries_named(&self, id: &str) -> Result<Vec<DeliveryStatus>, JournalError> {
        let id = id.to_owned();
        self.ask(move |rows| rules::named(rows, &id)).await
    }

    /// Returns the first delivery of this one's conversation, if that is another and not over, so
    /// that this one waits for it.
    pub async fn delivery_ahead_of(&self, id: &str) -> Result<Option<String>, JournalError> {
        let id = id.to_owned();
        self.ask(move |rows| rules::ahead_of(rows, &id)).await
    }

    /// Returns the deliveries that were given up, the newest first, at most `most`. Not those that
    /// were thrown away.
    pub async fn failed_deliveries(&self, most: u32) -> Result<Vec<ListedDelivery>, JournalError> {
        self.ask(move |rows| rules::failed_deliveries(rows, most)).await
    }

    /// Returns the deliveries that are not over, in the order of acceptance.
    pub async fn waiting_deliveries(&self) -> Result<Vec<ListedDelivery>, JournalError> {
        self.ask(rules::waiting_deliveries).await
    }

    /// Returns the deliveries that are not over and have a number above `after`, in the order of
    /// acceptance.
    pub async fn open_deliveries(&self, after: i64) -> Result<Vec<OpenDelivery>, JournalError> {
        self.ask(move |rows| rules::open_deliveries(rows, after)).await
    }

    /// Returns the delivery of a number, whole. `None`: it is gone.
    pub async fn stored_delivery(&self, number: i64) -> Result<Option<StoredDelivery>, JournalError> {
        self.ask(move |rows| rules::stored_delivery(rows, number)).await
    }

    /// Returns the messages with this id of a platform that were sent from here, as far as they are
    /// remembered: those of the gateway itself for a month, others for a day. Several conversations
    /// may have the same id.
    pub async fn sent_messages(
        &self,
        channel: &str,
        message_id: &str,
    ) -> Result<Vec<SentMessage>, JournalError> {
        let (channel, message_id) = (channel.to_owned(), message_id.to_owned());
        self.ask(move |rows| rules::sent_messages(rows, &channel, &message_id)).await
    }
}

/// Questions about events of chat platforms.
impl dyn Journal + '_ {
    /// Returns the undecided events that have a number above `after`, in the order of arrival, at most
    /// `most`.
    pub async fn waiting_arrivals(&self, after: i64, most: u32) -> Result<Vec<StoredArrival>, JournalError> {
        self.ask(move |rows| rules::waiting_arrivals(rows, after, most)).await
    }

    /// Returns the newest events of a conversation with a number below `before` that wait as
    /// context ([`Fate::Noted`](crate::arrival::Fate::Noted)) and are in no message yet, in the order
    /// of arrival, at most `most`.
    pub async fn noted_arrivals(
        &self,
        conversation: &Address,
        before: i64,
        most: u32,
    ) -> Result<Vec<StoredArrival>, JournalError> {
        let conversation = conversation.clone();
        self.ask(move |rows| rules::noted_arrivals(rows, &conversation, before, most)).await
    }

    /// Returns records of events: those that a message or event id of a platform names, or a run;
    /// all without an id. The newest first, at most `most`.
    pub async fn arrival_records(
        &self,
        id: Option<&str>,
        most: u32,
    ) -> Result<Vec<ArrivalRecord>, JournalError> {
        let id = id.map(str::to_owned);
        self.ask(move |rows| rules::arrival_records(rows, id.as_deref(), most)).await
    }

    /// Counts the events of each [`Fate`](crate::arrival::Fate), by its name; `waiting` are those
    /// without one.
    pub async fn arrival_tally(&self) -> Result<Vec<(String, u64)>, JournalError> {
        self.ask(rules::arrival_tally).await
    }

    /// Counts the waiting and failed items of an account of a channel.
    pub async fn account_counts(&self, channel: &str, account: &str) -> Result<AccountCounts, JournalError> {
        let (channel, account) = (channel.to_owned(), account.to_owned());
        self.ask(move |rows| rules::account_counts(rows, &channel, &account)).await
    }
}

impl dyn Journal + '_ {
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn JournalRows) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (reply, mut answer) = oneshot::channel();
        let look = move |rows: &dyn JournalRows| {
            // A caller that went away meanwhile needs no answer.
            let _ = reply.send(question(rows));
        };
        self.read(Box::new(look)).await?;
        answer.try_recv().map_err(|_| JournalError::Closed)?
    }
}
