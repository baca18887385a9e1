//! No file names a package registry's host: where packages come from is each machine's own setting.

use crate::offence::{Offence, numbered};

// In two halves, so that this file does not offend against itself.
const HOSTS: [&str; 4] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("deb.debian", ".org"),
];

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    // Cargo writes the source of each package there itself.
    if path == "Cargo.lock" || path.ends_with("/Cargo.lock") {
        return Vec::new();
    }
    let found = numbered(text).flat_map(|(line, text)| {
        let text = text.to_ascii_lowercase();
        HOSTS.iter().filter(move |host| text.contains(**host)).map(move |host| (line, host))
    });
    found.map(|(line, host)| Offence::new(path, line, format!("`{host}` is the host of a package registry"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn hosts() {
        for host in HOSTS {
            let expected = format!("a.md:2: `{host}` is the host of a package registry");
            let text = format!("fine\nsee https://{}/x\n", host.to_ascii_uppercase());
            assert_offences(&check("a.md", &text), &[&expected]);
        }
    }

    #[test]
    fn lock_files_are_cargo_s_own() {
        assert_offences(&check("Cargo.lock", HOSTS[0]), &[]);
        assert_offences(&check("fuzz/Cargo.lock", HOSTS[0]), &[]);
        assert_eq!(check("docs/NotCargo.lock", HOSTS[0]).len(), 1);
    }
}
