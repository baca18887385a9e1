# The formula of Homebrew, for a tap. `cargo xtask dist` fills in the words in braces.
class Evenkeel < Formula
  desc "Fair queuing for HTTP services"
  homepage "{{repository}}"
  url "{{source-url}}"
  sha256 "{{source-sha256}}"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    generate_completions_from_executable(bin/"evenkeel", "completions")
    man1.mkpath
    system bin/"evenkeel", "man", "--directory", man1
    pkgetc.install "deploy/evenkeel.yaml", "deploy/objects.yaml"
  end

  service do
    run [opt_bin/"evenkeel", "serve", "--config", etc/"evenkeel/evenkeel.yaml"]
    keep_alive successful_exit: false
  end

  test do
    assert_equal "evenkeel #{version}\n", shell_output("#{bin}/evenkeel --version")
    assert_match "concurrency: 50", shell_output("#{bin}/evenkeel serve --upstream http://127.0.0.1:9 --concurrency 50 --print-config")
  end
end
