#include "spill/main_db/external_files.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "spill/main_db/temporary_tables.h"

namespace spillway::spill {

using rocksdb::FileOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Bytes of one read. Source: guess, far more than keeps a drive busy.
constexpr std::uint64_t kCopyBytes = std::uint64_t{1} << 20;

// A copy that RocksDB has moved by a link and whose old name could not be removed is one of its tables: its name is not
// used again.
std::string fresh_path(rocksdb::FileSystem& files, const std::string& directory) {
  static std::atomic<std::uint64_t> count{0};
  std::string path;
  do {
    path = directory + "/" + external_copy_name(count.fetch_add(1, std::memory_order_relaxed));
  } while (files.FileExists(path, {}, nullptr).ok());
  return path;
}

}  // namespace

IOStatus copy_file(rocksdb::FileSystem& files, const std::string& from, const std::string& to, std::uint64_t bytes) {
  std::unique_ptr<rocksdb::FSSequentialFile> source;
  std::unique_ptr<rocksdb::FSWritableFile> copy;
  IOStatus status = files.NewSequentialFile(from, FileOptions(), &source, nullptr);
  if (status.ok()) status = files.NewWritableFile(to, FileOptions(), &copy, nullptr);
  std::string piece(std::min(bytes, kCopyBytes), '\0');
  while (status.ok() && bytes > 0) {
    Slice read;
    status = source->Read(std::min(bytes, kCopyBytes), {}, &read, piece.data(), nullptr);
    if (status.ok() && read.empty()) status = IOStatus::Corruption(from + " is shorter than it was");
    if (status.ok()) status = copy->Append(read, {}, nullptr);
    bytes -= std::min<std::uint64_t>(bytes, read.size());
  }
  if (status.ok()) status = copy->Fsync({}, nullptr);
  if (status.ok()) status = copy->Close({}, nullptr);
  return status;
}

ExternalFiles::ExternalFiles(std::shared_ptr<rocksdb::FileSystem> files, std::string directory)
    : files_(std::move(files)), directory_(std::move(directory)) {}

ExternalFiles::~ExternalFiles() {
  for (const std::string& path : made_) files_->DeleteFile(path, {}, nullptr).PermitUncheckedError();
}

Status ExternalFiles::copy(const std::vector<std::string>& paths, std::vector<std::string>* copies) {
  std::vector<std::string> result;
  for (const std::string& path : paths) {
    std::uint64_t bytes = 0;
    if (IOStatus status = files_->GetFileSize(path, {}, &bytes, nullptr); !status.ok()) return status;
    made_.push_back(fresh_path(*files_, directory_));
    if (IOStatus status = copy_file(*files_, path, made_.back(), bytes); !status.ok()) return status;
    result.push_back(made_.back());
  }
  *copies = std::move(result);
  return {};
}

}  // namespace spillway::spill
