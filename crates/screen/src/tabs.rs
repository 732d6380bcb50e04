//! Tab stops.

/// Columns between the default stops.
const STEP: usize = 8;

/// Which columns are tab stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tabs(Vec<bool>);

impl Tabs {
    pub(crate) fn new(columns: usize) -> Self {
        Self((0..columns).map(|column| column % STEP == 0).collect())
    }

    /// With a stop in each column that has `true`.
    pub(crate) fn from_stops(stops: Vec<bool>) -> Self {
        Self(stops)
    }

    /// For each column, whether it is a stop.
    pub(crate) fn stops(&self) -> &[bool] {
        &self.0
    }

    /// New columns get the default stops.
    pub(crate) fn resize(&mut self, columns: usize) {
        let old = self.0.len();
        self.0.truncate(columns);
        self.0.extend((old.min(columns)..columns).map(|column| column % STEP == 0));
    }

    pub(crate) fn set(&mut self, column: usize, stop: bool) {
        if let Some(here) = self.0.get_mut(column) {
            *here = stop;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(false);
    }

    /// The next stop to the right, else the last column.
    pub(crate) fn after(&self, column: usize) -> usize {
        let stop = (column + 1..self.0.len()).find(|&column| self.0[column]);
        stop.unwrap_or(self.0.len().saturating_sub(1))
    }

    /// The next stop to the left, else the first column.
    pub(crate) fn before(&self, column: usize) -> usize {
        (0..column.min(self.0.len())).rev().find(|&column| self.0[column]).unwrap_or(0)
    }

    /// All stops, if they differ from the default.
    pub(crate) fn changed(&self) -> Option<impl Iterator<Item = usize> + '_> {
        let changed = *self != Self::new(self.0.len());
        changed.then(|| (0..self.0.len()).filter(|&column| self.0[column]))
    }
}
