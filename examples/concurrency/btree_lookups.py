"""A batch of look-ups in a B-tree on a drive, with k_r reads outstanding (P24).

    python btree_lookups.py --preset intel-p4510 --keys 1000000 --lookups 5000

A node is a page. The root is in memory; a look-up reads a node of each level below it, and cannot read the next before
it has read the last. Look-ups do not wait for each other: several are on their way down, four times as many as reads
are outstanding, so that one that is waited for does not hold the others up.
"""

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from arguments import at_least, parser_of
from arguments import run as run_command

from spillway.concurrency import Comparison, MeasuredDrive, Outstanding, compare, measured_drive
from spillway.ssd.drive import PAGE_BYTES

FANOUT = PAGE_BYTES // 16  # a key and a value, or a key and the page of a child, of 8 bytes each


@dataclass(frozen=True)
class Node:
    """Of a leaf the values are the keys' own, else the numbers of the children's nodes, whose first keys are here."""

    keys: list[int]
    values: list[int]
    is_leaf: bool


@dataclass(frozen=True)
class Tree:
    """Nodes by their pages; the root is the last one."""

    nodes: list[Node]

    def depth(self) -> int:
        """Levels below the root."""
        levels, node = 0, self.nodes[-1]
        while not node.is_leaf:
            levels, node = levels + 1, self.nodes[node.values[0]]
        return levels


def built(pairs: Sequence[tuple[int, int]], fanout: int = FANOUT) -> Tree:
    """A tree of full nodes over pairs that are sorted by key."""
    nodes: list[Node] = []
    level, is_leaf = list(pairs), True
    while True:
        above = []
        for at in range(0, len(level), fanout):
            part = level[at : at + fanout]
            above.append((part[0][0], len(nodes)))
            nodes.append(Node([key for key, _ in part], [value for _, value in part], is_leaf))
        if len(above) == 1:
            return Tree(nodes)
        level, is_leaf = above, False


def look_up(tree: Tree, io: Outstanding, keys: Sequence[int]) -> list[int | None]:
    """The values of the keys, in their order; None for a key that the tree has not."""
    found: list[int | None] = [None] * len(keys)
    waiting = deque(range(len(keys)))
    on_the_way: deque[tuple[int, int, int]] = deque()  # number of the look-up, node, ticket

    def descend(number: int, node: Node) -> None:
        place = bisect_right(node.keys, keys[number]) - 1
        if place < 0:
            return
        if not node.is_leaf:
            page = node.values[place]
            on_the_way.append((number, page, io.read(page * PAGE_BYTES)))
        elif node.keys[place] == keys[number]:
            found[number] = node.values[place]

    at_once = 1 if io.reads == 1 else 4 * io.reads
    while waiting or on_the_way:
        while waiting and len(on_the_way) < at_once:
            descend(waiting.popleft(), tree.nodes[-1])
        if on_the_way:
            number, page, ticket = on_the_way.popleft()
            io.take(ticket)
            descend(number, tree.nodes[page])
    return found


def compared(drive: MeasuredDrive, keys: int, lookups: int, fanout: int = FANOUT) -> Comparison:
    """Looks up one key after another, and several at once; raises AssertionError if a value is wrong."""
    draw = random.Random(drive.seed)
    pairs = [(2 * number, draw.getrandbits(32)) for number in range(keys)]
    tree, wanted = built(pairs, fanout), [draw.randrange(2 * keys) for _ in range(lookups)]
    there = dict(pairs)

    def program(io: Outstanding) -> None:
        assert look_up(tree, io, wanted) == [there.get(key) for key in wanted], "a look-up found another value"

    return compare("B-tree look-ups", drive, program)


def main() -> None:
    """Prints the look-ups one after another beside the batch."""
    parser = parser_of(__doc__)
    parser.add_argument("--keys", type=at_least(1), default=1_000_000, help="in the tree")
    parser.add_argument("--lookups", type=at_least(1), default=5000, help="of keys, half of which are there")
    asked = parser.parse_args()
    drive = measured_drive(asked.preset, profile=asked.profile, seed=asked.seed, fill=asked.fill)
    print(compared(drive, asked.keys, asked.lookups).words())


if __name__ == "__main__":
    run_command(main)
