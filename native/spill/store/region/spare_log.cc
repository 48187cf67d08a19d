#include "spill/store/region/spare_log.h"

#include "base/steps.h"
#include "spill/store/region/log_files.h"

namespace spillway::spill {

void SpareLog::make(GenerationId generation) {
  const MutexLock lock(mutex_);
  if (generation <= begun_ || (file_ != nullptr && generation_ == generation)) return;
  remove_file();
  RegionLog log;
  log.base = directory_.log_base(generation);
  path_ = log.path();
  generation_ = generation;
  rocksdb::Status status = create_empty_log(directory_, log, &file_);
  steps::reached("spill.region.spare.created");
  if (!status.ok()) remove_file();
}

std::unique_ptr<rocksdb::FSWritableFile> SpareLog::take(GenerationId generation) {
  const MutexLock lock(mutex_);
  begun_ = generation;
  if (generation_ != generation) remove_file();
  return std::move(file_);
}

void SpareLog::remove() {
  const MutexLock lock(mutex_);
  remove_file();
}

void SpareLog::remove_file() {
  if (file_ == nullptr) return;
  file_->Close({}, nullptr).PermitUncheckedError();
  file_ = nullptr;
  directory_.files().DeleteFile(path_, {}, nullptr).PermitUncheckedError();
}

}  // namespace spillway::spill
