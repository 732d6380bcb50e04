//! Scratchpads as agents and people share them: through the tools, the verbs and any editor, with many
//! writers and with servers that die.

mod cli;
mod death;
mod full_disk;
mod people;
mod refusals;
mod tool_client;
mod writers;
