//! Which types an object is made of.

use super::{Shape, TypeSchema};
use crate::Kind;

/// The types that have a name and that are met on the way down from `root`, each once, a type before its parts.
///
/// The names of some depend on the `kind` of the object that is described.
pub(super) fn reachable_types(root: &'static TypeSchema, kind: Kind) -> Vec<Shape> {
    let mut found = Vec::new();
    visit(Shape::Object(root), kind, &mut found);
    found
}

fn visit(shape: Shape, kind: Kind, found: &mut Vec<Shape>) {
    let shape = shape.element();
    let Some(name) = type_name(shape, kind) else { return };
    if found.iter().any(|known| type_name(*known, kind).as_ref() == Some(&name)) {
        return;
    }
    found.push(shape);
    for field in shape.definition().map_or(&[][..], |schema| schema.fields) {
        visit(field.shape, kind, found);
    }
}

/// The name of the type that the shape is, if it has one.
pub(super) fn type_name(shape: Shape, kind: Kind) -> Option<String> {
    match shape {
        Shape::Choice(choice) => Some(choice.name.to_owned()),
        shape => Some(shape.definition()?.name(kind).into_owned()),
    }
}
