//! The ways in which a member goes from our types to theirs and back.

/// The same type on both sides.
pub(super) mod same {
    pub(in super::super) fn into_theirs<T>(ours: T) -> T {
        ours
    }

    pub(in super::super) fn into_ours<T>(theirs: T) -> T {
        theirs
    }
}

/// A part that has a conversion of its own.
pub(super) mod part {
    pub(in super::super) fn into_theirs<Ours, Theirs: From<Ours>>(ours: Ours) -> Theirs {
        ours.into()
    }

    pub(in super::super) fn into_ours<Ours: From<Theirs>, Theirs>(theirs: Theirs) -> Ours {
        theirs.into()
    }
}

/// A part that may be absent on both sides.
pub(super) mod optional {
    pub(in super::super) fn into_theirs<Ours, Theirs: From<Ours>>(ours: Option<Ours>) -> Option<Theirs> {
        ours.map(Into::into)
    }

    pub(in super::super) fn into_ours<Ours: From<Theirs>, Theirs>(theirs: Option<Theirs>) -> Option<Ours> {
        theirs.map(Into::into)
    }
}

/// A list of parts that is always there.
pub(super) mod list {
    pub(in super::super) fn into_theirs<Ours, Theirs: From<Ours>>(ours: Vec<Ours>) -> Vec<Theirs> {
        ours.into_iter().map(Into::into).collect()
    }

    pub(in super::super) fn into_ours<Ours: From<Theirs>, Theirs>(theirs: Vec<Theirs>) -> Vec<Ours> {
        theirs.into_iter().map(Into::into).collect()
    }
}

/// A list of parts that is absent in theirs when it is empty in ours.
pub(super) mod list_unless_empty {
    pub(in super::super) fn into_theirs<Ours, Theirs: From<Ours>>(ours: Vec<Ours>) -> Option<Vec<Theirs>> {
        (!ours.is_empty()).then(|| super::list::into_theirs(ours))
    }

    pub(in super::super) fn into_ours<Ours: From<Theirs>, Theirs>(theirs: Option<Vec<Theirs>>) -> Vec<Ours> {
        theirs.map(super::list::into_ours).unwrap_or_default()
    }
}

/// A value that is absent in theirs when it is empty, false or zero in ours.
pub(super) mod unless_empty {
    use crate::schema::Described;

    pub(in super::super) fn into_theirs<T: Described>(ours: T) -> Option<T> {
        (!ours.is_absent()).then_some(ours)
    }

    pub(in super::super) fn into_ours<T: Default>(theirs: Option<T>) -> T {
        theirs.unwrap_or_default()
    }
}

/// A number that the API writes even when it is zero (API-9).
pub(super) mod number {
    #[allow(clippy::unnecessary_wraps, reason = "the member is optional in theirs")]
    pub(in super::super) fn into_theirs(ours: i32) -> Option<i32> {
        Some(ours)
    }

    pub(in super::super) fn into_ours(theirs: Option<i32>) -> i32 {
        theirs.unwrap_or_default()
    }
}

/// A text of few values, which is any text in theirs.
pub(super) mod choice {
    use std::fmt::Display;

    #[allow(clippy::needless_pass_by_value, reason = "the same form as its neighbours")]
    pub(in super::super) fn into_theirs(ours: impl Display) -> String {
        ours.to_string()
    }

    pub(in super::super) fn into_ours<Ours: From<String>>(theirs: String) -> Ours {
        theirs.into()
    }
}

/// A text that is required in some Kubernetes versions and optional in others.
pub(super) mod text {
    use super::Present;

    pub(in super::super) fn into_theirs<Theirs: Present<String>>(ours: String) -> Theirs {
        Theirs::present(ours)
    }

    pub(in super::super) fn into_ours(theirs: impl Present<String>) -> String {
        theirs.or_default()
    }
}

/// Something that is there, in a place where it has to be or where it may be absent.
pub(super) trait Present<T> {
    fn present(value: T) -> Self;
    fn or_default(self) -> T;
}

impl<T> Present<T> for T {
    fn present(value: T) -> Self {
        value
    }

    fn or_default(self) -> T {
        self
    }
}

impl<T: Default> Present<T> for Option<T> {
    fn present(value: T) -> Self {
        Some(value)
    }

    fn or_default(self) -> T {
        self.unwrap_or_default()
    }
}
