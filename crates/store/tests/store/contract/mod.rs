//! What every store has to do. Each case is given a store without any objects.

pub(crate) mod lists;
pub(crate) mod races;
pub(crate) mod watches;
pub(crate) mod writes;

use evenkeel_store::{HistoryLimits, Store};

use crate::until::until;

/// A history that is full soon.
pub(crate) const SHORT_HISTORY: HistoryLimits = HistoryLimits { events: 20, bytes: 1 << 20 };

/// Waits until the cache has a write. A store that is slow to be told of its own write does not make its writer wait for
/// long: reads are right at once, and what depends on the cache alone comes a little later.
pub(crate) async fn cached(store: &dyn Store, revision: u64) {
    until("the cache", || async { (store.freshness().revision >= revision).then_some(()) }).await;
}

/// One test for each case, with the store that `$open` gives: a guard, which is kept, and the store.
macro_rules! contract {
    ($open:path) => {
        crate::contract::contract!(@ $open, HistoryLimits::default(), writes in writes:
            a_new_store_is_empty_and_has_a_revision,
            a_created_object_can_be_read,
            an_object_is_created_once,
            an_update_is_conditional,
            a_removal_is_conditional,
            an_object_can_be_created_again,
            kinds_do_not_mix,
            revisions_are_one_sequence_across_kinds,
            a_read_can_ask_for_a_revision,
            names_and_payloads_have_limits,
            a_closed_store_takes_no_writes,
            objects_are_kept_byte_by_byte);
        crate::contract::contract!(@ $open, HistoryLimits::default(), lists in lists:
            a_list_is_in_the_order_of_names,
            a_list_has_a_limit_and_goes_on_after_a_name,
            pages_are_of_one_revision,
            an_old_list_shows_what_was,
            a_list_of_the_future_is_refused,
            lists_are_refused_after_compaction);
        crate::contract::contract!(@ $open, HistoryLimits::default(), watches in watches:
            a_watch_tells_every_write_with_what_was_before,
            a_watch_begins_in_the_past,
            a_watch_of_one_kind_is_told_nothing_of_the_other,
            progress_moves_on_with_the_other_kind,
            progress_waits_for_what_was_not_told_yet,
            a_dropped_wait_loses_nothing,
            a_watch_from_the_future_is_refused,
            a_watch_from_before_the_compaction_is_too_old,
            a_watcher_that_the_compaction_has_passed_is_too_old,
            a_compaction_behind_a_watcher_is_not_noticed,
            the_end_of_the_store_is_the_end_of_the_watch);
        crate::contract::contract!(@ $open, SHORT_HISTORY, short_history in watches:
            a_slow_watcher_is_too_old_and_slows_nobody);
        crate::contract::contract!(@ $open, HistoryLimits::default(), races in races:
            one_of_many_creations_wins,
            no_update_is_lost,
            writes_that_meet_the_end_are_done_or_refused,
            a_list_and_a_watch_from_there_miss_nothing);
    };
    (@ $open:path, $limits:expr, $group:ident in $module:ident: $($case:ident),+) => {
        mod $group {
            #[allow(unused_imports, reason = "not every group needs both")]
            use crate::contract::{self, SHORT_HISTORY};
            #[allow(unused_imports, reason = "not every group needs both")]
            use evenkeel_store::HistoryLimits;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (_guard, store) = $open($limits).await;
                    crate::until::soon(stringify!($case), contract::$module::$case(store)).await;
                }
            )+
        }
    };
}
pub(crate) use contract;
