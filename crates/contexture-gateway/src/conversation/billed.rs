//! What was billed for a conversation.

use contexture::fold::Prices;
use contexture::wire::{Answered, Usage};

use crate::account::bill::{Account, Bill};
use crate::account::cap::Spent;
use crate::account::sent_request::SentRequest;
use crate::models::Model;

/// The bill of a conversation, and the response that was billed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Billed {
    account: Account,
    /// The id of the newest response since this gateway started.
    answer_id: Option<String>,
}

impl Billed {
    /// The bill from a store.
    pub fn restored(account: Account) -> Self {
        Self { account, answer_id: None }
    }

    /// The bill of a branch. The provider's cache is that of the original, and so is the balance: otherwise a client that
    /// begins branches could be made to pay more again in each of them.
    pub fn branch(&self) -> Self {
        Self { account: self.account, answer_id: None }
    }

    /// The bill.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The id of the newest response since this gateway started.
    pub fn answer_id(&self) -> Option<&str> {
        self.answer_id.as_deref()
    }

    /// Adds what a request took. Returns what was spent by now.
    pub fn spend(&mut self, spent: Spent) -> Spent {
        self.account.spend(spent);
        self.account.spent()
    }

    /// Adds a request with the usage that its response reported.
    pub fn note(
        &mut self,
        (model, prices): (&Model, &Prices),
        sent: SentRequest,
        usage: &Usage,
        answered: &Answered,
        now_ms: u64,
    ) -> Bill {
        self.answer_id = answered.id.clone();
        self.account.note(model, prices, sent, usage, now_ms)
    }
}
