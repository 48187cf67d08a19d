"""Which cells start when: whatever waits, and however long each takes, the rules hold at every moment."""

import random
from collections.abc import Sequence

import pytest
from swept import cell

from spillway.errors import SpillwayError
from spillway.sweep.cell import Cell
from spillway.sweep.executor import Unplaceable
from spillway.sweep.on_ray import demand, fits
from spillway.sweep.order import Room, check_fits, startable

MACHINE, CLUSTER = Room(cells=5, cores=4), Room(cells=5)


def names(cells: Sequence[Cell]) -> list[str]:
    return [each.name for each in cells]


def cells_at_random(rng: random.Random) -> list[Cell]:
    found = []
    for at in range(rng.randrange(1, 25)):
        states = [f"state {rng.randrange(3)}"] if rng.random() < 0.3 else []
        found.append(cell(f"{at}", cores=rng.randrange(1, 5), paced=rng.random() < 0.3, states=states))
    return found


@pytest.mark.parametrize("room", [MACHINE, CLUSTER], ids=["machine", "cluster"])
@pytest.mark.parametrize("seed", range(40))
def test_the_rules_hold_until_every_cell_has_run(room: Room, seed: int) -> None:
    rng = random.Random(seed)
    waiting, made = cells_at_random(rng), set[str]()
    count, running, ended = len(waiting), list[Cell](), list[Cell]()
    while waiting or running:
        started = startable(waiting, running, made, room)
        assert started or running, "nothing runs, and nothing starts"
        waiting = [each for each in waiting if each not in started]
        running += started
        assert len(running) <= room.cells
        unmade = [state for each in running for state in each.states - made]
        assert len(unmade) == len(set(unmade)), "two make one state"
        if room.cores is not None:
            assert not any(each.paced for each in running) or len(running) == 1
            assert sum(each.cores for each in running) <= room.cores
        assert startable(waiting, running, made, room) == [], "as many have started as may"
        over = rng.choice(running)
        running.remove(over)
        made |= over.states
        ended.append(over)
    assert len(ended) == count
    assert len({each.name for each in ended}) == count


def test_cells_in_virtual_time_are_packed_and_come_first() -> None:
    waiting = [cell("paced", paced=True), cell("a", cores=3), cell("b", cores=2), cell("c"), cell("d")]
    assert names(startable(waiting, [], set(), MACHINE)) == ["a", "c"]
    assert names(startable(waiting[:2] + waiting[3:], waiting[2:3], set(), MACHINE)) == ["c", "d"]
    assert names(startable(waiting[:1], waiting[1:2], set(), MACHINE)) == []
    assert names(startable(waiting[:1], [], set(), MACHINE)) == ["paced"]
    assert names(startable(waiting[1:], waiting[:1], set(), MACHINE)) == []


def test_a_cluster_keeps_paced_cells_apart_by_itself() -> None:
    waiting = [cell("x", paced=True), cell("y", paced=True), cell("z")]
    assert sorted(names(startable(waiting, [], set(), CLUSTER))) == ["x", "y", "z"]


def test_one_cell_makes_a_state_and_the_others_wait_for_it() -> None:
    waiting = [cell("a", states=["s"]), cell("b", states=["s", "t"]), cell("c", states=["t"]), cell("d")]
    assert names(startable(waiting, [], set(), CLUSTER)) == ["a", "c", "d"]
    assert names(startable(waiting[1:2], [cell("a", states=["s"])], {"s"}, CLUSTER)) == ["b"]


def test_a_cell_that_no_machine_could_start_is_refused() -> None:
    check_fits([cell("a", cores=4)], MACHINE)
    check_fits([cell("a", cores=99)], CLUSTER)
    with pytest.raises(SpillwayError, match="--cores 5: this machine has 4, so no cell could start"):
        check_fits([cell("a", cores=5)], MACHINE)


NODES = [{"CPU": 4.0, "memory": 1e9}, {"CPU": 8.0, "drive:/mnt/a": 1.0}, {"CPU": 2.0, "drive:/mnt": 1.0}]


def test_what_a_cell_takes_of_a_ray_node() -> None:
    """Whole cores; in real time all of a node's, and of a real drive its resource."""
    assert demand(cell("a", cores=3), NODES) == {"CPU": 3}
    assert demand(cell("a", paced=True), NODES) == {"CPU": 8}
    assert demand(cell("a", paced=True), NODES[:1]) == {"CPU": 4}
    assert demand(cell("a", paced=True, drive="/mnt/a/db"), NODES) == {"CPU": 8, "drive:/mnt/a": 1}
    assert demand(cell("a", paced=True, drive="/mnt/b"), NODES) == {"CPU": 2, "drive:/mnt": 1}


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (cell("a", cores=9), "a: no node of the Ray cluster has 9 cores: start one"),
        (cell("a", cores=3, drive="/mnt/b"), "a: no node of the Ray cluster has 3 cores and the drive"),
        (cell("a", drive="/other"), "drive.path is '/other', and no node .*--resources='{\"drive:/other\": 1}'"),
        (cell("a", drive="/mntx"), "no node of the Ray cluster has a resource for that drive"),
    ],
)
def test_a_cluster_that_lacks_what_a_cell_takes(of: Cell, says: str) -> None:
    with pytest.raises(Unplaceable, match=says):
        demand(of, NODES)


@pytest.mark.parametrize("nodes", [[], [{"CPU": 0.0, "memory": 1e9}], [{"memory": 1e9}]])
def test_a_cluster_without_any_core_is_lost_to_every_cell(nodes: list[dict[str, float]]) -> None:
    with pytest.raises(SpillwayError, match="no node of the Ray cluster has a core") as lost:
        demand(cell("a"), nodes)
    assert not isinstance(lost.value, Unplaceable)


def test_a_node_that_is_left_has_to_have_all_that_a_task_takes() -> None:
    assert fits({"CPU": 8.0, "drive:/mnt/a": 1.0}, NODES)
    assert not fits({"CPU": 8.0, "drive:/mnt": 1.0}, NODES)
    assert not fits({"CPU": 1.0}, [])
