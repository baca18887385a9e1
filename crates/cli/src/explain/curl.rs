//! A `curl` command line as a request: its method, its URL and what it says of its user.

use super::question::Question;

/// Options that take a value and change nothing that flow control looks at.
const WITH_VALUE: &[&str] = &[
    "abstract-unix-socket",
    "alt-svc",
    "aws-sigv4",
    "cacert",
    "capath",
    "cert",
    "cert-type",
    "ciphers",
    "config",
    "connect-timeout",
    "connect-to",
    "continue-at",
    "cookie",
    "cookie-jar",
    "create-file-mode",
    "crlfile",
    "curves",
    "dns-interface",
    "dns-servers",
    "dump-header",
    "engine",
    "etag-compare",
    "etag-save",
    "expect100-timeout",
    "happy-eyeballs-timeout-ms",
    "haproxy-clientip",
    "hsts",
    "interface",
    "ipfs-gateway",
    "keepalive-time",
    "key",
    "key-type",
    "limit-rate",
    "local-port",
    "login-options",
    "max-filesize",
    "max-redirs",
    "max-time",
    "netrc-file",
    "noproxy",
    "output",
    "output-dir",
    "parallel-max",
    "pass",
    "pinnedpubkey",
    "preproxy",
    "proto",
    "proto-default",
    "proto-redir",
    "proxy",
    "proxy-header",
    "proxy-user",
    "range",
    "rate",
    "referer",
    "resolve",
    "retry",
    "retry-delay",
    "retry-max-time",
    "service-name",
    "socks5",
    "socks5-hostname",
    "speed-limit",
    "speed-time",
    "stderr",
    "tls-max",
    "tls13-ciphers",
    "trace",
    "write-out",
];
/// The same with one letter.
const LETTERS_WITH_VALUE: &str = "AbcCDeEhKmoPQrtTUwxyYz";
/// The letters of options that say something here, and their long names.
const LETTERS: [(char, &str); 10] = [
    ('X', "request"),
    ('H', "header"),
    ('d', "data"),
    ('F', "form"),
    ('T', "upload-file"),
    ('I', "head"),
    ('G', "get"),
    ('u', "user"),
    ('A', "user-agent"),
    ('o', "output"),
];
/// Options whose value is a body.
const BODIES: [&str; 8] =
    ["data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "form", "form-string"];

/// What has been read so far.
#[derive(Debug, Default)]
struct Read {
    method: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    basic_user: Option<String>,
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
            "request" | "header" | "url" | "user" | "user-agent" | "upload-file" | "oauth2-bearer" | "url-query"
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
            body if BODIES.contains(&body) => self.bodies.push(value.to_owned()),
            _ => {}
        }
        Ok(())
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
        let mut url = self.url.ok_or_else(|| "curl: there is no URL".to_owned())?;
        if self.is_get && !self.bodies.is_empty() {
            let separator = if url.contains('?') { '&' } else { '?' };
            url = format!("{url}{separator}{}", self.bodies.join("&"));
        }
        let method = match self.method {
            Some(method) => method,
            None if self.is_head => "HEAD".to_owned(),
            None if self.has_upload => "PUT".to_owned(),
            None if self.is_get || self.bodies.is_empty() => "GET".to_owned(),
            None => "POST".to_owned(),
        };
        let values =
            |wanted: &'static str| self.headers.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| value);
        // Impersonation goes before everything else, as in a kube-apiserver.
        let named = ["impersonate-user", "x-remote-user"].into_iter().find_map(|name| values(name).next().cloned());
        let groups = ["impersonate-group", "x-remote-group"].into_iter().flat_map(values).cloned().collect();
        Question::new(&method, &url, named.or(self.basic_user), groups)
    }
}

/// Splits a command line into words as a shell does: quotes, backslashes and continued lines. Nothing is expanded.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match (characters.next(), character) {
                        (None, _) => return Err(format!("curl: the quote {character} has no end")),
                        (Some(end), quote) if end == quote => break,
                        (Some('\\'), '"') => match characters.next() {
                            Some('\n') | None => {}
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                        },
                        (Some(other), _) => word.push(other),
                    }
                }
            }
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
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
