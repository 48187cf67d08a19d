"""A program with one I/O in flight against the same program with many, beside PIO's S' and S'' (P6, P7).

    speed-up   seconds one at a time / seconds at once
    S'         (f_r + f_w alpha) / (f_r / k_r + f_w alpha),         of a program that only reads at once       (P6)
    S''        (f_r + f_w alpha) / (f_r / k_r + f_w alpha / k_w),   of one that writes behind, too             (P7)

f_r, f_w: shares of reads and writes among the program's own I/Os. The formula is evaluated twice:

*As published*, with the drive's alpha, k_r and k_w. It supposes that k reads at once take as long as one, that a write
alone costs alpha reads, and that there are always k to do.

*With the drive's own gains*: the program's reads at once are G_r times as fast as one after another, which the drive's
curve tells; G_w likewise; and a write alone costs as much as it does. What then is left between formula and program is
the program's: too few I/Os outstanding, reads and writes at the same time, and order of access, which the curves of
random accesses do not have.

By Little's law the I/Os in flight are, on average, the sum of their latencies over the time.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from spillway.concurrency.measured import MeasuredDrive
from spillway.concurrency.outstanding import Outstanding
from spillway.errors import SpillwayError
from spillway.models.pio import speedup_of_both_batched

NEAR = 0.10  # of each other: then nothing is left to explain
ENOUGH = 0.75  # of k in flight. Source: guess


@dataclass(frozen=True)
class Ran:
    """What a program did: seconds of the drive's time, pages, I/Os in flight on average, and the most of each kind."""

    seconds: float
    pages_read: int
    pages_written: int
    in_flight: float
    reads: int
    writes: int


@dataclass(frozen=True)
class Comparison:
    """A program's two runs on one drive."""

    program: str
    preset: str
    k_r: int
    k_w: int
    alpha: float
    gain_r: float  # of as many reads at once as the program had at most, over one after another
    gain_w: float
    write_alone: float  # one write alone, in reads alone
    one: Ran
    many: Ran
    threads: Ran | None = None  # as many, each I/O issued by a thread of its own

    @property
    def speed_up(self) -> float:
        """Measured."""
        return self.one.seconds / self.many.seconds

    @property
    def speed_up_by_threads(self) -> float:
        """Measured, where no I/O waits for another to be issued."""
        return self.one.seconds / (self.threads or self.many).seconds

    @property
    def read_share(self) -> float:
        """f_r of the run at once."""
        return self.many.pages_read / (self.many.pages_read + self.many.pages_written)

    @property
    def formula(self) -> float:
        """S' of a program that only reads, else S'', as published."""
        return float(speedup_of_both_batched(self.read_share, self.alpha, self.k_r, self.k_w))

    @property
    def formula_name(self) -> str:
        """Which of them it is."""
        return "S''" if self.many.pages_written else "S'"

    @property
    def own_gains(self) -> float:
        """The same with what concurrency gains on this drive."""
        return float(speedup_of_both_batched(self.read_share, self.write_alone, self.gain_r, self.gain_w))

    def row(self) -> dict[str, float | int | str]:
        """A line of a table: what was measured, and the formulas."""
        flat: dict[str, float | int | str] = {"program": self.program, "preset": self.preset}
        flat |= {name: getattr(self, name) for name in ("k_r", "k_w", "alpha", "gain_r", "gain_w", "write_alone")}
        for name, ran in (("one", self.one), ("many", self.many)):
            flat |= {f"{name}_{key}": value for key, value in asdict(ran).items()}
        flat |= {"speed_up": self.speed_up, "speed_up_by_threads": self.speed_up_by_threads}
        return flat | {"formula": self.formula, "own_gains": self.own_gains}

    def words(self) -> str:
        """What was measured, what the model says, and why they differ."""
        one, many = self.one, self.many
        pages = f"{many.pages_read:,} pages read" + (f", {many.pages_written:,} written" if many.pages_written else "")
        at_once = f"{many.reads} reads" + (f" and {many.writes} writes" if many.pages_written else "")
        lines = [
            f"{self.program} on {self.preset}: alpha {self.alpha:.2f}, k_r {self.k_r}, k_w {self.k_w}",
            f"  one at a time      {one.seconds:10.4f} s   {pages}",
            f"  at once            {many.seconds:10.4f} s   at most {at_once}, {many.in_flight:.1f} on average",
            f"  speed-up           {self.speed_up:10.2f}",
            f"  {self.formula_name:<3} as published   {self.formula:10.2f}",
            f"  {self.formula_name:<3} by own gains   {self.own_gains:10.2f}",
            *(f"  {sentence}" for sentence in self.reasons()),
        ]
        return "\n".join(lines)

    def reasons(self) -> list[str]:
        """Why the speed-up is not the formula's, one sentence for each cause that is known."""
        found = []
        if abs(self.own_gains / self.formula - 1) > NEAR:
            found.append(self._gains_in_words())
        if self.speed_up_by_threads / self.speed_up - 1 > NEAR:
            found.append(
                "One thread issues all I/Os, one after another: with a thread for each it is "
                f"{self.speed_up_by_threads:.2f}."
            )
        left = self.speed_up_by_threads / self.own_gains - 1
        ran = self.threads or self.many
        most = ran.reads if not ran.pages_written else max(ran.reads, ran.writes)
        if abs(left) <= NEAR:
            return [*found, "The program gets what the drive gains."]
        if left < 0 and ran.in_flight < ENOUGH * most:
            found.append(f"The program had {ran.in_flight:.1f} I/Os in flight on average, of {most}: it had no more.")
        elif left < 0:
            found.append(
                f"{-left:.0%} are lost to what the curves of random accesses do not have: order, a mix, pages that are "
                "read often."
            )
        else:
            found.append(f"{left:.0%} more than random accesses gain: order of access, and reads beside writes.")
        return found

    def _gains_in_words(self) -> str:
        many = self.many
        reads = f"{many.reads} reads at once are {self.gain_r:.1f} times as fast as one after another"
        if not self.many.pages_written:
            return f"On this drive {reads}; the formula takes them for {self.k_r} times."
        return (
            f"On this drive {reads}, {many.writes} writes {self.gain_w:.1f} times, and a write alone costs "
            f"{self.write_alone:.2f} reads; the formula takes {self.k_r}, {self.k_w} and {self.alpha:.2f}."
        )


Program = Callable[[Outstanding], object]


def run(drive: MeasuredDrive, program: Program, reads: int, writes: int, threads: bool = False) -> Ran:
    """Runs ``program`` on a new drive with so many reads and writes in flight at most. Raises as the drive does."""
    with drive.open(threads) as opened:
        io = Outstanding(opened, reads, writes)
        program(io)
        io.flush()
        elapsed_ns = opened.now_ns
    in_flight = io.busy_ns / max(1, elapsed_ns)
    return Ran(elapsed_ns / 1e9, io.pages_read, io.pages_written, in_flight, io.reads, io.writes)


def compare(name: str, drive: MeasuredDrive, program: Program) -> Comparison:
    """Runs ``program`` one I/O at a time, and with k_r reads and k_w writes in flight. Raises as the drive does, and
    SpillwayError where the program does no I/O."""
    k_r, k_w = drive.reads_at_once, drive.writes_at_once
    one, many = run(drive, program, 1, 1), run(drive, program, k_r, k_w)
    if not one.seconds:
        raise SpillwayError(
            f"{name}: the program does no I/O on the drive, so there is nothing to compare: give it more."
        )
    by_threads = run(drive, program, k_r, k_w, threads=True)
    gains = (drive.saturation.gain("read", many.reads), drive.saturation.gain("write", many.writes))
    alone = drive.write_us(1) / drive.read_us(1)
    return Comparison(
        name, drive.preset, k_r, k_w, drive.saturation.pio.alpha.value, *gains, alone, one, many, by_threads
    )
