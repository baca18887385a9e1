//! Handlers of axum that take what the layer knows as an argument, and clients that are known by their addresses.
#![cfg(feature = "axum")]

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::routing::get;
use evenkeel::identify::{Anonymous, PeerAddress};
use evenkeel::{Admitted, FlowControl};
use http::{Request, StatusCode};
use tower::ServiceExt;

async fn whoami(admitted: Admitted) -> String {
    let level = admitted.class.as_ref().map_or("none", |class| class.priority_level());
    format!("{} in {level}", admitted.user.name)
}

fn flow() -> FlowControl {
    FlowControl::builder().server_concurrency(10).drive_by_hand().build()
}

async fn respond(app: Router, request: Request<Body>) -> (StatusCode, String) {
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_handler_takes_admitted_as_an_argument() {
    let app = Router::new().route("/", get(whoami));
    let inserted = app.clone().layer(flow().layer(Anonymous).insert_admitted());
    let response = respond(inserted, Request::new(Body::empty())).await;
    assert_eq!(response, (StatusCode::OK, "system:anonymous in everyone".to_owned()));

    let (status, text) = respond(app.layer(flow().layer(Anonymous)), Request::new(Body::empty())).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.ends_with("put the route into a flow layer with `insert_admitted()`"), "{text}");
}

#[tokio::test]
async fn a_client_is_its_address() {
    let identify = PeerAddress::new(|info: &ConnectInfo<SocketAddr>| info.0.ip());
    let app = Router::new().route("/", get(whoami)).layer(flow().layer(identify).insert_admitted());
    for (address, user) in [("192.0.2.7:4000", "address:192.0.2.7"), ("[2001:db8::1]:4000", "address:2001:db8::/64")] {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(address.parse().unwrap()));
        assert_eq!(respond(app.clone(), request).await, (StatusCode::OK, format!("{user} in everyone")));
    }
    assert_eq!(respond(app, Request::new(Body::empty())).await.0, StatusCode::INTERNAL_SERVER_ERROR);
}
