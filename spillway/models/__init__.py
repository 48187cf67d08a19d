"""Models of a drive's cost: what one page, one node or one application costs, before anything is run.

Every function is pure: arrays in, arrays out, broadcast as NumPy does, units in the names. All speak of the *mean time
per page over everything that is in flight* (``page_cost_us``), so that throughput = page bytes / page cost at any
concurrency; the wall time of one of k threads is k times its pages times that.

    dam      how many pages                                               cost of a page
    pdam     and how many at once                                         cost of a cycle, P
    affine   how many pages, and whether one follows the other            set-up s, page alpha
    mqssd    all of it, reads and writes apart, as functions of k         sigma(k), beta(k), tau(k), alpha(k)
    pio      reads and writes apart, and how many of each saturate        asymmetry alpha, k_r, k_w
    btree    the node size that each of the first three asks for          theirs, records in a page
    lsm      an LSM tree in the MQSSD model                               fanout, file size, L0 files

k is the number of threads or commands in flight. r is the share of pages that are reached at random, *in percent*: of
the readings one can make of the MQSSD paper it is the only one under which its Table 2 agrees with its own text.
Source: T28; `spillway model reproduce mqssd` recomputes it.

Parameters come from measurements through `spillway.fit.curves`. A value out of range raises SpillwayError.
"""
