// Which records of a key-value namespace were known to be on the drive: for each generation, where the last one begins.
// In the head of the staging file, which outlives a killed process; without it, a pair that is missing at the end might
// never have been there. And up to which generation all were dropped, where a full drive did not take that.
//
//   slot, two of them   CRC-32C u32 | how many u32 | number u64 | dropped u64 | generation u64, offset u64 ...
//
// They are written in turns, and the one with the higher number counts, so that one of them is always whole. A loss of
// power may leave an older one: what it says was true then, and stays true until a generation is dropped or cut. Before
// a cut both are replaced.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "spill/store/store.h"

namespace spillway::spill {

class KvDurable {
 public:
  using Last = std::map<GenerationId, std::uint64_t>;  // offset of the last durable record of each generation

  // `memory`: so many bytes of the mapped file, which outlive it. A multiple of 8.
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
