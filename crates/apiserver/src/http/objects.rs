//! A request about objects: its parameters, and what comes back (API-5).

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_api::meta::Time;
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{HubSpec, Kind, annotations};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::call::Call;
use super::findings;
use super::reply::Reply;
use super::zero_shares::ZeroShares;
use crate::audit_trail::Change;
use crate::body;
use crate::clock::now;
use crate::failure::Failure;
use crate::gzip;
use crate::in_flight::Room;
use crate::managed_fields::WriteTarget;
use crate::negotiate::{self, BodyFormat, PatchType, Shape, Wanted};
use crate::offload::Offload;
use crate::options::{
    DeleteOptions, ListOptions, Moment, Persistence, Propagation, WatchOptions, WriteKind, WriteOptions,
};
use crate::output::{self, Columns, EventWriter, Format, ListMeta, View};
use crate::owners;
use crate::registry::{ListForm, Record, Registry};
use crate::route::{ObjectsRoute, Scope};
use crate::verb::Verb;
use crate::verbs::{self, Deleted, Listed, Patch, Write, Written};
use crate::watch::{CountedWatch, WatchBody, WatchStream};
use crate::websocket::{Handshake, MessageType};

/// A request about objects whose path, method and media type are valid.
#[derive(Debug)]
pub(super) struct ObjectsCall<'a> {
    call: Call<'a>,
    route: &'a ObjectsRoute,
    verb: Verb,
    wanted: Wanted,
    /// The type of the patch, if it is one.
    patch_type: Option<PatchType>,
}

/// The valid parameters of a request.
#[derive(Debug)]
pub(super) enum Prepared {
    Get(Moment),
    List(ListOptions),
    Watch(WatchOptions),
    Write(WriteOptions, BodyFormat),
    Patch(WriteOptions, PatchType),
    Delete(BodyFormat),
    DeleteCollection(ListOptions, BodyFormat),
}

/// A response with a smaller object takes no room of its connection.
const COUNTED_BYTES_MIN: usize = 16 * 1024;
/// Smaller lists are encoded for each client.
const SHARED_BYTES_MIN: usize = 64 * 1024;
/// A JSON patch takes as long as another request of this many times its length.
const JSON_PATCH_WEIGHT: usize = 64;

// === impl ObjectsCall ===

impl<'a> ObjectsCall<'a> {
    /// Rejects unsupported methods and media types.
    pub(super) fn new(call: Call<'a>, route: &'a ObjectsRoute) -> Result<Self, Failure> {
        let verb = call.context.target.verb.ok_or_else(Failure::no_method)?;
        let endpoint = match verb {
            Verb::Watch => negotiate::ResponseKind::Watch,
            Verb::List | Verb::DeleteCollection => negotiate::ResponseKind::Collection,
            _ => negotiate::ResponseKind::Object,
        };
        let wanted = call.asked.objects(endpoint)?;
        let patch_type = match verb {
            Verb::Patch => Some(negotiate::patch_type(content_type(call))?),
            _ => None,
        };
        Ok(Self { call, route, verb, wanted, patch_type })
    }

    pub(super) fn verb(&self) -> Verb {
        self.verb
    }

    /// Reads the parameters.
    pub(super) fn prepare(&self) -> Result<Prepared, Failure> {
        let (query, headers) = (self.call.query, &self.call.parts.headers);
        let format = || negotiate::body_format(content_type(self.call));
        Ok(match self.verb {
            Verb::Get => Prepared::Get(Moment::of_get(query)?),
            Verb::List => Prepared::List(ListOptions::read(query)?),
            Verb::Watch => {
                let mut options = WatchOptions::read(query)?;
                if let Scope::Watched(Some(name)) = &self.route.scope {
                    options.selection = options.selection.only(name.clone());
                }
                Prepared::Watch(options)
            }
            Verb::Create => {
                let format = format()?;
                Prepared::Write(WriteOptions::read(WriteKind::Create, query, headers)?, format)
            }
            Verb::Update => {
                let format = format()?;
                Prepared::Write(WriteOptions::read(WriteKind::Update, query, headers)?, format)
            }
            Verb::Patch => {
                let patch = self.patch_type.ok_or_else(Failure::unknown_patch_type)?;
                let kind = if patch == PatchType::Apply { WriteKind::Apply } else { WriteKind::Patch };
                Prepared::Patch(WriteOptions::read(kind, query, headers)?, patch)
            }
            Verb::Delete => Prepared::Delete(format()?),
            Verb::DeleteCollection => {
                let format = format()?;
                Prepared::DeleteCollection(ListOptions::read(query)?, format)
            }
        })
    }

    /// Carries out the request.
    pub(super) async fn run<S: HubSpec + ValidSpec + Columns>(
        &self,
        registry: &Arc<Registry<S>>,
        prepared: Prepared,
        body: Bytes,
        warnings: &mut Vec<String>,
    ) -> Result<Reply, Failure> {
        let now = now();
        match prepared {
            Prepared::Get(moment) => {
                let stored = registry.find(self.name(), moment).await?;
                let room = self.room(stored.payload.len()).await?;
                let record = registry.decode(&stored)?;
                self.object(StatusCode::OK, &record, room).await
            }
            Prepared::List(options) => {
                let listed = verbs::list(registry, &options, &self.call.in_flight()).await?;
                self.list(registry, listed).await
            }
            Prepared::Watch(options) => self.watch(registry, options),
            Prepared::Write(options, format) => {
                let room = self.room(body.len()).await?;
                let place = Offload::of(body.len()).await;
                let mut sent =
                    place.run(|| body::decode::<S>(&body, format, self.route.version, options.validation))?;
                warnings.extend_from_slice(&sent.warnings);
                let owners = &mut sent.object.metadata.owner_references;
                warnings.extend(owners::remove_duplicates(owners, owners::DuplicatesFound::Sent));
                let write = self.write(&options, now, body.len());
                let zero_shares = ZeroShares::at_risk(registry, self.route.version, self.name()).await;
                let written = match self.verb {
                    Verb::Create => verbs::create(registry, sent, &write).await?,
                    _ => verbs::replace(registry, sent, &write).await?,
                };
                self.record(&written, &options, now);
                self.warn(&written, zero_shares, warnings).await;
                self.object(written.status, &written.record, room).await
            }
            Prepared::Patch(options, PatchType::Apply) => {
                let room = self.room(body.len()).await?;
                let write = self.write(&options, now, body.len());
                let zero_shares = ZeroShares::at_risk(registry, self.route.version, self.name()).await;
                let mut dropped = Vec::new();
                let written = verbs::apply(registry, &body, &write, &mut dropped).await;
                warnings.append(&mut dropped);
                let written = written?;
                self.record(&written, &options, now);
                self.warn(&written, zero_shares, warnings).await;
                self.object(written.status, &written.record, room).await
            }
            Prepared::Patch(options, language) => {
                let room = self.room(body.len().max(registry.cached_bytes(self.name()).await)).await?;
                // A short JSON patch can do much work.
                let weight = if language == PatchType::Json { body.len() * JSON_PATCH_WEIGHT } else { body.len() };
                let patch = Patch { language, body };
                let write = self.write(&options, now, weight);
                let zero_shares = ZeroShares::at_risk(registry, self.route.version, self.name()).await;
                let mut dropped = Vec::new();
                let written = verbs::patch(registry, &patch, &write, &mut dropped).await;
                warnings.append(&mut dropped);
                let written = written?;
                self.record(&written, &options, now);
                self.warn(&written, zero_shares, warnings).await;
                self.object(written.status, &written.record, room).await
            }
            Prepared::Delete(format) => {
                let options = DeleteOptions::read(self.call.query, &body, format)?;
                let deleted = verbs::delete(registry, self.name(), &options, now).await?;
                self.record_deletion(&deleted, self.name(), &options, now);
                match deleted {
                    Deleted::Gone { uid } => {
                        Ok(Reply::from(output::deleted(S::KIND, self.name(), &uid, self.wanted.format)))
                    }
                    Deleted::Marked(record) => {
                        let status = match options.propagation {
                            Propagation::Cascade => StatusCode::ACCEPTED,
                            _ => StatusCode::OK,
                        };
                        self.object(status, &record, None).await
                    }
                }
            }
            Prepared::DeleteCollection(which, format) => {
                let options = DeleteOptions::read(self.call.query, &body, format)?;
                let in_flight = self.call.in_flight();
                let told = |name: &str, deleted: &Deleted<S>| self.record_deletion(deleted, name, &options, now);
                let listed = verbs::delete_collection(registry, &which, &options, now, &in_flight, told).await?;
                self.list(registry, listed).await
            }
        }
    }

    /// Tells the audit trail of a write, unless it was a dry run.
    fn record<S: HubSpec>(&self, written: &Written<S>, options: &WriteOptions, now: Time) {
        if options.persistence == Persistence::Stored {
            let metadata = &written.record.object.metadata;
            self.tell(Change {
                field_manager: Some(&options.manager).filter(|manager| !manager.is_empty()).map(String::as_str),
                resource_version: Some(&metadata.resource_version),
                generation: Some(metadata.generation),
                ..self.change(S::KIND, written.record.object.name(), now)
            });
        }
    }

    /// The same for a deletion. An object that is only marked is still there.
    fn record_deletion<S: HubSpec>(&self, deleted: &Deleted<S>, name: &str, options: &DeleteOptions, now: Time) {
        if options.persistence == Persistence::Stored {
            let metadata = match deleted {
                Deleted::Gone { .. } => None,
                Deleted::Marked(record) => Some(&record.object.metadata),
            };
            self.tell(Change {
                resource_version: metadata.map(|metadata| &*metadata.resource_version),
                generation: metadata.map(|metadata| metadata.generation),
                ..self.change(S::KIND, name, now)
            });
        }
    }

    fn tell(&self, change: Change<'_>) {
        self.call.shared.audit_trail.record(&change);
    }

    /// A change, as far as it is known before its object.
    fn change<'c>(&'c self, kind: Kind, name: &'c str, time: Time) -> Change<'c> {
        let context = self.call.context;
        Change {
            time,
            user: &context.user,
            impersonator: context.impersonator.as_deref(),
            verb: self.verb,
            kind,
            name,
            subresource: matches!(self.route.scope, Scope::Status(_)).then_some("status"),
            version: self.route.version,
            field_manager: None,
            resource_version: None,
            generation: None,
        }
    }

    /// Adds warnings about the written object.
    async fn warn<S: HubSpec>(&self, written: &Written<S>, zero: Option<ZeroShares>, warnings: &mut Vec<String>) {
        warnings.extend(not_understood(written));
        warnings.extend(zero.and_then(|zero| zero.warning(&written.record)));
        warnings.extend(findings::warnings(self.call.shared, written).await);
    }

    fn name(&self) -> &str {
        match &self.route.scope {
            Scope::Object(name) | Scope::Status(name) | Scope::Watched(Some(name)) => name,
            Scope::Collection | Scope::Watched(None) => "",
        }
    }

    fn write<'w>(&'w self, options: &'w WriteOptions, now: Time, weight: usize) -> Write<'w> {
        let endpoint = match self.route.scope {
            Scope::Status(_) => WriteTarget::Status,
            _ => WriteTarget::Object,
        };
        let seats = Some(self.call.shared.seats());
        Write { version: self.route.version, name: self.name(), endpoint, options, now, weight, seats }
    }

    /// Room for a response with an object of so many bytes; small ones need none.
    async fn room(&self, bytes: usize) -> Result<Option<Room>, Failure> {
        if bytes < COUNTED_BYTES_MIN {
            return Ok(None);
        }
        self.call.in_flight().take(bytes).await.map(Some)
    }

    async fn object<S: HubSpec + Columns>(
        &self,
        status: StatusCode,
        record: &Record<S>,
        room: Option<Room>,
    ) -> Result<Reply, Failure> {
        let include = self.call.query.first("includeObject");
        let view = self.view(include.as_deref());
        let headers = &self.call.parts.headers;
        let encoded = Offload::of(record.len())
            .await
            .run(|| output::object(status, record.shown(), &view).map(|response| gzip::packed(response, headers)))?;
        Ok(Reply::with_room(encoded, room))
    }

    async fn list<S: HubSpec + Columns>(&self, registry: &Registry<S>, listed: Listed<S>) -> Result<Reply, Failure> {
        let Listed { revision, items, continue_token, remaining, room } = listed;
        let include = self.call.query.first("includeObject");
        let view = self.view(include.as_deref());
        let headers = &self.call.parts.headers;
        let bytes = items.iter().map(|record| record.len()).sum();
        let encode = || {
            let resource_version = revision.to_string();
            let metadata = ListMeta {
                resource_version: &resource_version,
                continue_token: continue_token.as_deref(),
                remaining_item_count: remaining.and_then(|count| u64::try_from(count).ok()),
            };
            let items: Vec<_> = items.iter().map(|record| record.shown()).collect();
            output::list(&metadata, &items, &view).map(|response| gzip::packed(response, headers))
        };
        if bytes < SHARED_BYTES_MIN {
            return Ok(Reply::with_room(encode()?, Some(room)));
        }
        let form = ListForm {
            revision,
            continue_token: continue_token.clone(),
            remaining,
            version: view.version,
            wanted: view.wanted,
            include_object: view.include_object.map(ToOwned::to_owned),
            now: matches!(view.wanted.shape, Shape::Table(_)).then_some(view.now),
            is_packed: gzip::is_accepted(headers),
        };
        let encode = || async { Offload::of(bytes).await.run(encode) };
        let Room { mut connection, all } = room;
        let response = registry.encodings().share(form, &items, all, encode).await?;
        connection.shrink(response.body.len());
        Ok(Reply::Whole(response, Some(connection)))
    }

    fn watch<S: HubSpec + Columns>(
        &self,
        registry: &Arc<Registry<S>>,
        options: WatchOptions,
    ) -> Result<Reply, Failure> {
        let include = self.call.query.first("includeObject");
        let writer = EventWriter::new(&self.view(include.as_deref()))?;
        let handshake = Handshake::of(self.call.parts)?;
        let permit = self.call.shared.watches.take()?;
        let stream = WatchStream::new(Arc::clone(registry), options, writer);
        let (watch, in_flight) = (WatchBody::new(stream, permit), self.call.in_flight());
        Ok(match handshake {
            None => Reply::Watch(watch, in_flight),
            Some(handshake) => {
                let message = match self.wanted.format {
                    Format::Text(_) => MessageType::Text,
                    Format::Protobuf => MessageType::Binary,
                };
                let extensions = self.call.parts.extensions.clone();
                Reply::WebSocket { handshake, watch: CountedWatch::new(watch, in_flight), message, extensions }
            }
        })
    }

    fn view<'v>(&self, include_object: Option<&'v str>) -> View<'v> {
        View { version: self.route.version, wanted: self.wanted, include_object, now: now() }
    }
}

fn content_type(call: Call<'_>) -> Option<&str> {
    call.parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
}

/// The faults of the annotations that are meant for Evenkeel (BM-2). Kubernetes stores them, and so do we.
fn not_understood<S: HubSpec>(written: &Written<S>) -> impl Iterator<Item = String> {
    let found = annotations::not_understood(S::KIND, &written.record.object.metadata.annotations);
    found.into_iter().map(|found| found.to_string())
}
