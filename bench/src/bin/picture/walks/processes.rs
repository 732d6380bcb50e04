//! Somebody who runs `process-compose up` every morning.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::Harness;
use crate::walk::{Story, Walk};

const STORY: Story = Story {
    name: "processes",
    title: "From process-compose, with six services",
    intro: "The project has a [process-compose.yaml](../../bench/src/bin/picture/market/process-compose.yaml): a database, a \
            migration, an API with a readiness and a liveness probe, a worker, a web server and a mail catcher.",
    stumbles: &[
        "`patterm init` did not read process-compose.yaml: \"nothing to start was found\". It now \
         takes over commands, folders, environments, dependencies, probes, restarts and shutdowns.",
        "There was no way to wait until everything is ready. `patterm up --wait` does, says what failed and why, and has \
         exit codes for CI.",
        "The dashboard said `not ready` of a process that was unhealthy, and `ready` of one that was healthy.",
        "Probes and shutdown commands that call `patterm` were refused. They now act as the process that they belong to.",
    ],
};

/// The project's files.
const FILES: [(&str, &str); 5] = [
    ("process-compose.yaml", include_str!("../market/process-compose.yaml")),
    ("services/listen.py", include_str!("../market/services/listen.py")),
    ("services/ask.py", include_str!("../market/services/ask.py")),
    ("services/site.py", include_str!("../market/services/site.py")),
    ("services/worker.sh", include_str!("../market/services/worker.sh")),
];

pub(crate) fn record(docs: &Path) -> anyhow::Result<()> {
    let harness = Harness::plain("market")?;
    for (name, text) in FILES {
        harness.write(&format!("market/{name}"), text)?;
    }
    let worker = harness.project().join("services/worker.sh");
    std::fs::set_permissions(worker, PermissionsExt::from_mode(0o755))?;
    let mut walk = Walk::begin(STORY, harness)?;
    take(&mut walk).map_err(|why| anyhow::anyhow!("{why:#}\n{}", walk.person.text()))?;
    walk.write(docs)
}

fn take(walk: &mut Walk) -> anyhow::Result<()> {
    walk.run("patterm init", "patterm trust")?;
    walk.step("`patterm init` reads process-compose.yaml.")?;
    walk.run("clear; patterm trust --yes | tail -4", "$")?;
    walk.person.until_it("trusted", |shown| shown.contains("trust") && shown.ends_with('$'))?;
    walk.run("patterm up --wait", "worker   is ready")?;
    walk.step("`patterm trust`, once; then `patterm up --wait`, every morning and in CI.")?;
    walk.run("clear; patterm", "ctrl+b: keys")?;
    walk.person.lead("D")?;
    walk.person.until("● healthy")?;
    walk.person.pause(4_000)?;
    walk.picture(
        "`patterm`, `ctrl+b D`: the table you know, with CPU, memory, ports and last lines.",
    )?;
    let broken = walk.harness.project().join("broken");
    std::fs::write(&broken, "")?;
    walk.person.until("✗ unhealthy")?;
    walk.step("The API's liveness probe fails: it is unhealthy, and the status bar says why.")?;
    std::fs::remove_file(&broken)?;
    walk.person.until("● healthy")?;
    walk.person.press("\x1b")?;
    walk.person.lead("v")?;
    walk.person.until("job ")?;
    walk.person.pause(1_000)?;
    walk.step("`ctrl+b v`: the logs of all of them, merged by time. `tab` shows one, `f` filters, `/` searches.")?;
    walk.person.write("q")?;
    walk.large_picture("The same project in a large window.", "api")?;
    walk.person.lead("d")?;
    walk.person.until("detached")?;
    walk.run("clear; patterm logs --tail 2 api worker", "job ")?;
    walk.run("patterm down", "db       stopped")?;
    walk.step("`ctrl+b d` for F10, `patterm logs --tail 2` (of each), and `patterm down`.")
}
