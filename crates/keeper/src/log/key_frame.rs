//! Key frames: the state of a screen at some places in the output, so that nobody has to parse all output before.

/// The state of a screen at some place in the output; the log does not know what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFrame {
    /// The offset of the first byte that is not on the screen yet.
    pub offset: u64,
    /// The state.
    pub bytes: Vec<u8>,
}
