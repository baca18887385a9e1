//! Whether a command printed what the page says.
//!
//! On the page, a line of `…` stands for any lines, `…` in a line for any text, and `≈2.5` for a figure from half to twice as large.

/// What may vary in a line, and what may not.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    Anything,
    About(f64),
}

pub(crate) fn agrees(printed: &[String], output: &str) -> bool {
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    lines_agree(printed, &lines)
}

fn lines_agree(printed: &[String], lines: &[&str]) -> bool {
    match printed.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => (0..=lines.len()).any(|skipped| lines_agree(rest, &lines[skipped..])),
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| line_agrees(&parts(first.trim_end()), line) && lines_agree(rest, lines)),
    }
}

fn line_agrees(parts: &[Part], line: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return line.is_empty() };
    match first {
        Part::Text(text) => line.strip_prefix(text).is_some_and(|line| line_agrees(rest, line)),
        Part::Anything => line.char_indices().any(|(at, _)| line_agrees(rest, &line[at..])) || line_agrees(rest, ""),
        Part::About(figure) => {
            let (found, line) = line.split_at(figure_len(line));
            let is_near = found.parse::<f64>().is_ok_and(|found| (figure / 2.0..=figure * 2.0).contains(&found));
            is_near && line_agrees(rest, line)
        }
    }
}

fn parts(mut line: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let Some(at) = line.find(['…', '≈']) {
        parts.push(Part::Text(&line[..at]));
        if let Some(rest) = line[at..].strip_prefix('…') {
            parts.push(Part::Anything);
            line = rest;
        } else {
            let rest = line[at..].trim_start_matches('≈');
            let (figure, rest) = rest.split_at(figure_len(rest));
            parts.push(Part::About(figure.parse().expect("a figure after ≈")));
            line = rest;
        }
    }
    parts.push(Part::Text(line));
    parts
}

/// How many bytes of the text are a figure.
fn figure_len(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len())
}

#[test]
fn what_may_vary_varies_and_nothing_else() {
    let agrees =
        |printed: &[&str], output| agrees(&printed.iter().map(ToString::to_string).collect::<Vec<_>>(), output);
    assert!(agrees(&["one", "two"], "one\r\ntwo\n"));
    assert!(agrees(&[], ""));
    assert!(agrees(&["one", "…", "four"], "one\ntwo\n\nfour\n"));
    assert!(agrees(&["took … of ≈2.0 s"], "took most of 3.97 s\n"));
    for (printed, output) in [
        (&["one"][..], "one\ntwo\n"),
        (&["one", "two"], "one\n"),
        (&[], "one\n"),
        (&["one", "…", "four"], "one\ntwo\n"),
        (&["≈2.0"], "4.1\n"),
        (&["≈2.0"], "0.9\n"),
        (&["≈2.0"], "two\n"),
        (&["≈2.0 s"], "2.0 ms\n"),
        (&["a … c"], "a b d\n"),
    ] {
        assert!(!agrees(printed, output), "{printed:?} {output:?}");
    }
}
