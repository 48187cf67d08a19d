#include "fs/name_table.h"

namespace spillway::fs {

std::pair<std::shared_ptr<Inode>, std::shared_ptr<Inode>> NameTable::create(const std::string& path, Cause cause) {
  auto inode = make_inode(cause);
  const std::lock_guard lock(mutex_);
  auto old = unlink_locked(path);
  link_locked(path, inode);
  inode->handles = inode->writers = 1;
  return {std::move(inode), std::move(old)};
}

std::shared_ptr<Inode> NameTable::find_or_adopt(const std::string& path, Cause cause) {
  auto fresh = make_inode(cause);
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found != names_.end()) return found->second;
  fresh->adopted = true;
  link_locked(path, fresh);
  return fresh;
}

std::shared_ptr<Inode> NameTable::find(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : found->second;
}

std::shared_ptr<Inode> NameTable::acquire(const std::string& path, bool writer) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return nullptr;
  ++found->second->handles;
  if (writer) ++found->second->writers;
  return found->second;
}

NameTable::Released NameTable::release(const Inode& inode, bool writer) {
  const std::lock_guard lock(mutex_);
  const auto found = inodes_.find(inode.id);
  Inode& known = *found->second;
  Released released;
  if (writer) released.last_writer = --known.writers == 0;
  released.freed = --known.handles == 0 && known.links == 0;
  if (released.freed) inodes_.erase(found);
  return released;
}

std::shared_ptr<Inode> NameTable::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return unlink_locked(path);
}

std::shared_ptr<Inode> NameTable::rename(const std::string& from, const std::string& to) {
  if (from == to) return nullptr;
  const std::lock_guard lock(mutex_);
  auto replaced = unlink_locked(to);
  move_locked(from, to);
  return replaced;
}

void NameTable::link(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(from);
  if (found != names_.end() && !names_.contains(to)) link_locked(to, std::shared_ptr<Inode>(found->second));
}

void NameTable::link(const std::string& path, const std::shared_ptr<Inode>& inode) {
  const std::lock_guard lock(mutex_);
  link_locked(path, inode);
}

bool NameTable::is_linked(const Inode& inode) const {
  const std::lock_guard lock(mutex_);
  return inode.links > 0;
}

bool NameTable::has_writer(const Inode& inode) const {
  const std::lock_guard lock(mutex_);
  return inode.writers > 0;
}

std::vector<std::shared_ptr<Inode>> NameTable::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Inode>> result;
  for (const auto& [id, inode] : inodes_) result.push_back(inode);
  return result;
}

std::shared_ptr<Inode> NameTable::make_inode(Cause cause) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Inode>(next_id_++, cause);
}

void NameTable::each(const std::function<void(const std::string&, const Inode&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [path, inode] : names_) visit(path, *inode);
}

void NameTable::link_locked(const std::string& path, const std::shared_ptr<Inode>& inode) {
  names_.emplace(path, inode);
  inodes_.emplace(inode->id, inode);
  ++inode->links;
}

std::shared_ptr<Inode> NameTable::unlink_locked(const std::string& path) {
  const auto found = names_.find(path);
  if (found == names_.end()) return nullptr;
  const auto inode = found->second;
  names_.erase(found);
  if (--inode->links > 0 || inode->handles > 0) return nullptr;
  inodes_.erase(inode->id);
  return inode;
}

void NameTable::move_locked(const std::string& from, const std::string& to) {
  if (auto file = names_.extract(from)) {
    file.key() = to;
    names_.insert(std::move(file));
    return;
  }
  const std::string below = from + "/";
  for (auto at = names_.lower_bound(below); at != names_.end() && at->first.starts_with(below);) {
    auto entry = names_.extract(at++);
    entry.key() = to + "/" + entry.key().substr(below.size());
    names_.insert(std::move(entry));
  }
}

}  // namespace spillway::fs
