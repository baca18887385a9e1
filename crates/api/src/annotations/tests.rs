//! Tests of the annotations.

use super::*;

fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn bm_1_values_and_defaults() {
    assert_eq!(queuing(&annotations(&[])), Queuing::ShuffleSharded);
    for choice in [Queuing::ShuffleSharded, Queuing::PerFlow] {
        assert_eq!(queuing(&annotations(&[(QUEUING, choice.name())])), choice);
    }
    for (value, weight) in [("1", 1), ("250", 250), ("10000", 10_000)] {
        assert_eq!(flow_weight(&annotations(&[(FLOW_WEIGHT, value)])), weight);
        assert_eq!(borrowing_weight(&annotations(&[(BORROWING_WEIGHT, value)])), Some(weight));
    }
    let other = annotations(&[("example.com/queuing", "per-flow"), ("evenkeel.device/queuing", "x")]);
    assert_eq!(not_understood(Kind::PriorityLevelConfiguration, &other), []);
}

#[test]
fn pf_10_and_11_seats_of_newcomers_and_of_one_flow() {
    use SeatShare::{Percent, Seats};
    let kept = |value: &str| newcomer_seats(&annotations(&[(NEWCOMER_SEATS, value)]));
    let most = |value: &str| flow_seats_max(&annotations(&[(FLOW_SEATS_MAX, value)]));
    let problems = |name: &str, value: &str| {
        let found = not_understood(Kind::PriorityLevelConfiguration, &annotations(&[(name, value)]));
        found.into_iter().map(|found| found.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(newcomer_seats(&annotations(&[])), NewcomerSeats::Auto);
    assert_eq!(flow_seats_max(&annotations(&[])), None);
    for (value, share) in
        [("0", Seats(0)), ("3", Seats(3)), ("0%", Percent(0)), ("25%", Percent(25)), ("100%", Percent(100))]
    {
        assert_eq!(kept(value), NewcomerSeats::Share(share), "{value}");
        assert_eq!(kept(value).is_none(), share.is_none(), "{value}");
        assert_eq!(most(value), Some(share).filter(|share| !share.is_none()), "{value}");
        assert_eq!(kept(value).to_string(), value);
        assert!(problems(NEWCOMER_SEATS, value).is_empty(), "{value}");
        assert_eq!(problems(FLOW_SEATS_MAX, value).is_empty(), !share.is_none(), "{value}");
    }
    assert_eq!(kept("auto").to_string(), "auto");
    for value in ["", "%", "-1", "+1", "101%", "2.5%", " 1", "1 %", "Auto", "many", "4294967296", "٣"] {
        assert_eq!((kept(value), most(value)), (NewcomerSeats::Auto, None), "{value:?}");
        let wanted = "must be auto, a number of seats, or a percentage such as 25%; auto is used";
        let text = format!("annotation evenkeel.dev/newcomer-seats: invalid value {value:?}: {wanted}");
        assert_eq!(problems(NEWCOMER_SEATS, value), [text]);
        let wanted = "must be a number of seats from 1, or a percentage from 1% to 100%; there is no limit";
        let text = format!("annotation evenkeel.dev/flow-seats-max: invalid value {value:?}: {wanted}");
        assert_eq!(problems(FLOW_SEATS_MAX, value), [text]);
    }
}

#[test]
fn bm_2_what_is_not_understood_is_named_and_the_default_is_used() {
    for value in ["", "0", "-1", "+5", "10001", "1.5", " 2", "99999999999999999999"] {
        let schema = annotations(&[(FLOW_WEIGHT, value)]);
        assert_eq!(flow_weight(&schema), 1, "{value:?}");
        assert_eq!(not_understood(Kind::FlowSchema, &schema).len(), 1, "{value:?}");
        let level = annotations(&[(BORROWING_WEIGHT, value)]);
        assert_eq!(borrowing_weight(&level), None, "{value:?}");
        assert_eq!(not_understood(Kind::PriorityLevelConfiguration, &level).len(), 1, "{value:?}");
    }
    for (value, count) in [("0", 0), ("20", 20), ("4294967295", u32::MAX)] {
        let level = annotations(&[(MAX_LONG_RUNNING, value)]);
        assert_eq!(max_long_running(&level), Some(count));
        assert_eq!(not_understood(Kind::PriorityLevelConfiguration, &level), []);
    }
    for value in ["", " ", "-1", "+1", "1.5", " 7", "many", "4294967296", "٣"] {
        let level = annotations(&[(MAX_LONG_RUNNING, value)]);
        assert_eq!(max_long_running(&level), None, "{value:?}");
        let texts = not_understood(Kind::PriorityLevelConfiguration, &level).into_iter().map(|found| found.to_string());
        let text = "annotation evenkeel.dev/max-long-running: invalid value";
        let end = "must be an integer from 0 to 4294967295; there is no limit";
        assert_eq!(texts.collect::<Vec<_>>(), [format!("{text} {value:?}: {end}")]);
    }
    for (value, is_set, problems) in [("true", true, 0), ("false", false, 0), ("yes", false, 1), ("", false, 1)] {
        let level = annotations(&[(REVOCABLE, value)]);
        assert_eq!(is_revocable(&level), is_set, "{value:?}");
        assert_eq!(not_understood(Kind::PriorityLevelConfiguration, &level).len(), problems, "{value:?}");
    }
    let level = annotations(&[(QUEUING, "Per-Flow"), (FLOW_WEIGHT, "2")]);
    assert_eq!(queuing(&level), Queuing::ShuffleSharded);
    let texts = not_understood(Kind::PriorityLevelConfiguration, &level).into_iter().map(|found| found.to_string());
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [
            "annotation evenkeel.dev/flow-weight: has no effect here, only on objects of kind FlowSchema",
            "annotation evenkeel.dev/queuing: invalid value \"Per-Flow\": must be shuffle-sharded or per-flow; \
             shuffle-sharded is used",
        ]
    );
}

#[test]
fn sf_2_what_the_short_form_needs() {
    let one = |name: &str, value: &str| annotations(&[(name, value)]);
    assert_eq!(flow_by(&one(FLOW_BY, "address")), Some(FlowBy::Address));
    assert_eq!(flow_by(&one(FLOW_BY, "header:X-Plan")), Some(FlowBy::Header("X-Plan".to_owned())));
    assert_eq!(path_match(&one(MATCH_PATHS, "exact")), PathMatch::Exact);
    assert_eq!(seats(&one(SEATS, "4")), Some(4));
    assert_eq!(wait_limit(&one(WAIT_LIMIT, "1m30s")), Some(Duration::from_secs(90)));
    assert_eq!(match_headers(&one(MATCH_HEADERS, "gold")), Some(HeaderCondition::NotUnderstood));
    assert_eq!((flow_by(&one("x", "")), match_headers(&one("x", ""))), (None, None));
    for (kind, name, value, part) in [
        (Kind::FlowSchema, FLOW_BY, "user", "must be address, path or header:NAME; the distinguisherMethod is used"),
        (Kind::FlowSchema, FLOW_BY, "header:", "must be address, path or header:NAME; the distinguisherMethod is used"),
        (Kind::FlowSchema, MATCH_PATHS, "Exact", "must be exact or below; below is used"),
        (Kind::FlowSchema, SEATS, "-1", "must be an integer from 0 to 1000000 or learnt; what is estimated is used"),
        (Kind::FlowSchema, MATCH_HEADERS, "{}", "; no request matches the schema"),
        (Kind::PriorityLevelConfiguration, WAIT_LIMIT, "0s", "must be a duration up to 1h, as 30s"),
        (Kind::PriorityLevelConfiguration, WAIT_LIMIT, "61m", "must be a duration up to 1h, as 30s"),
    ] {
        let found = not_understood(kind, &one(name, value));
        assert!(found.len() == 1 && found[0].to_string().contains(part), "{name} {value}: {found:?}");
    }
}

#[test]
fn co_3_seats_by_cost() {
    let of = |pairs: &[(&str, &str)]| {
        let noted = annotations(pairs);
        (learnt_seats(&noted).map(|seats| (seats.cost_per_seat, seats.seats_max)), seats(&noted), cost(&noted))
    };
    assert_eq!(of(&[(SEATS, "3")]), (None, Some(3), None));
    assert_eq!(of(&[(SEATS, "learnt")]), (None, None, None));
    assert_eq!(
        of(&[(SEATS, "learnt"), (COST, "time"), (COST_PER_SEAT, "0.5"), (LEARNT_SEATS_MAX, "8")]),
        (Some((0.5, Some(8))), None, Some(CostUnit::Time))
    );
    for (text, unit) in [
        ("bytes", CostUnit::Bytes),
        ("tokens", CostUnit::Tokens),
        ("header:X-Cost", CostUnit::Header { name: "X-Cost".to_owned(), keeps: false }),
        ("header:X-Cost;keep", CostUnit::Header { name: "X-Cost".to_owned(), keeps: true }),
    ] {
        assert_eq!(cost(&annotations(&[(COST, text)])), Some(unit.clone()), "{text}");
        assert_eq!(unit.to_string(), text);
    }
}

#[test]
fn co_2_and_rl_1_mistakes_are_told_apart() {
    for (pairs, part) in [
        (&[(COST, "byte")][..], "must be time, bytes, tokens, header:NAME or header:NAME;keep; time is used"),
        (&[(COST, "header:")], "must be time, bytes"),
        (&[(COST, "header:X Y;keep")], "must be time, bytes"),
        (&[(COST_PER_SEAT, "0")], "must be a number above 0"),
        (&[(COST_PER_SEAT, "1e3")], "must be a number above 0"),
        (&[(LEARNT_SEATS_MAX, "0")], "must be an integer from 1 to 1000000; the seats of the level are used"),
        (&[(RATE, "100")], "must be a rate such as 100/s, 100/m or 100/h"),
        (&[(SEATS, "learnt")], "learnt seats need evenkeel.dev/cost-per-seat"),
        (
            &[(RATE, "9/s;unit=bytes"), (COST, "tokens")],
            "a rate of bytes needs evenkeel.dev/cost: bytes, but costs are counted in tokens; there is no rate",
        ),
    ] {
        let found = not_understood(Kind::FlowSchema, &annotations(pairs));
        assert!(found.len() == 1 && found[0].to_string().contains(part), "{pairs:?}: {found:?}");
    }
    let both = annotations(&[(RATE, "9/s;unit=bytes"), (COST, "tokens")]);
    assert_eq!(rate(&both), None);
    assert!(rate(&annotations(&[(RATE, "9/s;unit=bytes")])).is_some());
    assert!(rate(&annotations(&[(RATE, "9/s"), (COST, "tokens")])).is_some());
    assert_eq!(not_understood(Kind::PriorityLevelConfiguration, &annotations(&[(RATE, "9/s")])).len(), 1);
}
