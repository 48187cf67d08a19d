// Where each generation of a key-value namespace ends, as far as this process knows.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "spill/store/kv/kv_durable.h"
#include "spill/store/kv/kv_pairs.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Thread-safe.
class KvEnds {
 public:
  // A pair, or a record, was found by recovery.
  void add_pair(Position position);
  void add_record(Position position);
  // Records were appended, the last of which begins at `last`; the generation ends at `end`.
  void append(GenerationId generation, std::uint64_t last, std::uint64_t end);

  // Where the last record of each generation begins.
  KvDurable::Last last_records() const;
  // Nothing from `from` on is there any more: neither the ends of later generations, nor their records. The second says
  // whether there were any.
  void cut_ends(Position from);
  bool cut_records(Position from);
  // Whether it is the oldest generation after `dropped` that has a record.
  bool is_oldest(GenerationId generation, GenerationId dropped) const;
  // The generation was dropped: its last record is forgotten.
  void drop(GenerationId generation);
  // The generation is released: its end, of which nothing is known any more; 0: there was none.
  std::uint64_t release(GenerationId generation);
  // Bytes of the generations up to this one.
  std::uint64_t bytes_to(GenerationId dropped) const;

 private:
  mutable Mutex mutex_;
  // Where the last record of each ends, or its last pair begins.
  std::map<GenerationId, std::uint64_t> ends_ GUARDED_BY(mutex_);
  KvDurable::Last last_ GUARDED_BY(mutex_);
};

}  // namespace spillway::spill
