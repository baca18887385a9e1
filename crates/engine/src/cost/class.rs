//! `CostClass`: which requests are expected to cost the same (CO-3).

use std::hash::Hasher;

use evenkeel_api::annotations::CostUnit;

use crate::RequestInfo;

/// Which requests are expected to cost the same: those of one flow schema, route and flow; less exactly, those of one flow schema and
/// route; and if nothing else is known, those of one flow schema.
///
/// It has hashes, not names: nothing is copied from a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CostClass {
    /// From the narrowest to the widest.
    pub(super) keys: [u64; 3],
}

/// A hash of texts that is the same in every process. It resists accidents, not adversaries: a client that finds two routes with one
/// hash makes its own requests share an average.
struct TextHasher(u64);

/// An odd number without a pattern.
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
/// A longer segment of a path counts as one that differs from request to request.
const SEGMENT_MAX: usize = 40;
/// Segments of a path beyond these do not tell routes apart.
const SEGMENTS_MAX: usize = 8;

// === impl CostClass ===

impl CostClass {
    /// The class of a request: the hash of its flow schema's name, its [route](route_key), and the hash of its flow.
    #[inline]
    pub fn new(schema: u64, route: u64, flow: u64) -> Self {
        let of_schema = mix(schema ^ 0x9e37_79b9_7f4a_7c15);
        let of_route = mix(of_schema ^ route);
        Self { keys: [mix(of_route ^ flow.rotate_left(29)), of_route, of_schema] }
    }
}

/// The route of a request: the resource and the verb that it names, or the method and the [pattern](path_pattern) of its path. Whoever
/// knows a route by other means, such as the template that a path matches, has its own number instead.
pub fn route_key(request: &RequestInfo<'_>) -> u64 {
    let mut hasher = TextHasher(0);
    hasher.write(request.verb.as_bytes());
    if request.is_resource_request {
        for text in [&request.api_group, &request.resource, &request.subresource] {
            hasher.write(text.as_bytes());
        }
    } else {
        // As in `path_pattern`, by bytes: to look for a character in a text costs more than all the rest.
        let path = request.path.as_bytes();
        let path = path.strip_prefix(b"/").unwrap_or(path);
        for segment in path.split(|byte| *byte == b'/').take(SEGMENTS_MAX) {
            hasher.write(if differs(segment) { b"*" } else { segment });
        }
    }
    hasher.finish()
}

/// A number for a unit: averages of costs in different units are different ones.
pub fn unit_key(unit: &CostUnit) -> u64 {
    text_key(&unit.to_string())
}

/// A number for a text, the same in every process: that of a route that is known by its template, for example.
#[inline]
pub fn text_key(text: &str) -> u64 {
    let mut hasher = TextHasher(0);
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// The segments of a path as far as they tell routes apart: one with a digit in it, or a long one, is probably a name or a number and
/// counts as `*`. `/orders/4711/items` and `/orders/4712/items` are both `orders`, `*`, `items`.
///
/// ```
/// let segments: Vec<&str> = evenkeel_engine::cost::path_pattern("/orders/4711/items").collect();
/// assert_eq!(segments, ["orders", "*", "items"]);
/// ```
pub fn path_pattern(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').take(SEGMENTS_MAX).map(|segment| if differs(segment.as_bytes()) { "*" } else { segment })
}

/// Whether a segment is probably another one in each request.
#[inline]
fn differs(segment: &[u8]) -> bool {
    segment.len() > SEGMENT_MAX || segment.iter().any(u8::is_ascii_digit)
}

/// The last bytes of a text as a word. Some of them may be in it twice, which is cheaper than to take them one by one: most texts are short.
#[inline]
fn last_of(text: &[u8]) -> u64 {
    if let Some(last) = text.last_chunk() {
        return u64::from_le_bytes(*last);
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Spreads every bit over all others.
#[inline]
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(FACTOR);
    let value = (value ^ (value >> 32)).wrapping_mul(FACTOR);
    value ^ (value >> 32)
}

// === impl TextHasher ===

impl Hasher for TextHasher {
    #[inline]
    fn write(&mut self, text: &[u8]) {
        // The length first, so that texts that follow each other do not run together.
        let mut state = self.0 ^ (text.len() as u64).wrapping_mul(FACTOR);
        let (words, _) = text.as_chunks::<8>();
        for word in words {
            state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR).rotate_left(29);
        }
        self.0 = (state ^ last_of(text)).wrapping_mul(FACTOR).rotate_left(29);
    }

    #[inline]
    fn finish(&self) -> u64 {
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_other_numbers_is_the_same_route() {
        let key = |verb, path| route_key(&RequestInfo::for_path(verb, path));
        assert_eq!(key("get", "/orders/4711"), key("get", "/orders/17"));
        assert_ne!(key("get", "/orders/4711"), key("post", "/orders/17"));
        assert_ne!(key("get", "/orders/4711"), key("get", "/reports/4711"));
        assert_ne!(key("get", "/orders"), key("get", "/orders/4711"));
        assert_ne!(key("get", "/ab/c"), key("get", "/a/bc"));
        let long = format!("/files/{}", "x".repeat(SEGMENT_MAX + 1));
        assert_eq!(key("get", &long), key("get", "/files/1"));
        let deep = "/a".repeat(SEGMENTS_MAX);
        assert_eq!(key("get", &deep), key("get", &format!("{deep}/b")));
    }

    #[test]
    fn classes_differ_by_each_part() {
        let class = CostClass::new(1, 2, 3);
        assert_eq!(class.keys[1..], CostClass::new(1, 2, 4).keys[1..]);
        assert_ne!(class.keys[0], CostClass::new(1, 2, 4).keys[0]);
        assert_eq!(class.keys[2], CostClass::new(1, 5, 3).keys[2]);
        assert_ne!(class.keys[1], CostClass::new(1, 5, 3).keys[1]);
        assert_ne!(class.keys[2], CostClass::new(2, 2, 3).keys[2]);
    }
}
