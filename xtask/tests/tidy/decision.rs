//! Every decision has a status in the table of decisions, and says itself where it is not simply valid.

use crate::offence::Offence;

pub(crate) const TABLE: &str = "docs/decisions/README.md";

const FOLDER: &str = "docs/decisions/";

pub(crate) fn check<'a>(table: &str, files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Offence> {
    let notes = files.filter(|(path, _)| path.starts_with(FOLDER) && *path != TABLE);
    notes.filter_map(|(path, text)| Some(Offence::new(path, 1, fault(table, path, text)?))).collect()
}

fn fault(table: &str, path: &str, text: &str) -> Option<String> {
    let name = path.strip_prefix(FOLDER)?;
    let number: u32 = name.split('-').next()?.parse().ok()?;
    let row =
        table.lines().find(|line| line.starts_with(&format!("| {number} |")) && line.contains(&format!("]({name})")));
    let Some(row) = row else { return Some(format!("{TABLE} has no row `| {number} | [title]({name}) | status |`")) };
    let status = row.trim_end_matches([' ', '|']).rsplit_once('|')?.1.trim();
    if !["valid", "superseded"].iter().any(|word| status.starts_with(word)) {
        return Some(format!("{TABLE} does not say whether decision {number} is `valid` or `superseded by …`"));
    }
    let is_told = status == "valid" || text.lines().any(|line| line.starts_with("Status: "));
    (!is_told).then(|| format!("the note has no line `Status: …`, and {TABLE} says `{status}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    const NOTE: &str = "docs/decisions/0007-a-door.md";

    fn faults(row: &str, note: &str) -> Vec<Offence> {
        check(&format!("| number | decision | status |\n|---|---|---|\n{row}\n"), [(NOTE, note)].into_iter())
    }

    #[test]
    fn decisions_with_a_status() {
        let row = "| 7 | [A door](0007-a-door.md) | valid |";
        assert_offences(&faults(row, "# 7. A door\n"), &[]);
        let row = "| 7 | [A door](0007-a-door.md) | superseded by [8](0008-a-gate.md) |";
        assert_offences(&faults(row, "# 7. A door\n\nStatus: superseded by decision 8.\n"), &[]);
    }

    #[test]
    fn decisions_without_a_status() {
        let lacks_row = "docs/decisions/0007-a-door.md:1: docs/decisions/README.md has no row \
                         `| 7 | [title](0007-a-door.md) | status |`";
        assert_offences(&faults("| 8 | [A gate](0008-a-gate.md) | valid |", ""), &[lacks_row]);
        let lacks_status = "docs/decisions/0007-a-door.md:1: docs/decisions/README.md does not say whether decision 7 is `valid` or \
             `superseded by …`";
        assert_offences(&faults("| 7 | [A door](0007-a-door.md) |", ""), &[lacks_status]);
        let silent = "docs/decisions/0007-a-door.md:1: the note has no line `Status: …`, and docs/decisions/README.md says \
                      `valid, but for its lock`";
        assert_offences(
            &faults("| 7 | [A door](0007-a-door.md) | valid, but for its lock |", "# 7. A door\n"),
            &[silent],
        );
    }
}
