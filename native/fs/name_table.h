// Names, hard links and open handles: which inode a path names, and when an inode has no references left.
//
// Thread-safe. The lock is never held during a wait. Methods that may remove an inode's last reference return it, and
// the caller does the part that waits for the drive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/inode.h"

namespace spillway::fs {

class NameTable {
 public:
  // A new inode under this name, opened by its writer; and the inode whose last name this was before, or null.
  std::pair<std::shared_ptr<Inode>, std::shared_ptr<Inode>> create(const std::string& path, Cause cause);
  // The inode of this name. If there is none, it is created as an adopted file.
  std::shared_ptr<Inode> find_or_adopt(const std::string& path, Cause cause);
  // Null if there is none.
  std::shared_ptr<Inode> find(const std::string& path) const;
  // Adds a handle. Null if the name is gone.
  std::shared_ptr<Inode> acquire(const std::string& path, bool writer);

  struct Released {
    bool last_writer = false;
    bool freed = false;
  };
  Released release(const Inode& inode, bool writer);

  // Each returns the inode that has no references left, or null.
  std::shared_ptr<Inode> remove(const std::string& path);
  std::shared_ptr<Inode> rename(const std::string& from, const std::string& to);  // a file, or all below a directory
  void link(const std::string& from, const std::string& to);
  void link(const std::string& path, const std::shared_ptr<Inode>& inode);

  bool is_linked(const Inode& inode) const;
  bool has_writer(const Inode& inode) const;
  std::vector<std::shared_ptr<Inode>> all() const;  // including open ones without a name
  std::shared_ptr<Inode> make_inode(Cause cause);
  // In the order of the names. REQUIRES: `visit` does not call this object.
  void each(const std::function<void(const std::string&, const Inode&)>& visit) const;

 private:
  void link_locked(const std::string& path, const std::shared_ptr<Inode>& inode);
  std::shared_ptr<Inode> unlink_locked(const std::string& path);
  void move_locked(const std::string& from, const std::string& to);

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Inode>> names_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Inode>> inodes_;
  std::uint64_t next_id_ = 1;
};

}  // namespace spillway::fs
