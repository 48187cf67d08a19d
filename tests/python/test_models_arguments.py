"""What is no number is refused by every model in one sentence; empty arrays and scalars are taken."""

import inspect
import math
from collections.abc import Callable
from datetime import datetime
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike

import spillway
from spillway.errors import SpillwayError
from spillway.models.arrays import numbers, percent, quantity, share
from spillway.models.lsm import Costs, Layout

WRONG: list[Any] = ["x", "1.5", None, [1, "x"], [[1], [1, 2]], {}, {"a": 1}, object(), 1j, np.array([1j]), b"1",
                    datetime(2020, 1, 1), np.array(["2020-01-01"], dtype="datetime64[D]"), [pd.NA, 1.0]]  # fmt: skip
READERS: list[Callable[[str, Any], Any]] = [numbers, quantity, share, percent]


@pytest.mark.parametrize("value", WRONG, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("read", READERS)
def test_what_is_no_number_is_refused(read: Callable[[str, Any], Any], value: Any) -> None:
    with pytest.raises(SpillwayError, match=r"^r must be a number or an array of numbers; it is ") as raised:
        read("r", value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("read", READERS)
def test_any_shape_and_dtype_of_numbers_is_taken(read: Callable[[str, Any], Any]) -> None:
    values: list[Any] = [[], np.empty((0, 3)), np.float32(1), 1, True, np.array(1), np.ones((2, 1), dtype=np.uint8),
                  pd.array([1, 1], dtype="Int64"), pd.Series([1.0])]  # fmt: skip
    for value in values:
        assert read("r", value).shape == np.asarray(value).shape and read("r", value).dtype == np.float64


def functions() -> dict[str, tuple[Callable[..., Any], list[str]]]:
    """Of every model, with those of their arguments that are arrays."""
    found: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for name in spillway.models.__all__:
        module = getattr(spillway.models, name)
        if not isinstance(module, ModuleType):
            continue
        for each, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not each.startswith("_"):
                own = inspect.signature(function).parameters.values()
                arrays = [of.name for of in own if of.annotation == ArrayLike]
                if arrays and len(arrays) == len(own):
                    found[f"{name}.{each}"] = (function, arrays)
    return found


def test_there_are_functions_of_arrays_to_look_at() -> None:
    assert len(functions()) > 10


@pytest.mark.parametrize("name", functions())
def test_every_function_of_arrays_refuses_texts(name: str) -> None:
    function, arrays = functions()[name]
    for wrong in arrays:
        values: dict[str, Any] = {each: "x" if each == wrong else 0.5 for each in arrays}
        with pytest.raises(SpillwayError):
            function(**values)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "x", None, [1], np.array([1.0]), True])
def test_a_layout_has_sizes(wrong: Any) -> None:
    for name in ("data_bytes", "pair_bytes", "file_bytes", "l0_files", "block_bytes"):
        sizes: dict[str, Any] = {"data_bytes": 1e9, "pair_bytes": 100, name: wrong}
        with pytest.raises(SpillwayError, match=f"^{name} must be one number"):
            Layout(**sizes)
    Layout(np.float64(1e9), np.int64(100))  # type: ignore[arg-type]


def test_costs_are_numbers() -> None:
    with pytest.raises(SpillwayError, match=r"^tau_us must be a number"):
        Costs(1, 1, "x", [1, 2])
    Costs([1, 2], 1, math.nan, np.ones(2))
