//! Where a replay is: the time of what is shown, and how it passes. Nothing here reads a clock.

/// Speeds that a person can set.
pub(super) const SLOWEST: f64 = 0.125;
pub(super) const FASTEST: f64 = 1_024.0;

/// Times are those of the recording, in milliseconds since 1970.
#[derive(Debug)]
pub(super) struct Playback {
    position: f64,
    speed: f64,
    is_paused: bool,
    /// The longest wait, in milliseconds of the person's time.
    max_pause_ms: f64,
    /// How long this wait has been.
    waited_ms: f64,
}

impl Playback {
    pub(super) fn new(position_ms: u64, speed: f64, max_pause: f64) -> Self {
        let max_pause_ms = max_pause * 1_000.0;
        Self { position: position_ms as f64, speed, is_paused: false, max_pause_ms, waited_ms: 0.0 }
    }

    pub(super) fn position_ms(&self) -> u64 {
        self.position as u64
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(super) fn speed(&self) -> f64 {
        self.speed
    }

    pub(super) fn toggle(&mut self) {
        self.is_paused = !self.is_paused;
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = true;
    }

    pub(super) fn faster(&mut self) {
        self.speed = (self.speed * 2.0).min(FASTEST);
    }

    pub(super) fn slower(&mut self) {
        self.speed = (self.speed / 2.0).max(SLOWEST);
    }

    /// Goes to a time.
    pub(super) fn seek(&mut self, to_ms: u64) {
        (self.position, self.waited_ms) = (to_ms as f64, 0.0);
    }

    /// How long to wait, in milliseconds, until the change at `due_ms` is shown; 0 if it is due.
    pub(super) fn wait_ms(&self, due_ms: u64) -> u64 {
        let left = (due_ms as f64 - self.position) / self.speed;
        left.min(self.max_pause_ms - self.waited_ms).max(0.0).ceil() as u64
    }

    /// So much of the person's time has passed while the change at `due_ms` was waited for.
    pub(super) fn pass(&mut self, ms: u64, due_ms: u64) {
        if self.is_paused {
            return;
        }
        self.waited_ms += ms as f64;
        let due = due_ms as f64;
        if due > self.position {
            self.position = (self.position + ms as f64 * self.speed).min(due);
        }
    }

    /// A change of this time is shown.
    pub(super) fn shown(&mut self, time_ms: u64) {
        (self.position, self.waited_ms) = (self.position.max(time_ms as f64), 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_at_the_speed_that_was_set_and_long_pauses_are_short() {
        let mut playback = Playback::new(10_000, 1.0, 5.0);
        assert_eq!(playback.wait_ms(12_000), 2_000);
        playback.pass(500, 12_000);
        assert_eq!((playback.position_ms(), playback.wait_ms(12_000)), (10_500, 1_500));
        playback.faster();
        assert_eq!(playback.wait_ms(12_000), 750);
        playback.pass(10_000, 12_000);
        assert_eq!((playback.position_ms(), playback.wait_ms(12_000)), (12_000, 0));
        playback.shown(12_000);
        // An hour without output.
        let hour = 12_000 + 3_600_000;
        assert_eq!(playback.wait_ms(hour), 5_000);
        playback.pass(4_000, hour);
        assert_eq!(playback.wait_ms(hour), 1_000);
        playback.pass(1_000, hour);
        assert_eq!(playback.wait_ms(hour), 0);
        playback.shown(hour);
        assert_eq!(playback.position_ms(), hour);
    }

    #[test]
    fn a_pause_stops_the_time_and_speeds_have_limits() {
        let mut playback = Playback::new(0, 1.0, 5.0);
        playback.toggle();
        playback.pass(900, 5_000);
        assert!(playback.is_paused() && playback.position_ms() == 0);
        (0..40).for_each(|_| playback.faster());
        assert!((playback.speed() - FASTEST).abs() < f64::EPSILON);
        (0..40).for_each(|_| playback.slower());
        assert!((playback.speed() - SLOWEST).abs() < f64::EPSILON);
        playback.seek(7);
        assert_eq!(playback.position_ms(), 7);
    }
}
