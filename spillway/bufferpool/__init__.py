"""A buffer pool's throughput against the number of pages that it writes back at once."""
