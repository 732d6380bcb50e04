//! Widths of characters as `ucs-detect` measures them inside a pane: it prints each and asks where the cursor is.

use std::path::Path;
use std::process::Command;

use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Place, Transport};
use crate::view::View;

/// The categories that must agree, and the least percentage.
const CATEGORIES: [&str; 5] = [
    "unicode_wide_results",
    "narrow_results",
    "emoji_zwj_results",
    "emoji_vs16_results",
    "ri_results",
];
const LEAST: f64 = 99.0;

#[expect(clippy::disallowed_methods, reason = "tests start what they test")]
fn installed() -> String {
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("widths/install");
    let output = Command::new(install).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/widths/install: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn ucs_detect_agrees_about_nearly_all_widths() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(Transport::Socket(Framing::Newline));
    let results = place.path("widths.json");
    let script = format!(
        "read -r line; {}/bin/ucs-detect --test-only=unicode --no-terminal-test --no-languages-test \
         --set-software-name=patterm --set-software-version=test --probe-silently --no-final-summary \
         --timeout-cps=30 --save-json={}",
        installed(),
        results.display()
    );
    let spawned = peer.answer(1, "spawn_process", json!({"argv": ["sh", "-c", script]}));
    let id = spawned["result"]["process_id"].as_str().unwrap_or_else(|| panic!("{spawned}"));
    let mut view = View::attach_at(server.socket(), id, 24, 80);
    view.send(&patterm_wire::view::FromView::Input(b"\r".to_vec()));
    view.until(View::is_over);
    let text = std::fs::read_to_string(&results)
        .unwrap_or_else(|why| panic!("{why}: {:?}", view.screen.rows()));
    let all: Value = serde_json::from_str(&text).unwrap();
    for category in CATEGORIES {
        let versions = all["test_results"][category].as_object().unwrap();
        for (version, result) in versions {
            let percent = result["pct_success"].as_f64().unwrap();
            println!("{category} {version}: {percent:.1} % of {}", result["n_total"]);
            assert!(percent >= LEAST, "{category}: {}", result["failed_codepoints"]);
        }
    }
}
