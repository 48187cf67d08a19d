// RocksDB itself. Whoever holds it reads and writes there past the spill store, for as long as he likes: so the spill
// store is empty before he gets it, and stays empty.
#include <rocksdb/env.h>

#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::Status;

rocksdb::DB* DbImpl::hand_out_root() {
  if (root_handed_out_.load(std::memory_order_acquire) || stopping_.load(std::memory_order_acquire)) return &base();
  Status status;
  bool is_first = false;
  while (status.ok() && !root_handed_out_.load(std::memory_order_acquire)) {
    status = with_main_only([&] {
      // In the commit queue: a write that has decided to be diverted finds out when it is led (DbImpl::lead_announced).
      is_first = !root_handed_out_.exchange(true, std::memory_order_acq_rel) || is_first;
      has_unlogged_.store(true, std::memory_order_release);  // what goes past us may be
      // RocksDB's files are those of a plain database, and so is every copy of them.
      return binding_->close(/*has_writes=*/false);
    });
  }
  const auto log = base().GetDBOptions().info_log;
  if (!status.ok()) {
    rocksdb::Log(rocksdb::InfoLogLevel::ERROR_LEVEL, log,
                 "spillway: GetRootDB returns null, for what was diverted cannot be brought back: %s",
                 status.ToString().c_str());
    rocksdb::LogFlush(log);  // RocksDB's utilities end the process
    return nullptr;
  }
  if (is_first) {
    rocksdb::Log(rocksdb::InfoLogLevel::WARN_LEVEL, log,
                 "spillway: RocksDB itself was asked for (GetRootDB, GetBaseDB); nothing is diverted until the "
                 "database is reopened");
    SpillEvent event;
    event.kind = SpillEvent::Kind::root_handed_out;
    tell(event);
  }
  return &base();
}

}  // namespace spillway::spill
