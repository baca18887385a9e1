//! A route that has been checked.

use std::borrow::Cow;

use super::error::{RouteError, TemplateFault};
use super::template::{Attribute, Piece};
use super::{Route, Segments};
use crate::RequestInfo;
use crate::digest::percent::decode_path;

/// A route that has been checked.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub(super) template: Box<str>,
    pub(super) pieces: Vec<Piece>,
    pub(super) methods: Vec<Box<str>>,
    pub(super) verb: Option<Box<str>>,
    fixed: Vec<(Attribute, Box<str>)>,
    pub(super) is_path_only: bool,
}

// === impl Compiled ===

impl Compiled {
    /// Gives every fault of the route.
    pub(super) fn new(route: Route) -> Result<Self, Vec<RouteError>> {
        let mut errors = Vec::new();
        let pieces = pieces(&route.template, &mut errors);
        // Where the template is not understood, further errors would only follow from that.
        if errors.is_empty() {
            let faults = faults_of_values(&pieces, &route);
            errors
                .extend(faults.into_iter().map(|fault| RouteError::Route { template: route.template.clone(), fault }));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let Route { template, methods, verb, fixed, is_path_only } = route;
        Ok(Self { template, pieces, methods, verb, fixed, is_path_only })
    }

    pub(super) fn is_for(&self, method: &str) -> bool {
        self.methods.iter().any(|own| **own == *method)
    }

    /// Whether neither of two routes of the same shape is more specific than the other for some method.
    pub(super) fn rivals(&self, other: &Self) -> bool {
        match (self.methods.is_empty(), other.methods.is_empty()) {
            (true, true) => true,
            (false, false) => other.methods.iter().any(|method| self.is_for(method)),
            _ => false,
        }
    }

    /// Takes the values of a path that this route matches.
    pub(super) fn fill<'a>(&'a self, mut segments: Segments<'a>, request: &mut RequestInfo<'a>) {
        for (attribute, value) in &self.fixed {
            *attribute.of(request) = Cow::Borrowed(value);
        }
        for piece in &self.pieces {
            let text = if matches!(piece, Piece::Rest(_)) { segments.rest() } else { segments.take() };
            if let Some(attribute) = piece.attribute() {
                *attribute.of(request) = decoded(text);
            }
        }
    }
}

/// Decodes a part of a path that is known to have no malformed escape.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    decode_path(text).unwrap_or(Cow::Borrowed(text))
}

fn pieces(template: &str, errors: &mut Vec<RouteError>) -> Vec<Piece> {
    let Some(path) = template.strip_prefix('/') else {
        errors.push(RouteError::Route { template: template.into(), fault: TemplateFault::NoSlash });
        return Vec::new();
    };
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut segments = path.split('/').enumerate().filter(|_| !path.is_empty()).peekable();
    while let Some((index, text)) = segments.next() {
        let piece = Piece::parse(text).and_then(|piece| {
            let repeated = piece.attribute().filter(|_| pieces.iter().any(|p| p.attribute() == piece.attribute()));
            match repeated {
                Some(attribute) => Err(TemplateFault::Repeated(attribute)),
                None if matches!(piece, Piece::Rest(_)) && segments.peek().is_some() => Err(TemplateFault::RestNotLast),
                None => Ok(piece),
            }
        });
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(fault) => errors.push(RouteError::Segment {
                template: template.into(),
                position: index + 1,
                text: text.into(),
                fault,
            }),
        }
    }
    pieces
}

/// What is wrong with the attributes that get a value, taken together.
fn faults_of_values(pieces: &[Piece], route: &Route) -> Vec<TemplateFault> {
    let fixed = &route.fixed;
    let has_placeholder = |attribute| pieces.iter().any(|piece| piece.attribute() == Some(attribute));
    let mut faults = Vec::new();
    for (index, (attribute, _)) in fixed.iter().enumerate() {
        if has_placeholder(*attribute) {
            faults.push(TemplateFault::FixedTwice(*attribute));
        } else if fixed[..index].iter().any(|(earlier, _)| earlier == attribute) {
            faults.push(TemplateFault::Repeated(*attribute));
        }
    }
    let is_fixed = fixed.iter().any(|(attribute, value)| *attribute == Attribute::Resource && !value.is_empty());
    if !has_placeholder(Attribute::Resource) && !is_fixed && !route.is_path_only {
        faults.push(TemplateFault::NoResource);
    }
    faults
}
