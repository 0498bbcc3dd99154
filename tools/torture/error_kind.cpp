#include "torture/error_kind.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/error_classification.hpp"
#include "console/describe_error.hpp"

namespace txinbox::torture {
namespace {

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& codes, std::string_view code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

}  // namespace

void count(const std::exception_ptr& error, Counters& met) {
  constexpr std::array<std::string_view, 2> deadlocks{"1213", "40P01"};
  constexpr std::array<std::string_view, 9> lock_timeouts{"1205", "1689", "3572", "55P03", "5",
                                                          "6",    "261",  "262",  "517"};
  // Transient too: statements that were ended, serialization failures, a server that only reads.
  constexpr std::array<std::string_view, 11> others{"1317", "1969", "3024",  "57014", "1020", "1615",
                                                    "1290", "1836", "25006", "40001", "26000"};
  if (detail::has_error_code(error, ErrorCode::transaction_lost)) {
    ++met.transactions_lost;
    return;
  }
  const std::string code = cli::error_code(error);
  if (is_one_of(deadlocks, code)) {
    ++met.deadlocks;
  } else if (is_one_of(lock_timeouts, code)) {
    ++met.lock_timeouts;
  } else if (is_transient(error) && !is_one_of(others, code)) {
    ++met.connections_lost;
  }
}

}  // namespace txinbox::torture
