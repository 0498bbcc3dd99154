#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace soci {
class session;
}

namespace txinbox::torture {

/// The row of a service for each key, so that it can refuse a worker whose lease was taken over: the greatest fence
/// that it has seen, and how many effects it has accepted. `pass` locks this row until the end of the transaction.
class FencedResource {
 public:
  FencedResource(soci::session& sql, const std::string& business_key) : sql_(sql), key_(business_key) {}

  /// The number of the effect among those of its key, from 1. Nothing if an earlier effect had the same or a greater
  /// fence.
  std::optional<std::int64_t> pass(std::int64_t fence) const { return pass(fence, " and fence < :least"); }

  /// Broken on purpose: accepts every fence.
  std::optional<std::int64_t> pass_anyway(std::int64_t fence) const {
    return pass(fence, " and (fence < :least or fence >= 0)");
  }

  /// Adds the key to the resource. @return true if it was not there yet.
  bool introduce() const;

  /// The greatest fence that it has seen; 0 if none.
  std::int64_t greatest() const;

 private:
  std::optional<std::int64_t> pass(std::int64_t fence, const std::string& condition) const;

  soci::session& sql_;
  const std::string& key_;
};

}  // namespace txinbox::torture
