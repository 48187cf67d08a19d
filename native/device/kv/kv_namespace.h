// A key-value namespace of an emulated drive, with contents. Commands have the names, limits and status codes of the
// NVMe key-value command set and of vendor extensions to it: batch store, iterate, bulk scan, reset; and where the
// drive's preset has them (Info), a retrieve from the middle of a value, and a batch retrieve.
// ssd/interface/kv_command.h has the sources.
//
// The model decides how and when a command completes, and the contents follow it. A change takes effect in the contents
// when its completion is reaped, and then survives a kill of the process. Stores that a killed process had not reaped
// take effect when the contents are next opened, because a drive completes what was submitted (conditional stores do
// not). Two commands in flight together may take effect in either order.
//
// A tenant has block namespace i and key-value namespace i (K11), and no access to those of other tenants.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "device/kv/kv_contents.h"

namespace spillway::device {

// A part of a value, as a batch retrieve asks for it.
struct KvViewPart {
  std::string_view key;
  std::uint32_t offset_bytes = 0;
  std::uint32_t buffer_bytes = 0;
};

// What a batch retrieve returns for one of its keys.
struct KvFound {
  ssd::Outcome outcome = ssd::Outcome::success;  // or kv_key_does_not_exist
  std::uint32_t value_bytes = 0;                 // length of the value, even if the buffer is shorter
  std::string bytes;
};

// A key-value command. The memory to which it points must not change until the command is reaped.
struct KvIo {
  std::uint64_t tag = 0;
  Opcode op = Opcode::kv_store;
  Cause cause = Cause::user;
  std::string_view key;                                 // store, retrieve, delete, exist
  std::string_view value;                               // store
  ssd::KvCondition condition = ssd::KvCondition::none;  // store
  std::span<const KvView> pairs;                        // batch store: stores all of them or none
  ssd::KvRange range;                                   // list, iterate, bulk scan, reset
  std::uint32_t buffer_bytes = 0;                       // retrieve, list, iterate: the most bytes to return
  std::uint32_t offset_bytes = 0;                       // retrieve: where in the value; needs Info::retrieve_offset
  std::span<const KvViewPart> parts;                    // batch retrieve: at most Info::batch_retrieve_keys
};

struct KvDone {
  std::uint64_t tag = 0;
  Nanos submitted = 0;
  Nanos completed = 0;
  // The drive's outcome. kv_key_does_not_exist and kv_key_exists are results; other values than success are refusals.
  ssd::Outcome outcome = ssd::Outcome::success;
  // The command has no outcome: the host's file system failed, or a fault was injected. It may have taken effect.
  Fault fault = Fault::none;
  std::uint32_t value_bytes = 0;  // retrieve: length of the value, even if the buffer is shorter
  // retrieve: the part of the value from the offset on that fits the buffer. list, iterate, bulk scan: pairs in order
  // (for_each_pair); none if the range has no more.
  std::string bytes;
  std::vector<KvFound> found;  // batch retrieve: for each part, in their order
};

// Calls `each` for the pairs of a list (whose values are empty), an iterate or a bulk scan. False if the bytes are not
// such pairs.
bool for_each_pair(std::string_view bytes, const std::function<void(const KvView&)>& each);

class KvNamespace;

// One thread's queue of a key-value namespace. Not thread-safe.
class KvQueue {
 public:
  explicit KvQueue(KvNamespace& of);
  ~KvQueue();
  KvQueue(const KvQueue&) = delete;
  KvQueue& operator=(const KvQueue&) = delete;

  // Submits all without waiting for their completion. An error means that none was submitted. A key that is too long
  // for any command is refused by the drive, like any other.
  Status submit(std::span<const KvIo> ios);
  // Waits until at least `at_least` (<= pending()) are complete. Returns how many were written to `done`. at_least = 0
  // polls, as with Queue.
  std::size_t reap(std::span<KvDone> done, std::size_t at_least);
  std::size_t pending() const { return queue_->pending(); }

 private:
  struct InFlight {
    KvIo io;
    std::optional<std::uint64_t> contents_offset;  // of a store: the place of its pairs in the contents
  };
  void stage(InFlight& command);
  KvDone done_of(InFlight& command, const Done& below);
  void answer_reads(const KvIo& io, KvDone& done) const;
  Status store(InFlight& command, std::span<const KvView> pairs);

  KvNamespace& of_;
  std::unique_ptr<Queue> queue_;
  std::vector<InFlight> commands_;  // by the tag that they have in the drive
  std::vector<std::uint32_t> unused_;
  std::vector<Done> reaped_;
};

class KvNamespace {
 public:
  // Opens key-value namespace `index` of the drive, with its contents in the file `path` ("": in memory, lost with this
  // object), and loads the file's pairs into the model. Commands go through `front` if one is given, such as a
  // FaultyDevice on the drive.
  // not_supported: the drive has no such namespace. bad_input: the file belongs to another, or holds more than fits.
  // REQUIRES: no io in flight; the drive and `front` outlive this, and this outlives its queues
  static Result<std::unique_ptr<KvNamespace>> open(EmulatedDevice& drive, std::uint16_t index, const std::string& path,
                                                   Device* front = nullptr);

  std::unique_ptr<KvQueue> open_queue() { return std::make_unique<KvQueue>(*this); }

  struct Info {
    std::uint32_t kml_bytes = 0;
    std::uint32_t vml_bytes = 0;
    std::uint32_t batch_bytes = 0;     // the most for one batch store, including kPairHeaderBytes for each pair
    std::uint64_t capacity_bytes = 0;  // of flash; includes pairs' headers
    // Vendor extensions. A command that the drive does not have is refused with kv_invalid_opcode, a field with
    // kv_invalid_field.
    bool retrieve_offset = false;
    std::uint32_t batch_retrieve_keys = 0;  // the most in a command; 0: no batch retrieve
  };
  const Info& info() const { return info_; }
  std::uint64_t stored_bytes() const;  // of the pairs in it, with their headers

 private:
  friend class KvQueue;
  KvNamespace() = default;
  static Status refill(EmulatedDevice& drive, std::uint16_t index, const KvContents& contents);

  Device* front_ = nullptr;
  std::uint16_t index_ = 0;
  Info info_;
  mutable std::mutex mutex_;
  std::unique_ptr<KvContents> contents_;  // guarded by mutex_
};

// Submits one command and waits for it. REQUIRES: queue.pending() == 0
Result<KvDone> run(KvQueue& queue, const KvIo& io);

}  // namespace spillway::device
