#include "ssd/interface/command.h"

namespace spillway::ssd {

std::uint8_t nvme_status(Outcome outcome) {
  switch (outcome) {
    case Outcome::success:
      return 0x00;
    case Outcome::lba_out_of_range:
      return 0x80;
    case Outcome::capacity_exceeded:
    case Outcome::kv_capacity_exceeded:
      return 0x81;
    case Outcome::kv_invalid_value_size:
      return 0x85;
    case Outcome::kv_invalid_key_size:
      return 0x86;
    case Outcome::kv_key_does_not_exist:
      return 0x87;
    case Outcome::kv_key_exists:
      return 0x89;
    case Outcome::kv_invalid_namespace:
      return 0x0B;
    case Outcome::kv_invalid_opcode:
      return 0x01;
    case Outcome::kv_invalid_field:
      return 0x02;
  }
  return 0x06;  // internal error
}

}  // namespace spillway::ssd
