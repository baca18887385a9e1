//! The vectors of the specification (DG 1.3), and the edges of DG-7 to DG-16 that they leave out.

use super::*;

/// Digests, and writes the result like a row of the table: `–` is nothing.
fn row(method: &str, target: &str) -> String {
    match Kubernetes::default().digest(method, target) {
        Err(error) => error.to_string(),
        Ok(request) => {
            let is_resource = if request.is_resource_request { "yes" } else { "no" };
            let RequestInfo { verb, api_group, namespace, resource, subresource, name, .. } = request;
            let columns = [verb, api_group, namespace, resource, subresource, name];
            let columns = columns.map(|text| if text.is_empty() { "–".into() } else { text.into_owned() });
            format!("{is_resource} {}", columns.join(" "))
        }
    }
}

fn check(rows: &[(&str, &str)]) {
    for (request, expected) in rows {
        let (method, target) = request.split_once(' ').unwrap();
        assert_eq!(row(method, target), *expected, "{request}");
    }
}

#[test]
fn dg_1_3_vectors() {
    check(&[
        ("GET /", "no get – – – – –"),
        ("POST /livez/ping", "no post – – – – –"),
        ("GET /api/v1", "no get – – – – –"),
        ("GET /apis/apps/v1/", "no get – – – – –"),
        ("GET /badprefix/v1/pods", "no get – – – – –"),
        ("GET /apis/v1/pods", "no get – – – – –"),
        ("OPTIONS /version", "no options – – – – –"),
        ("OPTIONS /api/v1/pods", "yes – – – pods – –"),
        ("GET /api/v1/namespaces", "yes list – – namespaces – –"),
        ("GET /api/v1/namespaces/other", "yes get – other namespaces – other"),
        ("DELETE /api/v1/namespaces/other", "yes delete – other namespaces – other"),
        ("DELETE /api/v1/namespaces", "yes deletecollection – – namespaces – –"),
        ("PUT /api/v1/namespaces/other/finalize", "yes update – other namespaces finalize other"),
        ("GET /api/v1/namespaces/other/status/extra", "yes get – other namespaces status other"),
        ("HEAD /api/v1/pods", "yes list – – pods – –"),
        ("GET /api/v1/pods?watch=1", "yes watch – – pods – –"),
        ("GET /api/v1/pods?watch=", "yes watch – – pods – –"),
        ("GET /api/v1/pods?watch=False", "yes list – – pods – –"),
        ("GET /api/v1/pods//status", "yes list – – pods status –"),
        ("GET /api/v1/namespaces/other/pods", "yes list – other pods – –"),
        ("GET /api/v1/namespaces/other/pods/foo", "yes get – other pods – foo"),
        ("GET /api/v1/namespaces/other/pods/foo/proxy/subpath", "yes get – other pods proxy foo"),
        ("POST /api/v1/namespaces/other/pods", "yes create – other pods – –"),
        ("POST /api/v1/namespaces/other/pods/foo/binding", "yes create – other pods binding foo"),
        ("PATCH /apis/apps/v1/namespaces/ns1/deployments/d1/scale", "yes patch apps ns1 deployments scale d1"),
        ("DELETE /api/v1/nodes?fieldSelector=metadata.name=n1", "yes deletecollection – – nodes – –"),
        ("GET /api/v1/watch/pods", "yes watch – – pods – –"),
        ("GET /api/v1/watch/namespaces/other/pods/p1", "yes watch – other pods – p1"),
        ("GET /api/v1/watch/namespaces/other", "yes watch – other namespaces – other"),
        ("GET /api/v1/watch", "unable to determine kind and namespace from url: nothing follows \"watch\""),
        ("POST /api/v1/proxy/nodes/n1/foo/bar", "yes proxy – – nodes – n1"),
        ("GET /api/v1/proxy/namespaces/other/pods/foo/a/b", "yes proxy – other pods – foo"),
        ("GET /apis/g/v1/widgets?fieldSelector=metadata.name=w1", "yes list g – widgets – w1"),
        ("GET /apis/g/v1/widgets?watch=true&fieldSelector=metadata.name=w1", "yes watch g – widgets – w1"),
        ("GET /apis/g/v1/watch/widgets?fieldSelector=metadata.name=w1", "yes watch g – widgets – –"),
        ("GET /apis/g/v1/widgets?fieldSelector=metadata.name=w1,foo", "yes list g – widgets – –"),
        ("GET /apis/g/v1/widgets?fieldSelector=metadata.name=w1,foo&watch=true", "yes watch g – widgets – –"),
        ("GET /apis/g/v1/widgets?fieldSelector=metadata.name!=w1", "yes list g – widgets – –"),
        ("GET /apis/g/v1/widgets?fieldSelector=metadata.name%3Da%2Fb", "yes list g – widgets – –"),
        ("GET /apis/g/v1/widgets?fieldSelector=metadata.name=b,metadata.name=a", "yes list g – widgets – a"),
        ("GET /apis/g/v1/widgets?limit=x&fieldSelector=metadata.name=w1", "yes list g – widgets – –"),
        (
            "GET /apis/g/v1/widgets?fieldSelector=metadata.name=foo&fieldSelector=metadata.name=bar",
            "yes list g – widgets – foo",
        ),
    ]);
}

#[test]
fn dg_9_verbs_in_the_path() {
    check(&[
        ("DELETE /api/v1/watch/pods/p1", "yes watch – – pods – p1"),
        ("GET /api/v1/proxy/", "unable to determine kind and namespace from url: nothing follows \"proxy\""),
        ("GET /apis/g/v1/watch", "unable to determine kind and namespace from url: nothing follows \"watch\""),
        // Only the segment after the version is a verb, and only in this spelling.
        ("GET /api/v1/pods/watch", "yes get – – pods – watch"),
        ("GET /api/v1/Watch/pods", "yes get – – Watch – pods"),
        ("GET /api/v1/watch/watch", "yes watch – – watch – –"),
        ("GET /api/v1/watch//", "unable to determine kind and namespace from url: nothing follows \"watch\""),
    ]);
}

#[test]
fn dg_10_namespaces_under_any_group() {
    check(&[
        ("GET /apis/g/v1/namespaces/a/namespaces/b", "yes get g a namespaces – b"),
        ("GET /api/v1/namespaces/namespaces", "yes get – namespaces namespaces – namespaces"),
        ("GET /api/v1/namespaces/a/status", "yes get – a namespaces status a"),
        ("GET /api/v1/namespaces/a/Status", "yes list – a Status – –"),
        ("GET /api/v1/namespaces//pods", "yes list – – pods – –"),
        ("GET /api/v1/namespaces/a//p", "yes get – a – – p"),
        ("GET /api/v1/namespaces/a/pods/", "yes list – a pods – –"),
    ]);
}

#[test]
fn dg_11_what_follows_the_subresource_is_ignored() {
    check(&[
        ("GET /api/v1/pods/p/log/a/b", "yes get – – pods log p"),
        ("GET /api/v1/proxy/pods/p/log", "yes proxy – – pods – p"),
        ("PUT /api/v1/pods//status", "yes update – – pods status –"),
        ("DELETE /api/v1/pods//status", "yes deletecollection – – pods status –"),
    ]);
}

#[test]
fn dg_12_list_or_watch() {
    check(&[
        ("GET /api/v1/pods?limit=x&watch=1", "yes watch – – pods – –"),
        ("GET /api/v1/pods?limit=x&watch=FALSE&watch=1", "yes list – – pods – –"),
        ("GET /api/v1/pods?timeoutSeconds=&watch", "yes watch – – pods – –"),
        ("GET /api/v1/pods?labelSelector=!!&watch=0", "yes list – – pods – –"),
        ("GET /api/v1/pods/p?watch=1", "yes get – – pods – p"),
        ("POST /api/v1/pods?watch=1", "yes create – – pods – –"),
        ("get /api/v1/pods?watch=1", "yes – – – pods – –"),
        ("GET /api/v1/pods?watch=%zz", "yes list – – pods – –"),
        ("GET /api/v1/pods?w%61tch=%31", "yes watch – – pods – –"),
    ]);
}

#[test]
fn dg_13_names_that_are_no_segment_are_not_taken() {
    check(&[
        ("GET /api/v1/pods?fieldSelector=metadata.name=.", "yes list – – pods – –"),
        ("GET /api/v1/pods?fieldSelector=metadata.name=..", "yes list – – pods – –"),
        ("GET /api/v1/pods?fieldSelector=metadata.name=...", "yes list – – pods – ..."),
        ("GET /api/v1/pods?fieldSelector=metadata.name=a%2525", "yes list – – pods – –"),
        ("GET /api/v1/pods?fieldSelector=metadata.name==a", "yes list – – pods – a"),
        ("GET /api/v1/pods?fieldSelector=metadata.name=", "yes list – – pods – –"),
        // The first exact term decides, even if another would do.
        ("GET /api/v1/pods?fieldSelector=metadata.name=b,metadata.name=%2e", "yes list – – pods – –"),
        ("GET /api/v1/pods?fieldSelector=metadata.name=a%5C%2Cb", "yes list – – pods – a,b"),
        ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a+in+(b", "yes list – – pods – –"),
        ("GET /api/v1/pods//status?fieldSelector=metadata.name=a", "yes list – – pods status a"),
    ]);
}

#[test]
fn dg_6_prefixes_can_be_chosen() {
    let digest = Kubernetes { prefixes: vec!["k8s".into()], groupless_prefixes: Vec::new() };
    let request = digest.digest("GET", "/k8s/g/v1/widgets").unwrap();
    assert_eq!((&*request.api_prefix, &*request.api_group, &*request.resource), ("k8s", "g", "widgets"));
    assert!(!digest.digest("GET", "/api/v1/pods/p").unwrap().is_resource_request);
}

#[test]
fn paths_are_decoded_first() {
    check(&[
        ("GET /api/v1/pods%2Fx", "yes get – – pods – x"),
        ("GET /api/v1/pods/%E6%97%A5", "yes get – – pods – 日"),
        ("GET /api/v1/pods/a%2", "the path has an invalid escape at byte 14"),
        ("GET /a%3Fwatch=1", "no get – – – – –"),
        ("GET *", "no get – – – – –"),
    ]);
    assert_eq!(Kubernetes::default().digest("GET", "//a%3Fb//?c").unwrap().path, "//a?b//", "DG-4");
}

#[test]
fn dg_15_selectors_of_requests_about_many() {
    let selectors = |method, path: &str| {
        let target = format!("{path}?labelSelector=a%3Db&fieldSelector=c%3Dd&fieldSelector=e");
        let full = Kubernetes::default().digest_fully(method, &target).unwrap();
        format!("{} {} {}", full.parts, full.field_selector, full.label_selector)
    };
    assert_eq!(selectors("GET", "/api/v1/pods"), "pods c=d a=b");
    assert_eq!(selectors("DELETE", "/api/v1/namespaces/n/p%6Fds"), "pods c=d a=b");
    assert_eq!(selectors("GET", "/api/v1/watch/pods"), "pods  ");
    assert_eq!(selectors("GET", "/api/v1/pods/p/log"), "pods/p/log  ");
    assert_eq!(selectors("WATCH", "/x"), "  ", "a method is no verb of a resource");
}
