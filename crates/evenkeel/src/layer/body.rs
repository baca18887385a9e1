//! `FlowBody`: the body of a response. It keeps the seats of its request until it has ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::control::flow_control::RateFields;
use crate::control::long_running::LongRunning;
use crate::control::permit::{HeldPermit, SharedPermit};
use crate::control::work::Watch;
use crate::layer::cost;
use crate::layer::revoked::{LAST_EVENT, RevokedEnd};

pin_project! {
    /// The body of a response: that of the service, or a short text of the layer with the reason why there is none.
    ///
    /// The seats of the request are given back when the body ends, when it fails and when it is dropped. Size hints and
    /// trailers are those of the service's body.
    #[derive(Debug)]
    pub struct FlowBody<B> {
        #[pin]
        kind: BodyKind<B>,
        held: Held,
        // The place of an upgraded connection among the long-running requests. It ends with the connection, and not with
        // the body, which has ended already.
        upgraded: Option<LongRunning>,
    }
}

pin_project! {
    #[project = BodyKindProjection]
    #[derive(Debug)]
    enum BodyKind<B> {
        Service { #[pin] body: B },
        Own { text: Bytes },
    }
}

/// The things that a request holds while its response is under way.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The seats of the request, if it still has some. A request without seats keeps its place among the long-running ones with it.
    pub(crate) permit: Option<HeldPermit>,
    /// The request's place among the watches, if it is a watch that counts.
    pub(crate) watch: Option<Box<Watch>>,
    /// The request's place among the long-running ones, once it has given its seats back.
    pub(crate) long_running: Option<LongRunning>,
    /// The rate fields for its response, until the head is there.
    pub(crate) rate_fields: Option<Box<RateFields>>,
    /// How the request ends if it is told to.
    pub(crate) revoked_end: RevokedEnd,
}

// === impl Held ===

impl Held {
    /// Whether the request has seats. One that takes none has a permit all the same.
    #[inline]
    pub(crate) fn has_seats(&self) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.seats() > 0)
    }

    /// Gives the seats away, if there are any.
    pub(crate) fn take_seats(&mut self) -> Option<SharedPermit> {
        if self.has_seats() { self.permit.take().map(HeldPermit::into_shared) } else { None }
    }

    /// Notes that the service has not done what was asked.
    pub(crate) fn mark_failed(&self) {
        if let Some(permit) = &self.permit {
            permit.mark_failed();
        }
    }

    /// Notes that the client has left before there was a response.
    pub(crate) fn mark_left(&self) {
        if let Some(permit) = &self.permit {
            permit.mark_left();
        }
    }

    /// Ready if the request is told to end.
    #[inline]
    pub(crate) fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        self.permit.as_ref().map_or(Poll::Pending, |permit| permit.poll_revoked(context))
    }

    /// The response has come to its end.
    #[inline]
    fn note_complete(&self) {
        if let Some(permit) = &self.permit
            && let Some(account) = permit.account()
        {
            cost::note_end(permit, account);
        }
    }

    /// A frame of the response.
    #[inline]
    fn note_frame(&self, frame: &mut Frame<Bytes>) {
        if let Some(permit) = &self.permit
            && let Some(account) = permit.account()
        {
            cost::note_frame(permit, account, frame);
        }
    }

    /// The request has been let in: a watch counts from now on, and if the response is cut off, nothing is learnt of its cost.
    #[inline]
    pub(crate) fn start(&mut self) {
        if let Some(account) = self.permit.as_ref().and_then(|permit| permit.account()) {
            account.begin_response();
        }
        if let Some(watch) = &mut self.watch {
            watch.start();
        }
    }
}

// === impl FlowBody ===

impl<B: Body> FlowBody<B> {
    /// The body of the service. One that has ended already keeps nothing.
    pub(crate) fn of_service(body: B, held: Held) -> Self {
        let held = if body.is_end_stream() {
            held.note_complete();
            Held::default()
        } else {
            held
        };
        Self { kind: BodyKind::Service { body }, held, upgraded: None }
    }
}

impl<B> FlowBody<B> {
    /// Whether the request still has its seats.
    pub fn has_permit(&self) -> bool {
        self.held.has_seats()
    }

    /// Takes the seats away from the response, to keep them for longer than its body.
    pub fn take_permit(self: Pin<&mut Self>) -> Option<SharedPermit> {
        self.project().held.take_seats()
    }

    /// Whether the request may be [told to end](crate::Permit::revoked).
    pub fn is_revocable(&self) -> bool {
        self.held.permit.as_ref().is_some_and(|permit| permit.is_revocable())
    }

    /// Ready if the request is [told to end](crate::Permit::revoked), for code that [ends it](crate::FlowLayer::leave_revoked)
    /// instead of the layer. The task is woken when it is.
    #[inline]
    pub fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        self.held.poll_revoked(context)
    }

    /// Takes over the request's place among the long-running requests of its level: see
    /// [`Permit::take_long_running`](crate::Permit::take_long_running). The body keeps it until it has ended, and that of a
    /// response that switches protocols until it is dropped. The code that serves the connection after that takes it from there.
    pub fn take_long_running(self: Pin<&mut Self>) -> Option<LongRunning> {
        let this = self.project();
        this.upgraded.take().or_else(|| this.held.long_running.take())
    }

    /// The body of the service; none if the layer has responded itself.
    pub fn service_body_mut(&mut self) -> Option<&mut B> {
        match &mut self.kind {
            BodyKind::Service { body } => Some(body),
            BodyKind::Own { .. } => None,
        }
    }

    /// The body of a response after which the connection is used for something else.
    pub(crate) fn upgraded(self, long_running: Option<LongRunning>) -> Self {
        Self { upgraded: long_running, ..self }
    }

    /// A short text instead.
    pub(crate) fn own(text: Bytes) -> Self {
        Self { kind: BodyKind::Own { text }, held: Held::default(), upgraded: None }
    }
}

impl<B: Body<Data = Bytes>> Body for FlowBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let end = this.held.revoked_end;
        if end != RevokedEnd::GoesOn && this.held.poll_revoked(context).is_ready() {
            // The service's part of the response is dropped, and with it its work; the seats are given back.
            this.kind.set(BodyKind::Own { text: Bytes::new() });
            *this.held = Held::default();
            return Poll::Ready((end == RevokedEnd::Event).then(|| Ok(Frame::data(LAST_EVENT))));
        }
        match this.kind.as_mut().project() {
            BodyKindProjection::Own { text } => {
                Poll::Ready((!text.is_empty()).then(|| Ok(Frame::data(std::mem::take(text)))))
            }
            BodyKindProjection::Service { mut body } => {
                // Taken out meanwhile, so that a body that panics gives the seats back before the panic goes on.
                let held = std::mem::take(this.held);
                let mut frame = body.as_mut().poll_frame(context);
                let goes_on = match &mut frame {
                    Poll::Pending => true,
                    Poll::Ready(Some(Ok(frame))) => {
                        held.note_frame(frame);
                        // Servers need not poll again after the last frame, so the seats are given back now.
                        !body.is_end_stream()
                    }
                    Poll::Ready(Some(Err(_))) => {
                        held.mark_failed();
                        false
                    }
                    Poll::Ready(None) => false,
                };
                if goes_on {
                    *this.held = held;
                } else if !matches!(frame, Poll::Ready(Some(Err(_)))) {
                    held.note_complete();
                }
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Service { body } => body.is_end_stream(),
            BodyKind::Own { text } => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Service { body } => body.size_hint(),
            BodyKind::Own { text } => SizeHint::with_exact(text.len() as u64),
        }
    }
}

impl<B: Default> Default for FlowBody<B> {
    fn default() -> Self {
        Self { kind: BodyKind::Service { body: B::default() }, held: Held::default(), upgraded: None }
    }
}
