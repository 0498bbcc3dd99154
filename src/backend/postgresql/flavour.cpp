#include "backend/postgresql/flavour.hpp"

#include <algorithm>
#include <array>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr std::string_view postgresql = "PostgreSQL ";

/// Products whose version() begins like PostgreSQL's.
constexpr std::array<std::string_view, 9> others = {"Redshift",    "Greenplum", "EnterpriseDB Advanced",
                                                    "Materialize", "openGauss", "QuestDB",
                                                    "RisingWave",  "CrateDB",   "CockroachDB"};

/// Whether the text begins with a version of PostgreSQL, such as "15.20 (Debian …" or "17beta1 on …". "11.2-YB-2.20"
/// does not.
bool begins_with_version(std::string_view text) {
  const auto number = text.find_first_not_of("0123456789.");
  if (number == 0) return false;
  if (number == std::string_view::npos) return true;
  text.remove_prefix(number);
  return text.starts_with(' ') || text.starts_with("beta") || text.starts_with("rc") || text.starts_with("devel");
}

}  // namespace

std::string unknown_postgresql(std::string_view version) {
  const bool names_other =
      std::ranges::any_of(others, [&](std::string_view name) { return version.find(name) != std::string_view::npos; });
  if (!names_other && version.starts_with(postgresql) && begins_with_version(version.substr(postgresql.size()))) {
    return {};
  }
  return std::string(version);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
