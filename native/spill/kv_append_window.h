// Appends on their way into the drive: handed over in order on one queue, so many bytes of them at most, and readable
// from memory until the drive has them.
//
// The drive may take them in any order: records follow one another without a gap in their positions, so recovery ends
// at the first that it did not take. When one fails, it and all behind it stay here, readable, until they are stored
// again.
//
// One thread at a time appends; others read meanwhile, or wait.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "device/kv_namespace.h"
#include "spill/kv_pieces.h"
#include "spill/store.h"

namespace spillway::spill {

// What may be on its way at once, but for a single append that is larger. Enough that the drive's core has the next
// command while the host learns of the last; little, because the core serves one line: reads stand in it, and between
// as many stores as this lets in, its memtable moves one flash page nearer to flash (ssd/kv_controller.h), so that with
// much more than a page of them the memtable fills before the one before it is on flash, and stores wait for that.
// Source: guess, a page of 16 KiB and half of one.
inline constexpr std::uint64_t kWindowBytes = 24 * 1024;

class KvAppendWindow {
 public:
  KvAppendWindow(device::KvNamespace& space, std::uint32_t piece_bytes);

  // Hands the records over, and waits while there is no room for them. OK: the drive has been given them. An error:
  // it has not, because one before them failed, or because it takes no commands.
  rocksdb::Status hand_over(GenerationId generation, std::span<const rocksdb::Slice> records,
                            std::span<const std::uint64_t> offsets);
  // Until the drive has all that was handed over. The error of the first that failed.
  rocksdb::Status wait();
  // Hands over what failed and all behind it once more, and waits. REQUIRES: wait() has just failed
  rocksdb::Status store_again();
  // Lets go of what failed, and of all behind it. REQUIRES: wait() has just failed
  void give_up();

  // Answers a request from memory. False: the record is not here.
  bool read(ReadRequest& request) const;
  // What the drive will count for what is here, some of which it may count already.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_acquire); }

 private:
  struct Append;

  std::shared_ptr<const Append> find(GenerationId generation, std::uint64_t offset) const;
  rocksdb::Status submit(Append& append, std::uint64_t tag);
  void reap(std::size_t at_least);
  void let_go_of_done();
  void pop_front();

  device::KvNamespace& space_;
  const std::uint32_t piece_bytes_;

  std::mutex mutex_;  // of whoever submits or waits
  rocksdb::Status failure_;
  std::uint64_t first_ = 0;  // number of the append at the front: the tag of its commands
  std::vector<device::KvDone> reaped_;

  mutable std::shared_mutex appends_mutex_;  // of the list; whoever holds mutex_ may look without it
  std::deque<std::shared_ptr<Append>> appends_;
  std::atomic<std::uint64_t> bytes_{0};

  std::unique_ptr<device::KvQueue> queue_;  // goes first: until then what it was handed is read
};

}  // namespace spillway::spill
