#pragma once

#include <memory>
#include <string>

#include <soci/soci.h>

namespace txinbox::bench {

/// The transaction that people write by hand against the database's own interface, with prepared
/// statements and without a guard: BEGIN, INSERT of the key, UPDATE, COMMIT.
class ByHand {
 public:
  virtual ~ByHand() = default;
  virtual void consume(const std::string& key) = 0;
};

/// On the connection of this session.
std::unique_ptr<ByHand> by_hand(soci::session&);

}  // namespace txinbox::bench
