//! `Admitted`: the facts about a request that the service behind the layer gets, and how it gets them.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::User;
use http::request::Parts;
use http::{Extensions, Request};

use crate::control::class::Class;
use crate::layer::identify::Unidentified;

/// The facts that the layer knows of a request that it lets through.
///
/// A service gets it in one of two ways: as a part of [`AdmittedRequest`] with
/// [`FlowLayer::pass_admitted`](crate::FlowLayer::pass_admitted), which allocates nothing, or as an extension of the request
/// with [`FlowLayer::insert_admitted`](crate::FlowLayer::insert_admitted), which handlers of axum take as an argument (feature
/// `axum`).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Admitted<X = ()> {
    /// The user who sends the request.
    pub user: Arc<User>,
    /// The flow schema and the priority level of the request; `None` if the request
    /// [is not limited](crate::service::Occupancy::None).
    pub class: Option<Class>,
    /// The seats that the request was estimated to take; 0 if it is not limited.
    pub seats: u32,
    /// The queue of the level that the request was put into, counted from 0; `None` if the level has no queues, or if the request
    /// is not limited. A request that need not wait goes through a queue, too.
    pub queue: Option<u32>,
    /// How long the request [waited](crate::Permit::waited) for its seats.
    pub waited: Duration,
    /// What the [digest](crate::digest::Digest::Extra) found beyond the [`RequestInfo`](crate::RequestInfo).
    pub extra: X,
}

/// A request with what the layer knows of it, for a service behind a layer that
/// [passes both on](crate::FlowLayer::pass_admitted).
///
/// Not `#[non_exhaustive]`: it is a pair, which services take apart.
#[derive(Debug)]
pub struct AdmittedRequest<A, X = ()> {
    /// The request, as the layer got it.
    pub request: Request<A>,
    /// What the layer knows of it.
    pub admitted: Admitted<X>,
}

/// How the service behind the layer gets its requests: see [`FlowLayer`](crate::FlowLayer). Only the types of this crate
/// implement it.
pub trait HandOver<A, X>: sealed::Sealed {
    /// The type of request that the service is called with.
    type Request: RequestHead;
    /// The form in which the user is kept until then.
    type User;

    /// The user of a request that was classified.
    fn known_user(user: Arc<User>) -> Self::User;

    /// The user of a request that is not limited, identified only if the service is told who it is.
    fn unlimited_user(identify: impl FnOnce() -> Result<Arc<User>, Unidentified>) -> Result<Self::User, Unidentified>;

    /// Makes the request that the service is called with. A limited request has its class, its seats and its queue.
    fn hand_over(
        request: Request<A>,
        user: Self::User,
        place: impl FnOnce() -> Option<(Class, u32, Option<u32>)>,
        extra: X,
    ) -> Self::Request;

    /// The request has waited for this long, and has its seats now.
    fn note_waited(request: &mut Self::Request, waited: Duration);
}

/// The head of a request, which the layer still needs while it waits.
pub trait RequestHead: sealed::Sealed + Sized {
    /// The head of the request, if the request does not get to the service.
    fn into_parts(self) -> Parts;
    /// The extensions of the request.
    fn extensions_mut(&mut self) -> &mut Extensions;
}

/// The service gets the request, and nothing else. This is the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestOnly;

/// The service gets an [`AdmittedRequest`].
#[derive(Debug, Clone, Copy, Default)]
pub struct PassAdmitted;

/// The service gets the request with an [`Admitted`] among its extensions.
#[derive(Debug, Clone, Copy, Default)]
pub struct InsertAdmitted;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::RequestOnly {}
    impl Sealed for super::PassAdmitted {}
    impl Sealed for super::InsertAdmitted {}
    impl<A> Sealed for http::Request<A> {}
    impl<A, X> Sealed for super::AdmittedRequest<A, X> {}
}

// === impl Admitted ===

impl<X> Admitted<X> {
    fn new(user: Arc<User>, place: Option<(Class, u32, Option<u32>)>, extra: X) -> Self {
        match place {
            Some((class, seats, queue)) => {
                Self { user, class: Some(class), seats, queue, waited: Duration::ZERO, extra }
            }
            None => Self { user, class: None, seats: 0, queue: None, waited: Duration::ZERO, extra },
        }
    }
}

// === impl HandOver ===

impl<A, X> HandOver<A, X> for RequestOnly {
    type Request = Request<A>;
    type User = ();

    #[inline]
    fn known_user(_user: Arc<User>) {}

    #[inline]
    fn unlimited_user(_identify: impl FnOnce() -> Result<Arc<User>, Unidentified>) -> Result<(), Unidentified> {
        Ok(())
    }

    #[inline]
    fn hand_over(
        request: Request<A>,
        (): (),
        _place: impl FnOnce() -> Option<(Class, u32, Option<u32>)>,
        _extra: X,
    ) -> Self::Request {
        request
    }

    fn note_waited(_request: &mut Self::Request, _waited: Duration) {}
}

impl<A, X> HandOver<A, X> for PassAdmitted {
    type Request = AdmittedRequest<A, X>;
    type User = Arc<User>;

    #[inline]
    fn known_user(user: Arc<User>) -> Arc<User> {
        user
    }

    #[inline]
    fn unlimited_user(identify: impl FnOnce() -> Result<Arc<User>, Unidentified>) -> Result<Arc<User>, Unidentified> {
        identify()
    }

    #[inline]
    fn hand_over(
        request: Request<A>,
        user: Arc<User>,
        place: impl FnOnce() -> Option<(Class, u32, Option<u32>)>,
        extra: X,
    ) -> Self::Request {
        AdmittedRequest { request, admitted: Admitted::new(user, place(), extra) }
    }

    fn note_waited(request: &mut Self::Request, waited: Duration) {
        request.admitted.waited = waited;
    }
}

impl<A, X: Clone + Send + Sync + 'static> HandOver<A, X> for InsertAdmitted {
    type Request = Request<A>;
    type User = Arc<User>;

    fn known_user(user: Arc<User>) -> Arc<User> {
        user
    }

    fn unlimited_user(identify: impl FnOnce() -> Result<Arc<User>, Unidentified>) -> Result<Arc<User>, Unidentified> {
        identify()
    }

    fn hand_over(
        mut request: Request<A>,
        user: Arc<User>,
        place: impl FnOnce() -> Option<(Class, u32, Option<u32>)>,
        extra: X,
    ) -> Self::Request {
        request.extensions_mut().insert(Admitted::new(user, place(), extra));
        request
    }

    fn note_waited(request: &mut Self::Request, waited: Duration) {
        if let Some(admitted) = request.extensions_mut().get_mut::<Admitted<X>>() {
            admitted.waited = waited;
        }
    }
}

// === impl RequestHead ===

impl<A> RequestHead for Request<A> {
    fn into_parts(self) -> Parts {
        Request::into_parts(self).0
    }

    fn extensions_mut(&mut self) -> &mut Extensions {
        Request::extensions_mut(self)
    }
}

impl<A, X> RequestHead for AdmittedRequest<A, X> {
    fn into_parts(self) -> Parts {
        self.request.into_parts().0
    }

    fn extensions_mut(&mut self) -> &mut Extensions {
        self.request.extensions_mut()
    }
}
