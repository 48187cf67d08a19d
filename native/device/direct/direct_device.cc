#include "device/direct/direct_device.h"

#include <liburing.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "device/real_time.h"
#include "ssd/structures/random.h"

namespace spillway::device {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::string reason(int error) { return std::strerror(error); }

// Completions are processed when this thread reaps, and interrupt nothing (Linux 6.1; 5.19 without the last two). Older
// kernels refuse unknown flags. fio uses the same flags, so results are comparable.
constexpr std::array<unsigned, 3> kRingFlags = {
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN, 0};

// The memory of a queue's ios: contiguous, so that it is registered as one buffer.
class Buffers {
 public:
  Buffers(std::uint32_t count, std::uint64_t io_bytes, std::uint64_t seed)
      : stride_((io_bytes + kPageBytes - 1) / kPageBytes * kPageBytes), bytes_(stride_ * count), stamp_(seed) {
    if (bytes_ == 0) return;
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<std::uint64_t*>(memory);
    ssd::Random random(seed);
    for (std::uint64_t i = 0; i < bytes_ / sizeof(std::uint64_t); ++i) memory_[i] = random.next();
  }
  ~Buffers() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  bool are_there() const { return bytes_ == 0 || memory_ != nullptr; }
  iovec whole() const { return {.iov_base = memory_, .iov_len = bytes_}; }
  void* at(std::uint32_t slot) { return memory_ + slot * stride_ / sizeof(std::uint64_t); }

  // Writes a number that is not repeated into each 4 KiB, so that drives that deduplicate find no duplicates.
  void stamp(std::uint32_t slot, std::uint64_t length) {
    auto* const words = static_cast<std::uint64_t*>(at(slot));
    for (std::uint64_t i = 0; i < length / sizeof(std::uint64_t); i += kPageBytes / sizeof(std::uint64_t)) {
      words[i] = ++stamp_;
    }
  }

 private:
  const std::uint64_t stride_;
  const std::uint64_t bytes_;
  std::uint64_t* memory_ = nullptr;
  std::uint64_t stamp_;
};

class DirectDevice final : public Device {
 public:
  DirectDevice(const DirectFile& file, const DirectQueues& queues) : file_(file), queues_(queues) {
    info_.name = file.path();
    info_.capacity_bytes = file.size_bytes();
    info_.lba_bytes = file.lba_bytes();
    info_.carries_data = true;
  }

  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Queue> open_queue() override;
  Nanos now() override { return real_now(); }

  ssd::Counters counters() override {
    ssd::Counters counters;
    counters.host_reads = reads_.load(std::memory_order_relaxed);
    counters.host_writes = writes_.load(std::memory_order_relaxed);
    counters.host_bytes_read = bytes_read_.load(std::memory_order_relaxed);
    counters.host_bytes_written = bytes_written_.load(std::memory_order_relaxed);
    return counters;
  }

  const DirectFile& file() const { return file_; }
  const DirectQueues& queues() const { return queues_; }

  Status check(std::span<const Io> ios, std::size_t pending) const {
    if (pending + ios.size() > queues_.depth) return Status::io_error("more ios than the queue is deep");
    for (const Io& io : ios) {
      const bool has_bytes = io.op == Opcode::read || io.op == Opcode::write;
      if (!has_bytes)
        return Status::error(Fault::not_supported, file_.path() + ": only reads and writes are passed on");
      if (io.op == Opcode::write && !file_.writable()) return Status::io_error(file_.path() + ": opened for reading");
      if (io.data == nullptr && io.length_bytes > queues_.io_bytes) {
        return Status::io_error("the io is longer than the queue's buffers");
      }
      if (io.offset_bytes + io.length_bytes > file_.size_bytes()) {
        return Status::io_error(file_.path() + ": the io reaches beyond its end");
      }
    }
    return {};
  }

  void count(const Io& io) {
    const bool is_read = io.op == Opcode::read;
    (is_read ? reads_ : writes_).fetch_add(1, std::memory_order_relaxed);
    (is_read ? bytes_read_ : bytes_written_).fetch_add(io.length_bytes, std::memory_order_relaxed);
  }

 private:
  const DirectFile& file_;
  const DirectQueues queues_;
  DeviceInfo info_;
  std::atomic<std::uint64_t> next_queue_{1};
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> writes_{0};
  std::atomic<std::uint64_t> bytes_read_{0};
  std::atomic<std::uint64_t> bytes_written_{0};
};

// The common part of the queues: checks, slots with their buffers, counts.
class DirectQueue : public Queue {
 public:
  DirectQueue(DirectDevice& device, std::uint64_t seed)
      : device_(device),
        slots_(device.queues().depth),
        buffers_(device.queues().depth, device.queues().io_bytes, seed) {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
    if (!buffers_.are_there()) {
      unusable_ = Status::io_error("not enough memory for the buffers; lower iodepth, numjobs or bs_bytes");
    }
  }
  std::size_t pending() const override { return slots_.size() - free_.size(); }

 protected:
  struct Slot {
    Io io;
    Nanos submitted = 0;
  };

  Status check(std::span<const Io> ios) const { return unusable_ ? device_.check(ios, pending()) : unusable_; }

  // REQUIRES: check() passed
  std::uint32_t take(const Io& io, Nanos now) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot] = {io, now};
    if (io.data == nullptr) {
      slots_[slot].io.data = buffers_.at(slot);
      if (io.op == Opcode::write) buffers_.stamp(slot, io.length_bytes);
    }
    device_.count(io);
    return slot;
  }

  Done give_back(std::uint32_t slot, Nanos now, std::int64_t moved_bytes) {
    const Slot& one = slots_[slot];
    free_.push_back(slot);
    // All of it is within the target, so a read or write that moved less has met a defect.
    const bool whole = moved_bytes == static_cast<std::int64_t>(one.io.length_bytes);
    return {one.io.tag, one.submitted, now, whole ? Fault::none : Fault::io_error};
  }

  DirectDevice& device_;  // used by the derived queues
  std::vector<Slot> slots_;
  Buffers buffers_;
  Status unusable_;  // why the queue cannot be used

 private:
  std::vector<std::uint32_t> free_;
};

class UringQueue final : public DirectQueue {
 public:
  UringQueue(DirectDevice& device, std::uint64_t seed) : DirectQueue(device, seed) {
    if (!unusable_) return;
    int error = -EINVAL;
    for (const unsigned flags : kRingFlags) {
      if (error == -EINVAL) error = io_uring_queue_init(device.queues().depth, &ring_, flags);
    }
    if (error != 0) {
      unusable_ =
          Status::io_error("io_uring cannot be had (" + reason(-error) + "); lower iodepth, or take engine sync");
      return;
    }
    has_ring_ = true;
    const int fd = device.file().fd();
    has_file_ = io_uring_register_files(&ring_, &fd, 1) == 0;
    // Registered memory is locked, which ulimit -l limits. Without it the kernel maps each io's buffer again.
    const iovec whole = buffers_.whole();
    has_buffers_ = whole.iov_len > 0 && io_uring_register_buffers(&ring_, &whole, 1) == 0;
  }

  ~UringQueue() override {
    if (!has_ring_) return;
    std::vector<Done> rest(pending());
    if (pending() > 0) reap(rest, pending());
    io_uring_queue_exit(&ring_);
  }

  Status submit(std::span<const Io> ios) override {
    if (Status status = check(ios); !status) return status;
    const Nanos now = real_now();
    for (const Io& io : ios) prepare(io, take(io, now));
    while (io_uring_sq_ready(&ring_) > 0) {
      const int taken = io_uring_submit_and_get_events(&ring_);  // also processes completions
      if (taken >= 0 || taken == -EINTR || taken == -EAGAIN || taken == -EBUSY) continue;
      return Status::io_error("io_uring takes no ios: " + reason(-taken));
    }
    return {};
  }

  std::size_t reap(std::span<Done> done, std::size_t at_least) override {
    assert(at_least <= pending() && at_least <= done.size());
    while (io_uring_cq_ready(&ring_) < at_least) {
      io_uring_cqe* first = nullptr;
      io_uring_wait_cqe_nr(&ring_, &first, static_cast<unsigned>(at_least));
    }
    if (at_least == 0 && io_uring_cq_ready(&ring_) == 0) io_uring_get_events(&ring_);
    const Nanos now = real_now();
    std::size_t count = 0;
    io_uring_cqe* one = nullptr;
    unsigned head = 0;
    io_uring_for_each_cqe(&ring_, head, one) {
      if (count == done.size()) break;
      done[count++] = give_back(static_cast<std::uint32_t>(io_uring_cqe_get_data64(one)), now, one->res);
    }
    io_uring_cq_advance(&ring_, static_cast<unsigned>(count));
    return count;
  }

 private:
  void prepare(const Io& io, std::uint32_t slot) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    assert(entry != nullptr && "the ring has an entry for each slot");
    const int file = has_file_ ? 0 : device_.file().fd();
    void* const data = slots_[slot].io.data;
    const auto length = static_cast<unsigned>(io.length_bytes);
    const bool fixed = has_buffers_ && io.data == nullptr;
    if (io.op == Opcode::read) {
      fixed ? io_uring_prep_read_fixed(entry, file, data, length, io.offset_bytes, 0)
            : io_uring_prep_read(entry, file, data, length, io.offset_bytes);
    } else {
      fixed ? io_uring_prep_write_fixed(entry, file, data, length, io.offset_bytes, 0)
            : io_uring_prep_write(entry, file, data, length, io.offset_bytes);
    }
    if (has_file_) io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(entry, slot);
  }

  io_uring ring_{};
  bool has_ring_ = false;
  bool has_file_ = false;     // registered
  bool has_buffers_ = false;  // registered
};

// The io is executed during the wait for it.
class SyncQueue final : public DirectQueue {
 public:
  using DirectQueue::DirectQueue;

  Status submit(std::span<const Io> ios) override {
    if (Status status = check(ios); !status) return status;
    for (const Io& io : ios) waiting_.push_back(take(io, 0));
    return {};
  }

  std::size_t reap(std::span<Done> done, std::size_t at_least) override {
    assert(at_least <= pending() && at_least <= done.size());
    const std::size_t count = std::min(std::max<std::size_t>(at_least, 1), std::min(done.size(), waiting_.size()));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t slot = waiting_.front();
      waiting_.pop_front();
      slots_[slot].submitted = real_now();
      const std::int64_t moved = move_bytes(slots_[slot].io);
      done[i] = give_back(slot, real_now(), moved);
    }
    return count;
  }

 private:
  std::int64_t move_bytes(const Io& io) const {
    const int fd = device_.file().fd();
    const auto offset = static_cast<off_t>(io.offset_bytes);
    ssize_t moved = 0;
    do {
      moved = io.op == Opcode::read ? pread(fd, io.data, io.length_bytes, offset)
                                    : pwrite(fd, io.data, io.length_bytes, offset);
    } while (moved < 0 && errno == EINTR);
    return moved;
  }

  std::deque<std::uint32_t> waiting_;
};

std::unique_ptr<Queue> DirectDevice::open_queue() {
  const std::uint64_t seed = ssd::mix(static_cast<std::uint64_t>(real_now()) + next_queue_.fetch_add(1));
  if (queues_.io_uring) return std::make_unique<UringQueue>(*this, seed);
  return std::make_unique<SyncQueue>(*this, seed);
}

}  // namespace

bool io_uring_is_there() {
  io_uring ring{};
  if (io_uring_queue_init(1, &ring, 0) != 0) return false;
  io_uring_queue_exit(&ring);
  return true;
}

std::unique_ptr<Device> make_direct(const DirectFile& file, const DirectQueues& queues) {
  return std::make_unique<DirectDevice>(file, queues);
}

}  // namespace spillway::device
