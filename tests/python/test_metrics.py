"""Metrics for Prometheus: of a run, in a file and on a port; of the library; and the dashboard that shows them."""

import json
import os
import re
import socket
import struct
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from conftest import CONTRACT, ROOT, Fake, Invoke
from needs import need
from prometheus_text import Family, parse

from spillway.errors import SpillwayError
from spillway.metrics.exposition import Metric, as_text
from spillway.metrics.publish import published, write_replaced
from spillway.metrics.run import HELP, RUN, RunMetrics
from spillway.rundir.statistics import SPILL_COUNTS, SPILL_METRICS

DASHBOARD = ROOT / "examples" / "grafana" / "spillway.json"
PROGRAM = Path(os.environ.get("SPILLWAY_C_PROGRAM", ROOT / "build/tests/native/c_interface"))


def sample(**changed: Any) -> dict[str, Any]:
    """The sample of the contract's example, which has every part."""
    lines = (CONTRACT / "examples" / "run.events.jsonl").read_text().splitlines()
    event = next(each for each in map(json.loads, lines) if each["event"] == "sample")
    spill = dict.fromkeys((name for name, *_ in SPILL_METRICS), 0) | event["spill"]
    return {**event, "spill": spill, **changed}


def value(families: dict[str, Family], name: str, **labels: str) -> float:
    return families[name].samples[frozenset(labels.items())]


# --- The reader that the tests trust


@pytest.mark.parametrize(
    "text",
    [
        "spillway_a 1\n",
        "# HELP spillway_a a\nspillway_a 1\n",
        "# HELP spillway_a a\n# TYPE spillway_a gauge\n",
        "# HELP spillway_a a\n# TYPE spillway_a gauge\nspillway_a 1",
        "# HELP spillway_a \n# TYPE spillway_a gauge\nspillway_a 1\n",
        "# HELP spillway_a a\n# TYPE spillway_a counter\nspillway_a 1\n",
        "# HELP spillway_a_total a\n# TYPE spillway_a_total gauge\nspillway_a_total 1\n",
        "# HELP spillway_wait_us a\n# TYPE spillway_wait_us gauge\nspillway_wait_us 1\n",
        "# HELP spillway_a a\n# TYPE spillway_a gauge\nspillway_a 1\nspillway_a 2\n",
        '# HELP spillway_a a\n# TYPE spillway_a gauge\nspillway_a{b="c\\d"} 1\n',
        '# HELP spillway_a a\n# TYPE spillway_a gauge\nspillway_a{b="c",b="d"} 1\n',
        '# HELP spillway_a a\n# TYPE spillway_a gauge\nspillway_a{b="c",} 1\n',
        "# HELP spillway_a a\n# TYPE spillway_a gauge\nspillway_a one\n",
        "# HELP spillway_a_total a\n# TYPE spillway_a_total counter\nspillway_a_total -1\n",
    ],
)
def test_the_reader_refuses_what_breaks_the_format(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


# --- Of a run


def test_counts_add_up_and_gauges_are_of_the_last_sample() -> None:
    metrics = RunMetrics()
    assert not metrics.add("one", {"event": "progress"})
    assert metrics.text() == ""
    event = sample()
    assert metrics.add("one", event)
    assert metrics.add("one", sample(t_s=2.0, space_bytes=5, phase="read"))
    families = parse(metrics.text())
    assert value(families, "spillway_run_operations_total", arm="one", operation="write") == 2 * event["writes"]
    assert value(families, "spillway_run_elapsed_seconds", arm="one") == 2
    assert value(families, "spillway_run_space_bytes", arm="one") == 5
    assert families["spillway_run_phase"].samples == {frozenset({("arm", "one"), ("phase", "read")}): 1}
    assert value(families, "spillway_run_host_written_bytes_total", arm="one", cause="wal") == 5_000_000
    assert value(families, "spillway_run_nand_programmed_bytes_total", arm="one", cause="gc") == 14_000_000
    assert value(families, "spillway_run_stall_seconds_total", arm="one", cause="l0") == 0.5
    assert value(families, "spillway_run_stall_state", arm="one", state="delayed") == 1
    assert value(families, "spillway_run_engine_l0_files", arm="one") == 21
    assert value(families, "spillway_diverted_writes_total", arm="one") == 512
    assert value(families, "spillway_live_bytes", arm="one") == 1048576
    latency = value(families, "spillway_run_latency_seconds", arm="one", operation="write", statistic="p99")
    assert latency == pytest.approx(288e-6)


def test_gauges_end_with_their_arm_and_counts_stay() -> None:
    metrics = RunMetrics()
    metrics.add("one", sample())
    metrics.add("two", sample())
    families = parse(metrics.text())
    arms = {name: {dict(each)["arm"] for each in family.samples} for name, family in families.items()}
    assert {arms[name] == {"two"} for name, family in families.items() if family.type == "gauge"} == {True}
    assert {arms[name] == {"one", "two"} for name, family in families.items() if family.type == "counter"} == {True}


def test_every_metric_of_a_run_has_a_sample() -> None:
    metrics = RunMetrics()
    metrics.add("one", sample())
    families = parse(metrics.text())
    assert {RUN + name for name in HELP} <= families.keys()
    assert {name for _, name, _, _ in SPILL_METRICS} <= families.keys()


def test_a_run_without_a_drive_model_and_a_spill_store_has_no_metrics_of_them() -> None:
    metrics = RunMetrics()
    metrics.add('a "b"\\\n', sample(drive={"host_bytes_written": 7, "host_bytes_read": 1}, spill=None))
    families = parse(metrics.text())
    assert not [name for name in families if "nand" in name or not name.startswith(RUN)]
    assert list(families["spillway_run_host_written_bytes_total"].samples.values()) == [7]
    assert '{arm="a \\"b\\"\\\\\\n",cause="unknown"} 7\n' in metrics.text()


def test_units_of_an_engines_gauges_are_seconds_and_ratios() -> None:
    event = sample()
    event["engine"] |= {"flush_us": 1500, "vlog_garbage_permille": 250}
    metrics = RunMetrics()
    metrics.add("one", event)
    families = parse(metrics.text())
    assert value(families, "spillway_run_engine_flush_seconds", arm="one") == 0.0015
    assert value(families, "spillway_run_engine_vlog_garbage_ratio", arm="one") == 0.25


def test_a_metric_without_samples_is_not_printed() -> None:
    assert as_text([Metric("spillway_a", "gauge", "a")]) == ""


def test_statistics_by_cause_are_shown_instead_of_their_sum() -> None:
    shown = [name for name, *_ in SPILL_METRICS]
    sums = {name for name in SPILL_COUNTS if name not in shown}
    assert sums == {"waits", "wait_us", "stalls_diverted"}
    assert len({(name, cause) for _, name, cause, _ in SPILL_METRICS}) == len(shown)


# --- Where they are shown


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


def test_file_and_port_show_the_same(tmp_path: Path) -> None:
    file = tmp_path / "metrics.prom"
    with published(file, 0) as (feed, address):
        assert address.startswith("http://127.0.0.1:")
        assert (file.read_text(), fetch(address)) == ("", "")
        feed("one", sample())
        feed("one", {"event": "progress"})
        shown = fetch(address)
        assert parse(shown)
        assert file.read_text() == shown
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetch(address.removesuffix("/metrics"))
        assert refused.value.code == 404
    assert file.read_text() == shown, "what a run leaves"
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.prom"]
    with pytest.raises(urllib.error.URLError):
        fetch(address)


def port_of(address: str) -> int:
    return int(address.split(":")[2].split("/")[0])


def test_a_client_may_ask_for_the_head_alone_or_through_a_proxy() -> None:
    with published(None, 0) as (feed, address):
        feed("one", sample())
        whole = fetch(address).encode()
        for method, target, body in (("HEAD", "/metrics", b""), ("GET", address, whole), ("GET", "/metrics?a", whole)):
            connection = HTTPConnection("127.0.0.1", port_of(address), timeout=10)
            connection.request(method, target)
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("Content-Length")) == (200, str(len(whole))), (method, target)
            assert answer.read() == body
            connection.close()


def test_clients_that_break_off_are_not_reported(capfd: pytest.CaptureFixture[str]) -> None:
    with published(None, 0) as (feed, address):
        feed("one", sample())
        at_once = struct.pack("ii", 1, 0)  # SO_LINGER: close() resets the connection
        for request in (b"", b"GET /met", b"GET /metrics HTTP/1.0\r\n", b"\x16\x03\x01\r\n\r\n"):
            for _ in range(10):
                client = socket.create_connection(("127.0.0.1", port_of(address)))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                client.sendall(request)
                client.close()
        assert fetch(address)
    assert capfd.readouterr().err == ""


def test_a_client_that_sends_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spillway.metrics.publish.MOST_SILENT_S", 0.1)
    with published(None, 0) as (_, address):
        client = socket.create_connection(("127.0.0.1", port_of(address)), timeout=30)
        client.sendall(b"GET /met")
        assert client.recv(1) == b"", "the server has closed the connection"
        client.close()


def test_what_is_no_file_is_refused_and_left(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe", tmp_path / "device"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (pipe, device, tmp_path, Path(), Path("/")):
        with pytest.raises(SpillwayError, match=r"--metrics .*is not a file"), published(path, None):
            pass
    assert pipe.is_fifo() and device.is_char_device() and len(list(tmp_path.iterdir())) == 2


def test_a_link_to_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    link, file = tmp_path / "link", tmp_path / "shown" / "metrics.prom"
    link.symlink_to(file)
    with published(link, None) as (feed, _):
        feed("one", sample())
    assert link.is_symlink() and parse(file.read_text())


def test_a_reader_sees_the_file_whole(tmp_path: Path) -> None:
    file = tmp_path / "metrics.prom"
    texts = [letter * 200_000 for letter in "ab"]
    write_replaced(file, texts[0])
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(file.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for index in range(100):
        write_replaced(file, texts[index % 2])
    done.set()
    reader.join()
    assert seen <= set(texts)


def test_nothing_else_may_listen_at_the_port(tmp_path: Path) -> None:
    with published(None, 0) as (_, address):
        port = port_of(address)
        with pytest.raises(SpillwayError, match=f"--metrics-port {port}: "), published(None, port):
            pass


def test_a_run_writes_them(fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "metrics.prom"
    flags = ("--metrics", file, "--metrics-port", "0", "--set", "seeds=[5]")
    ended = invoke("run", plan_file, "--out", tmp_path / "run", *flags)
    assert ended.code == 0
    assert re.fullmatch(r"Metrics  http://127\.0\.0\.1:\d+/metrics\n", ended.err)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    families = parse(file.read_text())
    arms = {dict(labels)["arm"] for labels in families["spillway_run_operations_total"].samples}
    assert arms == set(summary["arms"])


def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke
) -> None:
    ended = invoke("run", plan_file, "--out", tmp_path / "run", "--metrics", tmp_path / "none" / "metrics.prom")
    assert ended.code == 2
    assert "none" in ended.err and "name another --metrics" in ended.err and not (tmp_path / "run").exists()


def test_a_run_does_not_end_for_its_metrics(
    fake: Fake, plan_file: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, text: str) -> None:
        if text:
            raise SpillwayError(f"{path} cannot be written.")

    monkeypatch.setattr("spillway.metrics.publish.write_replaced", fails)
    flags = ("--metrics", tmp_path / "metrics.prom", "--set", "seeds=[5]")
    ended = invoke("run", plan_file, "--out", tmp_path / "run", *flags)
    assert ended.code == 0
    assert (
        ended.err == f"spillway: {tmp_path / 'metrics.prom'} cannot be written. The run goes on without its metrics.\n"
    )


# --- Of the library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    """What GetProperty("spillway.prometheus") returns to a program."""
    need(os.access(PROGRAM, os.X_OK), "build/tests/native/c_interface, which `make test` builds")
    directory = tmp_path_factory.mktemp("library")
    ran = subprocess.run([PROGRAM, "metrics", directory / "db"], capture_output=True, text=True, check=True)
    return parse(ran.stdout)


@pytest.mark.native
def test_the_librarys_metrics_are_those_of_the_table(library: dict[str, Family]) -> None:
    expected: dict[str, set[frozenset[tuple[str, str]]]] = {}
    for _, name, cause, text in SPILL_METRICS:
        expected.setdefault(name, set()).add(frozenset({("cause", cause)} if cause else ()))
        assert library[name].help == text
    assert {name: set(library[name].samples) for name in expected} == expected
    assert {name for name in library if not name.startswith("spillway_rocksdb_")} == expected.keys()
    assert value(library, "spillway_diverted_writes_total") > 0
    assert value(library, "spillway_rocksdb_l0_files", column_family="default") >= 0


# --- The dashboard


def queries(panels: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each panel's title with one of its queries."""
    for panel in panels:
        yield from queries(panel.get("panels", []))
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text()))


@pytest.mark.native
def test_every_query_of_the_dashboard_names_metrics_and_labels_that_exist(
    dashboard: dict[str, Any], library: dict[str, Family]
) -> None:
    metrics = RunMetrics()
    metrics.add("one", sample())
    families = [parse(metrics.text()), library]
    asked = list(queries(dashboard["panels"]))
    asked += [("variable", each["query"]) for each in dashboard["templating"]["list"] if each["type"] == "query"]
    assert len(asked) > 10
    for title, query in asked:
        names = re.findall(r"\bspillway_\w+", query)
        assert names, f"{title}: {query} names no metric"
        for name in names:
            at = [dict(labels) for family in families if name in family for labels in family[name].samples]
            assert at, f"{title}: there is no metric {name}"
            known = {label for labels in at for label in labels} | {"job", "instance", "__name__"}
            by = {label for inner in re.findall(r"\bby \(([^)]*)\)", query) for label in inner.split(", ")}
            matched = set(re.findall(r"[{,]\s*(\w+)\s*[=!]", query))
            assert by | matched <= known, f"{title}: {query}"


def test_the_dashboard_is_one_that_grafana_imports(dashboard: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    assert dashboard["uid"] == "spillway" and dashboard["schemaVersion"] >= 36
    # A variable and not an input, which a dashboard that is provisioned from a file never gets.
    variables = dashboard["templating"]["list"]
    assert "__inputs" not in dashboard
    assert (variables[0]["name"], variables[0]["type"], variables[0]["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert all(each["datasource"]["uid"] == "${datasource}" for each in variables[1:])
    for panel in dashboard["panels"]:
        assert {"title", "type", "gridPos"} <= panel.keys()
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}" and panel["description"]
