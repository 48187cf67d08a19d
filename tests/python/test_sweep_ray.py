"""Cells on a real Ray cluster of several nodes on this machine, one of which is killed on the way."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Fake, Invoke
from needs import need
from swept import VIRTUAL, let_wait
from test_sweep_command import done, processes_of, rows, start, wait_for

WORKERS = 3


@pytest.fixture
def cluster(fake: Fake, tmp_path: Path) -> Iterator[Any]:
    """A head without cores and WORKERS nodes with a core each. What they run waits until there is a file ``go``."""
    need(importlib.util.find_spec("ray"), "ray: scripts/python.sh long installs it")
    from ray.cluster_utils import Cluster

    let_wait(fake, tmp_path / "go")
    fake.monkeypatch.setenv("RAY_worker_niceness", "0")  # others may be busy on this machine
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        started.workers = [started.add_node(num_cpus=1) for _ in range(WORKERS)]
        started.wait_for_nodes()
        yield started
    finally:
        (tmp_path / "go").touch()
        started.shutdown()


def of_values(values: list[int]) -> str:
    """A plan of a cell for each value."""
    return VIRTUAL + f'\n[sweep]\n"load.value_bytes" = {values}\n'


def attempts(out: Path) -> int:
    """Of all cells, as far as the table knows."""
    return sum(int(row["attempts"]) for row in rows(out)) if (out / "cells.csv").exists() else 0


@pytest.mark.long
def test_a_node_that_is_killed_costs_its_cells_an_attempt(
    cluster: Any, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out, values = tmp_path / "out", list(range(1, 6))
    plan_file.write_text(of_values(values))
    command = start(plan_file, out, "--on", f"ray:{cluster.address}", "--retries", "3")
    wait_for(lambda: len(processes_of(out)) == WORKERS)
    cluster.remove_node(cluster.workers[0], allow_graceful=False)
    (tmp_path / "go").touch()
    said, complaints = command.communicate(timeout=300)
    assert command.returncode == 0, complaints
    found = rows(out)
    assert [row["state"] for row in found] == ["done"] * len(values)
    assert [row["load.value_bytes"] for row in found] == [str(value) for value in values]
    assert attempts(out) == len(values) + 1, "the node had one cell"
    assert complaints.count("failed, and is tried again") == 1
    assert f"{len(values)} cells run, 0 done before" in said
    wait_for(lambda: not processes_of(out))
    again = invoke("sweep", plan_file, "--out", out, "--on", f"ray:{cluster.address}")
    assert again.code == 0, again.err
    assert f"0 cells run, {len(values)} done before" in again.out


@pytest.mark.long
def test_a_worker_process_may_die_and_a_ctrl_c_ends_the_tasks(
    cluster: Any, fake: Fake, plan_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    plan_file.write_text(of_values([1, 2, 3, 4]))
    command = start(plan_file, out, "--on", f"ray:{cluster.address}", "--retries", "3")
    wait_for(lambda: len(processes_of(out)) == WORKERS)
    one = processes_of(out)[0]
    parent = int(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)  # Ray's worker process; its cell ends with it
    wait_for(lambda: one not in processes_of(out))
    wait_for(lambda: attempts(out) == 5)
    command.send_signal(signal.SIGINT)
    _, complaints = command.communicate(timeout=120)
    assert command.returncode == 130, complaints
    assert complaints.count("failed, and is tried again") == complaints.count("its worker died: ") == 1
    assert [row["state"] for row in rows(out)] == ["not run"] * 4
    wait_for(lambda: not processes_of(out))
    assert done(out) == []


@pytest.mark.long
def test_a_cluster_that_is_not_there_is_one_sentence(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(importlib.util.find_spec("ray"), "ray: scripts/python.sh long installs it")
    plan_file.write_text(VIRTUAL)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))  # where Ray looks for a cluster of this machine
    for where, says in (
        ("ray:127.0.0.1:1", "there is no Ray cluster at 127.0.0.1:1: connection refused."),
        ("ray", "there is no Ray cluster to connect to"),
        ("ray:nowhere", "an address is HOST:PORT, such as 10.0.0.1:6379."),
    ):
        ended = invoke("sweep", plan_file, "--out", tmp_path / "out", "--on", where)
        assert (ended.code, ended.out) == (2, "")
        assert says in ended.err
        assert ended.err.count("\n") == 1


@pytest.mark.long
def test_a_cell_that_no_node_can_run_is_named_and_the_others_are_run(
    cluster: Any, fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    """As one on a real drive whose node is not there."""
    (tmp_path / "go").touch()
    (tmp_path / "disk").mkdir()
    arms = (
        f'\n[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n"drive.kind" = "directory"\n"drive.path" = "{tmp_path}/disk"\n'
    )
    plan_file.write_text(VIRTUAL.replace('preset = "tiny"\npacing = "off"', 'preset = "tiny"') + arms)
    out = tmp_path / "out"
    ended = invoke("sweep", plan_file, "--out", out, "--on", f"ray:{cluster.address}")
    assert ended.code == 2
    assert [(row["arm"], row["state"]) for row in rows(out)] == [("a", "done"), ("b", "failed")]
    assert "spillway: b: drive.path is" in ended.err
