# SPDX-License-Identifier: BSD-3-Clause
"""How far the bench is, how long it takes, and why that is longer than its estimate."""
import contextlib
import time

from bench.words import seconds

LATE = 1.25  # times the estimate, and
LATE_S = 15  # that much later, before a run gives reasons


class Progress:
    def __init__(self, say):
        self.say, self.begun, self.steps, self.done, self.all_s, self.done_s = say, None, 0, 0, 0, 0
        self.each, self.lost = {}, {}

    def expect(self, name, steps, each_s):
        self.each[name] = each_s
        self.steps += steps
        self.all_s += steps * each_s

    def step(self, name, text):
        """A step starts. The time left is estimated from earlier steps."""
        self.begun = self.begun or time.monotonic()
        left = self.all_s - self.done_s
        if self.done_s >= 5:
            left *= (time.monotonic() - self.begun) / self.done_s
        self.done += 1
        self.done_s += self.each.get(name, 0)
        self.say(f'[{self.done}/{self.steps}, {seconds(max(0, left))} left] {text}')

    def lose(self, reason, lost_s):
        if lost_s > 0:
            count, total_s = self.lost.get(reason, (0, 0))
            self.lost[reason] = count + 1, total_s + lost_s

    @contextlib.contextmanager
    def losing(self, reason, condition=True):
        """The time of what runs inside is lost."""
        begun = time.monotonic()
        yield
        if condition:
            self.lose(reason, time.monotonic() - begun)

    def why_late(self):
        """A sentence if it took much longer than estimated; or None."""
        took = time.monotonic() - self.begun if self.begun else 0
        if took < LATE * self.done_s or took - self.done_s < LATE_S:
            return None
        reasons = [f'{reason} ({count} times, {seconds(lost_s)})' for reason, (count, lost_s) in
                   sorted(self.lost.items(), key=lambda item: -item[1][1]) if lost_s >= 1]
        return (f'It took {seconds(took)}; the estimate was {seconds(self.done_s)}. Reasons: '
                f"{'; '.join(reasons + ['programs that started, ended or ran slowly'])}.")
