//! Names of language models as namespaces: flow schemas match the model of a request by its namespace (LM-2).

/// The namespace that stands for a model: its name in lower case, with `-` for whatever no namespace may have.
///
/// ```
/// use evenkeel_api::model_namespace;
///
/// assert_eq!(model_namespace("meta-llama/Llama-3.1-8B"), "meta-llama-llama-3-1-8b");
/// assert_eq!(model_namespace("llama3:8b"), "llama3-8b");
/// ```
pub fn model_namespace(model: &str) -> String {
    let mut namespace = String::with_capacity(model.len().min(LENGTH_MAX));
    for character in model.chars() {
        let character = if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
        if character != '-' || !namespace.is_empty() {
            namespace.push(character);
        }
        if namespace.len() == LENGTH_MAX {
            break;
        }
    }
    namespace.truncate(namespace.trim_end_matches('-').len());
    namespace
}

/// A namespace is no longer than this (RFC 1123).
const LENGTH_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_valid_and_stay_what_they_are() {
        let long = "x".repeat(62) + "/y";
        for model in ["gpt-4o", "Qwen/Qwen2.5-7B-Instruct", "--a--", "é", "", "a b\tc", long.as_str()] {
            let namespace = model_namespace(model);
            assert!(
                namespace.len() <= LENGTH_MAX && !namespace.starts_with('-') && !namespace.ends_with('-'),
                "{namespace}"
            );
            assert!(namespace.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
            assert_eq!(model_namespace(&namespace), namespace);
        }
    }
}
