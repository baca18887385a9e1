//! Sources of costs: a program's own meter, and routes that say what costs are counted in (CO-2).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use evenkeel::cost::{CostMeter, CostUnit, CountCost, Counted, RouteCost};
use evenkeel::identify::Anonymous;
use evenkeel::metrics::prometheus_client::encoding::text;
use evenkeel::metrics::prometheus_client::registry::Registry;
use evenkeel::request::FlowRequest;
use evenkeel::work::{EstimateWork, WorkInput};
use evenkeel::{Attributes, FlowControl, Permit, RequestInfo, User, WorkEstimate};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;

use crate::layer::{Mock, Reply, TestBody, ask, get, send};
use crate::learnt_costs::{BYTES, TOKENS, controlled, objects, seats_in_use};

/// What a meter was told, in order.
type MeterCalls = Arc<Mutex<Vec<String>>>;

/// Counts the letters of responses; a request says with a number in its path what it will cost.
#[derive(Clone, Default)]
struct Letters(MeterCalls);

struct LetterMeter {
    told: MeterCalls,
    hint: Option<f64>,
}

impl CountCost for Letters {
    fn arrive(&self, parts: &Parts) -> Option<Box<dyn CostMeter>> {
        let hint = parts.uri.path().rsplit('/').next().and_then(|last| last.parse().ok());
        self.0.lock().unwrap().push(format!("arrive {}", parts.uri.path()));
        (parts.uri.path() != "/uncounted")
            .then(|| -> Box<dyn CostMeter> { Box::new(LetterMeter { told: Arc::clone(&self.0), hint }) })
    }
}

impl CostMeter for LetterMeter {
    fn expect(&mut self, learnt: Option<f64>) -> Option<f64> {
        self.told.lock().unwrap().push(format!("expect {learnt:?}"));
        self.hint.or(learnt)
    }

    fn begin(&mut self, status: StatusCode, headers: &mut HeaderMap) -> Counted {
        self.told.lock().unwrap().push(format!("begin {}", status.as_u16()));
        headers
            .remove("x-letters")
            .map_or(Counted::Nothing, |letters| Counted::Announced(letters.to_str().unwrap().parse().unwrap()))
    }

    fn progress(&mut self, frame: &mut Frame<Bytes>) -> Counted {
        self.told.lock().unwrap().push("progress".to_owned());
        #[expect(clippy::cast_precision_loss, reason = "a few letters")]
        Counted::More(frame.data_ref().map_or(0.0, |data| data.len() as f64))
    }

    fn end(&mut self) -> Counted {
        self.told.lock().unwrap().push("end".to_owned());
        Counted::Nothing
    }
}

impl Drop for LetterMeter {
    fn drop(&mut self) {
        self.told.lock().unwrap().push("drop".to_owned());
    }
}

/// A service whose responses have so many letters, in parts.
fn letters(parts: &'static [usize]) -> Mock {
    Mock::new(move |_| {
        let (frames, body) = TestBody::streamed();
        for part in parts {
            frames.send(Ok(Frame::data(Bytes::from(vec![b'x'; *part])))).unwrap();
        }
        Reply::Now(Response::builder().header("x-letters", "0").body(body).unwrap())
    })
}

fn told(letters: &Letters) -> Vec<String> {
    std::mem::take(&mut letters.0.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn co_2_a_meter_sees_arrival_progress_and_end() {
    let (flow, source) = (controlled(TOKENS), Letters::default());
    let layer = flow.layer(Anonymous).count_cost(source.clone());
    let response = ask(&layer, &letters(&[150, 250]), get("/generate"));
    assert!(!response.headers().contains_key("x-letters"), "a meter may change the head");
    let mut body = response.into_body();
    assert_eq!(seats_in_use(&flow), 1);
    body.frame().await.unwrap().unwrap();
    assert_eq!(seats_in_use(&flow), 2, "150 tokens, of which 100 are a seat");
    assert!(body.collect().await.is_ok());
    let in_order = ["arrive /generate", "expect None", "begin 200", "progress", "progress", "end", "drop"];
    assert_eq!(told(&source), in_order);
    // What it counted was learnt.
    let next = send(&layer, &Mock::stuck(), get("/generate"));
    assert_eq!(seats_in_use(&flow), 4);
    assert_eq!(told(&source)[1], "expect Some(400.0)");
    // What is cut off teaches nothing.
    drop(next);
    assert_eq!(seats_in_use(&flow), 0);
    told(&source);
    drop(ask(&layer, &letters(&[]), get("/generate")));
    let last = told(&source);
    assert_eq!((last[1].as_str(), last.last().unwrap().as_str()), ("expect Some(400.0)", "drop"));
}

/// RL-2, CO-2: its level is gone when it has waited for its rate, and it comes to another one with the meter that it had.
#[tokio::test(start_paused = true)]
async fn co_2_a_request_whose_level_went_away_keeps_its_meter() {
    let annotations = format!("{TOKENS}, evenkeel.dev/rate: 1/s;burst=1");
    let (flow, source) = (controlled(&annotations), Letters::default());
    let layer = flow.layer(Anonymous).count_cost(source.clone());
    ask(&layer, &letters(&[10]), get("/generate")).into_body().collect().await.unwrap();
    told(&source);
    let mut waiting = send(&layer, &letters(&[150, 250]), get("/generate/700"));
    assert!(waiting.poll().is_none(), "it waits for its rate");
    flow.apply(&*objects(&annotations).replace("name: api", "name: other")).unwrap();
    flow.tick();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    waiting.now().into_body().collect().await.unwrap();
    let told = told(&source);
    assert_eq!(told.iter().filter(|told| told.starts_with("arrive")).count(), 1, "{told:?}");
    assert!(told.ends_with(&["begin 200", "progress", "progress", "end", "drop"].map(str::to_owned)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_meter_knows_better_than_what_was_learnt() {
    let (flow, source) = (controlled(TOKENS), Letters::default());
    let layer = flow.layer(Anonymous).count_cost(source.clone());
    let body = ask(&layer, &letters(&[10]), get("/generate/700")).into_body();
    assert_eq!(seats_in_use(&flow), 1, "seven seats until the head said that it is short");
    body.collect().await.unwrap();
    let stuck = send(&layer, &Mock::stuck(), get("/generate/700"));
    assert_eq!(seats_in_use(&flow), 7);
    drop(stuck);
}

#[tokio::test(start_paused = true)]
async fn only_requests_whose_unit_is_tokens_are_metered() {
    for annotations in
        ["evenkeel.dev/cost: time", BYTES, "evenkeel.dev/cost: 'header:X-Cost'", "evenkeel.dev/rate: 100/s"]
    {
        let (flow, source) = (controlled(annotations), Letters::default());
        let layer = flow.layer(Anonymous).count_cost(source.clone());
        ask(&layer, &letters(&[10]), get("/generate")).into_body().collect().await.unwrap();
        assert_eq!(told(&source), [""; 0], "{annotations}");
    }
    // A source may leave a request alone.
    let (flow, source) = (controlled(TOKENS), Letters::default());
    let layer = flow.layer(Anonymous).count_cost(source.clone());
    ask(&layer, &letters(&[10]), get("/uncounted")).into_body().collect().await.unwrap();
    assert_eq!(told(&source), ["arrive /uncounted"]);
}

/// Routes that say what their cost is counted in: even ones bytes, odd ones tokens.
struct Routed {
    unit: Option<CostUnit>,
    route: u64,
    asked: AtomicUsize,
}

impl EstimateWork for Routed {
    fn estimate(&self, _request: &WorkInput<'_>) -> WorkEstimate {
        WorkEstimate::ONE_SEAT
    }

    fn route_cost(&self, _extra: &()) -> RouteCost<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        RouteCost::new(self.unit.as_ref(), Some(self.route))
    }
}

async fn routed(flow: &FlowControl, path: &'static str, unit: Option<CostUnit>, route: u64) -> Permit {
    let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("post", path));
    let work = Routed { unit, route, asked: AtomicUsize::new(0) };
    flow.admit_request(FlowRequest::new(Attributes { user: &user, request: &request }).work(work)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn co_2_a_route_says_the_unit_where_the_schema_does_not() {
    // With and without terms of the schema beside it.
    for annotations in ["", "evenkeel.dev/rate: 100/s"] {
        let flow = controlled(annotations);
        let (tokens, bytes) = (Some(CostUnit::Tokens), Some(CostUnit::Bytes));
        for _ in 0..8 {
            routed(&flow, "/a", tokens.clone(), 1).await.add_cost(50.0);
            routed(&flow, "/b", bytes.clone(), 2).await.add_cost(9000.0);
        }
        let expected = async |path, unit: &Option<CostUnit>, route| {
            let permit = routed(&flow, path, unit.clone(), route).await;
            permit.mark_failed();
            permit.cost().map(|cost| cost.expected)
        };
        assert_eq!(expected("/a", &tokens, 1).await, Some(50.0), "{annotations}");
        assert_eq!(expected("/other", &tokens, 1).await, Some(50.0), "the route counts, not the path");
        assert_eq!(expected("/b", &bytes, 2).await, Some(9000.0));
        assert_eq!(expected("/c", &bytes, 3).await, Some(9000.0), "by the schema, in the same unit");
        assert_eq!(expected("/c", &tokens, 3).await, Some(50.0));
        assert_eq!(expected("/a", &None, 1).await, None, "nothing is counted of other requests");
        assert_eq!(expected("/a", &Some(CostUnit::Time), 1).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn co_2_the_unit_of_a_schema_counts_whatever_its_routes_say() {
    for annotations in ["evenkeel.dev/cost: bytes", "evenkeel.dev/rate: 1000000/s;unit=bytes"] {
        let flow = controlled(annotations);
        for _ in 0..8 {
            routed(&flow, "/a", Some(CostUnit::Tokens), 1).await.add_cost(50.0);
        }
        for unit in [None, Some(CostUnit::Bytes), Some(CostUnit::Tokens)] {
            let permit = routed(&flow, "/a", unit, 1).await;
            permit.mark_failed();
            assert_eq!(permit.cost().map(|cost| cost.expected), Some(50.0), "one average, whatever the route says");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn co_2_a_schema_whose_unit_is_time_keeps_its_routes_from_counting() {
    let flow = controlled("evenkeel.dev/cost: time");
    let permit = routed(&flow, "/a", Some(CostUnit::Tokens), 1).await;
    permit.add_cost(50.0);
    assert_eq!(permit.cost(), None, "the time of its seats is counted anyway");
    let flow = controlled("evenkeel.dev/cost: time, evenkeel.dev/rate: 100/s");
    let permit = routed(&flow, "/a", Some(CostUnit::Tokens), 1).await;
    assert_eq!(permit.cost().map(|cost| cost.expected), Some(0.0), "it is counted in seconds");
}

#[tokio::test(start_paused = true)]
async fn learnt_seats_of_a_schema_count_in_the_unit_of_the_route() {
    let flow = controlled("evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '100'");
    for _ in 0..8 {
        routed(&flow, "/a", Some(CostUnit::Tokens), 1).await.add_cost(350.0);
    }
    let permit = routed(&flow, "/a", Some(CostUnit::Tokens), 1).await;
    assert_eq!(permit.seats(), 4);
    permit.mark_failed();
    drop(permit);
    assert_eq!(routed(&flow, "/a", None, 1).await.seats(), 1, "others are learnt by the time");
}

#[tokio::test(start_paused = true)]
async fn what_routes_have_learnt_outlives_a_change_of_the_objects() {
    let flow = controlled("");
    for _ in 0..8 {
        routed(&flow, "/a", Some(CostUnit::Tokens), 1).await.add_cost(50.0);
    }
    let cost = |flow: &FlowControl| {
        let (mut registry, mut page) = (Registry::default(), String::new());
        flow.register_metrics(&mut registry).unwrap();
        text::encode(&mut page, &registry).unwrap();
        let line = page.lines().find(|line| line.starts_with("evenkeel_request_cost_total"));
        line.map(str::to_owned)
    };
    let before = cost(&flow);
    assert!(before.as_ref().unwrap().ends_with("unit=\"tokens\"} 400.0"), "{before:?}");
    flow.apply(&*crate::learnt_costs::objects("evenkeel.dev/rate: 100/s")).unwrap();
    assert_eq!(cost(&flow), before);
    let permit = routed(&flow, "/a", Some(CostUnit::Tokens), 1).await;
    permit.mark_failed();
    assert_eq!(permit.cost().map(|cost| cost.expected), Some(50.0));
    drop(permit);
    // A unit of its own takes the place of that.
    flow.apply(&*crate::learnt_costs::objects("evenkeel.dev/cost: bytes")).unwrap();
    assert!(!cost(&flow).unwrap_or_default().contains("tokens"));
    let cost = routed(&flow, "/a", Some(CostUnit::Tokens), 1).await.cost();
    assert_eq!(cost.map(|cost| cost.expected), Some(0.0));
}
