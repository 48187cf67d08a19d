#include "spill/store/region/spare_logs.h"

#include <utility>

#include "base/steps.h"
#include "spill/store/region/log_files.h"

namespace spillway::spill {

SpareLogs::~SpareLogs() {
  const MutexLock lock(mutex_);
  for (auto& [generation, file] : files_) remove(generation, std::move(file));
}

void SpareLogs::make(GenerationId generation) {
  {
    const MutexLock lock(mutex_);
    if (generation <= begun_ || files_.contains(generation)) return;
    making_ = generation;
  }
  RegionLog log;
  log.base = directory_.log_base(generation);
  File file;
  const rocksdb::Status status = create_empty_log(directory_, log, &file);
  steps::reached("spill.region.spare.created");
  const MutexLock lock(mutex_);
  making_ = 0;
  if (status.ok() && generation >= begun_) {  // the one that has just begun waits for it
    files_.emplace(generation, std::move(file));
  } else if (file != nullptr) {
    remove(generation, std::move(file));
  }
  made_.notify_all();
}

std::unique_ptr<rocksdb::FSWritableFile> SpareLogs::take(GenerationId generation) {
  MutexLock lock(mutex_);
  begun_ = generation;
  while (!files_.empty() && files_.begin()->first < generation) {
    auto oldest = files_.extract(files_.begin());
    remove(oldest.key(), std::move(oldest.mapped()));
  }
  while (making_ == generation) made_.wait(mutex_);
  auto own = files_.extract(generation);
  return own.empty() ? nullptr : std::move(own.mapped());
}

std::string SpareLogs::path_of(GenerationId generation) const {
  RegionLog log;
  log.base = directory_.log_base(generation);
  return log.path();
}

void SpareLogs::remove(GenerationId generation, File file) const {
  file->Close({}, nullptr).PermitUncheckedError();
  file.reset();
  directory_.files().DeleteFile(path_of(generation), {}, nullptr).PermitUncheckedError();
}

}  // namespace spillway::spill
