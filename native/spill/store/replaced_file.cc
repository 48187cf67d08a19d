#include "spill/store/replaced_file.h"

#include <memory>

namespace spillway::spill {

using rocksdb::IOStatus;

IOStatus replace_file(rocksdb::FileSystem& files, rocksdb::FSDirectory& directory, const std::string& path,
                      const rocksdb::Slice& contents) {
  const std::string temporary = path + ".new";
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files.NewWritableFile(temporary, {}, &file, nullptr);
  if (status.ok()) status = file->Append(contents, {}, nullptr);
  if (status.ok()) status = file->Sync({}, nullptr);
  if (status.ok()) status = file->Close({}, nullptr);
  if (status.ok()) status = files.RenameFile(temporary, path, {}, nullptr);
  if (status.ok()) status = directory.FsyncWithDirOptions({}, nullptr, rocksdb::DirFsyncOptions(path));
  return status;
}

IOStatus read_file_if_any(rocksdb::FileSystem& files, const std::string& path, std::string* contents) {
  contents->clear();
  const IOStatus exists = files.FileExists(path, {}, nullptr);
  if (exists.IsNotFound()) return IOStatus::OK();
  return exists.ok() ? ReadFileToString(&files, path, contents) : exists;
}

}  // namespace spillway::spill
