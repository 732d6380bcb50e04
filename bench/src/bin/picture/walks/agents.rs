//! Somebody who gives two agents one task.

use std::path::Path;

use crate::harness::Harness;
use crate::walk::{Story, Walk};

const STORY: Story = Story {
    name: "agents",
    title: "Two agents on one task",
    intro: "Claude Code writes a change and Codex reviews it. Both are the real CLIs; their model is a script on this \
            machine, so that the recording costs nothing and can be repeated.",
    stumbles: &[
        "In a pane of 27 columns, a question over three rows was quoted from its second row on: \"correct. May I commit \
         it?\". It is quoted whole now.",
        "The list shows the agent's question, not always the command that it asks about; look at the pane before you \
         answer, as you would anyway. In a narrow pane, options that the CLI cuts off or scrolls away cannot be offered.",
        "The reason below the tree was Codex's own report (`state=done`), which says little to people; it now says that its turn is over.",
    ],
};

pub(crate) fn record(clients: &Path, docs: &Path) -> anyhow::Result<()> {
    let mut walk = Walk::begin(STORY, Harness::with_agents("shop", clients)?)?;
    take(&mut walk).map_err(|why| anyhow::anyhow!("{why:#}\n{}", walk.person.text()))?;
    walk.write(docs)
}

fn take(walk: &mut Walk) -> anyhow::Result<()> {
    walk.run("patterm", "ctrl+b: keys")?;
    walk.person.write("a")?;
    walk.person.until("● Claude Code")?;
    walk.person.write("\r")?;
    walk.person.until("first prompt for")?;
    walk.person.write("Add a discount to the invoice. Write the plan down first.")?;
    walk.person.pause(500)?;
    walk.step("`patterm`, `a`, `enter`: Claude Code, and what it should do.")?;
    walk.person.write("\r")?;
    walk.person.until("The plan is in the scratchpad")?;
    walk.person.lead("A")?;
    walk.person.until("● Codex")?;
    walk.person.press("\x1b[B")?;
    walk.person.write("\r")?;
    walk.person.until("first prompt for")?;
    walk.person.write("Review the discount.")?;
    walk.person.press("\x0a")?;
    walk.person.write("Ask me before you run anything.")?;
    walk.person.pause(500)?;
    walk.step("`ctrl+b A`: Codex beside it, in the same folder; `ctrl+j` begins a new line of the prompt.")?;
    walk.person.write("\r")?;
    walk.person.until("◆ blocked")?;
    walk.person.pause(1_000)?;
    walk.picture("Codex asks for permission; the status bar says who needs you, and what for.")?;
    walk.large_picture("The same in a large window.", "◆ blocked")?;
    walk.person.lead("u")?;
    walk.person.until("codex")?;
    walk.person.press("\x1b[C")?;
    walk.person.pause(800)?;
    walk.step("`ctrl+b u`, `→`: the question with its options, answered from the list.")?;
    walk.person.write("\r")?;
    walk.person.until("The plan is done")?;
    walk.person.lead("m")?;
    walk.person.pause(800)?;
    walk.step("`enter`. Codex told Claude; `ctrl+b m` shows what they wrote to each other.")?;
    walk.person.press("\x1b")?;
    walk.person.lead("S")?;
    walk.person.write("\r")?;
    walk.person.until("Discount")?;
    walk.step("`ctrl+b S`, `enter`: the plan that they share. `e` opens it in your editor.")
}
