// Values of entries, wherever they lie.
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
  // REQUIRES: entry.kind == Kind::put, and its generation is held
  rocksdb::Status read(const Entry& entry, std::string* value) const {
    return store_->read(entry.generation->id(), entry.value.offset, entry.value.from, entry.value.length, value);
  }
  static ReadRequest request(const Entry& entry) {
    return {entry.generation->id(), entry.value.offset, entry.value.from, entry.value.length, {}, {}};
  }
  void read_many(std::span<ReadRequest> requests) const { store_->read_many(requests); }
  std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const {
    return store_->begin_reads(requests);
  }

 private:
  const Store* store_;
};

}  // namespace spillway::spill
