#pragma once

#include <chrono>
#include <memory>

namespace txinbox::bench {

/// A TCP proxy on the loopback interface. It forwards all data after a delay, in each direction.
class DelayProxy {
 public:
  /// Forwards to this port of 127.0.0.1.
  DelayProxy(unsigned short target_port, std::chrono::microseconds one_way);

  /// All connections through the proxy must be closed before.
  ~DelayProxy();

  unsigned short port() const noexcept;

  /// Changes the delay of data that arrives from now on.
  void set_one_way(std::chrono::microseconds) noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace txinbox::bench
