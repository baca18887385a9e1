//! From text to settings and back.

use std::path::{Path, PathBuf};

use evenkeel_api::decode::{Node, Position, Problems, SyntaxError, Value, parse_yaml};
use evenkeel_api::short::{self, ShortForm, is_short_form};
use evenkeel_api::{GROUP, Preset};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Options};

use super::{Config, paths, wording};

/// The settings could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{}: {source}; name a file that exists and is readable", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The levels and matches of the file are wrong.
    #[error("{0}")]
    Short(Problems),
    /// The file is no configuration.
    #[error("{file}:{line}:{column}: {message}")]
    Text {
        /// What the file is called.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1.
        column: u64,
        /// Which setting, what is wrong with it, and what to do.
        message: String,
    },
}

/// A configuration is a page or two; whatever is longer is another file.
const BYTES_MAX: usize = 1 << 20;

// === impl Config ===

impl Config {
    /// Reads the settings of a file. Paths in it that are relative are relative to the folder of the file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::read_for(path, None)
    }

    /// Reads the settings of a file for this preset, whichever the file names.
    pub fn read_for(path: &Path, preset: Option<Preset>) -> Result<Self, ConfigError> {
        let text = evenkeel_files::read_to_string(path)
            .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
        let mut config = Self::parse_for(&path.display().to_string(), &text, preset)?;
        if let Some(folder) = path.parent() {
            paths::visit(&mut config, &mut |_, path| *path = folder.join(&*path));
        }
        Ok(config)
    }

    /// Reads settings. `name` is what errors call the text. Relative paths stay as they are.
    ///
    /// ```
    /// use evenkeel_gateway::Config;
    ///
    /// let config = Config::parse("evenkeel.yaml", "
    /// upstreams: [{url: http://127.0.0.1:9000}]
    /// concurrency: 40
    /// ")?;
    /// assert_eq!(config.concurrency, Some(40.into()));
    /// let error = Config::parse("evenkeel.yaml", "timeouts: {idle: 5}").unwrap_err();
    /// assert!(error.to_string().starts_with("evenkeel.yaml:1:18: timeouts.idle: \"5\" is not a duration"));
    /// # Ok::<(), evenkeel_gateway::config::ConfigError>(())
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_for(name, text, None)
    }

    fn parse_for(name: &str, text: &str, preset: Option<Preset>) -> Result<Self, ConfigError> {
        let fault = |line, column, message| ConfigError::Text { file: name.to_owned(), line, column, message };
        if text.len() > BYTES_MAX {
            return Err(fault(
                1,
                1,
                format!("the file has more than {BYTES_MAX} bytes, which is too large for settings"),
            ));
        }
        // A file without any setting, such as one with comments only, means the defaults.
        if text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#')) {
            return Ok(Self::for_preset(preset.unwrap_or_default()));
        }
        check_short_form(name, text)?;
        let mut config: Self = serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let at = Position { line: position(line), column: position(column) };
            let documents = match parse_yaml(text.as_bytes()) {
                Ok(documents) => documents,
                Err(SyntaxError { at, message, .. }) if message == SyntaxError::TABS => {
                    return fault(at.line.into(), at.column.into(), message);
                }
                Err(_) => Vec::new(),
            };
            if let Some(message) = documents.first().and_then(|document| other_kind(&document.root)) {
                return fault(line, column, message);
            }
            let mut duplicates = documents.iter().take(1).flat_map(|document| &document.duplicates);
            if let Some(duplicate) = duplicates.find(|duplicate| duplicate.at == at) {
                return fault(line, column, format!("{}: {}", duplicate.path, wording::DUPLICATE));
            }
            let (field, found) = documents.first().map(|document| field_at(&document.root, at)).unzip();
            let field = field.unwrap_or_default();
            let message = wording::message(&error, &field, found.map(|node| &node.value));
            fault(line, column, if field.is_empty() { message } else { format!("{field}: {message}") })
        })?;
        config.preset = preset.unwrap_or(config.preset);
        config.fill_in(|field| is_said(text, field));
        Ok(config)
    }

    /// Where a setting is in a file, as `evenkeel.yaml:3:1`, if it is there. `field` is a name as those of
    /// [`Problem`](super::Problem)s are: `listen[0].address`.
    pub fn place_of(path: &Path, field: &str) -> Option<String> {
        let text = evenkeel_files::read_to_string(path).ok().filter(|text| text.len() <= BYTES_MAX)?;
        let Position { line, column } = place_in(&text, field)?;
        Some(format!("{}:{line}:{column}", path.display()))
    }

    /// The settings as text that [`parse`](Self::parse) reads back: all of them, those not given included.
    pub fn to_yaml(&self) -> String {
        // The types hold nothing that YAML could not; an error would be a mistake in them, which a test looks for.
        let all = Self { concurrency: Some(self.concurrency()), ..self.clone() };
        serde_saphyr::to_string(&all).unwrap_or_else(|error| format!("# {error}\n"))
    }
}

/// Whether a document is one of settings, by the names in it. For messages about a file in the wrong place.
pub fn is_settings(root: &Node) -> bool {
    let Value::Map(members) = &root.value else { return false };
    let known = serde_json::to_value(Config::default()).unwrap_or_default();
    let has = |name: &str| members.iter().any(|member| member.key == name);
    let is_known = |name: &str| known.get(name).is_some() || short::KEYS.contains(&name);
    !has("apiVersion") && !has("kind") && members.iter().any(|member| is_known(&member.key))
}

/// Levels and matches are read from the tree first, which knows the place of everything.
fn check_short_form(name: &str, text: &str) -> Result<(), ConfigError> {
    // Text that is not YAML at all is reported when the rest is read.
    let Ok(documents) = parse_yaml(text.as_bytes()) else { return Ok(()) };
    match documents.first() {
        Some(document) if is_short_form(&document.root) => {
            ShortForm::from_settings(name, document).map(drop).map_err(ConfigError::Short)
        }
        _ => Ok(()),
    }
}

/// The kind of a document that holds an object instead of settings.
fn other_kind(root: &Node) -> Option<String> {
    let text = |name| root.get(name).and_then(Node::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    Some(if api_version.starts_with(GROUP) || kind == "List" {
        "this is a manifest of objects; pass it with --objects".to_owned()
    } else {
        format!("this is a manifest of a {kind}, not a settings file")
    })
}

/// The limits of the parser are on, and tags and anchors for programmers are off.
fn options() -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn position(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The setting at a place of the text, as `listen[0].address`, and its value.
fn field_at(root: &Node, at: Position) -> (String, &Node) {
    let (mut field, mut node) = (String::new(), root);
    while let Some((name, next)) = last_before(node, at) {
        if !field.is_empty() && !name.starts_with('[') {
            field.push('.');
        }
        field += &name;
        node = next;
    }
    (field, node)
}

/// Whether a text has a setting, as `timeouts.queue`.
fn is_said(text: &str, field: &str) -> bool {
    let Ok(documents) = parse_yaml(text.as_bytes()) else { return false };
    let Some(root) = documents.first().map(|document| &document.root) else { return false };
    field.split('.').try_fold(root, |node, name| node.get(name)).is_some()
}

/// The place of a setting, or of the part of it that there is: `concurrency`, `listen[0].address`.
fn place_in(text: &str, field: &str) -> Option<Position> {
    let documents = parse_yaml(text.as_bytes()).ok()?;
    let (mut node, mut place) = (&documents.first()?.root, None);
    for part in field.split(['.', '[']).map(|part| part.trim_end_matches(']')) {
        let found = match &node.value {
            Value::Map(members) => {
                members.iter().find(|member| member.key == part).map(|member| (member.key_at, &member.value))
            }
            Value::List(items) => {
                part.parse::<usize>().ok().and_then(|index| items.get(index)).map(|item| (item.at, item))
            }
            _ => None,
        };
        let Some((at, next)) = found else { break };
        (place, node) = (Some(at), next);
    }
    place
}

/// The last part of a value that begins at this place or before it.
fn last_before(node: &Node, at: Position) -> Option<(String, &Node)> {
    match &node.value {
        Value::Map(members) => {
            let member = members.iter().rev().find(|member| member.key_at <= at)?;
            Some((member.key.clone(), &member.value))
        }
        Value::List(items) => {
            let (index, item) = items.iter().enumerate().rev().find(|(_, item)| item.at <= at)?;
            Some((format!("[{index}]"), item))
        }
        _ => None,
    }
}
