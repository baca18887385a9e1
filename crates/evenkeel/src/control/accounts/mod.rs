//! Accounts: the costs of requests and the rates of their flows, for flow schemas whose objects say something of either (CO, RL).
//! Requests of all other schemas never come here.

mod flow_rates;
mod ledgers;
mod request_account;
mod schema_accounts;
mod throttled;

pub(crate) use ledgers::{AccountSample, LevelAccounts};
pub(crate) use request_account::{RequestAccount, Settled, Taken};
pub(crate) use schema_accounts::{Passed, SchemaAccounts};
pub(crate) use throttled::{Throttled, ThrottledRequest, Wait};
