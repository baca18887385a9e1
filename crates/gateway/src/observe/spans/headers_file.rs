//! `HeadersFile`: headers for the collector, which may be secret, from a file that may change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use evenkeel_files::{advice, warn_if_open_to_others};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Headers for the collector. They are read again when the file changes. Their values are never shown.
pub(super) struct HeadersFile {
    path: PathBuf,
    text: Vec<u8>,
    headers: HeaderMap,
    looked: Instant,
}

/// How often the file is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// A larger file is not one of headers.
const BYTES_MAX: usize = 64 * 1024;

// === impl HeadersFile ===

impl HeadersFile {
    /// Reads the file. Errors name the file and the line, never its content.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let text = read(path)?;
        let headers = parse(path, &text)?;
        warn_if_open_to_others(path);
        Ok(Self { path: path.to_owned(), text, headers, looked: Instant::now() })
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Looks whether the file has changed. If it cannot be used, the headers stay as they are.
    pub(super) async fn refresh(&mut self) {
        if self.looked.elapsed() < PERIOD {
            return;
        }
        self.looked = Instant::now();
        let path = self.path.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || read(&path)).await else { return };
        if found.as_ref().is_ok_and(|text| *text == self.text) {
            return;
        }
        match found.and_then(|text| Ok((parse(&self.path, &text)?, text))) {
            Ok((headers, text)) => {
                (self.headers, self.text) = (headers, text);
                warn_if_open_to_others(&self.path);
                tracing::info!(file = %self.path.display(), "the headers for the collector changed and are in effect");
            }
            Err(error) => tracing::warn!(error, "the headers for the collector cannot be used; the old ones stay"),
        }
    }
}

/// The error does not quote the file, which may hold secrets.
impl fmt::Debug for HeadersFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadersFile").field("path", &self.path).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let text =
        evenkeel_files::read(path).map_err(|error| format!("{}: {error}; {}", path.display(), advice(&error)))?;
    if text.len() > BYTES_MAX {
        return Err(format!(
            "{}: there are more than {BYTES_MAX} bytes, which is too large for headers",
            path.display()
        ));
    }
    Ok(text)
}

/// Reads lines of `Name: value`. Empty lines and those that begin with `#` mean nothing.
fn parse(path: &Path, text: &[u8]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (index, line) in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate() {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let fault = || format!("{}:{}: this is not a header; write it as `Name: value`", path.display(), index + 1);
        let colon = line.iter().position(|byte| *byte == b':').ok_or_else(fault)?;
        let name = HeaderName::from_bytes(line[..colon].trim_ascii()).map_err(|_| fault())?;
        let mut value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).map_err(|_| fault())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_never_shown() {
        let text = b"# for the collector\n\nAuthorization: Bearer s3cret\r\nx-tenant:a:b \n";
        let headers = parse(Path::new("h"), text).unwrap();
        assert_eq!(headers["authorization"], "Bearer s3cret");
        assert_eq!(headers["x-tenant"], "a:b");
        let shown = format!("{headers:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        for wrong in [&b"one: 1\ns3cret"[..], b"\nna me: s3cret", b"x: 1\na: s3cret\x01"] {
            let error = parse(Path::new("h"), wrong).unwrap_err();
            assert_eq!(error, "h:2: this is not a header; write it as `Name: value`");
        }
    }
}
