// An iterator over attribute groups that has nothing but the status of a refusal.
#pragma once

#include "spill/compat/rocksdb_version.h"

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 2)

#include <rocksdb/attribute_groups.h>

#include <memory>

namespace spillway::spill {

class RefusedGroups final : public rocksdb::AttributeGroupIterator {
 public:
  explicit RefusedGroups(const rocksdb::Status& status) : status_(status) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const rocksdb::Slice&) override {}
  void SeekForPrev(const rocksdb::Slice&) override {}
  void Next() override {}
  void Prev() override {}
  rocksdb::Slice key() const override { return {}; }
  rocksdb::Status status() const override { return status_; }
  const rocksdb::IteratorAttributeGroups& attribute_groups() const override {
    return rocksdb::kNoIteratorAttributeGroups;
  }

 private:
  const rocksdb::Status status_;
};

inline std::unique_ptr<rocksdb::AttributeGroupIterator> refused_groups(const rocksdb::Status& status) {
  return std::make_unique<RefusedGroups>(status);
}

}  // namespace spillway::spill

#endif
