#include "spill/route/main_writer.h"

#include <string_view>

#include "base/steps.h"
#include "spill/store/batch_visitor.h"

namespace spillway::spill {

using rocksdb::Status;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

Attempt MainWriter::announce(const WriteBatch& batch, KeyFence::MainKeys& keys) const {
  steps::reached("spill.write.announces");
  Attempt result = Attempt::finished;
  const auto announce_one = [&](const BatchOperation& operation) {
    if (operation.kind == BatchOperation::Kind::remove_range) {
      result = live_.has_any(std::memory_order_seq_cst) ? Attempt::covered : Attempt::announced_elsewhere;
    } else if (operation.has_key()) {
      const std::string_view key(operation.key.data(), operation.key.size());
      const bool is_free = keys.announce(KeyFence::stripe_of(operation.family, key));
      // Only now: the first group of a burst, which was seen before, may have withdrawn the key when it was announced
      // here, and the spill store has it since.
      if (live_.has_any(std::memory_order_seq_cst) && live_.is_covered(operation.family, key)) {
        result = Attempt::covered;
      } else if (const Doubts& doubts = commits_.writer.doubts();
                 doubts.has_any() && doubts.has(operation.family, key, live_.families())) {
        result = Attempt::doubtful;
      } else if (!is_free) {
        result = Attempt::announced_elsewhere;
      }
    }
    return result == Attempt::finished ? Status() : Status::Aborted();  // ends the visit
  };
  (void)visit_batch(batch, announce_one);  // what is malformed RocksDB says itself
  return result;
}

Status MainWriter::make_diverted_durable() {
  if (!commits_.writer.is_unsynced()) return {};
  increment(main_.telemetry().counts.ordering_syncs);
  return commits_.writer.sync_concurrently();
}

Attempt MainWriter::try_with_unsynced(const WriteOptions& options, WriteBatch* batch, Status* status) {
  // A mark in RocksDB's log is enough to order the write after earlier diverted writes.
  for (bool with_mark = MainDb::can_mark(*batch);; with_mark = false) {
    if (!with_mark) {
      if (*status = make_diverted_durable(); !status->ok()) return Attempt::finished;
    }
    const Attempt attempt = try_once(options, batch, with_mark, status);
    // A batch that has reached its maximum size has no room for a mark. Nothing was written.
    if (!with_mark || !status->IsMemoryLimit()) return attempt;
  }
}

Status MainWriter::write_nothing(const WriteOptions& options, WriteBatch* batch) {
  WriteOptions at_once = options;
  at_once.no_slowdown = true;
  Status status = main_.write(at_once, batch);
  if (status.IsIncomplete() && !options.no_slowdown) {
    const bool has_log_data = batch->GetDataSize() > WriteBatch().GetDataSize();
    if (has_log_data) {
      status = main_.write(options, batch);
    } else {
      status = options.sync ? main_.sync_log() : Status();
    }
  }
  if (status.ok() && options.sync) status = make_diverted_durable();
  return status;
}

}  // namespace spillway::spill
