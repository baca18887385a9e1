//! `PriorityLevelConfigurationSpec` and its parts, and the macro that makes the variants of the older versions.

use crate::schema::{TypeName, Union, declare_choice, declare_type};

/// The shares of a limited level that names none (API-25).
pub const CONCURRENCY_SHARES_DEFAULT: i32 = 30;
/// The shares of an exempt level that names none (API-26).
pub const EXEMPT_CONCURRENCY_SHARES_DEFAULT: i32 = 0;
/// The lendable part of a level that names none, in percent (API-24, API-26).
pub const LENDABLE_PERCENT_DEFAULT: i32 = 0;
/// The queues of a level that names no number (API-23).
pub const QUEUES_DEFAULT: i32 = 64;
/// The hand size of a level that names none (API-23).
pub const HAND_SIZE_DEFAULT: i32 = 8;
/// The queue length of a level that names none (API-23).
pub const QUEUE_LENGTH_LIMIT_DEFAULT: i32 = 50;
/// The most queues that a level may have (API-48).
pub const QUEUES_MAX: i32 = 10_000_000;

/// Declares `PriorityLevelConfigurationSpec` and `LimitedPriorityLevelConfiguration` of one version.
///
/// The versions differ in one member, the shares (API-7): it comes as the argument, the rest is said here once.
macro_rules! declare_priority_level {
    (
        $(deprecated { spec: $spec_note:literal, limited: $limited_note:literal })?
        $(#[doc = $doc:literal])+ $shares:ident $wire:literal: $Shares:ty [$($attribute:tt)*]
    ) => {
        declare_type! {
            /// Defines how many seats a priority level has, and what happens to requests when all of them are taken.
            $(#[deprecated(note = $spec_note)])?
            pub struct PriorityLevelConfigurationSpec(
                TypeName::Fixed("PriorityLevelConfigurationSpec"), Flowcontrol, Union {
                    discriminator: "type",
                    members: &[("exempt", "Exempt"), ("limited", "Limited")],
                }
            ) {
                /// Whether the level limits its requests: `Limited`, or `Exempt` for the level named `exempt`.
                enablement "type" = 1: PriorityLevelEnablement [required always_written],
                /// The limits, if `type` is `Limited`.
                limited "limited" = 2: Option<LimitedPriorityLevelConfiguration> [],
                /// The seats that an exempt level lends, if `type` is `Exempt`.
                exempt "exempt" = 3: Option<ExemptPriorityLevelConfiguration> [],
            }
        }

        declare_type! {
            /// The limits of a level: its share of the server's seats, what it lends and borrows, and what happens to
            /// requests when all seats are taken.
            $(#[deprecated(note = $limited_note)])?
            pub struct LimitedPriorityLevelConfiguration(
                TypeName::Fixed("LimitedPriorityLevelConfiguration"), Flowcontrol
            ) {
                $(#[doc = $doc])+
                $shares $wire = 1: $Shares [$($attribute)*],
                /// What happens to a request when all seats are taken.
                limit_response "limitResponse" = 2: LimitResponse [required],
                /// The part of the level's own seats that other levels may borrow while they are idle, in percent
                /// from 0 to 100.
                lendable_percent "lendablePercent" = 3: Option<i32> [default(LENDABLE_PERCENT_DEFAULT)],
                /// How many seats the level may borrow from others, in percent of its own seats. Without it, there is
                /// no limit.
                borrowing_limit_percent "borrowingLimitPercent" = 4: Option<i32> [],
            }
        }

        impl crate::Spec for PriorityLevelConfigurationSpec {
            const KIND: crate::Kind = crate::Kind::PriorityLevelConfiguration;
        }
    };
}

declare_priority_level! {
    /// The level's share of the server's seats, in proportion to the shares of all levels. With 0, the level has no
    /// seats of its own.
    nominal_concurrency_shares "nominalConcurrencyShares": Option<i32> [default(CONCURRENCY_SHARES_DEFAULT)]
}

declare_choice! {
    /// Whether a level limits its requests.
    pub enum PriorityLevelEnablement {
        /// Every request starts at once.
        Exempt,
        /// Requests run within the level's seats.
        Limited,
    }
}

declare_type! {
    /// The seats of an exempt level. Its requests never wait for them, but the level can lend idle seats to other
    /// levels.
    pub struct ExemptPriorityLevelConfiguration(TypeName::Fixed("ExemptPriorityLevelConfiguration"), Flowcontrol) {
        /// The level's share of the server's seats, in proportion to the shares of all levels.
        nominal_concurrency_shares "nominalConcurrencyShares" = 1: Option<i32>
            [default(EXEMPT_CONCURRENCY_SHARES_DEFAULT)],
        /// The part of the level's own seats that other levels may borrow while they are idle, in percent from 0 to
        /// 100.
        lendable_percent "lendablePercent" = 2: Option<i32> [default(LENDABLE_PERCENT_DEFAULT)],
    }
}

declare_type! {
    /// What happens to a request when all seats are taken.
    pub struct LimitResponse(TypeName::Fixed("LimitResponse"), Flowcontrol, Union {
        discriminator: "type",
        members: &[("queuing", "Queuing")],
    }) {
        /// Whether such a request waits in a queue (`Queue`) or is rejected at once (`Reject`).
        response "type" = 1: LimitResponseType [required always_written],
        /// The queues, if `type` is `Queue`.
        queuing "queuing" = 2: Option<QueuingConfiguration> [],
    }
}

declare_choice! {
    /// What happens to a request when all seats are taken.
    pub enum LimitResponseType {
        /// It waits in a queue.
        Queue,
        /// It is rejected at once.
        Reject,
    }
}

declare_type! {
    /// The queues in which the requests of a level wait.
    pub struct QueuingConfiguration(TypeName::Fixed("QueuingConfiguration"), Flowcontrol) {
        /// The number of queues. More queues make it less likely that two flows share one. With 1, all flows share
        /// one queue.
        queues "queues" = 1: i32 [always_written default(QUEUES_DEFAULT)],
        /// How many queues each flow may use. A request joins the one with the least work. With a larger hand, it is
        /// less likely that a busy flow blocks all queues of a quiet one; with a smaller hand, a busy flow reaches
        /// fewer queues. At most `queues`.
        hand_size "handSize" = 2: i32 [always_written default(HAND_SIZE_DEFAULT)],
        /// How many requests may wait in one queue. Further requests are rejected.
        queue_length_limit "queueLengthLimit" = 3: i32 [always_written default(QUEUE_LENGTH_LIMIT_DEFAULT)],
    }
}

pub(crate) use declare_priority_level;
