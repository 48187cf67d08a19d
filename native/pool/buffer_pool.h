// A buffer pool over a drive: pages of the drive in frames of memory, and the eviction of pages when all frames are in
// use.
//
//   miss, victim clean   evict it, read the page                              1 read
//   miss, victim dirty   write the next n_w dirty pages of the eviction       n_w writes at once, then
//                        order back, all at once; evict one; read the page    1 read
//   the same, prefetch   write back as above; evict n_e; read the page and    n_w writes at once, then
//                        the n_e - 1 pages after it                           n_e reads at once
//
// n_w = 1 without prefetch is the textbook's pool, which trades one write for one read. n_w = k_w uses the drive's
// write concurrency (ACE; PIO section 3, P5 and P22). n_e up to k_r uses its read concurrency (P7, P23). A miss waits
// for the whole batch, as in PIO's cost of alpha / k_w for each write. So a batch that is larger than the drive's
// concurrency delays the read after it until all of the batch is written. n_w is given, or the pool tunes it
// (pool/write_back_tuner.h, P27). pool/writers.h says how a batch gets to the drive (from one queue, or by threads).
// The pool's own thread reads or writes a single page.
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
#include "pool/counters.h"
#include "pool/policy.h"
#include "pool/write_back_tuner.h"
#include "pool/writers.h"

namespace spillway::pool {

using Page = std::uint64_t;

struct PoolSpec {
  std::uint32_t page_bytes =
      4096;                 // a multiple of the device's LBAs and of the processor's pages: O_DIRECT's alignment
  std::uint64_t pages = 0;  // pages that can be requested, from the drive's start
  Frame frames = 0;
  std::uint32_t write_back = 1;  // n_w
  std::uint32_t prefetch = 0;    // n_e - 1: pages read along with a missed one; < write_back, 0: no prefetch
  WritersKind writers = WritersKind::queue;
  HandOffTable hand_off = {};  // of threads, in virtual time

  std::uint32_t tune_most = 0;  // > 0: the pool tunes n_w by itself, from prefetch + 1 up to this, and not write_back

  std::uint32_t most_written() const { return tune_most > 0 ? tune_most : write_back; }
  std::uint32_t at_once() const { return std::max(most_written(), prefetch + 1); }
};

// OK, or why a pool with this spec cannot be made on this device, with the field and a remedy.
Status check(const PoolSpec& spec, const device::DeviceInfo& device);

class BufferPool;

// Pins a page in its frame until the pin is destroyed. Can be moved, not copied. REQUIRES: the pool outlives it
class Pin {
 public:
  Pin(Pin&& other) noexcept : pool_(other.pool_), frame_(other.frame_) { other.pool_ = nullptr; }
  Pin& operator=(Pin&& other) noexcept;
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { release(); }

  // The page's content, if the device carries data.
  std::span<std::byte> bytes() const;
  // The page was changed. It is written back before its frame is reused.
  void mark_dirty() const;

 private:
  friend class BufferPool;
  Pin(BufferPool& pool, Frame frame) : pool_(&pool), frame_(frame) {}
  void release();

  BufferPool* pool_;
  Frame frame_;
};

// Belongs to one thread, like the queue it opens. Destroying it loses dirty pages that were not flushed.
class BufferPool {
 public:
  // REQUIRES: check() passed; the policy is of spec.frames frames and holds none; the writers are for spec.at_once()
  BufferPool(device::Device& device, const PoolSpec& spec, std::unique_ptr<Policy> policy,
             std::unique_ptr<Writers> writers);
  // Uses one queue for all, which every device offers. REQUIRES: spec.writers is queue
  BufferPool(device::Device& device, const PoolSpec& spec, std::unique_ptr<Policy> policy);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // The page, read if it is not resident. A failure loses nothing: a page that could not be written stays dirty in its
  // frame, and one that could not be read is not resident. Fault::bad_input if every frame is pinned.
  // REQUIRES: page < spec.pages
  Result<Pin> fetch(Page page);

  // Writes every dirty page, write_back at a time, in the order of their addresses on the drive.
  Status flush();

  const PoolSpec& spec() const { return spec_; }
  const PoolCounters& counters() const { return counters_; }
  void reset_counters();
  // Null if n_w is given.
  const WriteBackTuner* tuner() const { return tuner_.get(); }
  std::size_t dirty_pages() const { return dirty_; }

 private:
  friend class Pin;

  struct Slot {
    Page page = 0;
    std::uint32_t pins = 0;
    bool dirty = false;
    bool prefetched_unused = false;  // prefetched and not yet requested
    bool written_back = false;       // and not changed since
  };

  Pin pin(Frame frame);
  void use(Frame frame);
  // Empty frames: the first for the missed page, the others for pages prefetched with it.
  Result<std::vector<Frame>> free_frames(Page missed);
  std::optional<Frame> victim() const;
  std::uint32_t next_batch();
  std::vector<Frame> next_dirty(std::uint32_t most) const;
  std::vector<Page> worth_prefetching(Page missed) const;
  Status write_back(std::span<const Frame> frames);
  Status read(std::span<const Frame> frames, std::span<const Page> pages);
  // Submits all together and waits for all. faults_ has the outcome of each.
  void transfer(device::Opcode op, std::span<const Frame> frames);
  void forget(Frame frame);
  bool is_evictable(Frame frame) const { return slots_[frame].pins == 0; }
  std::byte* address(Frame frame) const { return memory_ + std::size_t{frame} * spec_.page_bytes; }

  device::Device& device_;
  const PoolSpec spec_;
  std::unique_ptr<WriteBackTuner> tuner_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Writers> writers_;
  std::unique_ptr<device::Queue> queue_;
  std::byte* memory_ = nullptr;  // of all frames; untouched parts take no physical memory
  std::vector<Slot> slots_;
  std::vector<Frame> free_;
  std::unordered_map<Page, Frame> table_;
  std::size_t dirty_ = 0;
  PoolCounters counters_;
  std::vector<device::Io> ios_;
  std::vector<Fault> faults_;
};

}  // namespace spillway::pool
