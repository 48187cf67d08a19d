// Hands out RocksDB itself. The caller reads and writes it past the spill store, for an unlimited time. Therefore the
// spill store is emptied first, and stays empty.
#include <rocksdb/env.h>

#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::Status;

rocksdb::DB* DbImpl::hand_out_root() {
  if (main_.is_handed_out() || main_.is_stopping()) return &base();
  Status status;
  bool is_first = false;
  while (status.ok() && !main_.is_handed_out()) {
    status = rollbacks_.main_only.run([&](bool) {
      // Runs in the commit queue. A write that was about to be diverted is refused by SpillCommitter::admit.
      is_first = main_.hand_out() || is_first;
      // From now on RocksDB's files, and every copy of them, are a plain database.
      return main_.binding().close(/*has_writes=*/false);
    });
  }
  const auto log = base().GetDBOptions().info_log;
  if (!status.ok()) {
    rocksdb::Log(rocksdb::InfoLogLevel::ERROR_LEVEL, log,
                 "spillway: GetRootDB returns null, for what was diverted cannot be brought back: %s",
                 status.ToString().c_str());
    rocksdb::LogFlush(log);  // RocksDB's utilities exit the process without closing it
    return nullptr;
  }
  if (is_first) {
    rocksdb::Log(rocksdb::InfoLogLevel::WARN_LEVEL, log,
                 "spillway: RocksDB itself was asked for (GetRootDB, GetBaseDB); nothing is diverted until the "
                 "database is reopened");
    SpillEvent event;
    event.kind = SpillEvent::Kind::root_handed_out;
    telemetry_.report(event);
  }
  return &base();
}

}  // namespace spillway::spill
