//! `IntoObjects`: what a flow control accepts as its objects.

use evenkeel_api::decode::{Manifest, Problems, Strictness};
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_api::{AnyObject, Preset};
use evenkeel_engine::controller::Objects;

/// Anything that objects can be made of: the text of a manifest, a manifest that has been read, one object or several.
/// [`FlowControlBuilder::objects`](crate::FlowControlBuilder::objects) and
/// [`FlowControl::apply`](crate::FlowControl::apply) take them.
///
/// ```
/// use evenkeel::objects::Problems;
/// use evenkeel::{FlowControl, FlowSchema};
///
/// fn reload(flow: &FlowControl, manifest: &str) -> Result<(), Problems> {
///     flow.apply(manifest)?; // A text may have problems,
///     let schema = FlowSchema::builder("staff").priority_level("exempt").rule(|r| r.group("staff").everything()).build();
///     let report = flow.apply(schema); // and an object has none.
///     Ok(())
/// }
/// ```
pub trait IntoObjects: Sized {
    /// `Result<T, Problems>` for texts, which may not be understood, and `T` for everything else.
    type Fallible<T>;

    /// Makes the objects and does something with them. Texts are read by the rules of the preset.
    fn into_objects_then<T>(self, preset: Preset, then: impl FnOnce(Objects) -> T) -> Self::Fallible<T>;

    /// The objects. Texts are read by the rules of the preset.
    fn into_objects(self, preset: Preset) -> Self::Fallible<Objects> {
        self.into_objects_then(preset, |objects| objects)
    }
}

// === impl IntoObjects ===

impl IntoObjects for &str {
    type Fallible<T> = Result<T, Problems>;

    /// The text of a manifest, which is read strictly.
    fn into_objects_then<T>(self, preset: Preset, then: impl FnOnce(Objects) -> T) -> Result<T, Problems> {
        let manifest = Manifest::read_for(preset, "manifest", self.as_bytes(), Strictness::Strict)?;
        Ok(manifest.into_objects_then(preset, then))
    }
}

impl IntoObjects for &String {
    type Fallible<T> = Result<T, Problems>;

    fn into_objects_then<T>(self, preset: Preset, then: impl FnOnce(Objects) -> T) -> Result<T, Problems> {
        self.as_str().into_objects_then(preset, then)
    }
}

impl IntoObjects for String {
    type Fallible<T> = Result<T, Problems>;

    fn into_objects_then<T>(self, preset: Preset, then: impl FnOnce(Objects) -> T) -> Result<T, Problems> {
        self.as_str().into_objects_then(preset, then)
    }
}

impl IntoObjects for Manifest {
    type Fallible<T> = T;

    fn into_objects_then<T>(self, _preset: Preset, then: impl FnOnce(Objects) -> T) -> T {
        then(self.entries.into_iter().map(|entry| entry.object).collect())
    }
}

impl IntoObjects for Objects {
    type Fallible<T> = T;

    fn into_objects_then<T>(self, _preset: Preset, then: impl FnOnce(Objects) -> T) -> T {
        then(self)
    }
}

impl IntoObjects for FlowSchema {
    type Fallible<T> = T;

    fn into_objects_then<T>(self, preset: Preset, then: impl FnOnce(Objects) -> T) -> T {
        [self].into_objects_then(preset, then)
    }
}

impl IntoObjects for PriorityLevelConfiguration {
    type Fallible<T> = T;

    fn into_objects_then<T>(self, preset: Preset, then: impl FnOnce(Objects) -> T) -> T {
        [self].into_objects_then(preset, then)
    }
}

impl<O: Into<AnyObject>> IntoObjects for Vec<O> {
    type Fallible<T> = T;

    fn into_objects_then<T>(self, _preset: Preset, then: impl FnOnce(Objects) -> T) -> T {
        then(self.into_iter().map(Into::into).collect())
    }
}

impl<O: Into<AnyObject>, const N: usize> IntoObjects for [O; N] {
    type Fallible<T> = T;

    fn into_objects_then<T>(self, _preset: Preset, then: impl FnOnce(Objects) -> T) -> T {
        then(self.into_iter().map(Into::into).collect())
    }
}
