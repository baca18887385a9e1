//! `HeadFlags`: which headers a head has that are about the way of a message, noted while it is parsed.

use std::ops::BitOrAssign;

use http::HeaderName;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, FORWARDED, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};

/// Some sorts of fields that a head has, or may have. Looking a field up costs a hash, and most heads have few of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadFlags(u16);

// === impl HeadFlags ===

impl HeadFlags {
    /// `Connection`, if it says more than that the connection goes on.
    pub(crate) const CONNECTION: Self = Self(1);
    /// A `Connection` that says nothing else than that it goes on.
    pub(crate) const KEEP_ALIVE: Self = Self(1 << 1);
    /// `Content-Length`.
    pub(crate) const LENGTH: Self = Self(1 << 2);
    /// `Transfer-Encoding`.
    pub(crate) const CODING: Self = Self(1 << 3);
    /// `TE`.
    pub(crate) const TE: Self = Self(1 << 4);
    /// `Upgrade`.
    pub(crate) const UPGRADE: Self = Self(1 << 5);
    /// `Expect`.
    pub(crate) const EXPECT: Self = Self(1 << 6);
    /// `Content-Type`.
    pub(crate) const TYPE: Self = Self(1 << 7);
    /// Fields in which proxies say where the request comes from.
    pub(crate) const PROVENANCE: Self = Self(1 << 8);
    /// Other fields that are about one connection only.
    const HOP: Self = Self(1 << 9);
    /// Fields that are about one connection only, and are never passed on.
    pub(crate) const OF_THE_CONNECTION: Self =
        Self(Self::CONNECTION.0 | Self::CODING.0 | Self::TE.0 | Self::UPGRADE.0 | Self::HOP.0);
    /// The flags of a head that has not been looked through: it may have all sorts.
    pub(crate) const ANY: Self = Self(u16::MAX);
    /// The flags of a head without fields.
    pub(crate) const NONE: Self = Self(0);

    /// What sort of field this is.
    pub(crate) fn of(name: &HeaderName) -> Self {
        match *name {
            CONNECTION => Self::CONNECTION,
            CONTENT_LENGTH => Self::LENGTH,
            TRANSFER_ENCODING => Self::CODING,
            TE => Self::TE,
            UPGRADE => Self::UPGRADE,
            EXPECT => Self::EXPECT,
            CONTENT_TYPE => Self::TYPE,
            VIA | FORWARDED => Self::PROVENANCE,
            TRAILER | PROXY_AUTHENTICATE | PROXY_AUTHORIZATION => Self::HOP,
            _ => match name.as_str() {
                "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto" => Self::PROVENANCE,
                "keep-alive" | "proxy-connection" | "http2-settings" => Self::HOP,
                _ => Self::NONE,
            },
        }
    }

    /// Whether any field of these sorts may be there.
    pub(crate) fn has(self, sorts: Self) -> bool {
        self.0 & sorts.0 != 0
    }
}

impl BitOrAssign for HeadFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
