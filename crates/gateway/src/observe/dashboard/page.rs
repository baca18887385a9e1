//! The page of the dashboard: three files that are part of the program.

use std::io::Write;
use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use ring::digest;

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asset {
    Html,
    Css,
    Script,
}

/// A file as it is sent.
struct Packed {
    etag: HeaderValue,
    gzip: Bytes,
}

/// The content security policy: nothing from other addresses, and no script or style in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The response to a request for a file of the page, with these headers.
pub(crate) fn page(asset: Asset, request: &HeaderMap) -> Response {
    let Packed { etag, gzip } = asset.packed();
    let mut response = if is_known(request, etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if is_gzip_accepted(request) {
        ([(CONTENT_ENCODING, "gzip")], gzip.clone()).into_response()
    } else {
        asset.text().into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type()));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(ETAG, etag.clone());
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    // The browser asks each time whether the file is still the same: it changes with an update of the gateway.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn is_known(request: &HeaderMap, etag: &HeaderValue) -> bool {
    let values = request.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|tag| tag.trim().trim_start_matches("W/") == *etag)
}

fn is_gzip_accepted(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|encoding| {
        let (name, quality) = encoding.split_once(';').unwrap_or((encoding, ""));
        let quality = quality.trim().strip_prefix("q=").and_then(|quality| quality.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && quality.is_none_or(|quality| quality > 0.0)
    })
}

// === impl Asset ===

impl Asset {
    const fn text(self) -> &'static str {
        match self {
            Self::Html => include_str!("page/dashboard.html"),
            Self::Css => include_str!("page/dashboard.css"),
            Self::Script => include_str!("page/dashboard.js"),
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Css => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
        }
    }

    /// Packed when it is first asked for.
    fn packed(self) -> &'static Packed {
        static PACKED: [OnceLock<Packed>; 3] = [const { OnceLock::new() }; 3];
        PACKED[self as usize].get_or_init(|| {
            let text = self.text().as_bytes();
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            let gzip = encoder.write_all(text).and_then(|()| encoder.finish()).expect("a Vec takes everything").into();
            let hash = digest::digest(&digest::SHA256, text);
            let hash = hash.as_ref().iter().take(8).fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
            Packed { etag: HeaderValue::from_str(&format!("\"{hash:016x}\"")).expect("it is hexadecimal"), gzip }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Asset; 3] = [Asset::Html, Asset::Css, Asset::Script];

    #[test]
    fn the_page_is_small() {
        let bytes: usize = ALL.map(|asset| asset.packed().gzip.len()).iter().sum();
        println!("page: {bytes} bytes gzipped, bar: at most 40960");
        assert!(bytes <= 40 * 1024, "{bytes}");
    }

    #[test]
    fn the_page_asks_nobody_else_and_puts_no_text_into_markup() {
        for asset in ALL {
            // The names of the two XML vocabularies are no addresses that anybody asks.
            let text = asset.text().replace("http://www.w3.org/2000/svg", "");
            for banned in ["http://", "https://", "//cdn", "@import", "url("] {
                assert!(!text.contains(banned), "{asset:?}: {banned}");
            }
        }
        let script = Asset::Script.text();
        for banned in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "cssText"]
        {
            assert!(!script.contains(banned), "{banned}");
        }
        let html = Asset::Html.text();
        for banned in [" style=", "<style", " onclick", " onload", "javascript:"] {
            assert!(!html.contains(banned), "{banned}");
        }
        assert_eq!(html.matches("<script").count(), html.matches("<script src=").count());
    }
}
