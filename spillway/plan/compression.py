"""The compression that an engine uses: what a plan chooses, or the default of the engine."""

from collections.abc import Mapping

_OPTION = {"wiredtiger": "block_compressor"}
# Of engines whose default every version has. Source: their documentation.
_DEFAULT = {"leveldb": "snappy", "leveldb-vlog": "snappy", "wiredtiger": "none", "raw": "none"}


def option_of(engine: str) -> str:
    """The engine's option that chooses the compression."""
    return _OPTION.get(engine, "compression")


def algorithm(value: str) -> str:
    """The name of an algorithm. kNoCompression and none are one thing."""
    name = value.lower().removeprefix("k").removesuffix("compression")
    return "none" if name in ("no", "none", "") else name


def default_of(engine: str) -> str | None:
    """The default of every version of the engine; None: it depends on the version."""
    return _DEFAULT.get(engine)


def compression_of(engine: str, options: Mapping[str, object]) -> str | None:
    """What the engine compresses with. None: its default, which depends on the version and the build."""
    chosen = options.get(option_of(engine))
    return default_of(engine) if chosen is None else algorithm(str(chosen))
