"""Requests as JSON lines: what JSON has not is refused with its key, NumPy's numbers are taken."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spillway.errors import SpillwayError
from spillway.native.lines import encoded


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), Path("x"), object(), {1, 2}, 1j,
                                   np.ones(2), b"x"], ids=lambda each: type(each).__name__)  # fmt: skip
def test_a_value_that_json_has_not_is_named(value: Any) -> None:
    for request, key in (
        ({"tree": {"fanout": value}}, "tree.fanout"),
        ({"queries": [{"operations": 1}, {"threads": value}]}, "queries[1].threads"),
        ({"seed": value}, "seed"),
    ):
        with pytest.raises(SpillwayError) as refused:
            encoded(request)
        assert str(refused.value).startswith(f"{key} is ") and "\n" not in str(refused.value)


def test_numbers_of_numpy_are_as_pythons() -> None:
    of_numpy = {"a": np.int64(2**40), "b": np.float32(0.5), "c": np.bool_(True), "d": [np.uint8(1), np.array(3)]}
    assert json.loads(encoded(of_numpy)) == {"a": 2**40, "b": 0.5, "c": True, "d": [1, 3]}
    assert encoded({"a": "µ"}).endswith(b"}\n")
