#pragma once

#include <memory>
#include <vector>

#include <txinbox/pool.hpp>

#include "measure.hpp"

namespace txinbox::bench {

/// All ways to consume that the benchmark compares, each with its open connections.
class Variants {
 public:
  /// The pool needs two connections: one of them is for the transactions by hand.
  explicit Variants(Pool& pool);
  ~Variants();
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;

  const std::vector<Variant>& all() const noexcept;

  /// The session of the transactions by hand.
  soci::session& session() const noexcept;

  void ping();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace txinbox::bench
