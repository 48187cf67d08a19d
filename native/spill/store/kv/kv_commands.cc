#include "spill/store/kv/kv_commands.h"

#include <utility>

namespace spillway::spill {

using device::KvDone;
using device::KvIo;
using device::KvQueue;
using device::KvView;
using rocksdb::Status;
using ssd::KvKey;
using ssd::Outcome;

namespace {

// If there are this many abandoned queues, the oldest is reused. Its commands are complete by then, or soon. Source:
// guess, more than the number of concurrent scans.
constexpr std::size_t kMostAbandoned = 16;

KvKey key_of(Position position) {
  const PositionBytes bytes = bytes_of(position);
  return KvKey({bytes.data(), bytes.size()});
}

ssd::KvRange range_of(PositionRange range) {
  return {key_of(range.begin), range.end.generation == 0 ? KvKey() : key_of(range.end), false};
}

}  // namespace

std::vector<KvDone> reap_all(KvQueue& queue, std::size_t count) {
  std::vector<KvDone> done(count);
  std::vector<KvDone> reaped(count);
  while (queue.pending() > 0) {
    const std::size_t got = queue.reap(reaped, queue.pending());
    for (std::size_t i = 0; i < got; ++i) done[reaped[i].tag] = std::move(reaped[i]);
  }
  return done;
}

KvCommands::Lease::~Lease() {
  const MutexLock lock(commands_.mutex_);
  (lane_.queue->pending() == 0 ? commands_.idle_ : commands_.abandoned_).push_back(std::move(lane_));
}

KvCommands::Lane KvCommands::take_lane() const {
  Lane lane;
  {
    const MutexLock lock(mutex_);
    std::deque<Lane>& from = abandoned_.size() < kMostAbandoned ? idle_ : abandoned_;
    if (!from.empty()) {
      lane = std::move(from.front());
      from.pop_front();
    }
  }
  if (!lane.queue) lane.queue = namespace_.open_queue();
  std::vector<KvDone> done(lane.queue->pending());
  if (!done.empty()) lane.queue->reap(done, done.size());
  lane.keys.clear();
  lane.parts.clear();
  return lane;
}

Status KvCommands::perform(const KvIo& io, KvDone* done) const {
  const Lease lease(*this);
  KvIo numbered = io;
  numbered.tag = 0;
  if (const auto status = lease.queue().submit({&numbered, 1}); !status) return Status::IOError(status.message());
  *done = std::move(reap_all(lease.queue(), 1).front());
  return {};
}

Status KvCommands::store(Position position, std::string_view bytes) const {
  const PositionBytes key = bytes_of(position);
  KvIo io;
  io.op = ssd::Opcode::kv_store;
  io.cause = device::Cause::wal;
  io.key = {key.data(), key.size()};
  io.value = bytes;
  KvDone done;
  if (Status status = perform(io, &done); !status.ok()) return status;
  return status_of(done, "store");
}

Status KvCommands::retrieve(Position position, std::uint32_t most_bytes, std::string* bytes) const {
  const PositionBytes key = bytes_of(position);
  KvIo io;
  io.op = ssd::Opcode::kv_retrieve;
  io.key = {key.data(), key.size()};
  io.buffer_bytes = most_bytes;
  KvDone done;
  bytes->clear();
  if (Status status = perform(io, &done); !status.ok()) return status;
  if (done.fault == Fault::none && done.outcome == Outcome::kv_key_does_not_exist) return {};
  if (Status status = status_of(done, "retrieve"); !status.ok()) return status;
  *bytes = std::move(done.bytes);
  return {};
}

Status KvCommands::reset(PositionRange range) const {
  KvIo io;
  io.op = ssd::Opcode::kv_reset;
  io.range = range_of(range);
  KvDone done;
  if (Status status = perform(io, &done); !status.ok()) return status;
  return status_of(done, "reset");
}

Status KvCommands::scan(PositionRange range, const std::function<bool(Position, std::string_view)>& each) const {
  KvIo io;
  io.op = ssd::Opcode::kv_bulk_scan;
  io.cause = device::Cause::wal;
  io.range = range_of(range);
  for (;;) {
    KvDone done;
    if (Status status = perform(io, &done); !status.ok()) return status;
    if (Status status = status_of(done, "bulk scan"); !status.ok()) return status;
    if (done.bytes.empty()) return {};
    bool continues = true;
    device::for_each_pair(done.bytes, [&](const KvView& pair) {
      io.range.begin = KvKey(pair.key);
      if (continues && pair.key.size() == sizeof(PositionBytes)) continues = each(position_of(pair.key), pair.value);
    });
    if (!continues) return {};
    io.range.after_begin = true;
  }
}

}  // namespace spillway::spill
