//! Comma-separated values, as Kubernetes reads them: quotes around values with commas, quotes or line ends; empty lines do not
//! count; there are no comments.

/// One line, or more if there are line ends in quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The line that it begins in, counted from 1.
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

/// All records, up to the first that is wrong. Errors begin with their line.
pub(super) fn records(text: &str) -> impl Iterator<Item = Result<Record, String>> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut is_over = false;
    std::iter::from_fn(move || {
        let record = if is_over { None } else { reader.record() };
        is_over = !matches!(record, Some(Ok(_)));
        record
    })
}

// === impl Reader ===

impl Reader<'_> {
    fn record(&mut self) -> Option<Result<Record, String>> {
        while self.take_line_end() {}
        if self.rest.is_empty() {
            return None;
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            match self.field() {
                Ok(field) => fields.push(field),
                Err(fault) => return Some(Err(format!("{line}: {fault}"))),
            }
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
            } else {
                // At the end of the text there may be no end of the line.
                self.take_line_end();
                return Some(Ok(Record { line, fields }));
            }
        }
    }

    fn field(&mut self) -> Result<String, &'static str> {
        if let Some(rest) = self.rest.strip_prefix('"') {
            self.rest = rest;
            return self.quoted();
        }
        let line = self.rest.split('\n').next().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let field = line.split(',').next().unwrap_or_default();
        if field.contains('"') {
            return Err("a quote in the middle of a column; put the column in quotes, and double those in it");
        }
        self.rest = &self.rest[field.len()..];
        Ok(field.to_owned())
    }

    fn quoted(&mut self) -> Result<String, &'static str> {
        let mut field = String::new();
        loop {
            let (part, rest) = self.rest.split_once('"').ok_or("a quote is not closed")?;
            field += part;
            self.line += part.matches('\n').count();
            if let Some(rest) = rest.strip_prefix('"') {
                field.push('"');
                self.rest = rest;
                continue;
            }
            self.rest = rest;
            let is_end = rest.is_empty() || rest.starts_with([',', '\n']) || rest.starts_with("\r\n");
            return if is_end { Ok(field) } else { Err("something follows a column in quotes") };
        }
    }

    fn take_line_end(&mut self) -> bool {
        let rest = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n'));
        let rest = rest.or_else(|| (self.rest == "\r").then_some(""));
        self.line += usize::from(rest.is_some());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}
