"""A default that is written down twice, in Python and in C++, is the same in both places.

The table of a plan's keys is compared with the native side's readers of requests and, through them, with the
initialisers of its structs, such as SpillOptions in native/spill/include/spillway/options.h. test_plan.py compares
docs/PLANS.md with the table, test_library_page.py docs/LIBRARY.md with the header.
"""

from pathlib import Path
from typing import Any

import pytest
from native_defaults import NATIVE, Defaults, assigned, initialisers, literal, members, reader, spill_reader

from spillway.bufferpool.pool import Workload
from spillway.plan.arm import by_keys_of_a_plan, native_name, settings_of
from spillway.plan.document import load_plan
from spillway.plan.keys import ARM_KEYS, PLAN_KEYS
from spillway.plan.ycsb import PROPERTIES
from spillway.quantity import parse_size
from spillway.ssd.simulate import WRITES_CAPACITIES, WorkChoice

# Of the engines' own tables in a plan: the structs whose initialisers are the defaults.
STRUCTS = {
    "spill": ("SpillOptions", "DivertPolicy"),
    "adoc": ("AdocOptions",),
    "flow_control": ("FlowControlOptions",),
    "vlog": ("CollectorOptions",),
}
# The native side makes these of the drive; a plan that says nothing leaves them to it.
BY_THE_DRIVE = {"vlog.segment_bytes"}
# Tables of a plan, and the structs that have a field for each of their keys.
FIELDS = {
    **{f"engine.{table}": structs for table, structs in STRUCTS.items()},
    "engine.vlog": ("CollectorOptions", "StoreOptions"),
    "drive": ("EmulatedTarget",),
    "fs": ("VolumeOptions",),
}
# Keys without a field of their own. They choose the drive that a struct's field `drive` is, or Python alone has them.
NO_FIELD = {
    *("drive.kind", "drive.preset", "drive.preset_file", "drive.capacity"),
    *("drive.estimate.preset", "drive.estimate.preset_file", "drive.estimate.capacity"),
    *("drive.path", "drive.rated_writes", "drive.smart"),
}


def default_of(key: str) -> Any:
    """What a plan takes where ``key`` is not given, as it goes into a request."""
    spec = ARM_KEYS[key]
    return None if spec.default is None else spec.check(spec.default, key)


def engine_defaults(table: str) -> Defaults:
    """What the engines read of ``[engine.TABLE]``."""
    readers = [
        path.read_text() for path in sorted((NATIVE / "engine").rglob("*.cc")) if f'"{table}.' in path.read_text()
    ]
    if table == "spill":
        readers.append(spill_reader())
    return Defaults("".join(readers), initialisers(*STRUCTS[table]))


@pytest.mark.parametrize("table", sorted(STRUCTS))
def test_an_engines_table_has_the_native_defaults(table: str) -> None:
    native = engine_defaults(table)
    read = {key for key in native.calls if key.startswith(f"{table}.")}
    asked = {f"{table}.{name}": key for key, name in settings_of(table).items()}
    assert read == set(asked)
    for name, key in asked.items():
        assert default_of(key) == (None if name in BY_THE_DRIVE else native[name]), key


def test_every_engines_table_is_compared() -> None:
    tables = {key.split(".")[1] for key in ARM_KEYS if key.startswith("engine.") and key.count(".") > 1}
    assert tables == set(STRUCTS)


def test_the_librarys_defaults_are_the_plans() -> None:
    """An independent look at options.h: the same numbers, with their units in place."""
    options = {name: literal(text) for name, text in initialisers("SpillOptions").items() if text}
    assert options["capacity_bytes"] == parse_size("4GiB", "") == default_of("engine.spill.capacity")
    assert options["poll_ms"] == default_of("engine.spill.poll_ms")
    assert options["rollback"] == default_of("engine.spill.rollback")


def engine_readers() -> str:
    """The source of all engines that read settings of their own."""
    return "".join(path.read_text() for path in sorted((NATIVE / "engine").rglob("*.cc"))) + spill_reader()


def fields_read() -> dict[str, str]:
    """Key of a plan → the field that the native side assigns what it reads of it to."""
    by_name = {f"{table}.{native_name(key)}": key for key in ARM_KEYS for table in [key.rpartition(".")[0]]}
    read = {f"engine.{name}": field for name, field in assigned(engine_readers()).items()}
    read |= {f"fs.{name}": field for name, field in assigned(reader("read_fs")).items()}
    return {by_name[name]: field for name, field in read.items() if name in by_name}


@pytest.mark.parametrize("table", sorted(FIELDS))
def test_a_key_of_a_plan_keeps_its_name_down_to_the_field(table: str) -> None:
    """But for the unit at the end of a size, which a plan writes with the value."""
    keys = {key for key in ARM_KEYS if key.startswith(f"{table}.")}
    fields = members(*FIELDS[table])
    assert {key for key in keys if native_name(key) not in fields} == keys & NO_FIELD


def test_what_is_read_of_a_key_is_assigned_to_the_field_of_its_name() -> None:
    """engine.spill.store is not: what it names is made when there is a drive."""
    read = fields_read()
    tables = ("fs.", *(f"engine.{table}." for table in STRUCTS))
    assert set(read) == {key for key in ARM_KEYS if key.startswith(tables)} - {"engine.spill.store"}
    assert {key: field for key, field in read.items() if field != native_name(key)} == {}


def test_a_request_has_a_plans_tables_by_their_names() -> None:
    assert {"fs", "engine", "load", "estimate"} <= members("RunRequest")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("engine.spill.capacity", "capacity_bytes"),
        ("engine.vlog.segment", "segment_bytes"),
        ("fs.size", "size_bytes"),
        ("fs.writeback_bytes", "writeback_bytes"),
        ("engine.spill.poll_ms", "poll_ms"),
    ],
)
def test_a_size_gains_its_unit_and_a_message_loses_it_again(key: str, name: str) -> None:
    assert native_name(key) == name
    said = f"{key.rpartition('.')[0]}.{name} is 4096; lower it"
    assert by_keys_of_a_plan(said, "emulated") == f"{key} is 4096; lower it"


def request_of(tmp_path: Path) -> dict[str, Any]:
    """The request of a plan that says nothing but what it must."""
    path = tmp_path / "plain.toml"
    path.write_text('[drive]\npreset = "mqsim-default"\n[[phases]]\nworkload = "fillrandom"\n')
    (arm,) = load_plan(path).arms
    return arm.request(tmp_path, PLAN_KEYS["seeds"].default[0])


def read_by(function: str, *structs: str, of: str = "") -> Defaults:
    """What a function of the native side reads; ``of``: a type among its parameters. ``structs`` have its defaults."""
    return Defaults(reader(function, of), initialisers(*structs) if structs else {})


def test_a_plain_plan_asks_for_what_a_request_without_it_gets(tmp_path: Path) -> None:
    """Keys that a request must have, and what of a plan goes into other keys, are left out by name."""
    request = request_of(tmp_path)
    phase = request["phases"][0]
    parts: list[tuple[dict[str, Any], Defaults, set[str]]] = [
        (request["fs"], read_by("read_fs", "VolumeOptions"), set()),
        (request["load"], read_by("read_load", "PairSpec", "RunSpec"), {"seed"}),
        (phase, read_by("read_phase"), {"name", "workload"}),
        # The one difference that is meant: a request without a state is of a trimmed drive, a plan of a steady one.
        (
            request["target"]["initial"] | {"partition": "as_is", "partition_bytes": 0},
            read_by("read_initial"),
            {"kind"},
        ),
        (
            {"kind": request["target"]["kind"], "pacing": request["target"]["pacing"]},
            read_by("read_target", of="RunRequest"),
            set(),
        ),
        (request, read_by("read_run_request", "RunRequest"), {"directory"}),
    ]
    for asked, native, left_out in parts:
        compared = {key for key in native.calls if key in asked} - left_out
        assert {key: asked[key] for key in compared} == {key: native[key] for key in compared}
        assert set(native.calls) - compared - left_out <= {"time_scale"}, "a key that no plan has"


def test_what_a_plan_keeps_has_the_native_defaults() -> None:
    native = read_by("read_kept", "KeptRequest", of="RunRequest")
    for key in native.calls:
        assert default_of(f"kept.{key}") == native[key], key


def test_ycsbs_properties_have_the_native_defaults() -> None:
    header = next(NATIVE.rglob("ycsb/properties.h")).read_text()
    source = reader("read_records", "Properties") + reader("read_operations", "Properties")
    native = Defaults(source, initialisers("Properties"), header)
    assert set(native.calls) == set(PROPERTIES)
    for key, spec in PROPERTIES.items():
        assert spec.default == native[key], key


def test_a_simulated_workload_has_the_native_defaults() -> None:
    native = read_by("read_workload", of="SimulateRequest")
    work = WorkChoice()
    assert (work.workload, work.iodepth) == (native["name"], native["iodepth"])
    assert parse_size(work.bs, "--bs") == native["bs_bytes"]
    assert native["writes_capacities"] == WRITES_CAPACITIES


def test_a_buffer_pool_has_the_native_defaults() -> None:
    pool = read_by("read_pool", "PoolSpec")
    trace = read_by("read_workload", of="BufferpoolRequest")
    asked = Workload()
    assert (asked.pool_pages, asked.page_bytes) == (pool["pages"], pool["page_bytes"])
    assert (asked.policy, asked.prefetch) == (pool["policy"], pool["prefetch"])
    assert (asked.name, asked.read_fraction, asked.theta) == (trace["name"], trace["read_fraction"], trace["theta"])
    assert (asked.pages, asked.operations) == (trace["pages"], trace["operations"])


def test_a_default_is_read_from_source() -> None:
    source = """
constexpr std::uint64_t kMany = 64ULL << 20;
  const auto poll_ms = static_cast<std::uint64_t>(spill.poll_interval.count());
  a.one = settings.whole("one", spill.bytes, 1, std::numeric_limits<std::uint32_t>::max());  // not "none"
  a.two = static_cast<int>(settings.whole("two", poll_ms, 1, 2));
  a.three = files("three", kMany);
  a.four = kWords[choice(fields, "at", "four", {"x", "y"}, 1, problem)];
  a.five = fields.optional_whole("five", 0, kMost);
  a.six = fields.flag("six", true);
  a.seven = fields.text("seven", "");
  a.eight = fields.whole("eight", 86'400, 0, 1);
"""
    native = Defaults(source, {"bytes": "std::uint64_t{4} << 30", "poll_interval": "100"})
    assert {key: native[key] for key in native.calls} == {
        **{"one": 4 << 30, "two": 100, "three": 64 << 20, "four": "y"},
        **{"five": None, "six": True, "seven": "", "eight": 86400},
    }
