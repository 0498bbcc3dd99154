#pragma once

#include <span>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A file `migrations/<database>/V<version>__<name>.sql`, as the build compiled it in.
struct EmbeddedMigration {
  std::string_view database;
  int version;
  std::string_view name;
  std::string_view sql;
};

/// Returns the migrations of every database in this build. Those of one database are in the order of their versions.
std::span<const EmbeddedMigration> embedded_migrations() noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
