#include "tool/ssd/held_drive_line.h"

#include <limits>

#include "tool/protocol/fields.h"

namespace spillway::tool {
namespace {

constexpr std::uint64_t kMostOffset = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMostLength = std::uint64_t{1} << 30;              // limit of device::Io
constexpr std::uint64_t kMostSpendNs = std::uint64_t{86'400'000'000'000};  // a day

bool is_whole(const Json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}

// An element of a column; `value` is of a whole number up to `most`. False, and an error, for anything else.
bool read_element(const Json& value, std::uint64_t most, std::uint64_t& read) {
  if (!is_whole(value)) return false;
  read = value.get<std::uint64_t>();
  return read <= most;
}

std::string in_column(const char* column, std::size_t index, const Json& value, std::uint64_t most) {
  return "submit." + std::string(column) + "[" + std::to_string(index) + "] is " + value.dump() +
         "; it takes a whole number from 0 to " + std::to_string(most);
}

Status read_offsets(const Json& offsets, std::vector<RequestedIo>& ios) {
  if (!offsets.is_array() || offsets.size() != ios.size()) {
    return Status::bad_input("submit.offset_bytes takes a list with one offset for each letter of submit.op, " +
                             std::to_string(ios.size()));
  }
  for (std::size_t i = 0; i < ios.size(); ++i) {
    if (!read_element(offsets[i], kMostOffset, ios[i].offset_bytes)) {
      return Status::bad_input(in_column("offset_bytes", i, offsets[i], kMostOffset));
    }
  }
  return {};
}

// One length for all, or a list of them.
Status read_lengths(const Json& lengths, std::vector<RequestedIo>& ios) {
  const bool each = lengths.is_array();
  if (each && lengths.size() != ios.size()) {
    return Status::bad_input("submit.length_bytes has " + std::to_string(lengths.size()) + " lengths and submit.op " +
                             std::to_string(ios.size()) + " letters; give one length, or one for each");
  }
  for (std::size_t i = 0; i < ios.size(); ++i) {
    const Json& value = each ? lengths[i] : lengths;
    if (!read_element(value, kMostLength, ios[i].length_bytes)) {
      if (each) return Status::bad_input(in_column("length_bytes", i, value, kMostLength));
      return Status::bad_input("submit.length_bytes is " + value.dump() + "; it takes a whole number from 0 to " +
                               std::to_string(kMostLength) + ", or a list of them");
    }
  }
  return {};
}

Status read_submit(const Json& json, std::vector<RequestedIo>& ios) {
  if (json.is_null()) return {};
  Fields fields(json, "submit");
  const std::string ops = fields.text("op", "");
  const Json& offsets = fields.inner("offset_bytes");
  const Json& lengths = fields.inner("length_bytes");
  if (Status status = fields.finish(); !status) return status;
  if (ops.empty()) return Status::bad_input("submit.op is missing or empty; it takes r or w for each io, as \"rrw\"");
  if (ops.size() > kMostInFlight) {
    return Status::bad_input("submit.op has " + std::to_string(ops.size()) + " letters; at most " +
                             std::to_string(kMostInFlight) + " ios may be in flight");
  }
  ios.resize(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i] != 'r' && ops[i] != 'w') {
      return Status::bad_input("submit.op has " +
                               Json(ops.substr(i, 1)).dump(-1, ' ', true, Json::error_handler_t::replace) + " at " +
                               std::to_string(i) + "; it takes r or w for each io");
    }
    ios[i].op = ops[i] == 'r' ? device::Opcode::read : device::Opcode::write;
  }
  if (Status status = read_offsets(offsets, ios); !status) return status;
  return read_lengths(lengths.is_null() ? Json(4096) : lengths, ios);
}

Status read_line(const Json& json, HeldDriveLine& line) {
  Fields fields(json, "");
  line.spend_ns = static_cast<device::Nanos>(fields.whole("spend_ns", 0, 0, kMostSpendNs));
  const Json& submit = fields.inner("submit");
  line.wait = fields.whole("wait", 0, 0, kMostInFlight);
  line.end = fields.flag("end", false);
  if (Status status = fields.finish(); !status) return status;
  if (json.empty() || (json.contains("end") && (json.size() != 1 || !line.end))) {
    return Status::bad_input("a line takes spend_ns, submit and wait, one of them or more, or \"end\": true alone");
  }
  return read_submit(submit, line.ios);
}

}  // namespace

Result<HeldDriveLine> read_held_drive_line(const std::string& text, int number) {
  const std::string where = "line " + std::to_string(number) + ": ";
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status::bad_input(where + "not a JSON object; each line is one command, whole");
  HeldDriveLine line;
  line.number = number;
  if (Status status = read_line(json, line); !status) return Status::bad_input(where + status.message());
  return line;
}

}  // namespace spillway::tool
