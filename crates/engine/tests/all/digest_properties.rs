//! What holds of the digest of any request, and of any route table.

use std::borrow::Cow;

use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::routes::{Attribute, Route, RouteTable};
use evenkeel_engine::digest::{FieldSelector, Kubernetes, LabelSelector, ListOptions, Query};
use proptest::prelude::*;

/// A target that is often close to a Kubernetes request.
fn target() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        4 => prop::sample::select(vec!["api", "apis", "v1", "watch", "proxy", "namespaces", "status", "pods", "", "%70ods"]),
        1 => Just("%2F"),
        1 => Just("%zz"),
    ];
    let pair = prop_oneof![
        prop::sample::select(vec![
            "watch=1",
            "watch",
            "limit=x",
            "limit=5",
            "fieldSelector=metadata.name%3Da",
            "labelSelector=a+in+(b,c)",
            "labelSelector=!",
            "a;b",
            "=",
            "fieldSelector=a%5C",
            "%zz=1",
        ])
        .prop_map(str::to_owned),
        "[a-z=,()!<>\\\\%0-9+]{0,12}".prop_map(|text| format!("labelSelector={text}")),
        "[a-z=,!\\\\.%]{0,12}".prop_map(|text| format!("fieldSelector={text}")),
    ];
    let near = (prop::collection::vec(segment, 0..8), prop::option::of(prop::collection::vec(pair, 0..4))).prop_map(
        |(segments, pairs)| {
            let query = pairs.map(|pairs| format!("?{}", pairs.join("&"))).unwrap_or_default();
            format!("/{}{query}", segments.join("/"))
        },
    );
    prop_oneof![4 => near, 1 => any::<String>()]
}

fn method() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"]);
    prop_oneof![6 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn texts<'r>(request: &'r RequestInfo<'_>) -> [&'r Cow<'r, str>; 8] {
    let RequestInfo { path, api_prefix, api_group, api_version, namespace, resource, subresource, name, .. } = request;
    [path, api_prefix, api_group, api_version, namespace, resource, subresource, name]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_request_makes_the_digest_panic(method in method(), target in target()) {
        let kubernetes = Kubernetes::default();
        let plain = kubernetes.digest(&method, &target);
        let full = kubernetes.digest_fully(&method, &target);
        prop_assert_eq!(&plain, &full.map(|full| full.request));
        let table = RouteTable::new([Route::new("/api/{namespace}/{resource}/{name...}")]).unwrap();
        let _ = table.digest(&method, &target);
        let _ = ListOptions::decode(Query::of_target(&target));
    }

    #[test]
    fn without_escapes_everything_is_borrowed(method in method(), target in target()) {
        let target = target.replace(['%', '+', '\\'], "");
        let kubernetes = Kubernetes::default();
        if let Ok(request) = kubernetes.digest(&method, &target) {
            // What is not named is an empty text of its own, which costs nothing.
            let is_borrowed = texts(&request).iter().all(|text| matches!(text, Cow::Borrowed(_)) || text.is_empty());
            prop_assert!(is_borrowed, "{request:?}");
        }
    }

    #[test]
    fn escaping_a_path_changes_nothing(method in method(), target in target()) {
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let path = path.replace('%', "");
        let escaped = path.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
        let escaped = format!("{escaped}?{query}");
        let kubernetes = Kubernetes::default();
        let plain = format!("{path}?{query}");
        prop_assert_eq!(kubernetes.digest(&method, &plain), kubernetes.digest(&method, &escaped));
    }

    #[test]
    fn selectors_never_panic_and_agree_with_their_check(text in "[a-b=,()!<> in\\\\\\x00-]{0,16}") {
        prop_assert_eq!(LabelSelector::parse(&text).is_ok(), LabelSelector::is_valid(&text));
        prop_assert_eq!(FieldSelector::parse(&text).ok(), FieldSelector::well_formed(&text));
        if let Ok(selector) = FieldSelector::parse(&text) {
            for term in selector.terms() {
                prop_assert!(!term.key.contains('='));
            }
        }
    }
}

/// One piece of a random template, and what it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Literal(&'static str),
    Any,
    Rest,
}

#[derive(Debug, Clone, PartialEq)]
struct Template {
    pieces: Vec<Piece>,
    methods: Vec<&'static str>,
}

impl Template {
    fn route(&self, index: usize) -> Route {
        let segments: Vec<&str> = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text,
                Piece::Any => "{_}",
                Piece::Rest => "{name...}",
            })
            .collect();
        let route = Route::new(format!("/{}", segments.join("/"))).fix(Attribute::Resource, format!("r{index}"));
        self.methods.iter().fold(route, |route, method| route.method(*method))
    }

    fn matches(&self, method: &str, segments: &[&str]) -> bool {
        let has_rest = self.pieces.last() == Some(&Piece::Rest);
        let fixed = self.pieces.len() - usize::from(has_rest);
        let is_long_enough = if has_rest { segments.len() > fixed } else { segments.len() == fixed };
        let fits = |(piece, segment): (&Piece, &&str)| match piece {
            Piece::Literal(text) => text == segment,
            Piece::Any => !segment.is_empty(),
            Piece::Rest => true,
        };
        let is_for_method = self.methods.is_empty() || self.methods.contains(&method);
        is_long_enough && is_for_method && self.pieces[..fixed].iter().zip(segments).all(fits)
    }

    /// Smaller is more specific.
    fn rank(&self) -> (Vec<u8>, bool) {
        let rank = |piece: &Piece| match piece {
            Piece::Literal(_) => 0,
            Piece::Any => 1,
            Piece::Rest => 2,
        };
        (self.pieces.iter().map(rank).collect(), self.methods.is_empty())
    }

    fn is_ambiguous_with(&self, other: &Self) -> bool {
        let both_for_all = self.methods.is_empty() && other.methods.is_empty();
        self.pieces == other.pieces && (both_for_all || self.methods.iter().any(|own| other.methods.contains(own)))
    }
}

fn template() -> impl Strategy<Value = Template> {
    let piece = prop::sample::select(vec![Piece::Literal("a"), Piece::Literal("b"), Piece::Any]);
    let methods = prop::sample::subsequence(vec!["GET", "PUT"], 0..=2);
    (prop::collection::vec(piece, 0..4), any::<bool>(), methods).prop_map(|(mut pieces, has_rest, methods)| {
        if has_rest {
            pieces.push(Piece::Rest);
        }
        Template { pieces, methods }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn a_route_table_finds_what_trying_all_templates_finds(
        templates in prop::collection::vec(template(), 0..12),
        paths in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["a", "b", "c", ""]), 0..6), 8),
    ) {
        let mut kept: Vec<Template> = Vec::new();
        for template in templates {
            if kept.iter().any(|other| other.is_ambiguous_with(&template)) {
                let routes = kept.iter().chain([&template]).enumerate().map(|(index, one)| one.route(index));
                prop_assert!(RouteTable::new(routes).is_err(), "{template:?} is ambiguous");
            } else {
                kept.push(template);
            }
        }
        let routes: Vec<Route> = kept.iter().enumerate().map(|(index, template)| template.route(index)).collect();
        let forwards = RouteTable::new(routes.clone()).unwrap();
        let backwards = RouteTable::new(routes.into_iter().rev()).unwrap();
        for path in paths {
            let path = format!("/{}", path.join("/"));
            let inner = path.trim_matches('/');
            let segments: Vec<&str> = if inner.is_empty() { Vec::new() } else { inner.split('/').collect() };
            for method in ["GET", "PUT", "POST"] {
                let matching = kept.iter().enumerate().filter(|(_, template)| template.matches(method, &segments));
                let best = matching.min_by_key(|(_, template)| template.rank());
                let expected = best.map(|(index, _)| format!("r{index}")).unwrap_or_default();
                for table in [&forwards, &backwards] {
                    let request = table.digest(method, &path).unwrap();
                    prop_assert_eq!(&*request.resource, &*expected, "{} {} in {:?}", method, path, kept);
                    prop_assert_eq!(request.is_resource_request, best.is_some());
                }
            }
        }
    }
}
