#include "torture/fenced_resource.hpp"

#include <fmt/format.h>
#include <soci/soci.h>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/scratch_sql.hpp"
#include "torture/scratch_tables.hpp"

namespace txinbox::torture {

bool FencedResource::introduce() const {
  const auto own = scratch_sql_of(backend::database_of(sql_));
  soci::statement statement = (sql_.prepare << fmt::format("{} into {} (business_key, fence, effects) values "
                                                           "(:k, 0, 0){}",
                                                           own.insert, resource_table, own.unless_exists),
                               soci::use(key_));
  statement.execute(true);
  return statement.get_affected_rows() == 1;
}

std::optional<std::int64_t> FencedResource::pass(std::int64_t fence, const std::string& condition) const {
  introduce();
  const long long wanted = fence;
  soci::statement update =
      (sql_.prepare << fmt::format("update {} set fence = :f, effects = effects + 1 where business_key = :k",
                                   resource_table) +
                           condition,
       soci::use(wanted), soci::use(key_), soci::use(wanted));
  update.execute(true);
  if (update.get_affected_rows() == 0) return std::nullopt;
  long long place = 0;
  sql_ << fmt::format("select effects from {} where business_key = :k", resource_table), soci::into(place),
      soci::use(key_);
  return place;
}

std::int64_t FencedResource::greatest() const {
  long long fence = 0;
  sql_ << fmt::format("select coalesce(max(fence), 0) from {} where business_key = :k", resource_table),
      soci::into(fence), soci::use(key_);
  return fence;
}

}  // namespace txinbox::torture
