//! Snapshots of the screen, narrow and wide, and of the effects of keys.

use std::ops::ControlFlow;
use std::time::Duration;

use evenkeel_gateway::observe::frame::{
    Delay, Diagnosis, DiagnosisState, Event, EventKind, Flow, FlowCost, Frame, Level, Limit, Model, OutCause,
    PastLevel, Percentiles, Queuing, Schema, Server, Step, Upstream, Utilisation,
};
use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::render;
use crate::top::keys;
use crate::top::palette::Palette;
use crate::top::queues::Queue;
use crate::top::source::{ServerKind, Update};
use crate::top::state::Top;

fn flow(schema: &str, distinguisher: &str, seats: f64, waiting: f64, rejected: f64) -> Flow {
    let (schema, distinguisher) = (schema.to_owned(), distinguisher.to_owned());
    Flow { schema, distinguisher, seats, waiting, rejected, ..Flow::default() }
}

fn schema(name: &str, hits: u64, rate: f64) -> Schema {
    Schema { name: name.to_owned(), hits, rate, ..Schema::default() }
}

fn workload_low() -> Level {
    Level {
        name: "workload-low".to_owned(),
        queuing: Some(Queuing::ShuffleSharding),
        nominal: 245,
        floor: 24,
        limit: 600,
        current: 245,
        in_use: 244,
        waiting: 37,
        wait_ms: Some(Percentiles { p50: 12.0, p99: 80.0 }),
        execution_ms: Some(Percentiles { p50: 20.0, p99: 300.0 }),
        dispatched: 812.0,
        rejected: [("queue-full".to_owned(), 3.2), ("time-out".to_owned(), 0.4)].into(),
        utilisation: Some(Utilisation { min: 0.95, mean: 0.996, max: 1.0 }),
        schemas: vec![schema("service-accounts", 120_345, 815.6), schema("never-used", 0, 0.0)],
        flows: vec![
            flow("service-accounts", "system:serviceaccount:jobs:batch-7", 190.0, 22.5, 3.6),
            flow("service-accounts", "system:serviceaccount:shop:web", 40.0, 9.0, 0.0),
            flow("service-accounts", "system:serviceaccount:monitoring:prometheus", 14.0, 2.0, 0.0),
        ],
        delays: vec![
            Delay { waiter: 0, by: Some(0), seconds: 1350.0, share: 0.55 },
            Delay { waiter: 1, by: Some(0), seconds: 480.0, share: 0.2 },
            Delay { waiter: 2, by: Some(0), seconds: 120.0, share: 0.05 },
            Delay { waiter: 1, by: None, seconds: 60.0, share: 0.02 },
        ],
        ..Level::default()
    }
}

fn frame() -> Frame {
    let mut frame = Frame::new(1_763_290_293_000, 1000);
    frame.server =
        Server { concurrency: 600, in_use: 262, exempt: 3, borrowing: "periodic".to_owned(), ..Server::default() };
    frame.levels = vec![
        Level { name: "catch-all".to_owned(), nominal: 13, floor: 13, limit: 13, current: 13, ..Level::default() },
        Level {
            name: "exempt".to_owned(),
            queuing: Some(Queuing::Exempt),
            in_use: 3,
            dispatched: 21.0,
            ..Level::default()
        },
        Level {
            name: "global-default".to_owned(),
            queuing: Some(Queuing::PerFlow),
            nominal: 49,
            floor: 25,
            limit: 600,
            current: 58,
            borrowed: 9,
            in_use: 18,
            waiting: 2,
            wait_ms: Some(Percentiles { p50: 0.0, p99: 1450.0 }),
            dispatched: 4.4,
            utilisation: Some(Utilisation { min: 0.1, mean: 0.31, max: 0.5 }),
            flows: vec![flow("global-default", "alice", 18.0, 0.4, 0.0)],
            ..Level::default()
        },
        workload_low(),
    ];
    frame.upstreams = vec![
        Upstream { name: "10.0.0.7:8080".to_owned(), responses: 410.0, latency_ms: Some(23.0), ..Upstream::default() },
        Upstream {
            name: "10.0.0.8:8080".to_owned(),
            is_out: true,
            out_cause: Some(OutCause::Errors),
            responses: 12.0,
            errors: 12.0,
            ..Upstream::default()
        },
    ];
    frame.events = vec![
        Event {
            time_ms: 1_763_290_290_000,
            kind: EventKind::UpstreamOut,
            text: "10.0.0.8:8080 fails".to_owned(),
            seats: None,
        },
        Event {
            time_ms: 1_763_290_200_000,
            kind: EventKind::ObjectsChanged,
            text: "new objects".to_owned(),
            seats: None,
        },
    ];
    frame.diagnosis = Diagnosis {
        state: DiagnosisState::Failing,
        text: "workload-low rejects 3.6 requests a second (queue-full): 55 % of the waiting is \
               system:serviceaccount:jobs:batch-7 behind its own requests, which hold 190 of 245 seats"
            .to_owned(),
        level: Some("workload-low".to_owned()),
    };
    frame
}

fn live() -> Top {
    let mut top = Top::new("http://127.0.0.1:9901", ServerKind::Gateway);
    top.update(Update::Past(PastLevel {
        name: "workload-low".to_owned(),
        in_use: (0..30_u8).map(|second| f32::from(second) * 8.0).collect(),
        current: vec![245; 30],
        ..PastLevel::default()
    }));
    top.update(Update::Frame(Box::new(frame())));
    top
}

fn screen(top: &Top, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| render(top, Palette::Color, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

fn shown(top: &Top, width: u16, height: u16) -> String {
    screen(top, width, height).backend().to_string()
}

fn press(top: &mut Top, keys: impl IntoIterator<Item = KeyCode>) {
    for key in keys {
        assert_eq!(keys::press(top, KeyEvent::from(key)), ControlFlow::Continue(()), "{key}");
    }
}

fn typed(text: &str) -> impl Iterator<Item = KeyCode> {
    text.chars().map(KeyCode::Char)
}

#[test]
fn levels_on_a_narrow_screen() {
    assert_snapshot!(shown(&live(), 80, 24));
}

#[test]
fn levels_flows_and_delays_on_a_large_screen() {
    let mut top = live();
    press(&mut top, [KeyCode::End]);
    assert_snapshot!(shown(&top, 160, 40));
}

#[test]
fn levels_flows_and_delays_on_a_tall_screen() {
    let mut top = live();
    press(&mut top, typed("jjj"));
    assert_snapshot!(shown(&top, 90, 40));
}

#[test]
fn all_other_tables() {
    let mut top = live();
    let queue = |index, waiting| Queue { level: "workload-low".to_owned(), index, waiting, executing: 3, seats: 3 };
    top.update(Update::Queues(Ok(vec![queue(5, 24), queue(17, 1)])));
    let mut pages = String::new();
    for digit in ['2', '3', '4', '5', '6', '7'] {
        press(&mut top, [KeyCode::Char(digit)]);
        pages += &shown(&top, 80, 14);
    }
    assert_snapshot!(pages);
}

#[test]
fn explanations_of_a_level_and_a_flow() {
    let mut top = live();
    press(&mut top, [KeyCode::End, KeyCode::Enter]);
    let level = shown(&top, 80, 24);
    press(&mut top, [KeyCode::Esc, KeyCode::Char('2'), KeyCode::Enter]);
    assert_snapshot!(level + &shown(&top, 80, 24));
}

/// AL-7, CO-6: the head tells the limit that finds itself and why it is there, its decisions are among the events, and flows have costs.
#[test]
fn al_7_a_limit_and_costs_are_on_the_screen() {
    let mut frame = frame();
    frame.server.limit = Some(Limit {
        seats: 37.2,
        applied: 37,
        least: 1,
        most: 1000,
        is_known: true,
        phase: "probing-up".to_owned(),
        load: "overload".to_owned(),
        room: 1.0,
        steps: vec![Step {
            number: 7,
            time_ms: frame.time_ms - 2000,
            from: 20,
            to: 37,
            tried: Some(37),
            text: "trial 20 → 37: elasticity 0.85 ± 0.10: taken".to_owned(),
        }],
        ..Limit::default()
    });
    let flow = &mut frame.levels[3].flows[1];
    flow.costs = vec![FlowCost { unit: "tokens".to_owned(), rate: 412.5, expected: 350.0 }];
    let mut top = Top::new("http://127.0.0.1:9901", ServerKind::Gateway);
    top.update(Update::Frame(Box::new(frame)));
    let page = shown(&top, 200, 40);
    assert!(page.contains("limit probing up: "), "{page}");
    assert!(page.contains(", auto)"), "{page}");
    press(&mut top, typed("2"));
    let page = shown(&top, 160, 30);
    let row = page.lines().find(|line| line.contains("shop:web")).unwrap();
    assert!(page.contains("cost/s") && page.contains("expected/s"), "{page}");
    assert!(row.contains(" tokens") && row.contains("350"), "{row}");
    let other = page.lines().skip_while(|line| !line.contains("cost/s")).find(|line| line.contains("batch-7")).unwrap();
    assert!(other.trim_end_matches(['"', ' ']).ends_with('-'), "{other}");
    let events = ['3', '4', '5', '6', '7'].into_iter().map(|digit| {
        press(&mut top, [KeyCode::Char(digit)]);
        shown(&top, 120, 30)
    });
    let told = events.into_iter().any(|page| page.contains("limit: trial 20 → 37: elasticity 0.85 ± 0.10: taken"));
    assert!(told, "the decision is among the events");
}

/// LM-8: the tokens of each model, where there are models.
#[test]
fn lm_8_language_models_have_a_table_if_there_are_any() {
    let mut top = live();
    let page = shown(&top, 80, 14);
    assert!(!page.contains("models"), "{page}");
    press(&mut top, typed("8"));
    assert_eq!(shown(&top, 80, 14), page, "there is no such table");
    let mut frame = frame();
    let model = |name: &str, running, prompt, output| Model { name: name.to_owned(), running, prompt, output };
    frame.models = vec![model("llama3:8b", 0, 0.0, 0.0), model("meta-llama/Llama-3.1-70B", 12, 2480.0, 612.5)];
    top.update(Update::Frame(Box::new(frame.clone())));
    for keys in [vec![KeyCode::Char('8')], vec![KeyCode::Char('1'), KeyCode::Left]] {
        press(&mut top, keys);
        let page = shown(&top, 80, 14);
        let words = |begin: &str| -> Vec<String> {
            let line = page.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{page}"));
            line.trim_matches('"').split_whitespace().map(ToOwned::to_owned).collect()
        };
        assert!(page.contains("7 events 8 models"), "all names fit\n{page}");
        assert_eq!(words("\"model "), ["model", "running", "prompt", "tokens/s", "output", "tokens/s"]);
        assert_eq!(words("\"llama3:8b"), ["llama3:8b", "0", "0", "0"]);
        assert_eq!(words("\"meta"), ["meta-llama/Llama-3.1-70B", "12", "2480", "612"]);
    }
    let paint = crate::terminal::ColorChoice::Never.paint(&std::io::stdout());
    let text = crate::top::once::text(&top, 100, paint);
    assert!(text.contains("\nLanguage models\nmodel "), "{text}");
    // Whoever looks at the table keeps it.
    frame.models.clear();
    top.update(Update::Frame(Box::new(frame)));
    assert!(shown(&top, 80, 14).contains("No language model has responded yet."));
    press(&mut top, [KeyCode::Tab]);
    assert!(!shown(&top, 80, 14).contains("models"));
}

#[test]
fn help() {
    let mut top = live();
    press(&mut top, typed("?"));
    assert_snapshot!(shown(&top, 80, 18));
    press(&mut top, typed("x"));
    assert!(!shown(&top, 80, 18).contains("this help"));
}

#[test]
fn the_filter_is_typed_kept_and_cleared() {
    let mut top = live();
    press(&mut top, typed("2/WEBx"));
    press(&mut top, [KeyCode::Backspace]);
    let page = shown(&top, 80, 24);
    assert!(page.contains("/WEB▏") && page.contains("shop:web") && !page.contains("prometheus"), "{page}");
    press(&mut top, [KeyCode::Enter]);
    let page = shown(&top, 80, 24);
    assert!(page.contains("Only rows with \"WEB\"; Esc shows all") && !page.contains("prometheus"), "{page}");
    // A `q` in a filter is a letter.
    press(&mut top, typed("/qqq"));
    assert!(shown(&top, 80, 24).contains("None of 4 rows"));
    press(&mut top, [KeyCode::Esc]);
    assert!(shown(&top, 80, 24).contains("prometheus"));
}

#[test]
fn a_paused_screen_stands_still() {
    let mut top = live();
    press(&mut top, typed("p"));
    let mut later = frame();
    later.time_ms += 5000;
    later.levels[0].waiting = 77;
    top.update(Update::Frame(Box::new(later)));
    let page = shown(&top, 80, 24);
    assert!(page.contains("paused at 10:51:33 UTC") && !page.contains("77"), "{page}");
    press(&mut top, typed("p"));
    let page = shown(&top, 80, 24);
    assert!(page.contains("live 10:51:38 UTC") && page.contains("77"), "{page}");
}

#[test]
fn the_selection_stays_with_its_row() {
    let mut top = live();
    press(&mut top, typed("j"));
    let mut later = frame();
    later.levels.insert(0, Level { name: "a-new-one".to_owned(), ..Level::default() });
    top.update(Update::Frame(Box::new(later.clone())));
    press(&mut top, [KeyCode::Enter]);
    assert!(shown(&top, 80, 24).contains("Level global-default"));
    // A row that goes away leaves the first one selected.
    later.levels.retain(|level| level.name != "global-default");
    top.update(Update::Frame(Box::new(later)));
    assert!(shown(&top, 80, 24).contains("Level a-new-one"));
}

#[test]
fn a_server_that_goes_away_is_told() {
    let mut top = Top::new("http://127.0.0.1:9901", ServerKind::Gateway);
    assert!(shown(&top, 80, 10).contains("connecting …"));
    let lost = || Update::Lost { why: "no connection: refused".to_owned(), retry_in: Duration::from_secs(4) };
    top.update(lost());
    let page = shown(&top, 80, 10);
    assert!(page.contains("Not connected, next try in 4 s: no connection: refused"), "{page}");
    assert!(page.contains("Nothing has been received yet."), "{page}");
    // The last frame stays on the screen.
    let mut top = live();
    top.update(lost());
    let page = shown(&top, 80, 24);
    assert!(page.contains("not connected, as of 10:51:33 UTC") && page.contains("workload-low"), "{page}");
    top.update(Update::Frame(Box::new(frame())));
    assert!(shown(&top, 80, 24).contains("live 10:51:33 UTC"));
}

#[test]
fn a_kube_apiserver_has_no_rejections_of_flows_and_may_have_no_dumps() {
    let dumps = crate::top::kube::DumpUse::Read;
    let mut top = Top::new("http://127.0.0.1:8001", ServerKind::Kube { interval: Duration::from_secs(2), dumps });
    top.update(Update::Frame(Box::new(frame())));
    top.update(Update::Notice("no flows: /debug/x is not allowed (403)".to_owned()));
    press(&mut top, typed("2"));
    let page = shown(&top, 80, 24);
    assert!(page.contains("is not allowed (403)") && !page.contains("rejected/s\""), "{page}");
    top.update(Update::Queues(Err("there is no such page (404)".to_owned())));
    press(&mut top, typed("4"));
    assert!(shown(&top, 80, 24).contains("Unknown: there is no such page (404)"));
}

#[test]
fn a_recorded_kube_apiserver() {
    let dumps = crate::top::kube::DumpUse::Read;
    let mut top = Top::new("http://127.0.0.1:8001", ServerKind::Kube { interval: Duration::from_secs(2), dumps });
    top.update(Update::Frame(Box::new(crate::top::kube::recorded_frame())));
    assert_snapshot!(shown(&top, 100, 40));
}

#[test]
fn no_escape_sequence_reaches_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\r\n\u{202e}evil\u{200b}";
    let mut frame = frame();
    for level in &mut frame.levels {
        level.name += evil;
        level.rejected = [(evil.to_owned(), 1.0)].into();
        for flow in &mut level.flows {
            flow.distinguisher += evil;
            flow.schema += evil;
        }
        for schema in &mut level.schemas {
            schema.name += evil;
        }
    }
    frame.upstreams[0].name += evil;
    frame.models = vec![Model { name: evil.to_owned(), ..Model::default() }];
    frame.events[0].text += evil;
    frame.diagnosis.text += evil;
    frame.server.borrowing += evil;
    let mut top = Top::new(evil, ServerKind::Gateway);
    top.update(Update::Frame(Box::new(frame)));
    top.update(Update::Notice(evil.to_owned()));
    top.update(Update::Queues(Err(evil.to_owned())));
    let is_clean =
        |text: &str| text.chars().all(|character| !character.is_control() && !"\u{202e}\u{200b}".contains(character));
    for (width, height) in [(80, 24), (200, 60)] {
        for key in "12345678".chars() {
            press(&mut top, [KeyCode::Char(key)]);
            for mode in [KeyCode::Enter, KeyCode::Esc] {
                press(&mut top, [mode]);
                let screen = screen(&top, width, height);
                let buffer = screen.backend().buffer();
                assert!(buffer.content.iter().all(|cell| is_clean(cell.symbol())), "{}", screen.backend());
            }
        }
        let lost = Update::Lost { why: evil.to_owned(), retry_in: Duration::from_secs(1) };
        top.update(lost);
    }
    let paint = crate::terminal::ColorChoice::Never.paint(&std::io::stdout());
    let text = crate::top::once::text(&top, 100, paint);
    assert!(text.lines().all(is_clean), "{text}");
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let mut top = live();
    for width in [0, 1, 5, 9, 10, 11, 20, 39, 79, 139, 141, 300] {
        for height in 0..45 {
            for key in ['1', '2', '?', 'x'] {
                press(&mut top, [KeyCode::Char(key), KeyCode::Enter]);
                let screen = screen(&top, width, height);
                let buffer = screen.backend().buffer();
                assert_eq!((buffer.area.width, buffer.area.height), (width, height));
                let is_drawn = buffer.content.iter().any(|cell| cell.symbol() != " ");
                // One that is tiny may have no room for anything.
                assert!(is_drawn || width < 20 || height < 5, "{width} x {height}");
            }
        }
    }
}

#[test]
fn colour_is_left_out_where_it_is_not_wanted() {
    let mut terminal = Terminal::new(TestBackend::new(160, 40)).unwrap();
    let top = live();
    let mut colours = |palette| {
        terminal.draw(|frame| render(&top, palette, frame.area(), frame.buffer_mut())).unwrap();
        let cells = terminal.backend().buffer().content.iter();
        cells.filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colours(Palette::Plain), 0);
    assert!(colours(Palette::Color) > 0);
}

#[test]
fn keys_that_quit() {
    for key in [KeyEvent::from(KeyCode::Char('q')), KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)] {
        assert_eq!(keys::press(&mut live(), key), ControlFlow::Break(()));
    }
    // Ctrl-C also while something else is open.
    let mut top = live();
    press(&mut top, typed("/"));
    assert_eq!(keys::press(&mut top, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), ControlFlow::Break(()));
}

#[test]
fn once_as_text() {
    let mut top = live();
    let queue = |index, waiting| Queue { level: "workload-low".to_owned(), index, waiting, executing: 3, seats: 3 };
    top.update(Update::Queues(Ok((0..25).map(|index| queue(index, 30 - index)).collect())));
    let paint = crate::terminal::ColorChoice::Never.paint(&std::io::stdout());
    assert_snapshot!(crate::top::once::text(&top, 110, paint));
}
