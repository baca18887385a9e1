//! The Python packages of `OpenAI` and Anthropic, through a gateway with `preset: llm`, to a sample server of language models (LM-1 to LM-6).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::child::{Running, address_after};
use super::folder::folder;
use super::served::run;

const SCRIPT: &str = include_str!("llm_sdks.py");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/llm");

/// The Python that has the packages. Says that the test does nothing, where there is none.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client").join("bin/python");
    let has_packages = Command::new(&python).args(["-c", "import openai, anthropic"]).output();
    if has_packages.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    evenkeel_missing_tool::skip(&format!("{} has no packages of OpenAI and Anthropic", python.display()));
    None
}

#[test]
fn the_packages_of_openai_and_anthropic_work_through_the_gateway() {
    let Some(python) = python() else { return };
    let folder = folder();
    let mut models = Running::start(&["demo", "--llm-server", "127.0.0.1:0"]);
    let models = (address_after(&models.output_until("sample server"), "is at http://"), models);
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Command::new("chmod").arg("600").arg(&path).status().unwrap();
        path
    };
    write("keys.csv", "sk-ann,ann,1\nsk-small,small,2\nsk-blocked,blocked,3\nsk-hourly,hourly,4\n".to_owned());
    let log = write("access.log", String::new());
    let settings = write(
        "evenkeel.yaml",
        format!(
            "preset: llm\n\
             listen: [{{address: 127.0.0.1:0}}]\n\
             admin: {{address: null}}\n\
             upstreams: [{{url: http://{}}}]\n\
             concurrency: 40\n\
             identity: {{sources: [{{tokens: {{file: keys.csv}}}}, {{apiKey: {{header: X-API-Key, file: keys.csv}}}}], anonymous: deny}}\n\
             log: {{access: json, accessFile: access.log}}\n\
             levels:\n  everyone: {{share: 80}}\n  slow: {{share: 10}}\n  small: {{share: 2, borrow: 0%, queue: 2, perClient: 2}}\n  blocked: {{share: 0}}\n\
             match:\n- {{user: small, level: small}}\n- {{user: blocked, level: blocked}}\n- {{user: hourly, level: everyone, rate: 1/h;excess=reject}}\n- {{model: big, level: slow}}\n- {{level: everyone}}\n",
            models.0
        ),
    );
    let mut gateway = Running::start(&["serve", "--config", settings.to_str().unwrap()]);
    let address = address_after(&gateway.line_with("ready: "), "listening on ");
    let mut command = Command::new(&python);
    command.args(["-c", SCRIPT, &format!("http://{address}")]).arg(&log).arg(format!("http://{}", models.0));
    let ended = run(&mut command, "");
    assert!(ended.code == Some(0) && ended.output.ends_with("models\n"), "{}\n{}", ended.output, ended.errors);
    for example in ["openai_chat.py", "anthropic_messages.py"] {
        let mut command = Command::new(&python);
        command.arg(Path::new(EXAMPLES).join(example));
        command.env("OPENAI_BASE_URL", format!("http://{address}/v1")).env("OPENAI_API_KEY", "sk-ann");
        command.env("ANTHROPIC_BASE_URL", format!("http://{address}")).env("ANTHROPIC_API_KEY", "sk-ann");
        let ended = run(&mut command, "");
        let is_there = ended.output.starts_with(&"word ".repeat(8)) && ended.errors.contains("8 tokens");
        assert!(ended.code == Some(0) && is_there, "{example}: {}\n{}", ended.output, ended.errors);
    }
}
