// The files of the region's logs: made, opened to read, truncated, copied.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/status.h>

#include <memory>
#include <string>

#include "spill/store/region/region_directory.h"
#include "spill/store/region/region_logs.h"

namespace spillway::spill {

rocksdb::Status open_reader(const RegionDirectory& directory, RegionLog& log);
// Creates an empty file with a durable name, open for appends.
rocksdb::Status create_empty_log(const RegionDirectory& directory, const RegionLog& log,
                                 std::unique_ptr<rocksdb::FSWritableFile>* file);
// Creates a file with only the log's header and a durable name, open for appends and reads, unless `*file` is an empty
// one that was created before. `preallocation`: bytes that the file system preallocates at a time.
rocksdb::Status create_log(const RegionDirectory& directory, std::uint64_t preallocation, RegionLog& log,
                           std::unique_ptr<rocksdb::FSWritableFile>* file);
// Opens it for appends after log.bytes, and truncates it there.
rocksdb::IOStatus reopen_truncated(const RegionDirectory& directory, const RegionLog& log,
                                   std::unique_ptr<rocksdb::FSWritableFile>* file);
// The same, durably, and closed.
rocksdb::IOStatus truncate_durably(const RegionDirectory& directory, const RegionLog& log);
// Makes the bytes of the file durable that an earlier process left in the page cache.
rocksdb::IOStatus sync_log(const RegionDirectory& directory, const RegionLog& log);
// A durable copy of the log's whole frames takes the place of its file. `copy`: the log on the new file.
rocksdb::Status replace_by_copy(const RegionDirectory& directory, const RegionLog& log,
                                std::shared_ptr<RegionLog>* copy);

}  // namespace spillway::spill
