// Tells when a flush or a compaction of RocksDB's has ended, and its levels may be nearer to a write stall or further
// from one.
#pragma once

#include <rocksdb/listener.h>

#include "spill/compat/rocksdb_version.h"

namespace spillway::spill {

class JobListener : public rocksdb::EventListener {
 public:
#if SPILLWAY_ROCKSDB_AT_LEAST(11, 2)
  // RocksDB's own notification of how near it is to a stall, after each job.
  void OnBackgroundJobPressureChanged(rocksdb::DB*, const rocksdb::BackgroundJobPressure&) final { on_job_ended(); }
#else
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) final { on_job_ended(); }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) final { on_job_ended(); }
#endif

 protected:
  // Called by RocksDB's background threads, without RocksDB's mutex. It must not block.
  virtual void on_job_ended() = 0;
};

}  // namespace spillway::spill
