//! How many seats an instance may use, and until when.

use evenkeel_engine::time::Instant;

/// How many seats an instance may use, and until when: to be checked at every start of a request (FL-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowance {
    /// The seats until `grant_until`.
    pub grant: u64,
    /// When the grant ends, unless it is renewed.
    pub grant_until: Instant,
    /// The seats after that, until `floor_until`.
    pub floor: u64,
    /// When the floor ends. Nothing may start after it.
    pub floor_until: Instant,
}

/// What the seats of an instance come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Footing {
    /// From its grant: the instance is connected.
    Grant,
    /// From its floor: the instance is cut off from etcd, or not registered.
    Floor,
    /// From nothing: the instance starts no requests.
    Nothing,
}

// === impl Footing ===

impl Footing {
    /// Its name in metrics and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Floor => "floor",
            Self::Nothing => "nothing",
        }
    }
}

// === impl Allowance ===

impl Allowance {
    /// No seats at any time.
    pub const NONE: Self = Self {
        grant: 0,
        grant_until: Instant::from_nanos(i64::MIN),
        floor: 0,
        floor_until: Instant::from_nanos(i64::MIN),
    };

    /// So many seats until a time, then fewer until another.
    pub const fn new(grant: u64, grant_until: Instant, floor: u64, floor_until: Instant) -> Self {
        Self { grant, grant_until, floor, floor_until }
    }

    /// How many seats may be in use when a request starts now.
    pub fn seats(&self, now: Instant) -> u64 {
        match self.footing(now) {
            Footing::Grant => self.grant.max(self.floor),
            Footing::Floor => self.floor,
            Footing::Nothing => 0,
        }
    }

    /// What the seats come from now.
    pub fn footing(&self, now: Instant) -> Footing {
        if now < self.grant_until {
            Footing::Grant
        } else if now < self.floor_until {
            Footing::Floor
        } else {
            Footing::Nothing
        }
    }
}
