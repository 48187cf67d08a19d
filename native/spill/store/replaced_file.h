// Small files that are replaced as a whole: after a crash or a loss of power a reader finds the old contents or the new
// ones, never a mixture.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/slice.h>

#include <string>

namespace spillway::spill {

// The new contents are durable when this returns OK. `directory` is the one that `path` lies in. After a failure the
// old contents may still be there.
rocksdb::IOStatus replace_file(rocksdb::FileSystem& files, rocksdb::FSDirectory& directory, const std::string& path,
                               const rocksdb::Slice& contents);

// Empty where there is no such file.
rocksdb::IOStatus read_file_if_any(rocksdb::FileSystem& files, const std::string& path, std::string* contents);

}  // namespace spillway::spill
