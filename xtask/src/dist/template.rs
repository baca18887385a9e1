//! Files of a release that only name versions, addresses and checksums: Homebrew's formula and krew's manifest.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// The text for each word in braces.
pub(crate) type Words = BTreeMap<String, String>;

/// The template with every `{{word}}` replaced.
pub(crate) fn fill(name: &str, template: &str, words: &Words) -> Result<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((word, after)) = after.split_once("}}") else { bail!("{name}: a word in braces does not end") };
        let Some(value) = words.get(word) else { bail!("{name}: nothing is known for `{word}`") };
        filled += before;
        filled += value;
        rest = after;
    }
    Ok(filled + rest)
}

/// A manifest of krew without the platforms that this machine has built nothing for.
pub(crate) fn without_platform(manifest: &str, architecture: &str) -> String {
    const PLATFORM: &str = "  - selector:\n";
    let line = format!("        arch: {architecture}\n");
    let kept: Vec<&str> = manifest.split(PLATFORM).filter(|platform| !platform.contains(&line)).collect();
    kept.join(PLATFORM)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run::root;

    fn words(words: &[&str]) -> Words {
        words.iter().map(|word| ((*word).to_owned(), format!("<{word}>"))).collect()
    }

    #[test]
    fn words_are_replaced_and_unknown_ones_named() {
        assert_eq!(fill("a", "x {{one}} y {{two}}{{one}}", &words(&["one", "two"])).unwrap(), "x <one> y <two><one>");
        assert_eq!(fill("a", "{{no}}", &Words::new()).unwrap_err().to_string(), "a: nothing is known for `no`");
        assert!(fill("a", "{{no", &Words::new()).is_err());
    }

    #[test]
    fn platforms_that_were_not_built_are_left_out() {
        let manifest = fs::read_to_string(root().unwrap().join("deploy/templates/krew.yaml")).unwrap();
        let without = without_platform(&manifest, "arm64");
        assert!(without.contains("arch: amd64\n") && !without.contains("arm64"), "{without}");
        assert_eq!(without_platform(&manifest, "riscv64"), manifest);
    }
}
