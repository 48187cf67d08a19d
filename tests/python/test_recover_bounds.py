"""The bounds themselves: what counts as met, and what does not."""

from dataclasses import replace

import pytest

from spillway.reproduce.recover import MQSSD_BOUND, REASONS, Figure, as_markdown, mqssd_published

ALPHA = Figure("intel-p4510", "bypass", "alpha 4K", 3.0, "PIO, Table 2", 0.10)
K = Figure("intel-p4510", "bypass", "k_w 8K", 4.0, "PIO, Table 2", 0.25, is_k=True)


@pytest.mark.parametrize(
    ("found", "met"), [(2.71, True), (3.29, True), (2.69, False), (3.31, False), (float("nan"), False)]
)
def test_alpha_has_a_relative_bound(found: float, met: bool) -> None:
    assert replace(ALPHA, found=found).met is met


@pytest.mark.parametrize(
    ("found", "met"), [(3.0, True), (5.0, True), (2.9, False), (5.1, False), (float("nan"), False)]
)
def test_k_has_a_relative_bound(found: float, met: bool) -> None:
    assert replace(K, found=found).met is met


def test_one_io_more_or_less_counts_where_it_is_wider_than_the_bound() -> None:
    assert replace(K, published=1.0, found=2.0).met
    assert not replace(K, published=1.0, found=2.1).met
    assert replace(K, published=3.0, found=2.0).met
    assert not replace(K, published=200.0, found=256.0).met
    assert not replace(ALPHA, published=1.0, found=1.9).met, "only concurrencies are counted in I/Os"


def test_the_table_says_what_was_missed() -> None:
    page = as_markdown("Drives", [replace(ALPHA, found=3.0), replace(K, found=40.0)])
    assert "| intel-p4510 | bypass | alpha 4K (PIO, Table 2) | 3 | 3 | +0% | met |" in page
    assert "+900% | **missed** |" in page
    assert "1 of 2 within their bounds" in page


def test_reads_are_excused_where_threads_that_only_share_a_drive_could_not_be_as_fast() -> None:
    published = {figure.name: figure.published for figure in mqssd_published()}
    faster = {
        f"{name} k={k} us"
        for name in ("tau", "alpha", "sigma", "beta")
        for k in (2, 4, 8, 16, 32, 64, 128)
        if k * published.get(f"{name} k={k} us", float("inf")) < (1 - MQSSD_BOUND) * published[f"{name} k=1 us"]
    }
    assert faster == {figure for _, figure in REASONS} - {"beta k=2 us"}
