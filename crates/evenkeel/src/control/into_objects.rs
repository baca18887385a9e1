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
/// use evenkeel::objects::InvalidObjects;
/// use evenkeel::{FlowControl, FlowSchema};
///
/// fn reload(flow: &FlowControl, manifest: &str) -> Result<(), InvalidObjects> {
///     flow.apply(manifest)?;
///     let schema = FlowSchema::builder("staff").priority_level("exempt").rule(|r| r.group("staff").everything()).build();
///     flow.apply(schema)?;
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of flow schemas and priority levels",
    label = "expected objects, a list of them, or the text of a manifest",
    note = "builders of objects end with `.build()`; objects of both kinds are given one after the other, or as `Objects`"
)]
pub trait IntoObjects: Sized {
    /// The objects. Texts are read by the rules of the preset.
    fn into_objects(self, preset: Preset) -> Result<Objects, Problems>;
}

// === impl IntoObjects ===

impl IntoObjects for &str {
    /// The text of a manifest, which is read strictly.
    fn into_objects(self, preset: Preset) -> Result<Objects, Problems> {
        Manifest::read_for(preset, "manifest", self.as_bytes(), Strictness::Strict)?.into_objects(preset)
    }
}

impl IntoObjects for &String {
    fn into_objects(self, preset: Preset) -> Result<Objects, Problems> {
        self.as_str().into_objects(preset)
    }
}

impl IntoObjects for String {
    fn into_objects(self, preset: Preset) -> Result<Objects, Problems> {
        self.as_str().into_objects(preset)
    }
}

impl IntoObjects for Manifest {
    fn into_objects(self, _preset: Preset) -> Result<Objects, Problems> {
        Ok(self.entries.into_iter().map(|entry| entry.object).collect())
    }
}

impl IntoObjects for Objects {
    fn into_objects(self, _preset: Preset) -> Result<Objects, Problems> {
        Ok(self)
    }
}

impl IntoObjects for FlowSchema {
    fn into_objects(self, preset: Preset) -> Result<Objects, Problems> {
        [self].into_objects(preset)
    }
}

impl IntoObjects for PriorityLevelConfiguration {
    fn into_objects(self, preset: Preset) -> Result<Objects, Problems> {
        [self].into_objects(preset)
    }
}

impl<O: Into<AnyObject>> IntoObjects for Vec<O> {
    fn into_objects(self, _preset: Preset) -> Result<Objects, Problems> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

impl<O: Into<AnyObject>, const N: usize> IntoObjects for [O; N] {
    fn into_objects(self, _preset: Preset) -> Result<Objects, Problems> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}
