#include "spill/store/kv/kv_binding.h"

namespace spillway::spill {

using rocksdb::Status;

namespace {

constexpr Position kBinding{0, 2};

}  // namespace

Status KvBinding::read(std::string* bytes) {
  const MutexLock lock(mutex_);
  if (Status status = commands_.retrieve(kBinding, commands_.kv_namespace().info().vml_bytes, bytes); !status.ok()) {
    return status;
  }
  keep(*bytes);
  return {};
}

Status KvBinding::write(const std::string& bytes) {
  if (bytes.size() > commands_.kv_namespace().info().vml_bytes) {
    return Status::NoSpace("the drive's values are too short for a record");
  }
  const MutexLock lock(mutex_);
  if (Status status = commands_.store(kBinding, bytes); !status.ok()) return status;
  keep(bytes);
  return {};
}

void KvBinding::renew() {
  const MutexLock lock(mutex_);
  // If it fails, the old record is still there.
  if (!record_.empty()) commands_.store(kBinding, record_).PermitUncheckedError();
}

void KvBinding::keep(const std::string& bytes) {
  record_ = bytes;
  bytes_ = bytes.empty() ? 0 : kPairOverheadBytes + bytes.size();
}

}  // namespace spillway::spill
