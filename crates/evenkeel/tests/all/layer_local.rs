//! The layer on a runtime of one thread, around a service whose futures, answers and errors stay on it.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::identify::Anonymous;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tower::{Layer, Service, service_fn};

/// A body that counts on its own thread how often it was asked. It may go nowhere else.
struct LocalBody {
    asked: Rc<Cell<u32>>,
}

impl Body for LocalBody {
    type Data = Bytes;
    type Error = Rc<str>;

    fn poll_frame(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.asked.set(self.asked.get() + 1);
        Poll::Ready((self.asked.get() == 1).then(|| Ok(Frame::data(Bytes::from_static(b"local")))))
    }
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_has_to_be_sent_to_another_thread() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(100).build();
    let asked = Rc::new(Cell::new(0));
    let counted = Rc::clone(&asked);
    let mut service = flow.layer(Anonymous).layer(service_fn(move |request: Request<Rc<str>>| {
        let asked = Rc::clone(&counted);
        async move {
            // Something that is not `Send` is alive while it waits.
            let body = request.into_body();
            tokio::task::yield_now().await;
            assert_eq!(&*body, "question");
            Ok::<_, Infallible>(Response::new(LocalBody { asked }))
        }
    }));
    let local = tokio::task::LocalSet::new();
    let answer = local.run_until(async move {
        let request = Request::new(Rc::from("question"));
        let response = tokio::task::spawn_local(service.call(request)).await.unwrap().unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    });
    assert_eq!(&*answer.await, b"local");
    assert_eq!(asked.get(), 2);
    assert!(flow.status().iter().all(evenkeel::status::LevelStatus::is_idle));
}
