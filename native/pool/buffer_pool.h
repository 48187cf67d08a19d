// A buffer pool over a drive: pages of the drive in frames of memory, and what goes when there is no room.
//
//   miss, victim clean   evict it, read the page                              1 read
//   miss, victim dirty   write the next n_w dirty pages of the eviction       n_w writes at once, then
//                        order back, all at once; evict one; read the page    1 read
//   the same, prefetch   write back as above; evict n_e; read the page and    n_w writes at once, then
//                        the n_e - 1 pages after it                           n_e reads at once
//
// n_w = 1 without prefetch is the pool of the textbooks, which trades one write for one read. n_w = k_w spends the
// drive's write concurrency (ACE; PIO section 3, P5 and P22); n_e up to k_r spends its read concurrency (P7, P23).
// Whoever misses waits for the whole batch, as PIO's cost of alpha / k_w for each write supposes: so a batch that is
// larger than what the drive serves at once delays the read behind it by all of the rest. How a batch gets to the drive
// (from one queue, or by threads) is pool/writers.h's; a single page is read or written by the pool's own thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "pool/policy.h"
#include "pool/writers.h"

namespace spillway::pool {

using Page = std::uint64_t;

struct PoolSpec {
  std::uint32_t page_bytes =
      4096;                 // a multiple of the device's LBAs and of the processor's pages: O_DIRECT's alignment
  std::uint64_t pages = 0;  // of the drive, from its start, that can be asked for
  Frame frames = 0;
  std::uint32_t write_back = 1;  // n_w
  std::uint32_t prefetch = 0;    // n_e - 1: pages read along with a missed one; < write_back, 0 for none
  WritersKind writers = WritersKind::queue;
  HandOffTable hand_off = {};  // of threads, in virtual time

  std::uint32_t at_once() const { return std::max(write_back, prefetch + 1); }
};

// Why a pool cannot be made so on this device: names the field and the mend. Nothing: it can.
Status check(const PoolSpec& spec, const device::DeviceInfo& device);

struct PoolCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t pages_read = 0;  // prefetched ones too
  std::uint64_t pages_written = 0;
  std::uint64_t pages_prefetched = 0;
  std::uint64_t prefetched_hits = 0;  // hits that a prefetch made: first uses of what nobody had asked for
  std::uint64_t write_batches = 0;    // evictions that had to write first, and flushes
  std::uint64_t evictions = 0;
  device::Nanos write_wait_ns = 0;  // in the device's time, of the pool's caller
  device::Nanos read_wait_ns = 0;
};

class BufferPool;

// A page held in its frame: it stays there until the pin is gone. Moved, not copied. REQUIRES: the pool outlives it
class Pin {
 public:
  Pin(Pin&& other) noexcept : pool_(other.pool_), frame_(other.frame_) { other.pool_ = nullptr; }
  Pin& operator=(Pin&& other) noexcept;
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { release(); }

  // The page's content, as far as the device carries data.
  std::span<std::byte> bytes() const;
  // It was changed: it is written back before its frame is given away.
  void mark_dirty() const;

 private:
  friend class BufferPool;
  Pin(BufferPool& pool, Frame frame) : pool_(&pool), frame_(frame) {}
  void release();

  BufferPool* pool_;
  Frame frame_;
};

// One thread's, like the queue it opens. Dirty pages that were not flushed are lost with it.
class BufferPool {
 public:
  // REQUIRES: check() passed; the policy is of spec.frames frames and holds none; the writers are for spec.at_once()
  BufferPool(device::Device& device, const PoolSpec& spec, std::unique_ptr<Policy> policy,
             std::unique_ptr<Writers> writers);
  // With one queue for all, which is always to be had. REQUIRES: spec.writers is queue
  BufferPool(device::Device& device, const PoolSpec& spec, std::unique_ptr<Policy> policy);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // The page, read if it is not there. On failure nothing is lost: a page that could not be written stays dirty in its
  // frame, one that could not be read is not there. Fault::bad_input when every frame is pinned.
  // REQUIRES: page < spec.pages
  Result<Pin> fetch(Page page);

  // Writes every dirty page, write_back at a time, in the order of their places on the drive.
  Status flush();

  const PoolSpec& spec() const { return spec_; }
  const PoolCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }
  std::size_t dirty_pages() const { return dirty_; }

 private:
  friend class Pin;

  struct Slot {
    Page page = 0;
    std::uint32_t pins = 0;
    bool dirty = false;
    bool prefetched_unused = false;  // prefetched, and not used yet
  };

  Pin pin(Frame frame);
  void use(Frame frame);
  // Empty frames for a missed page, the first, and for what is prefetched along with it.
  Result<std::vector<Frame>> free_frames(Page missed);
  std::optional<Frame> victim() const;
  std::vector<Frame> next_dirty() const;
  std::vector<Page> worth_prefetching(Page missed) const;
  Status write_back(std::span<const Frame> frames);
  Status read(std::span<const Frame> frames, std::span<const Page> pages);
  // All at once, and waits for all. faults_ then holds what became of each.
  void transfer(device::Opcode op, std::span<const Frame> frames);
  void forget(Frame frame);
  bool is_evictable(Frame frame) const { return slots_[frame].pins == 0; }
  std::byte* address(Frame frame) const { return memory_ + std::size_t{frame} * spec_.page_bytes; }

  device::Device& device_;
  const PoolSpec spec_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Writers> writers_;
  std::unique_ptr<device::Queue> queue_;
  std::byte* memory_ = nullptr;  // of all frames; what is never touched takes no memory
  std::vector<Slot> slots_;
  std::vector<Frame> free_;
  std::unordered_map<Page, Frame> table_;
  std::size_t dirty_ = 0;
  PoolCounters counters_;
  std::vector<device::Io> ios_;
  std::vector<Fault> faults_;
};

}  // namespace spillway::pool
