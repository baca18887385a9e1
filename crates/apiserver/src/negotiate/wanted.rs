//! `Asked`: what a client asks for, and `Wanted`: the form of the response.

use http::HeaderMap;
use http::header::{ACCEPT, HeaderName, USER_AGENT};

use super::accept::{AcceptEntry, WantedKind, best, entries};
use super::pretty::layout;
use crate::Failure;
use crate::failure::META_GROUP;
use crate::output::{Format, Layout, Media, TextFormat};

/// The client's wishes for the form of the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    accept: &'a str,
    layout: Layout,
}

/// The form of a response with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    /// How its text is written.
    pub(crate) format: Format,
    /// The part of the objects that the response shows.
    pub(crate) shape: Shape,
}

/// The part of objects that a response shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shape {
    /// Everything.
    #[default]
    Plain,
    /// Rows of cells (API-173).
    Table(MetaVersion),
    /// The metadata of one object (API-178).
    PartialMetadata(MetaVersion),
    /// The metadata of a list of objects (API-178).
    PartialMetadataList(MetaVersion),
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    /// The current one.
    V1,
    /// The previous one.
    V1beta1,
}

/// The content of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    /// One object.
    Object,
    /// A list.
    Collection,
    /// A watch.
    Watch,
}

/// The form of the list of groups (API-181).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoveryShape {
    /// Only the names of the groups and versions.
    Groups(TextFormat),
    /// Everything about all groups, always in JSON.
    Aggregated,
}

/// The media types of objects (API-109, API-110).
pub(crate) const SPOKEN: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const SPOKEN_BY_COLLECTIONS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf, \
    application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
const STREAMED: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
/// The media types of documents that are no objects.
const SPOKEN_BY_DOCUMENTS: &str = "application/json, application/yaml";
/// The media type that asks for the aggregated form of discovery (API-181).
const AGGREGATED: WantedKind<'_> =
    WantedKind { kind: "APIGroupDiscoveryList", version: "v2", group: "apidiscovery.k8s.io" };

// === impl Asked ===

impl<'a> Asked<'a> {
    /// Reads the header fields and the query parameter `pretty`.
    pub(crate) fn new(headers: &'a HeaderMap, pretty: Option<&str>) -> Self {
        Self { accept: text(headers, &ACCEPT), layout: layout(pretty, text(headers, &USER_AGENT)) }
    }

    /// The form of a response with objects.
    pub(crate) fn objects(&self, endpoint: ResponseKind) -> Result<Wanted, Failure> {
        if !entries(self.accept).any(|entry| Media::ALL.into_iter().any(|media| entry.names(media))) {
            return Err(Failure::not_acceptable(match endpoint {
                ResponseKind::Object => SPOKEN,
                ResponseKind::Collection | ResponseKind::Watch => SPOKEN_BY_COLLECTIONS,
            }));
        }
        let accept = |entry: &AcceptEntry<'a>, media| {
            if endpoint == ResponseKind::Watch && media == Media::Yaml {
                return None;
            }
            let shape = Shape::of(&entry.target).filter(|shape| shape.is_written_in(media))?;
            Some(Wanted { format: self.format(entry, media)?, shape })
        };
        best(self.accept, accept).ok_or_else(|| match endpoint {
            ResponseKind::Object | ResponseKind::Collection => Failure::only_accepted(SPOKEN),
            ResponseKind::Watch => Failure::only_accepted(STREAMED),
        })
    }

    /// The form of a document that has only one shape.
    pub(crate) fn document(&self) -> Result<TextFormat, Failure> {
        let accept = |entry: &AcceptEntry<'a>, media| self.plain(entry, media)?.text();
        best(self.accept, accept).ok_or_else(|| Failure::only_accepted(SPOKEN_BY_DOCUMENTS))
    }

    /// The form of a failure: plain, and JSON where nothing else is accepted.
    pub(crate) fn failure(&self) -> Format {
        let accept = |entry: &AcceptEntry<'a>, media| self.plain(entry, media);
        best(self.accept, accept).unwrap_or(Format::new(Media::Json, self.layout))
    }

    /// The form of the list of groups. The aggregated form wins wherever it stands in the list, and whatever its quality.
    pub(crate) fn discovery(&self) -> Result<DiscoveryShape, Failure> {
        let aggregated = |entry: &AcceptEntry<'a>, media| {
            (media == Media::Json && entry.target == AGGREGATED).then_some(DiscoveryShape::Aggregated)
        };
        match best(self.accept, aggregated) {
            Some(aggregated) => Ok(aggregated),
            None => self.document().map(DiscoveryShape::Groups),
        }
    }

    /// The form of an entry that asks for no other shape.
    fn plain(&self, entry: &AcceptEntry<'_>, media: Media) -> Option<Format> {
        if entry.target.is_none() { self.format(entry, media) } else { None }
    }

    /// How the text is written, if what an entry says about streams makes sense.
    fn format(&self, entry: &AcceptEntry<'_>, media: Media) -> Option<Format> {
        let layout = if entry.pretty == "1" { Layout::Indented } else { self.layout };
        matches!(entry.stream, "" | "watch").then(|| Format::new(media, layout))
    }
}

/// The text of a header: empty when it is absent, and an unknown media type when it is not UTF-8.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).map_or("", |value| std::str::from_utf8(value.as_bytes()).unwrap_or("?"))
}

// === impl Shape ===

impl Shape {
    fn of(target: &WantedKind<'_>) -> Option<Self> {
        if target.is_none() {
            return Some(Self::Plain);
        }
        let version = match target.version {
            "v1" => MetaVersion::V1,
            "v1beta1" => MetaVersion::V1beta1,
            _ => return None,
        };
        match target.kind {
            _ if target.group != META_GROUP => None,
            "Table" => Some(Self::Table(version)),
            "PartialObjectMetadata" => Some(Self::PartialMetadata(version)),
            "PartialObjectMetadataList" => Some(Self::PartialMetadataList(version)),
            _ => None,
        }
    }

    /// Whether there is such a shape in that media type: tables are text (PB-5).
    fn is_written_in(self, media: Media) -> bool {
        !matches!((self, media), (Self::Table(_), Media::Protobuf))
    }
}

// === impl MetaVersion ===

impl MetaVersion {
    /// The `apiVersion` of objects of this version.
    pub(crate) const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}
