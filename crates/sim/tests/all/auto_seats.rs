//! The limit that finds itself is told the same in the simulator as in the library (AL-8).

use evenkeel_api::Preset;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::auto_limit::Learnt;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::{MILLISECOND, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_sim::{AutoSettings, NewRequest, Outcome, ServerSettings, Simulator};

fn simulator(limit: f64, objects: Objects) -> Simulator<u32> {
    let mut settings = ServerSettings::new(1);
    settings.preset = Preset::Plain;
    settings.auto = Some(AutoSettings::new(1..=1000, 20).learnt(Learnt { limit, ln_cost: None, peak: 0.0 }));
    Simulator::new(settings, objects)
}

fn limit(simulator: &Simulator<u32>) -> u32 {
    simulator.auto_limit().unwrap().limit()
}

/// AL-5, AL-8: requests that take no seat say nothing about how many seats there should be.
#[test]
fn al_8_requests_without_a_seat_do_not_count() {
    for (work, expected) in [(WorkEstimate::seats(0), 100..=100), (WorkEstimate::ONE_SEAT, 1..=70)] {
        let mut simulator = simulator(100.0, Preset::Plain.into());
        let user = User::new("alice", ["system:authenticated"]);
        let request = RequestInfo::for_path("get", "/orders");
        let class = simulator.classify(Attributes { user: &user, request: &request });
        let mut note = |_: Outcome<u32>| {};
        simulator.set_failing(0, true, &mut note);
        let mut lowest = limit(&simulator);
        for index in 0..400 {
            let at = i64::from(index) * MILLISECOND;
            simulator.arrive(at, class, NewRequest::new(index, MILLISECOND, work), &mut note);
            lowest = lowest.min(limit(&simulator));
        }
        assert!(expected.contains(&lowest), "{work:?}: {lowest}");
    }
}

/// AL-6, AL-8: never below what the levels need.
#[test]
fn al_6_levels_get_what_they_need() {
    let level = |index: u32| -> [evenkeel_api::AnyObject; 2] {
        let name = format!("level-{index}");
        let level = PriorityLevelConfiguration::builder(&name).limited(|level| level.shares(10).reject()).build();
        let schema = FlowSchema::builder(&name).priority_level(&name);
        [level.into(), schema.rule(|rule| rule.user("*").everything()).build().into()]
    };
    let objects: Objects = (0..5).flat_map(level).collect();
    let mut simulator = simulator(2.0, objects.with_mandatory_levels());
    simulator.run_until(SECOND, &mut |_: Outcome<u32>| {});
    assert_eq!(limit(&simulator), 5, "one for each: nothing reaches `catch-all`");
}
