// Which records of a key-value namespace are known to be durable: for each generation, where the last one begins. Lies
// in the head of the staging file, which outlives a killed process. Without it, recovery could not tell a pair that was
// lost at the end from one that was never stored. Also up to which generation all were dropped, where a full drive did
// not store that.
//
//   slot, two of them   CRC-32C u32 | how many u32 | number u64 | dropped u64 | generation u64, offset u64 ...
//
// The slots are written alternately and the one with the higher number counts, so one of them is always whole. A loss
// of power may leave an older one: it was true then, and stays true until a generation is dropped or cut. Before a cut
// both are replaced.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "spill/store/store.h"

namespace spillway::spill {

class KvDurable {
 public:
  using Last = std::map<GenerationId, std::uint64_t>;  // offset of the last durable record of each generation

  // `memory`: kBytes of the mapped file, which outlive it. kBytes is a multiple of 8.
  static constexpr std::size_t kBytes = 3072;
  explicit KvDurable(char* memory) : memory_(memory) {}

  // What is there; nothing where neither slot fits its checksum.
  Last read() const;
  GenerationId dropped() const;
  // Adds these. What was said of the same generation and reached further stays. By any thread.
  void add(const Last& last);
  // The generation was dropped: what is said of it has no meaning any more.
  void forget(GenerationId generation);
  // All up to this one were dropped. To be called after replace().
  void drop(GenerationId generation);
  // Says this in both slots, and of generations that were dropped what was said before.
  void replace(const Last& last);

 private:
  void write(std::size_t at) REQUIRES(mutex_);

  char* const memory_;
  Mutex mutex_;
  Last said_ GUARDED_BY(mutex_);
  GenerationId said_dropped_ GUARDED_BY(mutex_) = 0;
  std::uint64_t number_ GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway::spill
