"""store.c in Python, which links RocksDB's shared library and knows nothing of Spillway.

LD_PRELOAD=librocksdb-spillway.so python3 store.py DATABASE 'env=spillway://preset:quickstart,pacing:off' 10000
"""

import ctypes
import ctypes.util
import sys
from typing import Any

VALUE = b"v" * 400
try:
    ROCKSDB = ctypes.CDLL("librocksdb.so")  # where LD_LIBRARY_PATH says, before the system's
except OSError:
    ROCKSDB = ctypes.CDLL(ctypes.util.find_library("rocksdb"))
for name in ("rocksdb_options_create", "rocksdb_writeoptions_create", "rocksdb_readoptions_create", "rocksdb_open"):
    getattr(ROCKSDB, name).restype = ctypes.c_void_p
ROCKSDB.rocksdb_flushoptions_create.restype = ctypes.c_void_p
ROCKSDB.rocksdb_get.restype = ctypes.POINTER(ctypes.c_char)


def call(name: str, *words: Any) -> Any:
    """Calls a function whose last argument is a message; exits with the message if there is one."""
    message = ctypes.c_char_p()
    result = getattr(ROCKSDB, name)(*words, ctypes.byref(message))
    if message.value is not None:
        sys.exit(f"{name}: {message.value.decode()}")
    return result


def opened(path: str, option_string: str) -> ctypes.c_void_p:
    """A database with RocksDB's option string."""
    defaults = ctypes.c_void_p(ROCKSDB.rocksdb_options_create())
    options = ctypes.c_void_p(ROCKSDB.rocksdb_options_create())
    call("rocksdb_get_options_from_string", defaults, option_string.encode(), options)
    ROCKSDB.rocksdb_options_set_create_if_missing(options, ctypes.c_ubyte(1))
    return ctypes.c_void_p(call("rocksdb_open", options, path.encode()))


def put(db: ctypes.c_void_p, count: int) -> None:
    """Puts `count` keys and flushes."""
    options = ctypes.c_void_p(ROCKSDB.rocksdb_writeoptions_create())
    for key in (b"key%08d" % i for i in range(count)):
        call("rocksdb_put", db, options, key, ctypes.c_size_t(len(key)), VALUE, ctypes.c_size_t(len(VALUE)))
    call("rocksdb_flush", db, ctypes.c_void_p(ROCKSDB.rocksdb_flushoptions_create()))


def found(db: ctypes.c_void_p, count: int) -> int:
    """How many of the keys have their value."""
    options = ctypes.c_void_p(ROCKSDB.rocksdb_readoptions_create())
    right = 0
    for key in (b"key%08d" % i for i in range(count)):
        size = ctypes.c_size_t()
        value = call("rocksdb_get", db, options, key, ctypes.c_size_t(len(key)), ctypes.byref(size))
        right += bool(value) and ctypes.string_at(value, size.value) == VALUE
        ROCKSDB.rocksdb_free(value)
    return right


def main() -> None:
    """Puts the keys and reads them back."""
    if len(sys.argv) != 4:
        sys.exit("usage: store.py DATABASE OPTIONS COUNT")
    count = int(sys.argv[3])
    db = opened(sys.argv[1], sys.argv[2])
    put(db, count)
    right = found(db, count)
    sys.stdout.write(f"{right} of {count} keys\n")
    ROCKSDB.rocksdb_close(db)
    sys.exit(right != count)


main()
