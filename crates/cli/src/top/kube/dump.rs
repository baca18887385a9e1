//! The three debug dumps, as tables (OB-10) and as what they say (OB-11 to OB-13).

use evenkeel_api::meta::Time;

/// A queue of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) level: String,
    pub(super) index: u64,
    pub(super) waiting: u64,
    pub(super) executing: u64,
    pub(super) seats: u64,
}

/// A request that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) level: String,
    pub(super) schema: String,
    pub(super) flow: String,
    pub(super) seats: u64,
    pub(super) arrived_ns: i128,
    /// `None` while it waits.
    pub(super) started_ns: Option<i128>,
}

/// Rows of a dump, by the names of their columns.
struct Table<'a> {
    /// The name of each column, and the character that it starts at.
    columns: Vec<(&'a str, usize)>,
    rows: std::str::Lines<'a>,
}

/// The cells of a row.
struct Row<'t, 'a> {
    columns: &'t [(&'a str, usize)],
    cells: Vec<&'a str>,
}

/// Rows that are read of a dump. A server with more requests than this shows enough of them.
const ROWS_MAX: usize = 100_000;
/// A flow or a path that is longer is cut.
const CELL_CHARS_MAX: usize = 512;

/// The names of the levels whose objects are gone, and which stay until their last request has ended.
pub(super) fn quiescing_levels(dump: &str) -> Vec<String> {
    let mut table = Table::new(dump);
    let is_quiescing = |row: &Row<'_, '_>| row.cell("IsQuiescing") == Some("true");
    table.map(|row| is_quiescing(row).then(|| row.text("PriorityLevelName"))?)
}

/// The queues in which something waits or runs.
pub(super) fn queues(dump: &str) -> Vec<Queue> {
    let is_used = |queue: &Queue| queue.waiting > 0 || queue.executing > 0 || queue.seats > 0;
    Table::new(dump).map(|row| {
        let queue = Queue {
            level: row.text("PriorityLevelName")?,
            index: row.number("Index")?,
            waiting: row.number("PendingRequests")?,
            executing: row.number("ExecutingRequests")?,
            seats: row.number("SeatsInUse")?,
        };
        is_used(&queue).then_some(queue)
    })
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
            arrived_ns: unix_nanos(row.cell("ArriveTime")?)?,
            started_ns: row.cell("StartTime").and_then(unix_nanos).filter(|started| *started > 0),
        })
    })
}

/// The time of a dump: the latest that it names. The clock of the server may differ from ours.
pub(super) fn latest_ns(requests: &[Request]) -> Option<i128> {
    requests.iter().flat_map(|request| [Some(request.arrived_ns), request.started_ns]).flatten().max()
}

fn unix_nanos(text: &str) -> Option<i128> {
    let seconds = text.parse::<Time>().ok()?.unix_seconds();
    let decimals = text.split_once('.').map_or("", |(_, rest)| rest);
    let decimals: String = decimals.chars().take_while(char::is_ascii_digit).take(9).collect();
    let fraction: i128 = format!("{decimals:0<9}").parse().ok()?;
    Some(i128::from(seconds) * 1_000_000_000 + fraction)
}

// === impl Table ===

impl<'a> Table<'a> {
    fn new(dump: &'a str) -> Self {
        let mut rows = dump.lines();
        let header = rows.next().unwrap_or_default();
        let mut columns = Vec::new();
        let mut at = 0;
        for part in header.split_inclusive(',') {
            let name = part.trim_start_matches(' ');
            let blanks = part.chars().count() - name.chars().count();
            columns.push((name.trim_end_matches(','), at + blanks));
            at += part.chars().count();
        }
        Self { columns, rows }
    }

    /// What can be read of the rows.
    fn map<T>(&mut self, read: impl Fn(&Row<'_, 'a>) -> Option<T>) -> Vec<T> {
        let rows = self.rows.by_ref().take(ROWS_MAX);
        rows.filter_map(|line| Row::new(&self.columns, line)).filter_map(|row| read(&row)).collect()
    }
}

// === impl Row ===

impl<'t, 'a> Row<'t, 'a> {
    /// Cuts a line where the columns are, since names of users and paths may have commas in them. `None` if its cells do not
    /// end where they should.
    fn new(columns: &'t [(&'a str, usize)], line: &'a str) -> Option<Self> {
        let mut cells = Vec::with_capacity(columns.len());
        let mut rest = line;
        for (index, (_, start)) in columns.iter().enumerate() {
            let Some((_, next)) = columns.get(index + 1) else {
                cells.push(rest.trim_end());
                break;
            };
            let end = rest.char_indices().nth(next - start).map_or(rest.len(), |(at, _)| at);
            let (cell, after) = rest.split_at(end);
            cells.push(cell.trim_end_matches(' ').strip_suffix(',')?);
            rest = after;
        }
        Some(Self { columns, cells })
    }

    fn cell(&self, name: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|(column, _)| *column == name)?;
        self.cells.get(at).copied()
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(self.cell(name)?.chars().take(CELL_CHARS_MAX).collect())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.cell(name)?.parse().ok()
    }
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
    fn ob_12_recorded_queues() {
        let queues = queues(&recorded("dump_queues"));
        let of_batch: Vec<_> = queues.iter().filter(|queue| queue.level == "batch").collect();
        assert_eq!(of_batch.iter().map(|queue| queue.waiting).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(of_batch.iter().map(|queue| queue.executing).sum::<u64>(), 1);
        // Queues in which nothing happens are left out.
        assert_eq!(queues.len(), 3);
    }

    #[test]
    fn ob_13_recorded_requests() {
        let requests = requests(&recorded("dump_requests"));
        let of_batch = || requests.iter().filter(|request| request.flow == "batch-runner");
        assert_eq!(of_batch().filter(|request| request.started_ns.is_none()).count(), 12);
        assert_eq!(of_batch().filter(|request| request.started_ns.is_some()).count(), 1);
        assert!(of_batch().all(|request| (request.level.as_str(), request.schema.as_str()) == ("batch", "batch")));
        let latest = latest_ns(&requests).unwrap();
        assert!(of_batch().all(|request| (0..10_000_000_000).contains(&(latest - request.arrived_ns))));
        // Exempt requests have no distinguisher; their users are shown instead.
        assert!(requests.iter().filter(|request| request.level == "exempt").all(|request| !request.flow.is_empty()));
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
        let flows: Vec<_> = found.iter().map(|request| (request.flow.as_str(), request.seats)).collect();
        assert_eq!(flows, [("ä, b,c", 3), ("", 2)]);
        assert_eq!(found[0].arrived_ns, 1_767_225_600_500_000_000);
        assert_eq!((found[0].started_ns, found[1].started_ns), (None, Some(1_767_225_600_000_000_000)));
    }

    #[test]
    fn any_text_is_read_without_harm() {
        for text in ["", "\n\n", ",,,,\n,", "a,b\nc", "PriorityLevelName, IsQuiescing\n,true\n\u{1b}[2J, true"] {
            let _ = (quiescing_levels(text), queues(text), requests(text));
        }
    }
}
