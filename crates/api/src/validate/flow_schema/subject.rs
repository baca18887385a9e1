//! Subjects: the member that belongs to the kind must be there and be right, and no other may be (API-41).

use crate::v1::{ServiceAccountSubject, Subject, SubjectKind};
use crate::validate::{FieldError, Path, Value, names};

/// Stands for all service accounts of a namespace.
const EVERY_NAME: &str = "*";

pub(super) fn check(subject: &Subject, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match subject.kind {
        SubjectKind::ServiceAccount => match &subject.service_account {
            Some(account) => check_service_account(account, &path.child("serviceAccount"), errors),
            None => errors.push(missing(path, "serviceAccount", &subject.kind)),
        },
        SubjectKind::User => match &subject.user {
            Some(user) => check_name(&user.name, &path.child("user"), errors),
            None => errors.push(missing(path, "user", &subject.kind)),
        },
        SubjectKind::Group => match &subject.group {
            Some(group) => check_name(&group.name, &path.child("group"), errors),
            None => errors.push(missing(path, "group", &subject.kind)),
        },
        SubjectKind::Other(_) => {
            let value = Value::json(&subject.kind);
            errors.push(FieldError::no_choice(path.child("kind"), &value, &SubjectKind::CHOICE));
            return;
        }
    }
    let members = [
        ("serviceAccount", SubjectKind::ServiceAccount, subject.service_account.is_some()),
        ("user", SubjectKind::User, subject.user.is_some()),
        ("group", SubjectKind::Group, subject.group.is_some()),
    ];
    for (member, kind, is_there) in members {
        if is_there && kind != subject.kind {
            let detail = format!("{member} is forbidden when subject kind is not '{kind}'");
            errors.push(FieldError::forbidden(path.child(member), &detail));
        }
    }
}

fn missing(path: &Path<'_>, member: &'static str, kind: &SubjectKind) -> FieldError {
    FieldError::required(path.child(member), &format!("{member} is required when subject kind is '{kind}'"))
}

/// Users and groups come from outside; of their names nothing is known but that there is one.
fn check_name(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path.child("name"), ""));
    }
}

fn check_service_account(account: &ServiceAccountSubject, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (name, namespace) = (&account.name, &account.namespace);
    check_name(name, path, errors);
    if !name.is_empty() && name != EVERY_NAME {
        names::report(errors, &path.child("name"), name, names::subdomain(name));
    }
    let path = path.child("namespace");
    if namespace.is_empty() {
        errors.push(FieldError::required(path, "must specify namespace for service account"));
    } else {
        names::report(errors, &path, namespace, names::namespace(namespace));
    }
}
