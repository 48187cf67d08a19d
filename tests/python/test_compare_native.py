"""The claims of docs/COMPARED.md, held on a few presets that are quick to measure, with the real probe."""

import pytest

from spillway.native.process import converse
from spillway.profile import compare, estimate, grids, mixes, parse_target
from spillway.profile.document import Profile
from spillway.profile.points import PAGE_BYTES
from spillway.profile.prober import Prober, VirtualPace
from spillway.profile.target import scaled

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("real_native")]

K, R_PERCENTS = (1, 2, 4, 8, 16, 32, 64), (0.1, 1.0, 10.0, 100.0)  # as few as eq 6 can be drawn through
PIO_K = (1, 4, 16, 64)


def profiled(preset: str, *, mixed: bool = False) -> Profile:
    """What of a profile the models need: MQSSD's accesses and PIO's knees, or the mixes."""
    target = parse_target(f"preset:{preset}")
    small = scaled(target)
    with converse("probe") as conversation:
        pace = VirtualPace(small.cache_bytes, small.superblock_bytes)
        prober = Prober(conversation, target.request(1, "steady", small.settings), pace)
        if mixed:
            mixes.measure(prober, target.fill)
        else:
            for point in grids.pio_random(estimate.OPS, [PAGE_BYTES], PIO_K):
                prober.measure(point)
            for op in estimate.OPS:
                for k in K:
                    if op == "write":
                        prober.refill(target.fill)
                    for point in grids.mqssd(op, k, R_PERCENTS):
                        prober.measure(point)
        conversation.end()
        samples = prober.samples
    pio = estimate.pio(samples, PAGE_BYTES)
    return Profile({"name": preset, "words": preset}, {}, {}, {PAGE_BYTES: pio} if pio else {}, {}, samples)


@pytest.mark.parametrize("preset", ["samsung-990-pro", "intel-s4610"])
@pytest.mark.long
def test_mqssd_is_nearer_than_each_model_of_the_papers_and_within_a_tenth(preset: str) -> None:
    medians = compare.medians(compare.compare(profiled(preset)))
    assert set(medians) == {"DAM", "PDAM", "Affine", "PIO", "MQSSD"}
    assert medians["MQSSD"]["all"] <= 0.10
    assert all(medians["MQSSD"]["all"] < of["all"] for name, of in medians.items() if name != "MQSSD")


def test_mixes_and_fills_of_a_preset_held_out_of_the_fit_are_predicted() -> None:
    measured = profiled("sandisk-ssd-plus", mixed=True)
    assert measured.name not in mixes.TRAINING
    known = mixes.known_of(measured)
    made = mixes.predictions(known)
    fills = {fill: made.fill == fill for fill in (0.5, 0.75, 1.0)}
    for at in fills.values():
        assert at.any()
    assert float(sum(made.errors <= 0.15)) > 0.5 * made.errors.size, "the median is within 15 %"
    assert float(sum(made.plain_errors <= 0.15)) < 0.5 * made.errors.size, "plain MQSSD's is not"
    # The fill's term by itself: where the drive is not full, predictions fail without it.
    without = mixes.predictions(known, collection=False)
    for fill in (0.5, 0.75):
        assert float(sum(made.errors[fills[fill]] <= 0.15)) > 0.5 * fills[fill].sum()
        assert float(sum(without.errors[fills[fill]] <= 0.15)) < 0.5 * fills[fill].sum()
    # And pure writes of a fill that the model was not given.
    assert mixes.write_fill_errors(measured).max() <= 0.15
