// Hands out RocksDB itself. The caller reads and writes it past the spill store, for as long as it likes. Therefore the
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
      // In the commit queue: a write that has decided to be diverted finds out when it is led (SpillCommitter::admit).
      is_first = main_.hand_out() || is_first;
      // RocksDB's files are those of a plain database, and so is every copy of them.
      return main_.binding().close(/*has_writes=*/false);
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
    telemetry_.report(event);
  }
  return &base();
}

}  // namespace spillway::spill
