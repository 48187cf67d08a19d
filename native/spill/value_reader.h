// Values of entries, wherever they lie. What a read returns is held against the checksum that the entry keeps in
// memory, whatever part of a record it is: a value is right, or the read says Corruption and where.
#pragma once

#include <rocksdb/status.h>

#include <memory>
#include <span>
#include <string>

#include "spill/generation.h"
#include "spill/store.h"

namespace spillway::spill {

class ValueReader {
 public:
  explicit ValueReader(const Store& store) : store_(&store) {}
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
};

}  // namespace spillway::spill
