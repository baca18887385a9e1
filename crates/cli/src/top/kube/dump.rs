//! Reads the dumps of levels and requests (OB-11, OB-13).

use crate::top::dump_table::{Row, Table};

/// A request that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) level: String,
    pub(super) schema: String,
    pub(super) flow: String,
    pub(super) seats: u64,
    pub(super) is_waiting: bool,
}

/// When a request started that has not (OB-13).
const NEVER: &str = "0001-01-01T00:00:00Z";

/// The names of the levels whose objects are gone, and which stay until their last request has ended.
pub(super) fn quiescing_levels(dump: &str) -> Vec<String> {
    let mut table = Table::new(dump);
    let is_quiescing = |row: &Row<'_, '_>| row.cell("IsQuiescing") == Some("true");
    table.map(|row| is_quiescing(row).then(|| row.text("PriorityLevelName"))?)
}

/// All requests.
pub(super) fn requests(dump: &str) -> Vec<Request> {
    Table::new(dump).map(|row| {
        let initial = row.number("InitialSeats")?;
        let distinguisher = row.text("FlowDistingsher")?;
        // Levels without queues have no distinguishers (OB-14): there the user says more.
        let has_queues = row.cell("QueueIndex") != Some("-1");
        let user = || row.text("UserName").unwrap_or_default();
        Some(Request {
            level: row.text("PriorityLevelName")?,
            schema: row.text("FlowSchemaName")?,
            flow: if has_queues { distinguisher } else { user() },
            seats: initial.max(row.number("FinalSeats").unwrap_or(0)),
            is_waiting: row.cell("StartTime")? == NEVER,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::kube::recorded;

    #[test]
    fn ob_11_recorded_levels() {
        let dump = recorded("dump_priority_levels");
        assert_eq!(quiescing_levels(&dump), Vec::<String>::new());
        let dump = dump.replace("false,       11,", "true,        11,");
        assert_eq!(quiescing_levels(&dump), ["batch"]);
    }

    #[test]
    fn ob_13_recorded_requests() {
        let requests = requests(&recorded("dump_requests"));
        let of_batch = || requests.iter().filter(|request| request.flow == "batch-runner");
        assert_eq!(of_batch().filter(|request| request.is_waiting).count(), 12);
        assert_eq!(of_batch().filter(|request| !request.is_waiting).count(), 1);
        assert!(of_batch().all(|request| (request.level.as_str(), request.schema.as_str()) == ("batch", "batch")));
        // Exempt requests have no distinguisher; their users are shown instead.
        let flows_of = |level: &str| -> Vec<_> {
            requests.iter().filter(|request| request.level == level).map(|request| request.flow.as_str()).collect()
        };
        assert_eq!(flows_of("exempt"), ["admin", "admin"]);
        // Elsewhere, users of a schema without a distinguisher share a flow.
        assert_eq!(flows_of("workload-high"), [""]);
    }

    #[test]
    fn commas_and_umlauts_in_names_do_not_move_columns() {
        let dump = "\
PriorityLevelName, FlowSchemaName, FlowDistingsher, ArriveTime,                InitialSeats, FinalSeats, StartTime
demo,              fs-a,           ä, b,c,          2026-01-01T00:00:00.5Z,    1,            3,          0001-01-01T00:00:00Z
demo,              fs-a,           ,                2026-01-01T00:00:00Z,      2,            0,          2026-01-01T00:00:00Z
demo,  too short
demo,              fs-a,           no number,       2026-01-01T00:00:00Z,      two,          0,          2026-01-01T00:00:00Z
";
        let found = requests(dump);
        let flows: Vec<_> =
            found.iter().map(|request| (request.flow.as_str(), request.seats, request.is_waiting)).collect();
        assert_eq!(flows, [("ä, b,c", 3, true), ("", 2, false)]);
    }

    #[test]
    fn what_is_no_dump_has_no_levels_and_no_requests() {
        for text in ["", "\n\n", ",,,,\n,", "a,b\nc"] {
            assert_eq!((quiescing_levels(text), requests(text)), (vec![], vec![]), "{text:?}");
        }
        // Cells that do not end where they should are not read, and others are, whatever they say.
        let odd = format!("PriorityLevelName, IsQuiescing\n,true\nbatch, true\n\n{:<19}true", "\u{1b}[2J,");
        assert_eq!((quiescing_levels(&odd), requests(&odd)), (vec!["\u{1b}[2J".to_owned()], vec![]));
    }
}
