#include "spill/store/region/region_directory.h"

#include <utility>

#include "spill/store/region/log_frame.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Status;

RegionDirectory::RegionDirectory(std::shared_ptr<rocksdb::FileSystem> files, std::string path)
    : files_(std::move(files)), path_(std::move(path)) {}

RegionDirectory::~RegionDirectory() { unlock(); }

void RegionDirectory::unlock() {
  rocksdb::FileLock* const lock = lock_.exchange(nullptr, std::memory_order_acq_rel);
  if (lock != nullptr) files_->UnlockFile(lock, {}, nullptr).PermitUncheckedError();
}

Status RegionDirectory::open(std::shared_ptr<rocksdb::FileSystem> files, std::string path,
                             std::unique_ptr<RegionDirectory>* directory) {
  std::unique_ptr<RegionDirectory> made(new RegionDirectory(std::move(files), std::move(path)));
  IOStatus status = made->files_->CreateDirIfMissing(made->path_, {}, nullptr);
  if (status.ok()) status = made->files_->NewDirectory(made->path_, {}, &made->handle_, nullptr);
  rocksdb::FileLock* lock = nullptr;
  if (status.ok()) status = made->files_->LockFile(made->path_of("LOCK"), {}, &lock, nullptr);
  if (status.ok()) {
    made->lock_ = lock;
    *directory = std::move(made);
    return status;
  }
  return Status::IOError("the spill store cannot use " + made->path_ + " (" + status.ToString() +
                         "); give it a directory that can be written and that no other database uses");
}

std::string RegionDirectory::log_base(GenerationId generation) const { return path_of(digits_of(generation)); }

Status RegionDirectory::names(std::vector<std::string>* names) const {
  return files_->GetChildren(path_, {}, names, nullptr);
}

Status RegionDirectory::sync(const rocksdb::DirFsyncOptions& why) const {
  return handle_->FsyncWithDirOptions({}, nullptr, why);
}

}  // namespace spillway::spill
