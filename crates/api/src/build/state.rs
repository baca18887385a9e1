//! The states of the builders, which say what has been given and what is still missing.
//!
//! These types are met in the compiler's messages and in the types of builders that are kept in a variable or returned. The
//! traits are what a builder's methods ask of its state; nobody else can implement them.

use self::sealed::Sealed;
use crate::v1::{NonResourcePolicyRule, ResourcePolicyRule};

/// A flow schema that names no priority level yet.
#[derive(Debug, Clone, Copy)]
pub enum NoPriorityLevel {}

/// A flow schema that names its priority level.
#[derive(Debug, Clone, Copy)]
pub enum WithPriorityLevel {}

/// A rule that names nobody who asks.
#[derive(Debug, Clone, Copy)]
pub enum NoSubject {}

/// A rule that names somebody who asks.
#[derive(Debug, Clone, Copy)]
pub enum WithSubject {}

/// A rule that says nothing about what is asked for.
#[derive(Debug, Clone, Copy)]
pub struct NoRequests;

/// A rule whose last resources have no verbs yet.
#[derive(Debug, Clone)]
pub struct ResourcesWithoutVerbs(pub(super) ResourcePolicyRule);

/// A rule whose last paths have no verbs yet.
#[derive(Debug, Clone)]
pub struct UrlsWithoutVerbs(pub(super) NonResourcePolicyRule);

/// A rule that says what is asked for.
#[derive(Debug, Clone, Copy)]
pub struct WithRequests;

/// A priority level that is neither exempt nor limited yet.
#[derive(Debug, Clone, Copy)]
pub enum NoType {}

/// A priority level that is exempt or limited.
#[derive(Debug, Clone, Copy)]
pub enum WithType {}

/// A limited level that does not say what happens to a request that finds no seat.
#[derive(Debug, Clone, Copy)]
pub enum NoResponse {}

/// A limited level that queues or rejects a request that finds no seat.
#[derive(Debug, Clone, Copy)]
pub enum WithResponse {}

/// An owner of which the kind is not known yet.
#[derive(Debug, Clone, Copy)]
pub enum NoObject {}

/// An owner of which the name is not known yet.
#[derive(Debug, Clone, Copy)]
pub enum NoName {}

/// An owner of which the identity is not known yet.
#[derive(Debug, Clone, Copy)]
pub enum NoUid {}

/// An owner that is named in full.
#[derive(Debug, Clone, Copy)]
pub enum WithOwner {}

/// The state of a flow schema that can be built.
#[diagnostic::on_unimplemented(
    message = "the flow schema names no priority level",
    label = "call `.priority_level(\"name\")` before this",
    note = "every flow schema sends its requests to a priority level"
)]
pub trait HasPriorityLevel: Sealed {}

/// The state of a rule that names somebody.
#[diagnostic::on_unimplemented(
    message = "the rule names nobody who asks",
    label = "call `.user(..)`, `.group(..)` or `.service_account(.., ..)` in this rule",
    note = "`.group(\"*\")` stands for everybody"
)]
pub trait HasSubject: Sealed {}

/// The state of a rule that says what is asked for.
#[diagnostic::on_unimplemented(
    message = "the rule does not say what is asked for: it is in state `{Self}`",
    label = "end this rule with `.resources(..)` or `.non_resource_urls(..)`, followed by `.verbs(..)`",
    note = "`.everything()` stands for all requests"
)]
pub trait HasRequests: Sealed {}

/// The state of a rule in which nothing waits for its verbs.
#[diagnostic::on_unimplemented(
    message = "the resources or paths before this have no verbs: the rule is in state `{Self}`",
    label = "call `.verbs(..)` before this"
)]
pub trait HasVerbs: Sealed {}

/// The state of a priority level that has a type.
#[diagnostic::on_unimplemented(
    message = "the priority level has no type",
    label = "call `.limited(..)`, or `.exempt(..)` for the level named `exempt`, before this"
)]
pub trait HasType: Sealed {}

/// The state of a priority level whose type is still open.
#[diagnostic::on_unimplemented(
    message = "the priority level has a type already",
    label = "a level is either limited or exempt, once"
)]
pub trait TypeIsOpen: Sealed {}

/// The state of a limited level that says what happens to a request that finds no seat.
#[diagnostic::on_unimplemented(
    message = "the limited level does not say what happens to a request that finds no seat",
    label = "call `.queue(|q| q)` or `.reject()` in this level"
)]
pub trait HasResponse: Sealed {}

/// The state of a limited level that does not say yet what happens to a request that finds no seat.
#[diagnostic::on_unimplemented(
    message = "the limited level already says what happens to a request that finds no seat",
    label = "a level either queues or rejects, once"
)]
pub trait ResponseIsOpen: Sealed {}

/// The state of an owner that is named in full.
#[diagnostic::on_unimplemented(
    message = "the owner is not named in full: it is in state `{Self}`",
    label = "call `.object(api_version, kind)`, `.name(..)` and `.uid(..)`, in this order"
)]
pub trait HasOwner: Sealed {}

mod sealed {
    /// Keeps the traits of this module from being implemented elsewhere.
    pub trait Sealed {}
}

impl Sealed for NoPriorityLevel {}

impl Sealed for WithPriorityLevel {}
impl HasPriorityLevel for WithPriorityLevel {}

impl Sealed for NoSubject {}

impl Sealed for WithSubject {}
impl HasSubject for WithSubject {}

impl Sealed for NoRequests {}
impl HasVerbs for NoRequests {}

impl Sealed for ResourcesWithoutVerbs {}

impl Sealed for UrlsWithoutVerbs {}

impl Sealed for WithRequests {}
impl HasRequests for WithRequests {}
impl HasVerbs for WithRequests {}

impl Sealed for NoObject {}
impl Sealed for NoName {}
impl Sealed for NoUid {}

impl Sealed for WithOwner {}
impl HasOwner for WithOwner {}

impl Sealed for NoType {}
impl TypeIsOpen for NoType {}

impl Sealed for WithType {}
impl HasType for WithType {}

impl Sealed for NoResponse {}
impl ResponseIsOpen for NoResponse {}

impl Sealed for WithResponse {}
impl HasResponse for WithResponse {}
