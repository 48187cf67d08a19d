#include "plugin/uri.h"

#include <charconv>
#include <functional>
#include <map>
#include <vector>

#include "base/spelling.h"

namespace spillway::plugin {

namespace {

constexpr std::string_view kSetPrefix = "set.";

Status refuse(const std::string& key, const std::string& value, const std::string& takes) {
  return Status::bad_input(std::string(kScheme) + "://: " + key + " is '" + value + "', it takes " + takes);
}

template <typename Number>
bool parse_number(const std::string& text, Number* number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return problem == std::errc() && end == text.data() + text.size();
}

// One method a key; each reads its value or says what it takes.
class Reader {
 public:
  Status take(const std::string& key, const std::string& value) {
    if (key.starts_with(kSetPrefix)) {
      uri_.drive.set[key.substr(kSetPrefix.size())] = value;
      return Status::ok();
    }
    const auto found = keys_.find(key);
    return found == keys_.end() ? unknown(key) : found->second(value);
  }

  Result<DriveUri> finish() {
    if (uri_.drive.preset.empty() && uri_.drive.preset_file.empty() && uri_.drive.set.empty()) {
      return Status::bad_input(std::string(kScheme) + "://: no drive is named; give preset=NAME or preset_file=PATH");
    }
    if (uri_.report.empty()) {
      uri_.report = uri_.state.empty() ? "spillway-counters.json" : uri_.state + "/counters.json";
    }
    uri_.drive.preset_dirs = device::default_preset_dirs();
    return uri_;
  }

 private:
  using Take = std::function<Status(const std::string&)>;

  Status unknown(const std::string& key) const {
    std::vector<std::string> names;
    for (const auto& [name, ignored] : keys_) names.push_back(name);
    const std::string near = nearest(key, names);
    return Status::bad_input(
        std::string(kScheme) + "://: there is no key '" + key + "'" +
        (near.empty() ? "; keys of a preset begin with 'set.'" : ", the nearest is '" + near + "'"));
  }

  static Take text(std::string& field) {
    return [&field](const std::string& value) {
      field = value;
      return Status::ok();
    };
  }

  // A key of the preset format under a shorter name.
  Take preset_key(const std::string& dotted) {
    return [this, dotted](const std::string& value) {
      uri_.drive.set[dotted] = value;
      return Status::ok();
    };
  }

  static Take number(const char* key, double& field, double least, const char* takes) {
    return [=, &field](const std::string& value) {
      return parse_number(value, &field) && field >= least ? Status::ok() : refuse(key, value, takes);
    };
  }

  static Take choice(const char* key, bool& field, const char* on, const char* off) {
    return [=, &field](const std::string& value) {
      field = value == on;
      return value == on || value == off ? Status::ok()
                                         : refuse(key, value, std::string("'") + on + "' or '" + off + "'");
    };
  }

  Status take_initial(const std::string& value) {
    auto kind = device::parse_initial_kind(value);
    if (!kind) return Status::bad_input(std::string(kScheme) + "://: " + kind.status().message());
    if (*kind == device::InitialState::Kind::file) {
      return refuse("initial", value, "trimmed, sequential or steady; a kept drive is named by 'state'");
    }
    uri_.initial.kind = *kind;
    uri_.initial_name = value;
    return Status::ok();
  }

  Status take_time_scale(const std::string& value) {
    return parse_number(value, &uri_.time_scale) && uri_.time_scale > 0
               ? Status::ok()
               : refuse("time_scale", value, "a number above 0: real seconds for each second of the drive");
  }

  static Take size(const char* key, std::uint64_t& field, std::uint64_t least) {
    return [=, &field](const std::string& value) {
      auto bytes = parse_size(value);
      if (!bytes || *bytes < least) {
        return refuse(key, value, least == 0 ? "a size such as 512MiB" : "a size of 4KiB or more, such as 1MiB");
      }
      field = *bytes;
      return Status::ok();
    };
  }

  Status take_placement(const std::string& value) {
    bool first_fit = false;
    Status status = choice("placement", first_fit, "first_fit", "next_fit")(value);
    uri_.volume.placement = first_fit ? fs::Placement::first_fit : fs::Placement::next_fit;
    return status;
  }

  Status take_seed(const std::string& value) {
    return parse_number(value, &uri_.seed) ? Status::ok() : refuse("seed", value, "a whole number");
  }

  DriveUri uri_;
  const std::map<std::string, Take> keys_ = {
      {"preset", text(uri_.drive.preset)},
      {"preset_file", text(uri_.drive.preset_file)},
      {"capacity", preset_key("capacity.capacity_bytes")},
      {"spare_factor", preset_key("capacity.spare_factor")},
      {"initial", [this](const std::string& value) { return take_initial(value); }},
      {"fill", number("fill", uri_.initial.fill, 0, "a share of the capacity, 0 to 1")},
      {"warmup", number("warmup", uri_.initial.warmup_capacities, 0, "a multiple of the filled range")},
      {"state", text(uri_.state)},
      {"report", text(uri_.report)},
      {"seed", [this](const std::string& value) { return take_seed(value); }},
      {"pacing", choice("pacing", uri_.paced, "real", "off")},
      {"time_scale", [this](const std::string& value) { return take_time_scale(value); }},
      {"discard", choice("discard", uri_.volume.discard, "true", "false")},
      {"placement", [this](const std::string& value) { return take_placement(value); }},
      {"page_cache", size("page_cache", uri_.volume.page_cache_bytes, 0)},
      {"readahead", size("readahead", uri_.volume.readahead_bytes, 0)},
      {"writeback", size("writeback", uri_.volume.writeback_bytes, fs::kPageBytes)},
      {"outstanding", size("outstanding", uri_.volume.outstanding_bytes, fs::kPageBytes)},
      {"dirty", size("dirty", uri_.volume.dirty_bytes, fs::kPageBytes)},
  };
};

}  // namespace

std::string usual_spelling(const std::string& uri) {
  if (uri.find('=') != std::string::npos) return uri;
  std::string usual = uri;
  bool is_key = true;
  const std::size_t scheme = uri.find("://");
  for (std::size_t at = scheme == std::string::npos ? 0 : scheme + 3; at < usual.size(); ++at) {
    if (usual[at] == ',') {
      usual[at] = ';';
      is_key = true;
    } else if (usual[at] == ':' && is_key) {
      usual[at] = '=';
      is_key = false;
    }
  }
  return usual;
}

Result<DriveUri> parse_uri(const std::string& uri) {
  const std::string prefix = std::string(kScheme) + "://";
  const std::string usual = usual_spelling(uri);
  const auto entries = parse_entries(usual.starts_with(prefix) ? usual.substr(prefix.size()) : usual);
  if (!entries) return Status::bad_input(prefix + ": " + entries.status().message());
  Reader reader;
  for (const auto& [key, value] : entries.value()) {
    if (Status status = reader.take(key, value); !status) return status;
  }
  return reader.finish();
}

}  // namespace spillway::plugin
