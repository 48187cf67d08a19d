#include "pool/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace spillway::pool {
namespace {

constexpr std::uint32_t kAlignment = 4096;  // of frames in memory: the processor's page size

Status not_done(device::Opcode op, Page page, Fault fault) {
  const std::string what = op == device::Opcode::read ? "read" : "written";
  const std::string why = fault == Fault::drive_full
                              ? "the drive has no clean erase block left; raise capacity.spare_factor or lower "
                                "initial.fill"
                              : "the drive failed";
  return Status::error(fault, "page " + std::to_string(page) + " could not be " + what + ": " + why);
}

}  // namespace

Status check(const PoolSpec& spec, const device::DeviceInfo& device) {
  if (spec.page_bytes == 0 || spec.page_bytes % device.lba_bytes != 0 ||
      (device.carries_data && spec.page_bytes % kAlignment != 0)) {
    const std::uint32_t unit = device.carries_data ? std::max(kAlignment, device.lba_bytes) : device.lba_bytes;
    return Status::bad_input("pool.page_bytes is " + std::to_string(spec.page_bytes) + "; on this target it takes a " +
                             "multiple of " + std::to_string(unit));
  }
  if (spec.pages == 0 || spec.pages > device.capacity_bytes / spec.page_bytes) {
    return Status::bad_input("workload.pages is " + std::to_string(spec.pages) + "; the target has " +
                             std::to_string(device.capacity_bytes / spec.page_bytes) + " pages of " +
                             std::to_string(spec.page_bytes) + " bytes, and one is the least");
  }
  if (spec.frames == 0 || spec.write_back == 0) {
    return Status::bad_input(std::string(spec.frames == 0 ? "pool.pages" : "pool.write_back") +
                             " is 0; it takes at least 1");
  }
  const std::uint32_t most = spec.most_written();
  const std::string key = spec.tune_most > 0 ? "pool.tune.most" : "pool.write_back";
  const std::string is = key + " is " + std::to_string(most);
  if (most > spec.frames) {
    return Status::bad_input(is + " and pool.pages " + std::to_string(spec.frames) +
                             "; a pool writes back at most all of its pages at once");
  }
  if (spec.prefetch > 0 && spec.prefetch >= most) {
    return Status::bad_input("pool.prefetch is " + std::to_string(spec.prefetch) + " and " + key + " " +
                             std::to_string(most) +
                             "; room for prefetched pages comes from those written back, so it takes less than that");
  }
  if (spec.writers != WritersKind::queue && spec.at_once() > kMostWriterThreads) {
    return Status::bad_input(is + "; with pool.writers " + name_of(spec.writers) + " it takes at most " +
                             std::to_string(kMostWriterThreads));
  }
  return {};
}

// --- Pins

Pin& Pin::operator=(Pin&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  frame_ = other.frame_;
  return *this;
}

std::span<std::byte> Pin::bytes() const { return {pool_->address(frame_), pool_->spec_.page_bytes}; }

void Pin::mark_dirty() const {
  BufferPool::Slot& slot = pool_->slots_[frame_];
  if (!slot.dirty) ++pool_->dirty_;
  if (slot.written_back) ++pool_->counters_.pages_written_in_vain;
  slot.written_back = false;
  slot.dirty = true;
}

void Pin::release() {
  if (pool_ == nullptr) return;
  assert(pool_->slots_[frame_].pins > 0);
  --pool_->slots_[frame_].pins;
  pool_ = nullptr;
}

// --- The pool

BufferPool::BufferPool(device::Device& device, const PoolSpec& spec, std::unique_ptr<Policy> policy)
    : BufferPool(device, spec, std::move(policy),
                 std::move(*make_writers(device, WritersKind::queue, spec.at_once(), {}))) {}

BufferPool::BufferPool(device::Device& device, const PoolSpec& spec, std::unique_ptr<Policy> policy,
                       std::unique_ptr<Writers> writers)
    : device_(device),
      spec_(spec),
      tuner_(spec.tune_most > 0 ? std::make_unique<WriteBackTuner>(spec.prefetch + 1, spec.tune_most) : nullptr),
      policy_(std::move(policy)),
      writers_(std::move(writers)),
      queue_(device.open_queue()),
      slots_(spec.frames) {
  assert(check(spec, device.info()));
  const std::size_t bytes = std::size_t{spec_.frames} * spec_.page_bytes;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  table_.reserve(spec_.frames);
  for (Frame frame = spec_.frames; frame > 0; --frame) free_.push_back(frame - 1);
}

BufferPool::~BufferPool() {
  assert(std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.pins == 0; }));
  // The writers wait for I/Os in flight, which use this memory.
  writers_.reset();
  queue_.reset();
  munmap(memory_, std::size_t{spec_.frames} * spec_.page_bytes);
}

Result<Pin> BufferPool::fetch(Page page) {
  assert(page < spec_.pages);
  if (const auto found = table_.find(page); found != table_.end()) {
    ++counters_.hits;
    use(found->second);
    return pin(found->second);
  }
  ++counters_.misses;
  auto room = free_frames(page);
  if (!room) return room.status();
  std::vector<Page> pages = {page};
  if (room->size() > 1) {
    for (const Page next : worth_prefetching(page)) pages.push_back(next);
  }
  // If most of the pool is pinned, there may be fewer frames than pages.
  pages.resize(std::min(pages.size(), room->size()));
  if (Status status = read(std::span(*room).first(pages.size()), pages); !status) return status;
  return pin(room->front());
}

Pin BufferPool::pin(Frame frame) {
  ++slots_[frame].pins;
  return {*this, frame};
}

void BufferPool::use(Frame frame) {
  Slot& slot = slots_[frame];
  if (slot.prefetched_unused) ++counters_.prefetched_hits;
  slot.prefetched_unused = false;
  policy_->used(frame);
}

Result<std::vector<Frame>> BufferPool::free_frames(Page missed) {
  if (!free_.empty()) {
    const Frame frame = free_.back();
    free_.pop_back();
    return std::vector<Frame>{frame};
  }
  const auto first = victim();
  if (!first) {
    return Status::bad_input("all " + std::to_string(spec_.frames) + " pages of the pool are pinned; make it larger");
  }
  std::size_t wanted = 1;
  if (slots_[*first].dirty) {
    if (Status status = write_back(next_dirty(next_batch())); !status) return status;
    wanted += worth_prefetching(missed).size();
  }
  std::vector<Frame> room;
  while (room.size() < wanted) {
    const auto frame = policy_->evict([this](Frame each) { return is_evictable(each); });
    if (!frame) break;
    // All frames before it in the order are evicted. Of those up to it at most `wanted` were dirty, and all of them are
    // written.
    assert(!slots_[*frame].dirty);
    forget(*frame);
    ++counters_.evictions;
    room.push_back(*frame);
  }
  return room;
}

std::optional<Frame> BufferPool::victim() const {
  std::optional<Frame> found;
  policy_->visit_in_order([&](Frame frame) {
    if (is_evictable(frame)) found = frame;
    return !found;
  });
  return found;
}

void BufferPool::reset_counters() {
  counters_ = {};
  if (tuner_) tuner_->restart_epoch();
}

std::uint32_t BufferPool::next_batch() { return tuner_ ? tuner_->next(counters_) : spec_.write_back; }

std::vector<Frame> BufferPool::next_dirty(std::uint32_t most) const {
  std::vector<Frame> found;
  const std::size_t wanted = std::min<std::size_t>(most, dirty_);
  policy_->visit_in_order([&](Frame frame) {
    if (slots_[frame].dirty && is_evictable(frame)) found.push_back(frame);
    return found.size() < wanted;
  });
  return found;
}

std::vector<Page> BufferPool::worth_prefetching(Page missed) const {
  std::vector<Page> found;
  for (Page page = missed + 1; page <= missed + spec_.prefetch && page < spec_.pages; ++page) {
    if (!table_.contains(page)) found.push_back(page);
  }
  return found;
}

void BufferPool::forget(Frame frame) {
  table_.erase(slots_[frame].page);
  slots_[frame] = {};
}

Status BufferPool::flush() {
  std::vector<Frame> dirty;
  for (Frame frame = 0; frame < spec_.frames; ++frame) {
    if (slots_[frame].dirty) dirty.push_back(frame);
  }
  std::sort(dirty.begin(), dirty.end(), [this](Frame a, Frame b) { return slots_[a].page < slots_[b].page; });
  const std::size_t at_once = tuner_ ? tuner_->held() : spec_.write_back;
  for (std::size_t first = 0; first < dirty.size(); first += at_once) {
    const std::size_t count = std::min(at_once, dirty.size() - first);
    if (Status status = write_back(std::span(dirty).subspan(first, count)); !status) return status;
  }
  return {};
}

// --- To the drive and back

Status BufferPool::write_back(std::span<const Frame> frames) {
  const device::Nanos began = device_.now();
  transfer(device::Opcode::write, frames);
  counters_.write_wait_ns += device_.now() - began;
  ++counters_.write_batches;
  Status status;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    Slot& slot = slots_[frames[i]];
    if (faults_[i] != Fault::none) {
      if (status) status = not_done(device::Opcode::write, slot.page, faults_[i]);
      continue;
    }
    slot.dirty = false;
    slot.written_back = true;
    --dirty_;
    ++counters_.pages_written;
  }
  return status;
}

Status BufferPool::read(std::span<const Frame> frames, std::span<const Page> pages) {
  for (std::size_t i = 0; i < frames.size(); ++i) slots_[frames[i]].page = pages[i];
  const device::Nanos began = device_.now();
  transfer(device::Opcode::read, frames);
  counters_.read_wait_ns += device_.now() - began;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (faults_[i] != Fault::none) {
      free_.push_back(frames[i]);
      continue;
    }
    const bool asked = i == 0;
    slots_[frames[i]].prefetched_unused = !asked;
    table_[pages[i]] = frames[i];
    policy_->loaded(frames[i], asked ? Arrival::demanded : Arrival::prefetched);
    ++counters_.pages_read;
    if (!asked) ++counters_.pages_prefetched;
  }
  // A failed read of a prefetched page is not an error: the page is read again if it is requested.
  if (faults_.front() != Fault::none) return not_done(device::Opcode::read, pages.front(), faults_.front());
  return {};
}

void BufferPool::transfer(device::Opcode op, std::span<const Frame> frames) {
  ios_.clear();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    device::Io io;
    io.tag = i;
    io.op = op;
    io.offset_bytes = slots_[frames[i]].page * spec_.page_bytes;
    io.length_bytes = spec_.page_bytes;
    io.data = address(frames[i]);
    ios_.push_back(io);
  }
  faults_.assign(frames.size(), Fault::none);
  if (ios_.size() > 1) {
    writers_->transfer(ios_, faults_);
    return;
  }
  const auto done = device::run(*queue_, ios_.front());
  faults_.front() = done ? done.value().fault : done.status().fault();
}

}  // namespace spillway::pool
