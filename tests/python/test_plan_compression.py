"""What an engine compresses with, as far as its name and its options say."""

import pytest

from spillway.plan.compression import compression_of


@pytest.mark.parametrize(
    ("engine", "options", "compression"),
    [
        ("rocksdb", {"compression": "kLZ4Compression"}, "lz4"),
        ("spillway", {"compression": "kNoCompression"}, "none"),
        ("rocksdb", {}, None),  # the native side knows its build's default
        ("leveldb", {}, "snappy"),
        ("wiredtiger", {"block_compressor": "zstd", "compression": "kLZ4Compression"}, "zstd"),
        ("raw", {}, "none"),
    ],
)
def test_options_come_before_the_engines_default(engine: str, options: dict[str, str], compression: str | None) -> None:
    assert compression_of(engine, options) == compression
