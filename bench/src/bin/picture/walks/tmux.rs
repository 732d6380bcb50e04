//! Somebody who has used tmux for ten years.

use std::path::Path;

use crate::harness::Harness;
use crate::walk::{Story, Walk};

const STORY: Story = Story {
    name: "tmux",
    title: "After ten years of tmux",
    intro: "You type what your fingers know, in a folder of a project, and look up nothing.",
    stumbles: &[
        "On the empty first screen, typing `ls` opened an empty list of processes, and in any open list `ctrl+b` did \
         nothing while the key after it went into the filter. Now the leader works over lists, help, labels and \
         questions too, and no list opens if there is nothing to list.",
        "In a pane of 27 columns, a search did not say how many matches there are. It does now, instead of the position.",
        "At 80 columns, the tree takes 24 of them. That stays: `ctrl+b b` hides it, and that is remembered.",
    ],
};

pub(crate) fn record(docs: &Path) -> anyhow::Result<()> {
    let mut walk = Walk::begin(STORY, Harness::plain("shop")?)?;
    take(&mut walk).map_err(|why| anyhow::anyhow!("{why:#}\n{}", walk.person.text()))?;
    walk.write(docs)
}

fn take(walk: &mut Walk) -> anyhow::Result<()> {
    walk.run("patterm", "ctrl+b: keys")?;
    walk.person.lead("c")?;
    walk.person.until("~/shop $")?;
    walk.person.lead("%")?;
    walk.person.until("new shell")?;
    walk.step(
        "`patterm`, `ctrl+b c`, `ctrl+b %`: a split asks what it shows; `enter` for a shell.",
    )?;
    walk.person.write("\r")?;
    walk.person.until("bash-2")?;
    walk.person.lead("\"")?;
    walk.person.until("new shell")?;
    walk.person.write("\r")?;
    walk.person.until("bash-3")?;
    walk.person.lead("q")?;
    walk.person.until("2  bash-3")?;
    walk.picture("`enter`, `ctrl+b \"`, `enter`, `ctrl+b q`: three panes, and a key for each.")?;
    walk.person.write("0")?;
    walk.run("seq 1 500 | paste -sd' ' | fold -w 24", "500")?;
    walk.person.lead("[")?;
    walk.person.write("/7")?;
    walk.person.write("\r")?;
    walk.person.until(" of ")?;
    walk.step("`ctrl+b [`, `/7`: copy mode counts the matches. `v` selects, `y` copies, `ctrl+b ]` pastes.")?;
    walk.person.write("q")?;
    walk.person.lead(" ")?;
    walk.person.lead("B")?;
    // In the result, but not in the line that is typed.
    walk.person.write("echo $((40+2))\r")?;
    walk.person.until_it("42 in all panes", |shown| shown.matches("│42").count() == 3)?;
    walk.step(
        "`ctrl+b space` takes the next layout; after `ctrl+b B`, keys go to all panes of the page.",
    )?;
    walk.person.lead("B")?;
    walk.person.lead("c")?;
    walk.person.until("1:bash")?;
    walk.person.lead(",")?;
    walk.person.write("\x15logs\r")?;
    walk.person.until("1:logs*")?;
    walk.person.lead("w")?;
    walk.step(
        "`ctrl+b c`, `ctrl+b ,`, `ctrl+b w`: a second page, renamed, and the list of pages.",
    )?;
    walk.person.press("\x1b")?;
    walk.person.lead("p")?;
    walk.person.lead("d")?;
    walk.person.until("detached; everything keeps running")?;
    walk.run("patterm ls", "PROJECT")?;
    walk.person.until("/home/shop")?;
    walk.step("`ctrl+b d`, and `patterm ls` for `tmux ls`.")?;
    walk.large_picture(
        "`patterm` in another, larger window: the same pages, in the order in which they were left.",
        "ctrl+b: keys",
    )
}
