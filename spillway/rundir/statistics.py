"""Which statistics of a spill store are counts, so that intervals add up.

Made by `make docs` from native/spill/include/spillway/statistics.h, which says what each of them is.
"""

SPILL_COUNTS = (
    "diverted_writes",
    "diverted_bytes",
    "main_writes",
    "waits",
    "wait_us",
    "stalls_diverted",
    "last_resort",
    "ordering_syncs",
    "ordering_marks",
    "rolled_back_entries",
    "rolled_back_bytes",
    "rollbacks_by_ingest",
    "rollbacks_by_put",
    "rollback_us",
    "rollback_failures",
)
