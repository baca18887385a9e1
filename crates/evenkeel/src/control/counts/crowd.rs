//! The kinds of requests that are counted for the whole server.

use evenkeel_engine::RequestInfo;

/// Whether a request reads or writes (HF-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Access {
    #[default]
    ReadOnly,
    Mutating,
}

/// What a request of a crowd does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Waiting,
    Executing,
}

/// All kinds of requests, in the order in which they are counted.
pub(crate) const CROWD_KINDS: [(Doing, Access); 4] = [
    (Doing::Waiting, Access::ReadOnly),
    (Doing::Waiting, Access::Mutating),
    (Doing::Executing, Access::ReadOnly),
    (Doing::Executing, Access::Mutating),
];

// === impl Access ===

impl Access {
    #[inline]
    pub(crate) fn of(request: &RequestInfo<'_>) -> Self {
        if request.is_read_only() { Self::ReadOnly } else { Self::Mutating }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnly",
            Self::Mutating => "mutating",
        }
    }
}

// === impl Doing ===

impl Doing {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Executing => "executing",
        }
    }
}
