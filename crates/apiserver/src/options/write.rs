//! Parameters of requests that write: `dryRun`, `fieldManager`, `fieldValidation`, `force` (API-79 to API-81, API-86).

use std::borrow::Cow;

use evenkeel_api::validate::{FieldError, FieldErrors, Value};
use evenkeel_engine::digest::Query;
use http::HeaderMap;
use http::header::USER_AGENT;

use crate::failure::Failure;
use crate::managed_fields::OnConflict;
use crate::patch::FieldValidation;
use crate::strconv::is_true;

/// The options of a request that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) persistence: Persistence,
    pub(crate) validation: FieldValidation,
    /// The manager that owns the fields that the request changes.
    pub(crate) manager: String,
    /// Whether an apply takes over what others own.
    pub(crate) on_conflict: OnConflict,
}

/// Whether the write takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    Stored,
    /// Everything happens except the write (API-61).
    DryRun,
}

/// The sort of request that writes. The name of its options follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Create,
    Update,
    /// A patch other than an apply.
    Patch,
    Apply,
}

/// The longest name of a manager, in bytes.
const MANAGER_BYTES_MAX: usize = 128;

// === impl WriteOptions ===

impl WriteOptions {
    /// Reads the parameters.
    pub(crate) fn read(kind: WriteKind, query: Query<'_>, headers: &HeaderMap) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let manager = query.first("fieldManager").unwrap_or_default();
        let force = query.first("force");
        match kind {
            WriteKind::Patch if force.is_some() => {
                errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
            WriteKind::Apply if manager.is_empty() => {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
            _ => {}
        }
        check_manager(&manager, &mut errors);
        let dry_run: Vec<_> = query.pairs().filter(|(name, _)| name == "dryRun").map(|(_, value)| value).collect();
        let persistence = Persistence::read(&dry_run, &mut errors);
        let validation = read_validation(&query.first("fieldValidation").unwrap_or_default(), &mut errors);
        FieldErrors::none_in(errors).map_err(|errors| Failure::invalid_options(kind.options(), &errors))?;
        let manager = if manager.is_empty() { manager_by_agent(headers) } else { manager.into_owned() };
        let on_conflict = match force {
            Some(force) if is_true(&force) => OnConflict::Force,
            _ => OnConflict::Refuse,
        };
        Ok(Self { persistence, validation, manager, on_conflict })
    }
}

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long("fieldManager", MANAGER_BYTES_MAX));
    }
    if let Some((at, strange)) = manager.char_indices().find(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(strange));
        errors.push(FieldError::invalid("fieldManager", &Value::text(manager), detail));
    }
}

/// Letters, marks, numbers, punctuation, symbols, and the plain space.
fn is_printable(c: char) -> bool {
    !c.is_control() && (c == ' ' || !c.is_whitespace()) && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}')
}

/// The manager of a request that names none: the program that sends it (API-80).
fn manager_by_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map_or(Cow::default(), |agent| String::from_utf8_lossy(agent.as_bytes()));
    let program = agent.split('/').next().unwrap_or_default();
    let mut end = program.len().min(MANAGER_BYTES_MAX);
    while !program.is_char_boundary(end) {
        end -= 1;
    }
    program[..end].to_owned()
}

// === impl Persistence ===

impl Persistence {
    pub(super) fn read<T: AsRef<str>>(values: &[T], errors: &mut Vec<FieldError>) -> Self {
        if values.is_empty() {
            return Self::Stored;
        }
        if values.iter().any(|value| value.as_ref() != "All") {
            let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
            errors.push(FieldError::not_supported("dryRun", &Value::json(&values), &["All"]));
        }
        Self::DryRun
    }
}

fn read_validation(text: &str, errors: &mut Vec<FieldError>) -> FieldValidation {
    match text {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            errors.push(FieldError::not_supported("fieldValidation", &Value::text(other), &supported));
            FieldValidation::Warn
        }
    }
}

// === impl WriteKind ===

impl WriteKind {
    fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: WriteKind, query: &str) -> Result<WriteOptions, String> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, "kubectl/v1.99 (linux)".parse().unwrap());
        WriteOptions::read(kind, Query::new(query), &headers).map_err(|failure| failure.message)
    }

    #[test]
    fn api_80_the_manager_is_named_or_the_program() {
        assert_eq!(read(WriteKind::Create, "fieldManager=me").unwrap().manager, "me");
        assert_eq!(read(WriteKind::Create, "fieldManager=").unwrap().manager, "kubectl");
        let long = read(WriteKind::Update, &format!("fieldManager={}", "m".repeat(129))).unwrap_err();
        let text = "UpdateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes";
        assert_eq!(long, text);
        let bell = read(WriteKind::Create, "fieldManager=bad%07bell").unwrap_err();
        assert!(bell.ends_with(r#"Invalid value: "bad\abell": invalid character U+0007 (at position 3)"#), "{bell}");
    }

    #[test]
    fn api_79_dry_run() {
        assert_eq!(read(WriteKind::Create, "").unwrap().persistence, Persistence::Stored);
        assert_eq!(read(WriteKind::Create, "dryRun=All&dryRun=All").unwrap().persistence, Persistence::DryRun);
        assert_eq!(
            read(WriteKind::Create, "dryRun=").unwrap_err(),
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All""#
        );
    }

    #[test]
    fn api_81_field_validation() {
        assert_eq!(read(WriteKind::Create, "fieldValidation=").unwrap().validation, FieldValidation::Warn);
        assert_eq!(read(WriteKind::Create, "fieldValidation=Strict").unwrap().validation, FieldValidation::Strict);
        let error = read(WriteKind::Patch, "fieldValidation=strict").unwrap_err();
        let text = r#"fieldValidation: Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn""#;
        assert_eq!(error, format!("PatchOptions.meta.k8s.io \"\" is invalid: {text}"));
    }

    #[test]
    fn api_86_and_123_force_and_the_manager_of_an_apply() {
        for (force, on_conflict) in [("true", OnConflict::Force), ("false", OnConflict::Refuse)] {
            let options = read(WriteKind::Apply, &format!("fieldManager=me&force={force}")).unwrap();
            assert_eq!(options.on_conflict, on_conflict);
        }
        let force = read(WriteKind::Patch, "force=false").unwrap_err();
        assert!(force.ends_with("force: Forbidden: may not be specified for non-apply patch"), "{force}");
        let nobody = read(WriteKind::Apply, "").unwrap_err();
        assert!(nobody.ends_with("fieldManager: Required value: is required for apply patch"), "{nobody}");
    }
}
