"""The four states in which a test of a partition may begin, by the names that plans have for them (docs/PLANS.md).

Source: Didona et al., the pitfalls talk (B4): a drive that was used all over or one that was trimmed, partitioned; the
partition trimmed, or preconditioned.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Procedure:
    """A state at the start of a test. ``used``: the whole drive was written before. ``preconditions``: fio writes the
    partition."""

    used: bool
    preconditions: bool
    summary: str


PROCEDURES = {
    "partition-trim": Procedure(True, False, "a used drive is partitioned, and the partition is trimmed"),
    "partition-trim-precondition": Procedure(
        True, True, "a used drive is partitioned, the partition trimmed and preconditioned"
    ),
    "trim-partition": Procedure(False, False, "the whole drive is trimmed, and then partitioned"),
    "trim-partition-precondition": Procedure(
        False, True, "the whole drive is trimmed and partitioned, and the partition preconditioned"
    ),
}
