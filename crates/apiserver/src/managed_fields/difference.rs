//! `Differences`: what a request changes, as each version sees it (API-130).

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object, Version};

use super::compare::Comparison;
use super::field_set::FieldSet;
use super::owned_parts::OwnedParts;
use super::owner::Owner;
use super::view::view_both;
use super::writer::WriteTarget;

/// The differences between two states of an object, worked out for each version when it is first asked for.
pub(crate) struct Differences<'a, S: HubSpec> {
    old: &'a Object<V1, S>,
    new: &'a Object<V1, S>,
    endpoint: WriteTarget,
    known: Vec<(Version, Comparison)>,
}

// === impl Differences ===

impl<'a, S: HubSpec> Differences<'a, S> {
    /// The differences between two states that a request to this endpoint makes.
    pub(crate) fn new(old: &'a Object<V1, S>, new: &'a Object<V1, S>, endpoint: WriteTarget) -> Self {
        Self { old, new, endpoint, known: Vec::new() }
    }

    /// The same, where one version is known already.
    pub(crate) fn knowing(mut self, version: Version, comparison: Comparison) -> Self {
        self.add(version, comparison);
        self
    }

    /// The fields that differ in that version.
    pub(crate) fn in_version(&mut self, version: Version) -> &Comparison {
        let place = self.known.iter().position(|(known, _)| *known == version);
        let place = place.unwrap_or_else(|| {
            let (old, new) = view_both(self.old, self.new, version);
            self.add(version, Comparison::of(&old, &new, OwnedParts::of_object(S::KIND, version)))
        });
        &self.known[place].1
    }

    fn add(&mut self, version: Version, mut comparison: Comparison) -> usize {
        self.endpoint.reset(&mut comparison.changed);
        self.endpoint.reset(&mut comparison.removed);
        self.known.push((version, comparison));
        self.known.len() - 1
    }

    /// The fields of an owner that the request gives another value.
    pub(crate) fn conflicts_with(&mut self, owner: &Owner) -> FieldSet {
        owner.fields.intersection(&self.in_version(owner.version).changed)
    }

    /// Takes from the owners what got another value or is gone.
    pub(crate) fn take_from(&mut self, owners: &mut [Owner]) {
        for owner in owners {
            let comparison = self.in_version(owner.version);
            owner.fields.subtract(&comparison.changed);
            owner.fields.subtract(&comparison.removed);
        }
    }
}
