#pragma once

#include <memory>
#include <vector>

#include <txinbox/pool.hpp>

#include "measure.hpp"

namespace txinbox::bench {

/// All ways to consume that are compared, each with what it needs open.
class Variants {
 public:
  /// The pool needs two connections: one is kept for what is by hand.
  explicit Variants(Pool& pool);
  ~Variants();
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;

  const std::vector<Variant>& all() const noexcept;

  /// Of what is by hand.
  soci::session& session() const noexcept;

  void ping();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace txinbox::bench
