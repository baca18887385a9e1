//! Reads a `curl` command line as a request: its method, its URL, its headers and its user.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::question::Question;
use crate::percent_encoding::{decoded, encoded};

/// Options that take a value and change nothing that flow control looks at.
#[rustfmt::skip] // a table
const WITH_VALUE: &[&str] = &[
    "abstract-unix-socket", "alt-svc", "aws-sigv4", "cacert", "capath", "cert", "cert-type", "ciphers", "config",
    "connect-timeout", "connect-to", "continue-at", "cookie-jar", "create-file-mode", "crlfile", "curves",
    "delegation", "dns-interface", "dns-ipv4-addr", "dns-ipv6-addr", "dns-servers", "doh-url", "dump-header", "ech",
    "egd-file", "engine", "etag-compare", "etag-save", "expect100-timeout", "ftp-account", "ftp-alternative-to-user",
    "ftp-method", "ftp-port", "ftp-ssl-ccc-mode", "happy-eyeballs-timeout-ms", "haproxy-clientip", "hostpubmd5",
    "hostpubsha256", "hsts", "interface", "ip-tos", "ipfs-gateway", "keepalive-cnt", "keepalive-time", "key",
    "key-type", "krb", "libcurl", "limit-rate", "local-port", "login-options", "mail-auth", "mail-from", "mail-rcpt",
    "max-filesize", "max-redirs", "max-time", "netrc-file", "noproxy", "output", "output-dir",
    "parallel-max", "parallel-max-host", "pass", "pinnedpubkey", "preproxy", "proto", "proto-default", "proto-redir",
    "proxy", "proxy-cacert", "proxy-capath", "proxy-cert", "proxy-cert-type", "proxy-ciphers", "proxy-crlfile",
    "proxy-header", "proxy-key", "proxy-key-type", "proxy-pass", "proxy-pinnedpubkey", "proxy-service-name",
    "proxy-tls13-ciphers", "proxy-tlsauthtype", "proxy-tlspassword", "proxy-tlsuser", "proxy-user", "proxy1.0",
    "pubkey", "quote", "random-file", "range", "rate", "resolve", "retry", "retry-delay", "retry-max-time",
    "sasl-authzid", "service-name", "sigalgs", "socks4", "socks4a", "socks5", "socks5-gssapi-service",
    "socks5-hostname", "speed-limit", "speed-time", "ssl-sessions", "stderr", "telnet-option", "tftp-blksize",
    "time-cond", "tls-max", "tls13-ciphers", "tlsauthtype", "tlspassword", "tlsuser", "trace", "trace-ascii",
    "trace-config", "unix-socket", "upload-flags", "variable", "vlan-priority", "write-out",
];
/// Flags of one letter that have a value.
const LETTERS_WITH_VALUE: &str = "AbcCDeEhKmoPQrtTUwxyYz";
/// The letters of options that say something here, and their long names.
const LETTERS: [(char, &str); 12] = [
    ('X', "request"),
    ('H', "header"),
    ('d', "data"),
    ('F', "form"),
    ('T', "upload-file"),
    ('I', "head"),
    ('G', "get"),
    ('u', "user"),
    ('A', "user-agent"),
    ('e', "referer"),
    ('b', "cookie"),
    ('o', "output"),
];
/// Options whose value is a body.
const BODIES: [&str; 8] =
    ["data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "form", "form-string"];

/// The parts of the command line that have been read so far.
#[derive(Debug, Default)]
struct Read {
    method: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    /// Headers by options of their own. Those of `--header` count more.
    implied: Vec<(&'static str, String)>,
    basic_user: Option<String>,
    /// The target that is sent instead of the path and the query of the URL.
    target: Option<String>,
    /// Parts of the query besides those in the URL.
    queries: Vec<String>,
    /// The bodies, which `--get` moves into the query.
    bodies: Vec<String>,
    has_upload: bool,
    is_head: bool,
    is_get: bool,
}

/// Reads a command line, with or without `curl` in front.
pub(super) fn read(words: &[String]) -> Result<Question, String> {
    let mut words = words.iter().map(String::as_str).peekable();
    if words.peek().is_some_and(|first| first.rsplit('/').next() == Some("curl")) {
        words.next();
    }
    let mut read = Read::default();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        match word.strip_prefix("--").filter(|_| !only_urls) {
            Some("") => only_urls = true,
            Some(option) => {
                let (name, joined) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                if takes_value(name) {
                    let value = joined.or_else(|| words.next());
                    read.option(name, value.ok_or_else(|| format!("curl: --{name} needs a value"))?)?;
                } else {
                    read.switch(name);
                }
            }
            None if word.starts_with('-') && word.len() > 1 && !only_urls => {
                letters(&mut read, &word[1..], &mut words)?;
            }
            None => read.set_url(word)?,
        }
    }
    read.question()
}

/// Reads options of one letter, of which the last may have its value in the same word.
fn letters<'a>(read: &mut Read, word: &'a str, words: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
    for (at, letter) in word.char_indices() {
        let name = LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, name)| *name);
        let has_value = name.map_or(LETTERS_WITH_VALUE.contains(letter), takes_value);
        if !has_value {
            read.switch(name.unwrap_or_default());
            continue;
        }
        let rest = &word[at + letter.len_utf8()..];
        let value = if rest.is_empty() { words.next() } else { Some(rest) };
        let value = value.ok_or_else(|| format!("curl: -{letter} needs a value"))?;
        return read.option(name.unwrap_or_default(), value);
    }
    Ok(())
}

fn takes_value(name: &str) -> bool {
    BODIES.contains(&name)
        || WITH_VALUE.contains(&name)
        || matches!(
            name,
            "request"
                | "request-target"
                | "header"
                | "url"
                | "url-query"
                | "user"
                | "upload-file"
                | "user-agent"
                | "referer"
                | "cookie"
                | "oauth2-bearer"
        )
}

// === impl Read ===

impl Read {
    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "request" => self.method = Some(value.to_owned()),
            "header" => {
                let (name, value) = value.split_once(':').unwrap_or((value, ""));
                self.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
            "url" => self.set_url(value)?,
            "user" => self.basic_user = Some(value.split(':').next().unwrap_or_default().to_owned()),
            "upload-file" => self.has_upload = true,
            "request-target" => self.target = Some(value.to_owned()),
            "url-query" => {
                self.queries.push(value.strip_prefix('+').map_or_else(|| url_encoded(value), ToOwned::to_owned));
            }
            "user-agent" => self.implied.push(("user-agent", value.to_owned())),
            "referer" => self.implied.push(("referer", value.to_owned())),
            "oauth2-bearer" => self.implied.push(("authorization", format!("Bearer {value}"))),
            "cookie" if value.contains('=') => self.implied.push(("cookie", value.to_owned())),
            // The name of a file, which is not read.
            "cookie" => {}
            "data-urlencode" => {
                self.imply_content("application/x-www-form-urlencoded");
                self.bodies.push(url_encoded(value));
            }
            "json" => {
                self.imply_content("application/json");
                self.implied.push(("accept", "application/json".to_owned()));
                self.bodies.push(value.to_owned());
            }
            data if data.starts_with("data") => {
                self.imply_content("application/x-www-form-urlencoded");
                self.bodies.push(value.to_owned());
            }
            body if BODIES.contains(&body) => self.bodies.push(value.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn imply_content(&mut self, media_type: &str) {
        self.implied.push(("content-type", media_type.to_owned()));
    }

    fn switch(&mut self, name: &str) {
        match name {
            "head" => self.is_head = true,
            "get" => self.is_get = true,
            // The others change nothing here.
            _ => {}
        }
    }

    fn set_url(&mut self, url: &str) -> Result<(), String> {
        match self.url.replace(url.to_owned()) {
            None => Ok(()),
            Some(first) => Err(format!("curl: there are two URLs, {first:?} and {url:?}; explain one at a time")),
        }
    }

    fn question(self) -> Result<Question, String> {
        let sent = self.sent_headers();
        let url = self.url.ok_or_else(|| "curl: there is no URL".to_owned())?;
        let basic_user = self.basic_user.or_else(|| user_of(&url));
        let in_query = if self.is_get { self.bodies.as_slice() } else { &[] };
        let queries: Vec<&str> = self.queries.iter().chain(in_query).map(String::as_str).collect();
        let url = match self.target {
            Some(target) => target,
            None if queries.is_empty() => url,
            None => {
                let url = url.split('#').next().unwrap_or_default();
                let separator = if url.contains('?') { '&' } else { '?' };
                format!("{url}{separator}{}", queries.join("&"))
            }
        };
        let method = match self.method {
            Some(method) => method,
            None if self.is_head => "HEAD".to_owned(),
            None if self.has_upload => "PUT".to_owned(),
            None if self.is_get || self.bodies.is_empty() => "GET".to_owned(),
            None => "POST".to_owned(),
        };
        let values = |wanted: &'static str| {
            let of_name = self.headers.iter().filter(move |(name, value)| name == wanted && !value.is_empty());
            of_name.map(|(_, value)| value.clone())
        };
        // Impersonation goes before everything else, as in a kube-apiserver. The groups come from the same headers as the user:
        // an impersonated user does not have the groups of the impersonator.
        let named = [("impersonate-user", "impersonate-group"), ("x-remote-user", "x-remote-group")]
            .into_iter()
            .find_map(|(user, group)| Some((values(user).next()?, values(group).collect())));
        let (user, groups) = named.map_or((basic_user, Vec::new()), |(user, groups)| (Some(user), groups));
        let question = Question::new(&method, &url, user, groups)?;
        // curl joins several bodies into one, which is not JSON.
        let model = match self.bodies.as_slice() {
            [body] if !self.is_get => model_of(body),
            _ => None,
        };
        Ok(Question { headers: sent, model, ..question })
    }

    /// The headers that curl would send, except those that say something of curl itself. Malformed headers are left out, as by
    /// curl.
    fn sent_headers(&self) -> HeaderMap {
        let is_given = |name: &str| self.headers.iter().any(|(given, _)| given == name);
        let mut headers = HeaderMap::new();
        for (name, value) in self.implied.iter().filter(|(name, _)| !is_given(name)) {
            let is_of_body = *name == "content-type" && self.is_get;
            if let (false, Ok(value)) = (is_of_body, HeaderValue::from_str(value)) {
                headers.insert(*name, value);
            }
        }
        // An empty value takes a header of curl's own away.
        for (name, value) in self.headers.iter().filter(|(_, value)| !value.is_empty()) {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        headers
    }
}

/// The language model that a body names. A body in a file is not read.
fn model_of(body: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    Some(body["model"].as_str()?.to_owned())
}

/// The user that a URL names before its host.
fn user_of(url: &str) -> Option<String> {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, _) = authority.rsplit_once('@')?;
    Some(decoded(user.split(':').next().unwrap_or_default()))
}

/// The text that `--data-urlencode` sends for `content`, `=content` or `name=content`. Files are not read.
fn url_encoded(value: &str) -> String {
    match value.split_once('=') {
        Some(("", content)) => encoded(content, b""),
        Some((name, content)) => format!("{name}={}", encoded(content, b"")),
        None => encoded(value, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shell_words::words;
    use super::*;

    fn asked(line: &str) -> (String, String, Option<String>, Vec<String>) {
        let Question { method, target, user, groups, .. } = read(&words(line).unwrap()).unwrap();
        (method.to_string(), target.to_string(), user, groups)
    }

    fn request(line: &str) -> String {
        let (method, target, ..) = asked(line);
        format!("{method} {target}")
    }

    #[test]
    fn methods_and_urls_are_those_that_curl_sends() {
        for (line, expected) in [
            ("curl http://127.0.0.1:8080/orders", "GET /orders"),
            ("/usr/bin/curl -s -k https://shop.example", "GET /"),
            ("curl -sSL -o /dev/null -w '%{http_code}' 'http://a/b?c=d&e=f'", "GET /b?c=d&e=f"),
            ("curl -XDELETE http://a/b", "DELETE /b"),
            ("curl --request PATCH --url http://a/b", "PATCH /b"),
            ("curl --request=PUT -- http://a/b", "PUT /b"),
            ("curl -d a=b -d c=d http://a/b", "POST /b"),
            ("curl -G -d a=b --data-urlencode c=d http://a/b?x", "GET /b?x&a=b&c=d"),
            ("curl -I http://a/b", "HEAD /b"),
            ("curl -T file http://a/b", "PUT /b"),
            (
                "curl -X POST \\\n  -H \"Content-Type: application/json\" \\\n  --data-raw '{\"a\": \"it'\\''s\"}' \\\n  http://a/b",
                "POST /b",
            ),
            ("curl a.example/b#fragment", "GET /b"),
            (
                "curl -G --data-urlencode 'a=b c&d/e' --data-urlencode '=x y' --data-urlencode ö http://a/b#c",
                "GET /b?a=b%20c%26d%2Fe&x%20y&%C3%B6",
            ),
            ("curl --url-query 'a=b c' --url-query +d=%20 -d body http://a/b", "POST /b?a=b%20c&d=%20"),
            ("curl --request-target /c?d http://a/b", "GET /c?d"),
            (r"curl --data-raw $'it\'s\n' http://a/b", "POST /b"),
            (
                "curl --unix-socket /run/a.sock --trace-ascii - --doh-url https://d --socks4 s --socks4a s --proxy-cert c http://a/b",
                "GET /b",
            ),
            ("curl --trace t --proxy-cacert c --proxy-key k --variable v=1 --ip-tos 1 http://user:pw@a/b", "GET /b"),
            ("http://a/b", "GET /b"),
        ] {
            assert_eq!(request(line), expected, "{line}");
        }
    }

    #[test]
    fn users_are_read_from_headers_and_from_basic_authentication() {
        let user = |line: &str| {
            let (_, _, user, groups) = asked(line);
            (user.unwrap_or_default(), groups.join(" "))
        };
        let expected = |user: &str, groups: &str| (user.to_owned(), groups.to_owned());
        assert_eq!(user("curl http://a"), expected("", ""));
        assert_eq!(user("curl -u alice:secret http://a"), expected("alice", ""));
        assert_eq!(user("curl http://al%40ice:secret@a/b@c"), expected("al@ice", ""));
        assert_eq!(user("curl alice@a.example/b"), expected("alice", ""));
        assert_eq!(user("curl http://a/b?c=d@e"), expected("", ""));
        assert_eq!(user("curl -u bob http://alice@a"), expected("bob", ""));
        // The impersonated user does not get the groups of the impersonator, nor the other way round.
        let both = "-H 'X-Remote-User: admin' -H 'X-Remote-Group: system:masters'";
        assert_eq!(user(&format!("curl {both} -H 'Impersonate-User: eve' http://a")), expected("eve", ""));
        assert_eq!(
            user(&format!("curl {both} -H 'Impersonate-User: eve' -H 'Impersonate-Group: dev' http://a")),
            expected("eve", "dev")
        );
        assert_eq!(
            user(&format!("curl {both} -H 'Impersonate-Group: dev' http://a")),
            expected("admin", "system:masters")
        );
        assert_eq!(
            user("curl -H 'x-remote-user: bob' -H X-Remote-Group:dev -u alice http://a"),
            expected("bob", "dev")
        );
        assert_eq!(
            user("curl -H 'Impersonate-User: eve' -H 'Impersonate-Group: a' -H 'Impersonate-Group: b' http://a"),
            expected("eve", "a b")
        );
    }

    #[test]
    fn headers_are_those_that_curl_sends() {
        for (line, expected) in [
            ("curl -H 'X-Plan: gold' -H 'x-plan: tin' http://a", "x-plan: gold, x-plan: tin"),
            ("curl -A me/1 -e http://b -b c=d http://a", "user-agent: me/1, referer: http://b, cookie: c=d"),
            ("curl -A me/1 -H 'User-Agent: you' -b jar.txt http://a", "user-agent: you"),
            ("curl -A me/1 -H User-Agent: --oauth2-bearer t http://a", "authorization: Bearer t"),
            ("curl -d x http://a", "content-type: application/x-www-form-urlencoded"),
            ("curl -G -d x http://a", ""),
            ("curl --json {} http://a", "content-type: application/json, accept: application/json"),
            ("curl -F a=b -H 'a b: c' http://a", ""),
        ] {
            let headers = read(&words(line).unwrap()).unwrap().headers;
            let sent = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
            assert_eq!(sent.collect::<Vec<_>>().join(", "), expected, "{line}");
        }
    }

    #[test]
    fn faults_are_named() {
        let fault = |line: &str| words(line).and_then(|words| read(&words)).unwrap_err();
        assert_eq!(fault("curl -s"), "curl: there is no URL");
        assert_eq!(
            fault("curl http://a http://b"),
            "curl: there are two URLs, \"http://a\" and \"http://b\"; explain one at a time"
        );
        assert_eq!(fault("curl http://a -H"), "curl: -H needs a value");
        assert_eq!(fault("curl --request"), "curl: --request needs a value");
        assert_eq!(fault("curl 'http://a"), "curl: the quote ' has no end");
    }
}
