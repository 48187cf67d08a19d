// A key-value namespace of an emulated drive, with contents: commands by the NVMe key-value command set's names, limits
// and status codes, and a vendor extension to it (batch store, iterate, bulk scan, reset). ssd/interface/kv_command.h
// names the sources.
//
// The model decides how and when a command completes; the contents follow. A change takes effect in them when its
// completion is reaped, and then survives a kill of the process. Stores that a killed process had not reaped take
// effect when the contents are next opened, as a drive completes what it was given (stores with a condition do not).
// Two commands in flight together may take effect in either order.
//
// A tenant has block namespace i and key-value namespace i (K11); none of them can reach another's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/emulated/emulated.h"
#include "device/kv/kv_contents.h"

namespace spillway::device {

// A key-value command. What it points to stays as it is until the command is reaped.
struct KvIo {
  std::uint64_t tag = 0;
  Opcode op = Opcode::kv_store;
  Cause cause = Cause::user;
  std::string_view key;                                 // store, retrieve, delete, exist
  std::string_view value;                               // store
  ssd::KvCondition condition = ssd::KvCondition::none;  // store
  std::span<const KvView> pairs;                        // batch store: all of them are stored, or none
  ssd::KvRange range;                                   // list, iterate, bulk scan, reset
  std::uint32_t buffer_bytes = 0;                       // retrieve, list, iterate: the most that is wanted
};

struct KvDone {
  std::uint64_t tag = 0;
  Nanos submitted = 0;
  Nanos completed = 0;
  // What the drive answers. kv_key_does_not_exist and kv_key_exists are answers; the others but success are refusals.
  ssd::Outcome outcome = ssd::Outcome::success;
  // The command has no answer: the host's file system failed, or a fault was injected. It may have taken effect.
  Fault fault = Fault::none;
  std::uint32_t value_bytes = 0;  // retrieve: how long the value is, though the buffer be shorter
  // retrieve: the value, as much as the buffer takes. list, iterate, bulk scan: pairs in order (for_each_pair), and
  // none when the range has no more.
  std::string bytes;
};

// Calls `each` for the pairs of a list (whose values are empty), an iterate or a bulk scan. False when the bytes are
// not such pairs.
bool for_each_pair(std::string_view bytes, const std::function<void(const KvView&)>& each);

class KvNamespace;

// One thread's way to a key-value namespace. Not thread-safe.
class KvQueue {
 public:
  explicit KvQueue(KvNamespace& of);
  ~KvQueue();
  KvQueue(const KvQueue&) = delete;
  KvQueue& operator=(const KvQueue&) = delete;

  // Hands over all; never waits for their completion. An error means that none was taken. A key that is too long for
  // any command is refused by the drive, as any other.
  Status submit(std::span<const KvIo> ios);
  // Waits until at least `at_least` (<= pending()) are done, and returns how many were written to `done`. at_least = 0
  // polls, as with Queue.
  std::size_t reap(std::span<KvDone> done, std::size_t at_least);
  std::size_t pending() const { return queue_->pending(); }

 private:
  struct InFlight {
    KvIo io;
    std::optional<std::uint64_t> contents_offset;  // of a store: where its pairs lie in the contents
  };
  void hand_over(InFlight& command);
  KvDone done_of(InFlight& command, const Done& below);
  Status store(InFlight& command, std::span<const KvView> pairs);

  KvNamespace& of_;
  std::unique_ptr<Queue> queue_;
  std::vector<InFlight> commands_;  // by the tag that the drive knows them by
  std::vector<std::uint32_t> unused_;
  std::vector<Done> reaped_;
};

class KvNamespace {
 public:
  // Opens key-value namespace `index` of the drive, with its contents in the file `path` ("": in memory, and gone with
  // this), and brings the model to what the file holds. Commands go through `front` where one is given, such as a
  // FaultyDevice on the drive.
  // not_supported: the drive has no such namespace. bad_input: the file is another's, or holds more than fits.
  // REQUIRES: no io in flight; the drive and `front` outlive this, and this outlives its queues
  static Result<std::unique_ptr<KvNamespace>> open(EmulatedDevice& drive, std::uint16_t index, const std::string& path,
                                                   Device* front = nullptr);

  std::unique_ptr<KvQueue> open_queue() { return std::make_unique<KvQueue>(*this); }

  struct Info {
    std::uint32_t kml_bytes = 0;
    std::uint32_t vml_bytes = 0;
    std::uint32_t batch_bytes = 0;     // the most that one batch store takes, pairs with kPairHeaderBytes each
    std::uint64_t capacity_bytes = 0;  // of flash; pairs take their headers there as well
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

// One command, waited for. REQUIRES: queue.pending() == 0
Result<KvDone> run(KvQueue& queue, const KvIo& io);

}  // namespace spillway::device
