"""The affine model: a set-up cost for going somewhere, then a cost per page (M3).

    cost of a run of N records = s + alpha N / B
    page_cost                  = alpha + p s,   p = r / 100                    (MQSSD eq 3, corrected)
    throughput                 = B / (alpha + p s)

    s      set-up of a random access, us       alpha  transfer of one page, us
    r      share of pages reached at random, percent

Eq 3 as printed adds two throughputs, N/(s r) + B/beta, so that more random accesses than none make the drive faster;
the costs are what adds (T28). T1: section 2.2 says s << alpha and means s >> alpha; a hard disk has
s of about 100 alpha (Bender et al. 2019, as cited in MQSSD section 2.1.3).

Source: Ruemmler and Wilkes 1994, as stated in MQSSD section 2.1.3. Holds for one access at a time. Ignores concurrency.
"""

from numpy.typing import ArrayLike

from spillway.models.arrays import Array, percent, quantity


def run_cost_us(pages: ArrayLike, setup_us: ArrayLike, page_us: ArrayLike) -> Array:
    """One random access and ``pages`` pages in a row from there. Broadcasts (M3)."""
    pages_ = quantity("pages", pages, above=False)
    return quantity("setup_us", setup_us, above=False) + quantity("page_us", page_us) * pages_


def page_cost_us(r_percent: ArrayLike, k: ArrayLike, setup_us: ArrayLike, page_us: ArrayLike) -> Array:
    """Mean time per page with ``r_percent`` of the pages reached at random, whatever k is. Broadcasts."""
    random_share = percent("r_percent", r_percent)
    cost = quantity("page_us", page_us) + random_share * quantity("setup_us", setup_us, above=False)
    return cost + 0 * quantity("k", k)
