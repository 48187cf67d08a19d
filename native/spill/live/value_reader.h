// Values of entries, wherever they lie. What a read returns is held against the checksum that the entry keeps in
// memory, whatever part of a record it is: a value is right, or the read says Corruption and where.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/system_clock.h>

#include <memory>
#include <span>
#include <string>

#include "spill/live/generation.h"
#include "spill/store/store.h"

namespace spillway::spill {

class ValueReader {
 public:
  // `clock` is the database's, by which its deadlines go.
  explicit ValueReader(const Store& store, rocksdb::SystemClock& clock = *rocksdb::SystemClock::Default())
      : store_(&store), clock_(&clock) {}

  // Incomplete where the options let nothing be read that is not in memory, TimedOut after their deadline: as RocksDB
  // says of its tables.
  rocksdb::Status may_read(const rocksdb::ReadOptions& options) const;

  // REQUIRES of each: entry.kind == Kind::put, and its generation is held
  rocksdb::Status read(const Entry& entry, std::string* value) const;
  static ReadRequest request(const Entry& entry);
  // Makes a request, whose buffer may have been used before, one for this value.
  static void ask(const Entry& entry, ReadRequest* request);

  // As the store's, for requests made here.
  void read_many(std::span<ReadRequest> requests) const;
  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const;

 private:
  const Store* store_;
  rocksdb::SystemClock* clock_;
};

}  // namespace spillway::spill
