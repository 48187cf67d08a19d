"""Breadth-first and depth-first search over a graph on a drive, with k_r reads outstanding (P24).

    python graph_search.py --preset intel-p4510 --vertices 20000 --degree 8 [--shape tree] [--search dfs]

A vertex lies in pages on the drive, its properties and its list of neighbours, several vertices to a page. A visit
reads the pages of its vertex. Which page holds which vertex is in memory, and so is what was seen.

Both searches visit the vertices in the order of the textbook's, one by one. Only the reads run ahead:
- Breadth first: the queue says what is visited next. Its lists are read ahead, while those before them are visited.
- Depth first: what comes next depends on lists that are not there yet. A walk ahead of the search, through the lists
  that are in memory and past those that are not, asks for the missing ones in the order in which the search would come
  to them. A list read ahead is kept until its visit; `--memory` bounds how many are.
"""

import random
from collections import deque
from dataclasses import dataclass

from arguments import at_least, parser_of
from arguments import run as run_command

from spillway.concurrency import Comparison, MeasuredDrive, Outstanding, compare, measured_drive
from spillway.ssd.drive import PAGE_BYTES

NUMBER_BYTES, PROPERTY_BYTES = 8, 1024  # of a neighbour's number; of a vertex beside its list


@dataclass(frozen=True)
class Graph:
    """Lists of neighbours, and the pages of the drive that each lies in."""

    neighbours: list[list[int]]
    pages: list[range]

    def ask(self, io: Outstanding, vertex: int) -> list[int]:
        """Asks for the pages of a vertex; returns their tickets."""
        return [io.read(page * PAGE_BYTES) for page in self.pages[vertex]]


def laid_out(neighbours: list[list[int]], property_bytes: int = PROPERTY_BYTES) -> Graph:
    """Packs the vertices into pages, one after another; a vertex that fits in a page is in one."""
    pages, at = [], 0
    for each in neighbours:
        size = property_bytes + max(1, len(each)) * NUMBER_BYTES
        left = PAGE_BYTES - at % PAGE_BYTES
        if size > left and size <= PAGE_BYTES:
            at += left
        pages.append(range(at // PAGE_BYTES, (at + size - 1) // PAGE_BYTES + 1))
        at += size
    return Graph(neighbours, pages)


def random_graph(vertices: int, degree: int, seed: int) -> Graph:
    """Every vertex has so many neighbours, drawn at random. Vertices are numbered at random, too."""
    draw = random.Random(seed)
    return laid_out([[draw.randrange(vertices) for _ in range(degree)] for _ in range(vertices)])


def tree(vertices: int, degree: int, seed: int) -> Graph:
    """Every vertex but the leaves has so many children; where a vertex lies on the drive is drawn at random."""
    place = list(range(vertices))
    random.Random(seed).shuffle(place)
    place[place.index(0)], place[0] = place[0], 0
    neighbours: list[list[int]] = [[] for _ in range(vertices)]
    for vertex in range(vertices):
        children = range(vertex * degree + 1, min(vertices, vertex * degree + 1 + degree))
        neighbours[place[vertex]] = [place[child] for child in children]
    return laid_out(neighbours)


def breadth_first(graph: Graph, io: Outstanding, root: int = 0) -> list[int]:
    """The vertices in the order of their visits: level by level, each level in the order in which it was found."""
    order, seen = [], {root}
    queue = deque([(root, graph.ask(io, root))])
    while queue:
        vertex, tickets = queue.popleft()
        for ticket in tickets:
            io.take(ticket)
        order.append(vertex)
        for each in graph.neighbours[vertex]:
            if each not in seen:
                seen.add(each)
                queue.append((each, graph.ask(io, each)))
    return order


def depth_first(graph: Graph, io: Outstanding, memory: int, root: int = 0) -> list[int]:
    """The vertices in the order of their visits: a vertex, then all that its first neighbour leads to, and so on.

    ``memory``: lists that are read ahead, or on their way, and not yet visited.
    """
    order: list[int] = []
    seen: set[int] = set()
    held: dict[int, list[int]] = {}  # vertex → tickets of its list
    stack = [root]
    while stack:
        vertex = stack.pop()
        if vertex in seen:
            continue
        seen.add(vertex)
        for ticket in held.pop(vertex, None) or graph.ask(io, vertex):
            io.take(ticket)
        order.append(vertex)
        stack.extend(reversed(graph.neighbours[vertex]))
        # A walk may be long, so it begins when there are several lists to ask for.
        if io.reads > 1 and min(io.free_reads, memory - len(held)) >= min(io.reads, memory) / 2:
            read_ahead(graph, io, stack, seen, held, memory)
    return order


def read_ahead(
    graph: Graph, io: Outstanding, stack: list[int], seen: set[int], held: dict[int, list[int]], memory: int
) -> None:
    """Walks on as the search would, and asks for the lists that are missing, the first to be needed first."""
    passed: set[int] = set()
    ahead = stack[-memory:]
    while ahead and io.free_reads and len(passed) < memory:
        vertex = ahead.pop()
        if vertex in seen or vertex in passed:
            continue
        passed.add(vertex)
        if vertex not in held:
            if len(held) >= memory:
                return
            held[vertex] = graph.ask(io, vertex)
        elif all(io.is_complete(ticket) for ticket in held[vertex]):
            ahead.extend(reversed(graph.neighbours[vertex]))


SHAPES = {"random": random_graph, "tree": tree}


def compared(drive: MeasuredDrive, search: str, shape: str, vertices: int, degree: int, memory: int) -> Comparison:
    """Searches one read at a time and k_r at a time; raises AssertionError if the orders of the visits differ."""
    graph = SHAPES[shape](vertices, degree, drive.seed)
    orders: list[list[int]] = []

    def program(io: Outstanding) -> None:
        orders.append(breadth_first(graph, io) if search == "bfs" else depth_first(graph, io, memory))

    found = compare(f"{search}, {shape}", drive, program)
    assert orders[0] == orders[1], "the searches visited in different orders"
    return found


def main() -> None:
    """Prints a search one read at a time beside one with k_r outstanding."""
    parser = parser_of(__doc__)
    parser.add_argument("--vertices", type=at_least(1), default=20_000, help="of the graph")
    parser.add_argument("--degree", type=at_least(1), default=8, help="neighbours of a vertex")
    parser.add_argument("--shape", choices=SHAPES, default="random", help="of the graph")
    parser.add_argument("--search", choices=["bfs", "dfs"], default="bfs", help="breadth or depth first")
    parser.add_argument(
        "--memory", type=at_least(1), default=4096, help="lists that depth first keeps ahead of the search"
    )
    asked = parser.parse_args()
    drive = measured_drive(asked.preset, profile=asked.profile, seed=asked.seed, fill=asked.fill)
    print(compared(drive, asked.search, asked.shape, asked.vertices, asked.degree, asked.memory).words())


if __name__ == "__main__":
    run_command(main)
