#pragma once

// Services that answer HTTP requests with `http::Guard`, and clients that send a request again until it is answered.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <sqlite3.h>
#include <txinbox/http.hpp>

#include "sim/workload.hpp"
#include "sim/workloads/lease_runs.hpp"

namespace txinbox::sim {

class Answering final : public Workload {
 public:
  explicit Answering(World& world) : Workload(world), requests_(world.plan.servers) {}

  std::vector<std::string> services() const override;
  void serve(std::size_t service, const std::stop_token&) override;
  void step() override;
  std::optional<Waiting> waiting(bool stuck) override;
  void check_end() override;
  std::uint64_t deliveries() const noexcept override { return deliveries_; }

 private:
  /// The behaviour of the handler of a request.
  enum class Act {
    succeeds,
    fails_at_first,
    is_slow,  ///< The first time, it takes two seconds, or longer than its lease.
    refuses,  ///< It throws a `Refusal`: the answer is kept, and nothing takes effect.
  };
  struct Client {
    Act act;
    int runs = 0;
    int returns = 0;  ///< How often the handler has returned.
    LeaseRuns leases = {};
    SimTime sends_at{0};      ///< When it sends the request again.
    std::string given = {};   ///< The status and the body of the latest final answer. It may be lost on the way.
    bool has_answer = false;  ///< It has got a final answer.
  };

  /// The keys of the requests that wait at a server.
  struct Requests {
    std::mutex mutex = {};
    std::condition_variable_any arrives = {};
    std::deque<std::string> keys = {};
  };

  bool is_lost_on_the_way() const;
  void send(const std::string& key, Client&);
  void serve_with(std::size_t service, const std::stop_token&,
                  const std::function<http::Response(const http::Request&)>& answer);
  http::Response handle(::sqlite3*, const http::Request&);
  http::Response handle_under_lease(Lease&, const http::Request&);
  http::Response act(const std::string& key, Client&) const;
  void answered(const std::string& key, const http::Response&);
  std::optional<std::string> wrong_effects(const std::string& key, const Client&);
  bool may_differ(const std::string& key, const Client&) const;

  std::map<std::string, Client> clients_;
  std::vector<Requests> requests_;  ///< At each server.
  std::uint64_t deliveries_ = 0;
};

}  // namespace txinbox::sim
