//! Moving the cursor, within margins and in origin mode.

use crate::emulator::Emulator;

impl Emulator {
    /// CUP and the like: in origin mode, rows and columns count from the margins.
    pub(crate) fn go(&mut self, row: usize, column: usize) {
        self.changed = true;
        if self.modes.origin {
            let column = column.saturating_add(self.left).min(self.right);
            self.page.go((row + self.top).min(self.bottom), column);
        } else {
            self.page.go(row, column);
        }
    }

    /// VPA: another row, the same column.
    pub(crate) fn go_row(&mut self, row: usize) {
        let origin = if self.modes.origin { self.left } else { 0 };
        self.go(row, self.page.column().saturating_sub(origin));
    }

    /// CHA: another column, the same row.
    pub(crate) fn go_addressed_column(&mut self, column: usize) {
        self.go(self.addressed_row(), column);
    }

    /// The cursor's row as the program counts it.
    pub(crate) fn addressed_row(&self) -> usize {
        self.page.row().saturating_sub(if self.modes.origin { self.top } else { 0 })
    }

    /// The cursor's column as the program counts it.
    pub(crate) fn addressed_column(&self) -> usize {
        self.page.column().saturating_sub(if self.modes.origin { self.left } else { 0 })
    }

    pub(crate) fn up(&mut self, count: usize) {
        let row = self.page.row();
        let limit = if row >= self.top { self.top } else { 0 };
        self.changed = true;
        self.page.go(row.saturating_sub(count).max(limit), self.page.column());
    }

    pub(crate) fn down(&mut self, count: usize) {
        let row = self.page.row();
        let limit = if row <= self.bottom { self.bottom } else { self.page.rows() - 1 };
        self.changed = true;
        self.page.go(row.saturating_add(count).min(limit), self.page.column());
    }

    /// VPR: down, whatever the margins; except in origin mode.
    pub(crate) fn down_past_margin(&mut self, count: usize) {
        let limit = if self.modes.origin { self.bottom } else { self.page.rows() - 1 };
        self.changed = true;
        self.page.go(self.page.row().saturating_add(count).min(limit), self.page.column());
    }

    /// CUF: stops at the right margin.
    pub(crate) fn forward(&mut self, count: usize) {
        let end = self.edge() - 1;
        self.go_column(self.page.column().saturating_add(count).min(end));
    }

    /// CUB and BS: stop at the left margin, or continue at the end of the row that wrapped into this one.
    pub(crate) fn backward(&mut self, mut count: usize) {
        let far = self.modes.far_reverse_wrap;
        if (self.modes.reverse_wrap || far) && self.modes.wrap {
            // A cursor past a full row is after its last column.
            count -= usize::from(self.page.grid.cursor.input_needs_wrap);
            loop {
                let (row, column) = (self.page.row(), self.page.column());
                let steps = column.saturating_sub(self.first_column());
                let inside = row > self.top && row <= self.bottom;
                if count <= steps || !(far || inside && self.page.wraps(row - 1)) {
                    break;
                }
                count -= steps + 1;
                let above = if row == self.top { self.bottom } else { row.saturating_sub(1) };
                self.page.go(above, self.right);
            }
        }
        let first = self.first_column();
        self.go_column(self.page.column().saturating_sub(count).max(first));
    }

    /// The first column that moving to the left can reach.
    fn first_column(&self) -> usize {
        if self.page.column() >= self.left { self.left } else { 0 }
    }

    /// CR.
    pub(crate) fn carriage_return(&mut self) {
        let first = if self.modes.origin { self.left } else { self.first_column() };
        self.go_column(first);
    }

    pub(crate) fn go_column(&mut self, column: usize) {
        self.changed = true;
        self.page.go(self.page.row(), column);
    }

    /// The column at which text wraps: after the right margin, unless the cursor is past it.
    #[inline]
    pub(crate) fn edge(&self) -> usize {
        if self.page.column() <= self.right { self.right + 1 } else { self.page.columns() }
    }

    /// Whether the region has the whole width.
    pub(crate) fn is_full_width(&self) -> bool {
        self.left == 0 && self.right + 1 == self.page.columns()
    }

    /// Whether the cursor is between the left and right margins.
    pub(crate) fn is_between_sides(&self) -> bool {
        (self.left..=self.right).contains(&self.page.column())
    }

    /// Whether the cursor is in the region.
    pub(crate) fn is_in_region(&self) -> bool {
        (self.top..=self.bottom).contains(&self.page.row()) && self.is_between_sides()
    }
}
