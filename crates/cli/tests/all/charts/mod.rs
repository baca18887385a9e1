//! The Helm chart and the Kustomize files in `deploy/`: what they render to is valid, makes sense, and runs.
//!
//! The tests need helm, kubectl and the Python package `kubernetes-validate`, which `cargo xtask setup` installs. Where one is
//! absent, they say so and test nothing.

#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

mod consistency;
mod meaning;
mod pod;
mod rendered;
mod schemas;
mod settings;
mod started;
mod values;

use rendered::{Rendered, everything};

/// One test for all of it: rendering takes longer than looking at what is rendered.
#[test]
fn everything_fits_together() {
    let checks: [fn(&Rendered); 12] = [
        meaning::no_container_runs_as_root_or_with_more_rights_than_it_needs,
        meaning::every_container_has_requests_and_a_memory_limit_and_evenkeel_has_probes,
        meaning::selectors_match_the_pods_and_only_those,
        meaning::ports_that_are_referred_to_exist,
        meaning::the_network_policy_admits_whom_it_has_to_and_nobody_else,
        meaning::a_budget_lets_one_pod_go_and_a_single_pod_has_none,
        meaning::volumes_config_maps_secrets_and_accounts_exist,
        meaning::prometheus_has_the_token_of_the_admin_endpoint,
        settings::the_binary_accepts_flags_and_settings,
        settings::the_objects_pass_the_strict_check,
        settings::kubernetes_waits_until_a_pod_has_drained,
        settings::ports_are_those_of_the_settings_and_files_are_mounted,
    ];
    for rendered in everything() {
        for check in checks {
            check(&rendered);
        }
    }
}
