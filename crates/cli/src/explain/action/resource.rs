//! The resources that every Kubernetes has: what they are called, the group of each, and which of them have namespaces.

/// A resource as it appears in URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) plural: String,
    /// Empty for the core group.
    pub(super) group: String,
    pub(super) version: String,
    pub(super) scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Namespaced,
    Cluster,
    /// A resource that is not built in: only its definition says.
    Unknown,
}

/// A group, its resources with namespaces, and those without. A short name follows a slash.
struct Group {
    name: &'static str,
    namespaced: &'static str,
    cluster: &'static str,
}

const fn group(name: &'static str, namespaced: &'static str, cluster: &'static str) -> Group {
    Group { name, namespaced, cluster }
}

const GROUPS: [Group; 19] = [
    group(
        "",
        "bindings configmaps/cm endpoints/ep events/ev limitranges/limits persistentvolumeclaims/pvc pods/po podtemplates \
         replicationcontrollers/rc resourcequotas/quota secrets serviceaccounts/sa services/svc",
        "componentstatuses/cs namespaces/ns nodes/no persistentvolumes/pv",
    ),
    group("apps", "controllerrevisions daemonsets/ds deployments/deploy replicasets/rs statefulsets/sts", ""),
    group("batch", "cronjobs/cj jobs", ""),
    group("autoscaling", "horizontalpodautoscalers/hpa", ""),
    group("policy", "poddisruptionbudgets/pdb", ""),
    group("networking.k8s.io", "ingresses/ing networkpolicies/netpol", "ingressclasses ipaddresses/ip servicecidrs"),
    group("rbac.authorization.k8s.io", "rolebindings roles", "clusterrolebindings clusterroles"),
    group("coordination.k8s.io", "leases", ""),
    group("discovery.k8s.io", "endpointslices", ""),
    group(
        "storage.k8s.io",
        "csistoragecapacities",
        "csidrivers csinodes storageclasses/sc volumeattachments volumeattributesclasses/vac",
    ),
    group("scheduling.k8s.io", "", "priorityclasses/pc"),
    group("node.k8s.io", "", "runtimeclasses"),
    group("certificates.k8s.io", "", "certificatesigningrequests/csr"),
    group("flowcontrol.apiserver.k8s.io", "", "flowschemas prioritylevelconfigurations"),
    group("apiextensions.k8s.io", "", "customresourcedefinitions/crd"),
    group("apiregistration.k8s.io", "", "apiservices"),
    group(
        "admissionregistration.k8s.io",
        "",
        "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations validatingadmissionpolicies \
         validatingadmissionpolicybindings validatingwebhookconfigurations",
    ),
    group(
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
    ),
    group("resource.k8s.io", "resourceclaims resourceclaimtemplates", "deviceclasses resourceslices"),
];

// === impl Resource ===

impl Resource {
    /// The resource that `pods`, `po`, `deployments.apps` or `deployments.v1.apps` names. A resource that is not built in needs its
    /// group.
    pub(super) fn named(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once('.').unwrap_or((text, ""));
        let name = name.to_ascii_lowercase();
        let (version, group) = match rest.split_once('.') {
            Some((version, group)) if is_version(version) => (version, group),
            None if is_version(rest) => (rest, ""),
            _ => ("v1", rest),
        };
        if name.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte)) {
            return Err(format!("{text:?} is not a resource; write for example pods or deployments.apps"));
        }
        let known = GROUPS.iter().filter(|known| rest.is_empty() || known.name == group);
        let found = known.flat_map(Group::resources).find(|(plural, short, _, _)| is_called(plural, *short, &name));
        match found {
            Some((plural, _, group, scope)) => {
                Ok(Self { plural: plural.to_owned(), group: group.to_owned(), version: version.to_owned(), scope })
            }
            None if group.is_empty() => Err(format!(
                "{name:?} is not a resource that every Kubernetes has; add its group, as in {name}.example.com (`kubectl api-resources` \
                 lists them)"
            )),
            None => {
                Ok(Self { plural: name, group: group.to_owned(), version: version.to_owned(), scope: Scope::Unknown })
            }
        }
    }
}

// === impl Group ===

impl Group {
    /// Plural, short name, group and scope of each.
    fn resources(&self) -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str, Scope)> {
        let name = self.name;
        let of = move |list: &'static str, scope| {
            list.split_whitespace().map(move |word| match word.split_once('/') {
                Some((plural, short)) => (plural, Some(short), name, scope),
                None => (word, None, name, scope),
            })
        };
        of(self.namespaced, Scope::Namespaced).chain(of(self.cluster, Scope::Cluster))
    }
}

/// Whether a resource has this name: its plural, its singular or its short name.
fn is_called(plural: &str, short: Option<&str>, name: &str) -> bool {
    let is_singular = plural.strip_suffix("ies").is_some_and(|stem| name.strip_suffix('y') == Some(stem))
        || plural.strip_suffix("es").is_some_and(|stem| name == stem && name.ends_with('s'))
        || plural.strip_suffix('s') == Some(name);
    plural == name || short == Some(name) || is_singular
}

/// Whether a part of a name is a version, such as `v1` or `v1beta1`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_several_names() {
        for (text, plural, group, version, scope) in [
            ("pods", "pods", "", "v1", Scope::Namespaced),
            ("pod", "pods", "", "v1", Scope::Namespaced),
            ("po", "pods", "", "v1", Scope::Namespaced),
            ("Pods", "pods", "", "v1", Scope::Namespaced),
            ("ns", "namespaces", "", "v1", Scope::Cluster),
            ("deploy", "deployments", "apps", "v1", Scope::Namespaced),
            ("deployments.apps", "deployments", "apps", "v1", Scope::Namespaced),
            ("deployments.v1.apps", "deployments", "apps", "v1", Scope::Namespaced),
            (
                "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io",
                "flowschemas",
                "flowcontrol.apiserver.k8s.io",
                "v1beta3",
                Scope::Cluster,
            ),
            ("networkpolicy", "networkpolicies", "networking.k8s.io", "v1", Scope::Namespaced),
            ("ingress", "ingresses", "networking.k8s.io", "v1", Scope::Namespaced),
            ("storageclass", "storageclasses", "storage.k8s.io", "v1", Scope::Cluster),
            ("events.events.k8s.io", "events", "events.k8s.io", "v1", Scope::Unknown),
            ("widgets.example.com", "widgets", "example.com", "v1", Scope::Unknown),
            ("widgets.v2alpha1.example.com", "widgets", "example.com", "v2alpha1", Scope::Unknown),
        ] {
            let expected =
                Resource { plural: plural.to_owned(), group: group.to_owned(), version: version.to_owned(), scope };
            assert_eq!(Resource::named(text), Ok(expected), "{text}");
        }
        for text in ["widgets", "", "*", "a b"] {
            assert!(Resource::named(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_name_means_two_resources() {
        let all: Vec<_> = GROUPS.iter().flat_map(Group::resources).collect();
        for (plural, short, _, _) in &all {
            for name in [Some(*plural), *short].into_iter().flatten() {
                let called = all.iter().filter(|(plural, short, _, _)| is_called(plural, *short, name)).count();
                assert_eq!(called, 1, "{name}");
            }
        }
    }
}
