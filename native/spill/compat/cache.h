// rocksdb::Cache with its functions: from RocksDB 8.0 on rocksdb/cache.h only names it.
#pragma once

#include <rocksdb/cache.h>

#if __has_include(<rocksdb/advanced_cache.h>)
#include <rocksdb/advanced_cache.h>
#endif
