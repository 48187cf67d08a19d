#include "spill/route/batch_traits.h"

#include <string>

#include "spill/store/batch_visitor.h"

namespace spillway::spill {

using rocksdb::Status;

BatchTraits classify(const rocksdb::WriteBatch& batch, const LiveSet& live) {
  using Op = BatchOperation::Kind;
  BatchTraits traits;
  const bool has_live = live.has_any(std::memory_order_seq_cst);
  const auto cannot_divert = [&](const char* what) {
    traits.unsupported = Status::NotSupported(std::string(what) + " cannot be diverted to the spill store");
  };
  const Status status = visit_batch(batch, [&](const BatchOperation& operation) {
    switch (operation.kind) {
      case Op::merge:
        traits.has_merge = true;
        break;
      case Op::remove_range:
        traits.must_divert = traits.must_divert || has_live;  // it may cover what lies there
        break;
      case Op::put_entity:
        cannot_divert("PutEntity");
        break;
      case Op::timed_put:
        cannot_divert("TimedPut");
        break;
      case Op::blob_index:
        cannot_divert("a blob index");
        break;
      case Op::transaction_marker:
        cannot_divert("a prepared transaction");
        break;
      case Op::timestamped_commit:
        return Status::NotSupported("spillway::DB does not support user-defined timestamps");
      default:
        break;
    }
    if (operation.has_key() && has_live && !traits.must_divert) {
      traits.must_divert = live.is_covered(operation.family, {operation.key.data(), operation.key.size()});
    }
    return Status();
  });
  if (!status.ok()) traits.unsupported = status;
  return traits;
}

}  // namespace spillway::spill
