//! How long it takes to classify a request, and to hash its flow.
//!
//! The bars: at most 150 ns with the bootstrap objects, mean over a realistic mix of requests, and at most three times
//! that with 1,000 more flow schemas, whatever these have in common. One iteration classifies a whole list of requests, so
//! the line to look at is the second one of each pair, requests per second: 150 ns are 6.67 Mitem/s, three times that
//! are 2.22 Mitem/s.

mod requests;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use evenkeel_engine::{Attributes, FlowHasher, flow_hash};
use requests::{MORE, Request, SHAPES, Shape, aimed_at, classifier, realistic};

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// Requests as a cluster sees them.
#[divan::bench(args = SHAPES)]
fn realistic_mix(bencher: Bencher, shape: Shape) {
    classify_all(bencher, shape, &realistic());
}

/// Requests that only the last of the further schemas matches.
#[divan::bench(args = SHAPES)]
fn last_matches(bencher: Bencher, shape: Shape) {
    classify_all(bencher, shape, &[aimed_at(shape, MORE - 1)]);
}

/// Requests for each of the further schemas in turn.
#[divan::bench(args = SHAPES)]
fn each_matches(bencher: Bencher, shape: Shape) {
    let requests: Vec<_> = (0..MORE).map(|number| aimed_at(shape, number * 7 % MORE)).collect();
    classify_all(bencher, shape, &requests);
}

/// Requests that nothing matches: the user is in no group that any schema names.
#[divan::bench(args = SHAPES)]
fn none_matches(bencher: Bencher, shape: Shape) {
    let (mut user, request) = aimed_at(Shape::None, 0);
    user.groups.retain(|group| !group.starts_with("system:"));
    classify_all(bencher, shape, &[(user, request)]);
}

/// The hash of a flow, the schema's name taken in beforehand.
#[divan::bench]
fn hash_prepared(bencher: Bencher) {
    let hasher = FlowHasher::new("service-accounts");
    bencher.bench(|| black_box(&hasher).hash(black_box("system:serviceaccount:default:default")));
}

/// The hash of a flow from both names.
#[divan::bench]
fn hash_from_both_names(bencher: Bencher) {
    bencher.bench(|| flow_hash(black_box("service-accounts"), black_box("system:serviceaccount:default:default")));
}

fn classify_all(bencher: Bencher, shape: Shape, requests: &[Request]) {
    let classifier = classifier(shape);
    bencher.counter(ItemsCount::new(requests.len())).bench(|| {
        for (user, request) in black_box(requests) {
            black_box(classifier.classify(Attributes { user, request }));
        }
    });
}
