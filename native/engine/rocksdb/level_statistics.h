// What RocksDB counts for each level, as statistics of an engine.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.h"

namespace spillway::engine {

// Adds for each level n that holds or held files rocksdb.level<n>.files, .bytes, .read.bytes, .written.bytes, .jobs,
// .micros and .cpu.micros: its files and bytes now, and what jobs have read for it, written into it and taken. Jobs are
// compactions into the level; of level 0, flushes too.
void add_level_statistics(rocksdb::DB& db, std::map<std::string, std::uint64_t>& figures);

// Adds the gauges level0_bytes, level1_bytes, …: the table files of each level, of the first seven.
void add_level_bytes(rocksdb::DB& db, Observation& seen);

}  // namespace spillway::engine
