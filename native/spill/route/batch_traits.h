// What a batch asks of the spill store.
#pragma once

#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include "spill/live/live_set.h"

namespace spillway::spill {

struct BatchTraits {
  bool must_divert = false;  // the newest version of a key of it is in the spill store, or may be: a range is deleted
  bool has_merge = false;    // a merge is worked out when it is diverted, which costs a read
  rocksdb::Status unsupported;  // NotSupported, by name, of an operation that cannot be diverted
};
BatchTraits classify(const rocksdb::WriteBatch& batch, const LiveSet& live);

}  // namespace spillway::spill
