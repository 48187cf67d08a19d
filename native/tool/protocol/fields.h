// Reads the fields of one JSON object of a request. The first thing that is wrong is kept; what is asked for afterwards
// comes out as its default, so that a reader asks for everything and checks once, with finish().
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
  // `path`: the object's own name in messages ("workload"), "" for the whole request. A null object has no fields.
  Fields(const Json& object, std::string path);

  std::string text(const std::string& key, const std::string& fallback);
  double number(const std::string& key, double fallback, double low, double high);
  std::uint64_t whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  bool flag(const std::string& key, bool fallback);
  // Absent or null: nothing.
  std::optional<std::uint64_t> optional_whole(const std::string& key, std::uint64_t low, std::uint64_t high);
  std::optional<double> optional_number(const std::string& key, double low, double high);
  std::vector<std::string> texts(const std::string& key);
  // An inner object or array, for a reader of its own; null when absent.
  const Json& inner(const std::string& key);

  // Notes a problem with a key that only the reader can see.
  void refuse(const std::string& key, const std::string& takes);
  // The first problem; an unknown key is one, named with the nearest that was asked for.
  Status finish() const;

 private:
  const Json* find(const std::string& key);
  std::string name_of_key(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  const Json& object_;
  std::string path_;
  std::vector<std::string> asked_;
  Status problem_;
};

// One of `words`, by its index; `path` is the object's name. What is not known goes to `problem`, unless that has one,
// with the nearest word or all of them.
std::size_t choice(Fields& fields, const std::string& path, const std::string& key,
                   const std::vector<std::string>& words, std::size_t fallback, Status& problem);

}  // namespace spillway::tool
