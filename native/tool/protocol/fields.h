// Reads the fields of one JSON object of a request. Keeps the first error, and returns defaults after it. So a caller
// reads all fields and checks once, with finish().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

class Fields {
 public:
  // `path`: the name of the object in messages ("workload"); "" for the whole request. A null object has no fields.
  Fields(const Json& object, std::string path);

  std::string text(const std::string& key, const std::string& fallback);
  double number(const std::string& key, double fallback, double low, double high);
  std::uint64_t whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  bool flag(const std::string& key, bool fallback);
  // None if the field is absent or null.
  std::optional<std::uint64_t> optional_whole(const std::string& key, std::uint64_t low, std::uint64_t high);
  std::optional<double> optional_number(const std::string& key, double low, double high);
  std::vector<std::string> texts(const std::string& key);
  // An inner object or array, to be read by another Fields; null if absent.
  const Json& inner(const std::string& key);

  // Reports a problem with the value of a key that its reader has found.
  void refuse(const std::string& key, const std::string& takes);
  // The first error. An unknown key is an error, reported with the nearest key that was read.
  Status finish() const;

 private:
  const Json* find(const std::string& key);
  std::string name_of_key(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  const Json& object_;
  std::string path_;
  std::vector<std::string> asked_;
  Status problem_;
};

// The index of the field's value in `words`. For an unknown value, sets `problem`, unless it has an error already, to a
// message with the nearest word or all words. `path`: the object's name.
std::size_t choice(Fields& fields, const std::string& path, const std::string& key,
                   const std::vector<std::string>& words, std::size_t fallback, Status& problem);

}  // namespace spillway::tool
